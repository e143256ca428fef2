//! Limits on pages hold rows back and drop none. What was handed out once is counted already: it may be tried again whatever the limit.

use crate::config::Config;
use crate::frontier::Totals;
use crate::row::{Found, Row};

/// Which rows of a host the limits on pages let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limits {
    /// All.
    Open,
    /// Seeds, and what was tried before: what is left of the limit is kept for seeds.
    Seeds,
    /// What was tried before: the limit is reached.
    Reached,
}

impl Limits {
    /// For a host of which so many pages were handed out. `seeds_open`: more seeds follow.
    pub fn of(config: &Config, totals: &Totals, host_admitted: u32, seeds_open: bool) -> Self {
        let over = |count: u64, limit: Option<u64>| limit.is_some_and(|limit| count >= limit);
        if over(totals.admitted, config.max_pages) || over(u64::from(host_admitted), config.max_pages_per_host) {
            return Limits::Reached;
        }
        // Seeds come first: while more of them follow, nothing else is handed out, and then only what leaves room for them.
        let room_taken = totals.admitted.saturating_add(totals.seeds_waiting);
        if config.limits_pages() && seeds_open || over(room_taken, config.max_pages) {
            return Limits::Seeds;
        }
        Limits::Open
    }

    /// Whether a row may go that was tried before, or not, and was found like this.
    pub fn let_go(self, is_tried: bool, found: Found) -> bool {
        match self {
            Limits::Open => true,
            Limits::Seeds => is_tried || found == Found::Seed,
            Limits::Reached => is_tried,
        }
    }

    /// Whether a row may go.
    pub fn let_row_go(self, row: &Row) -> bool {
        self.let_go(row.is_admitted(), row.found)
    }
}
