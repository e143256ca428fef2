//! Digests of archive files, taken while they are written: so the end of a crawl reads none of them again.
//!
//! A file that only grows has a running digest. What was there before (after a resume) is read once, when the first byte is added
//! to it. A file that is written elsewhere than at its end has none, and is read when its digest is asked for.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trawl_io::{Entry, File, Fs, Hasher, Hint, Metadata, Mode, Result};

/// A file system that keeps the digests of what is written into one directory, except below another one.
#[derive(Debug)]
pub(crate) struct HashedFs {
    inner: Arc<dyn Fs>,
    dir: PathBuf,
    except: PathBuf,
    running: Mutex<HashMap<PathBuf, Arc<Mutex<Running>>>>,
}

/// ```text
/// Unread --append: reads what is there--> Upto --append--> Upto        Upto --cut--> Unread        any other write: Lost
/// ```
#[derive(Debug, Default)]
enum Running {
    /// Nothing is known of the bytes that are there.
    #[default]
    Unread,
    /// The digest of so many bytes.
    Upto(Hasher, u64),
    Lost,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves a digest as it was before or after a write, and a length that does not fit is not used.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HashedFs {
    pub fn new(inner: Arc<dyn Fs>, dir: &Path, except: &Path) -> Self {
        HashedFs { inner, dir: dir.to_owned(), except: except.to_owned(), running: Mutex::default() }
    }

    /// The digest of a file of so many bytes, if it was taken while they were written.
    pub fn digest(&self, path: &Path, bytes: u64) -> Option<String> {
        let running = lock(&self.running).get(path).cloned()?;
        match &*lock(&running) {
            Running::Upto(hasher, end) if *end == bytes => Some(hasher.clone().finish().hex()),
            _ => None,
        }
    }

    fn keeps(&self, path: &Path) -> bool {
        path.starts_with(&self.dir) && !path.starts_with(&self.except)
    }

    /// A file, or all files of a directory, have another name.
    fn renamed(&self, from: &Path, to: &Path) {
        let mut running = lock(&self.running);
        let moved: Vec<PathBuf> = running.keys().filter(|path| path.starts_with(from)).cloned().collect();
        for path in moved {
            if let (Some(file), Ok(rest)) = (running.remove(&path), path.strip_prefix(from)) {
                let name = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
                running.insert(name, file);
            }
        }
    }
}

impl Fs for HashedFs {
    fn open(&self, path: &Path, mode: Mode) -> Result<Box<dyn File>> {
        let inner = self.inner.open(path, mode)?;
        if mode == Mode::Read || !self.keeps(path) {
            return Ok(inner);
        }
        let mut all = lock(&self.running);
        if matches!(mode, Mode::CreateNew | Mode::Truncate) {
            all.remove(path);
        }
        let running = all.entry(path.to_owned()).or_default().clone();
        Ok(Box::new(HashedFile { inner, running }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)?;
        lock(&self.running).remove(to);
        self.renamed(from, to);
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename_new(from, to)?;
        self.renamed(from, to);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        lock(&self.running).remove(path);
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

    fn is_link(&self, path: &Path) -> Result<bool> {
        self.inner.is_link(path)
    }
}

#[derive(Debug)]
struct HashedFile {
    inner: Box<dyn File>,
    running: Arc<Mutex<Running>>,
}

impl HashedFile {
    /// The digest of the first `end` bytes, which are there.
    fn read_up_to(&self, end: u64) -> Result<Running> {
        let (mut hasher, mut buf, mut at) = (Hasher::sha256(), vec![0; 1 << 18], 0);
        while at < end {
            let n = usize::try_from(end - at).unwrap_or(usize::MAX).min(buf.len());
            let part = buf.get_mut(..n).unwrap_or_default();
            self.inner.read_exact_at(at, part)?;
            hasher.update(&*part);
            at += n as u64;
        }
        Ok(Running::Upto(hasher, end))
    }
}

impl File for HashedFile {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let mut running = lock(&self.running);
        if matches!(*running, Running::Unread) {
            *running = if self.inner.len()? == offset { self.read_up_to(offset)? } else { Running::Lost };
        }
        // After an error any part may be written.
        let before = std::mem::replace(&mut *running, Running::Lost);
        self.inner.write_at(offset, buf)?;
        if let Running::Upto(mut hasher, end) = before
            && end == offset
        {
            hasher.update(buf);
            *running = Running::Upto(hasher, end + buf.len() as u64);
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut running = lock(&self.running);
        if !matches!(*running, Running::Upto(_, end) if end == len) {
            *running = Running::Unread;
        }
        self.inner.set_len(len)
    }

    fn sync_data(&self) -> Result<()> {
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
        self.inner.advise(range, hint)
    }

    fn allocate(&self, len: u64) -> Result<()> {
        *lock(&self.running) = Running::Unread;
        self.inner.allocate(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest as _, Sha256};
    use trawl_io::fault::FaultFs;

    fn sha256(bytes: &[u8]) -> Option<String> {
        Some(data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)))
    }

    #[test]
    fn what_only_grows_is_read_once_at_most() {
        let disk = FaultFs::new();
        disk.create_dir(Path::new("/out")).unwrap();
        let (open, done) = (Path::new("/out/a.warc.gz.open"), Path::new("/out/a.warc.gz"));
        let start = || HashedFs::new(disk.shared(), Path::new("/out"), Path::new("/out/.crawl"));
        let fs = start();
        let file = fs.open(open, Mode::CreateNew).unwrap();
        file.write_at(0, b"one ").unwrap();
        file.append(b"two").unwrap();
        assert_eq!(fs.digest(open, 7), sha256(b"one two"));
        assert_eq!((fs.digest(open, 4), disk.counts().bytes_read), (None, 0));
        // A resume cuts what was not committed, and adds to what is there.
        let fs = start();
        let file = fs.open(open, Mode::Write).unwrap();
        file.set_len(3).unwrap();
        file.write_at(3, b", three").unwrap();
        file.append(b", four").unwrap();
        fs.rename_new(open, done).unwrap();
        file.append(b".").unwrap();
        assert_eq!((fs.digest(open, 17), fs.digest(done, 17)), (None, sha256(b"one, three, four.")));
        assert_eq!(disk.counts().bytes_read, 3);
    }

    #[test]
    fn other_writes_have_no_digest() {
        let disk = FaultFs::new();
        disk.create_dir_all(Path::new("/out/.crawl")).unwrap();
        let fs = HashedFs::new(disk.shared(), Path::new("/out"), Path::new("/out/.crawl"));
        let file = fs.open(Path::new("/out/a.seqdb"), Mode::CreateNew).unwrap();
        file.write_at(0, b"head").unwrap();
        file.append(b"more").unwrap();
        file.write_at(0, b"HEAD").unwrap();
        file.append(b"!").unwrap();
        assert_eq!(fs.digest(Path::new("/out/a.seqdb"), 9), None);
        let file = fs.open(Path::new("/out/.crawl/log"), Mode::CreateNew).unwrap();
        file.write_at(0, b"log").unwrap();
        assert_eq!(fs.digest(Path::new("/out/.crawl/log"), 3), None);
        assert!(lock(&fs.running).len() == 1);
        // A directory that is a container gets its final name as a whole.
        fs.create_dir(Path::new("/out/part.open")).unwrap();
        fs.open(Path::new("/out/part.open/data"), Mode::CreateNew).unwrap().write_at(0, b"data").unwrap();
        fs.rename(Path::new("/out/part.open"), Path::new("/out/part")).unwrap();
        assert_eq!(fs.digest(Path::new("/out/part/data"), 4), sha256(b"data"));
    }
}
