//! All captures, in disk order: the order they were appended in; and parts of a container that can be read on their own.

use super::name::{self, Form};
use super::{EventReader, Pages};
use crate::Result;
use crate::filesys::inode::{FsKey, Inode, next_inode};
use crate::kvseq::Scan;
use crate::num::index;
use std::collections::BTreeMap;
use trawl_model::{Place, SourceIdentity, Split, UnixMillis};

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
    inode: &'a Inode,
    pages: &'a Pages,
}

impl PageRef<'_> {
    /// Reads the event part by part.
    pub fn reader(&self) -> Result<Option<EventReader<'_>>> {
        let fs = &self.pages.fs;
        Ok(Some(fs.reader(fs.handle_of(self.inode.clone())?)))
    }
}

/// An iteration over captures.
#[derive(Debug)]
pub struct PageScan<'a> {
    pages: &'a Pages,
    scan: Scan<'a>,
    /// Captures whose inodes lie at or after this are not given.
    until: u64,
    inode: Option<Inode>,
    /// Contents that do not lie behind their inode.
    apart: Vec<u8>,
}

impl Pages {
    /// All captures, in disk order.
    pub fn scan(&self) -> PageScan<'_> {
        self.scan_split(Split { start: self.fs.data().first(), end: u64::MAX })
    }

    /// Captures of one of [`Pages::splits`], in disk order.
    pub fn scan_split(&self, split: Split) -> PageScan<'_> {
        let scan = self.fs.data().scan_from(split.start);
        PageScan { pages: self, scan, until: split.end, inode: None, apart: Vec::new() }
    }
}

impl PageScan<'_> {
    /// The next capture; `None` at the end.
    pub fn next_page(&mut self) -> Result<Option<PageRef<'_>>> {
        let fs = &self.pages.fs;
        let (inode, url_len, time) = loop {
            let Some((ptr, _, inode)) = next_inode(fs.data(), &mut self.scan)? else { return Ok(None) };
            if ptr >= self.until {
                return Ok(None);
            }
            let inode = inode?;
            let Some(parts) = name::split(&inode.name) else { continue };
            if fs.is_alive(&inode)? {
                let (url_len, time) = (parts.url.len(), parts.time);
                break (inode, url_len, time);
            }
        };
        let place = self.pages.event_place(&inode);
        let behind = inode.pointers == [self.scan.position()];
        let key = FsKey::Data { file_id: inode.file_id, offset: 0 }.encode();
        let size = inode.size;
        let inode = self.inode.insert(inode);
        let event = if size == 0 {
            Some(&[][..])
        } else if behind {
            // Somebody may delete the capture between its two entries.
            match self.scan.next_entry_at_all()? {
                Some(item) if item.key == key => item.value.and_then(|value| value.get(..index(size))),
                _ => None,
            }
        } else if size <= 1 << 20 {
            self.apart = fs.read_handle(&fs.handle_of(inode.clone())?)?;
            Some(&self.apart[..])
        } else {
            None
        };
        Ok(Some(PageRef {
            url: inode.name.split_at(url_len).0,
            time,
            form: Form::from_type(char::from(inode.kind)),
            len: size,
            event,
            place,
            inode,
            pages: self.pages,
        }))
    }
}

impl Pages {
    /// Places where captures begin, about `target` bytes apart. The index by name knows where inodes are.
    fn boundaries(&self, target: u64) -> Result<Vec<u64>> {
        let first = self.fs.data().first();
        let mut starts: BTreeMap<u64, u64> = BTreeMap::new();
        self.fs.index().for_each(&mut |ptr, _| {
            if self.fs.data().is_pointer(ptr) {
                let slot = (ptr - first) / target.max(1);
                starts.entry(slot).and_modify(|start| *start = ptr.min(*start)).or_insert(ptr);
            }
            Ok(())
        })?;
        Ok(starts.into_values().collect())
    }
    /// Which container it is, and how far it goes.
    pub fn identity(&self) -> SourceIdentity {
        let data = self.fs.data();
        let fsgen = data.superblock().get("FSGEN").unwrap_or(0);
        SourceIdentity {
            uri: data.path().to_string_lossy().into_owned(),
            size: data.end(),
            tag: format!("{fsgen:016x}-{}-{}", self.fs.index().keys(), data.live_entries().unwrap_or(0)),
        }
    }

    /// Parts of about `target_bytes` that together are all captures.
    pub fn splits(&self, target_bytes: u64) -> Result<Vec<Split>> {
        let starts = self.boundaries(target_bytes)?;
        let ends = starts.iter().skip(1).copied().chain([self.fs.data().end()]);
        Ok(starts.iter().zip(ends).map(|(&start, end)| Split { start, end }).collect())
    }
}
