//! One container into another, through the doors.
//!
//! Between containers of WARC records the records go over byte for byte. Else captures do, and what the target cannot carry
//! is counted, or refused.

use crate::error::{Error, Result};
use crate::registry::{Found, Registry};
use serde::Serialize;
use std::collections::BTreeMap;
use trawl_io::format::{Creation, Format, Target};
use trawl_model::{
    Advice, Capability, CaptureSink, CaptureSource, DoorError, Entry, OnProgress, Pick, Progress, RawEvent,
    RecordSource, Summary,
};

/// How often progress is reported, in records.
const REPORT_EVERY: u64 = 256;

/// What was written.
#[derive(Debug, Default, Serialize)]
pub struct Converted {
    /// The target.
    pub target: String,
    /// Records written.
    pub records: u64,
    /// Damaged places that were left out.
    pub damaged: u64,
    /// Records that were written, but that the target's own index cannot list.
    #[serde(skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// The first of those, and why.
    #[serde(skip)]
    pub examples: Vec<String>,
    /// Bytes of the target.
    pub bytes: u64,
    /// What the sources hold beside captures, by name, and how many records of it were left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, u64>,
    /// What the target cannot carry, and how often that was left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<Capability, u64>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Converts archives into one whose format follows from the name of the target, a file. `strict` fails at the first damage, or
/// at the first thing that the target cannot carry; then no target appears. Damage that is left out is reported to `on_skip`.
pub fn convert(
    registry: &Registry,
    sources: &[Found],
    creation: Creation,
    strict: bool,
    on_skip: &mut dyn FnMut(DoorError),
    progress: OnProgress<'_>,
) -> Result<Converted> {
    let Target::File(path) = &creation.target else {
        return Err(DoorError::new(Advice::Stop, "expected a file to convert to, found a run of a crawl"));
    };
    let (format, target) = (registry.target(path)?, path.display().to_string());
    check_compression(&*format, creation.compress.as_deref())?;
    // An index says nothing that the archives it points at do not say.
    let sources: Vec<_> = sources.iter().filter(|found| !found.is_index()).collect();
    let files: Vec<_> = sources.iter().map(|found| (found.format.name(), found.path.clone())).collect();
    if let Some(summary) = format.pack(&creation, &files, progress)? {
        let mut done = Converted { target, ..Converted::default() };
        done.take(summary);
        return Ok(done);
    }
    let fs = creation.fs.clone();
    let mut archives = Vec::new();
    let mut introduce = sources.is_empty();
    for found in &sources {
        let archive = found.open(&fs)?;
        introduce |= archive.records(Pick::All)?.is_none();
        archives.push((found, archive));
    }
    let sink = format.create(Creation { introduce, strict, ..creation })?;
    let done = Converted { target, ..Converted::default() };
    let mut work = Work { sink, format: format.name(), strict, done, on_skip, progress };
    for (found, archive) in archives {
        let takes_records = work.sink.carries().has(Capability::OtherRecords);
        if let Some(source) = archive.records(Pick::All)?.filter(|_| takes_records) {
            work.records(source)?;
        } else if let Some(source) = archive.captures_to_convert()? {
            for (name, count) in archive.left_out()? {
                if strict {
                    return Err(Error::LeftOut { path: found.path.clone(), name, count }.into());
                }
                *work.done.left_out.entry(name).or_default() += count;
            }
            work.captures(source)?;
        } else {
            return Err(Error::NoCaptures { path: found.path.clone() }.into());
        }
    }
    let Work { sink, mut done, .. } = work;
    done.take(sink.finish()?);
    Ok(done)
}

impl Converted {
    /// Takes what a finished target says of itself.
    fn take(&mut self, summary: Summary) {
        self.records = summary.records;
        self.bytes = summary.files.iter().map(|(_, bytes)| bytes).sum();
        (self.unlisted, self.examples) = (summary.unlisted, summary.examples);
        for (lost, count) in summary.dropped {
            *self.dropped.entry(lost).or_default() += count;
        }
    }
}

/// Refuses a compression that the format does not have.
pub fn check_compression(format: &dyn Format, compress: Option<&str>) -> Result<()> {
    match compress {
        Some(name) if !format.compressions().contains(&name) => {
            let (found, format, known) = (name.to_owned(), format.name(), format.compressions().join(", "));
            Err(Error::NoCompression { found, format, known }.into())
        }
        _ => Ok(()),
    }
}

struct Work<'a> {
    sink: Box<dyn CaptureSink>,
    format: &'static str,
    strict: bool,
    /// `records` counts what was read until the sink says what was written.
    done: Converted,
    on_skip: &'a mut dyn FnMut(DoorError),
    progress: OnProgress<'a>,
}

impl Work<'_> {
    fn records(&mut self, mut source: Box<dyn RecordSource + '_>) -> Result<()> {
        let preparer = self.sink.preparer();
        loop {
            match source.next_event() {
                Ok(None) => return Ok(()),
                Ok(Some(event)) => {
                    self.read(event.records.len(), source.position());
                    // A block that is read only now may turn out to be damaged.
                    match preparer.prepare_records(event) {
                        Ok(prepared) => drop(self.sink.commit(prepared)?),
                        Err(error) => self.skip(error)?,
                    }
                }
                Err(error) => self.skip(error)?,
            }
        }
    }

    fn captures(&mut self, mut source: Box<dyn CaptureSource + '_>) -> Result<()> {
        let (preparer, carries) = (self.sink.preparer(), self.sink.carries());
        loop {
            let position = source.position();
            match source.next_entry() {
                Ok(None) => return Ok(()),
                Ok(Some((Entry::Capture(capture), _))) => {
                    self.read(1, position);
                    if carries.takes(&capture) {
                        // The preparer knows best what is lost: it may keep in its own way what others cannot.
                        match preparer.prepare(*capture) {
                            Ok(prepared) => {
                                self.refuse(&prepared.url, &prepared.losses)?;
                                self.sink.commit(prepared)?;
                            }
                            // A body that is read only now may turn out to be damaged.
                            Err(error) => self.skip(error)?,
                        }
                    } else {
                        let lost = carries.losses(&capture);
                        self.refuse(&capture.url, &lost)?;
                        self.dropped(&lost);
                    }
                }
                Ok(Some((Entry::Other(record), place))) => {
                    self.read(1, position);
                    if carries.has(Capability::OtherRecords) {
                        let event = RawEvent { records: vec![(record, place)], ..RawEvent::default() };
                        self.sink.commit(preparer.prepare_records(event)?)?;
                    } else {
                        self.refuse(&record.kind, &[Capability::OtherRecords])?;
                        self.dropped(&[Capability::OtherRecords]);
                    }
                }
                Err(error) => self.skip(error)?,
            }
        }
    }

    fn read(&mut self, records: usize, bytes: u64) {
        let before = self.done.records;
        self.done.records += records as u64;
        if before / REPORT_EVERY != self.done.records / REPORT_EVERY {
            (self.progress)(Progress { records: self.done.records, bytes, total_bytes: 0 });
        }
    }

    fn skip(&mut self, error: DoorError) -> Result<()> {
        if self.strict || error.advice != Advice::Skip {
            return Err(error);
        }
        self.done.damaged += 1;
        (self.on_skip)(error);
        Ok(())
    }

    fn refuse(&self, url: &str, lost: &[Capability]) -> Result<()> {
        if !self.strict || lost.is_empty() {
            return Ok(());
        }
        Err(Error::Dropped { url: url.to_owned(), format: self.format, lost: lost.to_vec() }.into())
    }

    fn dropped(&mut self, lost: &[Capability]) {
        for lost in lost {
            *self.done.dropped.entry(*lost).or_default() += 1;
        }
    }
}
