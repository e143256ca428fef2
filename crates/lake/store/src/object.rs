//! What an object store can do, whatever stands behind it.

use crate::{Error, Result};
use bytes::Bytes;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use trawl_io::Op;
use xxhash_rust::xxh3::Xxh3;

/// Whether a create-if-absent put made the object or found it there. Either answer means that the object is durable. Whose
/// it is, only its bytes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Created {
    /// This call created it. Of several racing callers exactly one sees this.
    New,
    /// It was there already and is unchanged.
    Exists,
}

/// One range of one object, as part of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeRead {
    /// Path inside the lake.
    pub path: String,
    /// Bytes wanted; the object must hold them all.
    pub range: Range<u64>,
}

/// An object found by [`Store::list`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// Path inside the lake.
    pub path: String,
    /// Length in bytes.
    pub len: u64,
}

/// A place for objects: a directory, a bucket, memory. Paths are relative, with `/` ([`crate::check_path`]).
///
/// An object appears whole or not at all, and what a call reported as done survives a power cut.
pub trait Store: Send + Sync + fmt::Debug {
    /// A whole object of at most `limit` bytes.
    fn get(&self, path: &str, limit: u64) -> Result<Bytes>;

    /// Many ranges of many objects, answered in the order asked: one round. A store with latency asks for all of them
    /// at once, so a caller should gather what it needs before calling.
    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>>;

    /// Ranges of one object: one round.
    fn get_ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let reads: Vec<_> =
            ranges.iter().map(|range| RangeRead { path: path.to_owned(), range: range.clone() }).collect();
        self.get_batch(&reads)
    }

    /// Length in bytes.
    fn len(&self, path: &str) -> Result<u64>;

    /// Whether there is such an object.
    fn exists(&self, path: &str) -> Result<bool> {
        match self.len(path) {
            Ok(_) => Ok(true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Writes an object in one step, replacing what was there.
    fn put(&self, path: &str, bytes: &[u8]) -> Result<()>;

    /// Writes an object unless there is one. After an error it may be there all the same, and may be the caller's own even
    /// if the answer is that it exists.
    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created>;

    /// Begins an object too large for memory. It appears when [`Upload::finish`] succeeds; dropped before, nothing does.
    fn upload(&self, path: &str) -> Result<Box<dyn Upload>>;

    /// All objects below the directory `dir`, at any depth, sorted by path. An absent directory is empty.
    fn list(&self, dir: &str) -> Result<Vec<Listed>>;

    /// Removes an object; absent is fine.
    fn delete(&self, path: &str) -> Result<()>;

    /// The object as a file of this machine that can be mapped, if it is one.
    fn open_local(&self, path: &str) -> Option<PathBuf>;

    /// Drops what is kept of an object on this machine, so that it is read again: its bytes were not what they should be. Tells
    /// whether anything was kept.
    fn forget(&self, path: &str) -> bool {
        let _ = path;
        false
    }

    /// Removes what writers that died left half-written, and tells how many files that were. A store that shows no
    /// object before it is whole has nothing to do.
    fn sweep(&self) -> Result<u64> {
        Ok(0)
    }

    /// Removes directories in which nothing is left, and tells how many. A store without directories has nothing to do.
    fn prune(&self) -> Result<u64> {
        Ok(0)
    }

    /// How often readers ask for the newest state: zero means before every answer, where asking costs nothing.
    fn poll_every(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether each answer takes a while to come: then questions that do not depend on each other are asked at the same time.
    fn is_remote(&self) -> bool {
        false
    }

    /// What to call this store in messages.
    fn place(&self) -> String;
}

/// An object being written.
pub trait Upload: Write + Send {
    /// Makes the object appear, whole and durable.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Creates an object unless there is one, and tells whether the one that is there afterwards is this caller's.
///
/// Neither an `Exists` nor an error says that: a client that got no answer sends its request again and is refused because
/// of its own object, and a request whose answer got lost may have been done. So the object is read back and compared.
/// `bytes` must have the id of this writer in them, new for each operation, or be such that it does not matter who wrote
/// them. [`Error::Unsettled`], and no other error, if that cannot be found out: then the object may be this caller's, now or
/// later.
pub(crate) fn claim(store: &dyn Store, path: &str, bytes: &[u8]) -> Result<bool> {
    let told = match store.create(path, bytes) {
        // After a failed sync the file system may have dropped the change, and a later sync that succeeds proves nothing.
        Err(error @ Error::Io(trawl_io::Error::Io { op: Op::Sync | Op::SyncDir, .. })) => Err(error),
        // To ask once more is harmless, since the request is the same to the byte. And it is needed: an object that can be read
        // after an error may not survive a power cut, one that a create tells of does.
        Err(first) => match store.create(path, bytes) {
            // As in a directory of another user, or on a full disk: what twice did not come that far was not done.
            Err(second) if not_named(&first) && not_named(&second) => return Err(second),
            told => told,
        },
        told => told,
    };
    if matches!(told, Ok(Created::New)) {
        return Ok(true);
    }
    match (store.get(path, bytes.len() as u64), told) {
        (Ok(found), _) if found != bytes => Ok(false),
        // Longer than what was to be written.
        (Err(Error::OverLimit { .. }), _) => Ok(false),
        (Ok(_), Ok(_)) => Ok(true),
        (_, Err(error)) | (Err(error), _) => Err(error.unsettled(path)),
    }
}

/// Whether a create in a directory failed before there was a whole file that could get the name of the object: it is written
/// aside, and renamed after its last byte. Of a write only a full disk is an answer; others may be lost answers.
fn not_named(error: &Error) -> bool {
    let Error::Io(trawl_io::Error::Io { op, source, .. }) = error else { return false };
    match op {
        Op::Create | Op::CreateDir => true,
        Op::Write => matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded),
        _ => false,
    }
}

/// An object being written, counted and hashed on its way.
pub struct HashedUpload {
    upload: Box<dyn Upload>,
    hasher: Box<Xxh3>,
    len: u64,
}

impl HashedUpload {
    /// Begins an object.
    pub fn begin(store: &dyn Store, path: &str) -> Result<Self> {
        Ok(Self { upload: store.upload(path)?, hasher: Box::default(), len: 0 })
    }

    /// xxh3_64 of what was written so far.
    pub fn hash(&self) -> u64 {
        self.hasher.digest()
    }

    /// Makes the object appear; its length and xxh3_64.
    pub fn finish(self) -> Result<(u64, u64)> {
        self.upload.finish()?;
        Ok((self.len, self.hasher.digest()))
    }
}

impl Write for HashedUpload {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.upload.write(buf)?;
        self.hasher.update(buf.get(..n).unwrap_or(buf));
        self.len += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.upload.flush()
    }
}

/// Bytes of an object read at a time while it is hashed.
const HASH_STEP: u64 = 8 << 20;

/// xxh3_64 of the first `len` bytes of an object, 16 hex digits.
pub fn object_hash(store: &dyn Store, path: &str, len: u64) -> Result<String> {
    let mut hasher = Xxh3::new();
    let mut at = 0;
    while at < len {
        let end = len.min(at + HASH_STEP);
        for bytes in store.get_ranges(path, std::slice::from_ref(&(at..end)))? {
            hasher.update(&bytes);
        }
        at = end;
    }
    Ok(format!("{:016x}", hasher.digest()))
}

/// Checks the one promise everything rests on, that the second create of a name is refused, and cleans up.
///
/// `nonce` must be new for each call: two probes of one name would see each other.
pub fn probe(store: &dyn Store, nonce: &str) -> Result<()> {
    crate::check_name(nonce)?;
    let path = format!("index/probes/{nonce}");
    let (first, second) = (claim(store, &path, b"first")?, claim(store, &path, b"second")?);
    store.delete(&path)?;
    if first && !second { Ok(()) } else { Err(Error::NotExclusive { place: store.place(), path }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DirStore;

    #[test]
    fn what_could_not_begin_is_not_unsettled() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "a file where a directory should be").unwrap();
        let error = claim(&DirStore::new(dir.path()), "a/b", b"x").unwrap_err();
        assert!(not_named(&error), "{error}");
    }

    #[test]
    fn what_a_full_disk_refused_is_not_unsettled() {
        let fs = trawl_io::fault::FaultFs::new();
        let store = DirStore::with_fs(fs.shared(), "lake");
        fs.set_capacity(1);
        let error = claim(&store, "a/b", b"two").unwrap_err();
        assert!(not_named(&error), "{error}");
        assert!(!store.exists("a/b").unwrap());
        fs.set_capacity(1 << 20);
        assert!(claim(&store, "a/b", b"two").unwrap());
    }
}
