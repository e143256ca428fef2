//! Checks an archive: every length, checksum and digest, and that records name records that exist.
//!
//! ```text
//! each file    members inflate, headers parse, blocks have the length they claim, digests fit what is stored
//! the set      record ids are unique; WARC-Concurrent-To leads to a record of the same file; WARC-Refers-To, or target
//!              and date, lead to a capture with the same digest
//! ```
//! Memory does not grow with the archive: what the records of the set say of each other is sorted on disk.

mod digests;
mod links;

use crate::error::{At, Result};
use crate::limits::Limits;
use crate::reader::WarcReader;
use links::Links;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use trawl_io::ReadAt;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The archive is wrong.
    Fault,
    /// Worth knowing; nothing is lost.
    Note,
}

/// Something that is not as it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub at: At,
    /// How bad.
    pub severity: Severity,
    /// What kind, for machines: `payload-digest`, `duplicate-id`.
    pub kind: &'static str,
    /// What exactly, for people.
    pub detail: String,
}

/// How far a long walk through files is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Records seen in this file.
    pub records: u64,
    /// Stored bytes read of this file.
    pub bytes: u64,
    /// Its stored bytes.
    pub total_bytes: u64,
}

/// What was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct VerifyReport {
    /// Files.
    pub files: u64,
    /// Records.
    pub records: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// Digests that were computed and compared.
    pub digests: u64,
    /// Faults found.
    pub faults: u64,
    /// Notes made.
    pub notes: u64,
}

/// Checks a set of files, one after another.
pub struct Verifier<'a> {
    limits: Limits,
    links: Links,
    report: VerifyReport,
    on_finding: Box<dyn FnMut(Finding) + 'a>,
    files: Vec<Arc<str>>,
}

/// How often progress is told, in records.
pub(crate) const REPORT_EVERY: u64 = 256;

impl<'a> Verifier<'a> {
    /// Checks with these limits, sorting within `memory_bytes` and in `temp_dir`; each finding goes to `on_finding`.
    pub fn new(
        limits: Limits,
        temp_dir: &Path,
        memory_bytes: usize,
        on_finding: impl FnMut(Finding) + 'a,
    ) -> Result<Self> {
        Ok(Verifier {
            limits,
            links: Links::new(temp_dir, memory_bytes)?,
            report: VerifyReport::default(),
            on_finding: Box::new(on_finding),
            files: Vec::new(),
        })
    }

    /// Checks one file. Damage is a finding, and the check goes on behind it; only a failing machine is an error.
    pub fn file(&mut self, file: Arc<dyn ReadAt>, progress: &mut dyn FnMut(Progress)) -> Result<()> {
        let total_bytes = file.len();
        self.container(&file.name().to_string_lossy(), total_bytes);
        let records = self.part(file, 0, progress)?;
        progress(Progress { records, bytes: total_bytes, total_bytes });
        Ok(())
    }

    /// Starts a file whose records lie in parts, with other things between them: [`Verifier::part`] for each.
    pub fn container(&mut self, name: &str, bytes: u64) {
        self.files.push(name.into());
        self.report.files += 1;
        self.report.bytes += bytes;
    }

    /// Checks the records from `offset` to the end of `file`, which is a part of the file started last. Returns how many
    /// there were.
    pub fn part(&mut self, file: Arc<dyn ReadAt>, offset: u64, progress: &mut dyn FnMut(Progress)) -> Result<u64> {
        let name = self.files.last().cloned().unwrap_or_default();
        let index = u32::try_from(self.files.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let total_bytes = file.len();
        let (tell, warnings) = mpsc::channel();
        let mut reader = WarcReader::builder()
            .limits(self.limits)
            .lenient(true)
            .on_warning(move |warning| drop(tell.send(warning)))
            .over_from(file, offset);
        let mut records = 0u64;
        let mut shared = false;
        loop {
            let step = self.record(&mut reader, index, &mut shared);
            for warning in warnings.try_iter() {
                self.found(warning.at, Severity::Fault, "oddity", warning.what);
            }
            match step {
                Ok(true) => records += 1,
                Ok(false) => break,
                Err(e) if e.is_damage() => {
                    let at = e.at().cloned().unwrap_or_default();
                    self.found(at, Severity::Fault, "damage", e.to_string());
                    if let Some(gap) = reader.recover_from_here()? {
                        let at = At { file: name.clone(), offset: gap.from, inside: 0 };
                        let detail = format!("{} bytes could not be read", gap.to - gap.from);
                        self.found(at, Severity::Note, "skipped", detail);
                    }
                }
                Err(e) => return Err(e),
            }
            if records.is_multiple_of(REPORT_EVERY) {
                progress(Progress { records, bytes: reader.stored_offset(), total_bytes });
            }
        }
        self.report.records += records;
        Ok(records)
    }

    /// Checks the next record; `false` at the end.
    fn record(&mut self, reader: &mut WarcReader, file: u32, shared: &mut bool) -> Result<bool> {
        let is_arc = reader.is_arc();
        let Some(record) = reader.next_record()? else { return Ok(false) };
        let at = record.at().clone();
        let index = record.place().index;
        self.links.note(record.header(), file, at.offset, index)?;
        let checked = digests::check(record)?;
        self.report.digests += checked.compared;
        for (kind, severity, detail) in checked.findings {
            self.found(at.clone(), severity, kind, detail);
        }
        if index > 0 && !is_arc && !std::mem::replace(shared, true) {
            let detail = "several records share a compressed member: single records cannot be read alone".to_owned();
            self.found(at, Severity::Note, "shared-member", detail);
        }
        Ok(true)
    }

    /// Checks what the records of the set say of each other, and ends.
    pub fn finish(mut self) -> Result<VerifyReport> {
        let links = std::mem::take(&mut self.links);
        let files = std::mem::take(&mut self.files);
        links.check(|link| {
            let file = usize::try_from(link.file).ok().and_then(|i| files.get(i)).cloned().unwrap_or_default();
            let at = At { file, offset: link.offset, inside: 0 };
            self.found(at, link.severity, link.kind, link.detail);
        })?;
        Ok(self.report)
    }

    fn found(&mut self, at: At, severity: Severity, kind: &'static str, detail: String) {
        match severity {
            Severity::Fault => self.report.faults += 1,
            Severity::Note => self.report.notes += 1,
        }
        (self.on_finding)(Finding { at, severity, kind, detail });
    }
}

#[cfg(test)]
mod tests;
