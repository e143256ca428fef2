//! The door to ingest: URLs and times, straight from the names.

use super::{Pages, name};
use crate::{Error, Result};
use std::collections::BTreeMap;
use trawl_model::{Advice, DoorError, Items, SourceIdentity, Split, UrlRecord, UrlSource};

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
