//! Writes seekable zstd.

use super::{DESCRIPTOR, ENTRY, FOOTER, FOOTER_MAGIC, MAX_FRAME, MAX_FRAMES, SIDE_MAGIC, TABLE_MAGIC, checksum};
use crate::{Error, Result};
use std::io::Write;
use trawl_io::crc::crc32c;
use xxhash_rust::xxh3::xxh3_64;

/// Compresses into frames. Bytes are cut where a frame is full, or where [`SeekableWriter::cut`] says.
pub struct SeekableWriter<W: Write> {
    out: W,
    what: &'static str,
    compressor: zstd::bulk::Compressor<'static>,
    frame: Vec<u8>,
    frame_limit: usize,
    entries: Vec<u8>,
    frames: u64,
    /// Bytes of the frames that are done, decompressed.
    content_len: u64,
}

impl<W: Write> SeekableWriter<W> {
    /// Writes to `out`; frames decompress to at most `frame_limit` bytes, itself at most [`MAX_FRAME`].
    pub fn new(out: W, what: &'static str, level: i32, frame_limit: usize) -> Result<Self> {
        let compressor = zstd::bulk::Compressor::new(level).map_err(Error::write(what))?;
        let frame_limit = frame_limit.clamp(1, MAX_FRAME);
        Ok(Self {
            out,
            what,
            compressor,
            frame: Vec::with_capacity(frame_limit),
            frame_limit,
            entries: Vec::new(),
            frames: 0,
            content_len: 0,
        })
    }

    /// Appends bytes, across as many frames as it takes.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let room = self.frame_limit.saturating_sub(self.frame.len());
            let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.frame.extend_from_slice(now);
            bytes = later;
            if self.frame.len() >= self.frame_limit {
                self.cut()?;
            }
        }
        Ok(())
    }

    /// The offset, decompressed, at which the next byte goes.
    pub fn position(&self) -> u64 {
        self.content_len + self.frame.len() as u64
    }

    /// Whether the next byte starts a frame.
    pub fn at_frame_start(&self) -> bool {
        self.frame.is_empty()
    }

    /// Whether `len` more bytes fit into the current frame.
    pub fn fits(&self, len: usize) -> bool {
        self.frame.len() + len <= self.frame_limit
    }

    /// Ends the current frame, if it holds anything.
    pub fn cut(&mut self) -> Result<()> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let compressed = self.compressor.compress(&self.frame).map_err(Error::write(self.what))?;
        self.entry(compressed.len(), self.frame.len(), checksum(&self.frame))?;
        self.emit(&compressed)?;
        self.content_len += self.frame.len() as u64;
        self.frame.clear();
        Ok(())
    }

    /// Ends the file, with side information of the caller's where there is any. Gives also the xxh3_64 of the seek table's
    /// payload, which stands for all frames, as the table has a checksum of each.
    pub fn finish(mut self, side: Option<&[u8]>) -> Result<(W, u64)> {
        self.cut()?;
        if let Some(side) = side {
            let mut frame = skippable(SIDE_MAGIC, side.len() + 4, self.what)?;
            frame.extend_from_slice(side);
            frame.extend_from_slice(&crc32c(side).to_le_bytes());
            self.entry(frame.len(), 0, checksum(b""))?;
            self.emit(&frame)?;
        }
        let mut table = skippable(TABLE_MAGIC, self.entries.len() + FOOTER, self.what)?;
        let payload_at = table.len();
        table.append(&mut self.entries);
        let count = u32::try_from(self.frames).map_err(|_| too_many(self.what, self.frames))?;
        table.extend_from_slice(&count.to_le_bytes());
        table.push(DESCRIPTOR);
        table.extend_from_slice(&FOOTER_MAGIC.to_le_bytes());
        let table_hash = xxh3_64(table.get(payload_at..).unwrap_or_default());
        self.emit(&table)?;
        Ok((self.out, table_hash))
    }

    fn entry(&mut self, compressed: usize, content: usize, checksum: u32) -> Result<()> {
        self.frames += 1;
        if self.frames > MAX_FRAMES {
            return Err(too_many(self.what, self.frames));
        }
        for size in [compressed, content] {
            let size = u32::try_from(size).map_err(|_| too_many(self.what, size as u64))?;
            self.entries.extend_from_slice(&size.to_le_bytes());
        }
        self.entries.extend_from_slice(&checksum.to_le_bytes());
        debug_assert!(self.entries.len() as u64 == self.frames * ENTRY as u64);
        Ok(())
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(Error::write(self.what))
    }
}

fn skippable(magic: u32, len: usize, what: &'static str) -> Result<Vec<u8>> {
    let len = u32::try_from(len).map_err(|_| too_many(what, len as u64))?;
    let mut frame = magic.to_le_bytes().to_vec();
    frame.extend_from_slice(&len.to_le_bytes());
    Ok(frame)
}

fn too_many(what: &'static str, found: u64) -> Error {
    Error::Input { at: what.into(), expected: "a table within the limits of the framing", found: found.to_string() }
}
