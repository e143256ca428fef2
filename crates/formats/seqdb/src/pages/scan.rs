//! All captures, in disk order: the order they were appended in.

use super::name::{self, Form};
use super::{EventReader, Pages};
use crate::Result;
use crate::filesys::inode::{FsKey, Inode};
use crate::kvseq::Scan;
use trawl_model::{Place, UnixMillis};

/// A capture of a [`PageScan`], valid until the next one.
#[derive(Debug)]
pub struct PageRef<'a> {
    /// Its URL; empty for records that have none.
    pub url: &'a [u8],
    /// Its time.
    pub time: UnixMillis,
    /// How the event is stored.
    pub form: Form,
    /// Bytes of the event.
    pub len: u64,
    /// The event, unless it is very large: then see [`PageRef::reader`].
    pub event: Option<&'a [u8]>,
    /// Where the event's bytes lie.
    pub place: Place,
    name: &'a [u8],
    pages: &'a Pages,
}

impl PageRef<'_> {
    /// Reads the event part by part.
    pub fn reader(&self) -> Result<Option<EventReader<'_>>> {
        self.pages.reader_named(self.name)
    }
}

/// An iteration over captures.
#[derive(Debug)]
pub struct PageScan<'a> {
    pages: &'a Pages,
    scan: Scan<'a>,
    since: Option<i64>,
    /// Captures whose inodes lie at or after this are not given.
    until: u64,
    inode: Option<Inode>,
    /// Contents that do not lie behind their inode.
    apart: Vec<u8>,
}

impl Pages {
    /// All captures, in disk order.
    pub fn scan(&self) -> PageScan<'_> {
        self.scan_between(self.fs.data().first(), u64::MAX)
    }

    /// Captures appended when the container's time was `seconds` or later.
    pub fn scan_since(&self, seconds: i64) -> Result<PageScan<'_>> {
        let start = self.fs.start_for(seconds)?;
        let mut scan = self.scan_between(start.unwrap_or_else(|| self.fs.data().first()), u64::MAX);
        scan.since = Some(seconds);
        Ok(scan)
    }

    pub(super) fn scan_between(&self, start: u64, until: u64) -> PageScan<'_> {
        let scan = self.fs.data().scan_from(start);
        PageScan { pages: self, scan, since: None, until, inode: None, apart: Vec::new() }
    }
}

impl PageScan<'_> {
    /// The next capture; `None` at the end.
    pub fn next_page(&mut self) -> Result<Option<PageRef<'_>>> {
        let fs = &self.pages.fs;
        let (inode, url_len, time) = loop {
            if self.scan.position() >= self.until {
                return Ok(None);
            }
            let Some(item) = self.scan.next_entry()? else { return Ok(None) };
            if !matches!(FsKey::decode(item.key), Some(FsKey::Inode { .. })) {
                continue;
            }
            let inode = match item.value {
                Some(value) => Inode::decode(item.ptr, item.deleted, item.key, value)
                    .map_err(|found| crate::Error::corrupt(fs.data().path(), item.ptr, "an inode", found))?,
                None => Inode::load(fs.data(), item.ptr)?,
            };
            let wanted = self.since.is_none_or(|since| inode.mtime >= since);
            let Some(parts) = name::split(&inode.name).filter(|_| wanted) else { continue };
            if fs.is_alive(&inode)? {
                let (url_len, time) = (parts.url.len(), parts.time);
                break (inode, url_len, time);
            }
        };
        let place = self.pages.event_place(&inode);
        let behind = inode.pointers.len() == 1 && inode.pointers.first() == Some(&self.scan.position());
        let key = FsKey::Data { file_id: inode.file_id, offset: 0 }.encode();
        let (size, len) = (inode.size, usize::try_from(inode.size).unwrap_or(usize::MAX));
        let inode = self.inode.insert(inode);
        let event = if size == 0 {
            Some(&[][..])
        } else if behind {
            // Somebody may delete the capture between its two entries.
            match self.scan.next_entry_at_all()? {
                Some(item) if item.key == key => item.value.and_then(|value| value.get(..len)),
                _ => None,
            }
        } else if size <= 1 << 20 {
            self.apart = fs.read_handle(&fs.handle_of(inode.clone())?)?;
            Some(&self.apart[..])
        } else {
            None
        };
        Ok(Some(PageRef {
            url: inode.name.get(..url_len).unwrap_or_default(),
            time,
            form: Form::from_type(char::from(inode.kind)),
            len: size,
            event,
            place,
            name: &inode.name,
            pages: self.pages,
        }))
    }
}
