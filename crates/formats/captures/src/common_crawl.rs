//! The same rows under the names of Common Crawl's columnar index, for queries written for that.

use crate::error::{Error, Result};
use crate::row::CaptureRow;
use arrow_array::builder::{Int16Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use std::path::Path;
use std::sync::Arc;
use trawl_io::{AtomicFile, Fs};
use trawl_model::Digest;

const BATCH_ROWS: usize = 4096;

/// A row as Common Crawl names its parts; failed fetches have none there.
type Texts = [(&'static str, fn(&CaptureRow) -> Option<String>); 9];

const TEXTS: Texts = [
    ("url_surtkey", |r| r.surt.clone()),
    ("url", |r| Some(r.url.clone())),
    ("url_host_name", |r| Some(r.host.clone())),
    ("url_host_registered_domain", |r| r.registered_domain.clone()),
    ("fetch_redirect", |r| r.redirect_to.clone()),
    ("content_digest", |r| Digest::parse(&r.digest).ok().map(|d| d.base32())),
    ("content_mime_type", |r| Some(r.content_type.split(';').next().unwrap_or_default().trim().to_owned())),
    ("content_truncated", |r| r.truncated.clone()),
    ("warc_filename", |r| Some(r.warc_file.clone())),
];

/// Writes the rows of successful fetches to `path`; says how many.
pub fn export_common_crawl(
    fs: &Arc<dyn Fs>,
    path: &Path,
    rows: impl Iterator<Item = Result<CaptureRow>>,
) -> Result<u64> {
    let fail = |source| Error::Parquet { file: path.into(), source };
    let schema = schema();
    let zstd = ZstdLevel::try_new(6).unwrap_or_default();
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(zstd)).build();
    let file = AtomicFile::create(fs, path)?;
    let mut writer = ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(fail)?;
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    let mut count = 0;
    let mut rows = rows.filter(|row| row.as_ref().map_or(true, |r| !r.is_failure())).peekable();
    while let Some(row) = rows.next() {
        batch.push(row?);
        if batch.len() >= BATCH_ROWS || rows.peek().is_none() {
            writer.write(&to_batch(&schema, &batch).map_err(fail)?).map_err(fail)?;
            count += batch.len() as u64;
            batch.clear();
        }
    }
    writer.into_inner().map_err(fail)?.publish()?;
    Ok(count)
}

fn schema() -> Arc<Schema> {
    let mut fields: Vec<Field> = TEXTS.iter().map(|(name, _)| Field::new(*name, DataType::Utf8, true)).collect();
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    fields.insert(4, Field::new("fetch_time", time, false));
    fields.insert(5, Field::new("fetch_status", DataType::Int16, false));
    fields.push(Field::new("warc_record_offset", DataType::Int64, false));
    fields.push(Field::new("warc_record_length", DataType::Int64, false));
    Arc::new(Schema::new(fields))
}

fn to_batch(schema: &Arc<Schema>, rows: &[CaptureRow]) -> Result<RecordBatch, ParquetError> {
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (_, get) in TEXTS {
        let mut builder = StringBuilder::new();
        rows.iter().for_each(|row| builder.append_option(get(row)));
        arrays.push(Arc::new(builder.finish()));
    }
    let mut times = TimestampMillisecondBuilder::new().with_timezone("UTC");
    let mut statuses = Int16Builder::new();
    let (mut offsets, mut lengths) = (Int64Builder::new(), Int64Builder::new());
    for row in rows {
        times.append_value(row.started_at.unwrap_or(row.fetched_at));
        statuses.append_value(i16::try_from(row.status).unwrap_or(0));
        offsets.append_value(row.warc_offset);
        lengths.append_value(row.warc_length);
    }
    arrays.insert(4, Arc::new(times.finish()));
    arrays.insert(5, Arc::new(statuses.finish()));
    arrays.push(Arc::new(offsets.finish()));
    arrays.push(Arc::new(lengths.finish()));
    Ok(RecordBatch::try_new(schema.clone(), arrays)?)
}
