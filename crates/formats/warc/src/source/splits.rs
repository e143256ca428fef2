//! Where a file can be cut so that its parts can be read on their own and give every capture once.
//!
//! A cut must be the start of a record, and no event may lie across it. Neither can be seen at one place of a file:
//!
//! - *A record.* A page that was archived may be a WARC file itself. In an uncompressed file nothing but the lengths from
//!   the beginning on tells its records from ours, so those are followed; that reads headers only. In a compressed file a
//!   stored block of deflate keeps at most 64 KiB of a page as they are and a raw block of zstd 128 KiB, so members that
//!   follow one another without a gap for longer than that are members of this file.
//! - *An event.* Which records belong together is found from the first on. An event has at most three records, so a record
//!   that belongs to none of the last one, two or three before it begins an event wherever the reading began.

use super::belongs;
use super::loaded::Loaded;
use crate::container::Compression;
use crate::error::Result;
use crate::limits::Limits;
use crate::reader::{RecordFile, WarcReader};
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_model::Split;

/// Stored bytes of members without a gap that are proof.
const PROOF_BYTES: u64 = 256 << 10;
/// Most records of an event: one of each role.
const EVENT_RECORDS: usize = 3;
/// Records in which the start of an event is looked for.
const MAX_RECORDS: usize = 64;

/// Cuts a file into parts of about `target_bytes`; the last ends at its end.
pub(crate) fn splits(file: &Arc<dyn ReadAt>, limits: Limits, target_bytes: u64) -> Result<Vec<Split>> {
    let (len, target) = (file.len(), target_bytes.max(1));
    let records = RecordFile::new(file.clone()).limits(limits).lenient(true);
    let mut starts = vec![0];
    let mut reader = records.reader_at(0, 0)?;
    let plain = match reader.next_record() {
        // A file that begins with damage is not cut, because its format is unknown.
        Err(e) if e.is_damage() => return Ok(vec![Split { start: 0, end: len }]),
        first => first?.is_none() || reader.compression() == Compression::None,
    };
    let mut from = target;
    while from < len {
        let found = if plain { follow(&mut reader, from)? } else { find(&mut reader, &records, from)? };
        let Some(record) = found else { break };
        let Some(start) = event_from(&records, record)? else { break };
        if starts.last().is_none_or(|last| start > *last) {
            starts.push(start);
        }
        // Parts stay of about the size asked for, however far away a cut was found.
        from = start.max(from).saturating_add(target);
    }
    let ends = starts.iter().skip(1).copied().chain([len]);
    Ok(starts.iter().zip(ends).map(|(&start, end)| Split { start, end }).collect())
}

/// The first record at or after `from`, by following lengths. `None` at the end, or at damage: what comes after it stays in
/// one part.
fn follow(reader: &mut WarcReader, from: u64) -> Result<Option<u64>> {
    loop {
        match reader.next_record() {
            Ok(Some(record)) if record.at().offset >= from => return Ok(Some(record.at().offset)),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(e) if e.is_damage() => return Ok(None),
            Err(e) => return Err(e),
        }
    }
}

/// The first record at or after `from` that begins a row of members long enough to be proof.
fn find(reader: &mut WarcReader, records: &RecordFile, mut from: u64) -> Result<Option<u64>> {
    while let Some(start) = reader.seek_record(from)? {
        match short_row(&mut records.reader_at(start, 0)?, start)? {
            None => return Ok(Some(start)),
            // A row that begins inside of this one ends where it does: looking at each would take the square of the time.
            Some(last) => from = last + 1,
        }
    }
    Ok(None)
}

/// Where the last member begins of a row that is too short to be proof.
fn short_row(reader: &mut WarcReader, start: u64) -> Result<Option<u64>> {
    let mut last = start;
    while reader.stored_offset().saturating_sub(start) < PROOF_BYTES {
        let finished = match reader.next_record() {
            Ok(Some(record)) => {
                last = record.at().offset;
                record.finish().map(Some)
            }
            Ok(None) => Ok(None),
            Err(e) => Err(e),
        };
        match finished {
            Ok(Some(_)) => {}
            Ok(None) => return Ok(None),
            Err(e) if e.is_damage() => return Ok(Some(last)),
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// The first record from `record` on that begins an event for certain, and a member.
fn event_from(records: &RecordFile, record: u64) -> Result<Option<u64>> {
    let mut reader = records.reader_at(record, 0)?;
    let mut before: Vec<Loaded> = Vec::new();
    for _ in 0..MAX_RECORDS {
        let next = match reader.next_record() {
            Ok(Some(record)) => Loaded::read(record, records),
            Ok(None) => return Ok(None),
            Err(e) => Err(e),
        };
        let next = match next {
            Err(e) if e.is_damage() => return Ok(None),
            next => next?,
        };
        if before.len() == EVENT_RECORDS {
            let mut groups = (0..EVENT_RECORDS).filter_map(|n| before.get(n..));
            if next.at.inside == 0 && !next.is_segment() && !groups.any(|group| belongs(group, &next)) {
                return Ok(Some(next.place.offset));
            }
            before.remove(0);
        }
        before.push(next);
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
