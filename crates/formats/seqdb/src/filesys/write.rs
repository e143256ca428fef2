//! Creating, writing and growing files.

use super::handle::Extent;
use super::inode::{FRAME_BYTES, FsKey, Inode, MAX_AREA, next_inode};
use super::time::Timefile;
use super::{FileHandle, Filesys, WriteFlags};
use crate::design::{INODE_HEAD_BYTES, MAX_GROWTH};
use crate::error::shown;
use crate::hindex::Found;
use crate::num::{index, signed};
use crate::superblock::Name;
use crate::{Error, Result, h64};
use std::io::Read;

/// Offset of P, mtime and size in an inode.
const NUMBERS_AT: u64 = 3;

/// What a new file holds.
pub(crate) enum Contents<'a> {
    Bytes(&'a [u8]),
    /// Bytes of any number, and what they are of, for an error.
    Reader(&'a mut dyn Read, &'a str),
}

impl Filesys {
    /// Opens a file for writing, creating it if there is none. In an append-only filesys it must be new.
    pub fn open_file_wr(&mut self, name: &[u8], kind: char, flags: WriteFlags) -> Result<FileHandle> {
        self.prepare()?;
        let open = self.open.enter(&self.paths, name, true)?;
        let keep_mtime = flags.mtime.is_some() || self.append_only;
        match self.find(name)? {
            Found::Here { .. } if flags.excl => Err(Error::FileExists(self.paths.data(), shown(name))),
            Found::Here { .. } if self.append_only => Err(self.restricted("the file exists")),
            Found::Here { what: mut inode, .. } => {
                self.expect_type(&inode, &String::from(kind))?;
                if let Some(mtime) = flags.mtime {
                    inode.mtime = mtime;
                    self.write_numbers(&inode)?;
                }
                self.handle(inode, open, true, keep_mtime)
            }
            absent => {
                let inode = self.new_inode(name, kind, flags.mtime)?;
                self.add_inode(&inode, absent)?;
                self.added(&inode)?;
                self.settle()?;
                self.handle(inode, open, true, keep_mtime)
            }
        }
    }

    /// Stores a whole new file in one step: a reader beside sees all of it or nothing.
    pub fn put_file(&mut self, name: &[u8], kind: char, mtime: Option<i64>, contents: &[u8]) -> Result<()> {
        self.put(name, kind, mtime, Contents::Bytes(contents)).map(|_| ())
    }

    /// Stores a new file of any size from a reader, in one step as [`Filesys::put_file`] does: memory holds a part of it,
    /// and readers beside see nothing before it is whole. Returns its size. If reading or writing fails nothing is kept.
    pub fn put_file_from(
        &mut self,
        name: &[u8],
        kind: char,
        mtime: Option<i64>,
        contents: &mut dyn Read,
    ) -> Result<u64> {
        self.put(name, kind, mtime, Contents::Reader(contents, "the contents"))
    }

    fn put(&mut self, name: &[u8], kind: char, mtime: Option<i64>, contents: Contents<'_>) -> Result<u64> {
        self.prepare()?;
        self.open.expect_closed(&self.paths, name)?;
        let place = self.find(name)?;
        if let Found::Here { .. } = place {
            return Err(Error::FileExists(self.paths.data(), shown(name)));
        }
        let inode = self.put_at(place, name, kind, mtime, contents)?;
        self.settle()?;
        Ok(inode.size)
    }

    /// The same where the index was searched already; the caller settles. Returns the inode.
    pub(crate) fn put_at<T>(
        &mut self,
        place: Found<T>,
        name: &[u8],
        kind: char,
        mtime: Option<i64>,
        contents: Contents<'_>,
    ) -> Result<Inode> {
        let mut inode = self.new_inode(name, kind, mtime)?;
        if let Contents::Bytes(bytes @ [_, ..]) = contents {
            inode.pointers.push(inode.ptr + inode.entry_bytes());
            inode.size = bytes.len() as u64;
        }
        self.add_inode(&inode, place)?;
        let key = FsKey::Data { file_id: inode.file_id, offset: 0 }.encode();
        let stored = match contents {
            Contents::Bytes([]) => Ok(()),
            Contents::Bytes(bytes) => self.data.append(&key, bytes).map(|_| ()),
            Contents::Reader(reader, what) => self.data.append_from(&key, reader, what).and_then(|(ptr, len)| {
                if len == 0 {
                    self.data.uncount(ptr, 1);
                    return Ok(());
                }
                inode.pointers.push(ptr);
                inode.size = len;
                // It may be in the file by now, though no reader was told of it.
                self.data.write_value(inode.ptr, 0, &inode.encode())
            }),
        };
        if let Err(e) = stored {
            self.take_back(&inode)?;
            return Err(e);
        }
        self.added(&inode)?;
        Ok(inode)
    }

    /// Takes back an inode whose data could not be stored: it points to nothing.
    fn take_back(&mut self, inode: &Inode) -> Result<()> {
        let with_data = self.data.end() > inode.ptr + inode.entry_bytes();
        self.data.uncount(inode.ptr, 1 + i64::from(with_data));
        self.itot = self.itot.saturating_sub(signed(inode.entry_bytes()));
        if let Found::Here { cell, .. } = self.index.search(inode.hash, |p| Ok((p == inode.ptr).then_some(())))? {
            self.index.clear(cell)?;
        }
        Ok(())
    }

    /// An inode that is not stored yet, as the next entry of the data file.
    fn new_inode(&mut self, name: &[u8], kind: char, mtime: Option<i64>) -> Result<Inode> {
        self.expect_name(name)?;
        let kind = u8::try_from(kind).ok().filter(u8::is_ascii_graphic);
        let kind = kind.ok_or_else(|| Error::refused(&self.paths.data(), "a file type is one printable character"))?;
        let mtime = self.new_mtime(mtime)?;
        let ptr = self.data.end();
        // Room for one pointer from the start, or the first data entry would need another inode.
        let area = Inode::area_for(self.isz, 1, name.len());
        let name = name.to_vec();
        let (deleted, size, pointers) = (false, 0, Vec::new());
        Ok(Inode { ptr, file_id: ptr, hash: h64(&name), deleted, kind, mtime, size, area, name, pointers })
    }

    /// The mtime of a new file. In an append-only filesys times never go back.
    fn new_mtime(&mut self, wanted: Option<i64>) -> Result<i64> {
        let now = self.settings.clock.seconds();
        if !self.append_only {
            return Ok(wanted.unwrap_or(now));
        }
        match (wanted, self.find_last_mtime()?) {
            (Some(wanted), Some(last)) if wanted < last => {
                Err(self.restricted("an mtime before that of the last file"))
            }
            (Some(wanted), _) => Ok(wanted),
            (None, last) => Ok(last.map_or(now, |last| now.max(last))),
        }
    }

    /// The mtime of the last file of an append-only filesys.
    pub(crate) fn find_last_mtime(&mut self) -> Result<Option<i64>> {
        if self.last_mtime.is_none() {
            // Only containers of captures have the variable; elsewhere the files since the last mark are looked at.
            self.last_mtime = match self.data.superblock().value(Name::LASTMT) {
                Some(last) if self.data.end() > self.data.first() => Some(last),
                Some(_) => None,
                None => self.scan_last_mtime()?,
            };
        }
        Ok(self.last_mtime)
    }

    fn scan_last_mtime(&self) -> Result<Option<i64>> {
        let mark = self.time.as_ref().map_or(Ok(None), Timefile::last_mark)?.map(|(_, ptr)| ptr);
        let start = mark.filter(|ptr| self.data.is_pointer(*ptr)).unwrap_or_else(|| self.data.first());
        let mut scan = self.data.scan_from(start).with_deleted().keys_only();
        let mut last = None;
        while let Some((_, _, inode)) = next_inode(&self.data, &mut scan)? {
            last = Some(inode?.mtime);
        }
        Ok(last)
    }

    /// Appends an inode and enters its name.
    fn add_inode<T>(&mut self, inode: &Inode, place: Found<T>) -> Result<()> {
        let ptr = self.data.append(&inode.key(), &inode.encode())?;
        if let Err(e) = self.index.occupy(place, inode.hash, ptr) {
            self.data.uncount(ptr, 1);
            return Err(e);
        }
        self.itot = self.itot.saturating_add(signed(inode.entry_bytes()));
        Ok(())
    }

    /// A new file is stored, as the last one.
    fn added(&mut self, inode: &Inode) -> Result<()> {
        self.dtot = self.dtot.saturating_add(signed(inode.size));
        if let Some(time) = &mut self.time {
            time.note(inode.mtime, inode.ptr)?;
            self.last_mtime = Some(inode.mtime);
            self.data.update_variable(Name::LASTMT, inode.mtime);
        }
        Ok(())
    }

    pub(super) fn restricted(&self, what: &'static str) -> Error {
        Error::AppendOnlyRestriction(self.paths.data(), what)
    }

    /// Whether a file is the last of the data file: then it can grow in place.
    fn is_last(&self, file: &FileHandle) -> bool {
        let end = self.data.end();
        match file.extents.last() {
            Some(extent) => extent.at + extent.len == end,
            None => file.inode.ptr + file.inode.entry_bytes() == end,
        }
    }

    /// Starts a change of a file.
    fn begin_file(&mut self, file: &FileHandle) -> Result<()> {
        self.begin()?;
        if !file.write {
            return Err(Error::ReadOnly(self.paths.data()));
        }
        if self.append_only && !self.is_last(file) {
            return Err(self.restricted("only the last file can be written to"));
        }
        Ok(())
    }

    /// Writes at `offset`; a gap after the end of the file is filled with zeros.
    pub fn write_file(&mut self, file: &mut FileHandle, offset: u64, bytes: &[u8]) -> Result<()> {
        self.begin_file(file)?;
        let end = offset.checked_add(bytes.len() as u64).filter(|n| i64::try_from(*n).is_ok());
        let Some(end) = end else {
            let (len, limit) = (offset, i64::MAX.unsigned_abs());
            return Err(Error::TooLong { path: self.paths.data(), what: "file", len, limit });
        };
        if offset > file.size() {
            self.fill(file, offset)?;
        }
        let (old, new) = bytes.split_at(index(file.capacity().saturating_sub(offset)).min(bytes.len()));
        self.overwrite(file, offset, old)?;
        if !new.is_empty() {
            self.grow(file, new, new.len() as u64)?;
        }
        file.inode.size = file.inode.size.max(end);
        self.changed(file)
    }

    /// Appends to the end of the file.
    pub fn append_file(&mut self, file: &mut FileHandle, bytes: &[u8]) -> Result<()> {
        self.write_file(file, file.size(), bytes)
    }

    /// Makes the file `size` bytes long: cut, or filled with zeros.
    pub fn truncate(&mut self, file: &mut FileHandle, size: u64) -> Result<()> {
        if self.append_only {
            return Err(self.restricted("a file cannot be truncated"));
        }
        self.begin_file(file)?;
        if size > file.size() {
            self.fill(file, size)?;
        }
        file.inode.size = size;
        self.changed(file)
    }

    /// Makes sure that the file can become `capacity` bytes long in one piece. Nothing happens in an append-only filesys.
    pub fn reserve(&mut self, file: &mut FileHandle, capacity: u64) -> Result<()> {
        if self.append_only {
            return Ok(());
        }
        self.begin_file(file)?;
        let more = capacity.saturating_sub(file.capacity());
        if more > 0 {
            self.grow(file, &[], more)?;
            self.write_numbers(&file.inode)?;
        }
        self.settle()
    }

    /// Changes the mtime.
    pub fn set_mtime(&mut self, file: &mut FileHandle, mtime: i64) -> Result<()> {
        if self.append_only {
            return Err(self.restricted("an mtime cannot be changed"));
        }
        self.begin_file(file)?;
        file.inode.mtime = mtime;
        file.keep_mtime = true;
        self.write_numbers(&file.inode)?;
        self.settle()
    }

    /// Fills with zeros from the end of the file to `size`.
    fn fill(&mut self, file: &mut FileHandle, size: u64) -> Result<()> {
        let zeros = vec![0; 64 << 10];
        let mut at = file.size();
        let within = size.min(file.capacity());
        while at < within {
            let (part, _) = zeros.split_at(index(within - at).min(zeros.len()));
            self.overwrite(file, at, part)?;
            at += part.len() as u64;
        }
        let more = size.saturating_sub(file.capacity());
        if more > 0 {
            self.grow(file, &[], more)?;
        }
        file.inode.size = size;
        Ok(())
    }

    fn overwrite(&mut self, file: &FileHandle, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for (at, n) in file.pieces(offset, bytes.len()) {
            let (piece, more) = rest.split_at(n);
            self.data.overwrite_raw(at, piece)?;
            rest = more;
        }
        Ok(())
    }

    /// Adds `more` bytes of capacity, the first of them `bytes`, the rest zeros.
    fn grow(&mut self, file: &mut FileHandle, bytes: &[u8], more: u64) -> Result<()> {
        let end = self.data.end();
        if let Some(extent) = file.extents.last_mut().filter(|e| e.at + e.len == end) {
            let span = self.data.span(extent.ptr)?;
            self.data.extend(&span, bytes, more)?;
            extent.len += more;
            self.dtot = self.dtot.saturating_add(signed(more));
            return Ok(());
        }
        let capacity = file.capacity();
        // Twice as much each time, within reason, so that a file that grows slowly has few parts.
        let spare = if self.append_only { 0 } else { capacity.min(MAX_GROWTH) };
        let len = more.max(spare);
        if !file.inode.fits(file.inode.pointers.len() + 1, file.inode.name.len()) {
            self.replace_inode(file, 1)?;
        }
        let key = FsKey::Data { file_id: file.inode.file_id, offset: capacity }.encode();
        let ptr = self.data.append(&key, bytes)?;
        let rest = len - bytes.len() as u64;
        if rest > 0 {
            let span = self.data.span(ptr)?;
            if let Err(e) = self.data.extend(&span, &[], rest) {
                self.data.uncount(ptr, 1);
                return Err(e);
            }
        }
        let at = ptr + FRAME_BYTES;
        let slot = INODE_HEAD_BYTES + 8 * file.inode.pointers.len() as u64;
        self.data.write_value_late(file.inode.ptr, slot, &ptr.to_be_bytes())?;
        file.inode.pointers.push(ptr);
        file.extents.push(Extent { ptr, start: capacity, len, at });
        self.dtot = self.dtot.saturating_add(signed(len));
        Ok(())
    }

    /// Stores a larger copy of the inode with room for `more` pointers, and lets the name lead to it.
    pub(super) fn replace_inode(&mut self, file: &mut FileHandle, more: u64) -> Result<()> {
        let new = self.store_larger(&file.inode, more)?;
        self.swap_inode(&file.inode, &new)?;
        file.inode = new;
        Ok(())
    }

    /// Appends a copy of `inode` (whose name may have changed) with an area twice as big, or more.
    pub(super) fn store_larger(&mut self, inode: &Inode, more: u64) -> Result<Inode> {
        if self.append_only {
            return Err(self.restricted("it would need a bigger inode"));
        }
        let mut new = inode.clone();
        new.area = Inode::area_for(inode.area.saturating_mul(2), inode.pointers.len() as u64 + more, inode.name.len());
        if new.area > MAX_AREA {
            return Err(Error::TooLong { path: self.paths.data(), what: "inode", len: new.area, limit: MAX_AREA });
        }
        new.ptr = self.data.append(&new.key(), &new.encode())?;
        Ok(new)
    }

    /// Lets the name lead to the new inode, and marks the old one deleted.
    fn swap_inode(&mut self, old: &Inode, new: &Inode) -> Result<()> {
        let found = self.index.search(new.hash, |ptr| Ok((ptr == old.ptr).then_some(())))?;
        let Found::Here { cell, .. } = found else { return Err(self.not_found(&old.name)) };
        self.announce(old)?;
        self.index.redirect(cell, new.hash, new.ptr)?;
        self.itot = self.itot.saturating_add(signed(new.entry_bytes() - old.entry_bytes()));
        self.retire(old.ptr)
    }

    /// Marks a replaced inode deleted, unless only the index says which inode counts.
    pub(super) fn retire(&mut self, old: u64) -> Result<()> {
        if self.have_dups { Ok(()) } else { self.data.retire(old) }
    }

    /// To be called before an inode makes room for another one: readers that have seen it must find that one.
    pub(super) fn announce(&mut self, old: &Inode) -> Result<()> {
        if self.data.is_announced(old.ptr) { self.data.flush() } else { Ok(()) }
    }

    /// Stores size and time after a change, and completes the operation.
    fn changed(&mut self, file: &mut FileHandle) -> Result<()> {
        if !file.keep_mtime {
            file.inode.mtime = self.settings.clock.seconds();
        }
        self.write_numbers(&file.inode)?;
        self.settle()
    }

    fn write_numbers(&mut self, inode: &Inode) -> Result<()> {
        self.data.write_value_late(inode.ptr, NUMBERS_AT, &inode.numbers())
    }
}
