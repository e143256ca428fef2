//! What is on disk: a log of recent changes, runs that the log was flushed to, and a base that runs were merged into.
//!
//! ```text
//! DIR/CURRENT          which of the others are the frontier
//! DIR/log-00000007     a journal; one batch is one acknowledgement                      [`log`]
//! DIR/run-00000005.meguri   rows and hosts changed since the run before                 [`write`]
//! DIR/base-00000004.meguri  everything older
//! DIR/lock             who is at work here
//! ```
//! A flush: a new log begins, `CURRENT` names both logs, the changes of the old one are written as a run, `CURRENT` names the run
//! and the new log, the old log goes. A merge: old files into one, `CURRENT` names it, the old files go. A crash at any point
//! leaves a `CURRENT` whose files are all there, and files that are not named anywhere.

pub(crate) mod all;
mod current;
pub(crate) mod files;
mod log;
mod recover;
mod write;

pub use log::Ticket;

use crate::config::{Config, Durability};
use crate::error::{Error, Result};
use crate::frontier::{Frontier, Seen};
use crate::identity::{Identity, QueueBy};
use crate::memtable::Memtable;
use crate::row::Row;
use crate::{UrlId, seen};
use current::Current;
use files::{Files, StoredFile};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use trawl_io::journal::{JournalReader, Options};
use trawl_io::varint::put_uvarint;
use trawl_io::{Fs, Journal, LockFile};
use trawl_meguri::{Keep, MeguriFile, Merged, Written};
use trawl_model::UnixMillis;

/// Runs at most; then they are merged, with the base if they hold a fifth of its rows.
const MOST_RUNS: usize = 8;
/// Runs at least before the base is merged: merging it for a single run writes everything again for little.
const FEWEST_RUNS: usize = 4;
/// Batches of the log may be this long.
const BATCH_BYTES: u32 = 1 << 30;
/// What a flush holds of a changed host beside what the host has itself: its numbers and name, as the run is given them.
const HOST_BYTES: usize = 80;

pub(crate) struct Store {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    current: Current,
    journal: Arc<Journal>,
    pub files: Files,
    flush: Option<Job<Written>>,
    merge: Option<(Job<Written>, Merging)>,
    _lock: LockFile,
    stats: StoreStats,
}

/// Something a thread does aside, and the file that comes of it.
pub(crate) struct Job<T> {
    name: String,
    state: State<T>,
}

enum State<T> {
    Running(JoinHandle<Result<T>>),
    Done(Result<T>),
}

impl<T: Send + 'static> Job<T> {
    pub fn start(background: bool, name: String, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Self> {
        let state = match background {
            false => State::Done(work()),
            true => {
                let thread = std::thread::Builder::new().name("trawl-frontier".into());
                State::Running(thread.spawn(work).map_err(|e| Error::Thread(e.to_string()))?)
            }
        };
        Ok(Job { name, state })
    }

    pub fn is_done(&self) -> bool {
        match &self.state {
            State::Running(thread) => thread.is_finished(),
            State::Done(_) => true,
        }
    }

    pub fn join(self) -> Result<T> {
        match self.state {
            State::Running(thread) => thread.join().map_err(|_| Error::Thread("it panicked".into()))?,
            State::Done(done) => done,
        }
    }
}

/// What a merge replaces.
struct Merging {
    /// Whether the base is among the inputs.
    base: bool,
    /// The oldest runs.
    runs: usize,
}

/// What was written and how often, for benchmarks and reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Flushes done.
    pub flushes: u64,
    /// Bytes of their runs.
    pub flushed_bytes: u64,
    /// Merges done.
    pub merges: u64,
    /// Bytes of the files that came of them.
    pub merged_bytes: u64,
    /// Bytes handed to the log.
    pub logged_bytes: u64,
}

fn journal_options(config: Option<&Config>) -> Options {
    let queue_bytes = config.map_or(Options::QUEUE_BYTES, Config::log_bytes);
    Options { max_batch_bytes: BATCH_BYTES, queue_bytes, ..Options::default() }
}

impl Frontier {
    /// Whether a directory holds a frontier.
    pub fn exists(fs: &dyn Fs, dir: &Path) -> Result<bool> {
        Ok(fs.exists(&dir.join(current::NAME))?)
    }

    /// What the frontier in a directory was made with: settings that cannot change.
    pub fn made_with(fs: &dyn Fs, dir: &Path) -> Result<(Identity, QueueBy)> {
        Current::read_any(fs, dir).map(|current| current.made_with())
    }

    /// What the caller of the frontier in a directory kept last in a slot: without the lock, and without opening it. Reads
    /// its log.
    pub fn read_note(fs: &dyn Fs, dir: &Path, slot: u8) -> Result<Option<Vec<u8>>> {
        let mut kept = None;
        for name in Current::read_any(fs, dir)?.logs {
            let path = dir.join(name);
            let mut log = JournalReader::open(fs, &path, &journal_options(None))?;
            while let Some(batch) = log.next_batch()? {
                for record in batch.records() {
                    let note = log::last_note(record, slot).map_err(|e| recover::corrupt(&path, batch.offset(), e))?;
                    kept = note.or(kept);
                }
            }
        }
        Ok(kept)
    }

    /// Opens the frontier in a directory, or begins one. `holder` says who we are, for processes that are refused the lock.
    pub fn open(fs: &Arc<dyn Fs>, dir: &Path, config: Config, now: UnixMillis, holder: &str) -> Result<Frontier> {
        trawl_io::create_dir_all_synced(&**fs, dir)?;
        let lock = LockFile::acquire_in(&**fs, &dir.join("lock"), holder)?;
        trawl_io::remove_leftovers(&**fs, dir)?;
        if !Self::exists(&**fs, dir)? {
            Current::check_absent(&**fs, dir)?;
            let mut current = Current::new(&config);
            // A crash may have left a log that is not named anywhere.
            current.remove_others(&**fs, dir)?;
            let name = current.name("log", "");
            let journal = Journal::create(fs, &dir.join(&name), b"", journal_options(Some(&config)))?;
            current.logs.push(name);
            current.publish(fs, dir)?;
            let store = Store::new(fs, dir, current, journal, lock);
            let mut frontier = Self::empty(config, Some(store));
            frontier.clock.tick(now);
            frontier.next_errand = first_errand(frontier.clock.latest);
            return Ok(frontier);
        }
        let mut frontier = recover::recover(fs, dir, config, now, lock)?;
        frontier.next_errand = first_errand(frontier.clock.latest);
        Ok(frontier)
    }

    /// Keeps something of the caller's with the next batch, in place of what the slot held.
    pub fn note(&mut self, slot: u8, bytes: Vec<u8>) {
        self.batch.notes.insert(slot, bytes);
    }

    /// What the caller kept last in a slot, also before a restart.
    pub fn kept_note(&self, slot: u8) -> Option<&[u8]> {
        self.batch.notes.get(&slot).or_else(|| self.batch.kept.get(&slot)).map(Vec::as_slice)
    }

    /// Hands everything since the last commit to the log, as one batch. `None` if nothing changed, or nothing is kept.
    pub fn commit(&mut self) -> Result<Option<Ticket>> {
        let ticket = self.hand_in()?;
        self.flush_if_due()?;
        Ok(ticket)
    }

    fn hand_in(&mut self) -> Result<Option<Ticket>> {
        if self.store.is_none() {
            self.batch.kept.append(&mut self.batch.notes);
            return Ok(None);
        }
        let batch = self.take_batch();
        let Some(store) = self.store.as_mut().filter(|_| !batch.is_empty()) else { return Ok(None) };
        store.stats.logged_bytes += batch.len() as u64;
        let position = store.journal.submit([batch.as_slice()])?;
        Ok(Some(Ticket { journal: store.journal.clone(), position }))
    }

    /// Makes everything durable. Flushes if that is due: a caller that never commits and seldom leases, as one that loads a list, must
    /// not fill the memory.
    pub fn sync(&mut self) -> Result<()> {
        self.make_durable()?;
        self.flush_if_due()
    }

    fn make_durable(&mut self) -> Result<()> {
        self.hand_in()?;
        if let Some(store) = &self.store {
            store.journal.sync()?;
        }
        self.batch.synced_ms = self.clock.latest;
        Ok(())
    }

    /// What was written so far.
    pub fn store_stats(&self) -> StoreStats {
        self.store.as_ref().map(|store| store.stats).unwrap_or_default()
    }

    /// Ends what a call began: durability as it was asked for, flushes and merges as they are due and done.
    pub(crate) fn keep_up(&mut self, now: i64) -> Result<()> {
        if self.store.is_none() {
            return Ok(());
        }
        let pending = !self.batch.bytes.is_empty() || !self.batch.hosts.is_empty();
        match self.config.durability {
            Durability::EachBatch if pending => self.make_durable()?,
            Durability::Interval(interval)
                if pending && now - self.batch.synced_ms >= crate::policy::politeness::millis(interval) =>
            {
                self.make_durable()?;
            }
            _ => {}
        }
        let flushed = store_is_done(self.store.as_ref().and_then(|store| store.flush.as_ref()));
        let merged = store_is_done(self.store.as_ref().and_then(|store| store.merge.as_ref()).map(|(job, _)| job));
        // A refill that is under way counts on the recent changes it has seen.
        if flushed && self.refilling.is_none() {
            self.finish_flush()?;
        }
        if merged {
            self.finish_merge()?;
        }
        self.flush_if_due()
    }

    /// Flushes if there is enough, unless a batch is being put together: that is not cut in two.
    fn flush_if_due(&mut self) -> Result<()> {
        let whole = self.batch.bytes.is_empty() && self.batch.notes.is_empty();
        let changed = self.active.bytes() + self.batch.unflushed.len() * HOST_BYTES;
        if whole && self.store.is_some() && changed >= self.config.changes_bytes() {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the recent changes as a run and cuts the log, in the background. Everything so far is made durable first.
    pub fn flush(&mut self) -> Result<()> {
        self.finish_flush()?;
        self.make_durable()?;
        if self.active.is_empty() && self.batch.unflushed.is_empty() {
            return Ok(());
        }
        let mut changed = std::mem::take(&mut self.batch.unflushed);
        changed.sort_unstable_by_key(|id| self.hosts[*id as usize].key);
        let mut hosts = Vec::with_capacity(changed.len() * HOST_BYTES);
        for id in changed {
            let host = &mut self.hosts[id as usize];
            (host.marks.unflushed, host.marks.named) = (false, true);
            host.encode(true, &mut hosts);
            let away = host.away_json();
            put_uvarint(&mut hosts, away.len() as u64);
            hosts.extend_from_slice(&away);
        }
        let first = self.first_batch();
        let filter = matches!(self.seen, Seen::Files(_));
        let Some(store) = &mut self.store else { return Ok(()) };
        let log = store.current.name("log", "");
        let journal = Journal::create(&store.fs, &store.dir.join(&log), b"", journal_options(Some(&self.config)))?;
        journal.commit([first.as_slice()])?;
        store.current.logs.push(log);
        store.current.publish(&store.fs, &store.dir)?;
        store.journal = Arc::new(journal);
        let table = Arc::new(std::mem::take(&mut self.active));
        self.sealed = Some(table.clone());
        let name = store.current.name("run", ".meguri");
        let (path, queue) = (store.dir.join(&name), self.config.queue);
        let options = write::options(&store.fs, &store.dir, &self.config, filter);
        let work = move || write::write_run(options, &path, &table, &hosts, queue);
        store.flush = Some(Job::start(self.config.background, name, work)?);
        if !self.config.background {
            self.finish_flush()?;
        }
        Ok(())
    }

    /// Waits for the flush that is under way, and names its run in place of the log.
    fn finish_flush(&mut self) -> Result<()> {
        if self.store.as_ref().is_some_and(|store| store.flush.is_some()) {
            self.finish_refill(self.clock.latest)?;
        }
        let filter = matches!(self.seen, Seen::Files(_));
        let Some(store) = &mut self.store else { return Ok(()) };
        let Some(Job { name, state }) = store.flush.take() else { return Ok(()) };
        let written = Job { name: name.clone(), state }.join()?;
        store.stats.flushes += 1;
        store.stats.flushed_bytes += written.bytes;
        store.files.runs.push(StoredFile::open(&store.fs, &store.dir, &name, filter)?);
        store.current.runs.push(name);
        let old: Vec<String> = store.current.logs.drain(..store.current.logs.len().saturating_sub(1)).collect();
        store.current.publish(&store.fs, &store.dir)?;
        for log in old {
            store.fs.remove_file(&store.dir.join(log))?;
        }
        self.sealed = None;
        self.fit_seen();
        self.merge_if_due()
    }

    fn merge_if_due(&mut self) -> Result<()> {
        let Some(store) = &mut self.store else { return Ok(()) };
        if store.merge.is_some() {
            return Ok(());
        }
        let rows: u64 = store.files.runs.iter().map(StoredFile::rows).sum();
        let base = store.files.base.as_ref().map_or(0, StoredFile::rows);
        let runs = store.files.runs.len();
        let large = rows * 5 >= base && runs >= FEWEST_RUNS;
        if large || runs >= MOST_RUNS { self.merge(large) } else { Ok(()) }
    }

    /// Merges the runs, with the base or among themselves, in the background.
    fn merge(&mut self, with_base: bool) -> Result<()> {
        let filter = matches!(self.seen, Seen::Files(_));
        let Some(store) = &mut self.store else { return Ok(()) };
        let base = store.files.base.iter().filter(|_| with_base);
        let inputs: Vec<MeguriFile> = base.chain(&store.files.runs).map(|stored| stored.file.clone()).collect();
        let name = store.current.name(if with_base { "base" } else { "run" }, ".meguri");
        let path = store.dir.join(&name);
        let options = write::options(&store.fs, &store.dir, &self.config, filter);
        let work = move || {
            let (_, written) = write::write_merged(options, &path, &inputs, &Keep::default(), &mut |_| ())?;
            Ok(written)
        };
        let merging = Merging { base: with_base, runs: store.files.runs.len() };
        store.merge = Some((Job::start(self.config.background, name, work)?, merging));
        if self.config.background { Ok(()) } else { self.finish_merge() }
    }

    /// Waits for the merge that is under way, and names its file in place of its inputs.
    fn finish_merge(&mut self) -> Result<()> {
        let filter = matches!(self.seen, Seen::Files(_));
        let Some(store) = &mut self.store else { return Ok(()) };
        let Some((Job { name, state }, merging)) = store.merge.take() else { return Ok(()) };
        let written = Job { name: name.clone(), state }.join()?;
        store.stats.merges += 1;
        store.stats.merged_bytes += written.bytes;
        let merged = StoredFile::open(&store.fs, &store.dir, &name, filter)?;
        let mut old: Vec<String> = store.files.runs.drain(..merging.runs).map(|stored| stored.name).collect();
        if merging.base {
            old.extend(store.files.base.replace(merged).map(|stored| stored.name));
        } else {
            store.files.runs.insert(0, merged);
        }
        store.current.base = store.files.base.as_ref().map(|stored| stored.name.clone());
        store.current.runs = store.files.runs.iter().map(|stored| stored.name.clone()).collect();
        store.current.publish(&store.fs, &store.dir)?;
        for name in old {
            store.fs.remove_file(&store.dir.join(name))?;
        }
        Ok(())
    }

    /// Gives up the set of known URLs once it takes more than half of the memory: the files are asked from then on.
    fn fit_seen(&mut self) {
        if let Seen::Exact(set) = &self.seen
            && set.bytes() > self.config.seen_bytes()
        {
            self.seen = Seen::Files(seen::Recent::new(self.config.memory_bytes / 16));
        }
    }

    /// The rows of keys among runs and base; keys ascend.
    pub(crate) fn stored_rows(&self, ids: &[UrlId]) -> Result<Vec<Option<Row>>> {
        match &self.store {
            Some(store) if !ids.is_empty() => store.files.rows(ids),
            _ => Ok(vec![None; ids.len()]),
        }
    }

    /// Waits for all that is under way, flushes, and merges everything into the base. Reads all rows.
    pub fn compact(&mut self) -> Result<()> {
        self.flush()?;
        self.finish_flush()?;
        self.finish_merge()?;
        if self.store.as_ref().is_some_and(|store| !store.files.runs.is_empty()) {
            self.merge(true)?;
            self.finish_merge()?;
        }
        Ok(())
    }

    /// Writes everything as one file that can be kept, shipped and opened elsewhere. The same rows give the same bytes.
    pub fn pack(&mut self, path: &Path, drop_gone: bool, on_rows: &mut dyn FnMut(u64)) -> Result<(Merged, Written)> {
        self.flush()?;
        self.finish_flush()?;
        self.finish_merge()?;
        let Some(store) = &self.store else { return Err(Error::Thread("there are no files to pack".into())) };
        let inputs: Vec<MeguriFile> =
            store.files.base.iter().chain(&store.files.runs).map(|stored| stored.file.clone()).collect();
        let mut options = write::options(&store.fs, &store.dir, &self.config, true);
        options.settings = trawl_meguri::settings::Settings::default();
        options.host_counts = trawl_meguri::HostCounts::OfRows;
        let keep = Keep { drop_gone, ..Keep::default() };
        write::write_merged(options, path, &inputs, &keep, on_rows)
    }

    /// Ends all work aside. What was not committed is lost; dropping a frontier without this leaves threads to end by themselves.
    pub fn close(mut self) -> Result<()> {
        self.make_durable()?;
        self.finish_flush()?;
        self.finish_merge()
    }
}

/// The number of the first robots.txt that a process asks for. Numbers of an earlier process must not come again: a fetcher that outlived
/// it may still answer them, and the rules of one site would be taken for those of another.
fn first_errand(opened_ms: i64) -> u64 {
    opened_ms.max(0).unsigned_abs() << 20
}

fn store_is_done<T: Send + 'static>(job: Option<&Job<T>>) -> bool {
    job.is_some_and(Job::is_done)
}

impl Store {
    fn new(fs: &Arc<dyn Fs>, dir: &Path, current: Current, journal: Journal, lock: LockFile) -> Self {
        Store {
            fs: fs.clone(),
            dir: dir.to_owned(),
            current,
            journal: Arc::new(journal),
            files: Files::default(),
            flush: None,
            merge: None,
            _lock: lock,
            stats: StoreStats::default(),
        }
    }
}

/// A memtable that is being flushed is shared with the thread that writes it.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Memtable>();
};
