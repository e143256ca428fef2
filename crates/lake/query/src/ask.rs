//! What is asked for: a page, and which rows.

use trawl_model::UnixMillis;

/// Default number of rows in a page.
pub const DEFAULT_LIMIT: u32 = 1000;
/// Rows in a page at most; a larger limit is cut to this.
pub const MAX_LIMIT: u32 = 10_000;

/// Which part of the rows. A cursor, where given, wins over the offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Rows to skip.
    pub offset: u64,
    /// Rows wanted, cut to [`MAX_LIMIT`]; 0 asks for the totals, and where rows begin.
    pub limit: u32,
    /// `next_cursor` of the answer before.
    pub cursor: Option<String>,
}

impl Default for Page {
    fn default() -> Self {
        Self { offset: 0, limit: DEFAULT_LIMIT, cursor: None }
    }
}

impl Page {
    /// `limit` rows after the first `offset`.
    pub fn at(offset: u64, limit: u32) -> Self {
        Self { offset, limit, cursor: None }
    }

    /// `limit` rows from where an answer ended.
    pub fn from_cursor(cursor: impl Into<String>, limit: u32) -> Self {
        Self { offset: 0, limit, cursor: Some(cursor.into()) }
    }
}

/// Which rows; the default keeps all. Host and path are looked up; the others are compared row by row, until the page is full
/// or the effort ends: then a page is short although more rows follow, and says how far it got.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this host, in any spelling.
    pub host: Option<String>,
    /// Only paths that start so, in any spelling.
    pub path_prefix: Option<String>,
    /// Not before this moment. A row without a time does not pass.
    pub from: Option<UnixMillis>,
    /// Before this moment. A row without a time does not pass.
    pub until: Option<UnixMillis>,
    /// Only this HTTP status.
    pub status: Option<u16>,
    /// Only failed fetches of this class (`dns_nxdomain`), as the source named it.
    pub error_class: Option<String>,
}

impl Filter {
    /// Whether it asks for nothing but a host or a path: then it leaves a range of keys.
    pub(crate) fn is_range(&self) -> bool {
        Self { host: None, path_prefix: None, ..self.clone() }.is_empty()
    }

    /// Whether it keeps every row, so that totals hold and offsets may be used.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
