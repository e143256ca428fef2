//! What became of an ingest, for people and for programs.

use crate::commands::lake::sources::NotFile;
use crate::output::harmless;
use crate::units::{show_bytes, show_count};
use serde::Serialize;
use std::io::{self, Write};
use trawl_ingest::IngestReport;

/// What became of it.
#[derive(Debug, Serialize)]
pub struct Done {
    /// The dataset.
    pub dataset: String,
    /// What was written.
    #[serde(flatten)]
    pub ingest: IngestReport,
    /// What else was found where the sources lie.
    #[serde(flatten)]
    pub beside: Beside,
    /// The version that serves it.
    pub version: Option<String>,
    /// Whether no version does, since the lake's suffix list was changed meanwhile: then it waits for a rebuild.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
}

/// What was found where sources lie, and is not read, or not as it should be.
#[derive(Debug, Default, Serialize)]
pub struct Beside {
    /// Files of directories that are of no known format.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// What else is in directories and was not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_files: Vec<NotFile>,
    /// Archives whose captures were read from an index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub indexed: Vec<String>,
    /// What is not as its index says: something may be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<NotFile>,
    /// Archives in which not one capture was found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

impl Beside {
    /// Whether a source is there of which nothing, or not everything, could be taken.
    pub(in crate::commands::lake) fn is_short(&self) -> bool {
        !self.unreadable.is_empty() || !self.incomplete.is_empty()
    }

    /// A line for each, or for all of a kind.
    pub(in crate::commands::lake) fn lines(&self) -> impl Iterator<Item = String> + '_ {
        let ignored =
            self.ignored.iter().map(|path| format!("ignored {}: of no known format, or without URLs", harmless(path)));
        let indexed = (!self.indexed.is_empty())
            .then(|| format!("read {} archive(s) through their index", show_count(self.indexed.len() as u64)));
        let incomplete = self.incomplete.iter().map(|other| format!("{}: {}", harmless(&other.path), other.why));
        let unreadable = self.unreadable.iter().map(|path| format!("found no capture in {}", harmless(path)));
        let not_files = self.not_files.iter().map(|other| format!("ignored {}: {}", harmless(&other.path), other.why));
        ignored.chain(indexed).chain(incomplete).chain(unreadable).chain(not_files)
    }
}

impl Done {
    pub(super) fn write(&self, w: &mut dyn Write) -> io::Result<()> {
        let report = &self.ingest;
        writeln!(
            w,
            "{}: {} rows ({} URLs) from {} source(s) in {} file(s), {}",
            self.dataset,
            show_count(report.rows),
            show_count(report.distinct_urls),
            report.sources,
            report.files,
            show_bytes(report.bytes)
        )?;
        if report.records != report.rows {
            writeln!(w, "  of {} records: each is a row, or counted below", show_count(report.records))?;
        }
        for known in &report.replaced {
            writeln!(
                w,
                "  {}: replaced the rows that came from it when it had {} bytes",
                known.uri,
                show_count(known.size)
            )?;
        }
        for known in &report.grown {
            let (uri, size) = (harmless(&known.uri), known.size);
            writeln!(w, "  {uri} has grown since it was ingested with {size} bytes: only the rest was read")?;
        }
        if report.taken_back > 0 {
            writeln!(w, "  deleted {} row(s) that came from cut records", show_count(report.taken_back))?;
        }
        for skipped in &report.skipped {
            writeln!(w, "  skipped {}: the dataset has it already", harmless(&skipped.uri))?;
        }
        for line in self.beside.lines() {
            writeln!(w, "  {line}")?;
        }
        if !report.not_captures.is_empty() {
            let kinds = report.not_captures.iter().map(|(kind, n)| format!("{} {kind}", show_count(*n)));
            writeln!(w, "  not a capture: {}", kinds.collect::<Vec<_>>().join(", "))?;
        }
        for (code, n) in &report.rejected_by_code {
            writeln!(w, "  rejected {}: {code}", show_count(*n))?;
        }
        if let Some(file) = &report.rejects_file {
            writeln!(w, "  rejects are in {file}")?;
        }
        for (code, found) in &report.oddities {
            let (count, source) = (show_count(found.count), harmless(&found.source));
            let first = found.line.map_or_else(|| format!("byte {}", found.offset), |line| format!("line {line}"));
            writeln!(w, "  {count} {} ({code}; the first: {first} of {source})", trawl_lists::describe_oddity(code))?;
        }
        if report.denied > 0 {
            writeln!(w, "  left out {}: denied", show_count(report.denied))?;
        }
        if report.denied_since > 0 {
            let entries = show_count(report.denied_since);
            writeln!(
                w,
                "  {entries} deny entries were added meanwhile: `trawl lake purge` removes the rows that they cover"
            )?;
        }
        match &self.version {
            Some(version) => writeln!(w, "  published as version {version}"),
            None => writeln!(w, "  nothing new to publish"),
        }
    }
}
