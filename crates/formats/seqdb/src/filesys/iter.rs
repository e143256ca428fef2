//! Going through files: in the order of the data file, from a time on, or in the order of the index.

use super::inode::{FsKey, Inode};
use super::{FileHandle, Filesys};
use crate::Result;
use crate::kvseq::Scan;

/// What is known of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The name.
    pub name: Vec<u8>,
    /// The type.
    pub kind: char,
    /// Bytes.
    pub size: u64,
    /// Seconds since 1970.
    pub mtime: i64,
    /// Where its inode is.
    pub ptr: u64,
}

impl From<Inode> for FileInfo {
    fn from(inode: Inode) -> Self {
        let kind = char::from(inode.kind);
        FileInfo { name: inode.name, kind, size: inode.size, mtime: inode.mtime, ptr: inode.ptr }
    }
}

/// An iteration in the order of the data file.
#[derive(Debug)]
pub struct Files<'a> {
    fs: &'a Filesys,
    scan: Scan<'a>,
    since: Option<i64>,
    /// Inodes at or after this are not given.
    until: u64,
}

impl Filesys {
    /// All files, in the order of the data file.
    pub fn files(&self) -> Files<'_> {
        Files { fs: self, scan: self.data.scan().keys_only(), since: None, until: u64::MAX }
    }

    /// Files of time `t` and later, in the order of the data file. An append-only filesys starts where they begin.
    pub fn files_since(&self, t: i64) -> Result<Files<'_>> {
        let start = self.start_for(t)?.unwrap_or_else(|| self.data.first());
        Ok(Files { since: Some(t), ..self.files_between(start, u64::MAX) })
    }

    /// Where files of time `t` and later begin, if there are marks.
    pub(crate) fn start_for(&self, t: i64) -> Result<Option<u64>> {
        let start = self.time.as_ref().map_or(Ok(None), |time| time.start_for(t))?;
        Ok(start.filter(|ptr| self.data.is_pointer(*ptr)))
    }

    /// Files whose inodes lie between two places, of which the first is that of an entry.
    pub(crate) fn files_between(&self, start: u64, until: u64) -> Files<'_> {
        Files { fs: self, scan: self.data.scan_from(start).keys_only(), since: None, until }
    }

    /// Hands every file to `each`, in the order of the index.
    pub fn for_each_indexed(&self, each: &mut dyn FnMut(FileInfo) -> Result<()>) -> Result<()> {
        self.index.for_each(&mut |ptr, _| {
            // Beside a writer the index may be ahead of what was seen of the data.
            if !self.data.reaches(ptr)? {
                return Ok(());
            }
            each(Inode::load(&self.data, ptr)?.into())
        })
    }

    /// Opens a file that an iteration gave, for reading: without a search, and also where the index of a filesys that is
    /// being written does not have it yet.
    pub fn open_listed(&self, info: &FileInfo) -> Result<FileHandle> {
        self.handle_of(Inode::load(&self.data, info.ptr)?)
    }

    /// Whether an inode that is not marked deleted is that of an existing file.
    pub(crate) fn is_alive(&self, inode: &Inode) -> Result<bool> {
        if self.have_dups {
            return Ok(self.index.find(&self.names(), &inode.name)? == Some(inode.ptr));
        }
        Ok(!inode.deleted && !self.deferred.contains(&inode.ptr))
    }
}

impl Files<'_> {
    /// The next file; `None` at the end.
    pub fn next_file(&mut self) -> Result<Option<FileInfo>> {
        Ok(self.next_inode()?.map(FileInfo::from))
    }

    pub(crate) fn next_inode(&mut self) -> Result<Option<Inode>> {
        while self.scan.position() < self.until {
            let Some(item) = self.scan.next_entry()? else { break };
            if !matches!(FsKey::decode(item.key), Some(FsKey::Inode { .. })) {
                continue;
            }
            let inode = match item.value {
                Some(value) => Inode::decode(item.ptr, item.deleted, item.key, value)
                    .map_err(|found| crate::Error::corrupt(self.fs.data.path(), item.ptr, "an inode", found))?,
                None => Inode::load(&self.fs.data, item.ptr)?,
            };
            if self.since.is_some_and(|t| inode.mtime < t) || !self.fs.is_alive(&inode)? {
                continue;
            }
            return Ok(Some(inode));
        }
        Ok(None)
    }
}
