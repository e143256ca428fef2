//! Opening a frontier that is there: hosts and keys of its files, then its log. Rows stay on disk.

use super::current::Current;
use super::files::{MARK, StoredFile, mark};
use super::log::{Entry, entries};
use super::{Store, journal_options, write};
use crate::absence::Kept;
use crate::config::Config;
use crate::error::{Error, Result};
use crate::frontier::{Frontier, Seen};
use crate::host::{Host, LoggedHost, check_numbers};
use crate::row::Row;
use crate::seen::{CLOSED, Exact, Recent};
use std::path::Path;
use std::sync::Arc;
use trawl_io::slice::SliceError;
use trawl_io::{Fs, Journal, LockFile};
use trawl_meguri::schema::extension as ext;
use trawl_model::UnixMillis;

pub(super) fn recover(
    fs: &Arc<dyn Fs>,
    dir: &Path,
    config: Config,
    now: UnixMillis,
    lock: LockFile,
) -> Result<Frontier> {
    let current = Current::read(&**fs, dir, &config)?;
    current.remove_others(&**fs, dir)?;
    let Some((newest, older)) = current.logs.split_last() else {
        return Err(Error::Corrupt { path: dir.join(super::current::NAME), expected: "a log", found: "none".into() });
    };
    let mut frontier = Frontier::empty(config, None);
    let named = current.base.iter().chain(&current.runs);
    let files = named.map(|name| StoredFile::open(fs, dir, name, false)).collect::<Result<Vec<_>>>()?;
    let rows: u64 = files.iter().map(StoredFile::rows).sum();
    // Eleven bytes a key: whether they fit is known before they are read.
    let fits = rows * 11 <= frontier.config.seen_bytes() as u64;
    if !fits {
        frontier.seen = Seen::Files(Recent::new(frontier.config.memory_bytes / 16));
    }
    for stored in &files {
        frontier.load_hosts(stored)?;
        if let Seen::Exact(set) = &mut frontier.seen {
            load_keys(set, stored, frontier.config.max_hops)?;
        }
    }
    let (mut failed, options) = (None, journal_options(Some(&frontier.config)));
    let mut read = |frontier: &mut Frontier, path: &Path, batch: &trawl_io::journal::Batch| {
        for record in batch.records() {
            if let Err(e) = entries(record, &mut |entry| frontier.replay(entry))
                && failed.is_none()
            {
                failed = Some(corrupt(path, batch.offset(), e));
            }
        }
        Ok(())
    };
    for log in older {
        let path = dir.join(log);
        // Nothing is written to it any more, but what a crash left torn was never acknowledged.
        let (_, _) = Journal::recover(fs, &path, options.clone(), &mut |_, batch| read(&mut frontier, &path, batch))?;
    }
    let path = dir.join(newest);
    let (journal, _) = Journal::recover(fs, &path, options.clone(), &mut |_, batch| read(&mut frontier, &path, batch))?;
    if let Some(error) = failed {
        return Err(error);
    }
    frontier.check_depth(dir)?;
    let base = current.base.is_some();
    let mut store = Store::new(fs, dir, current, journal, lock);
    let mut files = files.into_iter();
    store.files.base = if base { files.next() } else { None };
    store.files.runs = files.collect();
    if !fits {
        let names: Vec<String> = store.files.base.iter().chain(&store.files.runs).map(|f| f.name.clone()).collect();
        let mut again = names.iter().map(|name| StoredFile::open(fs, dir, name, true)).collect::<Result<Vec<_>>>()?;
        store.files.base = if base { Some(again.remove(0)) } else { None };
        store.files.runs = again;
    }
    frontier.store = Some(store);
    frontier.recovered(now);
    // The log of a flush that a crash interrupted is flushed at the next chance, with all that came after.
    if frontier.store.as_ref().is_some_and(|store| store.current.logs.len() > 1) {
        frontier.flush()?;
    }
    Ok(frontier)
}

pub(super) fn corrupt(path: &Path, offset: u64, e: SliceError) -> Error {
    let found = format!("{e}, in the batch at {offset}");
    Error::Corrupt { path: path.to_owned(), expected: "entries of a frontier's log", found }
}

fn load_keys(set: &mut Exact, stored: &StoredFile, max_hops: u32) -> Result<()> {
    let mut scan = stored.file.scan(&MARK);
    for number in 0..stored.rows() {
        let (path, depth) = (scan.path(number)?, mark(&mut scan, number, max_hops)?);
        // Files come oldest first, and the newest depth is the shortest. What robots.txt closed was open before.
        if let crate::seen::Known::At(known) = set.insert(path, depth)
            && (depth < known || depth == CLOSED)
        {
            set.set_depth(path, depth);
        }
    }
    Ok(())
}

impl Frontier {
    fn load_hosts(&mut self, stored: &StoredFile) -> Result<()> {
        let mut hosts = stored.file.hosts()?;
        while let Some(row) = hosts.next_host()? {
            let (numbers, given_up) = write::host_numbers(&row);
            check_numbers(&numbers).map_err(|(expected, number, limit)| Error::Corrupt {
                path: stored.file.path().to_owned(),
                expected,
                found: format!("{number} for host {:016x}, above {limit}", row.record.host_key),
            })?;
            let name = || String::from_utf8_lossy(&row.host).into_owned();
            let id = self.host_of(row.record.host_key, name);
            let host = &mut self.hosts[id as usize];
            host.restore(numbers, &given_up);
            let away = row.texts.iter().find(|(id, _)| *id == ext::AWAY).map_or(&[][..], |(_, text)| text);
            host.restore_away(Kept::parse(away).map_err(|e| Error::Corrupt {
                path: stored.file.path().to_owned(),
                expected: "the JSON of the origins of a host that are away",
                found: format!("{e}, for host {:016x}", row.record.host_key),
            })?);
        }
        Ok(())
    }

    fn replay(&mut self, entry: Entry) {
        match entry {
            Entry::Row(row) => self.replay_row(row),
            Entry::Host(LoggedHost { key, name, given_up, numbers }) => {
                let id = self.host_of(key, String::new);
                let host = &mut self.hosts[id as usize];
                // Its rows stand before it in the batch that made it.
                if host.name.is_empty() {
                    host.name = name.into();
                }
                host.restore(numbers, &given_up);
                host.marks.unflushed = true;
            }
            Entry::Totals { arrival, latest } => {
                self.totals.arrival = self.totals.arrival.max(arrival);
                self.clock.latest = self.clock.latest.max(latest);
            }
            Entry::Away(key, kept) => {
                let id = self.host_of(key, String::new);
                self.hosts[id as usize].restore_away(kept);
            }
            Entry::Depth(limit) => self.turned_away_at = limit,
            Entry::Seeds(count) => (self.totals.seeds_waiting, self.batch.seeds) = (count, count),
            Entry::Note(slot, note) => {
                self.batch.kept.insert(slot, note);
            }
        }
    }

    fn replay_row(&mut self, row: Row) {
        let host = self.host_of(row.id.host(), String::new);
        if let Seen::Exact(set) = &mut self.seen
            && row.robots_until == 0
        {
            let depth = row.mark(self.config.max_hops);
            set.insert(row.id.path(), depth);
            set.set_depth(row.id.path(), depth);
        }
        self.active.put(host, row);
    }

    /// Starts over: a host that was being asked when the process ended is not asked again before its delay has passed.
    fn recovered(&mut self, now: UnixMillis) {
        let now = self.clock.tick(now);
        self.floor_ms = now.saturating_add(crate::policy::politeness::millis(self.config.delay));
        for id in 0..self.hosts.len() {
            let delay = self.hosts[id].delay_ms(&self.config);
            let host: &mut Host = &mut self.hosts[id];
            host.next_ms = host.next_ms.max(now.saturating_add(delay));
            host.marks.named = true;
            host.marks.rules_away = true;
            host.marks.tried_outside = host.crawls > 0 || host.errors > 0;
            if host.marks.unflushed {
                self.batch.unflushed.push(id as u32);
            }
            self.totals.known += u64::from(host.urls);
            self.totals.waiting += u64::from(host.waiting);
            self.totals.admitted += u64::from(host.admitted);
            self.totals.parked += u64::from(host.parked);
            if host.waiting > 0 {
                self.place(id as u32, now);
            }
        }
    }
}
