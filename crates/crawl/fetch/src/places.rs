//! How many fetches may be under way at one address.
//!
//! The scheduler counts the address that a name is tried at first. Where that one does not answer the next is tried, and only
//! the fetcher knows which it was: so it counts as well, and waits until there is room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Addresses that are kept before unused ones are forgotten.
const SWEEP_AT: usize = 4096;

/// Room at an address, until it is dropped. `None` where there is no limit.
pub(crate) type Place = Option<OwnedSemaphorePermit>;

/// Counts fetches by address.
pub(crate) struct Places {
    limit: Option<usize>,
    exempt: Vec<IpAddr>,
    used: Mutex<HashMap<IpAddr, Weak<Semaphore>>>,
}

impl Places {
    pub fn new(limit: Option<usize>, exempt: Vec<IpAddr>) -> Arc<Self> {
        Arc::new(Places { limit, exempt, used: Mutex::default() })
    }

    /// Waits for room at an address.
    pub async fn take(&self, ip: IpAddr) -> Place {
        let limit = self.limit.filter(|_| !self.exempt.contains(&ip))?;
        let room = self.room(ip, limit);
        // It is never closed.
        room.acquire_owned().await.ok()
    }

    fn room(&self, ip: IpAddr, limit: usize) -> Arc<Semaphore> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= SWEEP_AT {
            used.retain(|_, room| room.strong_count() > 0);
        }
        if let Some(room) = used.get(&ip).and_then(Weak::upgrade) {
            return room;
        }
        let room = Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)));
        used.insert(ip, Arc::downgrade(&room));
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn an_address_has_room_for_so_many() {
        let [busy, other, exempt] = ["127.0.0.1", "127.0.0.2", "::1"].map(|ip| ip.parse().unwrap());
        let places = Places::new(Some(2), vec![exempt]);
        let waits = async |ip| timeout(Duration::from_millis(20), places.take(ip)).await.is_err();
        let (first, _second) = (places.take(busy).await, places.take(busy).await);
        assert!(first.is_some() && waits(busy).await);
        assert!(!waits(other).await && !waits(exempt).await);
        drop(first);
        assert!(!waits(busy).await);
        assert!(Places::new(None, Vec::new()).take(busy).await.is_none());
    }
}
