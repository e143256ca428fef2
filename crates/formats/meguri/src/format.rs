//! `.meguri`, as the room `formats/archive` registers it: URLs, without captures of its own.

use crate::header::MAGIC;
use crate::inspect::Inspection;
use crate::reader::{MeguriFile, ReadSettings};
use crate::url_source::MeguriSource;
use crate::verify::{self, verify};
use crate::{json, list};
use serde_json::{Map, Value};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::format::{Candidate, Format, Opening};
use trawl_io::read_at::FileReader;
use trawl_io::{Fs, Mode};
use trawl_model::{
    Archive, CaptureSource, Carries, Check, Checked, DoorError, Finding, OnDamage, OnProgress, Pick, Progress,
    Severity, SourceIdentity, UrlSource, Wanted,
};

/// Partition files of a frontier.
#[derive(Debug, Clone, Copy)]
pub struct MeguriFormat;

impl Format for MeguriFormat {
    fn name(&self) -> &'static str {
        "meguri"
    }

    fn carries(&self) -> Carries {
        Carries::NOTHING
    }

    fn detect(&self, candidate: &Candidate<'_>) -> bool {
        candidate.head.is_some_and(|head| head.starts_with(&MAGIC) || candidate.lower_name().ends_with(".meguri"))
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError> {
        let file = opening.fs.open(opening.path, Mode::Read)?;
        let file = Arc::new(FileReader::up_to(file, opening.up_to.unwrap_or(u64::MAX))?);
        Ok(Box::new(Partition(MeguriFile::open(file, settings(opening.fs))?)))
    }

    fn verify(&self, fs: &Arc<dyn Fs>, paths: &[PathBuf], check: &mut Check<'_>) -> Result<Checked, DoorError> {
        let mut checked = Checked::default();
        for path in paths {
            let src = Arc::new(FileReader::open_in(&**fs, path)?);
            let settings = ReadSettings { temp: check.temp_dir.to_owned(), ..settings(fs) };
            let on_finding = &mut *check.on_finding;
            let mut tell = |found: verify::Finding| {
                let (severity, kind) = match found.severity {
                    verify::Severity::Fault => (Severity::Fault, "damage"),
                    verify::Severity::Warning => (Severity::Note, "odd"),
                };
                let (file, offset, detail) = (path.display().to_string(), found.offset, found.detail);
                on_finding(Finding { severity, file, offset, kind, detail });
            };
            let before = checked.entries;
            let mut progress = |rows: u64| {
                (check.progress)(Progress { records: before + rows, ..Progress::default() });
            };
            let report = verify(src, settings, &mut tell, &mut progress)?;
            checked.bytes += report.bytes;
            checked.containers += 1;
            checked.entries += report.urls + report.hosts;
        }
        Ok(checked)
    }
}

fn settings(fs: &Arc<dyn Fs>) -> ReadSettings {
    ReadSettings { fs: fs.clone(), ..ReadSettings::default() }
}

/// An open file behind the door.
struct Partition(MeguriFile);

impl Archive for Partition {
    fn captures<'a>(&'a self, _pick: Pick<'_>) -> Result<Option<Box<dyn CaptureSource + 'a>>, DoorError> {
        Ok(None)
    }

    /// The footer's checksum covers those of all regions, so it is as good as a hash of all bytes.
    fn identity(&self) -> Option<SourceIdentity> {
        MeguriSource::new(self.0.clone(), &self.0.path().to_string_lossy()).ok().map(|source| source.identity())
    }

    fn urls(&self, identity: &SourceIdentity) -> Result<Option<Box<dyn UrlSource>>, DoorError> {
        Ok(Some(Box::new(MeguriSource::known_as(self.0.clone(), identity.clone()))))
    }

    /// Two reads, which were made when the file was opened, and the rows of the sample.
    fn inspect(&self, sample: usize, _progress: OnProgress<'_>) -> Result<Vec<trawl_model::Inspection>, DoorError> {
        let facts = Inspection::of(&self.0);
        let mut seen = trawl_model::Inspection { format: facts.format.to_owned(), ..Default::default() };
        seen.fact("urls", facts.header.url_count);
        seen.fact("hosts", facts.header.host_count);
        seen.fact("stored_bytes", facts.bytes);
        seen.fact("scheduled", facts.stats.scheduled_count);
        seen.fact("key_policy", facts.key_policy);
        seen.remarks.push(format!("{:.2} bytes a URL", facts.bytes_per_url));
        if let Ok(Value::Object(all)) = serde_json::to_value(&facts) {
            seen.details = all.into_iter().filter(|(name, _)| name != "format" && name != "key_policy").collect();
        }
        let mut rows = self.0.cursor()?;
        while let Some(row) = if seen.sample.len() < sample { rows.next_row()? } else { None } {
            seen.sample.extend(shown(json::row(&row)));
        }
        Ok(vec![seen])
    }

    fn list(
        &self,
        wanted: &Wanted<'_>,
        out: &mut dyn Write,
        on_damage: OnDamage<'_>,
    ) -> Result<Option<u64>, DoorError> {
        list::list(&self.0, wanted, out, on_damage).map(Some)
    }

    fn has_rows(&self) -> bool {
        true
    }
}

/// What the sample has of a row.
fn shown(row: Value) -> Option<Map<String, Value>> {
    let Value::Object(mut row) = row else { return None };
    let mut entry = Map::new();
    for name in ["row", "status", "next_due", "url"] {
        entry.extend(row.remove(name).map(|value| (name.to_owned(), value)));
    }
    Some(entry)
}
