//! Reads capture indexes: ours, the plain thirteen columns, and the 24 that ami writes.
//!
//! Columns are found by name; those of the contract that are missing keep their empty values, those it does not know
//! (bodies, headers, Markdown) are not even read. `url` is the one column a file must have.

use crate::columns::{COLUMNS, Cell, Column, Kind};
use crate::error::{Error, Result};
use crate::row::CaptureRow;
use crate::writer::Covered;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::reader::{ChunkReader, Length};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_io::read_at::{Cursor, FileReader};

/// Rows read at a time.
const BATCH_ROWS: usize = 2048;

/// Anything with offsets, as the Parquet reader wants it.
pub(crate) struct Chunks(pub Arc<dyn ReadAt>);

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for Chunks {
    type T = std::io::BufReader<Cursor<Arc<dyn ReadAt>>>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let mut cursor = Cursor::new(self.0.clone());
        std::io::Seek::seek(&mut cursor, std::io::SeekFrom::Start(start))?;
        Ok(std::io::BufReader::new(cursor))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let range = start..start.saturating_add(length as u64);
        self.0.read_range(range).map_err(|e| ParquetError::External(Box::new(e)))
    }
}

/// Calls the Parquet library, which divides by zero and indexes past ends when a file is damaged in certain ways: that is
/// an error of the file, not of the program. Nothing it touched is used afterwards.
pub(crate) fn guarded<T>(call: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let damaged = || ParquetError::General("damaged in a way the Parquet library does not survive".into());
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| Err(damaged()))
}

/// Whether a Parquet file is an index of captures, not a table of URLs made by another program: it says in which archive each
/// capture is. One that cannot be read counts as an index, so that the reader says what is wrong with it.
pub(crate) fn is_index(file: Arc<dyn ReadAt>) -> bool {
    let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&Chunks(file)));
    metadata.map_or(true, |metadata| {
        let columns = metadata.file_metadata().schema_descr().root_schema().get_fields();
        ["url", "warc_file"].iter().all(|name| columns.iter().any(|column| column.name() == *name))
    })
}

/// Reads rows, a batch at a time.
pub struct CapturesReader {
    file: PathBuf,
    /// `None` once it has failed.
    batches: Option<ParquetRecordBatchReader>,
    /// For each column of a batch, the column it is.
    columns: Vec<&'static Column>,
    batch: std::vec::IntoIter<CaptureRow>,
    row_count: u64,
    version: Option<String>,
    archives: Option<Vec<Covered>>,
}

impl CapturesReader {
    /// Opens a file of the machine.
    pub fn open(path: &Path) -> Result<Self> {
        Self::over(Arc::new(FileReader::open(path)?))
    }

    /// Reads anything with offsets.
    pub fn over(file: Arc<dyn ReadAt>) -> Result<Self> {
        Self::over_row_groups(file, None)
    }

    /// Reads some row groups only, in the order given.
    pub fn over_row_groups(file: Arc<dyn ReadAt>, row_groups: Option<Vec<usize>>) -> Result<Self> {
        Self::build(file, row_groups, None)
    }

    /// Reads some row groups, or all; and one column, or all.
    fn build(file: Arc<dyn ReadAt>, row_groups: Option<Vec<usize>>, only: Option<&str>) -> Result<Self> {
        let name = file.name().to_path_buf();
        let fail = |source| Error::Parquet { file: name.clone(), source };
        // The embedded Arrow schema is another program's wish about types; the Parquet schema is what the file has.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder =
            guarded(|| ParquetRecordBatchReaderBuilder::try_new_with_options(Chunks(file), options)).map_err(fail)?;
        let schema = builder.schema().clone();
        let mut wanted = Vec::new();
        let mut columns = Vec::new();
        for (i, field) in schema.fields().iter().enumerate() {
            if let Some(column) = COLUMNS.iter().find(|c| c.name == field.name()) {
                check_type(&name, column, field.data_type())?;
                wanted.push(i);
                columns.push(column);
            }
        }
        if !columns.iter().any(|c| c.name == "url") {
            return Err(Error::Column {
                file: name,
                column: "url".into(),
                expected: "text",
                found: "no such column".into(),
            });
        }
        if let Some(only) = only {
            let kept: Vec<bool> = columns.iter().map(|column| column.name == only).collect();
            let mut keep = kept.iter().copied();
            columns.retain(|_| keep.next() == Some(true));
            let mut keep = kept.into_iter();
            wanted.retain(|_| keep.next() == Some(true));
        }
        let metadata = builder.metadata().file_metadata();
        let row_count = u64::try_from(metadata.num_rows()).unwrap_or(0);
        let stated = |key: &str| {
            let pairs = metadata.key_value_metadata()?;
            pairs.iter().find(|kv| kv.key == key).and_then(|kv| kv.value.clone())
        };
        let version = stated(crate::VERSION_KEY);
        let archives = stated(crate::ARCHIVES_KEY).and_then(|list| serde_json::from_str(&list).ok());
        let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
        let mut builder = builder.with_projection(mask).with_batch_size(BATCH_ROWS);
        if let Some(row_groups) = row_groups {
            builder = builder.with_row_groups(row_groups);
        }
        let batches = guarded(|| builder.build()).map_err(fail)?;
        Ok(CapturesReader {
            file: name,
            batches: Some(batches),
            columns,
            batch: Vec::new().into_iter(),
            row_count,
            version,
            archives,
        })
    }

    /// The archives whose captures these are, if the file says so: one of another program does not.
    pub fn archives(&self) -> Option<&[Covered]> {
        self.archives.as_deref()
    }

    /// Rows in the file.
    pub fn row_count(&self) -> u64 {
        self.row_count
    }

    /// The contract the file names in its footer, if any.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The columns of the contract that the file has, in file order.
    pub fn column_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.columns.iter().map(|c| c.name)
    }

    fn rows(&self, batch: &RecordBatch) -> Vec<CaptureRow> {
        let mut rows = vec![CaptureRow::default(); batch.num_rows()];
        for (column, array) in self.columns.iter().zip(batch.columns()) {
            fill(column, array, &mut rows);
        }
        rows
    }
}

/// The archives that an index covers: those it lists, else those its rows name. Then only their names are known, and an archive
/// in which every fetch failed is not among them.
pub fn archives_of(file: Arc<dyn ReadAt>) -> Result<Vec<Covered>> {
    let reader = CapturesReader::build(file, None, Some("warc_file"))?;
    if let Some(listed) = reader.archives() {
        return Ok(listed.to_vec());
    }
    let mut names = BTreeSet::new();
    if reader.columns.is_empty() {
        return Ok(Vec::new());
    }
    for row in reader {
        let name = row?.warc_file;
        if !name.is_empty() && !names.contains(&name) {
            names.insert(name);
        }
    }
    Ok(names.into_iter().map(|name| Covered { name, bytes: None }).collect())
}

impl Iterator for CapturesReader {
    type Item = Result<CaptureRow>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.batch.next() {
                return Some(Ok(row));
            }
            let batches = self.batches.as_mut()?;
            match guarded(|| batches.next().transpose().map_err(ParquetError::from)) {
                Ok(Some(batch)) => self.batch = self.rows(&batch).into_iter(),
                Ok(None) => return None,
                Err(source) => {
                    self.batches = None;
                    return Some(Err(Error::Parquet { file: self.file.clone(), source }));
                }
            }
        }
    }
}

fn check_type(file: &Path, column: &Column, found: &DataType) -> Result<()> {
    let fits = match column.kind {
        Kind::Text => matches!(found, DataType::Utf8 | DataType::Binary | DataType::LargeUtf8 | DataType::Utf8View),
        Kind::Int32 | Kind::Int64 => matches!(found, DataType::Int32 | DataType::Int64),
        Kind::Bool => matches!(found, DataType::Boolean),
    };
    if fits {
        return Ok(());
    }
    let expected = match column.kind {
        Kind::Text => "text",
        Kind::Int32 | Kind::Int64 => "a signed integer of 32 or 64 bits",
        Kind::Bool => "a boolean",
    };
    Err(Error::Column { file: file.into(), column: column.name.into(), expected, found: found.to_string() })
}

fn fill(column: &Column, array: &ArrayRef, rows: &mut [CaptureRow]) {
    let each = rows.iter_mut().enumerate().filter(|(i, _)| array.is_valid(*i));
    match array.data_type() {
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            each.for_each(|(i, row)| (column.set)(row, Cell::Text(values.value(i))));
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            each.for_each(|(i, row)| (column.set)(row, Cell::Text(values.value(i))));
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            each.for_each(|(i, row)| (column.set)(row, Cell::Text(values.value(i))));
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            each.for_each(|(i, row)| (column.set)(row, Cell::Text(&trawl_url::text_of(values.value(i)))));
        }
        DataType::Int32 => {
            let values = array.as_primitive::<Int32Type>();
            each.for_each(|(i, row)| (column.set)(row, Cell::Int(values.value(i).into())));
        }
        DataType::Int64 => {
            let values = array.as_primitive::<Int64Type>();
            each.for_each(|(i, row)| (column.set)(row, Cell::Int(values.value(i))));
        }
        DataType::Boolean => {
            let values = array.as_boolean();
            each.for_each(|(i, row)| (column.set)(row, Cell::Bool(values.value(i))));
        }
        _ => {}
    }
}
