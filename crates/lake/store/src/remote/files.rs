//! Archives on servers as files: `s3://bucket/key` and `https://host/path`, read by ranges.
//!
//! Readers of containers ask for a few bytes here and a few there; each such read would be a request. So a file keeps the
//! last stretches it read, and one that is read from front to back is fetched in ever longer ones.

use super::{RemoteSettings, RemoteStore, is_remote, runtime};
use crate::{Error, Result};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trawl_io::{Entry, File, FileId, Fs, Metadata, Mode, Op};
use xxhash_rust::xxh3::xxh3_64;

/// First stretch that is fetched around what is asked for.
const FIRST: u64 = 64 << 10;
/// Longest stretch.
const LONGEST: u64 = 4 << 20;
/// Stretches a file keeps.
const KEPT: usize = 4;

/// A file system whose remote names are read from servers, and all others from another file system.
#[derive(Debug)]
pub struct RemoteFs {
    local: Arc<dyn Fs>,
    env: Vec<(String, String)>,
    settings: RemoteSettings,
    stores: Mutex<HashMap<String, RemoteStore>>,
}

impl RemoteFs {
    /// Names that are no addresses are those of `local`; `env` is as in [`RemoteStore::open`].
    pub fn new(local: Arc<dyn Fs>, env: Vec<(String, String)>, settings: RemoteSettings) -> Self {
        Self { local, env, settings, stores: Mutex::default() }
    }

    /// The store of an address and the key in it, if it is one.
    fn place(&self, path: &Path) -> Option<trawl_io::Result<(RemoteStore, Key)>> {
        let text = path.to_str().filter(|text| is_remote(text))?;
        Some(self.remote(text).map_err(|error| failed(path, &error)))
    }

    fn remote(&self, text: &str) -> Result<(RemoteStore, Key)> {
        let bad = || Error::bad_name("s3://bucket/key or https://host/path", text);
        let (scheme, rest) = text.split_once("://").ok_or_else(bad)?;
        let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
        let base = format!("{scheme}://{host}");
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let store = match stores.get(&base) {
            Some(store) => store.clone(),
            None => {
                let opened = RemoteStore::open(&base, &self.env, self.settings.clone())?;
                stores.entry(base).or_insert(opened).clone()
            }
        };
        Ok((store, Key::parse(key.trim_matches('/')).map_err(|_| bad())?))
    }
}

fn failed(path: &Path, error: &Error) -> trawl_io::Error {
    let kind = if error.is_not_found() { std::io::ErrorKind::NotFound } else { std::io::ErrorKind::Other };
    trawl_io::Error::io(Op::Read, path, std::io::Error::new(kind, error.to_string()))
}

fn refused(path: &Path) -> trawl_io::Error {
    let reason = "archives on servers can only be read";
    trawl_io::Error::io(Op::Write, path, std::io::Error::new(std::io::ErrorKind::ReadOnlyFilesystem, reason))
}

impl RemoteStore {
    fn key_metadata(&self, key: &Key) -> Result<Metadata> {
        let (inner, key) = (self.0.clone(), key.clone());
        runtime::wait(async move { Ok(metadata(&inner.head_at(key.as_ref(), &key).await?)) })?
    }

    /// Whether there are objects below a key: then it is what a directory is.
    fn key_is_dir(&self, key: &Key) -> Result<bool> {
        let (inner, key) = (self.0.clone(), key.clone());
        runtime::wait(async move {
            // A page of them at most, not all.
            let ask = || async { inner.objects.list(Some(&key)).try_next().await };
            Ok(inner.attempt(key.as_ref(), "list", ask).await?.is_some())
        })?
    }

    fn key_range(&self, key: &Key, range: Range<u64>) -> Result<Bytes> {
        let (inner, key) = (self.0.clone(), key.clone());
        runtime::wait(async move { inner.range_at(key.as_ref(), &key, range).await })?
    }

    fn key_list(&self, key: &Key) -> Result<Vec<Entry>> {
        let (inner, key) = (self.0.clone(), key.clone());
        runtime::wait(async move {
            let ask = || inner.objects.list_with_delimiter(Some(&key));
            let found = inner.attempt(key.as_ref(), "list", ask).await?;
            let name = |key: &Key| key.filename().unwrap_or_default().into();
            let files = found.objects.iter().map(|o| Entry { name: name(&o.location), is_dir: false });
            let dirs = found.common_prefixes.iter().map(|key| Entry { name: name(key), is_dir: true });
            let mut entries: Vec<_> = files.chain(dirs).collect();
            entries.sort_unstable();
            Ok(entries)
        })?
    }
}

impl Fs for RemoteFs {
    fn open(&self, path: &Path, mode: Mode) -> trawl_io::Result<Box<dyn File>> {
        let Some(place) = self.place(path) else { return self.local.open(path, mode) };
        if mode != Mode::Read {
            return Err(refused(path));
        }
        let (store, key) = place?;
        let metadata = store.key_metadata(&key).map_err(|error| failed(path, &error))?;
        Ok(Box::new(RemoteFile { path: path.to_owned(), store, key, metadata, kept: Mutex::default() }))
    }

    fn rename(&self, from: &Path, to: &Path) -> trawl_io::Result<()> {
        self.local.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> trawl_io::Result<()> {
        self.local.rename_new(from, to)
    }

    fn remove_file(&self, path: &Path) -> trawl_io::Result<()> {
        if self.place(path).is_some() { Err(refused(path)) } else { self.local.remove_file(path) }
    }

    fn create_dir(&self, path: &Path) -> trawl_io::Result<()> {
        if self.place(path).is_some() { Err(refused(path)) } else { self.local.create_dir(path) }
    }

    fn create_dir_all(&self, path: &Path) -> trawl_io::Result<()> {
        if self.place(path).is_some() { Err(refused(path)) } else { self.local.create_dir_all(path) }
    }

    fn remove_dir(&self, path: &Path) -> trawl_io::Result<()> {
        self.local.remove_dir(path)
    }

    fn list(&self, dir: &Path) -> trawl_io::Result<Vec<Entry>> {
        let Some(place) = self.place(dir) else { return self.local.list(dir) };
        let (store, key) = place?;
        store.key_list(&key).map_err(|error| failed(dir, &error))
    }

    fn metadata(&self, path: &Path) -> trawl_io::Result<Metadata> {
        let Some(place) = self.place(path) else { return self.local.metadata(path) };
        let (store, key) = place?;
        let found = store.key_metadata(&key);
        // Servers of plain HTTP list nothing.
        let may_be_dir = path.to_str().is_some_and(|text| text.starts_with("s3"));
        if may_be_dir && found.as_ref().is_err_and(Error::is_not_found) && store.key_is_dir(&key).unwrap_or(false) {
            let id = FileId { device: 0, inode: xxh3_64(key.as_ref().as_bytes()) };
            return Ok(Metadata { len: 0, is_dir: true, is_file: false, id, modified_ns: None });
        }
        found.map_err(|error| failed(path, &error))
    }

    fn whole_path(&self, path: &Path) -> trawl_io::Result<PathBuf> {
        // An address is whole.
        if path.to_str().is_some_and(is_remote) { Ok(path.to_owned()) } else { self.local.whole_path(path) }
    }

    fn sync_dir(&self, dir: &Path) -> trawl_io::Result<()> {
        self.local.sync_dir(dir)
    }
}

/// No time: such a file is known again by its bytes alone. The inode tells states of an object apart.
fn metadata(found: &ObjectMeta) -> Metadata {
    let modified = || found.last_modified.timestamp_millis().to_string();
    let state = found.e_tag.clone().unwrap_or_else(modified);
    let inode = xxh3_64(format!("{} {state}", found.location).as_bytes());
    Metadata { len: found.size, is_dir: false, is_file: true, id: FileId { device: 0, inode }, modified_ns: None }
}

struct RemoteFile {
    path: PathBuf,
    store: RemoteStore,
    key: Key,
    metadata: Metadata,
    /// Where stretches begin, and their bytes; the one used last at the end.
    kept: Mutex<Vec<(u64, Bytes)>>,
}

impl std::fmt::Debug for RemoteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RemoteFile").field(&self.path).finish()
    }
}

impl RemoteFile {
    /// The stretch with the byte at `offset`, and how long one to fetch is if there is none.
    fn find(&self, offset: u64) -> std::result::Result<(u64, Bytes), u64> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |(start, bytes): &(u64, Bytes)| (*start..*start + bytes.len() as u64).contains(&offset);
        if let Some(at) = kept.iter().position(holds) {
            let found = kept.remove(at);
            kept.push(found.clone());
            return Ok(found);
        }
        // What goes on where another stretch ended is read from front to back.
        let before = kept.iter().find(|(start, bytes)| *start + bytes.len() as u64 == offset);
        Err(before.map_or(FIRST, |(_, bytes)| (bytes.len() as u64 * 2).clamp(FIRST, LONGEST)))
    }

    fn keep(&self, start: u64, bytes: Bytes) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((start, bytes));
    }
}

impl File for RemoteFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> trawl_io::Result<usize> {
        let len = self.metadata.len;
        if offset >= len || buf.is_empty() {
            return Ok(0);
        }
        let (start, bytes) = match self.find(offset) {
            Ok(found) => found,
            Err(stretch) => {
                let end = len.min(offset.saturating_add(stretch.max(buf.len() as u64)));
                let got = self.store.key_range(&self.key, offset..end).map_err(|error| failed(&self.path, &error))?;
                self.keep(offset, got.clone());
                (offset, got)
            }
        };
        let inside = usize::try_from(offset - start).unwrap_or(usize::MAX);
        let from = bytes.get(inside..).unwrap_or_default();
        let n = from.len().min(buf.len());
        buf.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Ok(n)
    }

    fn write_at(&self, _offset: u64, _buf: &[u8]) -> trawl_io::Result<()> {
        Err(refused(&self.path))
    }

    fn set_len(&self, _len: u64) -> trawl_io::Result<()> {
        Err(refused(&self.path))
    }

    fn sync_data(&self) -> trawl_io::Result<()> {
        Err(refused(&self.path))
    }

    fn metadata(&self) -> trawl_io::Result<Metadata> {
        Ok(self.metadata)
    }

    fn try_lock(&self) -> trawl_io::Result<bool> {
        Err(refused(&self.path))
    }

    fn try_lock_shared(&self) -> trawl_io::Result<bool> {
        // This file system cannot write to it.
        Ok(true)
    }

    fn unlock(&self) -> trawl_io::Result<()> {
        Ok(())
    }
}
