//! Records as they are, in groups that belong together: for containers that keep the records of an event as one value.
//!
//! Headers alone decide what belongs together: a record that names a neighbour (`WARC-Concurrent-To`, and
//! `WARC-Refers-To` except of revisits), or request and response of one target side by side where neither names anything.
//! Everything else, whatever its type, is a group of its own: nothing is left out.

use super::WarcSource;
use super::loaded::Loaded;
use crate::error::Result;
use crate::header::{RecordHeader, RecordType};
use trawl_model::RawEvent;

/// Most records of a group: a file in which everything names everything is no reason to hold all of it.
const MAX_RECORDS: usize = 16;

impl WarcSource {
    pub(super) fn next_group(&mut self) -> Result<Option<RawEvent<'static>>> {
        let Some(first) = self.load(Loaded::read_raw)? else { return Ok(None) };
        let mut group = vec![first];
        while group.len() < MAX_RECORDS {
            match self.load(Loaded::read_raw) {
                Ok(Some(next)) if belongs(&group, &next.header) => group.push(next),
                other => {
                    self.ahead = other.transpose();
                    break;
                }
            }
        }
        let has_target = |r: &&Loaded| r.header.target_uri().is_some();
        let main = group.iter().find(|r| is_main(&r.header)).or_else(|| group.iter().find(has_target));
        let main = main.or(group.first()).map(|r| &r.header);
        let url = main.and_then(|header| header.target_uri().map(|uri| uri.into_owned()));
        let time = main.and_then(RecordHeader::date);
        Ok(Some(RawEvent { url, time, records: group.into_iter().map(Loaded::into_record).collect() }))
    }
}

fn is_main(header: &RecordHeader) -> bool {
    matches!(header.record_type(), RecordType::Response | RecordType::Revisit | RecordType::Resource)
}

/// Whether a record says that it belongs to the one with the id `id`.
fn names(header: &RecordHeader, id: &str) -> bool {
    let refers = (header.record_type() != RecordType::Revisit).then(|| header.uri("WARC-Refers-To")).flatten();
    header.concurrent_to().chain(refers).any(|named| named == id)
}

/// Whether `next`, which stands right after `group`, is part of it.
fn belongs(group: &[Loaded], next: &RecordHeader) -> bool {
    let kind = next.record_type();
    if kind == RecordType::Warcinfo || is_main(next) && group.iter().any(|r| is_main(&r.header)) {
        return false;
    }
    let linked = group.iter().any(|r| {
        next.record_id().is_some_and(|id| names(&r.header, &id))
            || r.header.record_id().is_some_and(|id| names(next, &id))
    });
    let exchange = |h: &RecordHeader| {
        let silent = h.concurrent_to().next().is_none();
        matches!(h.record_type(), RecordType::Response | RecordType::Revisit | RecordType::Request) && silent
    };
    let beside = || {
        exchange(next)
            && next.target_uri().is_some()
            && group.iter().all(|r| {
                exchange(&r.header) && r.header.record_type() != kind && r.header.target_uri() == next.target_uri()
            })
    };
    linked || beside()
}
