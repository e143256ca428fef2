//! Captures out of a WARC or ARC file: the door [`CaptureSource`].
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
mod loaded;

use crate::error::{Error, Result};
use crate::header::RecordType;
use crate::limits::Limits;
use crate::reader::{RecordFile, WarcReader, Warning};
use loaded::{Loaded, Role};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::read_at::FileReader;
use trawl_model::{CaptureSource, Carries, DoorError, Entry, Place};

/// Blocks up to this size are kept in memory; longer ones are read again from the file when somebody wants them.
pub(crate) const MEMORY_BYTES: u64 = 4 << 20;

/// Reads captures from one file.
pub struct WarcSource {
    reader: WarcReader,
    file: RecordFile,
    /// A record read ahead to see whether it belongs to the event before it.
    ahead: Option<Loaded>,
    ready: VecDeque<(Entry<'static>, Place)>,
    damaged: bool,
}

impl WarcSource {
    /// Opens a file of the machine, accepting oddities if `lenient`.
    pub fn open(path: &Path, limits: Limits, lenient: bool) -> Result<Self> {
        Ok(Self::over(Arc::new(FileReader::open(path)?), limits, lenient))
    }

    /// Reads anything with offsets.
    pub fn over(file: Arc<dyn ReadAt>, limits: Limits, lenient: bool) -> Self {
        Self::with_warnings(file, limits, lenient, |_| {})
    }

    /// [`WarcSource::over`], beginning with the record at `offset`.
    pub fn over_from(file: Arc<dyn ReadAt>, offset: u64, limits: Limits, lenient: bool) -> Self {
        let reader = WarcReader::builder().limits(limits).lenient(lenient).over_from(file.clone(), offset);
        Self::from_reader(reader, RecordFile::new(file).limits(limits).lenient(lenient))
    }

    /// [`WarcSource::over`], telling `on_warning` every oddity that was accepted.
    pub fn with_warnings(
        file: Arc<dyn ReadAt>,
        limits: Limits,
        lenient: bool,
        on_warning: impl FnMut(Warning) + Send + 'static,
    ) -> Self {
        let reader = WarcReader::builder().limits(limits).lenient(lenient).on_warning(on_warning).over(file.clone());
        Self::from_reader(reader, RecordFile::new(file).limits(limits).lenient(lenient))
    }

    /// The capture whose response (or lone record) lies at `place`, with whatever of its event follows it there.
    pub fn capture_at(file: Arc<dyn ReadAt>, limits: Limits, place: &Place) -> Result<Option<(Entry<'static>, Place)>> {
        let records = RecordFile::new(file).limits(limits).lenient(true);
        Self::from_reader(records.reader_at(place.offset, place.index)?, records).next_owned()
    }

    /// Goes on where `reader` stands; long bodies are read again from `file`.
    pub(crate) fn from_reader(reader: WarcReader, file: RecordFile) -> Self {
        WarcSource { reader, file, ahead: None, ready: VecDeque::new(), damaged: false }
    }

    /// Stored bytes read so far: for progress.
    pub fn stored_offset(&self) -> u64 {
        self.reader.stored_offset()
    }

    /// [`CaptureSource::next_entry`] with bodies that outlive the call: they are in memory or read from the file again.
    pub fn next_owned(&mut self) -> Result<Option<(Entry<'static>, Place)>> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Ok(Some(entry));
            }
            let Some(first) = self.load()? else { return Ok(None) };
            if first.role() == Role::Other {
                return Ok(Some(first.into_other()));
            }
            let mut group = vec![first];
            loop {
                match self.load() {
                    Ok(Some(next)) if belongs(&group, &next) => group.push(next),
                    Ok(next) => {
                        self.ahead = next;
                        break;
                    }
                    Err(e) => {
                        // The event that was being read is whole as far as anyone can tell; the error comes first, and
                        // the event right after it.
                        self.ready = build::entries(group).into();
                        return Err(e);
                    }
                }
            }
            self.ready = build::entries(group).into();
        }
    }

    fn load(&mut self) -> Result<Option<Loaded>> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        if std::mem::take(&mut self.damaged) {
            self.reader.recover()?;
        }
        let result = match self.reader.next_record() {
            Ok(Some(record)) => Loaded::read(record, &self.file).map(Some),
            Ok(None) => Ok(None),
            Err(e) => Err(e),
        };
        if result.as_ref().is_err_and(Error::is_damage) {
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
    // Adjacency speaks only where nobody said anything: a link to elsewhere is a statement.
    let silent = next.is_silent() && group.iter().all(Loaded::is_silent);
    silent && group.iter().all(|r| r.role() != Role::Facts && r.target() == next.target())
}

impl CaptureSource for WarcSource {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        Ok(self.next_owned()?)
    }

    fn carries(&self) -> Carries {
        Carries::all()
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
