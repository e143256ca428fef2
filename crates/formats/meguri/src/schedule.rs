//! The schedule index: a timing wheel of 283 buckets, so that due rows are found without reading `next_due`.
//!
//! ```text
//! region   one page of kind 5, num_values = scheduled rows, page_base = base
//! payload  u32 base        smallest next_due that is not 0
//!          u32 row_count   URL rows of the file
//!          uvarint 283
//!          283 x uvarint   rows of each bucket
//!          bucket by bucket: row numbers ascending, as uvarint differences that start from 0 in each bucket
//!
//! tier      hours after base   buckets of   numbers
//! near      0 .. 167           1 hour         0 .. 167     a row's hour is known exactly
//! mid       168 .. 2327        1 day        168 .. 257     these three hold candidates, which
//! far       2328 .. 19607      30 days      258 .. 281     `next_due` confirms
//! overflow  19608 ..           the rest     282
//! ```
//! Our payloads above 256 KiB are several zstd frames with checksums of their own, so that what is due soon can be read
//! without the rest; buckets are in order of time.

use crate::codec::{Codec, Packer};
use crate::error::{At, Malformed, Result};
use crate::page::{IN_MEMORY, Page};
use crate::settings::Settings;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use trawl_io::slice::SliceReader;
use trawl_io::varint::{MAX_LEN, put_uvarint};
use trawl_io::{Spool, SpoolWriter};

/// Buckets of the wheel.
pub const BUCKETS: usize = 283;
const MID: u32 = 168;
const FAR: u32 = 2328;
const OVERFLOW: u32 = 19_608;
const MID_BUCKET: u32 = 168;
const FAR_BUCKET: u32 = 258;
const LAST_BUCKET: u32 = 282;
/// Payload bytes of a frame.
const FRAME: usize = 256 << 10;

/// The bucket of a row that is due `after` hours after the base.
pub fn bucket_of(after: u32) -> usize {
    let bucket = match after {
        0..MID => after,
        MID..FAR => MID_BUCKET + (after - MID) / 24,
        FAR..OVERFLOW => FAR_BUCKET + (after - FAR) / 720,
        OVERFLOW.. => LAST_BUCKET,
    };
    bucket as usize
}

/// Hours after the base at which a bucket opens.
pub fn start_of(bucket: usize) -> u32 {
    match bucket as u32 {
        b @ 0..MID_BUCKET => b,
        b @ MID_BUCKET..FAR_BUCKET => MID + (b - MID_BUCKET) * 24,
        b @ FAR_BUCKET..LAST_BUCKET => FAR + (b - FAR_BUCKET) * 720,
        _ => OVERFLOW,
    }
}

/// Calls back with (row, next_due) of every scheduled row in order, any number of times.
pub(crate) type DueScan<'a> = dyn FnMut(&mut dyn FnMut(u64, u32)) -> Result<()> + 'a;

/// A schedule index as it is stored.
#[derive(Debug)]
pub(crate) struct StoredSchedule {
    pub codec: Codec,
    pub base: u32,
    pub scheduled: u64,
    pub uncompressed: u64,
    pub payload: Spool,
}

/// Builds the index of `rows` rows within about `memory` bytes: row numbers are gathered for as many buckets at a time as
/// fit, with one scan each.
pub(crate) fn build(
    scan: &mut DueScan<'_>,
    rows: u64,
    settings: &Settings,
    memory: usize,
    stored: SpoolWriter,
) -> Result<Option<StoredSchedule>> {
    let mut base = u32::MAX;
    scan(&mut |_, due| base = base.min(due))?;
    let mut counts = [0u64; BUCKETS];
    scan(&mut |_, due| {
        if let Some(count) = counts.get_mut(bucket_of(due - base)) {
            *count += 1;
        }
    })?;
    let scheduled: u64 = counts.iter().sum();
    if scheduled == 0 {
        return Ok(None);
    }
    let mut out = Frames::new(settings, stored)?;
    out.bytes.extend_from_slice(&base.to_le_bytes());
    // A table has at most 2^32 - 1 rows.
    out.bytes.extend_from_slice(&(rows as u32).to_le_bytes());
    put_uvarint(&mut out.bytes, BUCKETS as u64);
    counts.iter().for_each(|n| put_uvarint(&mut out.bytes, *n));
    let most = (memory as u64 / 4).max(1024);
    let mut first = 0;
    while first < BUCKETS {
        let (mut last, mut total) = (first, 0);
        while let Some(n) = counts.get(last).filter(|n| total == 0 || total + **n <= most) {
            total += n;
            last += 1;
        }
        if last == first + 1 {
            // However many rows a single bucket has, it is written as they come.
            let (mut before, mut failed) = (0, None);
            scan(&mut |row, due| {
                if bucket_of(due - base) == first && failed.is_none() {
                    put_uvarint(&mut out.bytes, row - before);
                    before = row;
                    failed = out.end_full().err();
                }
            })?;
            if let Some(failed) = failed {
                return Err(failed);
            }
            first = last;
            continue;
        }
        let mut buckets: Vec<Vec<u32>> = vec![Vec::new(); last - first];
        scan(&mut |row, due| {
            let bucket = bucket_of(due - base);
            if let Some(rows) = bucket.checked_sub(first).and_then(|b| buckets.get_mut(b)) {
                rows.push(row as u32);
            }
        })?;
        for rows in buckets {
            let mut before = 0;
            for row in rows {
                put_uvarint(&mut out.bytes, u64::from(row - before));
                before = row;
                out.end_full()?;
            }
        }
        first = last;
    }
    out.finish(base, scheduled).map(Some)
}

/// Cuts a payload into frames.
struct Frames {
    packer: Packer,
    reference: bool,
    bytes: Vec<u8>,
    uncompressed: u64,
    stored: SpoolWriter,
}

impl Frames {
    fn new(settings: &Settings, stored: SpoolWriter) -> Result<Self> {
        let packer = Packer::new(settings.codec, settings.level, true)?;
        Ok(Frames { packer, reference: settings.reference, bytes: Vec::new(), uncompressed: 0, stored })
    }

    fn end_full(&mut self) -> Result<()> {
        if self.bytes.len() >= FRAME && !self.reference { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        self.uncompressed += bytes.len() as u64;
        self.stored.put(&self.packer.pack(bytes)?.1)?;
        Ok(())
    }

    fn finish(mut self, base: u32, scheduled: u64) -> Result<StoredSchedule> {
        self.end()?;
        let (codec, uncompressed) = (self.packer.codec(), self.uncompressed);
        Ok(StoredSchedule { codec, base, scheduled, uncompressed, payload: self.stored.finish()? })
    }
}

/// Reads the index of a file as far as it is asked.
pub struct Schedule {
    source: Source,
    at: (std::path::PathBuf, u64),
    /// Smallest `next_due`.
    pub base: u32,
    /// Rows of each bucket.
    pub counts: Vec<u64>,
    url_count: u64,
    /// Payload bytes that are unpacked, and how many of them are read.
    ready: Vec<u8>,
    used: usize,
    /// The next bucket.
    bucket: usize,
}

enum Source {
    /// Frames that are still to be read.
    Frames(BufReader<Box<dyn Read + Send>>),
    /// A payload whose page checksum was checked.
    Whole(Box<dyn Read + Send>),
}

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Schedule").field("base", &self.base).field("next_bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl Schedule {
    /// Starts on a page; `framed` if every frame has a checksum of its own (our files).
    pub(crate) fn open(page: &Page, framed: bool, url_count: u64) -> Result<Schedule> {
        let at = page.at();
        let size = page.header.uncompressed_size;
        let source = if framed && size as usize > FRAME && page.header.codec(at)? == Codec::Zstd {
            Source::Frames(BufReader::with_capacity(64 << 10, page.section()))
        } else if size <= IN_MEMORY {
            Source::Whole(Box::new(std::io::Cursor::new(page.payload(IN_MEMORY)?)))
        } else {
            Source::Whole(page.stream()?)
        };
        let at = (at.path.to_owned(), at.offset);
        let mut schedule =
            Schedule { source, at, base: 0, counts: Vec::new(), url_count, ready: Vec::new(), used: 0, bucket: 0 };
        schedule.read_head(page)?;
        Ok(schedule)
    }

    fn read_head(&mut self, page: &Page) -> Result<()> {
        let at = page.at();
        let head = 8 + MAX_LEN * (BUCKETS + 1);
        self.fill(head)?;
        let mut r = SliceReader::new(&self.ready);
        let bad = |e| Malformed::from(e).at(at);
        self.base = r.u32("a schedule's base").map_err(bad)?;
        let rows = r.u32("a schedule's rows").map_err(bad)?;
        if u64::from(self.base) != page.header.base || u64::from(rows) != self.url_count {
            return Err(at.corrupt("the base and the rows of the file", format!("{} and {rows}", self.base)));
        }
        let buckets = r.uvarint("a number of buckets").map_err(bad)?;
        if buckets != BUCKETS as u64 {
            return Err(at.corrupt("283 buckets", buckets));
        }
        for _ in 0..BUCKETS {
            self.counts.push(r.uvarint("the rows of a bucket").map_err(bad)?);
        }
        let total = self.counts.iter().fold(0u64, |sum, n| sum.saturating_add(*n));
        if total != u64::from(page.header.num_values) || total > self.url_count {
            return Err(at.corrupt("as many scheduled rows as the page says", total));
        }
        self.used = r.offset() as usize;
        Ok(())
    }

    /// Unpacks until at least `n` bytes are ready, or all are.
    fn fill(&mut self, n: usize) -> Result<()> {
        self.ready.drain(..self.used);
        self.used = 0;
        while self.ready.len() < n {
            let at = At::new(&self.at.0, self.at.1);
            let bad = |e: std::io::Error| Malformed::new("a frame of the schedule", e).at(at);
            let before = self.ready.len();
            match &mut self.source {
                Source::Frames(stored) => {
                    // A decoder wants a frame: behind the last one there is none to be had.
                    if stored.fill_buf().map_err(bad)?.is_empty() {
                        break;
                    }
                    // A whole frame, or its checksum is never reached.
                    let frame = zstd::stream::read::Decoder::with_buffer(stored).map_err(bad)?.single_frame();
                    let most = 2 * FRAME as u64;
                    if frame.take(most).read_to_end(&mut self.ready).map_err(bad)? as u64 == most {
                        return Err(at.over_limit("a frame of the schedule", most, FRAME as u64));
                    }
                }
                Source::Whole(source) => {
                    source.take(64 << 10).read_to_end(&mut self.ready).map_err(bad)?;
                }
            }
            if self.ready.len() == before {
                break;
            }
        }
        Ok(())
    }

    /// The next bucket in order of time: its number and its rows, ascending. `None` after the last.
    pub fn next_bucket(&mut self) -> Result<Option<(usize, Vec<u64>)>> {
        let Some(&count) = self.counts.get(self.bucket) else { return Ok(None) };
        let mut rows = Vec::new();
        let mut row = 0u64;
        for _ in 0..count {
            if self.ready.len() - self.used < MAX_LEN {
                self.fill(MAX_LEN)?;
            }
            let at = At::new(&self.at.0, self.at.1);
            let mut r = SliceReader::new(self.ready.get(self.used..).unwrap_or_default());
            let step = r.uvarint("a row of the schedule").map_err(|e| Malformed::from(e).at(at))?;
            self.used += r.offset() as usize;
            row = row.saturating_add(step);
            if row >= self.url_count || step == 0 && !rows.is_empty() {
                return Err(at.corrupt("rows of the table, ascending", row));
            }
            rows.push(row);
        }
        self.bucket += 1;
        Ok(Some((self.bucket - 1, rows)))
    }

    /// Hours in which rows of a bucket are due.
    pub fn hours_of(&self, bucket: usize) -> Range<u64> {
        let start = u64::from(self.base) + u64::from(start_of(bucket));
        let end = if bucket + 1 < BUCKETS { u64::from(self.base) + u64::from(start_of(bucket + 1)) } else { 1 << 32 };
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_their_starts() {
        for (after, bucket) in [
            (0, 0),
            (167, 167),
            (168, 168),
            (191, 168),
            (192, 169),
            (2327, 257),
            (2328, 258),
            (3047, 258),
            (3048, 259),
            (19_607, 281),
            (19_608, 282),
            (u32::MAX, 282),
        ] {
            assert_eq!(bucket_of(after), bucket, "{after}");
            assert!(start_of(bucket) <= after);
        }
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(start_of(bucket)), bucket);
        }
    }
}
