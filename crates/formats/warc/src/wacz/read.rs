//! Reads WACZ files.

use super::zip::{ZipArchive, ZipEntry};
use crate::cdxj::{CdxjFile, Lines, ZipNum};
use crate::error::{Error, Result};
use std::sync::Arc;
use trawl_io::ReadAt;

/// Bytes `datapackage.json` may have.
pub(super) const MAX_PACKAGE: u64 = 64 << 20;
/// Bytes a plain index may have if the ZIP file holds it compressed, so that it must be inflated to be searched.
const MAX_INDEX: u64 = 1 << 30;

/// Bytes an archive may have if the ZIP file holds it compressed. The standard wants archives stored; a program that packs a WACZ file again with
/// an ordinary program does not know that.
const MAX_ARCHIVE: u64 = 256 << 20;

/// How names of archives end.
const ARCHIVES: [&str; 5] = [".warc", ".warc.gz", ".warc.zst", ".arc", ".arc.gz"];

/// How names of indexes end that can be searched, the best first.
const INDEXES: [&str; 3] = [".idx", ".cdxj", ".cdx"];

/// A WACZ file opened for reading.
#[derive(Clone)]
pub struct Wacz {
    pub(super) zip: ZipArchive,
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

    /// The bytes of one of the WARC files, inflated if need be: offsets of records count in these.
    pub fn archive(&self, entry: &ZipEntry) -> Result<Arc<dyn ReadAt>> {
        self.zip.at_hand(entry, MAX_ARCHIVE)
    }

    /// The WARC files, each with its name; there is at least one.
    pub(crate) fn warcs(&self) -> Result<Vec<(String, Arc<dyn ReadAt>)>> {
        let named = |entry: &ZipEntry| Ok((entry.name.clone(), self.archive(entry)?));
        let all = self.warc_entries().map(named).collect::<Result<Vec<_>>>()?;
        if all.is_empty() {
            let found = format!("none among its {} files", self.zip.entries().len());
            return Err(Error::corrupt(self.zip.start(), "WARC files in a WACZ file", found));
        }
        Ok(all)
    }

    /// The archives that the package lists and the ZIP file does not hold, as far as the list can be read, and those of which it holds not
    /// one byte.
    pub(crate) fn missing(&self) -> Vec<String> {
        let empty = self.warc_entries().filter(|entry| entry.size == 0).map(|entry| entry.name.clone());
        let Ok(package) = self.datapackage() else { return empty.collect() };
        let listed = package.get("resources").and_then(|all| all.as_array()).into_iter().flatten();
        let paths = listed.filter_map(|resource| resource.get("path").and_then(|path| path.as_str()));
        let is_archive = |path: &&str| {
            let name = path.to_ascii_lowercase();
            name.starts_with("archive/") || ARCHIVES.iter().any(|ending| name.ends_with(ending))
        };
        let gone = paths.filter(is_archive).filter(|path| self.zip.entry(path).is_none());
        gone.map(str::to_owned).chain(empty).collect()
    }

    /// A WARC file by its name in the index.
    pub fn warc(&self, name: &str) -> Result<Arc<dyn ReadAt>> {
        let path = format!("archive/{name}");
        match self.warc_entries().find(|e| e.name == path || e.name == name) {
            Some(entry) => self.archive(entry),
            None => Err(Error::Refused { file: path, reason: "no such file in this WACZ file".into() }),
        }
    }

    /// Lines of the index that begin with `prefix`, in order; of the first one, if there are several.
    pub fn lookup(&self, prefix: &[u8]) -> Result<Lines> {
        let first = INDEXES.iter().find_map(|ending| self.indexes().find(|entry| entry.name.ends_with(ending)));
        let none = || Error::Refused { file: "indexes/".into(), reason: "this WACZ file has no index".into() };
        self.lines(first.ok_or_else(none)?, prefix)
    }

    /// The indexes. A compressed one is there through the index of its blocks.
    pub(super) fn indexes(&self) -> impl Iterator<Item = &ZipEntry> {
        let is_index = |entry: &&ZipEntry| {
            entry.name.starts_with("indexes/") && INDEXES.iter().any(|ending| entry.name.ends_with(ending))
        };
        self.zip.entries().iter().filter(is_index)
    }

    /// Lines of one of the indexes that begin with `prefix`, in order.
    pub(super) fn lines(&self, index: &ZipEntry, prefix: &[u8]) -> Result<Lines> {
        let file = self.zip.at_hand(index, MAX_INDEX)?;
        if !index.name.ends_with(".idx") {
            return CdxjFile::new(file).lines(prefix);
        }
        let zip = self.zip.clone();
        let open = move |name: &str| {
            let path = format!("indexes/{name}");
            match zip.entry(&path) {
                Some(entry) => zip.at_hand(entry, MAX_INDEX),
                None => Err(Error::Refused { file: path, reason: "no such file in this WACZ file".into() }),
            }
        };
        ZipNum::new(file, open)?.lines(prefix)
    }

    /// `datapackage.json`.
    pub fn datapackage(&self) -> Result<serde_json::Value> {
        let entry = self.required("datapackage.json")?;
        let bytes = self.zip.read(entry, MAX_PACKAGE)?;
        serde_json::from_slice(&bytes).map_err(|e| Error::corrupt(self.zip.at(entry), "a JSON object", e.to_string()))
    }

    pub(super) fn required(&self, name: &str) -> Result<&ZipEntry> {
        let missing = || Error::Refused { file: name.to_owned(), reason: "no such file in this WACZ file".into() };
        self.zip.entry(name).ok_or_else(missing)
    }
}
