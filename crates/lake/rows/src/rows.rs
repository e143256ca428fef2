//! Decoded rows, column by column.

use crate::column::{Column, arrow_schema};
use crate::values::Values;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::ArrowError;
use trawl_model::{Digest, Place, UnixMillis, UrlRecord};
use trawl_url::LakeUrl;

/// Some rows of a file, with the columns that were asked for and are there.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    len: usize,
    columns: Vec<Option<Values>>,
}

impl Rows {
    pub(crate) fn new(len: usize) -> Self {
        Self { len, columns: Column::ALL.iter().map(|_| None).collect() }
    }

    pub(crate) fn set(&mut self, column: Column, values: Values) {
        if let Some(slot) = self.columns.get_mut(usize::from(column as u8)) {
            *slot = Some(values);
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether `column` was read.
    pub fn has(&self, column: Column) -> bool {
        self.values(column).is_some()
    }

    fn values(&self, column: Column) -> Option<&Values> {
        self.columns.get(usize::from(column as u8))?.as_ref()
    }

    /// A text of row `i`; `None` where the row has none, or the column was not read or holds no text.
    pub fn text(&self, column: Column, i: usize) -> Option<&str> {
        self.values(column)?.text(i)
    }

    /// A number of row `i`; `None` where the row has none, or the column was not read or holds no number.
    pub fn number(&self, column: Column, i: usize) -> Option<i64> {
        self.values(column)?.number(i)
    }

    /// A number of row `i` that cannot be negative.
    pub fn unsigned<T: TryFrom<i64>>(&self, column: Column, i: usize) -> Option<T> {
        self.number(column, i).and_then(|n| T::try_from(n).ok())
    }

    /// The registrable domain of row `i`.
    pub fn domain(&self, i: usize) -> Option<&str> {
        self.text(Column::Domain, i)
    }

    /// The time of row `i`.
    pub fn ts(&self, i: usize) -> Option<UnixMillis> {
        self.number(Column::Ts, i).map(UnixMillis)
    }

    /// Appends the normalised URL of row `i`.
    pub fn lake_url_into(&self, i: usize, out: &mut String) {
        let text = |column| self.text(column, i).unwrap_or_default();
        let port = self.unsigned(Column::Port, i);
        LakeUrl::from_parts_into(text(Column::Scheme), text(Column::Host), port, text(Column::PathQuery), out);
    }

    /// Appends the URL of row `i` as the source spelled it.
    pub fn url_into(&self, i: usize, out: &mut String) {
        match self.text(Column::RawUrl, i) {
            Some(raw) => out.push_str(raw),
            None => self.lake_url_into(i, out),
        }
    }

    /// The URL of row `i` as the source spelled it.
    pub fn url(&self, i: usize) -> String {
        let len = |column| self.text(column, i).map_or(0, str::len);
        // Room for all of it at once: scheme with its slashes, and a port.
        let room = len(Column::RawUrl).max(len(Column::Host) + len(Column::PathQuery) + 14);
        let mut out = String::with_capacity(room);
        self.url_into(i, &mut out);
        out
    }

    /// Row `i` as a source would give it.
    pub fn record(&self, i: usize) -> UrlRecord {
        let text = |column| self.text(column, i).map(str::to_owned);
        let place = text(Column::WarcFile).zip(self.unsigned(Column::WarcOffset, i));
        let warc_length = || self.unsigned(Column::WarcLength, i).unwrap_or(0);
        UrlRecord {
            url: self.url(i),
            ts: self.ts(i),
            status: self.unsigned(Column::Status, i),
            content_type: text(Column::ContentType),
            digest: self.text(Column::Digest, i).and_then(|text| Digest::parse(text).ok()),
            body_length: self.unsigned(Column::BodyLength, i),
            place: place.map(|(file, offset)| Place::new(file, offset, warc_length())),
            extras: text(Column::Extras),
        }
    }

    /// The rows as an Arrow batch of the columns that were read, in the order of the file.
    pub fn batch(&self) -> Result<RecordBatch, ArrowError> {
        let read = || Column::ALL.iter().filter_map(|column| Some((*column, self.values(*column)?)));
        let schema = arrow_schema(read().map(|(column, _)| column));
        let arrays = read().map(|(column, values)| values.array(column)).collect();
        RecordBatch::try_new_with_options(schema, arrays, &RecordBatchOptions::new().with_row_count(Some(self.len)))
    }
}
