//! A file of a segment, wherever it lies: mapped, in memory, or read from the store by ranges.

use crate::Result;
use crate::cache::{Caches, FileKey};
use bytes::Bytes;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::read_at::{MapReader, ReadAt};
use trawl_store::{RangeRead, Store};

/// A file of a segment. Clones share it.
#[derive(Clone)]
pub struct Blob {
    inner: Arc<dyn ReadAt>,
    /// Set where each read is a request: then reads of several files can share one.
    remote: Option<Arc<Remote>>,
    /// All of it, where it is mapped or in memory.
    local: Option<Bytes>,
    /// Where pieces of a remote file may be kept.
    cache: Option<(FileKey, Arc<Caches>)>,
}

impl<T: ReadAt + 'static> From<Arc<T>> for Blob {
    fn from(inner: Arc<T>) -> Self {
        Self { inner, remote: None, local: None, cache: None }
    }
}

impl Blob {
    /// Opens an object: mapped if it is a local file; read whole if it has at most `resident` bytes; by ranges else.
    pub fn open(store: &Arc<dyn Store>, path: &str, resident: u64) -> Result<Self> {
        if let Some(local) = store.open_local(path) {
            return Ok(Self::local_of(MapReader::open(&local)?));
        }
        let len = store.len(path)?;
        if len <= resident {
            return Ok(Self::local_of(MapReader::of_bytes(path, store.get(path, resident)?)));
        }
        Ok(Self::remote(store, path, len))
    }

    /// An object of `len` bytes, by ranges.
    pub(crate) fn remote(store: &Arc<dyn Store>, path: &str, len: u64) -> Self {
        let remote = Arc::new(Remote { store: store.clone(), path: path.into(), name: path.into(), len });
        Self { inner: remote.clone(), remote: Some(remote), local: None, cache: None }
    }

    /// An object that was read whole.
    pub(crate) fn of_bytes(path: &str, bytes: Bytes) -> Self {
        Self::local_of(MapReader::of_bytes(path, bytes))
    }

    fn local_of(file: MapReader) -> Self {
        let local = Some(file.bytes().clone());
        Self { inner: Arc::new(file), remote: None, local, cache: None }
    }

    /// The same, keeping pieces of it in `caches` if each read is a request.
    #[must_use]
    pub fn cached(mut self, caches: &Arc<Caches>) -> Self {
        self.cache = self.remote.is_some().then(|| (FileKey::new(), caches.clone()));
        self
    }

    /// All of it, where it is mapped or in memory.
    pub(crate) fn local(&self) -> Option<&Bytes> {
        self.local.as_ref()
    }

    pub(crate) fn cache(&self) -> Option<&(FileKey, Arc<Caches>)> {
        self.cache.as_ref()
    }

    /// Bytes kept in memory for this file: none where it is mapped or read by ranges.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }
}

impl std::ops::Deref for Blob {
    type Target = dyn ReadAt;

    fn deref(&self) -> &Self::Target {
        &*self.inner
    }
}

/// Reads ranges of two files, in one round where both come from one store.
pub(crate) fn read_both(
    left: (&Blob, &[Range<u64>]),
    right: (&Blob, &[Range<u64>]),
) -> Result<(Vec<Bytes>, Vec<Bytes>)> {
    if let (Some(l), Some(r)) = (&left.0.remote, &right.0.remote)
        && Arc::ptr_eq(&l.store, &r.store)
    {
        let reads: Vec<_> = l.requests(left.1)?.into_iter().chain(r.requests(right.1)?).collect();
        let mut bytes = l.store.get_batch(&reads)?;
        let rest = bytes.split_off(left.1.len().min(bytes.len()));
        return Ok((bytes, rest));
    }
    Ok((left.0.read_ranges(left.1)?, right.0.read_ranges(right.1)?))
}

/// An object read by ranges.
struct Remote {
    store: Arc<dyn Store>,
    path: String,
    name: PathBuf,
    len: u64,
}

impl Remote {
    fn requests(&self, ranges: &[Range<u64>]) -> trawl_io::Result<Vec<RangeRead>> {
        let request = |range: &Range<u64>| {
            trawl_io::read_at::check_range(&self.name, self.len, range)?;
            Ok(RangeRead { path: self.path.clone(), range: range.clone() })
        };
        ranges.iter().map(request).collect()
    }

    fn failed(&self, error: trawl_store::Error) -> trawl_io::Error {
        match error {
            trawl_store::Error::Io(e) => e,
            other => trawl_io::Error::io(trawl_io::Op::Read, &self.name, std::io::Error::other(other)),
        }
    }
}

impl ReadAt for Remote {
    fn name(&self) -> &Path {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> trawl_io::Result<()> {
        let bytes = self.read_range(offset..offset.saturating_add(buf.len() as u64))?;
        // The store answers with all bytes of a range or with an error.
        buf.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        Ok(())
    }

    fn read_range(&self, range: Range<u64>) -> trawl_io::Result<Bytes> {
        Ok(self.read_ranges(&[range])?.into_iter().next().unwrap_or_default())
    }

    fn read_ranges(&self, ranges: &[Range<u64>]) -> trawl_io::Result<Vec<Bytes>> {
        let requests = self.requests(ranges)?;
        self.store.get_batch(&requests).map_err(|e| self.failed(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubles::CountingStore;
    use trawl_store::DirStore;

    #[test]
    fn mapped_resident_and_by_ranges_read_alike() {
        let dir = tempfile::tempdir().unwrap();
        let local: Arc<dyn Store> = Arc::new(DirStore::new(dir.path()));
        local.put("index/s/a", b"0123456789").unwrap();
        local.put("index/s/b", b"abcdefghij").unwrap();
        let counting = Arc::new(CountingStore::new(local.clone()));
        let remote: Arc<dyn Store> = counting.clone();
        let mapped = Blob::open(&local, "index/s/a", 0).unwrap();
        let resident = Blob::open(&remote, "index/s/a", 100).unwrap();
        let ranged = Blob::open(&remote, "index/s/a", 5).unwrap();
        assert!(!mapped.is_remote() && !resident.is_remote() && ranged.is_remote());
        for blob in [&mapped, &resident, &ranged] {
            assert_eq!(blob.len(), 10);
            assert_eq!(blob.read_ranges(&[2..5, 0..1]).unwrap(), [&b"234"[..], b"0"]);
            assert!(blob.read_range(5..11).is_err());
            let mut buf = [0; 3];
            blob.read_at(7, &mut buf).unwrap();
            assert_eq!(&buf, b"789");
            assert!(blob.read_at(8, &mut buf).is_err());
            assert!(blob.name().ends_with("index/s/a"));
        }
        let other = Blob::open(&remote, "index/s/b", 5).unwrap();
        counting.take();
        let (a, b) = read_both((&ranged, &[0..2, 5..6]), (&other, &[1..3, 0..0])).unwrap();
        assert_eq!((a, b), (vec!["01".into(), "5".into()], vec!["bc".into(), "".into()]));
        assert_eq!(counting.take().rounds, 1);
        let (a, b) = read_both((&mapped, &[0..2, 2..3]), (&other, &[])).unwrap();
        assert_eq!((a.len(), b.len()), (2, 0));
        assert!(Blob::open(&remote, "index/s/none", 5).is_err());
    }
}
