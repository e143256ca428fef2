//! Batches of the log: rows and hosts as they are from now on, totals, and what the caller wants to find again.
//!
//! ```text
//! batch   one record of a journal: entries one after another; whole or absent after any crash
//! entry   1  row     key, state, numbers, texts                 in place of the older row of its key
//!         2  host    key, name if it is new, numbers            in place of the older one
//!         3  totals  u64 next arrival, i64 latest time, in ms
//!         4  note    u8 slot, uvarint length, bytes             the caller's; the last one of a slot counts
//!         5  depth   u32                                        links deeper than this were turned away; all ones: none was
//!         6  away    u64 key of a host, uvarint length, JSON    its origins that are away, in place of the older ones
//!         7  seeds   u64                                        seeds that were never handed out
//! ```
//! Nothing is computed again when a log is read: it says what the state is, not what happened.

use crate::absence::Kept;
use crate::frontier::{Batch, Frontier};
use crate::host::LoggedHost;
use crate::row::Row;
use std::sync::Arc;
use trawl_io::journal::Position;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;
use trawl_io::{Journal, Result};

const ROW: u8 = 1;
const HOST: u8 = 2;
const TOTALS: u8 = 3;
const NOTE: u8 = 4;
const DEPTH: u8 = 5;
const AWAY: u8 = 6;
const SEEDS: u8 = 7;
const NONE_TURNED_AWAY: u32 = u32::MAX;

/// An entry of a batch.
pub(crate) enum Entry {
    Row(Row),
    Host(LoggedHost),
    Totals {
        arrival: u64,
        latest: i64,
    },
    Note(u8, Vec<u8>),
    /// Links deeper than this were turned away.
    Depth(Option<u32>),
    /// The origins of a host that are away.
    Away(u64, Vec<Kept>),
    /// Seeds that were never handed out.
    Seeds(u64),
}

/// A batch that was handed in: durable once [`Ticket::wait`] returns.
#[derive(Debug, Clone)]
pub struct Ticket {
    pub(crate) journal: Arc<Journal>,
    pub(crate) position: Position,
}

impl Ticket {
    /// Waits until the batch, and all before it, is durable. May be called from any thread.
    pub fn wait(&self) -> Result<()> {
        self.journal.wait(self.position)
    }
}

impl Batch {
    pub fn row(&mut self, row: &Row) {
        self.bytes.push(ROW);
        row.encode(&mut self.bytes);
    }

    fn totals(&mut self, arrival: u64, latest: i64) {
        self.bytes.push(TOTALS);
        self.bytes.extend_from_slice(&arrival.to_le_bytes());
        self.bytes.extend_from_slice(&latest.to_le_bytes());
    }

    pub fn depth(&mut self, limit: Option<u32>) {
        self.bytes.push(DEPTH);
        self.bytes.extend_from_slice(&limit.unwrap_or(NONE_TURNED_AWAY).to_le_bytes());
    }

    fn seeds(&mut self, count: u64) {
        self.bytes.push(SEEDS);
        self.bytes.extend_from_slice(&count.to_le_bytes());
        self.seeds = count;
    }

    fn away(&mut self, host: u64, json: &[u8]) {
        self.bytes.push(AWAY);
        self.bytes.extend_from_slice(&host.to_le_bytes());
        put_uvarint(&mut self.bytes, json.len() as u64);
        self.bytes.extend_from_slice(json);
    }

    fn note(&mut self, slot: u8, note: &[u8]) {
        self.bytes.extend_from_slice(&[NOTE, slot]);
        put_uvarint(&mut self.bytes, note.len() as u64);
        self.bytes.extend_from_slice(note);
    }
}

impl Frontier {
    /// The entries of the next batch; empty if nothing changed.
    pub(crate) fn take_batch(&mut self) -> Vec<u8> {
        let hosts = std::mem::take(&mut self.batch.hosts);
        let notes = std::mem::take(&mut self.batch.notes);
        if self.batch.bytes.is_empty() && hosts.is_empty() && notes.is_empty() {
            return Vec::new();
        }
        for id in hosts {
            let host = &mut self.hosts[id as usize];
            host.marks.unlogged = false;
            let with_name = !std::mem::replace(&mut host.marks.named, true);
            self.batch.bytes.push(HOST);
            host.encode(with_name, &mut self.batch.bytes);
            let away = host.away_json();
            if std::mem::replace(&mut host.marks.away_kept, !away.is_empty()) || !away.is_empty() {
                self.batch.away(host.key, &away);
            }
        }
        for (slot, note) in notes {
            self.batch.note(slot, &note);
            self.batch.kept.insert(slot, note);
        }
        self.batch.totals(self.totals.arrival, self.clock.latest);
        let seeds = self.seeds_left();
        if seeds != self.batch.seeds {
            self.batch.seeds(seeds);
        }
        std::mem::take(&mut self.batch.bytes)
    }

    /// What is leased was never handed out, after a crash.
    fn seeds_left(&self) -> u64 {
        self.totals.seeds_waiting + self.totals.seeds_out
    }

    /// What a new log begins with: all that is neither a row nor a host.
    pub(crate) fn first_batch(&self) -> Vec<u8> {
        let mut batch = Batch::default();
        for (slot, note) in &self.batch.kept {
            batch.note(*slot, note);
        }
        batch.depth(self.turned_away_at);
        batch.seeds(self.seeds_left());
        batch.totals(self.totals.arrival, self.clock.latest);
        batch.bytes
    }
}

/// What a batch keeps in a slot, if anything.
pub(crate) fn last_note(bytes: &[u8], slot: u8) -> Result<Option<Vec<u8>>, SliceError> {
    let mut kept = None;
    entries(bytes, &mut |entry| {
        if let Entry::Note(found, note) = entry
            && found == slot
        {
            kept = Some(note);
        }
    })?;
    Ok(kept)
}

/// The entries of a batch.
pub(crate) fn entries(bytes: &[u8], each: &mut dyn FnMut(Entry)) -> Result<(), SliceError> {
    let mut r = SliceReader::new(bytes);
    while !r.is_empty() {
        let at = r.offset();
        let [kind] = r.array("the kind of an entry")?;
        each(match kind {
            ROW => Entry::Row(Row::decode(&mut r)?),
            HOST => Entry::Host(LoggedHost::decode(&mut r)?),
            TOTALS => Entry::Totals {
                arrival: u64::from_le_bytes(r.array("the next arrival")?),
                latest: i64::from_le_bytes(r.array("the latest time")?),
            },
            NOTE => {
                let [slot] = r.array("the slot of a note")?;
                Entry::Note(slot, r.prefixed(bytes.len(), "a note")?.to_vec())
            }
            DEPTH => {
                let limit = u32::from_le_bytes(r.array("a depth")?);
                Entry::Depth((limit != NONE_TURNED_AWAY).then_some(limit))
            }
            AWAY => {
                let key = u64::from_le_bytes(r.array("a host's key")?);
                let at = r.offset();
                let json = r.prefixed(bytes.len(), "the origins of a host that are away")?;
                let what = "the JSON of the origins of a host that are away, a column";
                let (limit, over) = (json.len() as u64, |e: serde_json::Error| e.column() as u64);
                let kept = Kept::parse(json);
                Entry::Away(key, kept.map_err(|e| SliceError::OverLimit { at, what, claimed: over(e), limit })?)
            }
            SEEDS => Entry::Seeds(u64::from_le_bytes(r.array("the number of seeds")?)),
            other => {
                let (claimed, limit) = (u64::from(other), u64::from(SEEDS));
                return Err(SliceError::OverLimit { at, what: "the kind of an entry", claimed, limit });
            }
        });
    }
    Ok(())
}
