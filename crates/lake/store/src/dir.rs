//! A directory as a store.

use crate::{Created, Error, Listed, RangeRead, Result, Store, Upload, check_path};
use bytes::Bytes;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{AtomicFile, File, Fs, Mode, Outcome, RealFs, create_dir_all_synced, remove_leftovers};

/// Times a directory is made that others remove while it is empty.
const MAX_ATTEMPTS: u32 = 100;

/// Objects as files below one directory. Writing goes aside, is synced and renamed; creating refuses a taken name.
#[derive(Debug, Clone)]
pub struct DirStore {
    fs: Arc<dyn Fs>,
    root: PathBuf,
    mappable: bool,
}

impl DirStore {
    /// A directory of this machine. It is created by the first write.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { fs: Arc::new(RealFs), root: root.into(), mappable: true }
    }

    /// A directory of any file layer. Its files cannot be mapped.
    pub fn with_fs(fs: Arc<dyn Fs>, root: impl Into<PathBuf>) -> Self {
        Self { fs, root: root.into(), mappable: false }
    }

    /// The same, its files read but never mapped: what others may overwrite in place, as `cp` does, would end a process that
    /// has it mapped.
    #[must_use]
    pub fn unmapped(self) -> Self {
        Self { mappable: false, ..self }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn full(&self, path: &str) -> Result<PathBuf> {
        check_path(path)?;
        Ok(self.root.join(path))
    }

    fn open(&self, path: &str) -> Result<Box<dyn File>> {
        let full = self.full(path)?;
        self.fs.open(&full, Mode::Read).map_err(|e| absent(path, e))
    }

    /// A file to be written aside, its directory there and durable.
    fn begin(&self, path: &str) -> Result<AtomicFile> {
        let full = self.full(path)?;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(dir) = full.parent() {
                create_dir_all_synced(&*self.fs, dir)?;
            }
            match AtomicFile::create(&self.fs, &full) {
                // Somebody took the directory for one that is no longer used.
                Err(error) if error.is_not_found() => {}
                made => return Ok(made?),
            }
        }
        Err(Error::Contended { path: path.to_owned(), attempts: MAX_ATTEMPTS })
    }

    fn walk(&self, dir: &Path, prefix: &str, out: &mut Vec<Listed>) -> Result<()> {
        loop {
            let entries = match self.fs.list(dir) {
                Err(e) if e.is_not_found() => return Ok(()),
                listed => listed?,
            };
            let (before, mut vanished) = (out.len(), false);
            for entry in entries {
                // Files being written, and anything else that is no object of a lake.
                let Some(name) = entry.name.to_str().filter(|name| check_path(name).is_ok()) else { continue };
                let (full, path) = (dir.join(name), format!("{prefix}/{name}"));
                if entry.is_dir {
                    self.walk(&full, &path, out)?;
                    continue;
                }
                match self.fs.metadata(&full) {
                    Ok(metadata) => out.push(Listed { path, len: metadata.len }),
                    Err(e) if e.is_not_found() => vanished = true,
                    Err(e) => return Err(e.into()),
                }
            }
            // Where all that was there went meanwhile, other things may have come in its place: a series whose older states
            // are collected is never empty.
            if !vanished || out.len() > before {
                return Ok(());
            }
        }
    }
}

fn absent(path: &str, error: trawl_io::Error) -> Error {
    if error.is_not_found() { Error::NotFound { path: path.to_owned() } } else { error.into() }
}

fn read(file: &dyn File, path: &str, offset: u64, len: u64) -> Result<Bytes> {
    let end = offset.checked_add(len);
    let size = file.len()?;
    let len = match (end, usize::try_from(len)) {
        (Some(end), Ok(len)) if end <= size => len,
        _ => {
            let found = format!("an object of {size} bytes");
            return Err(Error::Corrupt { path: path.to_owned(), offset, expected: "the bytes asked for", found });
        }
    };
    let mut buf = vec![0; len];
    file.read_exact_at(offset, &mut buf)?;
    Ok(buf.into())
}

impl Store for DirStore {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        let file = self.open(path)?;
        let found = file.len()?;
        if found > limit {
            return Err(Error::OverLimit { path: path.to_owned(), found, limit });
        }
        read(&*file, path, 0, found)
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        let mut out = Vec::with_capacity(reads.len());
        let mut last: Option<(&str, Box<dyn File>)> = None;
        for RangeRead { path, range } in reads {
            // Batches come grouped by file, so the last one opened is the one to keep.
            let file = match last.take() {
                Some((open, file)) if open == path => file,
                _ => self.open(path)?,
            };
            out.push(read(&*file, path, range.start, range.end.saturating_sub(range.start))?);
            last = Some((path, file));
        }
        Ok(out)
    }

    fn len(&self, path: &str) -> Result<u64> {
        let full = self.full(path)?;
        let metadata = self.fs.metadata(&full).map_err(|e| absent(path, e))?;
        if metadata.is_dir { Err(Error::NotFound { path: path.to_owned() }) } else { Ok(metadata.len) }
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        let mut file = self.begin(path)?;
        file.put(bytes)?;
        Ok(file.publish()?)
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        let mut file = self.begin(path)?;
        file.put(bytes)?;
        Ok(match file.publish_new()? {
            Outcome::Won => Created::New,
            Outcome::Lost => Created::Exists,
        })
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        Ok(Box::new(DirUpload(self.begin(path)?)))
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        let mut out = Vec::new();
        self.walk(&self.full(dir)?, dir, &mut out)?;
        // Directories sort by their parts, objects by their bytes: `a-b` comes before `a/b`.
        out.sort_unstable();
        Ok(out)
    }

    fn delete(&self, path: &str) -> Result<()> {
        let full = self.full(path)?;
        match self.fs.remove_file(&full) {
            Err(e) if e.is_not_found() => Ok(()),
            other => Ok(other?),
        }
    }

    fn open_local(&self, path: &str) -> Option<PathBuf> {
        self.mappable.then(|| self.full(path).ok()).flatten()
    }

    fn sweep(&self) -> Result<u64> {
        fn below(fs: &dyn Fs, dir: &Path) -> Result<u64> {
            // A directory may go while it is looked at: another collector found it empty.
            let gone = |error: &trawl_io::Error| error.is_not_found();
            let mut removed = match remove_leftovers(fs, dir) {
                Err(error) if gone(&error) => return Ok(0),
                removed => removed?.len() as u64,
            };
            let entries = match fs.list(dir) {
                Err(error) if gone(&error) => return Ok(removed),
                entries => entries?,
            };
            for entry in entries.into_iter().filter(|entry| entry.is_dir) {
                removed += below(fs, &dir.join(entry.name))?;
            }
            Ok(removed)
        }
        if self.fs.exists(&self.root)? { below(&*self.fs, &self.root) } else { Ok(0) }
    }

    fn prune(&self) -> Result<u64> {
        fn below(fs: &dyn Fs, dir: &Path) -> Result<u64> {
            let mut removed = 0;
            let entries = match fs.list(dir) {
                // Another collector was faster.
                Err(error) if error.is_not_found() => return Ok(0),
                entries => entries?,
            };
            for entry in entries.into_iter().filter(|entry| entry.is_dir) {
                let inside = dir.join(entry.name);
                removed += below(fs, &inside)?;
                // One in which somebody has begun to write is not empty, and stays.
                let empty = fs.list(&inside).is_ok_and(|entries| entries.is_empty());
                removed += u64::from(empty && fs.remove_dir(&inside).is_ok());
            }
            Ok(removed)
        }
        let mut removed = 0;
        for dir in ["urls", "datasets", "jobs", "index"].map(|dir| self.root.join(dir)) {
            if self.fs.exists(&dir)? {
                removed += below(&*self.fs, &dir)?;
            }
        }
        Ok(removed)
    }

    fn place(&self) -> String {
        self.root.display().to_string()
    }
}

struct DirUpload(AtomicFile);

impl Write for DirUpload {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Upload for DirUpload {
    fn finish(self: Box<Self>) -> Result<()> {
        Ok(self.0.publish()?)
    }
}
