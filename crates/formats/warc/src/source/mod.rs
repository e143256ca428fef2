//! Captures out of a WARC or ARC file: the doors [`CaptureSource`] and [`RecordSource`].
//!
//! The records of one event are found by `WARC-Concurrent-To`, in whichever direction it points, else by standing side by
//! side with the same target; a request found neither way is carried as a record of its own.
//!
//! ```text
//! ours, Heritrix     response, request → response, metadata → response
//! warcio             request → response, response          (either order)
//! wget, Common Crawl request, response → request
//! ami                request, response, one id for both
//! ```

mod build;
mod events;
mod loaded;
mod parts;
mod splits;

pub use parts::{Part, Parts};
pub(crate) use splits::splits;

use crate::error::{Error, Result};
use crate::header::RecordType;
use crate::limits::Limits;
use crate::reader::{RecordFile, WarcReader};
use loaded::{Loaded, Role};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::read_at::FileReader;
use trawl_model::{CaptureSource, DoorError, Entry, Place, RawEvent, RecordSource, Split};

/// Blocks up to this size are kept in memory; longer ones are read again from the file when somebody wants them.
const MEMORY_BYTES: u64 = 4 << 20;

/// Reads captures, or groups of records, from one file. Use one of the two ways on a source, not both.
pub struct WarcSource {
    reader: WarcReader,
    file: RecordFile,
    /// What was read ahead to see whether it belongs to the event before it: a record, or why there is none.
    ahead: Option<Result<Loaded>>,
    ready: VecDeque<(Entry<'static>, Place)>,
    /// Types of the other records of the capture that was handed out last.
    beside: Vec<&'static str>,
    damaged: bool,
    damaged_url: Option<String>,
    /// Where the next split begins. Reading sequentially must come by exactly there, unless damage was skipped.
    end: u64,
    ended: bool,
    skipped: bool,
}

impl WarcSource {
    /// Opens a file of the machine, accepting oddities if `lenient`.
    pub fn open(path: &Path, limits: Limits, lenient: bool) -> Result<Self> {
        Ok(Self::over(Arc::new(FileReader::open(path)?), limits, lenient))
    }

    /// Reads anything with offsets.
    pub fn over(file: Arc<dyn ReadAt>, limits: Limits, lenient: bool) -> Self {
        Self::over_from(file, 0, limits, lenient)
    }

    /// [`WarcSource::over`], beginning with the record at `offset`. Not for the middle of a zstd file with a dictionary.
    pub fn over_from(file: Arc<dyn ReadAt>, offset: u64, limits: Limits, lenient: bool) -> Self {
        let reader = WarcReader::builder().limits(limits).lenient(lenient).over_from(file.clone(), offset);
        Self::from_reader(reader, RecordFile::new(file).limits(limits).lenient(lenient))
    }

    /// One of the splits that [`Archive::splits`](trawl_model::Archive::splits) gave.
    pub(crate) fn split(file: Arc<dyn ReadAt>, limits: Limits, split: Split) -> Result<Self> {
        let records = RecordFile::new(file).limits(limits).lenient(true);
        Ok(WarcSource { end: split.end, ..Self::from_reader(records.reader_at(split.start, 0)?, records) })
    }

    /// From the record at `place` on.
    pub(crate) fn at(file: Arc<dyn ReadAt>, limits: Limits, place: &Place) -> Result<Self> {
        let records = RecordFile::new(file).limits(limits).lenient(true);
        let mut reader = records.reader_at(place.offset, place.index)?;
        // Behind a damaged record there may be others in the same member: what that record is at this place, an index knows.
        reader.expect_shared();
        Ok(Self::from_reader(reader, records))
    }

    fn from_reader(reader: WarcReader, file: RecordFile) -> Self {
        let (ahead, ready) = (None, VecDeque::new());
        WarcSource {
            reader,
            file,
            ahead,
            ready,
            beside: Vec::new(),
            damaged: false,
            damaged_url: None,
            end: u64::MAX,
            ended: false,
            skipped: false,
        }
    }

    /// [`CaptureSource::next_entry`] with bodies that outlive the call: they are in memory or read from the file again.
    pub fn next_owned(&mut self) -> Result<Option<(Entry<'static>, Place)>> {
        self.beside.clear();
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Ok(Some(entry));
            }
            let Some(first) = self.load(Loaded::read)? else { return Ok(None) };
            if first.role() == Role::Other {
                return Ok(Some(first.into_other()));
            }
            let mut group = vec![first];
            loop {
                match self.load(Loaded::read) {
                    Ok(Some(next)) if belongs(&group, &next) => group.push(next),
                    other => {
                        self.ahead = other.transpose();
                        break;
                    }
                }
            }
            // The segments of a record end its event.
            if let Some(main) = group.iter_mut().find(|r| r.role() == Role::Main) {
                while let Some(Ok(next)) = self.ahead.take_if(|ahead| ahead.as_ref().is_ok_and(Loaded::is_segment)) {
                    if let Some(other) = main.join(next) {
                        self.ahead = Some(Ok(other));
                        break;
                    }
                    self.ahead = self.load(Loaded::read).transpose();
                }
            }
            self.ready = build::entries(group, &mut self.beside)?;
        }
    }

    fn load(&mut self, read: fn(crate::Record<'_>, &RecordFile) -> Result<Loaded>) -> Result<Option<Loaded>> {
        if let Some(ahead) = self.ahead.take() {
            return ahead.map(Some);
        }
        if self.ended {
            return Ok(None);
        }
        if std::mem::take(&mut self.damaged) {
            self.reader.recover()?;
            self.skipped = true;
        }
        let result = match self.reader.next_record() {
            Ok(Some(record)) if record.at().offset >= self.end => {
                self.ended = true;
                if record.at().offset > self.end && !self.skipped {
                    let found = format!("one at {}", record.at().offset);
                    let at = crate::At { offset: self.end, ..record.at().clone() };
                    // Not damage: going on would read records twice or not at all.
                    let reason = format!("{at}: expected a record where the next split begins, found {found}");
                    return Err(Error::Refused { file: at.file.to_string(), reason });
                }
                return Ok(None);
            }
            Ok(Some(record)) => read(record, &self.file).map(Some),
            Ok(None) => Ok(None),
            Err(e) => Err(e),
        };
        if result.as_ref().is_err_and(Error::is_damage) {
            self.damaged_url = self.reader.url_of_record();
            self.reader.give_up();
            self.damaged = true;
        }
        result
    }
}

/// Whether `next`, which stands right after `group`, is part of the same event.
fn belongs(group: &[Loaded], next: &Loaded) -> bool {
    if next.role() == Role::Other || group.iter().any(|r| r.role() == next.role()) {
        return false;
    }
    let linked = group.iter().any(|r| r.names(next) || next.names(r));
    if linked || next.role() == Role::Facts {
        return linked;
    }
    // Adjacency counts only where no header says otherwise: a link to another record does.
    let silent = next.is_silent() && group.iter().all(Loaded::is_silent);
    silent && group.iter().all(|r| r.role() != Role::Facts && r.target() == next.target())
}

impl CaptureSource for WarcSource {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        Ok(self.next_owned()?)
    }

    fn position(&self) -> u64 {
        self.reader.stored_offset()
    }

    fn beside(&self) -> &[&'static str] {
        &self.beside
    }

    fn damaged_url(&self) -> Option<String> {
        self.damaged_url.clone()
    }
}

impl RecordSource for WarcSource {
    fn next_event(&mut self) -> Result<Option<RawEvent<'static>>, DoorError> {
        Ok(self.next_group()?)
    }

    fn position(&self) -> u64 {
        self.reader.stored_offset()
    }
}

impl Role {
    fn of(record_type: RecordType, is_http: bool, has_facts: bool) -> Self {
        match record_type {
            RecordType::Response if is_http => Role::Main,
            RecordType::Revisit => Role::Main,
            RecordType::Request if is_http => Role::Request,
            RecordType::Metadata if has_facts => Role::Facts,
            _ => Role::Other,
        }
    }
}

#[cfg(test)]
mod tests;
