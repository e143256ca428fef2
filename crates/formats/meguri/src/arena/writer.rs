//! Filling an arena, frame by frame.

use super::{FrameTable, MAX_TEXT, put_entry, too_long};
use crate::codec::{Codec, Packer};
use crate::encoding::FastHash;
use crate::error::{Error, Result};
use crate::settings::{ArenaFrames, Settings};
use std::collections::HashMap;
use trawl_io::{Spool, SpoolWriter};

/// Marks a reference into the second frame of the pair that is being filled: its place is known when the first ends.
const OPEN: u64 = 1 << 63;

/// Takes texts and gives references.
///
/// Frames come in pairs: URLs (and the texts of hosts), then all other texts of the same rows. ETags are noise among URLs;
/// apart, both compress better, and the second frame is small and next to the first.
pub(crate) struct ArenaWriter {
    packer: Packer,
    frame_bytes: usize,
    first: Vec<u8>,
    second: Vec<u8>,
    /// Arena offset of the frame.
    start: u64,
    /// Texts of this frame that may come again: hash of the text to its reference.
    known: HashMap<u64, u64, FastHash>,
    stored: SpoolWriter,
    table: FrameTable,
}

/// What became of open references when a frame ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameEnd {
    /// Arena offset of the second frame.
    second: u64,
}

impl FrameEnd {
    /// The reference that a row is to have.
    pub fn close(self, reference: u64) -> u64 {
        if reference & OPEN == 0 { reference } else { (reference & !OPEN) + self.second }
    }
}

/// An arena as it is stored.
#[derive(Debug)]
pub(crate) struct StoredArena {
    pub codec: Codec,
    /// Arena bytes.
    pub len: u64,
    /// What the page holds.
    pub payload: Spool,
    /// Of a seekable one.
    pub frames: Option<ArenaFrames>,
}

impl ArenaWriter {
    pub fn new(settings: &Settings, stored: SpoolWriter) -> Result<Self> {
        Ok(ArenaWriter {
            packer: Packer::new(settings.codec, settings.level, true)?,
            frame_bytes: settings.frame_bytes as usize,
            // Offset 0 means "no text", so no text may begin there.
            first: vec![0],
            second: Vec::new(),
            start: 0,
            known: HashMap::default(),
            stored,
            table: FrameTable::default(),
        })
    }

    /// Arena bytes so far.
    pub fn len(&self) -> u64 {
        self.start + (self.first.len() + self.second.len()) as u64
    }

    /// Stores a URL. No text has reference 0.
    pub fn add(&mut self, text: &[u8]) -> Result<u64> {
        if text.is_empty() {
            return Ok(0);
        }
        if text.len() > MAX_TEXT {
            return Err(too_long(text.len()));
        }
        let reference = self.start + self.first.len() as u64;
        put_entry(&mut self.first, text);
        Ok(reference)
    }

    /// Stores a text of a host, once for all hosts of the frame that have it.
    pub fn share_first(&mut self, text: &[u8]) -> Result<u64> {
        let hash = xxhash_rust::xxh3::xxh3_64(text);
        if let Some(known) =
            self.known.get(&hash).and_then(|known| same(&self.first, known.checked_sub(self.start)?, text))
        {
            return Ok(known + self.start);
        }
        let reference = self.add(text)?;
        self.known.insert(hash, reference);
        Ok(reference)
    }

    /// Stores any other text of a row, once for all rows of the frame that have it. The reference is open until the
    /// frame ends.
    pub fn share(&mut self, text: &[u8]) -> Result<u64> {
        if text.is_empty() {
            return Ok(0);
        }
        if text.len() > MAX_TEXT {
            return Err(too_long(text.len()));
        }
        let hash = xxhash_rust::xxh3::xxh3_64(text);
        if let Some(known) = self.known.get(&hash).and_then(|known| same(&self.second, known & !OPEN, text)) {
            return Ok(known | OPEN);
        }
        let reference = self.second.len() as u64 | OPEN;
        put_entry(&mut self.second, text);
        self.known.insert(hash, reference);
        Ok(reference)
    }

    /// To be called after the texts of each row: frames that are full end here.
    pub fn end_row(&mut self) -> Result<Option<FrameEnd>> {
        // Each of them counted on its own: a frame above 256 KiB gets larger tables in zstd, and compresses 3 % better.
        let full = self.first.len().max(self.second.len()) >= self.frame_bytes;
        if full { self.end_frame().map(Some) } else { Ok(None) }
    }

    /// Ends the pair of frames, full or not.
    pub fn end_frame(&mut self) -> Result<FrameEnd> {
        let end = FrameEnd { second: self.start + self.first.len() as u64 };
        for part in [std::mem::take(&mut self.first), std::mem::take(&mut self.second)] {
            if part.is_empty() {
                continue;
            }
            let len = part.len();
            let (_, stored) = self.packer.pack(part)?;
            self.stored.put(&stored)?;
            let size = |n: usize| u32::try_from(n).map_err(|_| Error::Refused("an arena frame of 4 GiB".into()));
            self.table.push(size(len)?, size(stored.len())?);
            self.start += len as u64;
        }
        self.known.clear();
        if self.start > u64::from(u32::MAX) {
            let limit = "texts of 4 GiB or more do not fit one file: split it by host keys";
            return Err(Error::Refused(limit.to_owned()));
        }
        Ok(end)
    }

    pub fn finish(mut self) -> Result<StoredArena> {
        self.end_frame()?;
        let codec = self.packer.codec();
        let seekable = codec == Codec::Zstd;
        if seekable {
            self.stored.put(&self.table.encode())?;
        }
        let frames = seekable.then(|| self.table.facts());
        Ok(StoredArena { codec, len: self.start, payload: self.stored.finish()?, frames })
    }
}

/// `at`, if the entry there has this text.
fn same(part: &[u8], at: u64, text: &[u8]) -> Option<u64> {
    super::entry_at(part, at).filter(|range| part.get(range.clone()) == Some(text)).map(|_| at)
}

/// Stores an arena that is in memory already: as one frame, or cut where `cuts` (arena bytes of each frame) says.
pub(crate) fn seal_whole(
    arena: &[u8],
    cuts: Option<&[u32]>,
    settings: &Settings,
    mut stored: SpoolWriter,
) -> Result<StoredArena> {
    let mut packer = Packer::new(settings.codec, settings.level, true)?;
    let (codec, len) = (packer.codec(), arena.len() as u64);
    if settings.reference || codec == Codec::None || arena.is_empty() {
        let (_, bytes) = packer.pack(arena.to_vec())?;
        stored.put(&bytes)?;
        return Ok(StoredArena { codec, len, payload: stored.finish()?, frames: None });
    }
    let mut table = FrameTable::default();
    let mut rest = arena;
    let even = [settings.frame_bytes];
    let mut sizes = cuts.unwrap_or_default().iter().chain(even.iter().cycle());
    while !rest.is_empty() {
        // The cycle never ends; a cut of 0 bytes would.
        let size = sizes.find(|n| **n > 0).map_or(rest.len(), |n| *n as usize).min(rest.len());
        let (frame, after) = rest.split_at(size);
        let (_, bytes) = packer.pack(frame.to_vec())?;
        stored.put(&bytes)?;
        table.push(size as u32, bytes.len() as u32);
        rest = after;
    }
    stored.put(&table.encode())?;
    Ok(StoredArena { codec, len, payload: stored.finish()?, frames: Some(table.facts()) })
}
