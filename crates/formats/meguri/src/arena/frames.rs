//! The seek table: which frame has which bytes.

use super::broken;
use crate::error::Malformed;
use crate::settings::ArenaFrames;
use trawl_io::crc::crc32c;
use trawl_io::slice::{SliceError, SliceReader};

const SKIPPABLE: u32 = 0x184D_2A5E;
const SEEKABLE: u32 = 0x8F92_EAB1;
const FRAME_LEN: usize = 8;
const FOOT_LEN: usize = 9;
/// The most a frame may decompress to: a whole frame and the longest text.
const MAX_FRAME: u32 = 64 << 20;

/// One frame, by its places in the arena and among the stored bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// First arena byte.
    pub start: u64,
    pub len: u32,
    /// First stored byte, from the start of the payload.
    pub stored_at: u64,
    pub stored_len: u32,
}

/// All frames in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrameTable {
    pub frames: Vec<Frame>,
}

impl FrameTable {
    pub fn push(&mut self, len: u32, stored_len: u32) {
        let end =
            self.frames.last().map_or((0, 0), |f| (f.start + u64::from(f.len), f.stored_at + u64::from(f.stored_len)));
        self.frames.push(Frame { start: end.0, len, stored_at: end.1, stored_len });
    }

    /// Arena bytes in all frames.
    pub fn arena_len(&self) -> u64 {
        self.frames.last().map_or(0, |f| f.start + u64::from(f.len))
    }

    /// Stored bytes of all frames.
    pub fn stored_len(&self) -> u64 {
        self.frames.last().map_or(0, |f| f.stored_at + u64::from(f.stored_len))
    }

    /// The frame that has an arena byte.
    pub fn find(&self, at: u64) -> Option<(usize, Frame)> {
        let number = self.frames.partition_point(|f| f.start <= at).checked_sub(1)?;
        let frame = self.frames.get(number)?;
        (at < frame.start + u64::from(frame.len)).then_some((number, *frame))
    }

    /// Bytes of a table of `frames`.
    pub fn encoded_len(frames: u32) -> u64 {
        8 + FRAME_LEN as u64 * u64::from(frames) + FOOT_LEN as u64
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&SKIPPABLE.to_le_bytes());
        let rest = self.frames.len() * FRAME_LEN + FOOT_LEN;
        out.extend_from_slice(&(rest as u32).to_le_bytes());
        for frame in &self.frames {
            out.extend_from_slice(&frame.stored_len.to_le_bytes());
            out.extend_from_slice(&frame.len.to_le_bytes());
        }
        out.extend_from_slice(&(self.frames.len() as u32).to_le_bytes());
        out.push(0);
        out.extend_from_slice(&SEEKABLE.to_le_bytes());
        out
    }

    /// What the metadata says of a table.
    pub fn facts(&self) -> ArenaFrames {
        ArenaFrames { count: self.frames.len() as u32, crc: crc32c(&self.encode()) }
    }

    /// Reads a table and checks it against the metadata and the sizes of the arena's page.
    pub fn decode(bytes: &[u8], facts: ArenaFrames, arena_len: u64, stored_len: u64) -> Result<FrameTable, Malformed> {
        let crc = crc32c(bytes);
        if crc != facts.crc {
            return Err(broken(format!("crc32c {crc:08x} where {:08x} is stated", facts.crc)));
        }
        let table = fields(bytes, facts.count)?;
        if let Some(frame) = table.frames.iter().find(|f| f.len > MAX_FRAME) {
            return Err(broken(format!("a frame of {} bytes, limit {MAX_FRAME}", frame.len)));
        }
        let found = (table.arena_len(), table.stored_len() + bytes.len() as u64);
        if found != (arena_len, stored_len) {
            return Err(broken(format!("{found:?} bytes in frames where the page has {:?}", (arena_len, stored_len))));
        }
        Ok(table)
    }
}

fn fields(bytes: &[u8], count: u32) -> Result<FrameTable, SliceError> {
    let mut r = SliceReader::new(bytes);
    let mut table = FrameTable::default();
    r.u64("a skippable frame")?;
    for _ in 0..count {
        let (stored_len, len) = (r.u32("a frame's size")?, r.u32("a frame's content")?);
        table.push(len, stored_len);
    }
    Ok(table)
}
