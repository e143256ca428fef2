//! Rows of answers as an Arrow table: for exports and for Python.

use crate::UrlItem;
use arrow_array::builder::{Int32Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::{Arc, LazyLock};

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let millis = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("dataset_id", DataType::Int32, false),
        Field::new("domain", DataType::Utf8, false),
        Field::new("url_id", DataType::UInt64, false),
        Field::new("url", DataType::Utf8, false),
        Field::new("ts", millis, true),
        Field::new("status", DataType::Int32, true),
        Field::new("content_type", DataType::Utf8, true),
        Field::new("digest", DataType::Utf8, true),
        Field::new("body_length", DataType::Int64, true),
        Field::new("warc_file", DataType::Utf8, true),
        Field::new("warc_offset", DataType::Int64, true),
        Field::new("warc_length", DataType::Int64, true),
        Field::new("extras", DataType::Utf8, true),
    ]))
});

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Bytes of text in a batch. Extras may have megabytes a row, and an Arrow column of texts at most 2 GiB.
const BATCH_BYTES: usize = 16 << 20;

/// Collects rows and gives them as Arrow batches.
#[derive(Default)]
pub struct ItemTable {
    rows: usize,
    bytes: usize,
    dataset: Int32Builder,
    domain: StringBuilder,
    url_id: UInt64Builder,
    url: StringBuilder,
    ts: TimestampMillisecondBuilder,
    status: Int32Builder,
    /// content_type, digest, warc_file, extras.
    texts: [StringBuilder; 4],
    /// body_length, warc_offset, warc_length.
    numbers: [Int64Builder; 3],
}

impl ItemTable {
    /// An empty table.
    pub fn new() -> Self {
        Self { ts: TimestampMillisecondBuilder::new().with_timezone("UTC"), ..Self::default() }
    }

    /// The columns of every batch.
    pub fn schema(&self) -> SchemaRef {
        SCHEMA.clone()
    }

    /// Rows since the last batch was taken.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the rows are enough for a batch: a caller takes it before the next row.
    pub fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Adds a row.
    pub fn push(&mut self, dataset_id: u32, domain: &str, item: &UrlItem) {
        self.rows += 1;
        self.bytes += domain.len() + item.url.len();
        self.dataset.append_value(dataset_id.cast_signed());
        self.domain.append_value(domain);
        self.url_id.append_value(item.url_id);
        self.url.append_value(&item.url);
        self.ts.append_option(item.ts.map(|ts| ts.0));
        self.status.append_option(item.status.map(i32::from));
        let extras = item.extras.as_ref().map(ToString::to_string);
        for (builder, text) in self.texts.iter_mut().zip([&item.content_type, &item.digest, &item.warc_file, &extras]) {
            builder.append_option(text.as_deref());
            self.bytes += text.as_ref().map_or(0, String::len);
        }
        for (builder, number) in self.numbers.iter_mut().zip([item.body_length, item.warc_offset, item.warc_length]) {
            // Lengths and offsets of files: no file has 2^63 bytes.
            builder.append_option(number.and_then(|number| i64::try_from(number).ok()));
        }
    }

    /// The rows as a batch; the table is empty afterwards.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        (self.rows, self.bytes) = (0, 0);
        let [content_type, digest, warc_file, extras] = &mut self.texts;
        let [body_length, warc_offset, warc_length] = &mut self.numbers;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.dataset.finish()),
            Arc::new(self.domain.finish()),
            Arc::new(self.url_id.finish()),
            Arc::new(self.url.finish()),
            Arc::new(self.ts.finish()),
            Arc::new(self.status.finish()),
            Arc::new(content_type.finish()),
            Arc::new(digest.finish()),
            Arc::new(body_length.finish()),
            Arc::new(warc_file.finish()),
            Arc::new(warc_offset.finish()),
            Arc::new(warc_length.finish()),
            Arc::new(extras.finish()),
        ];
        RecordBatch::try_new(SCHEMA.clone(), columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_bounded_by_rows_and_by_bytes() {
        let item = |extras: &str| UrlItem {
            url_id: 1,
            url: "https://a.example/".into(),
            ts: None,
            status: None,
            content_type: None,
            digest: None,
            body_length: None,
            warc_file: None,
            warc_offset: None,
            warc_length: None,
            locator: None,
            extras: Some(extras.into()),
        };
        for (extras, most) in [("x".to_owned(), BATCH_ROWS), ("x".repeat(1 << 20), 16)] {
            let (mut table, item) = (ItemTable::new(), item(&extras));
            for _ in 0..2 {
                while !table.is_full() {
                    table.push(1, "a.example", &item);
                }
                assert_eq!(table.take().unwrap().num_rows(), most);
            }
        }
    }
}
