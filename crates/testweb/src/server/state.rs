//! What the server remembers about its clients: who was turned away, and when a throttling host was last asked.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::world::{HostId, Node};

/// Nodes remembered at most; beyond that, requests are answered as if they had been turned away before.
const MAX_NODES: usize = 1 << 20;

/// The memory of a running server.
#[derive(Debug, Default)]
pub(super) struct State {
    turned_away: Mutex<HashMap<Node, u32>>,
    last_asked: Mutex<HashMap<HostId, u64>>,
}

impl State {
    /// Whether this request is among the first `times` for a node.
    pub(super) fn turn_away(&self, node: Node, times: u32) -> bool {
        let mut map = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        if map.len() >= MAX_NODES && !map.contains_key(&node) {
            return false;
        }
        let count = map.entry(node).or_default();
        *count = count.saturating_add(1);
        *count <= times
    }

    /// Whether a host was asked less than `interval_us` ago; remembers this request in any case.
    pub(super) fn too_soon(&self, host: HostId, now_us: u64, interval_us: u64) -> bool {
        let mut map = self.last_asked.lock().unwrap_or_else(PoisonError::into_inner);
        map.insert(host, now_us).is_some_and(|last| now_us.saturating_sub(last) < interval_us)
    }
}
