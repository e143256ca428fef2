//! Writes one shard.

use super::payload::{Ends, encode_near};
use super::{
    DAT_FRAME, DAT_HEADER, DAT_MAGIC, ENTRY, FRAME_ENTRIES, GROUP_BYTES, GROUP_ENTRIES, HEADER, IDX_MAGIC, LEVEL,
    MAX_PAYLOAD, Run, SIDE_MAGIC, SIDE_VERSION, VERSION,
};
use crate::scratch::{Scratch, pour};
use crate::seekable::SeekableWriter;
use crate::{Error, Result};
use std::io::Write;
use trawl_io::SpoolWriter;
use trawl_io::varint::put_uvarint;

const IDX: &str = "postings.idx.zst";
const DAT: &str = "postings.dat.zst";

/// Takes the pairs of a shard in order. Payloads go out at once; the index waits in a spool, as its header has totals.
pub struct ShardWriter<W: Write> {
    dat: SeekableWriter<W>,
    idx: SpoolWriter,
    side: Vec<u8>,
    frame_before: (u64, u64),
    entries: u64,
    last: Option<(u64, u32)>,
    payload: Vec<u8>,
    /// Where the group of payloads at hand begins, and what those in it have told.
    group: u64,
    ends: Ends,
}

impl<W: Write> ShardWriter<W> {
    /// Writes payloads to `dat`.
    pub fn new(dat: W, scratch: &Scratch) -> Result<Self> {
        let mut dat = SeekableWriter::new(dat, DAT, LEVEL, DAT_FRAME)?;
        dat.write(&DAT_MAGIC)?;
        dat.write(&VERSION.to_le_bytes())?;
        let mut side = SIDE_MAGIC.to_vec();
        side.extend_from_slice(&SIDE_VERSION.to_le_bytes());
        let idx = scratch.spool();
        Ok(Self {
            dat,
            idx,
            side,
            frame_before: (0, 0),
            entries: 0,
            last: None,
            payload: Vec::new(),
            group: 0,
            ends: Ends::default(),
        })
    }

    /// Adds the runs of a pair.
    pub fn push(&mut self, slot: u64, dataset_id: u32, runs: &[Run]) -> Result<()> {
        let refuse = |expected, found: String| {
            Err(Error::Input { at: format!("postings of slot {slot}, dataset {dataset_id}"), expected, found })
        };
        if self.last >= Some((slot, dataset_id)) {
            return refuse("pairs in order", format!("after {:?}", self.last));
        }
        self.payload.clear();
        let offset = self.dat.position();
        // The header takes the place of one entry.
        let place = if self.entries + 1 < FRAME_ENTRIES { self.entries } else { (self.entries + 1) % FRAME_ENTRIES };
        if place.is_multiple_of(GROUP_ENTRIES) {
            self.group = offset;
        }
        if place.is_multiple_of(GROUP_ENTRIES) || offset - self.group > GROUP_BYTES {
            self.ends.clear();
        }
        if let Err(e) = encode_near(runs, dataset_id, &mut self.ends, &mut self.payload) {
            return refuse("runs of rows, in order", e.to_string());
        }
        let Some(len) = u32::try_from(self.payload.len()).ok().filter(|len| *len <= MAX_PAYLOAD) else {
            return refuse("a payload of at most 64 MiB", format!("{} bytes", self.payload.len()));
        };
        if self.entries == 0 || (self.entries + 1).is_multiple_of(FRAME_ENTRIES) {
            put_uvarint(&mut self.side, slot - self.frame_before.0);
            put_uvarint(&mut self.side, u64::from(dataset_id));
            put_uvarint(&mut self.side, offset - self.frame_before.1);
            self.frame_before = (slot, offset);
        }
        self.idx.put(&slot.to_le_bytes())?;
        self.idx.put(&dataset_id.to_le_bytes())?;
        self.idx.put(&offset.to_le_bytes())?;
        self.idx.put(&len.to_le_bytes())?;
        self.dat.write(&self.payload)?;
        self.entries += 1;
        self.last = Some((slot, dataset_id));
        Ok(())
    }

    /// Ends the shard: writes the index to `idx`. Gives it back, and what the payloads went to.
    pub fn finish<I: Write>(self, idx: I) -> Result<(I, W)> {
        let frame = usize::try_from(FRAME_ENTRIES * ENTRY).unwrap_or(DAT_FRAME);
        let mut out = SeekableWriter::new(idx, IDX, LEVEL, frame)?;
        let mut header = IDX_MAGIC.to_vec();
        header.extend_from_slice(&VERSION.to_le_bytes());
        header.extend_from_slice(&self.entries.to_le_bytes());
        header.extend_from_slice(&DAT_HEADER.to_le_bytes());
        debug_assert!(header.len() as u64 == HEADER);
        out.write(&header)?;
        pour(self.idx, IDX, |bytes| out.write(bytes))?;
        Ok((out.finish(Some(&self.side))?.0, self.dat.finish(None)?.0))
    }
}
