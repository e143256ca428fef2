//! Hosts that stay away: a run waits for them only so long.

use crate::error::Result;
use crate::frontier::Frontier;
use crate::host::{Host, Placed, Robots};
use crate::row::{Row, Status};
use std::ops::AddAssign;
use trawl_model::{ErrorClass, UnixMillis};

/// URLs that waited to be tried again when they were given up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Those that had a response, whatever its status.
    pub answered: u64,
    /// Those that had none.
    pub unanswered: u64,
}

impl AddAssign for Forgotten {
    fn add_assign(&mut self, more: Self) {
        self.answered += more.answered;
        self.unanswered += more.unanswered;
    }
}

impl Host {
    /// It is asked again, and so are those of its origins that were given up. What only rests goes on resting.
    pub(crate) fn is_asked_again(&mut self) {
        if self.given_up.take().is_some() {
            self.is_back();
        }
        for site in &mut self.sites {
            site.away.take_if(|away| away.given_up.is_some());
            if matches!(site.robots, Robots::GivenUp { .. }) {
                site.robots = Robots::Unknown { attempts: 0, old: None };
            }
        }
    }
}

impl Frontier {
    /// Whether all that is left to do waits because something failed: hosts in backoff, URLs to be tried again.
    pub fn only_backoff(&self) -> bool {
        let waits = self.waiting.len() > 0 && self.waiting.polite() == 0;
        let idle = self.out() == 0 && self.asked == 0 && self.refilling.is_none();
        waits && self.placed == self.waiting.len() && idle
    }

    /// Ends the wait for all that is in backoff: such origins and hosts are asked no more and their URLs refused by
    /// [`Frontier::lease`]; URLs that had an answer and only waited to be tried again are given up, and counted here.
    pub fn give_up(&mut self, now: UnixMillis, why: &str) -> Result<Forgotten> {
        let now = self.clock.tick(now);
        let hosts = &self.hosts;
        let live = |at, id: u32| matches!(hosts[id as usize].placed, Placed::Waiting(t, _) if t == at);
        let mut forgotten = Forgotten::default();
        for id in self.waiting.hosts(live) {
            let host = &mut self.hosts[id as usize];
            if host.is_in_backoff() {
                let why = match host.troubles {
                    0 => format!("{why}: the host asked us {} times in a row to slow down", host.backoffs),
                    n => format!("{why}: this machine failed {n} times in a row"),
                };
                host.given_up = Some(why.into());
                host.next_ms = now;
                self.touch(id);
                // What its pages answered is what is known of them, not that their host was given up.
                forgotten += self.forget_answered(id);
            } else if self.give_up_sites(id, why, now) {
                forgotten += self.forget_later(id);
            } else {
                forgotten += self.forget(id, now)?;
            }
            self.place(id, now);
        }
        self.changed(now)?;
        Ok(forgotten)
    }

    /// Gives up the origins of a host that rest; whether there are any.
    fn give_up_sites(&mut self, id: u32, why: &str, now: i64) -> bool {
        let resting = self.hosts[id as usize].resting(now);
        for (name, _) in &resting {
            let site = self.hosts[id as usize].site(name);
            match site.away.as_ref().map(|away| away.failures) {
                Some(n) => self.give_up_site(id, name, &format!("{why}: {n} connections in a row failed")),
                None => {
                    let message = format!("{why}: {} attempts failed", site.robots.attempts());
                    site.robots = Robots::GivenUp { class: ErrorClass::RobotsUnavailable, message: message.into() };
                    self.hosts[id as usize].goes_outside(0);
                }
            }
        }
        !resting.is_empty()
    }

    /// Gives up the rows in a window that had an answer and wait to be tried again.
    fn forget_answered(&mut self, id: u32) -> Forgotten {
        let window = &mut self.hosts[id as usize].window;
        let mut rows = Vec::new();
        window.later.retain(|row| {
            let answered = row.http_status != 0;
            rows.extend(answered.then(|| row.clone()));
            !answered
        });
        window.ready.retain(|(_, row)| {
            let answered = row.http_status != 0 && row.is_admitted();
            rows.extend(answered.then(|| row.clone()));
            !answered
        });
        self.forget_rows(id, rows)
    }

    fn forget_later(&mut self, id: u32) -> Forgotten {
        let rows = std::mem::take(&mut self.hosts[id as usize].window.later);
        self.forget_rows(id, rows)
    }

    /// Gives up rows that were taken out of their window.
    fn forget_rows(&mut self, id: u32, rows: Vec<Row>) -> Forgotten {
        let mut forgotten = Forgotten::default();
        for mut row in rows {
            let answered = u64::from(row.http_status != 0);
            forgotten += Forgotten { answered, unanswered: 1 - answered };
            self.window_bytes -= row.memory();
            self.hosts[id as usize].waiting -= 1;
            self.totals.waiting -= 1;
            (row.status, row.due_ms) = (Status::Gone, 0);
            self.write(id, row);
        }
        forgotten
    }

    /// Gives up the rows of a host that wait to be tried again.
    fn forget(&mut self, id: u32, now: i64) -> Result<Forgotten> {
        let mut forgotten = Forgotten::default();
        loop {
            forgotten += self.forget_later(id);
            let host = &self.hosts[id as usize];
            if !host.has_outside() || !self.refill_hosts(&mut vec![id], now, i64::MAX)? {
                return Ok(forgotten);
            }
            self.keep_up(now)?;
        }
    }
}
