//! Checks archives, and the index beside them.

use crate::error::Result;
use crate::registry::Found;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_captures::{CapturesReader, IndexReport, IndexVerifier};
use trawl_io::Fs;
use trawl_io::read_at::FileReader;
use trawl_model::{Capability, Check, Checked, Finding, Pick, Severity};

/// What was checked.
#[derive(Debug, Default, Serialize)]
pub struct Verified {
    /// Files with records or captures in them.
    pub files: u64,
    /// Records or captures.
    pub records: u64,
    /// Stored bytes of those files.
    pub bytes: u64,
    /// Digests that were computed and compared.
    pub digests: u64,
    /// What is wrong with them.
    pub faults: u64,
    /// What is worth knowing of them.
    pub notes: u64,
    /// Their index, where there is one beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<IndexReport>,
    /// Containers whose own structure was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containers: Option<Containers>,
}

/// Containers whose own structure was checked.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub struct Containers {
    /// How many: a filesys is one, whatever its files.
    pub containers: u64,
    /// Files, entries, keys or pairs in them.
    pub entries: u64,
}

impl Verified {
    /// Adds what was checked in another directory.
    fn add_all(&mut self, other: Verified) {
        self.files += other.files;
        self.records += other.records;
        self.bytes += other.bytes;
        self.digests += other.digests;
        self.faults += other.faults;
        self.notes += other.notes;
        if let Some(report) = other.index {
            let all = self.index.get_or_insert_default();
            all.rows += report.rows;
            all.captures += report.captures;
            all.findings += report.findings;
        }
        if let Some(checked) = other.containers {
            let all = self.containers.get_or_insert_default();
            all.containers += checked.containers;
            all.entries += checked.entries;
        }
    }

    fn add(&mut self, checked: Checked) {
        self.files += checked.files;
        self.records += checked.records;
        self.bytes += checked.bytes;
        self.digests += checked.digests;
        self.faults += checked.unlisted;
        if checked.containers > 0 {
            let all = self.containers.get_or_insert_default();
            all.containers += checked.containers;
            all.entries += checked.entries;
        }
    }
}

/// Checks the archives of one path: each by itself, those of one format in one directory together, and that an index beside
/// them has exactly a row for each capture. `all` says that these are all archives of a directory.
pub fn verify(fs: &Arc<dyn Fs>, files: &[Found], all: bool, check: &mut Check<'_>) -> Result<Verified> {
    // Copies in two directories may have the same ids, and an index speaks of what lies beside it.
    let mut directories: BTreeMap<&Path, Vec<Found>> = BTreeMap::new();
    for found in files {
        directories.entry(found.path.parent().unwrap_or(&found.path)).or_default().push(found.clone());
    }
    let mut verified = Verified::default();
    let mut listed = Listed::default();
    let on_finding = &mut *check.on_finding;
    let mut bounded = Check {
        temp_dir: check.temp_dir,
        memory_bytes: check.memory_bytes,
        on_finding: &mut |finding| listed.take(finding, on_finding),
        progress: check.progress,
    };
    for beside in directories.values() {
        verified.add_all(verify_beside(fs, beside, all, &mut bounded)?);
    }
    listed.finish(check.on_finding);
    Ok(verified)
}

/// Findings that are listed of one file. A few bytes can claim hundreds of millions of records, each of them damaged: those
/// beyond are counted.
const MAX_LISTED: u64 = 10_000;

/// How many findings each file had.
#[derive(Default)]
struct Listed(BTreeMap<String, (u64, Option<Severity>)>);

impl Listed {
    fn take(&mut self, finding: Finding, on_finding: &mut dyn FnMut(Finding)) {
        let (count, worst) = match self.0.get_mut(&finding.file) {
            Some(known) => known,
            None => self.0.entry(finding.file.clone()).or_default(),
        };
        *count += 1;
        if *count <= MAX_LISTED {
            on_finding(finding);
        } else if *worst != Some(Severity::Fault) {
            *worst = Some(finding.severity);
        }
    }

    fn finish(self, on_finding: &mut dyn FnMut(Finding)) {
        for (file, (count, worst)) in self.0 {
            let Some(severity) = worst else { continue };
            let detail = format!("{} more findings of this file are counted, not listed", count - MAX_LISTED);
            on_finding(Finding { severity, file, offset: None, kind: "unlisted", detail });
        }
    }
}

fn verify_beside(fs: &Arc<dyn Fs>, files: &[Found], all: bool, check: &mut Check<'_>) -> Result<Verified> {
    let mut verified = Verified::default();
    let (mut faults, mut notes) = (0, 0);
    let mut on_finding = |finding: Finding| {
        match finding.severity {
            Severity::Fault => faults += 1,
            Severity::Note => notes += 1,
        }
        (check.on_finding)(finding);
    };
    let mut counting = Check {
        temp_dir: check.temp_dir,
        memory_bytes: check.memory_bytes,
        on_finding: &mut on_finding,
        progress: check.progress,
    };
    let mut formats: Vec<&Found> = Vec::new();
    for found in files {
        if !formats.iter().any(|other| other.format.name() == found.format.name()) {
            formats.push(found);
        }
    }
    for Found { format, .. } in formats {
        let of_format = files.iter().filter(|found| found.format.name() == format.name());
        let paths: Vec<PathBuf> = of_format.map(|found| found.path.clone()).collect();
        verified.add(format.verify(fs, &paths, &mut counting)?);
    }
    for found in files {
        // A file without a byte is not an archive, however well it follows the rules.
        let metadata = fs.metadata(&found.path)?;
        if !metadata.is_dir && metadata.len == 0 {
            let (file, detail) = (found.path.display().to_string(), "the file is empty".to_owned());
            let (severity, offset) = (Severity::Fault, Some(0));
            (counting.on_finding)(Finding { severity, file, offset, kind: "empty", detail });
        }
    }
    let indexes: Vec<_> = files.iter().filter(|found| found.is_index()).collect();
    let (mut listed, mut rows) = (BTreeSet::new(), 0);
    for found in &indexes {
        let reader = CapturesReader::over(Arc::new(FileReader::open_in(&**fs, &found.path)?))?;
        rows += reader.row_count();
        listed.extend(reader.archives().unwrap_or_default().iter().map(|archive| archive.name.clone()));
    }
    // A package may be a copy of archives that lie beside it: it is compared if the index says that it has its captures.
    let is_listed = |found: &Found| listed.contains(&*found.path.file_name().unwrap_or_default().to_string_lossy());
    let is_meant = |found: &&Found| can_be_compared(found) && (found.format.is_crawlable() || is_listed(found));
    let archives: Vec<_> = files.iter().filter(is_meant).collect();
    for found in files.iter().filter(|found| !indexes.is_empty() && can_be_compared(found) && !is_meant(found)) {
        let (file, detail) = (found.path.display().to_string(), "the index beside it does not list it".to_owned());
        let (severity, offset) = (Severity::Note, None);
        (counting.on_finding)(Finding { severity, file, offset, kind: "not-indexed", detail });
    }
    // In a directory the archives should be beside their index: without any, each row is about a record that is gone. A
    // package may hold them.
    let alone = !indexes.is_empty() && files.len() == indexes.len();
    if !indexes.is_empty() && (!archives.is_empty() || alone && all) {
        verified.index = Some(index(fs, &indexes, &archives, check)?);
    } else if alone {
        for found in &indexes {
            let detail = "its rows can be read; to compare them with the archives, verify the directory".to_owned();
            let (severity, file) = (Severity::Note, found.path.display().to_string());
            (counting.on_finding)(Finding { severity, file, offset: None, kind: "not-compared", detail });
        }
        verified.index = Some(IndexReport { rows, ..IndexReport::default() });
    }
    verified.faults += faults;
    verified.notes = notes;
    Ok(verified)
}

/// Whether an archive says all that an index says: one that cannot carry it is no witness.
fn can_be_compared(found: &Found) -> bool {
    let carries = found.format.carries();
    let needed = [Capability::ManyPerUrl, Capability::Revisits, Capability::Failures, Capability::Facts];
    !found.is_index() && needed.iter().all(|needed| carries.has(*needed))
}

fn index(fs: &Arc<dyn Fs>, indexes: &[&Found], archives: &[&Found], check: &mut Check<'_>) -> Result<IndexReport> {
    let mut verifier = IndexVerifier::new(check.temp_dir, check.memory_bytes)?;
    for found in indexes {
        let file = FileReader::open_in(&**fs, &found.path)?;
        verifier.index(CapturesReader::over(Arc::new(file))?, &mut |_| {})?;
    }
    for found in archives {
        // What cannot be read has been reported with the archive itself.
        let Ok(archive) = found.open(fs) else { continue };
        if let Ok(Some(mut source)) = archive.captures(Pick::All) {
            verifier.archive(&mut *source, &mut crate::urls::others::row, &mut |_| {}, &mut |_| {})?;
        }
    }
    let report = verifier.finish(&mut |finding| {
        let (file, kind, detail) = (finding.about, finding.kind, finding.detail);
        (check.on_finding)(Finding { severity: Severity::Fault, file, offset: None, kind, detail });
    })?;
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_beyond_the_limit_are_counted() {
        let finding = |file: &str, n: u64| Finding {
            severity: Severity::Fault,
            file: file.to_owned(),
            offset: Some(n),
            kind: "damage",
            detail: String::new(),
        };
        let (mut listed, mut told) = (Listed::default(), Vec::new());
        for n in 0..MAX_LISTED + 7 {
            listed.take(finding("a", n), &mut |finding| told.push(finding));
        }
        listed.take(finding("b", 0), &mut |finding| told.push(finding));
        assert_eq!(told.len() as u64, MAX_LISTED + 1);
        listed.finish(&mut |finding| told.push(finding));
        let last = told.last().unwrap();
        assert_eq!((told.len() as u64, last.kind, &*last.file), (MAX_LISTED + 2, "unlisted", "a"));
        assert!(last.detail.starts_with("7 more findings"), "{}", last.detail);
    }
}
