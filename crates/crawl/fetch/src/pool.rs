//! Idle connections, by origin.

use crate::config::PoolLimits;
use crate::conn::Link;
use crate::target::Origin;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// A bounded store of idle connections; of those that have settled the one used last is taken first; the one idle longest is dropped first.
pub(crate) struct Pool {
    limits: PoolLimits,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    by_origin: HashMap<Origin, VecDeque<(Instant, Link)>>,
    /// Origins in the order in which connections were put back; stale entries are skipped.
    order: VecDeque<(Instant, Origin)>,
    count: usize,
    /// Origins that sent surplus bytes: their connections are used once.
    distrusted: HashSet<Origin>,
}

/// Origins kept in mind for having sent too much.
const DISTRUSTED: usize = 65_536;

impl Pool {
    pub(crate) fn new(limits: PoolLimits) -> Self {
        Self { limits, idle: Mutex::default() }
    }

    /// The connection used last of those that have idled long enough.
    pub(crate) fn take(&self, origin: &Origin) -> Option<Link> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.drop_older(self.limits.idle);
        let queue = idle.by_origin.get_mut(origin)?;
        let settled = |(since, link): &(Instant, Link)| since.elapsed() >= link.settles(self.limits.settle);
        let (_, link) = queue.iter().rposition(settled).and_then(|at| queue.remove(at))?;
        if queue.is_empty() {
            idle.by_origin.remove(origin);
        }
        idle.count -= 1;
        Some(link)
    }

    /// Never again keeps a connection of an origin.
    pub(crate) fn distrust(&self, origin: &Origin) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while idle.by_origin.contains_key(origin) {
            idle.drop_oldest_of(origin);
        }
        if idle.distrusted.len() >= DISTRUSTED {
            // Forgotten ones are found out again by the same checks.
            idle.distrusted.clear();
        }
        idle.distrusted.insert(origin.clone());
    }

    pub(crate) fn put(&self, origin: &Origin, link: Link) {
        if self.limits.total == 0 || self.limits.per_origin == 0 {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.drop_older(self.limits.idle);
        if idle.distrusted.contains(origin) {
            return;
        }
        if idle.by_origin.get(origin).is_some_and(|q| q.len() >= self.limits.per_origin) {
            idle.drop_oldest_of(origin);
        }
        while idle.count >= self.limits.total && idle.drop_oldest() {}
        idle.by_origin.entry(origin.clone()).or_default().push_back((now, link));
        idle.order.push_back((now, origin.clone()));
        idle.count += 1;
    }
}

impl Idle {
    fn drop_older(&mut self, age: std::time::Duration) {
        while self.order.front().is_some_and(|(at, _)| at.elapsed() >= age) {
            self.drop_oldest();
        }
        // Connections taken again leave their entries in `order`: they may not outnumber the connections for ever.
        if self.order.len() > 2 * self.count + 64 {
            let by_origin = &self.by_origin;
            self.order.retain(|(at, origin)| by_origin.get(origin).is_some_and(|q| q.iter().any(|(t, _)| t == at)));
        }
    }

    /// Forgets the oldest entry of `order` and the connection it stands for, if that is still idle.
    fn drop_oldest(&mut self) -> bool {
        let Some((at, origin)) = self.order.pop_front() else { return false };
        if self.by_origin.get(&origin).and_then(VecDeque::front).is_some_and(|(t, _)| *t == at) {
            self.drop_oldest_of(&origin);
        }
        true
    }

    fn drop_oldest_of(&mut self, origin: &Origin) {
        if let Some(queue) = self.by_origin.get_mut(origin) {
            if queue.pop_front().is_some() {
                self.count -= 1;
            }
            if queue.is_empty() {
                self.by_origin.remove(origin);
            }
        }
    }
}
