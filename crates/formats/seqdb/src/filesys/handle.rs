//! Open files, and reading them.

use super::Filesys;
use super::inode::{FsKey, Inode, inode_at};
use super::names::OpenName;
use crate::error::shown;
use crate::hindex::Found;
use crate::kvseq::Span;
use crate::num::index;
use crate::{Error, Result, h64};
use std::io::{self, Read};

/// How a file is opened for writing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteFlags {
    /// Refuse a file that exists.
    pub excl: bool,
    /// The mtime to give it, instead of the moment of each change.
    pub mtime: Option<i64>,
}

/// A part of a file: the value of a data entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub ptr: u64,
    /// First byte inside the file, and bytes.
    pub start: u64,
    pub len: u64,
    /// Offset of the value in the data file.
    pub at: u64,
}

/// An open file. It holds no descriptor; dropping it closes it.
#[derive(Debug)]
pub struct FileHandle {
    pub(super) inode: Inode,
    pub(super) extents: Vec<Extent>,
    pub(super) write: bool,
    pub(super) keep_mtime: bool,
    pub(super) _open: OpenName,
}

impl FileHandle {
    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.inode.name
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.inode.size
    }

    /// The type: `f` plain, `c` gzip, `a` archive, `x` unknown.
    pub fn file_type(&self) -> char {
        char::from(self.inode.kind)
    }

    /// Seconds since 1970 of the last change, or of the creation in an append-only filesys.
    pub fn mtime(&self) -> i64 {
        self.inode.mtime
    }

    /// Bytes that can be stored without growing.
    pub fn capacity(&self) -> u64 {
        self.extents.last().map_or(0, |e| e.start + e.len)
    }

    /// Where `len` bytes from `offset` on lie in the data file: the place and length of each piece.
    pub(super) fn pieces(&self, offset: u64, len: usize) -> impl Iterator<Item = (u64, usize)> {
        let end = offset.saturating_add(len as u64);
        let first = self.extents.partition_point(|e| e.start + e.len <= offset);
        self.extents.iter().skip(first).take_while(move |e| e.start < end).map(move |e| {
            let inside = offset.saturating_sub(e.start);
            (e.at + inside, index(e.len.min(end - e.start) - inside))
        })
    }
}

impl Filesys {
    /// Whether there is a file of that name.
    pub fn contains(&self, name: &[u8]) -> Result<bool> {
        Ok(self.find(name)?.what().is_some())
    }

    /// The inode a name leads to, and its cell.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Found<Inode>> {
        if self.index.is_astray() {
            return self.find_in_data(name);
        }
        self.index.search(h64(name), |ptr| Ok(inode_at(&self.data, ptr)?.filter(|inode| inode.name == name)))
    }

    /// The same for a reader beside a repair, which has no index to ask.
    #[cold]
    pub(super) fn find_in_data(&self, name: &[u8]) -> Result<Found<Inode>> {
        let mut files = self.files();
        let mut found = Found::Full;
        while let Some(what) = files.next_inode()? {
            if what.name == name {
                found = Found::Here { cell: 0, ptr: what.ptr, what };
            }
        }
        Ok(found)
    }

    pub(crate) fn not_found(&self, name: &[u8]) -> Error {
        Error::FileNotFound(self.paths.data(), shown(name))
    }

    /// Opens a file for reading, if its type is one of `types` (any if that is empty).
    pub fn open_file(&self, name: &[u8], types: &str) -> Result<FileHandle> {
        let inode = self.find(name)?.what().ok_or_else(|| self.not_found(name))?;
        self.expect_type(&inode, types)?;
        let open = self.open.enter(&self.paths, name, false)?;
        self.handle(inode, open, false, true)
    }

    pub(super) fn expect_type(&self, inode: &Inode, types: &str) -> Result<()> {
        let found = char::from(inode.kind);
        if types.is_empty() || types.contains(found) {
            return Ok(());
        }
        let name = shown(&inode.name);
        Err(Error::TypeMismatch { path: self.paths.data(), name, wanted: types.into(), found })
    }

    pub(super) fn handle(&self, mut inode: Inode, open: OpenName, write: bool, keep_mtime: bool) -> Result<FileHandle> {
        loop {
            let end = self.data.end();
            match self.whole_extents(&inode) {
                Ok(extents) => return Ok(FileHandle { inode, extents, write, keep_mtime, _open: open }),
                Err(e @ Error::CorruptEntry { .. }) => {
                    // The file may have grown since the end was looked at: then its last part is longer by now.
                    self.data.catch_up()?;
                    if self.data.end() == end {
                        return Err(e);
                    }
                    inode = Inode::load(&self.data, inode.ptr)?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn whole_extents(&self, inode: &Inode) -> Result<Vec<Extent>> {
        let extents = self.extents(inode)?;
        let capacity = extents.last().map_or(0, |e| e.start + e.len);
        if inode.size > capacity {
            let found = format!("{} in {capacity} bytes", inode.size);
            return Err(Error::corrupt(self.data.path(), inode.ptr, "a file size within its data", found));
        }
        Ok(extents)
    }

    /// A handle for reading a file whose inode is known.
    pub(crate) fn handle_of(&self, inode: Inode) -> Result<FileHandle> {
        let open = self.open.enter(&self.paths, &inode.name, false)?;
        self.handle(inode, open, false, true)
    }

    /// The data entries of an inode, checked.
    pub(super) fn extents(&self, inode: &Inode) -> Result<Vec<Extent>> {
        let mut extents = Vec::new();
        let mut start = 0u64;
        for ptr in &inode.pointers {
            let span = extent_at(&self.data, inode, *ptr, start)?;
            extents.push(Extent { ptr: *ptr, start, len: span.value_len, at: span.value_at });
            start = start.checked_add(span.value_len).ok_or_else(|| {
                Error::corrupt(self.data.path(), inode.ptr, "a file of less than 2^64 bytes", "a larger one")
            })?;
        }
        Ok(extents)
    }
}

/// The data entry at `ptr`, which must be the part of the inode's file that begins at `start`.
pub(super) fn extent_at(data: &crate::Kvseq, inode: &Inode, ptr: u64, start: u64) -> Result<Span> {
    let broken = |found: String| Error::corrupt(data.path(), ptr, "the next data entry of a file", found);
    if !data.reaches(ptr)? {
        return Err(broken("a pointer past the end".into()));
    }
    let mut buf = [0; 64];
    let head = data.head(ptr, &mut buf)?;
    let wanted = FsKey::Data { file_id: inode.file_id, offset: start };
    match head.key().and_then(FsKey::decode) {
        Some(key) if key == wanted => Ok(head.span),
        Some(key) => Err(broken(format!("{key:?} instead of {wanted:?}"))),
        None => Err(broken("another kind of entry".into())),
    }
}

impl Filesys {
    /// Reads from `offset` on; fewer bytes than `buf` holds at the end of the file.
    pub fn read_file(&self, file: &FileHandle, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let wanted = index(file.size().saturating_sub(offset)).min(buf.len());
        let (mut rest, _) = buf.split_at_mut(wanted);
        for (at, n) in file.pieces(offset, wanted) {
            let (piece, more) = rest.split_at_mut(n);
            self.data.read_raw(at, piece)?;
            rest = more;
        }
        Ok(wanted - rest.len())
    }

    /// A whole file, if it is not above the limit of the settings.
    pub fn read_all(&self, name: &[u8]) -> Result<Vec<u8>> {
        let file = self.open_file(name, "")?;
        self.read_handle(&file)
    }

    pub(crate) fn read_handle(&self, file: &FileHandle) -> Result<Vec<u8>> {
        let (len, limit) = (file.size(), self.settings.max_value_bytes);
        if len > limit {
            return Err(Error::TooLong { path: self.paths.data(), what: "file", len, limit });
        }
        let mut contents = vec![0; index(len)];
        let n = self.read_file(file, 0, &mut contents)?;
        contents.truncate(n);
        Ok(contents)
    }

    /// Reads an open file from front to back.
    pub fn reader(&self, file: FileHandle) -> FileReader<'_> {
        FileReader { fs: self, at: 0, end: file.size(), file }
    }

    /// What is known of a file without opening it.
    pub fn stat(&self, name: &[u8]) -> Result<super::FileInfo> {
        let found = match self.find(name)?.what() {
            // The index of a live writer may be behind its data.
            None if self.is_being_written() => self.find_in_data(name)?.what(),
            found => found,
        };
        Ok(found.ok_or_else(|| self.not_found(name))?.into())
    }
}

/// Reads the bytes of an open file.
#[derive(Debug)]
pub struct FileReader<'a> {
    fs: &'a Filesys,
    file: FileHandle,
    at: u64,
    end: u64,
}

impl FileReader<'_> {
    /// Only `len` bytes from `offset` on, as far as there are so many.
    #[must_use]
    pub fn range(mut self, offset: u64, len: u64) -> Self {
        self.end = offset.saturating_add(len).min(self.file.size());
        self.at = offset.min(self.end);
        self
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.file.size()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Read for FileReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let wanted = index(self.end - self.at).min(buf.len());
        let n = self.fs.read_file(&self.file, self.at, buf.split_at_mut(wanted).0).map_err(io::Error::other)?;
        self.at += n as u64;
        Ok(n)
    }
}
