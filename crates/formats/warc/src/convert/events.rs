//! Records, in groups that belong together: for containers that keep the records of an event as one value.
//!
//! What belongs together is told by headers alone: a record that names a neighbour (`WARC-Concurrent-To`, and
//! `WARC-Refers-To` except of revisits), or request and response of one target side by side where neither names anything.
//! Everything else, whatever its type, is a group of its own: nothing is left out.

use super::{CopyOptions, RawRecord};
use crate::container::Compression;
use crate::error::Result;
use crate::header::{RecordHeader, RecordType};
use crate::reader::WarcReader;
use crate::writer::{Chained, Encoder, Stored};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use trawl_io::Fs;
use trawl_model::UnixMillis;

/// Most records of a group: a file in which everything names everything is no reason to hold all of it.
const MAX_RECORDS: usize = 16;

/// Records that belong together, compressed as they will be stored, each a member.
#[derive(Debug)]
pub struct RawEvent {
    /// Target of its response, revisit or resource, else of the first record that has one.
    pub url: Option<String>,
    /// Date of the same record.
    pub date: Option<UnixMillis>,
    /// Bytes of the blocks that were read.
    pub block_bytes: u64,
    members: Vec<Stored>,
}

impl RawEvent {
    /// Records.
    pub fn records(&self) -> u64 {
        self.members.len() as u64
    }

    /// Stored bytes.
    pub fn len_bytes(&self) -> u64 {
        self.members.iter().map(Stored::len).sum()
    }

    /// The stored bytes.
    pub fn reader(&self) -> impl Read + '_ {
        Chained(self.members.iter().map(Stored::reader).collect())
    }
}

/// Reads a file group by group.
pub struct EventReader<'a> {
    reader: WarcReader,
    encoder: Encoder,
    options: CopyOptions<'a>,
    /// A record read ahead to see whether it belongs to the group before it.
    ahead: Option<RawRecord>,
    /// Damaged places that were skipped.
    damaged: u64,
}

impl<'a> EventReader<'a> {
    /// Reads from `reader`; records are compressed anew, as a WARC file's would be. Large ones are spooled in `spool_dir`.
    pub fn new(
        reader: WarcReader,
        fs: Arc<dyn Fs>,
        spool_dir: &Path,
        compression: Compression,
        level: Option<i32>,
        options: CopyOptions<'a>,
    ) -> Self {
        let encoder = Encoder::new(compression, level, fs, spool_dir);
        EventReader { reader, encoder, options, ahead: None, damaged: 0 }
    }

    /// Damaged places that were skipped so far.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// The next group; `None` at the end.
    pub fn next_event(&mut self) -> Result<Option<RawEvent>> {
        let Some(first) = self.load()? else { return Ok(None) };
        let mut group = vec![first];
        while group.len() < MAX_RECORDS {
            match self.load()? {
                Some(next) if belongs(&group, &next.parsed) => group.push(next),
                next => {
                    self.ahead = next;
                    break;
                }
            }
        }
        let main = group.iter().find(|r| is_main(&r.parsed)).or_else(|| group.iter().find(|r| has_target(&r.parsed)));
        let main = main.or(group.first());
        let url = main.and_then(|r| r.parsed.target_uri().map(|uri| uri.into_owned()));
        let date = main.and_then(|r| r.parsed.date());
        let block_bytes = group.iter().map(|r| r.length).sum();
        let members = group
            .iter()
            .map(|r| self.encoder.member(&[&r.header], &mut r.block.reader(), r.block.len(), b"\r\n\r\n"))
            .collect::<Result<_>>()?;
        Ok(Some(RawEvent { url, date, block_bytes, members }))
    }

    fn load(&mut self) -> Result<Option<RawRecord>> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        loop {
            match RawRecord::read(&mut self.reader, &self.encoder, &self.options) {
                Err(e) if e.is_damage() => {
                    let Some(tell) = &mut self.options.on_damage else { return Err(e) };
                    tell(e);
                    self.damaged += 1;
                    self.reader.recover_from_here()?;
                }
                read => return read,
            }
        }
    }
}

fn is_main(header: &RecordHeader) -> bool {
    matches!(header.record_type(), RecordType::Response | RecordType::Revisit | RecordType::Resource)
}

fn has_target(header: &RecordHeader) -> bool {
    header.target_uri().is_some()
}

/// Whether a record says that it belongs to the one with the id `id`.
fn names(header: &RecordHeader, id: &str) -> bool {
    let refers = (header.record_type() != RecordType::Revisit).then(|| header.uri("WARC-Refers-To")).flatten();
    header.concurrent_to().chain(refers).any(|named| named == id)
}

fn is_silent(header: &RecordHeader) -> bool {
    header.concurrent_to().next().is_none()
}

/// Whether `next`, which stands right after `group`, is part of it.
fn belongs(group: &[RawRecord], next: &RecordHeader) -> bool {
    let kind = next.record_type();
    if kind == RecordType::Warcinfo || is_main(next) && group.iter().any(|r| is_main(&r.parsed)) {
        return false;
    }
    let linked = group.iter().any(|r| {
        next.record_id().is_some_and(|id| names(&r.parsed, &id))
            || r.parsed.record_id().is_some_and(|id| names(next, &id))
    });
    let exchange = |h: &RecordHeader| {
        matches!(h.record_type(), RecordType::Response | RecordType::Revisit | RecordType::Request) && is_silent(h)
    };
    let beside = || {
        exchange(next)
            && has_target(next)
            && group.iter().all(|r| {
                exchange(&r.parsed) && r.parsed.record_type() != kind && r.parsed.target_uri() == next.target_uri()
            })
    };
    linked || beside()
}
