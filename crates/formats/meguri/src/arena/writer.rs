//! Filling an arena, frame by frame.

use super::{FrameTable, MAX_TEXT, put_entry, too_long};
use crate::codec::{Codec, Packer};
use crate::encoding::FastHash;
use crate::error::{Error, Result};
use crate::settings::{ArenaFrames, Settings};
use std::collections::HashMap;
use trawl_io::{Spool, SpoolWriter};

/// Takes texts and gives references.
pub(crate) struct ArenaWriter {
    packer: Packer,
    frame_bytes: usize,
    frame: Vec<u8>,
    /// Arena offset of the frame.
    start: u64,
    /// Texts of this frame that may come again: hash of the text to its reference.
    known: HashMap<u64, u64, FastHash>,
    stored: SpoolWriter,
    table: FrameTable,
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
        let mut writer = ArenaWriter {
            packer: Packer::new(settings.codec, settings.level, true)?,
            frame_bytes: settings.frame_bytes as usize,
            frame: Vec::with_capacity(settings.frame_bytes as usize + 1024),
            start: 0,
            known: HashMap::default(),
            stored,
            table: FrameTable::default(),
        };
        // Offset 0 means "no text", so no text may begin there.
        writer.frame.push(0);
        Ok(writer)
    }

    /// Arena bytes so far.
    pub fn len(&self) -> u64 {
        self.start + self.frame.len() as u64
    }

    /// Stores a text that no other row has.
    pub fn add(&mut self, text: &[u8]) -> Result<u64> {
        if text.len() > MAX_TEXT {
            return Err(too_long(text.len()));
        }
        let reference = self.len();
        put_entry(&mut self.frame, text);
        Ok(reference)
    }

    /// As [`ArenaWriter::add`], once for all rows of a frame that have the text. No text has reference 0.
    pub fn share(&mut self, text: &[u8]) -> Result<u64> {
        if text.is_empty() {
            return Ok(0);
        }
        let hash = xxhash_rust::xxh3::xxh3_64(text);
        if let Some(&known) = self.known.get(&hash)
            && super::entry_at(&self.frame, known - self.start).is_some_and(|at| self.frame.get(at) == Some(text))
        {
            return Ok(known);
        }
        let reference = self.add(text)?;
        self.known.insert(hash, reference);
        Ok(reference)
    }

    /// To be called after the texts of each row: a frame that is full ends here.
    pub fn end_row(&mut self) -> Result<()> {
        if self.frame.len() >= self.frame_bytes { self.end_frame() } else { Ok(()) }
    }

    /// Ends the frame, full or not.
    pub fn end_frame(&mut self) -> Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let frame = std::mem::take(&mut self.frame);
        let len = frame.len();
        let (_, stored) = self.packer.pack(frame)?;
        self.stored.put(&stored)?;
        let size = |n: usize| u32::try_from(n).map_err(|_| Error::Refused("an arena frame of 4 GiB".into()));
        self.table.push(size(len)?, size(stored.len())?);
        self.start += len as u64;
        self.frame = Vec::with_capacity(self.frame_bytes + 1024);
        self.known.clear();
        if self.start > u64::from(u32::MAX) {
            let limit = "texts of 4 GiB or more do not fit one file: split it by host keys";
            return Err(Error::Refused(limit.to_owned()));
        }
        Ok(())
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
