//! Reads WACZ files.

use super::zip::{ZipArchive, ZipEntry};
use crate::cdxj::{CdxjFile, Lines, ZipNum};
use crate::error::{Error, Result, finding};
use sha2::Digest as _;
use std::io::Read;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_model::{Finding, Severity};

/// Bytes `datapackage.json` may have.
const MAX_PACKAGE: u64 = 64 << 20;
/// Bytes a plain index may have if the ZIP file holds it compressed, so that it must be inflated to be searched.
const MAX_INDEX: u64 = 1 << 30;

/// How names of archives end.
const ARCHIVES: [&str; 5] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];

/// A WACZ file opened for reading.
#[derive(Clone)]
pub struct Wacz {
    zip: ZipArchive,
}

impl Wacz {
    /// Opens a WACZ file.
    pub fn open(file: Arc<dyn ReadAt>) -> Result<Self> {
        Ok(Wacz { zip: ZipArchive::open(file)? })
    }

    /// The ZIP file.
    pub fn zip(&self) -> &ZipArchive {
        &self.zip
    }

    /// The WARC files, in the order of the ZIP directory: all of `archive/`, and what is called an archive elsewhere.
    pub fn warc_entries(&self) -> impl Iterator<Item = &ZipEntry> {
        let is_archive = |entry: &&ZipEntry| {
            let name = entry.name.to_ascii_lowercase();
            let is_called = ARCHIVES.iter().any(|ending| name.ends_with(ending));
            is_called || entry.name.starts_with("archive/") && !entry.name.ends_with('/')
        };
        self.zip.entries().iter().filter(is_archive)
    }

    /// The WARC files, each with its name; there is at least one.
    pub(crate) fn warcs(&self) -> Result<Vec<(String, Arc<dyn ReadAt>)>> {
        let named = |entry: &ZipEntry| Ok((entry.name.clone(), self.zip.stored(entry)?));
        let all = self.warc_entries().map(named).collect::<Result<Vec<_>>>()?;
        if all.is_empty() {
            let found = format!("none among its {} files", self.zip.entries().len());
            return Err(Error::corrupt(self.zip.start(), "WARC files in a WACZ file", found));
        }
        Ok(all)
    }

    /// A WARC file by its name in the index.
    pub fn warc(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let path = format!("archive/{name}");
        match self.warc_entries().find(|e| e.name == path || e.name == name) {
            Some(entry) => self.zip.stored(entry),
            None => Err(Error::Refused { file: path, reason: "no such file in this WACZ file".into() }),
        }
    }

    /// Lines of the index that begin with `prefix`, in order.
    pub fn lookup(&self, prefix: &[u8]) -> Result<Lines> {
        let index = |suffix: &str| {
            self.zip.entries().iter().find(|e| e.name.starts_with("indexes/") && e.name.ends_with(suffix))
        };
        if let Some(idx) = index(".idx") {
            let zip = self.zip.clone();
            let open = move |name: &str| {
                let path = format!("indexes/{name}");
                match zip.entry(&path) {
                    Some(entry) => at_hand(&zip, entry),
                    None => Err(Error::Refused { file: path, reason: "no such file in this WACZ file".into() }),
                }
            };
            return ZipNum::new(at_hand(&self.zip, idx)?, open)?.lines(prefix);
        }
        match index(".cdxj").or_else(|| index(".cdx")) {
            Some(entry) => CdxjFile::new(at_hand(&self.zip, entry)?).lines(prefix),
            None => Err(Error::Refused { file: "indexes/".into(), reason: "this WACZ file has no index".into() }),
        }
    }

    /// `datapackage.json`.
    pub fn datapackage(&self) -> Result<serde_json::Value> {
        let entry = self.required("datapackage.json")?;
        let bytes = self.zip.read(entry, MAX_PACKAGE)?;
        serde_json::from_slice(&bytes).map_err(|e| Error::corrupt(self.zip.at(entry), "a JSON object", e.to_string()))
    }

    fn required(&self, name: &str) -> Result<&ZipEntry> {
        let missing = || Error::Refused { file: name.to_owned(), reason: "no such file in this WACZ file".into() };
        self.zip.entry(name).ok_or_else(missing)
    }

    /// Checks every length, checksum and SHA-256 that the package states; says how many files were checked.
    pub fn verify(&self, on_finding: &mut dyn FnMut(Finding)) -> Result<u64> {
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
        for resource in stated.get("resources").and_then(|r| r.as_array()).unwrap_or(&Vec::new()) {
            let text = |name: &str| resource.get(name).and_then(|v| v.as_str()).unwrap_or_default();
            match self.zip.entry(text("path")) {
                Some(entry) => {
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
        Ok(checked)
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
        let mut sha = sha2::Sha256::new();
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
        let actual = format!("sha256:{}", data_encoding::HEXLOWER.encode(&sha.finalize()));
        if hash.starts_with("sha256:") && hash != actual {
            found("wacz-hash", format!("{}: expected {hash}, found {actual}", entry.name));
        }
        if size != entry.size || bytes.is_some_and(|b| b != size) || crc.finalize() != entry.crc {
            found("wacz-size", format!("{}: length or crc32 is not what the file states", entry.name));
        }
        Ok(())
    }
}

/// An entry with offsets: in place if it is stored, in memory if it must be inflated first.
fn at_hand(zip: &ZipArchive, entry: &ZipEntry) -> Result<Arc<dyn ReadAt>> {
    if entry.method == 0 { zip.stored(entry) } else { Ok(Arc::new(zip.read(entry, MAX_INDEX)?)) }
}
