//! Checking archives and their indexes, for `trawl verify` and for the demo.

use crate::containers;
use crate::formats::{Format, Found};
use serde::Serialize;
use std::path::Path;
use trawl_captures::{CapturesReader, IndexReport, IndexVerifier};
use trawl_model::DoorError;
use trawl_warc::wacz::Wacz;
use trawl_warc::{Finding, Limits, Severity, Verifier, VerifyReport, WarcSource};

/// Something that is not as it should be.
#[derive(Debug, Serialize)]
pub struct Fault {
    /// `fault`, or `note` where nothing is lost.
    #[serde(rename = "type")]
    pub severity: Severity,
    /// The file, or the capture an index row is about.
    pub file: String,
    /// Where in the file, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What kind, for machines.
    pub kind: &'static str,
    /// What exactly, for people.
    pub detail: String,
}

/// What was checked.
#[derive(Debug, Default, Serialize)]
pub struct Checked {
    /// The archives.
    #[serde(flatten)]
    pub archives: VerifyReport,
    /// Their index, where there is one beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexReport>,
    /// Containers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<containers::Checked>,
}

/// Checks the files of one path: each archive, what the records of all of them say of each other, and that an index beside
/// them has exactly a row for each capture. `all` says that these are all files of a directory. `temp` takes what does not fit into `memory` bytes.
pub fn verify(
    files: &[Found],
    all: bool,
    temp: &Path,
    memory: usize,
    on_fault: &mut dyn FnMut(Fault),
    progress: &mut dyn FnMut(u64, u64),
) -> anyhow::Result<Checked> {
    let archives = archives(files, temp, memory, on_fault, progress)?;
    let mut checked = Checked { archives, ..Checked::default() };
    let of = |format| move |found: &&Found| found.format == format;
    let indexes: Vec<_> = files.iter().filter(of(Format::Captures)).collect();
    let archives: Vec<_> = files.iter().filter(|f| matches!(f.format, Format::Warc | Format::Seqdb)).collect();
    // An index alone points at archives that are somewhere else: opening it is all that can be checked.
    for index in &indexes {
        for row in CapturesReader::over(index.open()?)? {
            row?;
        }
    }
    // In a directory they should be beside it: without any, each row is about a record that is gone.
    let gone = all && !files.iter().any(|found| found.format == Format::Wacz);
    if !indexes.is_empty() && (!archives.is_empty() || gone) {
        checked.index = Some(index(&indexes, &archives, temp, memory, on_fault)?);
    }
    let mut seqdb = files.iter().filter(of(Format::Seqdb)).map(|found| found.path.as_path()).peekable();
    if seqdb.peek().is_some() {
        checked.containers = Some(containers::verify(seqdb, memory, on_fault)?);
    }
    Ok(checked)
}

fn archives(
    files: &[Found],
    temp: &Path,
    memory: usize,
    on_fault: &mut dyn FnMut(Fault),
    progress: &mut dyn FnMut(u64, u64),
) -> anyhow::Result<VerifyReport> {
    let mut packages = Vec::new();
    let mut verifier = Verifier::new(Limits::default(), temp, memory, |finding| on_fault(fault(finding)))?;
    let mut before = 0;
    for found in files {
        let mut seen = 0;
        let mut tell = |p: trawl_warc::Progress| {
            seen = p.records;
            progress(before + seen, p.bytes);
        };
        match found.format {
            Format::Warc => verifier.file(found.open()?, &mut tell)?,
            Format::Wacz => {
                let wacz = Wacz::open(found.open()?)?;
                for entry in wacz.warc_entries() {
                    verifier.file(wacz.warc(&entry.name)?, &mut tell)?;
                }
                packages.push(wacz);
            }
            Format::Seqdb => {
                let settings = containers::settings("trawl verify");
                // What cannot be opened is reported with the container itself.
                let Ok(Some(pages)) = containers::captures(&found.path, &settings) else { continue };
                verifier.container(&found.path.display().to_string(), pages.filesys().data().end());
                let read = containers::each_event(&pages, &settings, &mut |event| {
                    seen += verifier.part(event.file, event.offset, &mut |_| {})?;
                    progress(before + seen, event.offset);
                    Ok(())
                });
                // Damage to the container is reported with the container itself.
                read.or_else(|error| if containers::is_damage(&error) { Ok(()) } else { Err(error) })?;
            }
            Format::Captures => {}
        }
        before += seen;
    }
    let mut report = verifier.finish()?;
    for wacz in packages {
        wacz.verify(&mut |finding| {
            report.faults += u64::from(finding.severity == Severity::Fault);
            on_fault(fault(finding));
        })?;
    }
    for found in files {
        // A container without a byte is no container, however well it follows the rules.
        if found.open()?.is_empty() {
            report.faults += 1;
            let (file, detail) = (found.path.display().to_string(), "the file is empty".to_owned());
            on_fault(Fault { severity: Severity::Fault, file, offset: Some(0), kind: "empty", detail });
        }
    }
    Ok(report)
}

fn index(
    indexes: &[&Found],
    archives: &[&Found],
    temp: &Path,
    memory: usize,
    on_fault: &mut dyn FnMut(Fault),
) -> anyhow::Result<IndexReport> {
    let mut verifier = IndexVerifier::new(temp, memory)?;
    for found in indexes {
        verifier.index(CapturesReader::over(found.open()?)?, &mut |_| {})?;
    }
    // What cannot be read has been reported with the archive itself.
    let mut skip = |_: DoorError| {};
    for found in archives {
        if found.format == Format::Warc {
            let mut source = WarcSource::over(found.open()?, Limits::default(), true);
            verifier.archive(&mut source, &mut skip, &mut |_| {})?;
            continue;
        }
        let settings = containers::settings("trawl verify");
        if let Ok(Some(pages)) = containers::captures(&found.path, &settings) {
            verifier.archive(&mut containers::PagesSource::new(&pages, &settings), &mut skip, &mut |_| {})?;
        }
    }
    let report = verifier.finish(&mut |finding| {
        let (file, kind, detail) = (finding.about, finding.kind, finding.detail);
        on_fault(Fault { severity: Severity::Fault, file, offset: None, kind, detail });
    })?;
    Ok(report)
}

fn fault(finding: Finding) -> Fault {
    let Finding { at, severity, kind, detail } = finding;
    Fault { severity, file: at.file.to_string(), offset: Some(at.offset), kind, detail }
}
