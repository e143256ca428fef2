//! Checks containers, and the records of captures in them.

use super::archive::SeqdbArchive;
use super::reading;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::Fs;
use trawl_model::{Check, Checked, DoorError, Finding, Severity};
use trawl_seqdb::{Counted, Findings, Settings, Whole};
use trawl_warc::Verifier;

/// Checks the containers that the files are part of, each once.
pub(super) fn verify(fs: &Arc<dyn Fs>, paths: &[PathBuf], check: &mut Check<'_>) -> Result<Checked, DoorError> {
    let settings = Settings { sort_memory_bytes: check.memory_bytes, ..reading(fs) };
    let mut verifier = Verifier::new(check)?;
    for path in paths {
        let archive = SeqdbArchive::new(path, settings.clone());
        // What cannot be opened is reported with the container itself.
        let Ok(Some(pages)) = archive.pages() else { continue };
        verifier.container(&path.display().to_string(), pages.filesys().data().end());
        let mut scan = pages.scan();
        loop {
            match scan.next_page() {
                Ok(Some(page)) => {
                    let part = archive.part(pages, &page)?;
                    verifier.part(part.file, part.offset)?;
                }
                Ok(None) => break,
                // Damage to the container is reported with the container itself.
                Err(error) if is_damage(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    let mut checked = verifier.finish()?;
    let mut findings = Findings::new();
    let mut wholes: Vec<Whole> = Vec::new();
    for path in paths {
        match Whole::of(path, &settings) {
            Ok(whole) if wholes.contains(&whole) => {}
            Ok(whole) => wholes.push(whole),
            Err(error) => findings.take(error)?,
        }
    }
    let within = |whole: &&Whole| {
        let of_map =
            |hindex: &PathBuf| wholes.iter().any(|w| matches!(w, Whole::Map(files) if files.hindex == *hindex));
        matches!(whole, Whole::Hindex(path, _) if of_map(path))
    };
    for whole in wholes.iter().filter(|whole| !within(whole)) {
        checked.containers += 1;
        checked.entries += match whole.verify(&settings, &mut findings, &trawl_seqdb::silent)? {
            Counted::Filesys(counted) => counted.files,
            Counted::Kvseq(counted) => counted.entries,
            Counted::Hindex(counted) => counted.keys,
            Counted::Perm(counted) => counted.pairs,
            _ => 0,
        };
    }
    let listed = findings.list().iter().filter(|finding| finding.severity == trawl_seqdb::Severity::Fault).count();
    checked.unlisted = findings.faults().saturating_sub(listed as u64);
    for finding in findings.list() {
        let severity = match finding.severity {
            trawl_seqdb::Severity::Fault => Severity::Fault,
            trawl_seqdb::Severity::Warning => Severity::Note,
        };
        let detail = format!("expected {}, found {}", finding.expected, finding.found);
        let (file, offset) = (finding.path.display().to_string(), Some(finding.offset));
        (check.on_finding)(Finding { severity, file, offset, kind: "container", detail });
    }
    Ok(checked)
}

/// Whether an error means that the container is broken, not that a file cannot be read or is in use.
fn is_damage(error: &trawl_seqdb::Error) -> bool {
    use trawl_seqdb::Error;
    !matches!(error, Error::Io(_) | Error::LockFailed(_) | Error::Sort(_))
}
