//! What each host took of a crawl: its budgets, and the report about hosts at the end.

use crate::config::Budget;
use crate::error::Error;
use crate::layout::Layout;
use crate::record::SpoolEnd;
use crate::spool::read_all;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use trawl_archive::Digests;
use trawl_frontier::{Frontier, HostReport};
use trawl_io::{AtomicFile, Fs};
use trawl_url::key::host_key;

/// Sums of the captures of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct HostSums {
    /// Captures made, robots.txt and failures included.
    pub captures: u64,
    /// Body bytes.
    pub bytes: u64,
    /// Time that its fetches took, in milliseconds.
    pub fetch_ms: u64,
    /// Whether a budget is used up. One of 0 is by the first fetch, whatever that took.
    #[serde(skip)]
    is_spent: bool,
}

/// Sums by key of the host: 40 bytes for each, beside the 400 of the frontier.
#[derive(Debug, Default)]
pub(crate) struct HostBook {
    sums: HashMap<u64, HostSums>,
    budget: Budget,
}

impl HostBook {
    pub(crate) fn new(budget: Budget) -> Self {
        HostBook { sums: HashMap::new(), budget }
    }

    /// Takes up the captures that an earlier start of the run made, and enters their bodies into a store that may have lost some.
    pub(crate) fn read(
        &mut self,
        fs: &Arc<dyn Fs>,
        layout: &Layout,
        spools: &[SpoolEnd],
        lossy: Option<&dyn Digests>,
    ) -> Result<Vec<String>, Error> {
        let mut spent = Vec::new();
        for spool in spools.iter().filter(|spool| spool.end > 0) {
            read_all(fs, &layout.rows(spool.number), spool.end, &mut |record| {
                let row = record.row;
                lossy.map_or(Ok(()), |digests| digests.remember_row(&row))?;
                let (bytes, ms) = (u64::try_from(row.body_length), u64::try_from(row.fetch_duration_ms.unwrap_or(0)));
                self.count(&row.host);
                if self.spend(&row.host, bytes.unwrap_or(0), ms.unwrap_or(0)) {
                    spent.push(row.host);
                }
                Ok(())
            })?;
        }
        Ok(spent)
    }

    /// A capture is durable.
    pub(crate) fn count(&mut self, host: &str) {
        self.sums.entry(host_key(host)).or_default().captures += 1;
    }

    /// A fetch of a host ended, before the host may be asked again; tells whether its budget is used up by it.
    pub(crate) fn spend(&mut self, host: &str, bytes: u64, fetch_ms: u64) -> bool {
        let sums = self.sums.entry(host_key(host)).or_default();
        sums.bytes += bytes;
        sums.fetch_ms += fetch_ms;
        let is_spent = is_spent(sums, &self.budget);
        !std::mem::replace(&mut sums.is_spent, is_spent) && is_spent
    }

    /// Writes a line for each host: what the frontier knows of it, and what it took.
    pub(crate) fn write(&self, fs: &Arc<dyn Fs>, layout: &Layout, frontier: &Frontier) -> Result<(), Error> {
        let mut file = AtomicFile::create(fs, &layout.hosts())?;
        let (mut line, mut failed) = (Vec::new(), None);
        frontier.host_reports(&mut |report| {
            let sums = self.sums.get(&host_key(&report.host)).copied().unwrap_or_default();
            line.clear();
            let written = serde_json::to_writer(&mut line, &Line { report, sums });
            line.push(b'\n');
            match written.map_err(|e| Error::Note { what: "a report of a host", found: e.to_string() }) {
                Ok(()) => failed = file.put(&line).err().map(Error::from),
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(file.publish()?),
        }
    }
}

fn is_spent(sums: &HostSums, budget: &Budget) -> bool {
    let time = budget.host_time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    budget.host_bytes.is_some_and(|most| sums.bytes >= most) || time.is_some_and(|most| sums.fetch_ms >= most)
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    report: HostReport,
    #[serde(flatten)]
    sums: HostSums,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SpoolRecord;
    use crate::spool::SpoolFile;
    use std::path::Path;
    use std::time::Duration;
    use trawl_archive::{CaptureRow, DigestStore};
    use trawl_io::fault::FaultFs;
    use trawl_model::{Clock, Digest, UnixMillis};

    /// A store has what was synced; a run that was killed knows the rest.
    #[test]
    fn bodies_that_a_killed_run_archived_are_known_to_the_next() {
        let (fs, layout, clock) =
            (FaultFs::new().shared(), Layout::new(Path::new("/out")), Clock::fixed(UnixMillis(0)));
        fs.create_dir_all(&layout.inner).unwrap();
        let body = Digest::parse("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").unwrap();
        let row = CaptureRow {
            url: "http://a.example/".into(),
            host: "a.example".into(),
            status: 200,
            body_length: 5,
            digest: "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ".into(),
            record_type: Some("response".into()),
            record_id: Some("urn:uuid:1".into()),
            started_at: Some(7),
            ..CaptureRow::default()
        };
        let mut spool = SpoolFile::open(&*fs, &layout.rows(0), 0, 0).unwrap();
        spool.push(&SpoolRecord { row, links: Vec::new(), to: None, sitemaps: Vec::new(), hops: 0 });
        spool.sync().unwrap();
        let ends = [SpoolEnd { number: 0, file: "x".into(), end: spool.end() }];
        let store = DigestStore::open(&fs, Path::new("/bodies"), "test", &clock).unwrap();
        for (lossy, found) in [(None, false), (Some(&store as &dyn Digests), true)] {
            HostBook::default().read(&fs, &layout, &ends, lossy).unwrap();
            assert_eq!(store.find(&body).unwrap().is_some(), found);
        }
    }

    #[test]
    fn a_host_that_spent_its_budget_is_told_once() {
        let budget = Budget { host_bytes: Some(100), host_time: Some(Duration::from_secs(2)), ..Budget::default() };
        let mut book = HostBook::new(budget);
        let told: Vec<_> = [("a", 60, 1), ("b", 1, 1999), ("a", 60, 1), ("a", 60, 1), ("b", 0, 1)]
            .map(|(host, bytes, ms)| book.spend(host, bytes, ms))
            .into();
        assert_eq!(told, [false, false, true, false, true]);
        let mut book = HostBook::new(Budget { host_bytes: Some(0), ..Budget::default() });
        assert_eq!([("a", 0), ("a", 9), ("b", 9)].map(|(host, bytes)| book.spend(host, bytes, 1)), [true, false, true]);
    }
}
