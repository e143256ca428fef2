//! Page tables made from a file itself: its footer, its offset index, and every byte of its pages.

use super::plan::Plan;
use super::table::{self, GroupTable, NewColumn};
use crate::{Column, Columns, Rows};
use arrow_array::RecordBatch;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use trawl_store::{DataFile, Error, RangeRead, Result, Store, object_hash};

/// Largest row group that is taken into memory: a writer's are an eighth of that.
const MAX_GROUP_BYTES: u64 = 2 << 30;

/// The page tables of one file, a table for each row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePages {
    /// Path of the file inside the lake.
    pub path: String,
    /// The encoded tables: see [`GroupTable`].
    pub groups: Vec<Vec<u8>>,
    /// The zstd level it was written with, if its footer tells ([`ZSTD_LEVEL`]).
    pub zstd_level: Option<i32>,
}

/// The footer's key of the zstd level, which a rewrite keeps.
pub const ZSTD_LEVEL: &str = "trawl.zstd_level";

impl FilePages {
    /// Reads a file whole and makes its tables. Its length, hash, rows and row groups must be those of the commit.
    pub fn read(store: &dyn Store, file: &DataFile) -> Result<Self> {
        let path = &file.path;
        let corrupt = |expected, found: String| Error::Corrupt { path: path.clone(), offset: 0, expected, found };
        let len = store.len(path)?;
        if len != file.bytes {
            return Err(corrupt("as many bytes as its commit says", len.to_string()));
        }
        let hash = object_hash(store, path, len)?;
        if hash != file.hash {
            return Err(corrupt("the hash of its commit", hash));
        }
        let pages = Self::read_unchecked(store, path, len)?;
        let groups = u32::try_from(pages.groups.len()).unwrap_or(u32::MAX);
        let rows: u64 = pages.tables().map(|table| table.map_or(0, |t| u64::from(t.rows()))).sum();
        if groups != file.row_groups || rows != file.rows {
            return Err(corrupt("the rows and row groups of its commit", format!("{rows} rows in {groups} groups")));
        }
        Ok(pages)
    }

    /// Makes the tables of a file without comparing it with anything.
    pub fn read_unchecked(store: &dyn Store, path: &str, len: u64) -> Result<Self> {
        let reader = StoreFile { store, path, len };
        let parser = ParquetMetaDataReader::new().with_offset_index_policy(PageIndexPolicy::Required);
        let corrupt = |found| Error::Corrupt { path: path.to_owned(), offset: 0, expected: "a parquet file", found };
        let metadata = guarded(|| parser.parse_and_finish(&reader)).map_err(corrupt)?;
        let groups = (0..metadata.num_row_groups()).map(|group| group_table(&reader, &metadata, group));
        let groups = groups.collect::<Result<_>>()?;
        let key_values = metadata.file_metadata().key_value_metadata().into_iter().flatten();
        let mut levels = key_values.filter(|pair| pair.key == ZSTD_LEVEL).filter_map(|pair| pair.value.as_ref());
        let zstd_level = levels.find_map(|level| level.parse().ok()).filter(|level| (1..=22).contains(level));
        Ok(Self { path: path.to_owned(), groups, zstd_level })
    }

    /// The tables, ready to look into.
    pub fn tables(&self) -> impl Iterator<Item = Result<GroupTable<'_>>> {
        self.groups.iter().map(|bytes| GroupTable::new(&self.path, bytes))
    }

    /// Reads the whole file in steps of at most `step_rows` rows.
    pub fn scan<'a>(&'a self, store: &'a dyn Store, wanted: Columns, step_rows: u32) -> Result<Scan<'a>> {
        let mut todo = VecDeque::with_capacity(self.groups.len());
        for (group, table) in (0u32..).zip(self.tables()) {
            todo.push_back((group, 0..table?.rows()));
        }
        Ok(Scan { pages: self, store, wanted, step_rows, todo })
    }

    /// Reads some rows of some row groups, each counted in its group, in steps of at most `step_rows` rows.
    pub fn scan_rows<'a>(
        &'a self,
        store: &'a dyn Store,
        wanted: Columns,
        rows: impl IntoIterator<Item = (u32, Range<u32>)>,
        step_rows: u32,
    ) -> Scan<'a> {
        Scan { pages: self, store, wanted, step_rows, todo: rows.into_iter().collect() }
    }
}

/// A reading of rows of one file, step by step.
pub struct Scan<'a> {
    pages: &'a FilePages,
    store: &'a dyn Store,
    wanted: Columns,
    step_rows: u32,
    todo: VecDeque<(u32, Range<u32>)>,
}

/// Some rows that follow one another.
#[derive(Debug, Clone)]
pub struct Step {
    /// Their row group.
    pub group: u32,
    /// The first of them, counted in the row group.
    pub first: u32,
    /// The rows.
    pub rows: Rows,
}

impl Scan<'_> {
    fn step(&mut self) -> Result<Option<Step>> {
        let Some((group, rest)) = self.todo.front_mut() else { return Ok(None) };
        let (group, first) = (*group, rest.start);
        let end = first.saturating_add(self.step_rows.max(1)).min(rest.end);
        rest.start = end;
        let path = &self.pages.path;
        let corrupt =
            || Error::Corrupt { path: path.clone(), offset: 0, expected: "a row group", found: group.to_string() };
        let table = self.pages.groups.get(group as usize).ok_or_else(corrupt)?;
        let plan = Plan::new(path, &GroupTable::new(path, table)?, first..end, self.wanted)?;
        Ok(Some(Step { group, first, rows: plan.finish(&self.store.get_batch(plan.reads())?)? }))
    }

    /// The same rows as Arrow batches.
    pub fn batches(self) -> impl Iterator<Item = crate::Result<RecordBatch>> {
        let path = self.pages.path.clone();
        self.map(move |step| {
            let failed = |source| crate::Error::Arrow { path: path.clone(), source };
            step?.rows.batch().map_err(failed)
        })
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Self::Item> {
        // Those that are read, and row groups without rows.
        while self.todo.front().is_some_and(|(_, rows)| rows.is_empty()) {
            self.todo.pop_front();
        }
        self.step().transpose()
    }
}

fn group_table(file: &StoreFile<'_>, metadata: &ParquetMetaData, group: usize) -> Result<Vec<u8>> {
    let corrupt = |expected, found: String| Error::Corrupt { path: file.path.to_owned(), offset: 0, expected, found };
    let row_group = metadata.row_group(group);
    let index = metadata.page_index_for_row_group(group);
    let rows = u32::try_from(row_group.num_rows())
        .map_err(|_| corrupt("a row group of fewer than 2^32 rows", row_group.num_rows().to_string()))?;
    // The chunks lie one after the other, so one range covers the group.
    let whole = row_group
        .columns()
        .iter()
        .map(chunk_range)
        .reduce(|a, b| a.zip(b).map(|(a, b)| a.start.min(b.start)..a.end.max(b.end)))
        .flatten()
        .filter(|whole| whole.end <= file.len && whole.end - whole.start <= MAX_GROUP_BYTES)
        .ok_or_else(|| corrupt("column chunks inside the file, at most 2 GiB a group", format!("group {group}")))?;
    let bytes = file.read(whole.clone())?;
    let mut columns = Vec::new();
    for (i, chunk) in row_group.columns().iter().enumerate() {
        let name = chunk.column_path().string();
        let Some(column) = Column::named(&name) else { continue };
        if chunk.column_type() != column.physical()
            || chunk.column_descr().max_def_level() != i16::from(column.nullable())
            || !matches!(chunk.compression(), parquet::basic::Compression::ZSTD(_))
        {
            return Err(corrupt("a column of the known type, zstd-compressed", name));
        }
        let locations =
            index.offset_index(i).map(parquet::file::page_index::offset_index::OffsetIndexMetaData::page_locations);
        let made = locations.and_then(|locations| {
            let Range { start, end } = chunk_range(chunk)?;
            let first = u64::try_from(locations.first()?.offset).ok()?;
            let mut at = first;
            let mut pages = Vec::with_capacity(locations.len());
            for location in locations {
                let range = at..at.checked_add(u64::try_from(location.compressed_page_size).ok()?)?;
                // Pages of a chunk lie next to each other in every file we write; a table has no room for gaps.
                if u64::try_from(location.offset) != Ok(at) || range.end > end {
                    return None;
                }
                at = range.end;
                pages.push((u32::try_from(location.first_row_index).ok()?, slice(&bytes, whole.start, range)?));
            }
            let rising = pages.is_sorted_by(|a, b| a.0 < b.0);
            if !rising || pages.first()?.0 != 0 || pages.last()?.0 >= rows.max(1) {
                return None;
            }
            let dictionary = match start.cmp(&first) {
                std::cmp::Ordering::Less => Some((start, slice(&bytes, whole.start, start..first)?)),
                std::cmp::Ordering::Equal => None,
                std::cmp::Ordering::Greater => return None,
            };
            Some(NewColumn { column, dictionary, start: first, pages })
        });
        columns.push(made.ok_or_else(|| corrupt("an offset index that covers the column in order", name))?);
    }
    if let Some(missing) = Column::BASE.iter().find(|base| columns.iter().all(|c| c.column != **base)) {
        return Err(corrupt("every base column", format!("no {}", missing.name())));
    }
    table::encode(rows, &columns).ok_or_else(|| corrupt("page lengths of fewer than 32 bits", format!("group {group}")))
}

/// Runs `decode`. Some damaged files make the Parquet library panic: that becomes an error that says so; whatever `decode` was working on must be dropped then.
fn guarded<T, E: ToString>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(done) => done.map_err(|e| e.to_string()),
        Err(_) => Err("bytes that the parquet library cannot decode".to_owned()),
    }
}

/// The bytes of a column chunk; `None` where its metadata makes no sense.
fn chunk_range(chunk: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = u64::try_from(chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset())).ok()?;
    Some(start..start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?)
}

fn slice(bytes: &Bytes, base: u64, range: Range<u64>) -> Option<&[u8]> {
    let place = |at: u64| usize::try_from(at.checked_sub(base)?).ok();
    bytes.get(place(range.start)?..place(range.end)?)
}

/// An object of the store, as the Parquet library reads files.
struct StoreFile<'a> {
    store: &'a dyn Store,
    path: &'a str,
    len: u64,
}

impl StoreFile<'_> {
    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let read = RangeRead { path: self.path.to_owned(), range };
        let mut fetched = self.store.get_batch(std::slice::from_ref(&read))?;
        fetched.pop().ok_or(Error::NotFound { path: read.path })
    }
}

impl Length for StoreFile<'_> {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for StoreFile<'_> {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let bytes = self.read(start..self.len).map_err(|e| ParquetError::External(Box::new(e)))?;
        Ok(bytes::Buf::reader(bytes))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let end = start.saturating_add(length as u64);
        self.read(start..end).map_err(|e| ParquetError::External(Box::new(e)))
    }
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(guarded(|| Ok::<_, String>(1)), Ok(1));
        assert_eq!(guarded(|| Err::<(), _>("x")), Err("x".to_owned()));
        let empty: [u8; 0] = [];
        assert!(guarded(|| Ok::<_, String>(empty[std::hint::black_box(0)])).is_err());
    }
}
