//! Texts by reference.

use super::{FrameTable, entry_at};
use crate::codec::{Codec, crc_of_range, unpack};
use crate::error::{At, Error, Malformed, Result};
use crate::page::{IN_MEMORY, Page};
use crate::settings::ArenaFrames;
use bytes::Bytes;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::varint::{self, MAX_LEN};
use trawl_io::{Fs, ReadAt, SpoolWriter};

/// Frames kept unpacked. Rows in order use a pair: the one of URLs and that of the other texts.
const FRAMES_KEPT: usize = 2;
/// Read at once for a text whose length is not known yet.
const GUESS: u64 = 512;

/// What a reference leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// Reference 0: there is none.
    None,
    /// The text.
    Some(Bytes),
    /// The reference points outside the arena, or at something that is not an entry.
    Dangling,
}

impl Text {
    /// The text; nothing for the other two.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Text::Some(bytes) => bytes,
            Text::None | Text::Dangling => &[],
        }
    }
}

enum Store {
    /// The whole arena.
    Memory(Bytes),
    /// Any bytes that can be read at any place: those of the file (its checksum was checked), or a spool.
    Flat { src: Arc<dyn ReadAt>, start: u64 },
    /// Frames; the newest kept one last.
    Framed { src: Arc<dyn ReadAt>, start: u64, table: FrameTable, kept: Vec<(usize, Bytes)> },
}

/// Reads the texts of one file.
pub struct Arena {
    path: PathBuf,
    offset: u64,
    len: u64,
    store: Store,
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena").field("path", &self.path).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Arena {
    /// An arena without texts.
    pub(crate) fn empty(path: PathBuf) -> Arena {
        Arena { path, offset: 0, len: 0, store: Store::Memory(Bytes::new()) }
    }

    /// Opens the arena of a page. One that is neither small nor seekable is unpacked to a spool in `dir`, after which
    /// texts can be read in any order.
    pub(crate) fn open(
        src: &Arc<dyn ReadAt>,
        page: &Page,
        facts: Option<ArenaFrames>,
        fs: &Arc<dyn Fs>,
        dir: &std::path::Path,
    ) -> Result<Arena> {
        let at = page.at();
        let len = u64::from(page.header.uncompressed_size);
        if u64::from(page.header.num_values) != len {
            return Err(at.corrupt("an arena as long as its page says", page.header.num_values));
        }
        let stored = page.stored_range();
        let codec = page.header.codec(at)?;
        let store = match (codec, facts) {
            (Codec::Zstd, Some(facts)) => {
                let table = FrameTable::encoded_len(facts.count);
                let table_at = stored.end.saturating_sub(table).max(stored.start);
                let bytes = src.read_range(table_at..stored.end)?;
                let here = At::new(at.path, table_at);
                let table =
                    FrameTable::decode(&bytes, facts, len, stored.end - stored.start).map_err(|e| e.at(here))?;
                Store::Framed { src: src.clone(), start: stored.start, table, kept: Vec::new() }
            }
            _ if page.header.uncompressed_size <= IN_MEMORY => Store::Memory(page.payload(IN_MEMORY)?),
            (Codec::None, _) => {
                at.check_crc("page payload", page.header.crc, crc_of_range(&**src, stored.clone())?)?;
                Store::Flat { src: src.clone(), start: stored.start }
            }
            (Codec::Zstd, None) => {
                let mut spool = SpoolWriter::new(fs.clone(), dir, IN_MEMORY as usize);
                let mut source = page.stream()?;
                let mut buf = vec![0; 128 * 1024];
                loop {
                    let n = source.read(&mut buf).map_err(|e| Malformed::new("zstd frames", e).at(at))?;
                    if n == 0 {
                        break;
                    }
                    spool.put(buf.get(..n).unwrap_or_default())?;
                }
                Store::Flat { src: Arc::new(spool.finish()?), start: 0 }
            }
        };
        Ok(Arena { path: at.path.to_owned(), offset: at.offset, len, store })
    }

    /// Arena bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The text at a reference.
    pub fn get(&mut self, reference: u64) -> Result<Text> {
        if reference == 0 {
            return Ok(Text::None);
        }
        if reference >= self.len {
            return Ok(Text::Dangling);
        }
        match &mut self.store {
            Store::Memory(bytes) => Ok(text_in(bytes, reference)),
            Store::Framed { .. } => self.framed(reference),
            Store::Flat { src, start } => {
                let left = self.len - reference;
                let at = *start + reference;
                let head = src.read_range(at..at + left.min(GUESS))?;
                let Ok((length, used)) = varint::uvarint(head.get(..head.len().min(MAX_LEN)).unwrap_or(&head)) else {
                    return Ok(Text::Dangling);
                };
                let whole = length.saturating_add(used as u64);
                if whole > left {
                    return Ok(Text::Dangling);
                }
                let bytes = if whole <= head.len() as u64 { head } else { src.read_range(at..at + whole)? };
                Ok(Text::Some(bytes.slice(used..usize::try_from(whole).unwrap_or(used))))
            }
        }
    }

    fn framed(&mut self, reference: u64) -> Result<Text> {
        let Store::Framed { src, start, table, kept } = &mut self.store else { return Ok(Text::Dangling) };
        let Some((number, frame)) = table.find(reference) else { return Ok(Text::Dangling) };
        let known = kept.iter().position(|(n, _)| *n == number);
        let bytes = match known {
            // Asked for again: it moves to the newest place.
            Some(place) if place + 1 == kept.len() => kept.last().map(|(_, b)| b.clone()).unwrap_or_default(),
            Some(place) => {
                let entry = kept.remove(place);
                let bytes = entry.1.clone();
                kept.push(entry);
                bytes
            }
            None => {
                let at = *start + frame.stored_at;
                let stored = src.read_range(at..at + u64::from(frame.stored_len))?;
                let bad = |e: Malformed| e.at(At::new(&self.path, at));
                let bytes = unpack(Codec::Zstd, stored, frame.len as usize).map_err(bad)?;
                if kept.len() >= FRAMES_KEPT {
                    kept.remove(0);
                }
                kept.push((number, bytes.clone()));
                bytes
            }
        };
        Ok(text_in(&bytes, reference - frame.start))
    }

    /// Arena bytes of each frame, where it has any.
    pub(crate) fn cuts(&self) -> Option<Vec<u32>> {
        match &self.store {
            Store::Framed { table, .. } => Some(table.frames.iter().map(|f| f.len).collect()),
            _ => None,
        }
    }

    /// The whole arena in memory, if it has at most `limit` bytes.
    pub(crate) fn read_all(&mut self, limit: u64) -> Result<Vec<u8>> {
        if self.len > limit {
            return Err(At::new(&self.path, self.offset).over_limit("an arena", self.len, limit));
        }
        let mut all = Vec::new();
        match &self.store {
            Store::Memory(bytes) => all.extend_from_slice(bytes),
            Store::Flat { src, start } => all.extend_from_slice(&src.read_range(*start..*start + self.len)?),
            Store::Framed { src, start, table, .. } => {
                for frame in &table.frames {
                    let at = *start + frame.stored_at;
                    let stored = src.read_range(at..at + u64::from(frame.stored_len))?;
                    let bad = |e: Malformed| -> Error { e.at(At::new(&self.path, at)) };
                    all.extend_from_slice(&unpack(Codec::Zstd, stored, frame.len as usize).map_err(bad)?);
                }
            }
        }
        Ok(all)
    }
}

fn text_in(arena: &Bytes, at: u64) -> Text {
    match entry_at(arena, at) {
        Some(range) => Text::Some(arena.slice(range)),
        None => Text::Dangling,
    }
}
