//! Status codes of a CrawlDatum.

use std::fmt;

/// A status code: below 0x20 states of a CrawlDb, below 0x40 results of a fetch, above those of links and parsing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Status(pub u8);

macro_rules! statuses {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal;)*) => {
        impl Status {
            $($(#[$doc])* pub const $name: Status = Status($code);)*

            /// Every code with a name.
            pub const ALL: &'static [Status] = &[$(Status($code)),*];

            /// Nutch's name; `unknown` for any other code.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($code => $text,)*
                    _ => "unknown",
                }
            }
        }
    };
}

statuses! {
    /// Known, not fetched.
    DB_UNFETCHED = 0x01 "db_unfetched";
    /// Fetched.
    DB_FETCHED = 0x02 "db_fetched";
    /// No longer there.
    DB_GONE = 0x03 "db_gone";
    /// Redirects for now.
    DB_REDIR_TEMP = 0x04 "db_redir_temp";
    /// Redirects for good.
    DB_REDIR_PERM = 0x05 "db_redir_perm";
    /// Fetched, and the same as before.
    DB_NOTMODIFIED = 0x06 "db_notmodified";
    /// The same as another page.
    DB_DUPLICATE = 0x07 "db_duplicate";
    /// No page links to it any more.
    DB_ORPHAN = 0x08 "db_orphan";
    /// Fetched, but could not be parsed.
    DB_PARSE_FAILED = 0x09 "db_parse_failed";
    /// The fetch succeeded.
    FETCH_SUCCESS = 0x21 "fetch_success";
    /// The fetch failed and may be tried again.
    FETCH_RETRY = 0x22 "fetch_retry";
    /// The answer was a redirect for now.
    FETCH_REDIR_TEMP = 0x23 "fetch_redir_temp";
    /// The answer was a redirect for good.
    FETCH_REDIR_PERM = 0x24 "fetch_redir_perm";
    /// The page is gone.
    FETCH_GONE = 0x25 "fetch_gone";
    /// The server said that nothing changed.
    FETCH_NOTMODIFIED = 0x26 "fetch_notmodified";
    /// Carries the signature of a page.
    SIGNATURE = 0x41 "signature";
    /// Injected by hand.
    INJECTED = 0x42 "injected";
    /// Found as a link.
    LINKED = 0x43 "linked";
    /// Carries metadata from parsing.
    PARSE_META = 0x44 "parse_metadata";
    /// Says that parsing failed.
    PARSE_FAILED = 0x45 "parse_failed";
}

impl Status {
    /// Codes up to this are states of a CrawlDb.
    pub const DB_MAX: Status = Status(0x1f);
    /// Codes up to this are results of a fetch.
    pub const FETCH_MAX: Status = Status(0x3f);

    /// Whether it is a state of a CrawlDb.
    pub fn is_db(self) -> bool {
        self.0 > 0 && self <= Self::DB_MAX
    }

    /// Whether it is the result of a fetch.
    pub fn is_fetch(self) -> bool {
        self > Self::DB_MAX && self <= Self::FETCH_MAX
    }

    /// The status with this name, in any case.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|s| s.name().eq_ignore_ascii_case(name))
    }

    /// The code of today for one that version 4 or older stored. Java takes every code it does not know for db_unfetched.
    pub fn from_version_4(code: u8) -> Self {
        match code {
            0 => Self::SIGNATURE,
            1 => Self::DB_UNFETCHED,
            2 => Self::DB_FETCHED,
            3 => Self::DB_GONE,
            4 => Self::LINKED,
            5 => Self::FETCH_SUCCESS,
            6 => Self::FETCH_RETRY,
            7 => Self::FETCH_GONE,
            _ => Self::DB_UNFETCHED,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.name())
    }
}
