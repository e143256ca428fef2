//! Writes `captures.parquet`, complete or not at all.
//!
//! ```text
//! Parquet, root message "Capture", zstd; row groups of 131 072 rows; page statistics and page index;
//! Bloom filter on url; dictionaries where values repeat; footer metadata captures.version = 1, and
//! captures.archives = [{"name": "a.warc.gz", "bytes": 12345}, …], the archives whose captures these are
//! ```

use crate::columns::{COLUMNS, Cell, Column, Kind, Store, schema};
use crate::error::{Error, Result};
use crate::row::CaptureRow;
use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{AtomicFile, Fs};

/// Footer metadata key that names the contract.
pub const VERSION_KEY: &str = "captures.version";
/// Footer metadata key under which the archives are listed.
pub const ARCHIVES_KEY: &str = "captures.archives";
/// The contract written by this crate.
pub const VERSION: &str = "1";
/// Rows of a row group.
pub const ROW_GROUP_ROWS: usize = 128 << 10;
/// Rows gathered before they are handed to the Parquet writer.
const BATCH_ROWS: usize = 4096;
const ZSTD_LEVEL: i32 = 6;

/// An archive, all captures of which have rows in an index. Rows of failed fetches name no archive, and some archives have no
/// others: rows alone do not tell what an index covers.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Covered {
    /// Its name, as seen from the directory of the index.
    pub name: String,
    /// How long it was; `None` for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Writes rows; the file appears when [`CapturesWriter::finish`] succeeds.
pub struct CapturesWriter {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: ArrowWriter<AtomicFile>,
    rows: Vec<CaptureRow>,
    row_count: u64,
    covered: Vec<Covered>,
}

impl CapturesWriter {
    /// Starts a file that will be published as `path`.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        let file = AtomicFile::create(fs, path)?;
        let schema = schema();
        let options = ArrowWriterOptions::new()
            .with_properties(properties())
            .with_schema_root("Capture".into())
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, schema.clone(), options)
            .map_err(|source| Error::Parquet { file: path.into(), source })?;
        let (rows, covered) = (Vec::with_capacity(BATCH_ROWS), Vec::new());
        Ok(CapturesWriter { path: path.into(), schema, writer, rows, row_count: 0, covered })
    }

    /// Says that the rows are all captures of an archive.
    pub fn covers(&mut self, archive: Covered) {
        self.covered.push(archive);
    }

    /// Adds a row.
    pub fn push(&mut self, row: CaptureRow) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= BATCH_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// Rows added so far.
    pub fn row_count(&self) -> u64 {
        self.row_count + self.rows.len() as u64
    }

    /// Completes the file and publishes it; says how many rows it has.
    pub fn finish(mut self) -> Result<u64> {
        self.flush()?;
        let CapturesWriter { path, mut writer, row_count, covered, .. } = self;
        if let Some(list) = covered_metadata(covered) {
            writer.append_key_value_metadata(list);
        }
        let file = writer.into_inner().map_err(|source| Error::Parquet { file: path, source })?;
        file.publish()?;
        Ok(row_count)
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let fail = |source| Error::Parquet { file: self.path.clone(), source };
        let arrays = COLUMNS.iter().map(|column| array(column, &self.rows)).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(|e| fail(ParquetError::from(e)))?;
        self.writer.write(&batch).map_err(fail)?;
        self.row_count += self.rows.len() as u64;
        self.rows.clear();
        Ok(())
    }
}

/// The archives that an index covers, as its footer lists them.
pub(crate) fn covered_metadata(covered: Vec<Covered>) -> Option<KeyValue> {
    let list = Some(covered).filter(|all| !all.is_empty()).and_then(|all| serde_json::to_string(&all).ok())?;
    Some(KeyValue::new(ARCHIVES_KEY.into(), Some(list)))
}

pub(crate) fn properties() -> WriterProperties {
    let zstd = ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default();
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(zstd))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_column_index_truncate_length(Some(64))
        .set_statistics_truncate_length(Some(64))
        .set_created_by(concat!("trawl version ", env!("CARGO_PKG_VERSION")).into())
        .set_key_value_metadata(Some(vec![KeyValue::new(VERSION_KEY.into(), Some(VERSION.to_owned()))]));
    for column in COLUMNS {
        let path = ColumnPath::from(column.name);
        builder = match column.store {
            Store::Dictionary => builder.set_column_dictionary_enabled(path, true),
            Store::Plain => builder.set_column_dictionary_enabled(path, false),
            Store::Delta => builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    let url = ColumnPath::from("url");
    builder
        .set_column_bloom_filter_enabled(url.clone(), true)
        .set_column_bloom_filter_fpp(url.clone(), 0.01)
        .set_column_bloom_filter_max_ndv(url, ROW_GROUP_ROWS as u64)
        .build()
}

fn array(column: &Column, rows: &[CaptureRow]) -> ArrayRef {
    let cells = rows.iter().map(column.get);
    match column.kind {
        Kind::Text => {
            let mut builder = StringBuilder::new();
            cells.for_each(|cell| match cell {
                Cell::Text(text) => builder.append_value(text),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
        Kind::Int32 => {
            let mut builder = Int32Builder::with_capacity(rows.len());
            cells.for_each(|cell| match cell {
                Cell::Int(n) => builder.append_option(i32::try_from(n).ok()),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
        Kind::Int64 => {
            let mut builder = Int64Builder::with_capacity(rows.len());
            cells.for_each(|cell| match cell {
                Cell::Int(n) => builder.append_value(n),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
        Kind::Bool => {
            let mut builder = BooleanBuilder::with_capacity(rows.len());
            cells.for_each(|cell| match cell {
                Cell::Bool(value) => builder.append_value(value),
                _ => builder.append_null(),
            });
            Arc::new(builder.finish())
        }
    }
}
