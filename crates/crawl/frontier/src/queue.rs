//! Hosts that may be asked now, and hosts that may be asked later. Entries are not taken out when a host moves: they are checked
//! against where the host stands when they come up.

use crate::policy::priority::CLASSES;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Ready hosts by class, first come first served within one; and by how long they have been ready.
pub(crate) struct ReadyBank {
    classes: Vec<VecDeque<(u32, u64)>>,
    /// Which classes have entries.
    bits: [u64; CLASSES / 64],
    /// All of them in the order they became ready.
    order: VecDeque<(u32, u64)>,
    turn: u64,
    len: usize,
}

impl Default for ReadyBank {
    fn default() -> Self {
        Self {
            classes: (0..CLASSES).map(|_| VecDeque::new()).collect(),
            bits: [0; CLASSES / 64],
            order: VecDeque::new(),
            turn: 0,
            len: 0,
        }
    }
}

impl ReadyBank {
    /// Adds a host; the turn tells its entries from older ones.
    pub fn push(&mut self, host: u32, class: u16) -> u64 {
        self.turn += 1;
        self.classes[usize::from(class)].push_back((host, self.turn));
        self.bits[usize::from(class) / 64] |= 1 << (class % 64);
        self.order.push_back((host, self.turn));
        self.len += 1;
        self.turn
    }

    /// A host is ready no more.
    pub fn left(&mut self) {
        self.len -= 1;
    }

    /// The best host, or the one that has been ready for longest. It stays counted until [`ReadyBank::left`].
    pub fn pop(&mut self, fair: bool, is_live: impl Fn(u32, u64) -> bool) -> Option<u32> {
        if self.order.len() > 2 * self.len + 64 {
            self.order.retain(|(host, turn)| is_live(*host, *turn));
        }
        if fair {
            while let Some((host, turn)) = self.order.pop_front() {
                if is_live(host, turn) {
                    return Some(host);
                }
            }
        }
        for word in 0..self.bits.len() {
            while self.bits[word] != 0 {
                let class = word * 64 + self.bits[word].trailing_zeros() as usize;
                while let Some((host, turn)) = self.classes[class].pop_front() {
                    if is_live(host, turn) {
                        return Some(host);
                    }
                }
                self.bits[word] &= !(1 << (class % 64));
            }
        }
        None
    }
}

/// Hosts by when they may be asked.
#[derive(Default)]
pub(crate) struct WaitHeap {
    heap: BinaryHeap<Reverse<(i64, u32)>>,
    len: usize,
    /// Those that wait for politeness alone: nothing failed of them.
    polite: usize,
}

impl WaitHeap {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn polite(&self) -> usize {
        self.polite
    }

    pub fn push(&mut self, at: i64, host: u32, failed: bool) {
        self.heap.push(Reverse((at, host)));
        self.len += 1;
        self.polite += usize::from(!failed);
    }

    pub fn left(&mut self, failed: bool) {
        self.len -= 1;
        self.polite -= usize::from(!failed);
    }

    /// The next host whose time has come; stale entries are dropped on the way.
    pub fn due(&mut self, now: i64, is_live: impl Fn(i64, u32) -> bool) -> Option<u32> {
        while let Some(Reverse((at, host))) = self.heap.peek().copied() {
            let live = is_live(at, host);
            if live && at > now {
                return None;
            }
            self.heap.pop();
            if live {
                return Some(host);
            }
        }
        None
    }

    /// When the first host may be asked.
    pub fn first(&mut self, is_live: impl Fn(i64, u32) -> bool) -> Option<i64> {
        self.first_host(is_live).map(|(at, _)| at)
    }

    /// The same, and which host it is.
    pub fn first_host(&mut self, is_live: impl Fn(i64, u32) -> bool) -> Option<(i64, u32)> {
        if self.heap.len() > 4 * self.len + 64 {
            self.heap.retain(|Reverse((at, host))| is_live(*at, *host));
        }
        while let Some(Reverse((at, host))) = self.heap.peek().copied() {
            if is_live(at, host) {
                return Some((at, host));
            }
            self.heap.pop();
        }
        None
    }

    /// All hosts in it.
    pub fn hosts(&self, is_live: impl Fn(i64, u32) -> bool) -> Vec<u32> {
        let live = self.heap.iter().filter(|Reverse((at, host))| is_live(*at, *host));
        let mut hosts: Vec<u32> = live.map(|Reverse((_, host))| *host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts
    }
}
