//! Values of one column, an entry a row: gathered from pages by the decoder, from rows by the writer, and given out as Arrow
//! arrays.

use crate::column::{Column, Kind};
use crate::page::Found;
use arrow_array::builder::{ArrayBuilder, Int64Builder, NullBufferBuilder};
use arrow_array::types::{Int32Type, TimestampMillisecondType, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, StringArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use std::sync::Arc;

/// Most bytes of texts that one reading may bring of a column: a small page can be made to hold very much.
const MAX_TEXT_BYTES: usize = 1 << 30;

/// Values being gathered.
#[derive(Debug)]
pub(crate) enum Gathering {
    Numbers(Int64Builder),
    Texts(Texts),
}

/// Texts one after the other.
#[derive(Debug)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// Where the first text begins, and where each ends.
    ends: Vec<i32>,
    present: NullBufferBuilder,
}

impl Texts {
    /// `bytes` is how many are expected.
    pub fn with_capacity(rows: usize, bytes: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        Self { bytes: Vec::with_capacity(bytes), ends, present: NullBufferBuilder::new(rows) }
    }

    pub fn push(&mut self, text: &[u8]) -> Found<()> {
        self.bytes.extend_from_slice(text);
        if self.bytes.len() > MAX_TEXT_BYTES {
            return Err("texts of more than 1 GiB".into());
        }
        self.ends.push(i32::try_from(self.bytes.len())?);
        self.present.append_non_null();
        Ok(())
    }

    pub fn push_absent(&mut self, rows: usize) {
        let end = self.ends.last().copied().unwrap_or(0);
        self.ends.extend(std::iter::repeat_n(end, rows));
        self.present.append_n_nulls(rows);
    }
}

impl Gathering {
    /// Room for the values of `rows` rows of a column.
    pub fn new(column: Column, rows: usize) -> Self {
        match column.kind() {
            Kind::Text => Self::Texts(Texts::with_capacity(rows, 0)),
            _ => Self::Numbers(Int64Builder::with_capacity(rows)),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.present.len(),
        }
    }

    /// An empty one with room for as much. The next batch is about as large as the last: growing to its size step by step
    /// would copy it twice.
    pub fn fresh(&self) -> Self {
        match self {
            Self::Numbers(numbers) => Self::Numbers(Int64Builder::with_capacity(numbers.len())),
            Self::Texts(texts) => {
                let bytes = texts.bytes.len();
                Self::Texts(Texts::with_capacity(texts.present.len(), bytes + bytes / 8))
            }
        }
    }

    /// The values; texts that are not UTF-8 are an error.
    pub fn finish(self) -> Found<Values> {
        match self {
            Self::Numbers(mut numbers) => Ok(Values::Numbers(numbers.finish())),
            Self::Texts(Texts { bytes, ends, mut present }) => {
                let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
                Ok(Values::Texts(StringArray::try_new(ends, Buffer::from(bytes), present.finish())?))
            }
        }
    }
}

/// Values of one column.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    /// Whatever their type in the file.
    Numbers(Int64Array),
    Texts(StringArray),
}

impl Values {
    /// The number of row `i`, if it has one.
    pub fn number(&self, i: usize) -> Option<i64> {
        match self {
            Self::Numbers(numbers) => (i < numbers.len() && numbers.is_valid(i)).then(|| numbers.value(i)),
            Self::Texts(_) => None,
        }
    }

    /// The text of row `i`, if it has one.
    pub fn text(&self, i: usize) -> Option<&str> {
        match self {
            Self::Texts(texts) => (i < texts.len() && texts.is_valid(i)).then(|| texts.value(i)),
            Self::Numbers(_) => None,
        }
    }

    /// As an array of the column's type ([`Column::field`]).
    pub fn array(&self, column: Column) -> ArrayRef {
        match (self, column.kind()) {
            (Self::Texts(texts), _) => Arc::new(texts.clone()),
            (Self::Numbers(numbers), Kind::Int32) => Arc::new(numbers.unary::<_, Int32Type>(|n| n as i32)),
            (Self::Numbers(numbers), Kind::UInt64) => Arc::new(numbers.unary::<_, UInt64Type>(i64::cast_unsigned)),
            (Self::Numbers(numbers), Kind::Millis) => {
                Arc::new(numbers.reinterpret_cast::<TimestampMillisecondType>().with_timezone("UTC"))
            }
            (Self::Numbers(numbers), _) => Arc::new(numbers.clone()),
        }
    }
}
