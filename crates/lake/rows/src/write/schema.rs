//! Which columns a file has and how each is written.
//!
//! Chosen by size, and so that a small reading reads little. Bytes a row at zstd 6 and 4096 rows a page, of 103 thousand
//! URLs found in documents / 2 million made ones, sorted; the last three columns are made values.
//!
//! | column | dictionary | PLAIN | DELTA_BYTE_ARRAY | DELTA_LENGTH | DELTA_BINARY | written |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | domain | 0.18 / 0.28 | 0.16 / 0.25 | 0.18 / 0.41 | 0.17 / 0.33 | | DELTA_BYTE_ARRAY of our own, long pages |
//! | host | 0.24 / 0.38 | 0.22 / 0.35 | 0.26 / 0.55 | 0.23 / 0.43 | | the same |
//! | path_query | 5.74 / 12.1 | 5.14 / 12.1 | 4.43 / 11.5 | 5.39 / 12.1 | | the same: see [`text`](super::text) |
//! | scheme | 0.02 / 0.14 | 0.04 / 0.31 | 0.05 / 0.31 | 0.05 / 0.44 | | dictionary |
//! | digest | 21.4 | 21.4 | 20.5 | 21.4 | | DELTA_BYTE_ARRAY of our own |
//! | warc_file | 1.0 to 4.1 | 2.0 to 4.1 | 2.7 to 4.4 | 2.0 to 4.0 | | dictionary, while it is small |
//! | ts, status, offset | 4.6, 0.20, 4.3 | 4.6, 0.32, 4.3 | | | 4.0, 0.39, 3.9 | status: dictionary, others: DELTA_BINARY_PACKED |
//!
//! Text columns were measured as the library writes them; our own pages are smaller (domain 0.28 → 0.23 / 0.23 → 0.20 and
//! host 0.42 → 0.40 / 0.26 → 0.26 in long pages, of other URLs). BYTE_STREAM_SPLIT takes times to 3.9 only in
//! pages of 65,536 rows, 4.1 in these.
//! path_query by zstd level: 3 11.8, 6 11.5, 9 11.4.

use super::WriteSettings;
use super::text::TextSettings;
use crate::{Column, SCHEMA, ZSTD_LEVEL};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::Result;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{DeltaBinaryPackedEncoderOptions, EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

/// Largest dictionary page: it is read whenever one value of its column is.
const DICTIONARY_BYTES: usize = 64 << 10;
/// Of archive file names, some thousands are worth it.
const WARC_DICTIONARY_BYTES: usize = 256 << 10;
/// Largest data page before compression: long values must not make pages of many megabytes.
const PAGE_BYTES: usize = 512 << 10;

impl WriteSettings {
    /// Rows of a page of a column. What is packed page by page alike whatever page it is in, and what a page of URLs is
    /// not read for, goes into longer pages: a page costs 50 bytes and more in header, page index and page table.
    fn rows_of(&self, column: Column) -> usize {
        let times = match column {
            Column::DatasetId => 16,
            Column::Domain => 8,
            Column::Port => 4,
            Column::Scheme | Column::Host => 2,
            _ => 1,
        };
        self.page_rows.saturating_mul(times)
    }

    /// How a column is written that does not go through the library.
    pub(super) fn text(&self, column: Column) -> Option<TextSettings> {
        let ours = [Column::Domain, Column::Host, Column::PathQuery, Column::RawUrl, Column::Digest];
        ours.contains(&column).then(|| TextSettings {
            zstd_level: self.zstd_level,
            page_rows: self.rows_of(column),
            page_bytes: PAGE_BYTES,
            page_statistics: matches!(column, Column::Domain | Column::Host),
        })
    }
}

pub(super) fn properties(settings: &WriteSettings) -> Result<WriterProperties> {
    let key_values = [
        KeyValue::new("trawl.schema".to_owned(), SCHEMA.to_string()),
        KeyValue::new("trawl.suffix_list".to_owned(), settings.suffix_list.clone()),
        KeyValue::new(ZSTD_LEVEL.to_owned(), settings.zstd_level.to_string()),
    ];
    let domain = settings.columns.iter().position(|c| *c == Column::Domain).and_then(|i| i32::try_from(i).ok());
    let sorting = domain.map(|column_idx| vec![SortingColumn { column_idx, descending: false, nulls_first: false }]);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("trawl version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(settings.zstd_level)?))
        .set_key_value_metadata(Some(key_values.into()))
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
        builder = builder.set_column_data_page_row_count_limit(path.clone(), settings.rows_of(*column));
        builder = match column {
            column if settings.text(*column).is_some() => builder,
            Column::Scheme | Column::Status | Column::ContentType => builder.set_column_dictionary_enabled(path, true),
            Column::WarcFile => builder
                .set_column_dictionary_enabled(path.clone(), true)
                .set_column_dictionary_page_size_limit(path, WARC_DICTIONARY_BYTES),
            Column::Ts => builder
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED)
                .set_column_delta_binary_packed_encoder_options(
                    path.clone(),
                    DeltaBinaryPackedEncoderOptions::try_new(1024, 4)?,
                )
                .set_column_statistics_enabled(path, EnabledStatistics::Page),
            Column::Extras => builder.set_column_encoding(path, Encoding::DELTA_LENGTH_BYTE_ARRAY),
            // Hashes have no order that packing could use.
            Column::DomainId | Column::UrlId => builder.set_column_encoding(path, Encoding::PLAIN),
            _ => builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    Ok(builder.build())
}
