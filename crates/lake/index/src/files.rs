//! `files.tsv.zst`: the Parquet files of a segment, one a line; a file's id is its line number.
//!
//! [Lines](crate::lines) found by number, tab-separated:
//!
//! ```text
//! file_id  dataset_id  domain_prefix  parquet_rel_path  rows  row_groups  bytes  xxh3_64 (hex)  added
//! ```
//! The path is relative to the manifest's `parquet_root`; `added` is the dataset's commit that added the file. Readers
//! ignore further columns. The order of lines is the order of rows within a dataset: by commit, then by range.

use crate::{Error, Result};
use std::path::Path;
use trawl_store::layout::PARQUET_ROOT;

/// One Parquet file of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its line number.
    pub file_id: u32,
    /// The dataset its rows belong to.
    pub dataset_id: u32,
    /// The value of `domain_prefix=`.
    pub prefix: String,
    /// Path inside the lake.
    pub path: String,
    /// Rows.
    pub rows: u64,
    /// Row groups.
    pub row_groups: u32,
    /// Length in bytes.
    pub bytes: u64,
    /// xxh3_64 of its bytes, 16 hex digits.
    pub hash: String,
    /// The dataset's commit that added it.
    pub added: u64,
}

impl FileEntry {
    /// Its line.
    pub fn to_line(&self) -> Result<String> {
        let refuse = |expected| Error::Input { at: "files.tsv.zst".into(), expected, found: self.path.clone() };
        let Some(relative) = self.path.strip_prefix(PARQUET_ROOT) else {
            return Err(refuse("a path below the parquet root"));
        };
        let FileEntry { file_id, dataset_id, prefix, rows, row_groups, bytes, hash, added, .. } = self;
        let line =
            format!("{file_id}\t{dataset_id}\t{prefix}\t{relative}\t{rows}\t{row_groups}\t{bytes}\t{hash}\t{added}");
        if line.matches('\t').count() != 8 { Err(refuse("fields without tabs")) } else { Ok(line) }
    }

    /// Reads line `number`.
    pub fn parse(name: &Path, number: u64, line: &str) -> Result<Self> {
        let bad = || Error::corrupt(name, 0, "file_id, dataset_id, domain_prefix, path, rows, row_groups, …", line);
        let mut fields = line.split('\t');
        let mut next = || fields.next().ok_or_else(bad);
        let entry = Self {
            file_id: next()?.parse().map_err(|_| bad())?,
            dataset_id: next()?.parse().map_err(|_| bad())?,
            prefix: next()?.to_owned(),
            path: format!("{PARQUET_ROOT}{}", next()?),
            rows: next()?.parse().map_err(|_| bad())?,
            row_groups: next()?.parse().map_err(|_| bad())?,
            bytes: next()?.parse().map_err(|_| bad())?,
            hash: next()?.to_owned(),
            added: next()?.parse().map_err(|_| bad())?,
        };
        if u64::from(entry.file_id) != number || trawl_store::check_path(&entry.path).is_err() {
            return Err(bad());
        }
        Ok(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> FileEntry {
        FileEntry {
            file_id: 3,
            dataset_id: 17,
            prefix: "0a".into(),
            path: "urls/dataset_id=17/domain_prefix=0a/part-w-00000.parquet".into(),
            rows: 10,
            row_groups: 1,
            bytes: 999,
            hash: "00000000000000ff".into(),
            added: 2,
        }
    }

    #[test]
    fn lines_come_back() {
        let line = entry().to_line().unwrap();
        let seed_columns = "3\t17\t0a\tdataset_id=17/domain_prefix=0a/part-w-00000.parquet\t";
        assert_eq!(line, format!("{seed_columns}10\t1\t999\t00000000000000ff\t2"));
        assert_eq!(FileEntry::parse(Path::new("f"), 3, &line).unwrap(), entry());
        assert_eq!(FileEntry::parse(Path::new("f"), 3, &format!("{line}\tmore")).unwrap(), entry());
    }

    #[test]
    fn bad_lines_are_refused() {
        let line = entry().to_line().unwrap();
        assert!(FileEntry::parse(Path::new("f"), 4, &line).is_err(), "another line number");
        for bad in ["", "3", "3\t17\t0a", &line.replace("part-w", "../w"), &line.replace("17\t", "-1\t")] {
            assert!(FileEntry::parse(Path::new("f"), 3, bad).is_err(), "{bad}");
        }
        assert!(FileEntry { path: "elsewhere/x".into(), ..entry() }.to_line().is_err());
        assert!(FileEntry { prefix: "a\tb".into(), ..entry() }.to_line().is_err());
    }
}
