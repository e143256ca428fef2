//! Rows gathered into Arrow columns.

use crate::record::Row;
use arrow_array::builder::{
    ArrayBuilder, Int32Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use std::sync::Arc;
use trawl_store::rows::{Column, Kind};
use trawl_url::{LakeUrl, domain_id, url_id};

enum Builder {
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt64(UInt64Builder),
    Millis(TimestampMillisecondBuilder),
    Text(StringBuilder),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Int32 => Self::Int32(Int32Builder::new()),
            Kind::Int64 => Self::Int64(Int64Builder::new()),
            Kind::UInt64 => Self::UInt64(UInt64Builder::new()),
            Kind::Millis => Self::Millis(TimestampMillisecondBuilder::new().with_timezone("UTC")),
            Kind::Text => Self::Text(StringBuilder::new()),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Int32(b) => b.finish_as_array(),
            Self::Int64(b) => b.finish_as_array(),
            Self::UInt64(b) => b.finish_as_array(),
            Self::Millis(b) => b.finish_as_array(),
            Self::Text(b) => {
                // The next batch is about as large: growing to its size step by step would copy it twice.
                let (rows, bytes) = (b.len(), b.values_slice().len());
                let next = StringBuilder::with_capacity(rows, bytes + bytes / 8);
                std::mem::replace(b, next).finish_as_array()
            }
        }
    }
}

trait FinishArray: ArrayBuilder {
    fn finish_as_array(&mut self) -> ArrayRef {
        self.finish()
    }
}

impl<B: ArrayBuilder> FinishArray for B {}

/// A batch being filled.
pub(super) struct Batch {
    schema: SchemaRef,
    columns: Vec<(Column, Builder)>,
    dataset_id: i32,
    rows: usize,
    raw_bytes: u64,
    url: String,
}

impl Batch {
    pub fn new(schema: SchemaRef, columns: &[Column], dataset_id: i32) -> Self {
        let columns = columns.iter().map(|column| (*column, Builder::new(column.kind()))).collect();
        Self { schema, columns, dataset_id, rows: 0, raw_bytes: 0, url: String::new() }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the values, before any encoding.
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    pub fn push(&mut self, row: &Row<'_>) {
        self.rows += 1;
        let mut bytes = 0;
        for (column, builder) in &mut self.columns {
            match builder {
                Builder::Int32(b) => {
                    b.append_option(match column {
                        Column::DatasetId => Some(self.dataset_id),
                        Column::Port => row.port.map(i32::from),
                        _ => row.status.map(i32::from),
                    });
                    bytes += 4;
                }
                Builder::Int64(b) => {
                    b.append_option(match column {
                        Column::BodyLength => row.body_length,
                        Column::WarcOffset => row.place.map(|(_, offset, _)| offset),
                        _ => row.place.map(|(_, _, length)| length),
                    });
                    bytes += 8;
                }
                Builder::UInt64(b) => {
                    b.append_value(match (column, &row.raw_url) {
                        (Column::DomainId, _) => domain_id(row.domain),
                        (_, Some(raw)) => url_id(raw.as_bytes()),
                        (_, None) => {
                            self.url.clear();
                            LakeUrl::from_parts_into(row.scheme, row.host, row.port, row.path_query, &mut self.url);
                            url_id(self.url.as_bytes())
                        }
                    });
                    bytes += 8;
                }
                Builder::Millis(b) => {
                    b.append_option(row.ts.map(|ts| ts.0));
                    bytes += 8;
                }
                Builder::Text(b) => {
                    let text = match column {
                        Column::Domain => Some(row.domain),
                        Column::Scheme => Some(row.scheme),
                        Column::Host => Some(row.host),
                        Column::PathQuery => Some(row.path_query),
                        Column::ContentType => row.content_type,
                        Column::Digest => row.digest,
                        Column::WarcFile => row.place.map(|(file, _, _)| file),
                        Column::Extras => row.extras,
                        _ => row.raw_url.as_deref(),
                    };
                    b.append_option(text);
                    bytes += text.map_or(0, str::len) as u64 + 4;
                }
            }
        }
        self.raw_bytes += bytes;
    }

    /// The rows so far; the batch is empty afterwards.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let arrays = self.columns.iter_mut().map(|(_, builder)| builder.finish()).collect();
        self.rows = 0;
        self.raw_bytes = 0;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }
}
