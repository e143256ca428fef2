//! A store in memory: for tests, and for programs that build a small lake only to query it.

use crate::{Created, Error, Listed, RangeRead, Result, Store, Upload, check_path};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Objects = BTreeMap<String, Bytes>;

/// Objects in memory. Clones are the same store.
#[derive(Debug, Clone, Default)]
pub struct MemStore(Arc<Mutex<Objects>>);

impl MemStore {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        // Every change is one call of the map, so a panic elsewhere leaves it sound.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn object(&self, path: &str) -> Result<Bytes> {
        check_path(path)?;
        self.objects().get(path).cloned().ok_or_else(|| Error::NotFound { path: path.to_owned() })
    }
}

impl Store for MemStore {
    fn get(&self, path: &str, limit: u64) -> Result<Bytes> {
        let bytes = self.object(path)?;
        let found = bytes.len() as u64;
        if found > limit { Err(Error::OverLimit { path: path.to_owned(), found, limit }) } else { Ok(bytes) }
    }

    fn get_batch(&self, reads: &[RangeRead]) -> Result<Vec<Bytes>> {
        let one = |RangeRead { path, range }: &RangeRead| {
            let bytes = self.object(path)?;
            let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
            match (start, end) {
                (Ok(start), Ok(end)) if start <= end && end <= bytes.len() => Ok(bytes.slice(start..end)),
                _ => {
                    let (offset, found) = (range.start, format!("an object of {} bytes", bytes.len()));
                    Err(Error::Corrupt { path: path.clone(), offset, expected: "the bytes asked for", found })
                }
            }
        };
        reads.iter().map(one).collect()
    }

    fn len(&self, path: &str) -> Result<u64> {
        Ok(self.object(path)?.len() as u64)
    }

    fn put(&self, path: &str, bytes: &[u8]) -> Result<()> {
        check_path(path)?;
        self.objects().insert(path.to_owned(), Bytes::copy_from_slice(bytes));
        Ok(())
    }

    fn create(&self, path: &str, bytes: &[u8]) -> Result<Created> {
        check_path(path)?;
        let mut objects = self.objects();
        if objects.contains_key(path) {
            return Ok(Created::Exists);
        }
        objects.insert(path.to_owned(), Bytes::copy_from_slice(bytes));
        Ok(Created::New)
    }

    fn upload(&self, path: &str) -> Result<Box<dyn Upload>> {
        check_path(path)?;
        Ok(Box::new(MemUpload { store: self.clone(), path: path.to_owned(), bytes: Vec::new() }))
    }

    fn list(&self, dir: &str) -> Result<Vec<Listed>> {
        check_path(dir)?;
        let below = format!("{dir}/");
        let objects = self.objects();
        let found = objects.range(below.clone()..).take_while(|(path, _)| path.starts_with(&below));
        Ok(found.map(|(path, bytes)| Listed { path: path.clone(), len: bytes.len() as u64 }).collect())
    }

    fn delete(&self, path: &str) -> Result<()> {
        check_path(path)?;
        self.objects().remove(path);
        Ok(())
    }

    fn open_local(&self, _path: &str) -> Option<PathBuf> {
        None
    }

    fn place(&self) -> String {
        "memory".into()
    }
}

struct MemUpload {
    store: MemStore,
    path: String,
    bytes: Vec<u8>,
}

impl Write for MemUpload {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(buf);
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Upload for MemUpload {
    fn finish(self: Box<Self>) -> Result<()> {
        self.store.put(&self.path, &self.bytes)
    }
}
