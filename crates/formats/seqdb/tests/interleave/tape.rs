//! What a writer does to files, recorded once and played back piece by piece.
//!
//! A writer reads only what it wrote itself, so its operations are the same whatever readers do beside it. Only a lock
//! that a reader has for an instant makes it wait: playing back stops there until the lock is free.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use trawl_io::fault::{FaultFs, Loss};
use trawl_io::{Entry, File, Fs, Metadata, Mode, Result};
use trawl_model::UnixMillis;
use trawl_seqdb::{Clock, Settings};

/// Keys and values.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Debug)]
enum Op {
    Open { path: PathBuf, mode: Mode, handle: u64 },
    Close { handle: u64 },
    Write { handle: u64, at: u64, bytes: Vec<u8> },
    SetLen { handle: u64, len: u64 },
    Lock { handle: u64 },
    Rename { from: PathBuf, to: PathBuf },
    RenameNew { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
}

#[derive(Debug, Default)]
struct Log {
    ops: Vec<Op>,
    /// Operations up to here, after each that others can notice.
    cuts: Vec<usize>,
    names: Vec<String>,
    handles: u64,
    /// Called before each operation of the writer.
    harm: Option<Harm>,
}

/// Somebody who has a lock for an instant, wherever a writer is.
#[derive(Debug)]
struct Harm {
    /// At this operation.
    at: usize,
    lock: PathBuf,
    held: Option<Box<dyn File>>,
}

thread_local! {
    static HARM: RefCell<Option<(usize, PathBuf)>> = const { RefCell::new(None) };
}

/// Records while somebody holds `lock` when the writer comes to its `at`-th operation, until it waits.
pub fn harmed(at: usize, lock: &Path, record: fn() -> Arc<Tape>) -> Arc<Tape> {
    HARM.set(Some((at, lock.into())));
    let tape = record();
    HARM.set(None);
    tape
}

impl Log {
    /// Records an operation; `name` says what others notice of it.
    fn push(&mut self, op: Op, name: Option<String>) {
        self.ops.push(op);
        if let Some(name) = name {
            self.cuts.push(self.ops.len());
            self.names.push(name);
        }
    }
}

/// One thing a writer did.
#[derive(Debug)]
pub struct Step {
    /// Operations before it, and after.
    pub begun: usize,
    pub done: usize,
    /// Whether whoever looks from now on must find everything up to here.
    pub shown: bool,
    /// What is true from then on.
    pub model: Model,
    /// Whether replaced entries are marked deleted by now.
    pub synced: bool,
}

/// A writer's work.
#[derive(Debug)]
pub struct Tape {
    start: FaultFs,
    log: Arc<Mutex<Log>>,
    pub first: Model,
    pub steps: Vec<Step>,
    /// What the writer leaves behind.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

/// Settings with small buffers, so that every boundary is met.
pub fn settings(fs: Arc<dyn Fs>, clock: Clock) -> Settings {
    Settings { buffer_bytes: 150, chunk_bytes: 4096, ..Settings::new(clock, "test").on(fs) }
}

/// Records what a writer does to a disk.
pub struct Recorder {
    tape: Tape,
    disk: FaultFs,
    settings: Settings,
}

impl Recorder {
    /// Starts on a disk where `model` is true.
    pub fn new(disk: &FaultFs, model: Model) -> Self {
        let start = disk.reboot(Loss::None);
        let disk = start.reboot(Loss::None);
        let harm = HARM.with_borrow(|harm| harm.clone()).map(|(at, lock)| Harm { at, lock, held: None });
        let log = Arc::new(Mutex::new(Log { harm, ..Log::default() }));
        let fs = Recording { disk: disk.clone(), log: log.clone() };
        let held = log.clone();
        let clock = Clock::fixed(UnixMillis(5000)).pausing(move |_| {
            // Whoever held the lock for an instant has gone on.
            held.lock().unwrap().harm.iter_mut().for_each(|harm| harm.held = None);
        });
        let settings = settings(Arc::new(fs), clock);
        Recorder { tape: Tape { start, log, first: model, steps: Vec::new(), files: BTreeMap::new() }, disk, settings }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn record<T>(&mut self, shown: bool, synced: bool, change: impl FnOnce(&mut Model), act: impl FnOnce() -> T) -> T {
        let at = |tape: &Tape| tape.log.lock().unwrap().cuts.len();
        let begun = at(&self.tape);
        let result = act();
        let mut model = self.tape.steps.last().map_or(&self.tape.first, |step| &step.model).clone();
        change(&mut model);
        let done = at(&self.tape);
        self.tape.steps.push(Step { begun, done, shown, model, synced });
        result
    }

    /// Does something after which `change` is true; readers may see it from its first operation on, and need not before
    /// it is shown.
    pub fn step<T>(&mut self, change: impl FnOnce(&mut Model), act: impl FnOnce() -> T) -> T {
        self.record(false, false, change, act)
    }

    /// Changes nothing, but from its end on everybody sees what was done before.
    pub fn shown<T>(&mut self, act: impl FnOnce() -> T) -> T {
        self.record(true, false, |_| (), act)
    }

    /// The same, and replaced entries are gone.
    pub fn synced<T>(&mut self, act: impl FnOnce() -> T) -> T {
        self.record(true, true, |_| (), act)
    }

    /// Does something that everybody sees from its end on.
    pub fn whole<T>(&mut self, change: impl FnOnce(&mut Model), act: impl FnOnce() -> T) -> T {
        self.record(true, true, change, act)
    }

    pub fn end(mut self) -> Arc<Tape> {
        self.tape.files = self.disk.files();
        Arc::new(self.tape)
    }
}

impl Tape {
    /// Operations that others can notice.
    pub fn len(&self) -> usize {
        self.log.lock().unwrap().cuts.len()
    }

    /// What the `n`-th of them is.
    pub fn name(&self, n: usize) -> String {
        let log = self.log.lock().unwrap();
        n.checked_sub(1).and_then(|n| log.names.get(n)).map_or("nothing yet".into(), Clone::clone)
    }

    /// All states, the first included.
    pub fn states(&self) -> impl Iterator<Item = &Model> {
        std::iter::once(&self.first).chain(self.steps.iter().map(|step| &step.model))
    }
}

/// A tape being played onto a disk of its own.
#[derive(Debug)]
pub struct Player {
    tape: Arc<Tape>,
    pub disk: FaultFs,
    handles: HashMap<u64, Box<dyn File>>,
    /// Operations done, of all and of those that others notice.
    at: usize,
    pub done: usize,
}

impl Player {
    pub fn new(tape: &Arc<Tape>) -> Self {
        Player { tape: tape.clone(), disk: tape.start.reboot(Loss::None), handles: HashMap::new(), at: 0, done: 0 }
    }

    /// Goes on until `target` operations are done, or a lock is in the way.
    pub fn go_to(&mut self, target: usize) {
        let tape = self.tape.clone();
        let log = tape.log.lock().unwrap();
        let target = target.min(log.cuts.len());
        while self.done < target {
            if !self.play(&log.ops[self.at]) {
                return;
            }
            self.at += 1;
            self.done += usize::from(log.cuts[self.done] == self.at);
        }
    }

    fn play(&mut self, op: &Op) -> bool {
        match op {
            Op::Open { path, mode, handle } => {
                self.handles.insert(*handle, self.disk.open(path, *mode).unwrap());
            }
            Op::Close { handle } => drop(self.handles.remove(handle)),
            Op::Write { handle, at, bytes } => self.handles[handle].write_at(*at, bytes).unwrap(),
            Op::SetLen { handle, len } => self.handles[handle].set_len(*len).unwrap(),
            Op::Lock { handle } => return self.handles[handle].try_lock().unwrap(),
            Op::Rename { from, to } => self.disk.rename(from, to).unwrap(),
            Op::RenameNew { from, to } => self.disk.rename_new(from, to).unwrap(),
            Op::Remove { path } => self.disk.remove_file(path).unwrap(),
        }
        true
    }
}

#[derive(Debug, Clone)]
struct Recording {
    disk: FaultFs,
    log: Arc<Mutex<Log>>,
}

impl Recording {
    fn meet(&self) {
        let mut log = self.log.lock().unwrap();
        let here = log.cuts.len();
        if let Some(harm) = log.harm.as_mut().filter(|harm| harm.at == here) {
            harm.at = usize::MAX;
            harm.held = self.disk.open(&harm.lock, Mode::Read).ok().filter(|file| file.try_lock_shared().unwrap());
        }
    }

    fn push(&self, op: Op, name: String) {
        self.log.lock().unwrap().push(op, Some(name));
    }
}

impl Fs for Recording {
    fn open(&self, path: &Path, mode: Mode) -> Result<Box<dyn File>> {
        self.meet();
        let there = self.disk.exists(path)?;
        let file = self.disk.open(path, mode)?;
        let mut log = self.log.lock().unwrap();
        log.handles += 1;
        let handle = log.handles;
        let noticed = (!there || mode == Mode::Truncate).then(|| format!("create {}", path.display()));
        log.push(Op::Open { path: path.into(), mode, handle }, noticed);
        Ok(Box::new(RecordingFile { file: Some(file), fs: self.clone(), handle, locked: Mutex::new(false) }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.meet();
        self.disk.rename(from, to)?;
        self.push(Op::Rename { from: from.into(), to: to.into() }, format!("rename to {}", to.display()));
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> Result<()> {
        self.meet();
        self.disk.rename_new(from, to)?;
        self.push(Op::RenameNew { from: from.into(), to: to.into() }, format!("rename to new {}", to.display()));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.meet();
        self.disk.remove_file(path)?;
        self.push(Op::Remove { path: path.into() }, format!("remove {}", path.display()));
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.disk.create_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.disk.create_dir_all(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.disk.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.disk.list(dir)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.disk.metadata(path)
    }

    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.disk.sync_dir(dir)
    }
}

#[derive(Debug)]
struct RecordingFile {
    file: Option<Box<dyn File>>,
    fs: Recording,
    handle: u64,
    locked: Mutex<bool>,
}

impl RecordingFile {
    fn file(&self) -> &dyn File {
        &**self.file.as_ref().unwrap()
    }
}

impl Drop for RecordingFile {
    fn drop(&mut self) {
        self.fs.meet();
        let path = self.file().path().to_owned();
        self.file = None;
        let noticed = self.locked.lock().unwrap().then(|| format!("unlock {}", path.display()));
        self.fs.log.lock().unwrap().push(Op::Close { handle: self.handle }, noticed);
    }
}

impl File for RecordingFile {
    fn path(&self) -> &Path {
        self.file().path()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.file().read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.fs.meet();
        self.file().write_at(offset, buf)?;
        let name = format!("write {} at {offset}+{}", self.path().display(), buf.len());
        self.fs.push(Op::Write { handle: self.handle, at: offset, bytes: buf.to_vec() }, name);
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.fs.meet();
        self.file().set_len(len)?;
        self.fs.push(Op::SetLen { handle: self.handle, len }, format!("set length of {}", self.path().display()));
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.file().sync_data()
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file().metadata()
    }

    fn try_lock(&self) -> Result<bool> {
        self.fs.meet();
        let taken = self.file().try_lock()?;
        if taken {
            *self.locked.lock().unwrap() = true;
            self.fs.push(Op::Lock { handle: self.handle }, format!("lock {}", self.path().display()));
        }
        Ok(taken)
    }

    fn try_lock_shared(&self) -> Result<bool> {
        self.file().try_lock_shared()
    }

    fn unlock(&self) -> Result<()> {
        panic!("no writer unlocks early")
    }
}
