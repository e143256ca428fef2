//! Another round: pages that are done wait again. New seeds need nothing of the kind, they are offered.

use crate::error::Result;
use crate::frontier::Frontier;
use crate::intake::hour;
use crate::row::{Row, Status};
use trawl_model::UnixMillis;
use trawl_url::key::host_key;

/// Rows written between two looks at what is due to be flushed.
const AT_ONCE: usize = 4096;

/// Which pages are fetched again.
#[derive(Debug, Clone, Copy)]
pub struct Recrawl<'a> {
    /// Those last fetched in the hour of this moment, or before it. Files keep hours.
    pub before: UnixMillis,
    /// Only those of this queue.
    pub host: Option<&'a str>,
    /// Also those that are gone or were given up, and those that robots.txt closed.
    pub gone: bool,
}

impl Recrawl<'_> {
    fn wants(&self, row: &Row) -> bool {
        let done = match row.status {
            Status::Crawled => true,
            Status::Gone | Status::Excluded => self.gone,
            Status::Scheduled | Status::Due | Status::Trapped => false,
        };
        done && row.robots_until == 0 && row.last_crawled <= hour(self.before.0)
    }
}

impl Frontier {
    /// Lets pages that are done wait to be fetched again, and tells how many do. Hosts among them that were given up are
    /// asked again. Limits on pages count each of them as a new one.
    ///
    /// Reads all rows, or those of one host. It is durable bit by bit: after a crash it is called again with the same
    /// moment, and finds those that were not reached.
    pub fn recrawl(&mut self, now: UnixMillis, which: &Recrawl<'_>) -> Result<u64> {
        let now = self.clock.tick(now);
        // Rows have the frontier's time. It is ahead of the caller's where a clock was set back, and without this nothing of what was
        // fetched since, or before that, would be early enough.
        let which = &Recrawl { before: UnixMillis(which.before.0.saturating_add(self.clock.ahead)), ..*which };
        let host = match which.host {
            Some(name) => match self.known_host(host_key(&name.to_ascii_lowercase())) {
                Some(id) => Some(id),
                None => return Ok(0),
            },
            None => None,
        };
        let mut count = 0;
        if let Some(mut rows) = self.all_rows(host)? {
            let mut written = 0;
            while let Some(place) = rows.next_place()? {
                if !which.wants(&rows.head(place)?) {
                    continue;
                }
                let row = rows.row(place)?;
                self.is_due(place.host, row, now);
                count += 1;
                written += 1;
                if written == AT_ONCE {
                    written = 0;
                    self.commit()?;
                    self.keep_up(now)?;
                }
            }
        } else {
            let ids = host.map_or(0..self.hosts.len() as u32, |id| id..id + 1);
            for id in ids {
                let due: Vec<Row> = self.active.of_host(id).filter(|row| which.wants(row)).cloned().collect();
                count += due.len() as u64;
                due.into_iter().for_each(|row| self.is_due(id, row, now));
            }
        }
        self.changed(now)?;
        Ok(count)
    }

    fn is_due(&mut self, id: u32, mut row: Row, now: i64) {
        (row.status, row.due_ms, row.strikes) = (Status::Due, now.max(0), 0);
        let host = &mut self.hosts[id as usize];
        host.is_asked_again();
        // Not into the window: there may be millions. The refill that follows takes the best.
        host.waiting += 1;
        host.goes_outside(0);
        self.totals.waiting += 1;
        self.write(id, row);
        self.stir(id, now);
    }
}
