//! Small tables that are made from what answers say.

use arrow_array::builder::{
    BooleanBuilder, Int32Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use std::sync::Arc;

/// The type of a time.
pub fn millis() -> DataType {
    DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()))
}

/// A schema from names, types, and whether a value may be absent.
pub fn schema(fields: &[(&str, DataType, bool)]) -> SchemaRef {
    Arc::new(Schema::new(
        fields.iter().map(|(name, kind, null)| Field::new(*name, kind.clone(), *null)).collect::<Vec<_>>(),
    ))
}

/// One value of a row.
pub enum Cell<'a> {
    /// A text, or none.
    Text(Option<&'a str>),
    /// A number without a sign.
    Count(u64),
    /// A dataset's number, a status.
    Small(Option<i32>),
    /// A length or an offset.
    Long(Option<i64>),
    /// A time, or none.
    Time(Option<i64>),
    /// Yes or no.
    Flag(bool),
}

enum Builder {
    Text(StringBuilder),
    Count(UInt64Builder),
    Small(Int32Builder),
    Long(Int64Builder),
    Time(TimestampMillisecondBuilder),
    Flag(BooleanBuilder),
}

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Bytes of text in a batch: a URL may have a megabyte, and an Arrow column of texts at most 2 GiB.
const BATCH_BYTES: usize = 16 << 20;

/// Rows of cells that become a batch.
pub struct Table {
    schema: SchemaRef,
    columns: Vec<Builder>,
    rows: usize,
    bytes: usize,
}

impl Table {
    /// An empty table of these columns.
    pub fn new(schema: &SchemaRef) -> Result<Self, ArrowError> {
        let columns = schema.fields().iter().map(|field| match field.data_type() {
            DataType::Utf8 => Ok(Builder::Text(StringBuilder::new())),
            DataType::UInt64 => Ok(Builder::Count(UInt64Builder::new())),
            DataType::Int32 => Ok(Builder::Small(Int32Builder::new())),
            DataType::Int64 => Ok(Builder::Long(Int64Builder::new())),
            DataType::Boolean => Ok(Builder::Flag(BooleanBuilder::new())),
            DataType::Timestamp(..) => Ok(Builder::Time(TimestampMillisecondBuilder::new().with_timezone("UTC"))),
            other => Err(ArrowError::SchemaError(format!("no table has a column of {other}"))),
        });
        Ok(Self { schema: schema.clone(), columns: columns.collect::<Result<_, _>>()?, rows: 0, bytes: 0 })
    }

    /// Rows since the last batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the rows are enough for a batch: a caller takes it before the next row.
    pub fn is_full(&self) -> bool {
        self.rows >= BATCH_ROWS || self.bytes >= BATCH_BYTES
    }

    /// Adds a row: a cell for each column, of its type.
    pub fn push<'a>(&mut self, cells: impl IntoIterator<Item = Cell<'a>>) -> Result<(), ArrowError> {
        let mut cells = cells.into_iter();
        for column in &mut self.columns {
            match (column, cells.next()) {
                (Builder::Text(column), Some(Cell::Text(text))) => {
                    self.bytes += text.map_or(0, str::len);
                    column.append_option(text);
                }
                (Builder::Count(column), Some(Cell::Count(n))) => column.append_value(n),
                (Builder::Small(column), Some(Cell::Small(n))) => column.append_option(n),
                (Builder::Long(column), Some(Cell::Long(n))) => column.append_option(n),
                (Builder::Time(column), Some(Cell::Time(n))) => column.append_option(n),
                (Builder::Flag(column), Some(Cell::Flag(flag))) => column.append_value(flag),
                _ => return Err(ArrowError::SchemaError("a row does not fit the columns of its table".into())),
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The rows as a batch; the table is empty afterwards.
    pub fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        (self.rows, self.bytes) = (0, 0);
        let columns = self.columns.iter_mut().map(|column| -> ArrayRef {
            match column {
                Builder::Text(column) => Arc::new(column.finish()),
                Builder::Count(column) => Arc::new(column.finish()),
                Builder::Small(column) => Arc::new(column.finish()),
                Builder::Long(column) => Arc::new(column.finish()),
                Builder::Time(column) => Arc::new(column.finish()),
                Builder::Flag(column) => Arc::new(column.finish()),
            }
        });
        RecordBatch::try_new(self.schema.clone(), columns.collect())
    }
}
