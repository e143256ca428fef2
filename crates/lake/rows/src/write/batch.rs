//! Rows gathered into Arrow columns.

use crate::page::Found;
use crate::values::Gathering;
use crate::{Column, Kind, WriteSettings};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::borrow::Cow;
use trawl_model::UnixMillis;
use trawl_url::{LakeUrl, domain_id, url_id};

/// A row to write, its texts borrowed. Numbers are in the range of their columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row<'a> {
    /// Registrable domain, punycode.
    pub domain: &'a str,
    /// SURT key.
    pub key: &'a str,
    /// `http`, `https` or `ftp`.
    pub scheme: &'static str,
    /// Host, punycode, or an IP literal.
    pub host: &'a str,
    /// Port, where it is not the scheme's own.
    pub port: Option<u16>,
    /// Path and query, normalised.
    pub path_query: &'a str,
    /// When the URL was seen or captured.
    pub ts: Option<UnixMillis>,
    /// HTTP status.
    pub status: Option<u16>,
    /// Media type as served.
    pub content_type: Option<&'a str>,
    /// Digest of the stored body, as `Digest::column` spells it.
    pub digest: Option<&'a str>,
    /// Stored body bytes.
    pub body_length: Option<i64>,
    /// Archive file, byte offset and stored bytes of the record.
    pub place: Option<(&'a str, i64, i64)>,
    /// Everything else the source knew: a JSON object.
    pub extras: Option<&'a str>,
    /// The URL as the source spelled it, where that is not the normalised form.
    pub raw_url: Option<Cow<'a, str>>,
}

impl Row<'_> {
    fn text(&self, column: Column) -> Option<&str> {
        match column {
            Column::Domain => Some(self.domain),
            Column::Scheme => Some(self.scheme),
            Column::Host => Some(self.host),
            Column::PathQuery => Some(self.path_query),
            Column::ContentType => self.content_type,
            Column::Digest => self.digest,
            Column::WarcFile => self.place.map(|(file, _, _)| file),
            Column::Extras => self.extras,
            Column::RawUrl => self.raw_url.as_deref(),
            _ => None,
        }
    }

    /// `url` is room for a URL.
    fn number(&self, column: Column, dataset_id: u32, url: &mut String) -> Option<i64> {
        match column {
            Column::DatasetId => Some(i64::from(dataset_id)),
            Column::DomainId => Some(domain_id(self.domain).cast_signed()),
            Column::UrlId => {
                let id = self.raw_url.as_ref().map_or_else(
                    || {
                        url.clear();
                        LakeUrl::from_parts_into(self.scheme, self.host, self.port, self.path_query, url);
                        url_id(url.as_bytes())
                    },
                    |raw| url_id(raw.as_bytes()),
                );
                Some(id.cast_signed())
            }
            Column::Port => self.port.map(i64::from),
            Column::Ts => self.ts.map(|ts| ts.0),
            Column::Status => self.status.map(i64::from),
            Column::BodyLength => self.body_length,
            Column::WarcOffset => self.place.map(|(_, offset, _)| offset),
            Column::WarcLength => self.place.map(|(_, _, length)| length),
            _ => None,
        }
    }
}

/// A batch being filled.
pub(super) struct Batch {
    schema: SchemaRef,
    columns: Vec<Gathered>,
    dataset_id: u32,
    rows: usize,
    raw_bytes: u64,
    url: String,
}

/// The values of a column so far.
struct Gathered {
    column: Column,
    values: Gathering,
    /// Rows behind them that have none. A list of URLs has nothing in half of its columns: such rows are only counted, and put
    /// down together (appending each took a twentieth of the CPU of an ingest).
    absent: usize,
}

impl Gathered {
    fn settle(&mut self) {
        match &mut self.values {
            _ if self.absent == 0 => {}
            Gathering::Numbers(numbers) => numbers.append_nulls(self.absent),
            Gathering::Texts(texts) => texts.push_absent(self.absent),
        }
        self.absent = 0;
    }

    fn text(&mut self, text: &str) -> Found<()> {
        self.settle();
        match &mut self.values {
            Gathering::Texts(texts) => texts.push(text.as_bytes()),
            Gathering::Numbers(_) => Err("a text for a column of numbers".into()),
        }
    }

    fn number(&mut self, number: i64) -> Found<()> {
        self.settle();
        match &mut self.values {
            Gathering::Numbers(numbers) => numbers.append_value(number),
            Gathering::Texts(_) => return Err("a number for a column of texts".into()),
        }
        Ok(())
    }
}

impl Batch {
    pub fn new(schema: SchemaRef, settings: &WriteSettings) -> Self {
        let columns = settings.columns.iter().map(|column| Gathered {
            column: *column,
            values: Gathering::new(*column, 0),
            absent: 0,
        });
        let columns = columns.collect();
        Self { schema, columns, dataset_id: settings.dataset_id, rows: 0, raw_bytes: 0, url: String::new() }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of the values, before any encoding.
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    pub fn push(&mut self, row: &Row<'_>) -> Found<()> {
        self.rows += 1;
        for gathered in &mut self.columns {
            let column = gathered.column;
            self.raw_bytes += if column.kind() == Kind::Text {
                let text = row.text(column);
                match text {
                    Some(text) => gathered.text(text)?,
                    None => gathered.absent += 1,
                }
                text.map_or(0, str::len) as u64 + 4
            } else {
                match row.number(column, self.dataset_id, &mut self.url) {
                    Some(number) => gathered.number(number)?,
                    None => gathered.absent += 1,
                }
                if column.kind() == Kind::Int32 { 4 } else { 8 }
            };
        }
        Ok(())
    }

    /// The rows so far; the batch is empty afterwards.
    pub fn take(&mut self) -> Found<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for gathered in &mut self.columns {
            gathered.settle();
            let next = gathered.values.fresh();
            arrays.push(std::mem::replace(&mut gathered.values, next).finish()?.array(gathered.column));
        }
        self.rows = 0;
        self.raw_bytes = 0;
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}
