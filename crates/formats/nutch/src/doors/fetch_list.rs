//! What a segment's list of URLs to fetch says of each, for conversions: a capture has no other place for it.

use super::layout::Layout;
use crate::Result;
use crate::db::entry;
use crate::segment::SegmentPart;
use crate::types::{CrawlDatum, whole};
use md5::Digest as _;
use std::collections::HashMap;
use trawl_hadoop::seq::OpenOptions;

/// Memory for entries of a list. Nutch lists some hundred thousand URLs in a segment; entries beyond are counted as left out.
const MAX_BYTES: usize = 256 << 20;
/// Memory of an entry beside its bytes.
const ENTRY_BYTES: usize = 64;

/// What a list says of a URL.
#[derive(Debug)]
pub(super) enum Listed<'a> {
    /// That was not looked up, or the list is not known as a whole.
    Unknown,
    /// The URL is not on the list.
    Absent,
    Entry(CrawlDatum<'a>),
}

/// Counts the memory of entries, so that all who read a list leave out the same ones.
#[derive(Debug, Default)]
pub(super) struct Room(usize);

impl Room {
    pub fn takes(&mut self, value: &[u8]) -> bool {
        let more = value.len() + ENTRY_BYTES;
        let fits = self.0 + more <= MAX_BYTES;
        if fits {
            self.0 += more;
        }
        fits
    }
}

/// The entries of a list by a digest of their URLs: a list is not sorted.
#[derive(Debug, Default)]
pub(super) struct FetchList {
    entries: HashMap<[u8; 16], Box<[u8]>>,
    /// Entries are missing, for want of memory or because they are damaged.
    incomplete: bool,
}

impl FetchList {
    /// The list of a segment; `None` if it has none.
    pub fn read(layout: &Layout, options: &OpenOptions) -> Result<Option<Self>> {
        let dir = layout.root.join(SegmentPart::CrawlGenerate.name());
        let files: Vec<_> = layout.files.iter().filter(|file| file.path.starts_with(&dir)).collect();
        if files.is_empty() {
            return Ok(None);
        }
        let (mut list, mut room) = (FetchList::default(), Room::default());
        for file in files {
            // Damage is counted with what is left out of a conversion.
            let mut reader = match options.open(&file.path) {
                Ok(reader) => reader,
                Err(error) if super::left_out::is_lost(&error) => {
                    list.incomplete = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            loop {
                match reader.advance().and_then(|found| if found { entry(&mut reader).map(Some) } else { Ok(None) }) {
                    Ok(Some(record)) if room.takes(record.value) => {
                        drop(list.entries.insert(digest(record.key.as_bytes()), record.value.into()));
                    }
                    Ok(Some(_)) => list.incomplete = true,
                    Ok(None) => break,
                    Err(error) if error.is_damage() => {
                        reader.resync()?;
                        list.incomplete = true;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(Some(list))
    }

    pub fn get(&self, url: &[u8]) -> Listed<'_> {
        match self.entries.get(&digest(url)).map(|value| whole(value, CrawlDatum::decode)) {
            Some(Ok(datum)) => Listed::Entry(datum),
            None if !self.incomplete => Listed::Absent,
            _ => Listed::Unknown,
        }
    }
}

pub(super) fn digest(url: &[u8]) -> [u8; 16] {
    md5::Md5::digest(url).into()
}
