//! How a list is read.

use trawl_model::UnixMillis;

/// What a list is read for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Purpose {
    /// Rows of a lake: known names (`ts`, `status`, …) fill columns, the rest goes to the extras as compact JSON.
    #[default]
    Lake,
    /// Seeds of a crawl: all that is not the URL goes to the extras, byte for byte where the list is JSON; a bare host becomes
    /// a URL.
    Crawl,
}

/// How a list is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// What for.
    pub purpose: Purpose,
    /// The name of the column or member that holds the URLs, in any case; of a table without a header also its number, from 1.
    /// Without it `url`, else `host`, `hostname`, `domain` or `origin`, else what looks like one.
    pub url_column: Option<String>,
    /// The name of the column or member that holds the times. Without it `ts`, `timestamp` or `fetch_time`.
    pub time_column: Option<String>,
    /// What separates the fields of a table; found out unless it is given.
    pub separator: Option<u8>,
    /// What time it is: settles years of two digits, as feeds write them.
    pub now: UnixMillis,
}

impl Options {
    /// For the seeds of a crawl.
    pub fn crawl() -> Self {
        Self { purpose: Purpose::Crawl, ..Self::default() }
    }
}
