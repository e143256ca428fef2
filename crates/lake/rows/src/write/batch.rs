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
    columns: Vec<(Column, Gathering)>,
    dataset_id: u32,
    rows: usize,
    raw_bytes: u64,
    url: String,
}

impl Batch {
    pub fn new(schema: SchemaRef, settings: &WriteSettings) -> Self {
        let columns = settings.columns.iter().map(|column| (*column, Gathering::new(*column, 0))).collect();
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
        for (column, values) in &mut self.columns {
            self.raw_bytes += match values {
                Gathering::Numbers(numbers) => {
                    numbers.append_option(row.number(*column, self.dataset_id, &mut self.url));
                    if column.kind() == Kind::Int32 { 4 } else { 8 }
                }
                Gathering::Texts(texts) => match row.text(*column) {
                    Some(text) => {
                        texts.push(text.as_bytes())?;
                        text.len() as u64 + 4
                    }
                    None => {
                        texts.push_absent(1);
                        4
                    }
                },
            };
        }
        Ok(())
    }

    /// The rows so far; the batch is empty afterwards.
    pub fn take(&mut self) -> Found<RecordBatch> {
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, values) in &mut self.columns {
            let next = values.fresh();
            arrays.push(std::mem::replace(values, next).finish()?.array(*column));
        }
        self.rows = 0;
        self.raw_bytes = 0;
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}
