//! Checks WACZ files: what the package states, that every byte belongs to it, and that its index leads to records.

use super::read::{MAX_PACKAGE, Wacz};
use super::zip::ZipEntry;
use crate::cdxj::{CdxjLine, Lines};
use crate::error::{At, Result, finding};
use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use trawl_io::Hasher;
use trawl_model::{Finding, Severity};

/// Archives that are named of those an index has and the file has not.
const MAX_ABSENT: usize = 1000;

impl Wacz {
    /// Checks every length, checksum and SHA-256 that the package states, that every byte belongs to a file of it, and that its
    /// index leads to records; says how many files were checked.
    pub fn verify(&self, on_finding: &mut dyn FnMut(Finding)) -> Result<u64> {
        self.check_bytes(on_finding);
        self.check_index(on_finding);
        let mut checked = 0;
        let package = self.required("datapackage.json")?;
        let stated = self.datapackage()?;
        if let Some(entry) = self.zip.entry("datapackage-digest.json") {
            let bytes = self.zip.read(entry, MAX_PACKAGE)?;
            let digest: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
            let hash = digest.get("hash").and_then(|h| h.as_str()).unwrap_or_default();
            self.check(package, hash, None, on_finding)?;
            checked += 1;
        } else {
            let detail = "there is no datapackage-digest.json, so nothing vouches for datapackage.json".to_owned();
            on_finding(finding(&self.zip.at(package), Severity::Note, "wacz-no-digest", detail));
        }
        let mut listed = BTreeSet::from(["datapackage.json", "datapackage-digest.json"]);
        let mut seen = BTreeSet::new();
        for resource in stated.get("resources").and_then(|r| r.as_array()).unwrap_or(&Vec::new()) {
            let text = |name: &str| resource.get(name).and_then(|v| v.as_str()).unwrap_or_default();
            match self.zip.entry(text("path")) {
                // Read once: a small package could otherwise have a large archive hashed a million times.
                Some(entry) if !seen.insert(&entry.name) => {
                    let detail = format!("{} is in datapackage.json more than once", entry.name);
                    on_finding(finding(&self.zip.at(package), Severity::Fault, "wacz-listed-twice", detail));
                }
                Some(entry) => {
                    listed.insert(&entry.name);
                    // Version 1.0.0 keeps both below `stats`, and the name of the algorithm beside them.
                    let stats = resource.get("stats");
                    let stated = |name: &str| resource.get(name).or_else(|| stats.and_then(|stats| stats.get(name)));
                    let hash = stated("hash").and_then(|hash| hash.as_str()).unwrap_or_default();
                    let hash = match hash.contains(':') || hash.is_empty() {
                        true => hash.to_owned(),
                        false => {
                            format!("{}:{hash}", resource.get("hashing").and_then(|h| h.as_str()).unwrap_or("sha256"))
                        }
                    };
                    self.check(entry, &hash, stated("bytes").and_then(|b| b.as_u64()), on_finding)?;
                }
                None => {
                    let detail = format!("{} is in datapackage.json but not in the file", text("path"));
                    on_finding(finding(&self.zip.at(package), Severity::Fault, "wacz-missing", detail));
                }
            }
            checked += 1;
        }
        let is_unlisted = |entry: &&ZipEntry| !listed.contains(&*entry.name) && !entry.name.ends_with('/');
        for entry in self.zip.entries().iter().filter(is_unlisted) {
            let detail = format!("{} is in the file but not in datapackage.json", entry.name);
            on_finding(finding(&self.zip.at(entry), Severity::Note, "wacz-unlisted", detail));
            self.check(entry, "", None, on_finding)?;
            checked += 1;
        }
        Ok(checked)
    }

    /// Every byte belongs to one entry, or to the directory.
    fn check_bytes(&self, on_finding: &mut dyn FnMut(Finding)) {
        let mut found = |offset, kind, detail| {
            on_finding(finding(&At { offset, ..self.zip.start() }, Severity::Fault, kind, detail));
        };
        let extents = match self.zip.extents() {
            Ok(extents) => extents,
            Err(error) => return found(error.at().map_or(0, |at| at.offset), "wacz-damage", error.to_string()),
        };
        let end = self.zip.len();
        let mut at = 0;
        for (range, name) in extents.into_iter().chain([(end..end, "the end of the file".to_owned())]) {
            if range.start > at {
                let detail = format!("{} bytes before {name} belong to nothing in the file", range.start - at);
                found(at, "wacz-gap", detail);
            } else if range.start < at && !range.is_empty() {
                found(range.start, "wacz-overlap", format!("{name} overlaps what is before it"));
            }
            at = at.max(range.end);
        }
        let mut names = BTreeSet::new();
        for entry in self.zip.entries().iter().filter(|entry| !names.insert(&entry.name)) {
            found(entry.header, "wacz-twice", format!("{} is in the file more than once", entry.name));
        }
    }

    /// Every line of every index leads into an archive that is there.
    fn check_index(&self, on_finding: &mut dyn FnMut(Finding)) {
        let archives: HashMap<&str, u64> = self.warc_entries().map(|entry| (&*entry.name, entry.size)).collect();
        let note = |error: String| finding(&self.zip.start(), Severity::Note, "wacz-index", error);
        // One after the other: an index that is compressed is in memory.
        for entry in self.indexes() {
            match self.lines(entry, b"") {
                Ok(lines) => self.check_lines(lines, &archives, on_finding),
                Err(error) => on_finding(note(error.to_string())),
            }
        }
        if self.indexes().next().is_none() {
            on_finding(note("indexes/: this WACZ file has no index".to_owned()));
        }
    }

    fn check_lines(&self, lines: Lines, archives: &HashMap<&str, u64>, on_finding: &mut dyn FnMut(Finding)) {
        let mut found = |severity, kind, detail| on_finding(finding(&self.zip.start(), severity, kind, detail));
        let mut absent = BTreeSet::new();
        for line in lines {
            let line = match line {
                Ok(line) if line.starts_with(b"!") || line.starts_with(b" ") => continue,
                Ok(line) => CdxjLine::parse(&line),
                Err(error) => return found(Severity::Fault, "wacz-index", error.to_string()),
            };
            let line = match line {
                Ok(line) => line,
                Err(error) => {
                    found(Severity::Fault, "wacz-index", error.to_string());
                    continue;
                }
            };
            let Some(place) = line.place() else {
                found(Severity::Fault, "wacz-index", format!("{} {} names no place", line.key, line.timestamp));
                continue;
            };
            let size = archives.get(format!("archive/{}", place.file).as_str()).or(archives.get(&*place.file));
            match size {
                // Once is enough: all its lines say so.
                None if absent.len() < MAX_ABSENT && absent.insert(place.file.clone()) => {
                    let detail = format!("{} is in the index but not in the file", place.file);
                    found(Severity::Fault, "wacz-missing", detail);
                }
                Some(size) if place.offset.checked_add(place.length).is_none_or(|end| end > *size) => {
                    let detail = format!("{place} is in the index, but {} has {size} bytes", place.file);
                    found(Severity::Fault, "wacz-index", detail);
                }
                _ => {}
            }
        }
    }

    fn check(
        &self,
        entry: &ZipEntry,
        hash: &str,
        bytes: Option<u64>,
        on_finding: &mut dyn FnMut(Finding),
    ) -> Result<()> {
        if !hash.starts_with("sha256:") {
            let detail = format!("{}: its hash {hash:?} cannot be checked", entry.name);
            on_finding(finding(&self.zip.at(entry), Severity::Note, "wacz-hash", detail));
        }
        let mut found = |kind, detail| on_finding(finding(&self.zip.at(entry), Severity::Fault, kind, detail));
        let mut sha = Hasher::sha256();
        let mut crc = crc32fast::Hasher::new();
        let mut size = 0u64;
        let mut reader = self.zip.stream(entry)?;
        let mut buf = vec![0; 256 << 10];
        loop {
            match reader.read(&mut buf) {
                Ok(0) => break,
                Ok(n) => {
                    let part = buf.get(..n).unwrap_or_default();
                    sha.update(part);
                    crc.update(part);
                    size += n as u64;
                    if size > entry.size {
                        break;
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => {
                    found("wacz-damage", format!("{}: {e}", entry.name));
                    return Ok(());
                }
            }
        }
        let actual = format!("sha256:{}", sha.finish().hex());
        if hash.starts_with("sha256:") && hash != actual {
            found("wacz-hash", format!("{}: expected {hash}, found {actual}", entry.name));
        }
        if size != entry.size || bytes.is_some_and(|b| b != size) || crc.finalize() != entry.crc {
            found("wacz-size", format!("{}: length or crc32 is not what the file states", entry.name));
        }
        Ok(())
    }
}
