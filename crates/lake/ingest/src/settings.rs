//! Settings of an ingest, and what it reports.

use crate::rejects::{Oddity, Rejected};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{Fs, RealFs};
use trawl_model::SourceIdentity;
use trawl_rows::{Column, WriteSettings};
use trawl_store::{Cancel, DataFile};

/// More threads than this are a slip of the pen.
const MAX_THREADS: usize = 1024;

/// What happens to the files a dataset has already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// They stay; sources that are in them are skipped.
    Append,
    /// They go, in the same commit that brings the new ones.
    Replace,
    /// Those go that have rows of a source which has other bytes now; the sources are read from their beginning. Sources
    /// that are in the same files must be named too, and are read again; others that are known are skipped.
    ReplaceSources,
}

/// How an ingest is done. Each field says what it costs.
#[derive(Debug, Clone)]
pub struct IngestSettings {
    /// Names this run in file names and commits: new for every run, and a name by `trawl_store::check_name`.
    pub writer: String,
    /// Append unless told otherwise.
    pub mode: Mode,
    /// Whether rows may be replaced by none, no: most often the sources were named wrongly.
    pub allow_empty: bool,
    /// Memory for sorting and encoding, 1 GiB: less spills more, and encodes fewer row groups at a time. A row group that is
    /// being filled has its size whatever this is.
    pub memory_bytes: usize,
    /// Threads that parse, sort or encode, 2.
    pub threads: usize,
    /// Where sorted runs spill to. About half the size of the input's URLs.
    pub temp_dir: PathBuf,
    /// The file system of `temp_dir`.
    pub temp_fs: Arc<dyn Fs>,
    /// Bytes of a source that one thread reads at a time, 32 MiB.
    pub split_bytes: u64,
    /// Hex digits of `domain_prefix=`: 0 (`all`), 1 or 2; by the size of the sources unless told otherwise.
    pub prefix_digits: Option<u8>,
    /// Writes the columns `domain_id` and `url_id`: 9 bytes a row more.
    pub store_ids: bool,
    /// zstd level of the Parquet files, 6: higher is smaller and slower to write.
    pub zstd_level: i32,
    /// Rows of a data page, 4096: fewer make small readings smaller and the file larger.
    pub page_rows: usize,
    /// Bytes of a row group before encoding, 64 MiB.
    pub row_group_bytes: u64,
    /// Bytes of a file before encoding at which the next one begins, 4 GiB.
    pub file_bytes: u64,
    /// Bytes of a record at most; by the memory unless told otherwise. A larger one is rejected; one that is not larger and does
    /// not fit the memory ends the work, since with more memory it would be a row.
    pub max_record_bytes: Option<usize>,
    /// Rejected items that are kept in the rejects file, 1 million; all are counted.
    pub max_rejects: u64,
    /// For jobs: rows of a piece from which on the index is split, if not as many as the index takes by itself.
    pub piece_rows: Option<u64>,
    /// Ends the work early: then nothing is visible of it.
    pub cancel: Cancel,
}

impl IngestSettings {
    /// The defaults, for a run of this name that spills to `temp_dir`.
    pub fn new(writer: impl Into<String>, temp_dir: impl Into<PathBuf>) -> Self {
        Self {
            writer: writer.into(),
            mode: Mode::Append,
            allow_empty: false,
            memory_bytes: 1 << 30,
            threads: 2,
            temp_dir: temp_dir.into(),
            temp_fs: Arc::new(RealFs),
            split_bytes: 32 << 20,
            prefix_digits: None,
            store_ids: false,
            zstd_level: 6,
            page_rows: 4096,
            row_group_bytes: 64 << 20,
            file_bytes: 4 << 30,
            max_record_bytes: None,
            max_rejects: 1_000_000,
            piece_rows: None,
            cancel: Cancel::default(),
        }
    }

    /// Refuses settings an ingest could not work with; the ingest itself does so too.
    pub fn check(&self) -> Result<()> {
        trawl_store::check_name(&self.writer)?;
        let refuse =
            |what, expected, found: &dyn ToString| Err(Error::Setting { what, expected, found: found.to_string() });
        match self {
            s if s.prefix_digits.is_some_and(|d| d > 2) => {
                refuse("prefix digits", "0, 1 or 2", &s.prefix_digits.unwrap_or(0))
            }
            s if !(1..=22).contains(&s.zstd_level) => refuse("zstd level", "1 to 22", &s.zstd_level),
            s if !(1..=1 << 20).contains(&s.page_rows) => refuse("page rows", "1 to 2^20", &s.page_rows),
            s if s.threads > MAX_THREADS => refuse("threads", "at most 1024", &s.threads),
            s if s.memory_bytes < 16 << 20 => refuse("memory", "at least 16 MiB", &s.memory_bytes),
            // Half of the memory sorts, in a part for each thread and one for the rest.
            s if s.memory_bytes / 2 < trawl_sort::MIN_MEMORY_BYTES / 2 * (s.threads + 1) => {
                refuse("memory", "at least 1 MiB for each thread and 1 MiB more", &s.memory_bytes)
            }
            _ => Ok(()),
        }
    }

    /// How files of a dataset are written whose rows were cut by this suffix list.
    pub(crate) fn write_settings(&self, dataset_id: u32, suffix_list: &str) -> WriteSettings {
        WriteSettings {
            dataset_id,
            writer: self.writer.clone(),
            columns: Column::of_files(self.store_ids),
            suffix_list: suffix_list.to_owned(),
            zstd_level: self.zstd_level,
            page_rows: self.page_rows,
            row_group_bytes: self.row_group_bytes,
            file_bytes: self.file_bytes,
            threads: self.groups_at_once(),
        }
    }

    /// How many row groups may be encoded beside the one being filled. Half of the memory sorts, the other half holds row groups,
    /// each with its encoded form beside it. Their size is the same with any memory: files must not depend on the machine.
    fn groups_at_once(&self) -> usize {
        let half = self.memory_bytes as u64 / 2;
        let fit = half / self.row_group_bytes.max(1).saturating_mul(2);
        // The threads are at most 1024.
        fit.saturating_sub(1).min(self.threads.max(1) as u64) as usize
    }
}

/// What an ingest did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IngestReport {
    /// The dataset.
    pub dataset_id: u32,
    /// The commit that holds the rows; `None` if there was nothing to commit.
    pub commit: Option<u64>,
    /// Rows written.
    pub rows: u64,
    /// Different raw URLs among them, exactly.
    pub distinct_urls: u64,
    /// Records of the sources: rows, rejected items, denied ones and those that are not captures, which is all there are.
    pub records: u64,
    /// Records that are no captures, by their type: requests, descriptions of files and of other records.
    pub not_captures: BTreeMap<String, u64>,
    /// Items rejected.
    pub rejected: u64,
    /// Items rejected, by reason.
    pub rejected_by_code: BTreeMap<String, u64>,
    /// Where the rejected items are, in the lake; `None` if there are none.
    pub rejects_file: Option<String>,
    /// What may not be meant as it was taken, by its code ([`trawl_lists::describe_oddity`]).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub oddities: BTreeMap<String, Oddity>,
    /// Sources whose rows went, as the dataset knew them: read again, or gone with others in the same files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<SourceIdentity>,
    /// Items left out because the deny list covers them; nothing else is kept of them.
    pub denied: u64,
    /// Entries that came on the deny list meanwhile and may cover rows written: a purge takes those.
    pub denied_since: u64,
    /// Sources read.
    pub sources: u64,
    /// Those of them that had been taken when they were shorter, as they were then: only what came since was read.
    pub grown: Vec<SourceIdentity>,
    /// Rows that went out again: what the last items of shorter sources had been taken for, cut as they were.
    pub taken_back: u64,
    /// Sources that were in the dataset already and were skipped.
    pub skipped: Vec<SourceIdentity>,
    /// Bytes of the sources read.
    pub source_bytes: u64,
    /// Parquet files written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Hex digits of `domain_prefix=`.
    pub prefix_digits: u8,
    /// Bytes of sorted runs written to temporary files.
    pub spilled_bytes: u64,
    /// Seconds spent reading and sorting.
    pub read_seconds: f64,
    /// Seconds spent merging and writing.
    pub write_seconds: f64,
    /// Seconds spent committing.
    pub commit_seconds: f64,
}

impl IngestReport {
    /// What was read and written; the rejects file is reported separately, once it is known.
    pub(crate) fn count(&mut self, rows: u64, rejected: Rejected, files: &[DataFile]) {
        let Rejected { counts, total, file: _, hash: _, denied, aside, oddities } = rejected;
        self.oddities = oddities;
        (self.rejected, self.rejected_by_code, self.denied, self.not_captures) = (total, counts, denied, aside);
        self.rows = rows;
        self.distinct_urls = files.iter().map(|f| f.distinct_urls).sum();
        self.files = files.len() as u64;
        self.bytes = files.iter().map(|f| f.bytes).sum();
        self.count_records();
    }

    pub(crate) fn count_records(&mut self) {
        self.records = self.rows + self.rejected + self.denied + self.not_captures.values().sum::<u64>();
    }
}
