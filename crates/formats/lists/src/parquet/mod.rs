//! Parquet files with a `url` column: captures.parquet, the Common Crawl columnar index, anybody's.
//!
//! Columns with known names fill the fields of a record, flat or nested others go to the extras. What is derived from the
//! URL, and what would carry whole bodies, is left out: see `LEFT_OUT`. Empty texts mean "none", as
//! captures.parquet writes them; of that file only what says something about the capture is taken (`CAPTURES_KEPT`). A
//! split is a number of row groups.

mod text;
mod value;

use crate::fields::{Fields, PARTS_OF_LAKE, Role, Roles, Value, one_url};
use crate::file::{ListFile, text_of};
use crate::options::Purpose;
use crate::{BadItem, Options};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use std::io::{BufReader, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::read_at::{Cursor, FileReader};
use trawl_model::{Advice, DoorError, Items, Place, SourceIdentity, Split, UnixMillis, UrlSource};

/// Columns that are not taken: bodies and heads (the archive has them) and parts of the URL (the lake makes its own).
const LEFT_OUT: &str = "body markdown resp_headers req_headers host domain domain_id url_id url_surtkey url_protocol url_port url_path url_query";

/// Parts of the host in the Common Crawl index begin so.
const LEFT_OUT_PREFIX: &str = "url_host_";

/// Columns of a captures.parquet that are kept besides the fields of a record. The others (timings, addresses, validators) are
/// of use beside the archive, and would be most of a lake's bytes.
const CAPTURES_KEPT: &str = "url status content_type digest body_length warc_file warc_offset warc_length fetched_at started_at \
    unchanged error error_class truncated redirect_to redirect_of record_type meta_json";

/// And those that a crawl needs: with them it asks whether a page changed, and tells pages from robots.txt files.
const CRAWL_KEPT: &str = "etag last_modified record_id refers_to_uri refers_to_date run_id robots";

/// Rows decoded at a time.
const BATCH_ROWS: usize = 1024;

/// A Parquet file.
#[derive(Debug)]
pub(crate) struct ParquetSource {
    file: ListFile,
    /// What each column is.
    roles: Roles,
    /// The columns that are read, by number.
    wanted: Vec<usize>,
    metadata: ArrowReaderMetadata,
    /// Offset of each row group's first byte.
    starts: Vec<u64>,
    /// Rows of each row group.
    rows: Vec<u64>,
    /// Whether it is a captures.parquet.
    captures: bool,
}

impl ParquetSource {
    /// Reads the footer.
    pub fn open(file: ListFile, options: &Options) -> Result<Self, DoorError> {
        let reader = Chunks(Arc::new(file.bytes()?));
        let start = Place::new(&*file.identity.uri, 0, 0);
        let fail = |e: String| DoorError::new(Advice::Stop, e).at(start.clone());
        let metadata = guarded(|| ArrowReaderMetadata::load(&reader, ArrowReaderOptions::new()))
            .map_err(|e| fail(format!("expected a Parquet file, found another format or damage ({e})")))?;
        let names = || metadata.schema().fields().iter().map(|field| field.name().as_str());
        let roles = Roles::of(options, false, names());
        if !roles.has_url() {
            let expected = options.url_column.as_deref().unwrap_or("url");
            let is_of_lake = PARTS_OF_LAKE.iter().all(|part| names().any(|name| name == *part));
            let found = if is_of_lake && options.url_column.is_none() {
                let advice = "`trawl lake copy` copies a lake, and an export of `trawl serve` has whole URLs";
                format!("the parts of URLs, as in a file of a lake: {advice}")
            } else {
                names().collect::<Vec<_>>().join(", ")
            };
            let bad = BadItem::new("no_url", format!("expected a column {expected:?}, found {found}"), b"");
            return Err(bad.ends(start));
        }
        if let Some(column) = roles.missing_time(options) {
            let found = names().collect::<Vec<_>>().join(", ");
            let message = format!("expected a column {column:?}, as --time-column says, found {found}");
            return Err(BadItem::new("no_time", message, b"").ends(start));
        }
        let groups = metadata.metadata().row_groups();
        // A row group that began behind the end would be in no split, and its rows would vanish.
        let inside = |start: &u64| *start < file.identity.size;
        let first = |group: &RowGroupMetaData| group.columns().iter().map(first_byte).min().flatten().filter(inside);
        let starts = groups.iter().map(first).collect::<Option<Vec<_>>>();
        let starts = starts.ok_or_else(|| fail("expected column chunks inside the file".into()))?;
        let rows = groups.iter().map(|group| u64::try_from(group.num_rows()).ok()).collect::<Option<Vec<_>>>();
        let rows = rows.ok_or_else(|| fail("expected a number of rows in each row group".into()))?;
        let captures = has_captures(&metadata);
        let is_wanted = |role: Role, name: &str| match captures {
            true => {
                let is_kept = |list: &str| list.split_whitespace().any(|kept| kept == name);
                is_kept(CAPTURES_KEPT) || options.purpose == Purpose::Crawl && is_kept(CRAWL_KEPT)
            }
            false if role != Role::Extra => true,
            false => !name.starts_with(LEFT_OUT_PREFIX) && !LEFT_OUT.split(' ').any(|left| left == name),
        };
        let wanted = roles.each.iter().zip(names()).map(|(role, name)| is_wanted(*role, name));
        let wanted = (0..).zip(wanted).filter(|(_, wanted)| *wanted).map(|(column, _)| column).collect();
        Ok(Self { file, roles, wanted, metadata, starts, rows, captures })
    }

    /// The numbers of the rows of some row groups, counted in the file from 0.
    fn numbers(&self, groups: &[usize]) -> impl Iterator<Item = u64> + use<> {
        let mut ranges = Vec::with_capacity(groups.len());
        let mut first = 0u64;
        for (i, rows) in self.rows.iter().enumerate() {
            let end = first.saturating_add(*rows);
            if groups.binary_search(&i).is_ok() {
                ranges.push(first..end);
            }
            first = end;
        }
        ranges.into_iter().flatten()
    }

    fn records(
        &self,
        batch: &RecordBatch,
        numbers: &mut impl Iterator<Item = u64>,
        each: &mut Items<'_>,
    ) -> Result<(), DoorError> {
        let schema = batch.schema();
        for row in 0..batch.num_rows() {
            let Some(number) = numbers.next() else {
                let error = "expected as many rows as the footer counts, found more";
                return Err(DoorError::new(Advice::Stop, error).at(Place::new(&*self.file.identity.uri, 0, 0)));
            };
            let mut fields = self.roles.fields();
            let roles = self.wanted.iter().filter_map(|column| self.roles.each.get(*column));
            for ((field, array), role) in schema.fields().iter().zip(batch.columns()).zip(roles) {
                take(&mut fields, *role, field.name(), array, row, self.captures);
            }
            if fields.has_url() {
                let Some(record) = fields.finish() else { continue };
                // What an archive holds under a URL is a capture, however that URL looks.
                let record = if self.captures { Ok(record) } else { one_url(record) };
                each(number, record.map_err(|bad| bad.at(Place::new(&*self.file.identity.uri, number, 0))))?;
            } else {
                let bad = BadItem::new("no_url", "expected a url in the row, found none", fields.text().as_bytes());
                each(number, Err(bad.at(Place::new(&*self.file.identity.uri, number, 0))))?;
            }
        }
        Ok(())
    }
}

fn has_captures(metadata: &ArrowReaderMetadata) -> bool {
    ["fetched_at", "warc_file", "unchanged"].iter().all(|name| metadata.schema().field_with_name(name).is_ok())
}

/// Whether a file is a captures.parquet, Trawl's or another crawler's. One that cannot be read is not: reading it then fails and says why.
pub fn is_captures(path: &Path) -> bool {
    let Ok(file) = FileReader::open(path) else { return false };
    let metadata = guarded(|| ArrowReaderMetadata::load(&Chunks(Arc::new(file)), ArrowReaderOptions::new()));
    metadata.is_ok_and(|metadata| has_captures(&metadata))
}

/// Gives one value to the record.
fn take(fields: &mut Fields, role: Role, name: &str, array: &dyn Array, row: usize, captures: bool) {
    if array.is_null(row) {
        return;
    }
    let taken = match name {
        // A capture whose date could not be read has the first moment there is: as in the archive itself, that is no time.
        "started_at" | "fetched_at" if captures && millis(array, row) == Some(UnixMillis(0)) => true,
        // The start is what the archive's own records say, so it goes before the end.
        "started_at" if captures => millis(array, row).is_some_and(|ts| fields.replace_ts(ts)),
        "fetched_at" if captures => millis(array, row).is_some_and(|ts| fields.set_ts(ts)),
        _ => role == Role::Ts && text::moment(array, row).is_some_and(|ts| fields.set_ts(ts)),
    };
    if taken {
        return;
    }
    // A URL in bytes that are no text is escaped, as in a list.
    if matches!(role, Role::Url | Role::Host)
        && let Some(bytes) = value::bytes(array, row)
    {
        return fields.put(role, name, Value::Text(&text_of(bytes)));
    }
    let mut scratch = String::new();
    match (name, value::of(array, row, &mut scratch)) {
        (_, Value::Null | Value::Text("")) => {}
        ("unchanged", Value::Json("false")) | ("record_type", Value::Text("response")) if captures => {}
        ("meta_json", Value::Text(text)) if captures && is_object(text) => {
            fields.put(Role::Extra, "meta", Value::Json(text));
        }
        (name, value) => fields.put(role, name, value),
    }
}

/// A time of captures.parquet, which has milliseconds.
fn millis(array: &dyn Array, row: usize) -> Option<UnixMillis> {
    match array.as_primitive_opt::<Int64Type>() {
        Some(array) => Some(UnixMillis(array.value(row))),
        None => text::moment(array, row),
    }
}

/// Whether a text is one JSON object.
pub fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

impl UrlSource for ParquetSource {
    fn identity(&self) -> SourceIdentity {
        self.file.identity.clone()
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let size = self.file.identity.size;
        let mut splits: Vec<Split> = Vec::new();
        for start in &self.starts {
            match splits.last_mut() {
                Some(last) if start.saturating_sub(last.start) < target_bytes => {}
                Some(last) => {
                    last.end = *start;
                    splits.push(Split { start: *start, end: size });
                }
                None => splits.push(Split { start: 0, end: size }),
            }
        }
        Ok(splits)
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let groups: Vec<usize> = (0..)
            .zip(&self.starts)
            .filter(|(_, start)| (split.start..split.end).contains(start))
            .map(|(group, _)| group)
            .collect();
        let mut numbers = self.numbers(&groups);
        let fail = |e: String| DoorError::new(Advice::Stop, e).at(Place::new(&*self.file.identity.uri, split.start, 0));
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), self.wanted.iter().copied());
        let reader = Chunks(Arc::new(self.file.bytes()?));
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(reader, self.metadata.clone())
            .with_projection(mask)
            .with_row_groups(groups)
            .with_batch_size(BATCH_ROWS);
        let mut batches = guarded(|| builder.build()).map_err(fail)?;
        while let Some(batch) = guarded(|| Ok(batches.next().transpose()?)).map_err(fail)? {
            self.records(&batch, &mut numbers, each)?;
        }
        // Rows that the footer counts and the pages do not have would vanish.
        numbers.next().map_or(Ok(()), |row| Err(fail(format!("expected row {row}, found the end of the row groups"))))
    }
}

/// A file, as the Parquet library reads it. No length is believed beyond the end of the file.
struct Chunks(Arc<FileReader>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<Cursor<Arc<FileReader>>>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let mut cursor = Cursor::new(self.0.clone());
        cursor.seek(SeekFrom::Start(start))?;
        Ok(BufReader::new(cursor))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let range = start..start.saturating_add(length as u64);
        self.0.read_range(range).map_err(|e| ParquetError::External(Box::new(e)))
    }
}

/// Calls the Parquet library, which divides by zero and indexes past ends when a file is damaged in certain ways: that is an
/// error of the file, not of the program. Nothing it touched is used afterwards.
fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(|e| e.to_string()),
        Err(_) => Err("bytes that the parquet library cannot decode".to_owned()),
    }
}

/// Where a column chunk begins; `None` where its metadata makes no sense.
fn first_byte(chunk: &ColumnChunkMetaData) -> Option<u64> {
    let start = u64::try_from(chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset())).ok()?;
    start.checked_add(u64::try_from(chunk.compressed_size()).ok()?).map(|_| start)
}

#[cfg(test)]
mod tests;
