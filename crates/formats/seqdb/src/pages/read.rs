//! One capture, in one read where it fits.
//!
//! How many bytes hold nearly every capture is learned while captures are appended and kept in the superblock of the data
//! file, so that a reader gets inode and contents with one read and does not ask for much more than that.

use super::name::{self, Form};
use super::{Pages, Urls};
use crate::design::{FS_KEY_BYTES, PAGE_READ_DOWN, PAGE_READ_MAX, PAGE_READ_MIN, PAGE_READ_START, PAGE_READ_UP};
use crate::filesys::FileReader;
use crate::filesys::inode::{FRAME_BYTES, FsKey, Inode};
use crate::num::{index, signed};
use crate::superblock::Name;
use crate::{Error, Keys, Result, h64};
use trawl_model::{Place, UnixMillis};

/// A capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its URL; empty for records that have none.
    pub url: Vec<u8>,
    /// Its time.
    pub time: UnixMillis,
    /// How the event is stored.
    pub form: Form,
    /// The event: its WARC records.
    pub event: Vec<u8>,
    /// Where the event's bytes lie.
    pub place: Place,
}

impl Pages {
    /// The newest capture of `url`: one read of the index, one of the data file. A search that goes on for more than 64
    /// cells, or around the end of the table, takes another look at the index; a capture that is larger than nearly all
    /// takes a second read.
    pub fn newest(&self, url: &[u8]) -> Result<Option<Page>> {
        if self.urls.is_astray() {
            return self.newest_in_data(url);
        }
        let mut deleted = false;
        let found = self.urls.search(h64(url), |ptr| {
            let page = self.page_if(ptr, |parts| parts.url == url)?;
            deleted |= page.is_none() && self.is_deleted(ptr, url)?;
            Ok(page)
        })?;
        let found = found.what();
        // Somebody deletes captures by hand; an older one counts.
        if found.is_none() && deleted { self.newest_in_data(url) } else { Ok(found) }
    }

    /// Whether the capture whose inode is at `ptr` is one of `url` that was deleted.
    fn is_deleted(&self, ptr: u64, url: &[u8]) -> Result<bool> {
        let data = self.fs.data();
        Ok(data.reaches(ptr)? && Urls(data).has_key(ptr, url)? && data.is_deleted(ptr)?)
    }

    /// The newest capture of `url` for a reader beside somebody who repairs: it has no index to ask.
    #[cold]
    fn newest_in_data(&self, url: &[u8]) -> Result<Option<Page>> {
        let mut scan = self.fs.files();
        let mut newest = None;
        while let Some(inode) = scan.next_inode()? {
            let time = name::split(&inode.name).filter(|parts| parts.url == url).map(|parts| parts.time);
            if let Some(time) = time.filter(|time| newest.is_none_or(|(other, _)| *time >= other)) {
                newest = Some((time, inode.ptr));
            }
        }
        newest.map_or(Ok(None), |(_, ptr)| self.page_if(ptr, |parts| parts.url == url))
    }

    /// The capture of `url` at `time`.
    pub fn get(&self, url: &[u8], time: UnixMillis) -> Result<Option<Page>> {
        let name = name::join(url, time, 0);
        let wanted = |parts: name::Parts<'_>| parts.url == url && parts.time == time && parts.nth == 0;
        if self.fs.index().is_astray() {
            return self.fs.find(&name)?.what().map_or(Ok(None), |inode| self.page_if(inode.ptr, wanted));
        }
        Ok(self.fs.index().search(h64(&name), |ptr| self.page_if(ptr, wanted))?.what())
    }

    /// The capture whose inode is at `ptr`, if it is the one wanted. Inode and contents in one read where they fit.
    fn page_if(&self, ptr: u64, wanted: impl Fn(name::Parts<'_>) -> bool) -> Result<Option<Page>> {
        let data = self.fs.data();
        if !data.reaches(ptr)? {
            return Ok(None);
        }
        let mut buf = vec![0; self.read_bytes()];
        let head = data.head(ptr, &mut buf)?;
        let inode = Inode::of_head(data, &head)?;
        let Some(parts) = name::split(&inode.name).filter(|parts| !inode.deleted && wanted(*parts)) else {
            return Ok(None);
        };
        let (url, time) = (parts.url.to_vec(), parts.time);
        let form = Form::from_type(char::from(inode.kind));
        let place = self.event_place(&inode);
        // The usual case: one data entry, right behind.
        let (read, behind, len) = (head.len(), head.span.end, inode.size);
        let key = FsKey::Data { file_id: inode.file_id, offset: 0 }.encode();
        let adjacent = inode.pointers == [behind]
            && head.slice(behind, 2) == Some(&[0, FS_KEY_BYTES as u8])
            && head.slice(behind + 2, FS_KEY_BYTES as u64) == Some(&key);
        let start = behind + FRAME_BYTES;
        let within = start.checked_add(len).is_some_and(|end| end <= data.end());
        let event = if adjacent && within && len <= self.fs.settings.max_value_bytes {
            // What was not read yet is read now, behind what was.
            buf.truncate(read);
            buf.drain(..index(start - ptr).min(read));
            let have = buf.len();
            buf.resize(index(len), 0);
            if let Some(missing) = buf.get_mut(have..).filter(|missing| !missing.is_empty()) {
                data.read_raw(start + have as u64, missing)?;
            }
            buf
        } else {
            self.fs.read_handle(&self.fs.handle_of(inode)?)?
        };
        Ok(Some(Page { url, time, form, event, place }))
    }

    /// Where an event's bytes lie, if they are in one piece; else where its inode is.
    pub(super) fn event_place(&self, inode: &Inode) -> Place {
        match inode.pointers[..] {
            [ptr] => Place::new(self.file.clone(), ptr + FRAME_BYTES, inode.size),
            _ => Place::new(self.file.clone(), inode.ptr, inode.entry_bytes()),
        }
    }

    /// Reads a capture of any size, part by part.
    pub fn reader(&self, url: &[u8], time: UnixMillis) -> Result<Option<EventReader<'_>>> {
        match self.fs.open_file(&name::join(url, time, 0), "") {
            Ok(file) => Ok(Some(self.fs.reader(file))),
            Err(Error::FileNotFound { .. }) => Ok(None),
            Err(e) => Err(e),
        }
    }
}

/// Reads the bytes of one event.
pub type EventReader<'a> = FileReader<'a>;

/// Reads are multiples of this.
const BLOCK: u64 = 4096;

/// The estimate after a capture of so many bytes. It needs no memory but itself, so it survives a restart.
pub(super) fn learn(hint: u64, bytes: u64) -> u64 {
    let next = if bytes > hint { hint + hint / PAGE_READ_UP } else { hint - hint / PAGE_READ_DOWN };
    next.clamp(PAGE_READ_MIN, PAGE_READ_MAX)
}

impl Pages {
    fn hint(&self) -> u64 {
        let stored = self.fs.data().superblock().value(Name::PGREAD);
        stored.map_or(PAGE_READ_START, |hint| hint.max(0).cast_unsigned()).clamp(PAGE_READ_MIN, PAGE_READ_MAX)
    }

    /// Bytes to read at once for a capture: the estimate and a bit, as it moves around what it estimates.
    pub(super) fn read_bytes(&self) -> usize {
        let hint = self.hint();
        index((hint + hint / 8).next_multiple_of(BLOCK))
    }

    /// A capture takes so many bytes, its inode included.
    pub(super) fn learn(&mut self, bytes: u64) {
        let next = learn(self.hint(), bytes);
        self.fs.data.update_variable(Name::PGREAD, signed(next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes spread over two orders of magnitude, as pages are.
    #[test]
    fn it_settles_where_nearly_all_fit() {
        let mut seed = 1u64;
        let mut size = || {
            let mut sum = 0.0;
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                sum += (seed >> 40) as f64 / (1u64 << 24) as f64;
            }
            (10_000.0 * (sum - 6.0).exp()) as u64
        };
        let mut hint = PAGE_READ_START;
        for _ in 0..20_000 {
            hint = learn(hint, size());
        }
        let missed = (0..20_000).filter(|_| size() > hint + hint / 8).count();
        assert!((10..200).contains(&missed), "{missed} of 20000 do not fit into {hint}");
        for (constant, low, high) in [(1, PAGE_READ_MIN, PAGE_READ_MIN), (u64::MAX, PAGE_READ_MAX, PAGE_READ_MAX)] {
            hint = (0..40_000).fold(hint, |hint, _| learn(hint, constant));
            assert!((low..=high).contains(&hint), "{hint}");
        }
    }
}
