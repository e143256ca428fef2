//! The columns of a URL file, in the order they are written.

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use parquet::basic::Type as Physical;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Number of the schema this program writes: it changes when a column's meaning does.
pub const SCHEMA: u32 = 1;

macro_rules! columns {
    ($($(#[$meta:meta])* $name:ident = $id:literal, $text:literal, $kind:ident, $need:ident;)+) => {
        /// A column of a URL file. The number is its id in a page table and never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Column { $($(#[$meta])* $name = $id),+ }

        impl Column {
            /// Every column, in the order of the file.
            pub const ALL: &'static [Column] = &[$(Column::$name),+];

            /// Its name in the file.
            pub fn name(self) -> &'static str {
                match self { $(Column::$name => $text),+ }
            }

            /// What it holds.
            pub fn kind(self) -> Kind {
                match self { $(Column::$name => Kind::$kind),+ }
            }

            /// Whether a row may lack it.
            pub fn nullable(self) -> bool {
                match self { $(Column::$name => matches!(Need::$need, Need::Optional)),+ }
            }

            pub(crate) fn from_id(id: u8) -> Option<Self> {
                match id { $($id => Some(Column::$name),)+ _ => None }
            }
        }
    };
}

enum Need {
    Required,
    Optional,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A signed 32-bit number.
    Int32,
    /// A signed 64-bit number.
    Int64,
    /// An unsigned 64-bit number, stored in a signed one.
    UInt64,
    /// Milliseconds since 1970, UTC.
    Millis,
    /// UTF-8.
    Text,
}

columns! {
    /// The dataset; the same in every row. Only in files written with stored ids, and by earlier programs.
    DatasetId = 0, "dataset_id", Int32, Required;
    /// xxh3_64 of the domain; only in files written with stored ids.
    DomainId = 1, "domain_id", UInt64, Required;
    /// xxh3_64 of the raw URL; only in files written with stored ids.
    UrlId = 2, "url_id", UInt64, Required;
    /// Registrable domain, punycode.
    Domain = 3, "domain", Text, Required;
    /// `http`, `https` or `ftp`.
    Scheme = 4, "scheme", Text, Required;
    /// Host, punycode, or an IP literal.
    Host = 5, "host", Text, Required;
    /// Port, where it is not the scheme's own.
    Port = 6, "port", Int32, Optional;
    /// Path and query, normalised.
    PathQuery = 7, "path_query", Text, Required;
    /// When the URL was seen or captured.
    Ts = 8, "ts", Millis, Optional;
    /// HTTP status.
    Status = 9, "status", Int32, Optional;
    /// Media type as served.
    ContentType = 10, "content_type", Text, Optional;
    /// Digest of the stored body: SHA-1 in lower-case hex, as captures.parquet has it; others as `algorithm:hex`.
    Digest = 11, "digest", Text, Optional;
    /// Stored body bytes.
    BodyLength = 12, "body_length", Int64, Optional;
    /// The archive file that holds the capture.
    WarcFile = 13, "warc_file", Text, Optional;
    /// Byte offset of its record.
    WarcOffset = 14, "warc_offset", Int64, Optional;
    /// Stored bytes of its record.
    WarcLength = 15, "warc_length", Int64, Optional;
    /// Everything else the source knew: a JSON object.
    Extras = 16, "extras", Text, Optional;
    /// The URL as the source spelled it, where that is not the normalised form.
    RawUrl = 17, "raw_url", Text, Optional;
}

impl Column {
    /// Columns every file has, also those of earlier programs.
    pub const BASE: &'static [Column] =
        &[Column::Domain, Column::Scheme, Column::Host, Column::Port, Column::PathQuery, Column::Ts];

    /// Columns of a file whose source knew of captures.
    pub const CAPTURE: &'static [Column] = &[
        Column::Status,
        Column::ContentType,
        Column::Digest,
        Column::BodyLength,
        Column::WarcFile,
        Column::WarcOffset,
        Column::WarcLength,
    ];

    /// A column by its name in the file.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.name() == name)
    }

    /// The columns of a file. All files of a lake have the same, also those that are null in every row: programs that read a
    /// directory take the schema of one file for that of all (pandas), or refuse the next (Polars). Stored ids are the
    /// exception, and whoever asks for them has them everywhere; among them the dataset, which the path tells too: as a column
    /// *and* a partition key it has two types for pandas, which then reads nothing.
    pub fn of_files(store_ids: bool) -> Vec<Self> {
        let is_id = |column: &Column| matches!(column, Column::DatasetId | Column::DomainId | Column::UrlId);
        Self::ALL.iter().copied().filter(|column| store_ids || !is_id(column)).collect()
    }

    /// The column in an Arrow schema.
    pub fn field(self) -> Field {
        let kind = match self.kind() {
            Kind::Int32 => DataType::Int32,
            Kind::Int64 => DataType::Int64,
            Kind::UInt64 => DataType::UInt64,
            Kind::Millis => DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())),
            Kind::Text => DataType::Utf8,
        };
        Field::new(self.name(), kind, self.nullable())
    }

    pub(crate) fn physical(self) -> Physical {
        match self.kind() {
            Kind::Int32 => Physical::INT32,
            Kind::Int64 | Kind::UInt64 | Kind::Millis => Physical::INT64,
            Kind::Text => Physical::BYTE_ARRAY,
        }
    }
}

/// The Arrow schema of some columns.
pub fn arrow_schema(columns: impl IntoIterator<Item = Column>) -> SchemaRef {
    Arc::new(Schema::new(columns.into_iter().map(Column::field).collect::<Vec<_>>()))
}

/// Which of the optional columns some rows have values in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Any of [`Column::CAPTURE`].
    pub capture: bool,
    /// [`Column::Extras`].
    pub extras: bool,
    /// [`Column::RawUrl`].
    pub raw_url: bool,
}

impl Shape {
    /// What rows of either shape need.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            capture: self.capture || other.capture,
            extras: self.extras || other.extras,
            raw_url: self.raw_url || other.raw_url,
        }
    }
}

/// A set of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns(u32);

impl Columns {
    /// None.
    pub const NONE: Columns = Columns(0);
    /// What it takes to spell a row's URL as the source did.
    pub const URL: Columns =
        Columns::of(&[Column::Scheme, Column::Host, Column::Port, Column::PathQuery, Column::RawUrl]);
    /// Every column.
    pub const ALL: Columns = Columns::of(Column::ALL);

    /// The set of `columns`.
    pub const fn of(columns: &[Column]) -> Self {
        let mut bits = 0;
        let mut rest = columns;
        while let [first, others @ ..] = rest {
            bits |= 1 << *first as u32;
            rest = others;
        }
        Columns(bits)
    }

    /// This set and `other`.
    #[must_use]
    pub const fn and(self, other: Columns) -> Self {
        Columns(self.0 | other.0)
    }

    /// Those in it, in the order of the file.
    pub fn iter(self) -> impl Iterator<Item = Column> {
        Column::ALL.iter().copied().filter(move |column| self.has(*column))
    }

    /// Whether `column` is in it.
    pub const fn has(self, column: Column) -> bool {
        self.0 & (1 << column as u32) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_its_place() {
        for (i, column) in Column::ALL.iter().enumerate() {
            assert_eq!(usize::from(*column as u8), i, "ids are places in the list");
            assert_eq!(Column::from_id(*column as u8), Some(*column));
            assert_eq!(Column::named(column.name()), Some(*column));
        }
        assert_eq!(Column::from_id(18), None);
        assert_eq!(Column::named("x"), None);
    }

    #[test]
    fn sets() {
        let set = Columns::URL.and(Columns::of(&[Column::Ts]));
        assert!(set.has(Column::Ts) && set.has(Column::Host) && !set.has(Column::Domain));
        assert!(Column::ALL.iter().all(|c| Columns::ALL.has(*c) && !Columns::NONE.has(*c)));
    }
}
