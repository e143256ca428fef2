//! Which columns a file has and how each is written.
//!
//! Chosen by size measured on sorted URLs, and so that a small reading reads little:
//!
//! - `domain`, `host` and `path_query` are DELTA_BYTE_ARRAY: sorted rows share long prefixes, and no dictionary page has to
//!   be read before the first value. `raw_url` likewise.
//! - `scheme`, `content_type` and `warc_file` repeat: dictionary, as long as it stays small.
//! - numbers are DELTA_BINARY_PACKED.

use crate::record::Shape;
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use std::sync::Arc;
use trawl_store::rows::{Column, Kind, SCHEMA};

/// Largest dictionary page: it is read whenever one value of its column is.
const DICTIONARY_BYTES: usize = 64 << 10;
/// Largest data page before compression: long values must not make pages of many megabytes.
const PAGE_BYTES: usize = 512 << 10;

/// How files are written.
#[derive(Debug, Clone)]
pub(crate) struct FileSettings {
    pub zstd_level: i32,
    pub page_rows: usize,
    pub columns: Vec<Column>,
    pub key_values: Vec<(String, String)>,
}

/// The columns of files whose rows have this shape.
pub(crate) fn columns(shape: Shape, store_ids: bool) -> Vec<Column> {
    let wanted = |column: &Column| match column {
        Column::DomainId | Column::UrlId => store_ids,
        Column::Extras => shape.extras,
        Column::RawUrl => shape.raw_url,
        column if Column::CAPTURE.contains(column) => shape.capture,
        _ => true,
    };
    Column::ALL.iter().copied().filter(wanted).collect()
}

pub(crate) fn arrow_schema(columns: &[Column]) -> SchemaRef {
    let fields = columns.iter().map(|column| {
        let kind = match column.kind() {
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::UInt64 => DataType::UInt64,
            Kind::Millis => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            Kind::Text => DataType::Utf8,
        };
        Field::new(column.name(), kind, column.nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

pub(crate) fn properties(settings: &FileSettings) -> Result<WriterProperties> {
    let key_values = [("trawl.schema".to_owned(), SCHEMA.to_string())].into_iter().chain(settings.key_values.clone());
    let domain = settings.columns.iter().position(|c| *c == Column::Domain).and_then(|i| i32::try_from(i).ok());
    let sorting = domain.map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: false }]);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("trawl version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(settings.zstd_level)?))
        .set_key_value_metadata(Some(key_values.map(|(key, value)| KeyValue::new(key, value)).collect()))
        .set_sorting_columns(sorting)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(settings.page_rows)
        .set_write_batch_size(settings.page_rows.min(1024))
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None);
    for column in &settings.columns {
        let path = ColumnPath::from(column.name());
        builder = match column {
            Column::Domain | Column::Host => builder
                .set_column_encoding(path.clone(), Encoding::DELTA_BYTE_ARRAY)
                .set_column_statistics_enabled(path, EnabledStatistics::Page),
            Column::PathQuery | Column::RawUrl => builder.set_column_encoding(path, Encoding::DELTA_BYTE_ARRAY),
            Column::Scheme | Column::ContentType | Column::WarcFile => {
                builder.set_column_dictionary_enabled(path, true)
            }
            Column::Ts => builder
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_statistics_enabled(path, EnabledStatistics::Page),
            Column::Digest | Column::Extras => builder.set_column_encoding(path, Encoding::DELTA_LENGTH_BYTE_ARRAY),
            // Hashes have no order that packing could use.
            Column::DomainId | Column::UrlId => builder.set_column_encoding(path, Encoding::PLAIN),
            _ => builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    Ok(builder.build())
}
