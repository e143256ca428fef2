//! Connections, of which there may be only so many: who waits longest without asking anything makes room.
//!
//! ```text
//! accept ─► enter ─┬─ room ─────────────────────────► serve
//!                  ├─ full, somebody idle ─► close it ─► serve
//!                  └─ full, all busy ────────────────► 503, close
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// All connections.
pub(crate) struct Connections {
    most: usize,
    begun: Instant,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Connection>>>,
    /// Told whenever one ends.
    ended: Notify,
}

/// One connection.
pub(crate) struct Connection {
    id: u64,
    all: Arc<Connections>,
    /// Requests under way.
    busy: AtomicUsize,
    /// Milliseconds from the start of the server until it last began or ended a request.
    last: AtomicU64,
    /// Told to make room.
    pub(crate) close: Notify,
}

/// A connection's place; left when it is dropped.
pub(crate) struct Place(pub(crate) Arc<Connection>);

/// A request under way, until its answer is sent.
pub(crate) struct Busy(Arc<Connection>);

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let (next, open, ended) = (AtomicU64::new(0), Mutex::default(), Notify::new());
        Arc::new(Self { most: most.max(1), begun: Instant::now(), next, open, ended })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// A place for a new connection; `None` if all are taken by requests under way.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        let mut open = self.lock();
        if open.len() >= self.most {
            let idle = open.values().filter(|one| one.busy.load(Ordering::Relaxed) == 0);
            let oldest = idle.min_by_key(|one| one.last.load(Ordering::Relaxed)).map(|one| one.id);
            // It gives up its descriptor a moment later; so there may be a few more than `most` for that long.
            open.remove(&oldest?).into_iter().for_each(|one| one.close.notify_one());
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (busy, last) = (AtomicUsize::new(0), AtomicU64::new(self.now()));
        let one = Arc::new(Connection { id, all: self.clone(), busy, last, close: Notify::new() });
        open.insert(id, one.clone());
        Some(Place(one))
    }

    /// Until all have ended.
    pub(crate) async fn drained(&self) {
        loop {
            let ended = self.ended.notified();
            if self.lock().is_empty() {
                return;
            }
            // One that ends between the look and the wait is noticed by the next look.
            let _ = tokio::time::timeout(Duration::from_millis(100), ended).await;
        }
    }
}

impl Connection {
    pub(crate) fn request(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::Relaxed);
        self.last.store(self.all.now(), Ordering::Relaxed);
        Busy(self.clone())
    }

    /// Until nothing was asked on it for so long. A head that trickles in is not a request yet.
    pub(crate) async fn idle(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        loop {
            let busy = self.busy.load(Ordering::Relaxed) > 0;
            let passed = self.all.now().saturating_sub(self.last.load(Ordering::Relaxed));
            if !busy && passed >= limit {
                return;
            }
            let left = if busy { limit } else { limit - passed };
            tokio::time::sleep(Duration::from_millis(left.max(10))).await;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.last.store(self.0.all.now(), Ordering::Relaxed);
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.all.lock().remove(&self.0.id);
        self.0.all.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_ones_make_room_and_busy_ones_stay() {
        let all = Connections::new(2);
        let (first, second) = (all.enter().unwrap(), all.enter().unwrap());
        let busy = first.0.request();
        let third = all.enter().unwrap();
        let _third_busy = third.0.request();
        assert_eq!(all.count(), 2, "the second one made room");
        assert!(all.enter().is_none(), "both are busy");
        drop(second);
        drop(busy);
        assert!(all.enter().is_some());
        drop(first);
        drop(third);
        assert_eq!(all.count(), 0);
    }
}
