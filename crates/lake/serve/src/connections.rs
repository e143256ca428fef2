//! Connections, of which there may be only so many: who waits longest without asking anything makes room.
//!
//! ```text
//! accept ─► enter ─┬─ room ─────────────────────────► serve
//!                  ├─ full, somebody idle ─► close it ─► serve
//!                  └─ full, all busy ────────────────► 503, close
//! ```
//! A connection is busy until its answers are sent. A client that takes nothing of an answer for too long loses its connection,
//! also where its system still takes bytes for it: with HTTP/2 a client says itself how much it takes of each answer. What is made
//! and not sent yet is counted, and has a bound.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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
    /// Bytes of answers that are made and not sent.
    unsent: AtomicU64,
}

/// One connection.
pub(crate) struct Connection {
    id: u64,
    all: Arc<Connections>,
    /// Requests under way.
    busy: AtomicUsize,
    /// Milliseconds from the start of the server until it last began or ended a request, or bytes were taken from it.
    last: AtomicU64,
    /// The same clock: when the first byte of a request came whose head is not whole yet; `NO_HEAD` between requests.
    head: AtomicU64,
    /// Answers of which the client could take more, by number, and since when.
    offered: Mutex<HashMap<u64, u64>>,
    /// Whether its answer ends where it ends: so HTTP/1.0 has it for answers of unknown length.
    ends_answer: AtomicBool,
    /// Told to make room.
    pub(crate) close: Notify,
}

const NO_HEAD: u64 = u64::MAX;

/// A connection's place; left when it is dropped.
pub(crate) struct Place(pub(crate) Arc<Connection>);

/// A request under way, until its answer is sent.
pub(crate) struct Busy {
    one: Arc<Connection>,
    number: u64,
    /// Bytes it counts for among those that are not sent.
    unsent: u64,
}

/// Bytes of answers that may be made and not sent, all clients together: slow ones must not fill the memory.
const MAX_UNSENT: u64 = 256 << 20;

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let (next, open, ended, unsent) = (AtomicU64::new(0), Mutex::default(), Notify::new(), AtomicU64::new(0));
        Arc::new(Self { most: most.max(1), begun: Instant::now(), next, open, ended, unsent })
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
        let (busy, offered, close) = (AtomicUsize::new(0), Mutex::default(), Notify::new());
        let (last, head) = (AtomicU64::new(self.now()), AtomicU64::new(NO_HEAD));
        let ends_answer = AtomicBool::new(false);
        let one = Arc::new(Connection { id, all: self.clone(), busy, last, head, offered, ends_answer, close });
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
        self.head.store(NO_HEAD, Ordering::Relaxed);
        self.touch();
        let number = self.all.next.fetch_add(1, Ordering::Relaxed);
        Busy { one: self.clone(), number, unsent: 0 }
    }

    /// From now on its end is the end of an answer.
    pub(crate) fn end_answer(&self) {
        self.ends_answer.store(true, Ordering::Relaxed);
    }

    /// Whether its end is the end of an answer.
    pub(crate) fn ends_answer(&self) -> bool {
        self.ends_answer.load(Ordering::Relaxed)
    }

    /// Something happened on it.
    pub(crate) fn touch(&self) {
        self.last.store(self.all.now(), Ordering::Relaxed);
    }

    /// Bytes came: between requests they begin the head of the next one.
    pub(crate) fn received(&self) {
        if self.busy.load(Ordering::Relaxed) == 0 {
            let begun = (NO_HEAD, self.all.now());
            let _ = self.head.compare_exchange(begun.0, begun.1, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// How long the head of a request has been coming in; `None` while there is none.
    pub(crate) fn head_age(&self) -> Option<Duration> {
        let since = self.head.load(Ordering::Relaxed);
        (since != NO_HEAD).then(|| Duration::from_millis(self.all.now().saturating_sub(since)))
    }

    fn offered(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.offered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until nothing was asked on it for `idle`, or the client took nothing of an answer for `write`. A head that trickles in is
    /// not a request yet.
    pub(crate) async fn is_over(&self, idle: Duration, write: Duration) {
        let millis = |limit: Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let (idle, write) = (millis(idle), millis(write));
        loop {
            let now = self.all.now();
            let offered = self.offered().values().min().map(|since| now.saturating_sub(*since));
            let busy = self.busy.load(Ordering::Relaxed) > 0;
            let passed = now.saturating_sub(self.last.load(Ordering::Relaxed));
            if offered.is_some_and(|passed| passed >= write) || (!busy && passed >= idle) {
                return;
            }
            let left = if busy { write - offered.unwrap_or(0) } else { idle - passed };
            // An answer may be offered at any time: so it looks again before that one can be overdue for long.
            tokio::time::sleep(Duration::from_millis(left.min(write).max(10))).await;
        }
    }
}

impl Busy {
    /// Says whether the client could take more of the answer, or there is nothing for it yet.
    pub(crate) fn offers(&self, offers: bool) {
        let mut offered = self.one.offered();
        if offers {
            offered.insert(self.number, self.one.all.now());
        } else {
            offered.remove(&self.number);
        }
    }

    /// Counts the bytes of an answer; `false` if there are too many that are not sent.
    pub(crate) fn holds(&mut self, bytes: u64) -> bool {
        self.unsent += bytes;
        self.one.all.unsent.fetch_add(bytes, Ordering::Relaxed) + bytes <= MAX_UNSENT
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.one.all.unsent.fetch_sub(self.unsent, Ordering::Relaxed);
        self.offers(false);
        self.one.touch();
        self.one.busy.fetch_sub(1, Ordering::Relaxed);
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

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_not_waited_for() {
        let all = Connections::new(2);
        let place = all.enter().unwrap();
        let (long, short) = (Duration::from_secs(3600), Duration::from_millis(50));
        let is_over = async |idle, write| {
            tokio::time::timeout(Duration::from_millis(500), place.0.is_over(idle, write)).await.is_ok()
        };
        let mut busy = place.0.request();
        assert!(!is_over(short, short).await, "there is nothing for the client yet");
        busy.offers(true);
        assert!(is_over(long, short).await);
        assert!(!is_over(short, long).await);
        assert!(busy.holds(MAX_UNSENT) && !busy.holds(1));
        drop(busy);
        assert!(is_over(short, long).await && !is_over(long, short).await);
        assert!(place.0.request().holds(MAX_UNSENT), "what is sent is not held any more");
    }
}
