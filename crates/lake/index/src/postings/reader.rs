//! Reads one shard.

use super::payload::{Ends, decode, decode_near};
use super::{
    DAT_HEADER, DAT_MAGIC, ENTRY, FRAME_ENTRIES, GROUP_BYTES, GROUP_ENTRIES, HEADER, IDX_MAGIC, MAX_PAYLOAD, Run,
    SIDE_MAGIC, VERSION,
};
use crate::blob::read_both;
use crate::cache::{Caches, FileKey};
use crate::seekable::Seekable;
use crate::{Blob, Error, Result};
use bytes::Bytes;
use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use trawl_io::slice::{SliceError, SliceReader};

/// Payload bytes asked for together with an index frame, on the chance that they are the right ones. A frame's payloads
/// are 6 KiB when every pair is one run; more than this means long ones, for which a second round does not matter.
const AHEAD: u64 = 128 * 1024;

/// An open shard: tables in memory, frames read on demand through a cache.
pub struct Shard {
    idx: Seekable,
    dat: Seekable,
    entries: u64,
    /// Version of the payloads: 2 or 3.
    version: u32,
    /// First entry of each frame: slot, dataset, payload offset.
    firsts: Vec<(u64, u32, u64)>,
    keys: [FileKey; 2],
    caches: Arc<Caches>,
}

/// One entry of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub slot: u64,
    pub dataset_id: u32,
    pub offset: u64,
    pub len: u32,
}

impl Shard {
    /// Reads the tables of both files. The headers are checked with the first frame that is read.
    pub fn open(idx: impl Into<Blob>, dat: impl Into<Blob>, caches: Arc<Caches>) -> Result<Self> {
        let (idx, dat) = (Seekable::open(idx)?, Seekable::open(dat)?);
        let name = idx.name().to_owned();
        let body = idx.len().checked_sub(HEADER).filter(|len| len.is_multiple_of(ENTRY));
        let entries = body.ok_or_else(|| Error::corrupt(&name, 0, "a header and whole entries", idx.len()))? / ENTRY;
        if dat.len() < DAT_HEADER {
            return Err(Error::corrupt(dat.name(), 0, "a header of 8 bytes", dat.len()));
        }
        let side = idx.side().ok_or_else(|| Error::corrupt(&name, 0, "first entries of the frames", "none"))?;
        let frames = if entries == 0 { 0 } else { idx.frame_count() };
        let (version, firsts) = parse_side(&name, side, frames)?;
        let in_order = firsts.windows(2).all(|w| matches!(w, [a, b] if (a.0, a.1) < (b.0, b.1) && a.2 <= b.2));
        let whole = (0..idx.frame_count()).all(|i| idx.content_range(i).start == i as u64 * FRAME_ENTRIES * ENTRY);
        if !in_order || !whole || firsts.last().is_some_and(|last| last.2 > dat.len()) {
            return Err(Error::corrupt(&name, 0, "frames of 512 entries, first entries in order", "others"));
        }
        Ok(Self { idx, dat, entries, version, firsts, keys: [FileKey::new(), FileKey::new()], caches })
    }

    /// Pairs in the shard.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The name of the index file, for messages.
    pub fn name(&self) -> &Path {
        self.idx.name()
    }

    /// The runs of a pair: one round of reads in nearly all cases, two at most.
    pub fn runs(&self, slot: u64, dataset_id: u32) -> Result<Option<Vec<Run>>> {
        let Some((group, entry)) = self.find(slot, dataset_id)? else { return Ok(None) };
        self.decode(&group, &entry).map(Some)
    }

    /// Reads and decodes the payload of an entry.
    pub(crate) fn payload(&self, entry: &Entry) -> Result<Vec<Run>> {
        let found = self.find(entry.slot, entry.dataset_id)?.filter(|(_, found)| found == entry);
        let Some((group, entry)) = found else {
            return Err(Error::corrupt(self.name(), 0, "an entry of this shard", format!("{entry:?}")));
        };
        self.decode(&group, &entry)
    }

    /// An entry, and those before it that its payload may refer to.
    fn find(&self, slot: u64, dataset_id: u32) -> Result<Option<(Vec<Entry>, Entry)>> {
        let after = self.firsts.partition_point(|f| (f.0, f.1) <= (slot, dataset_id));
        let Some(frame) = after.checked_sub(1) else { return Ok(None) };
        let bytes = self.index_frame(frame)?;
        let entries = if frame == 0 { bytes.get(HEADER as usize..).unwrap_or_default() } else { &bytes };
        let (entries, _) = entries.as_chunks::<{ ENTRY as usize }>();
        let parse = |bytes: &[u8; ENTRY as usize]| parse_entry(&mut SliceReader::new(bytes)).ok();
        let key = |bytes: &[u8; ENTRY as usize]| parse(bytes).map_or((u64::MAX, u32::MAX), |e| (e.slot, e.dataset_id));
        let Ok(at) = entries.binary_search_by_key(&(slot, dataset_id), key) else { return Ok(None) };
        let Some(entry) = entries.get(at).and_then(parse) else { return Ok(None) };
        let first = at - at % GROUP_ENTRIES as usize;
        let group: Vec<Entry> = match self.version {
            VERSION => entries.get(first..at).unwrap_or_default().iter().filter_map(parse).collect(),
            _ => Vec::new(),
        };
        // So far from the group's first payload it stands alone.
        let near = group.first().is_none_or(|first| entry.offset.saturating_sub(first.offset) <= GROUP_BYTES);
        Ok(Some((if near { group } else { Vec::new() }, entry)))
    }

    /// The payloads from `start` on up to that of an entry.
    fn payloads(&self, start: u64, entry: &Entry, mut content: impl FnMut(usize) -> Result<Bytes>) -> Result<Vec<u8>> {
        let end = entry.offset.checked_add(u64::from(entry.len));
        let Some(end) = end.filter(|end| *end <= self.dat.len() && start >= DAT_HEADER) else {
            let found = format!("{} bytes at {}", entry.len, entry.offset);
            return Err(Error::corrupt(self.name(), 0, "a payload inside postings.dat.zst", found));
        };
        if entry.len > MAX_PAYLOAD || entry.len == 0 {
            return Err(Error::corrupt(self.name(), 0, "a payload of 1 byte to 64 MiB", entry.len));
        }
        let mut bytes = Vec::new();
        for frame in self.dat.frame_of(start)..=self.dat.frame_of(end - 1) {
            let content = content(frame)?;
            let range = self.dat.content_range(frame);
            let from = start.max(range.start) - range.start;
            let to = end.min(range.end) - range.start;
            let part = usize::try_from(from).ok().zip(usize::try_from(to).ok());
            let part = part.and_then(|(from, to)| content.get(from..to)).ok_or_else(|| {
                Error::corrupt(self.dat.name(), range.start, "a frame as long as its table says", content.len())
            })?;
            bytes.extend_from_slice(part);
        }
        Ok(bytes)
    }

    fn bad_payload(&self, entry: &Entry, found: &dyn std::fmt::Display) -> Error {
        Error::corrupt(self.dat.name(), entry.offset, "a payload of runs", found.to_string())
    }

    /// Decodes a payload, after those before it in its group.
    fn decode(&self, group: &[Entry], entry: &Entry) -> Result<Vec<Run>> {
        let start = group.first().map_or(entry.offset, |first| first.offset);
        let bytes = self.payloads(start, entry, |frame| self.payload_frame(frame))?;
        let corrupt = |e: &dyn std::fmt::Display| self.bad_payload(entry, e);
        if self.version != VERSION {
            return decode(&bytes).map_err(|e| corrupt(&e));
        }
        let (mut rest, mut ends) = (&bytes[..], Ends::default());
        for before in group {
            let (payload, after) =
                rest.split_at_checked(before.len as usize).ok_or_else(|| corrupt(&"payloads with gaps"))?;
            decode_near(payload, before.dataset_id, &mut ends).map_err(|e| corrupt(&e))?;
            rest = after;
        }
        decode_near(rest, entry.dataset_id, &mut ends).map_err(|e| corrupt(&e))
    }

    /// Reads the shard from front to back.
    pub(crate) fn walk(&self) -> ShardWalk<'_> {
        let (entries, ends) = (Vec::new(), Ends::default());
        ShardWalk { shard: self, frame: 0, entries, next: 0, group_at: 0, ends, content: None }
    }

    /// All entries in order, for verification.
    pub(crate) fn all_entries(&self) -> impl Iterator<Item = Result<Vec<Entry>>> {
        (0..self.firsts.len()).map(|frame| self.parse_frame(frame, &self.index_frame(frame)?))
    }

    /// The header of both files, checked.
    pub(crate) fn check_headers(&self) -> Result<()> {
        if self.idx.frame_count() > 0 {
            let frame = self.index_frame(0)?;
            self.check_idx_header(&frame)?;
        }
        let frame = self.payload_frame(0)?;
        let mut r = SliceReader::new(&frame);
        let found = (r.array::<4>("magic"), r.u32("version"));
        if found != (Ok(DAT_MAGIC), Ok(self.version)) {
            let expected = "magic \"PDD1\", the version of the index";
            return Err(Error::corrupt(self.dat.name(), 0, expected, format!("{found:02x?}")));
        }
        Ok(())
    }

    /// An index frame, checked, and in the same round the payload frames its entries point at, if they are few.
    fn index_frame(&self, frame: usize) -> Result<Bytes> {
        if let Some(bytes) = self.caches.frames.get(&(self.keys[0], frame)) {
            return Ok(bytes);
        }
        let ahead = self.payload_frames_of(frame);
        let stored = self.idx.stored_range(frame);
        let content: Bytes = if ahead.is_empty() {
            self.idx.read_frame(frame)?.into()
        } else {
            let ranges: Vec<_> = ahead.clone().map(|i| self.dat.stored_range(i)).collect();
            let (own, theirs) = read_both((self.idx.source(), &[stored]), (self.dat.source(), &ranges))?;
            for (i, bytes) in ahead.zip(theirs) {
                self.caches.frames.insert((self.keys[1], i), self.dat.decode(i, &bytes)?.into());
            }
            self.idx.decode(frame, own.first().map_or(&[][..], |b| b))?.into()
        };
        self.parse_frame(frame, &content)?;
        self.caches.frames.insert((self.keys[0], frame), content.clone());
        Ok(content)
    }

    fn payload_frames_of(&self, frame: usize) -> std::ops::Range<usize> {
        let start = self.firsts.get(frame).map_or(0, |f| f.2);
        let end = self.firsts.get(frame + 1).map_or(self.dat.len(), |f| f.2);
        if end <= start || end - start > AHEAD {
            return 0..0;
        }
        let range = self.dat.frame_of(start)..self.dat.frame_of(end - 1) + 1;
        if range.clone().all(|i| self.caches.frames.peek(&(self.keys[1], i)).is_some()) { 0..0 } else { range }
    }

    fn payload_frame(&self, frame: usize) -> Result<Bytes> {
        self.caches.frames.get_or_insert_with(&(self.keys[1], frame), || Ok(self.dat.read_frame(frame)?.into()))
    }

    fn check_idx_header(&self, frame: &[u8]) -> Result<()> {
        let mut r = SliceReader::new(frame);
        let found = (r.array::<4>("magic"), r.u32("version"), r.u64("entry count"), r.u64("payload offset"));
        if found != (Ok(IDX_MAGIC), Ok(self.version), Ok(self.entries), Ok(DAT_HEADER)) {
            let found = format!("{found:02x?}");
            return Err(Error::corrupt(
                self.name(),
                0,
                "magic \"PDX1\", the version of the side frame, the number of entries, 8",
                found,
            ));
        }
        Ok(())
    }

    fn parse_frame(&self, frame: usize, bytes: &[u8]) -> Result<Vec<Entry>> {
        let at = self.idx.content_range(frame).start;
        let mut r = SliceReader::at(bytes, at);
        if frame == 0 {
            self.check_idx_header(bytes)?;
            r.array::<{ HEADER as usize }>("header").map_err(|e| e.in_file(self.name()))?;
        }
        let mut entries = Vec::with_capacity(bytes.len() / ENTRY as usize);
        while !r.is_empty() {
            entries.push(parse_entry(&mut r).map_err(|e| e.in_file(self.name()))?);
        }
        let first = entries.first().map(|e| (e.slot, e.dataset_id, e.offset));
        let ordered = entries.windows(2).all(|w| {
            matches!(w, [a, b] if (a.slot, a.dataset_id) < (b.slot, b.dataset_id)
                && a.offset.checked_add(u64::from(a.len)) == Some(b.offset))
        });
        if first != self.firsts.get(frame).copied() || !ordered {
            let expected = "entries in order, as the side frame has them, payloads without gaps";
            return Err(Error::corrupt(self.name(), at, expected, "others"));
        }
        Ok(entries)
    }
}

/// Hands out the runs of a shard in the order of its entries. Each payload is decoded once, where a lookup decodes those before
/// it in its group as well, half of 64 on average.
pub(crate) struct ShardWalk<'a> {
    shard: &'a Shard,
    /// The next index frame, the entries of the one before it, and the next of those.
    frame: usize,
    entries: Vec<Entry>,
    next: usize,
    /// Where the payloads of the group begin, and what those so far left.
    group_at: u64,
    ends: Ends,
    /// The payload frame read last.
    content: Option<(usize, Bytes)>,
}

impl ShardWalk<'_> {
    /// The runs of a pair, which must come after the one asked for last.
    pub fn runs(&mut self, slot: u64, dataset_id: u32) -> Result<Option<Vec<Run>>> {
        while let Some(entry) = self.peek()? {
            match (entry.slot, entry.dataset_id).cmp(&(slot, dataset_id)) {
                // Also what was not asked for: later payloads may refer to it.
                Ordering::Less => drop(self.take(&entry)?),
                Ordering::Equal => return self.take(&entry).map(Some),
                Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    fn peek(&mut self) -> Result<Option<Entry>> {
        while self.next >= self.entries.len() {
            if self.frame >= self.shard.firsts.len() {
                return Ok(None);
            }
            self.entries = self.shard.parse_frame(self.frame, &self.shard.index_frame(self.frame)?)?;
            (self.frame, self.next) = (self.frame + 1, 0);
        }
        Ok(self.entries.get(self.next).copied())
    }

    fn take(&mut self, entry: &Entry) -> Result<Vec<Run>> {
        let Self { shard, content, ends, .. } = self;
        if (self.next as u64).is_multiple_of(GROUP_ENTRIES) {
            ends.clear();
            self.group_at = entry.offset;
        }
        self.next += 1;
        let bytes = shard.payloads(entry.offset, entry, |frame| {
            if let Some((_, bytes)) = content.as_ref().filter(|(at, _)| *at == frame) {
                return Ok(bytes.clone());
            }
            let bytes = shard.payload_frame(frame)?;
            *content = Some((frame, bytes.clone()));
            Ok(bytes)
        })?;
        if shard.version != VERSION {
            return decode(&bytes).map_err(|e| shard.bad_payload(entry, &e));
        }
        // So far from the group's first payload each stands alone.
        if entry.offset.saturating_sub(self.group_at) > GROUP_BYTES {
            ends.clear();
        }
        decode_near(&bytes, entry.dataset_id, ends).map_err(|e| shard.bad_payload(entry, &e))
    }
}

fn parse_entry(r: &mut SliceReader<'_>) -> Result<Entry, SliceError> {
    Ok(Entry {
        slot: r.u64("slot")?,
        dataset_id: r.u32("dataset id")?,
        offset: r.u64("payload offset")?,
        len: r.u32("payload length")?,
    })
}

/// The version of the payloads, and the first entry of each frame.
type Side = (u32, Vec<(u64, u32, u64)>);

fn parse_side(name: &Path, side: &[u8], frames: usize) -> Result<Side> {
    let mut r = SliceReader::new(side);
    let found = (r.array::<4>("magic"), r.u32("version"));
    // The side frame is one version behind: its first told of payloads of version 2.
    let version = match found {
        (Ok(SIDE_MAGIC), Ok(side @ 1..=2)) => side + 1,
        _ => return Err(Error::corrupt(name, 0, "side frame magic \"TPIX\", version 1 or 2", format!("{found:02x?}"))),
    };
    let mut firsts = Vec::new();
    let (mut slot, mut offset) = (0u64, 0u64);
    for frame in 0..frames {
        let mut number = |what| r.uvarint(what).map_err(|e| e.in_file(name));
        let (more_slot, dataset, more_offset) = (number("slot")?, number("dataset id")?, number("payload offset")?);
        let sums = slot.checked_add(more_slot).zip(offset.checked_add(more_offset)).zip(u32::try_from(dataset).ok());
        let Some(((next_slot, next_offset), dataset)) = sums else {
            return Err(Error::corrupt(name, 0, "first entries in range", format!("frame {frame}")));
        };
        (slot, offset) = (next_slot, next_offset);
        firsts.push((slot, dataset, offset));
    }
    if !r.is_empty() {
        return Err(Error::corrupt(name, 0, "one first entry a frame", format!("{} bytes more", r.rest().len())));
    }
    Ok((version, firsts))
}
