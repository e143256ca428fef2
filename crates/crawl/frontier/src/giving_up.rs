//! Hosts that stay away: a run waits for them only so long.

use crate::error::Result;
use crate::frontier::Frontier;
use crate::host::{Placed, Robots};
use crate::row::Status;
use trawl_model::UnixMillis;

impl Frontier {
    /// Whether all that is left to do waits because something failed: hosts in backoff, URLs to be tried again.
    pub fn only_backoff(&self) -> bool {
        let waits = self.waiting.len() > 0 && self.waiting.polite() == 0;
        waits && self.placed == self.waiting.len() && self.out() == 0 && self.asked == 0
    }

    /// Ends the wait for all that is in backoff: such hosts are asked no more and their URLs refused by [`Frontier::lease`];
    /// URLs that only waited to be tried again are given up, and counted here.
    pub fn give_up(&mut self, now: UnixMillis, why: &str) -> Result<u64> {
        let now = self.clock.tick(now);
        let hosts = &self.hosts;
        let live = |at, id: u32| matches!(hosts[id as usize].placed, Placed::Waiting(t, _) if t == at);
        let mut forgotten = 0;
        for id in self.waiting.hosts(live) {
            let host = &mut self.hosts[id as usize];
            let rests = host.sites.iter().any(|site| matches!(site.robots, Robots::Resting { .. }));
            if host.is_in_backoff() || rests {
                let why = match (host.failures, host.troubles) {
                    (0, 0) => why.to_owned(),
                    (0, n) => format!("{why}: this machine failed {n} times in a row"),
                    (n, _) => format!("{why}: {n} connections in a row failed"),
                };
                host.given_up = Some(why.into());
                host.next_ms = now;
                self.touch(id);
            } else {
                forgotten += self.forget(id, now)?;
            }
            self.place(id, now);
        }
        self.changed(now)?;
        Ok(forgotten)
    }

    /// Gives up the rows of a host that wait to be tried again.
    fn forget(&mut self, id: u32, now: i64) -> Result<u64> {
        let mut forgotten = 0;
        loop {
            let host = &mut self.hosts[id as usize];
            for mut row in std::mem::take(&mut host.window.later) {
                self.window_bytes -= row.memory();
                self.hosts[id as usize].waiting -= 1;
                self.totals.waiting -= 1;
                (row.status, row.due_ms) = (Status::Gone, 0);
                self.write(id, row);
                forgotten += 1;
            }
            let host = &self.hosts[id as usize];
            if !host.has_outside() || !self.refill_hosts(&mut vec![id], now, i64::MAX)? {
                return Ok(forgotten);
            }
            self.keep_up(now)?;
        }
    }
}
