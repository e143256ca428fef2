//! The columns, in file order: name, type, and how a row's field becomes a cell and back.
//!
//! | # | required | |
//! | --- | --- | --- |
//! | 1–13 | yes | the seed's columns, in its order and with its meanings |
//! | 14– | no | ours; a reader takes any subset, in any order |

use crate::row::CaptureRow;
use arrow_schema::{DataType, Field, Schema};
use std::sync::Arc;

/// How many columns are required.
pub const REQUIRED: usize = 13;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// UTF-8.
    Text,
    /// Signed 32 bits.
    Int32,
    /// Signed 64 bits.
    Int64,
    /// True or false.
    Bool,
}

impl Kind {
    fn data_type(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8,
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::Bool => DataType::Boolean,
        }
    }
}

/// A cell on its way in or out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    Null,
    Text(&'a str),
    Int(i64),
    Bool(bool),
}

/// How a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    /// Few different values.
    Dictionary,
    /// Values that differ from row to row.
    Plain,
    /// Numbers close to their neighbours.
    Delta,
}

/// One column.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) store: Store,
    pub(crate) get: fn(&CaptureRow) -> Cell<'_>,
    pub(crate) set: fn(&mut CaptureRow, Cell<'_>),
}

trait AsCell {
    fn cell(&self) -> Cell<'_>;
    fn put(&mut self, cell: Cell<'_>);
}

impl AsCell for String {
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self)
    }

    fn put(&mut self, cell: Cell<'_>) {
        if let Cell::Text(text) = cell {
            text.clone_into(self);
        }
    }
}

impl AsCell for Option<String> {
    fn cell(&self) -> Cell<'_> {
        self.as_deref().map_or(Cell::Null, Cell::Text)
    }

    fn put(&mut self, cell: Cell<'_>) {
        if let Cell::Text(text) = cell {
            *self = Some(text.to_owned());
        }
    }
}

macro_rules! int_cells {
    ($($int:ty),+) => { $(
        impl AsCell for $int {
            fn cell(&self) -> Cell<'_> {
                Cell::Int(i64::from(*self))
            }

            fn put(&mut self, cell: Cell<'_>) {
                if let Cell::Int(n) = cell {
                    *self = <$int>::try_from(n).unwrap_or_default();
                }
            }
        }

        impl AsCell for Option<$int> {
            fn cell(&self) -> Cell<'_> {
                self.map_or(Cell::Null, |n| Cell::Int(i64::from(n)))
            }

            fn put(&mut self, cell: Cell<'_>) {
                if let Cell::Int(n) = cell {
                    *self = <$int>::try_from(n).ok();
                }
            }
        }
    )+ };
}
int_cells!(i32, i64);

impl AsCell for bool {
    fn cell(&self) -> Cell<'_> {
        Cell::Bool(*self)
    }

    fn put(&mut self, cell: Cell<'_>) {
        if let Cell::Bool(value) = cell {
            *self = value;
        }
    }
}

macro_rules! columns {
    ($($name:ident: $kind:ident $store:ident),+ $(,)?) => {
        &[$(Column {
            name: stringify!($name),
            kind: Kind::$kind,
            store: Store::$store,
            get: |row| row.$name.cell(),
            set: |row, cell| row.$name.put(cell),
        }),+]
    };
}

/// Every column, in file order.
pub(crate) static COLUMNS: &[Column] = columns![
    url: Text Plain,
    host: Text Dictionary,
    status: Int32 Dictionary,
    fetched_at: Int64 Delta,
    content_type: Text Dictionary,
    body_length: Int64 Plain,
    digest: Text Plain,
    unchanged: Bool Plain,
    warc_file: Text Dictionary,
    warc_offset: Int64 Delta,
    warc_length: Int64 Plain,
    error: Text Dictionary,
    meta_json: Text Dictionary,
    started_at: Int64 Delta,
    error_class: Text Dictionary,
    truncated: Text Dictionary,
    content_encoding: Text Dictionary,
    body_digest: Text Plain,
    http_version: Text Dictionary,
    redirect_to: Text Plain,
    redirect_of: Text Plain,
    attempt: Int32 Dictionary,
    record_type: Text Dictionary,
    record_id: Text Plain,
    refers_to_uri: Text Plain,
    refers_to_date: Int64 Delta,
    robots: Text Dictionary,
    surt: Text Plain,
    registered_domain: Text Dictionary,
    connect_ms: Int64 Dictionary,
    tls_ms: Int64 Dictionary,
    ttfb_ms: Int64 Dictionary,
    fetch_duration_ms: Int64 Dictionary,
    ip_address: Text Dictionary,
    run_id: Text Dictionary,
    etag: Text Plain,
    last_modified: Text Dictionary,
    via: Text Dictionary,
    depth: Int32 Dictionary,
    tls_version: Text Dictionary,
    tls_cipher_suite: Text Dictionary,
    tls_refused: Text Dictionary,
];

/// The schema of a file we write.
pub(crate) fn schema() -> Arc<Schema> {
    let field = |(i, c): (usize, &Column)| Field::new(c.name, c.kind.data_type(), i >= REQUIRED);
    Arc::new(Schema::new(COLUMNS.iter().enumerate().map(field).collect::<Vec<_>>()))
}
