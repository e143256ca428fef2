//! Checks an index against its archive: every capture has exactly one row, every row is what the archive says.
//!
//! Rows and captures meet in one sort, keyed by where the record lies (or, for a failed fetch, by URL and start); beside the
//! key stands a hash of each column, so that a difference can be named. Memory is the sorter's budget.
//!
//! ```text
//! key    'P' file 00 offset(8) length(8)   or   'F' started_at(8) fetched_at(8) url
//! value  1 whose ('R' row, 'C' capture), then 4 bytes for each column: xxh3 of its cell
//! ```

use crate::columns::{COLUMNS, Cell, Column, REQUIRED};
use crate::error::{Error, Result};
use crate::reader::CapturesReader;
use crate::rebuild::OtherRows;
use crate::row::CaptureRow;
use std::path::Path;
use trawl_model::{Advice, CaptureSource, DoorError, Entry};
use trawl_sort::Sorter;
use xxhash_rust::xxh3::xxh3_64;

/// Something about a row that is not as the archive has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowFinding {
    /// The file, offset and length, or the URL, that it is about.
    pub about: String,
    /// What kind, for machines: `row-missing`, `row-twice`, `record-missing`, `row-differs`.
    pub kind: &'static str,
    /// What exactly, for people.
    pub detail: String,
}

/// What was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct IndexReport {
    /// Rows of the index.
    pub rows: u64,
    /// Captures of the archive.
    pub captures: u64,
    /// Rows that are missing, doubled, or different.
    pub findings: u64,
}

/// Compares an index with its archive. Give it both, in any order and number, then finish.
pub struct IndexVerifier {
    sorter: Sorter,
    report: IndexReport,
    /// Columns that every index given has.
    columns: Vec<bool>,
}

impl IndexVerifier {
    /// Sorts within `memory_bytes` and in `temp_dir`.
    pub fn new(temp_dir: &Path, memory_bytes: usize) -> Result<Self> {
        let memory_bytes = memory_bytes.max(trawl_sort::MIN_MEMORY_BYTES);
        let sorter = Sorter::builder(temp_dir).memory_bytes(memory_bytes).threads(1).build()?;
        Ok(IndexVerifier { sorter, report: IndexReport::default(), columns: vec![true; COLUMNS.len()] })
    }

    /// Takes the rows of an index.
    pub fn index(&mut self, reader: CapturesReader, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let ours = reader.version().is_some();
        let names: Vec<_> = reader.column_names().collect();
        for (slot, (i, column)) in self.columns.iter_mut().zip(COLUMNS.iter().enumerate()) {
            // An index that other programs made counts times and errors its own way; the capture itself must agree.
            let shared = i < REQUIRED && !matches!(column.name, "fetched_at" | "meta_json" | "error" | "unchanged");
            *slot &= names.contains(&column.name) && (ours || shared);
        }
        for row in reader {
            self.push(&row?, b'R')?;
            self.report.rows += 1;
            if self.report.rows.is_multiple_of(1024) {
                progress(self.report.rows);
            }
        }
        Ok(())
    }

    /// Takes the captures of an archive, and what `other` makes rows of, as a rebuild does. What cannot be read is reported to
    /// `on_skip`.
    pub fn archive(
        &mut self,
        source: &mut dyn CaptureSource,
        other: &mut OtherRows<'_>,
        on_skip: &mut dyn FnMut(DoorError),
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), DoorError> {
        loop {
            let row = match source.next_entry() {
                Ok(None) => return Ok(()),
                Ok(Some((Entry::Other(mut record), place))) => other(&mut record, &place).ok(),
                Ok(Some((Entry::Capture(mut capture), place))) => {
                    Some(CaptureRow::from_capture(&mut capture, Some(&place))?)
                }
                Err(e) if e.advice == Advice::Skip => {
                    on_skip(e);
                    None
                }
                Err(e) => return Err(e),
            };
            if let Some(row) = row {
                self.push(&row, b'C')?;
                self.report.captures += 1;
                if self.report.captures.is_multiple_of(1024) {
                    progress(self.report.captures);
                }
            }
        }
    }

    fn push(&mut self, row: &CaptureRow, whose: u8) -> Result<()> {
        let mut key = Vec::with_capacity(row.url.len() + 64);
        if row.warc_file.is_empty() {
            key.push(b'F');
            key.extend_from_slice(&row.started_at.unwrap_or(0).to_be_bytes());
            key.extend_from_slice(&row.fetched_at.to_be_bytes());
            key.extend_from_slice(row.url.as_bytes());
        } else {
            key.push(b'P');
            key.extend_from_slice(row.warc_file.as_bytes());
            key.push(0);
            key.extend_from_slice(&row.warc_offset.to_be_bytes());
            key.extend_from_slice(&row.warc_length.to_be_bytes());
        }
        let mut value = Vec::with_capacity(1 + 4 * COLUMNS.len());
        value.push(whose);
        for column in COLUMNS {
            value.extend_from_slice(&hash(column, row));
        }
        self.sorter.push(&key, &value).map_err(Error::from)
    }

    /// Compares everything and tells each difference.
    pub fn finish(self, on_finding: &mut dyn FnMut(RowFinding)) -> Result<IndexReport> {
        let IndexVerifier { sorter, mut report, columns } = self;
        let mut sorted = sorter.finish()?;
        let mut key: Vec<u8> = Vec::new();
        let (mut rows, mut captures): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
        loop {
            let next = sorted.next_record()?;
            if next.as_ref().is_none_or(|n| n.key != key.as_slice()) {
                if let Some((kind, detail)) = compare(&rows, &captures, &columns) {
                    report.findings += 1;
                    on_finding(RowFinding { about: about(&key), kind, detail });
                }
                rows.clear();
                captures.clear();
            }
            let Some(next) = next else { return Ok(report) };
            next.key.clone_into(&mut key);
            // Two of each are enough to say that something is doubled.
            match next.value.split_first() {
                Some((b'R', hashes)) if rows.len() < 2 => rows.push(hashes.to_vec()),
                Some((b'C', hashes)) if captures.len() < 2 => captures.push(hashes.to_vec()),
                _ => {}
            }
        }
    }
}

fn compare(rows: &[Vec<u8>], captures: &[Vec<u8>], columns: &[bool]) -> Option<(&'static str, String)> {
    match (rows, captures) {
        ([], []) => None,
        ([], _) => Some(("row-missing", "the archive has it, the index has no row".into())),
        (_, []) => Some(("record-missing", "the index has a row, the archive has no such record".into())),
        ([row], [capture]) => {
            let cells = row.chunks(4).zip(capture.chunks(4)).zip(columns).zip(COLUMNS);
            let differing: Vec<_> =
                cells.filter(|(((a, b), shared), _)| **shared && a != b).map(|(_, column)| column.name).collect();
            (!differing.is_empty()).then(|| ("row-differs", format!("differs in {}", differing.join(", "))))
        }
        // Two fetches of a URL that failed in the same millisecond are two, not one doubled.
        ([_, _, ..], [_, _, ..]) => None,
        ([_, _, ..], _) => Some(("row-twice", "the index has more than one row".into())),
        (_, [_, _, ..]) => Some(("row-missing", "the archive has it twice, the index has one row".into())),
    }
}

fn hash(column: &Column, row: &CaptureRow) -> [u8; 4] {
    let n = match (column.get)(row) {
        Cell::Null => 0,
        Cell::Text(text) => xxh3_64(text.as_bytes()),
        Cell::Int(n) => xxh3_64(&n.to_le_bytes()),
        Cell::Bool(value) => 1 + u64::from(value),
    };
    let [a, b, c, d, ..] = n.to_le_bytes();
    [a, b, c, d]
}

fn about(key: &[u8]) -> String {
    match key.split_first() {
        Some((b'P', rest)) => {
            let name = rest.split(|b| *b == 0).next().unwrap_or_default();
            let numbers = rest.get(name.len() + 1..).unwrap_or_default();
            let number = |at: usize| numbers.get(at..)?.first_chunk::<8>().map(|b| i64::from_be_bytes(*b));
            format!("{}@{}+{}", String::from_utf8_lossy(name), number(0).unwrap_or(0), number(8).unwrap_or(0))
        }
        Some((_, rest)) => String::from_utf8_lossy(rest.get(16..).unwrap_or_default()).into_owned(),
        None => String::new(),
    }
}
