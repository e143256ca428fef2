//! All captures, in disk order: the order they were appended in; and the door to ingest, URLs and times straight from the
//! names.

use super::name::{self, Form};
use super::{EventReader, Pages};
use crate::filesys::inode::{FsKey, Inode, next_inode};
use crate::kvseq::Scan;
use crate::num::index;
use crate::{Error, Result};
use std::collections::BTreeMap;
use trawl_model::{Advice, DoorError, Items, Place, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};

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
    inode: Option<Inode>,
    /// Contents that do not lie behind their inode.
    apart: Vec<u8>,
}

impl Pages {
    /// All captures, in disk order.
    pub fn scan(&self) -> PageScan<'_> {
        PageScan { pages: self, scan: self.fs.data().scan(), inode: None, apart: Vec::new() }
    }
}

impl PageScan<'_> {
    /// The next capture; `None` at the end.
    pub fn next_page(&mut self) -> Result<Option<PageRef<'_>>> {
        let fs = &self.pages.fs;
        let (inode, url_len, time) = loop {
            let Some((_, _, inode)) = next_inode(fs.data(), &mut self.scan)? else { return Ok(None) };
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
}

impl UrlSource for Pages {
    fn identity(&self) -> SourceIdentity {
        let data = self.fs.data();
        let fsgen = data.superblock().get("FSGEN").unwrap_or(0);
        SourceIdentity {
            uri: data.path().to_string_lossy().into_owned(),
            size: data.end(),
            tag: format!("{fsgen:016x}-{}-{}", self.fs.index().keys(), data.live_entries().unwrap_or(0)),
        }
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let starts = self.boundaries(target_bytes)?;
        let ends = starts.iter().skip(1).copied().chain([self.fs.data().end()]);
        Ok(starts.iter().zip(ends).map(|(&start, end)| Split { start, end }).collect())
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let data = self.fs.data();
        let mut scan = self.fs.files_between(split.start, split.end);
        while let Some(inode) = scan.next_inode()? {
            let Some(parts) = name::split(&inode.name).filter(|parts| !parts.url.is_empty()) else { continue };
            let record = match std::str::from_utf8(parts.url) {
                Ok(url) => Ok(UrlRecord {
                    ts: Some(parts.time),
                    place: Some(self.event_place(&inode)),
                    ..UrlRecord::bare(url)
                }),
                Err(_) => {
                    let error = Error::corrupt(data.path(), inode.ptr, "a URL in UTF-8", "other bytes");
                    Err(DoorError::new(Advice::Skip, error))
                }
            };
            each(inode.ptr, record)?;
        }
        Ok(())
    }
}
