//! Checks an archive: every length, checksum and digest, and that records name records that exist.
//!
//! ```text
//! each file    every byte belongs to a record; members inflate, headers parse, dates and targets are there, blocks have the length they claim, digests fit what is stored
//! the set      record ids are unique; WARC-Concurrent-To leads to a record of the same file; WARC-Refers-To, or target
//!              and date, lead to a capture with the same digest
//! ```
//! Memory does not grow with the archive: what the records of the set say of each other is sorted on disk.

mod digests;
mod links;

use crate::error::{At, Result, finding};
use crate::header::{RecordHeader, RecordType};
use crate::limits::Limits;
use crate::reader::WarcReader;
use links::Links;
use std::sync::Arc;
use std::sync::mpsc;
use trawl_io::ReadAt;
use trawl_model::{Check, Checked, Progress, Severity, UnixMillis};

/// Checks a set of files, one after another.
pub struct Verifier<'c, 'a> {
    links: Links,
    checked: Checked,
    check: &'c mut Check<'a>,
    files: Vec<Arc<str>>,
}

/// How often progress is reported, in records.
pub(crate) const REPORT_EVERY: u64 = 256;

impl<'c, 'a> Verifier<'c, 'a> {
    /// Checks, sorting within the memory and the directory that `check` names.
    pub fn new(check: &'c mut Check<'a>) -> Result<Self> {
        let links = Links::new(check.temp_dir, check.memory_bytes)?;
        Ok(Verifier { links, checked: Checked::default(), check, files: Vec::new() })
    }

    /// Checks one file. Damage is a finding, and the check goes on behind it; only a failing machine is an error.
    pub fn file(&mut self, file: Arc<dyn ReadAt>) -> Result<()> {
        let (name, len, before) = (file.name().to_string_lossy().into_owned(), file.len(), self.checked.records);
        self.container(&name, len);
        self.part(file, 0)?;
        // A compressed file may hold nothing and be sound; an archive is something else. An empty file is reported elsewhere.
        if self.checked.records == before && len > 0 {
            let at = At { file: name.into(), offset: 0, inside: 0 };
            self.found(&at, Severity::Fault, "empty", "there is no record in it".to_owned());
        }
        Ok(())
    }

    /// Starts a file whose records lie in parts, with other things between them: [`Verifier::part`] for each.
    pub fn container(&mut self, name: &str, bytes: u64) {
        self.files.push(name.into());
        self.checked.files += 1;
        self.checked.bytes += bytes;
    }

    /// Checks the records from `offset` to the end of `file`, which is a part of the file started last.
    pub fn part(&mut self, file: Arc<dyn ReadAt>, offset: u64) -> Result<()> {
        let name = self.files.last().cloned().unwrap_or_default();
        let index = u32::try_from(self.files.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let total_bytes = file.len();
        let (tell, warnings) = mpsc::channel();
        let mut reader = WarcReader::builder()
            .limits(Limits::default())
            .lenient(true)
            .on_warning(move |warning| drop(tell.send(warning)))
            .over_from(file, offset);
        let mut shared = None;
        loop {
            let step = self.record(&mut reader, index, &mut shared);
            for warning in warnings.try_iter() {
                self.found(&warning.at, Severity::Fault, "oddity", warning.what);
            }
            match step {
                Ok(true) => self.checked.records += 1,
                Ok(false) => break,
                Err(e) if e.is_damage() => {
                    let at = e.at().cloned().unwrap_or_default();
                    self.found(&at, Severity::Fault, "damage", e.to_string());
                    // Inside one member no byte as stored was passed over.
                    if let Some(gap) = reader.recover_from_here()?.filter(|gap| gap.to > gap.from) {
                        let at = At { file: name.clone(), offset: gap.from, inside: 0 };
                        let detail = format!("{} bytes could not be read", gap.to - gap.from);
                        self.found(&at, Severity::Note, "skipped", detail);
                    }
                }
                Err(e) => return Err(e),
            }
            let records = self.checked.records;
            if records.is_multiple_of(REPORT_EVERY) {
                (self.check.progress)(Progress { records, bytes: reader.stored_offset(), total_bytes });
            }
        }
        let alone = "single records cannot be read alone";
        match shared {
            _ if reader.is_spread() => {
                let at = At { file: name.clone(), offset: 0, inside: 0 };
                let detail = format!("records continue from one compressed member into the next: {alone}");
                self.found(&at, Severity::Note, "spread-record", detail);
            }
            Some(at) => {
                let detail = format!("several records share a compressed member: {alone}");
                self.found(&at, Severity::Note, "shared-member", detail);
            }
            None => {}
        }
        // A reader that is exact goes from byte to byte: each was part of a record, or told of above, up to where it stands.
        let end = reader.stored_offset();
        if end != total_bytes {
            let at = At { file: name, offset: end, inside: 0 };
            self.found(&at, Severity::Fault, "unread", format!("{} bytes at the end were not read", total_bytes - end));
        }
        Ok(())
    }

    /// Checks the next record; `false` at the end.
    fn record(&mut self, reader: &mut WarcReader, file: u32, shared: &mut Option<At>) -> Result<bool> {
        let is_arc = reader.is_arc();
        let Some(record) = reader.next_record()? else { return Ok(false) };
        let at = record.at().clone();
        let index = record.place().index;
        self.links.note(record.header(), file, at.offset, index)?;
        let odd = required(record.header());
        let checked = digests::check(record)?;
        self.checked.digests += checked.compared;
        for (kind, detail) in odd {
            self.found(&at, Severity::Fault, kind, detail);
        }
        for (kind, severity, detail) in checked.findings {
            self.found(&at, severity, kind, detail);
        }
        if index > 0 && !is_arc && shared.is_none() {
            *shared = Some(at);
        }
        Ok(true)
    }

    /// Checks what the records of the set say of each other, and ends.
    pub fn finish(mut self) -> Result<Checked> {
        let links = std::mem::take(&mut self.links);
        let files = std::mem::take(&mut self.files);
        links.check(|link| {
            let file = usize::try_from(link.file).ok().and_then(|i| files.get(i)).cloned().unwrap_or_default();
            let at = At { file, offset: link.offset, inside: 0 };
            self.found(&at, link.severity, link.kind, link.detail);
        })?;
        Ok(self.checked)
    }

    fn found(&mut self, at: &At, severity: Severity, kind: &'static str, detail: String) {
        (self.check.on_finding)(finding(at, severity, kind, detail));
    }
}

/// What is wrong with the fields that every record has to have. Length and type are needed to read it, and an id is what other
/// findings are about.
fn required(header: &RecordHeader) -> Vec<(&'static str, String)> {
    let mut odd = Vec::new();
    match header.text("WARC-Date") {
        // The reader has reported one that is missing.
        None => {}
        Some(text) if header.date().is_none() => odd.push(("date", format!("WARC-Date is not a time: {text:?}"))),
        Some(text) if UnixMillis::parse(&text).is_err() => {
            odd.push(("date", format!("WARC-Date is not written as the standard has it: {text:?}")));
        }
        Some(_) => {}
    }
    let about_url = matches!(
        header.record_type(),
        RecordType::Response
            | RecordType::Request
            | RecordType::Revisit
            | RecordType::Resource
            | RecordType::Conversion
    );
    if about_url && header.target_uri().is_none_or(|url| url.trim().is_empty()) {
        odd.push(("target", "WARC-Target-URI is missing".to_owned()));
    }
    odd
}

#[cfg(test)]
mod tests;
