//! What is said to the system about the page cache: nothing by default; with caching off, every byte written or iterated
//! over is let go, and only after it is on disk.

mod common;

use common::settings;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use trawl_io::fault::FaultFs;
use trawl_io::{Entry, File, Fs, Hint, Metadata, Mode, Result};
use trawl_model::UnixMillis;
use trawl_seqdb::{Access, CreatePages, Form, FsPaths, Pages, Settings};

#[derive(Debug, Clone, PartialEq)]
enum Event {
    Hint(PathBuf, Range<u64>, Hint),
    Sync(PathBuf),
}

/// Notes hints and syncs, and passes everything on.
#[derive(Debug, Clone)]
struct Watched {
    inner: Arc<dyn Fs>,
    seen: Arc<Mutex<Vec<Event>>>,
}

impl Fs for Watched {
    fn open(&self, path: &Path, mode: Mode) -> Result<Box<dyn File>> {
        Ok(Box::new(WatchedFile { inner: self.inner.open(path, mode)?, seen: self.seen.clone() }))
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }
    fn rename_new(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename_new(from, to)
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.inner.remove_file(path)
    }
    fn create_dir(&self, path: &Path) -> Result<()> {
        self.inner.create_dir(path)
    }
    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.inner.create_dir_all(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.inner.remove_dir(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<Entry>> {
        self.inner.list(dir)
    }
    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.inner.metadata(path)
    }
    fn sync_dir(&self, dir: &Path) -> Result<()> {
        self.inner.sync_dir(dir)
    }
}

#[derive(Debug)]
struct WatchedFile {
    inner: Box<dyn File>,
    seen: Arc<Mutex<Vec<Event>>>,
}

impl File for WatchedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.inner.write_at(offset, buf)
    }
    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }
    fn sync_data(&self) -> Result<()> {
        self.seen.lock().unwrap().push(Event::Sync(self.path().into()));
        self.inner.sync_data()
    }
    fn metadata(&self) -> Result<Metadata> {
        self.inner.metadata()
    }
    fn try_lock(&self) -> Result<bool> {
        self.inner.try_lock()
    }
    fn try_lock_shared(&self) -> Result<bool> {
        self.inner.try_lock_shared()
    }
    fn unlock(&self) -> Result<()> {
        self.inner.unlock()
    }
    fn advise(&self, range: Range<u64>, hint: Hint) -> Result<()> {
        self.seen.lock().unwrap().push(Event::Hint(self.path().into(), range.clone(), hint));
        self.inner.advise(range, hint)
    }
}

fn paths() -> FsPaths {
    FsPaths::new(Path::new("/"), "p").unwrap()
}

/// Loads 30 MB of pages and reads them through; returns what was said, and the end of the data file.
fn load(caching: bool) -> (Vec<Event>, Vec<Event>, u64) {
    let disk = FaultFs::new();
    let watched = Watched { inner: disk.shared(), seen: Arc::default() };
    let settings =
        Settings { data_caching: caching, index_caching: caching, fs: Arc::new(watched.clone()), ..settings(&disk) };
    let mut pages = CreatePages { expected: 1500, ..CreatePages::new(1) }.create(&paths(), &settings).unwrap();
    for n in 0..1500u32 {
        pages.append(n.to_string().as_bytes(), UnixMillis(0), Form::Plain, &vec![n as u8; 20_000]).unwrap();
    }
    pages.close().unwrap();
    let wrote = std::mem::take(&mut *watched.seen.lock().unwrap());
    let pages = Pages::open(&paths(), Access::Read, &settings).unwrap();
    let mut scan = pages.scan();
    while scan.next_page().unwrap().is_some() {}
    let end = pages.filesys().data().end();
    let read = std::mem::take(&mut *watched.seen.lock().unwrap());
    (wrote, read, end)
}

fn done_ranges(events: &[Event]) -> Vec<Range<u64>> {
    let data = paths().data();
    let done = events.iter().filter_map(|event| match event {
        Event::Hint(path, range, Hint::Done) if *path == data => Some(range.clone()),
        _ => None,
    });
    done.collect()
}

fn covers(ranges: &[Range<u64>], from: u64, to: u64) -> bool {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|r| r.start);
    let reached = sorted.iter().fold(from, |at, r| if r.start <= at { at.max(r.end) } else { at });
    reached >= to
}

#[test]
fn by_default_the_cache_is_left_alone() {
    let (wrote, read, _) = load(true);
    assert!(done_ranges(&wrote).is_empty() && done_ranges(&read).is_empty());
}

#[test]
fn without_caching_everything_is_let_go() {
    let (wrote, read, end) = load(false);
    let first = 4096;
    // While writing: windows behind the writer, each named twice, as the first call only starts the writing.
    let ranges = done_ranges(&wrote);
    assert!(ranges.len() >= 4, "{ranges:?}");
    assert!(covers(&ranges, first, end), "{ranges:?} up to {end}");
    // After the last sync of the data, all that was written since the one before.
    let data = paths().data();
    let sync = wrote.iter().rposition(|e| *e == Event::Sync(data.clone())).unwrap();
    assert!(covers(&done_ranges(&wrote[sync..]), first, end), "not named once it is on disk");
    // While reading: everything but the last chunk.
    assert!(covers(&done_ranges(&read), first, end - (1 << 20)), "{:?}", done_ranges(&read));
    // The index is let go too.
    let index = wrote.iter().any(|e| matches!(e, Event::Hint(path, _, Hint::Done) if *path == paths().index()));
    assert!(index);
}
