//! Decoded rows, column by column.

use super::Column;
use trawl_model::UnixMillis;
use trawl_url::LakeUrl;

/// Values of one column, one entry a row.
#[derive(Debug, Clone)]
pub(super) enum Values {
    Numbers(Vec<Option<i64>>),
    Texts(Texts),
}

/// Texts one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts {
    /// While they are decoded.
    bytes: Vec<u8>,
    /// All of them, once they were checked.
    text: String,
    /// The end of each row's text, with [`ABSENT`] set where the row has none.
    ends: Vec<u32>,
}

/// Most that a reading may bring of one column; a small page can be made to hold very much.
const MAX_TEXT_BYTES: u32 = 1 << 30;
/// Marks a row without a text, in a bit that no end needs.
const ABSENT: u32 = 1 << 31;

impl Texts {
    pub fn with_capacity(rows: usize) -> Self {
        Self { ends: Vec::with_capacity(rows), ..Self::default() }
    }

    pub fn push(&mut self, text: &[u8]) -> Result<(), String> {
        self.bytes.extend_from_slice(text);
        let end = u32::try_from(self.bytes.len()).ok().filter(|end| *end <= MAX_TEXT_BYTES);
        self.ends.push(end.ok_or("texts of more than 1 GiB")?);
        Ok(())
    }

    pub fn push_absent(&mut self, rows: usize) {
        let end = self.ends.last().copied().unwrap_or(0) | ABSENT;
        self.ends.extend(std::iter::repeat_n(end, rows));
    }

    /// Checks that every text is UTF-8, and tells of how many rows they are. Nothing can be pushed afterwards.
    pub fn check(&mut self) -> Result<usize, String> {
        self.text = String::from_utf8(std::mem::take(&mut self.bytes)).map_err(|e| e.to_string())?;
        match self.ends.iter().find(|end| !self.text.is_char_boundary((*end & !ABSENT) as usize)) {
            Some(_) => Err("a text that ends inside a character".into()),
            None => Ok(self.ends.len()),
        }
    }

    fn get(&self, row: usize) -> Option<&str> {
        let end = *self.ends.get(row)?;
        if end & ABSENT != 0 {
            return None;
        }
        let start = match row.checked_sub(1) {
            Some(before) => self.ends.get(before)? & !ABSENT,
            None => 0,
        };
        self.text.get(start as usize..end as usize)
    }
}

/// Some rows of a file, with the columns that were asked for and are there.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    len: usize,
    columns: Vec<Option<Values>>,
}

/// One row, all of it that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UrlRow {
    /// The URL as the source spelled it.
    pub url: String,
    /// Registrable domain; empty if the column was not read.
    pub domain: String,
    /// Host.
    pub host: String,
    /// When the URL was seen or captured.
    pub ts: Option<UnixMillis>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Media type as served.
    pub content_type: Option<String>,
    /// Digest of the stored body, `algorithm:value`.
    pub digest: Option<String>,
    /// Stored body bytes.
    pub body_length: Option<u64>,
    /// The archive file that holds the capture.
    pub warc_file: Option<String>,
    /// Byte offset of its record.
    pub warc_offset: Option<u64>,
    /// Stored bytes of its record.
    pub warc_length: Option<u64>,
    /// Everything else the source knew: a JSON object.
    pub extras: Option<String>,
}

impl Rows {
    pub(super) fn new(len: usize) -> Self {
        Self { len, columns: Column::ALL.iter().map(|_| None).collect() }
    }

    pub(super) fn set(&mut self, column: Column, values: Values) {
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
        match self.values(column)? {
            Values::Texts(texts) => texts.get(i),
            Values::Numbers(_) => None,
        }
    }

    /// A number of row `i`; `None` where the row has none, or the column was not read or holds no number.
    pub fn number(&self, column: Column, i: usize) -> Option<i64> {
        match self.values(column)? {
            Values::Numbers(numbers) => *numbers.get(i)?,
            Values::Texts(_) => None,
        }
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
        let port = self.number(Column::Port, i).and_then(|port| u16::try_from(port).ok());
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

    /// Row `i` as one value.
    pub fn row(&self, i: usize) -> UrlRow {
        let text = |column| self.text(column, i).map(str::to_owned);
        let unsigned = |column| self.number(column, i).and_then(|n| u64::try_from(n).ok());
        UrlRow {
            url: self.url(i),
            domain: text(Column::Domain).unwrap_or_default(),
            host: text(Column::Host).unwrap_or_default(),
            ts: self.ts(i),
            status: self.number(Column::Status, i).and_then(|n| u16::try_from(n).ok()),
            content_type: text(Column::ContentType),
            digest: text(Column::Digest),
            body_length: unsigned(Column::BodyLength),
            warc_file: text(Column::WarcFile),
            warc_offset: unsigned(Column::WarcOffset),
            warc_length: unsigned(Column::WarcLength),
            extras: text(Column::Extras),
        }
    }
}
