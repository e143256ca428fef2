//! One URL as the frontier knows it. A row is whole: the newest row of a key replaces all older ones.
//!
//! ```text
//! (unknown) --offer--> Scheduled --lease--> (leased, in memory only) --settle--> Crawled | Gone | Excluded
//!                │         ▲                       ▲  │                                │
//!                │         └── to be tried again, expired, lost in a crash          recrawl
//!                │                                 └── lease ── Due ◄─────────────────┘
//!                └-- a trap's --> Trapped --release--> Scheduled
//! ```
//! A lease is not written down: after a crash the row is as it was before.

use crate::identity::UrlId;
use std::sync::Arc;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;

/// Where a URL stands; values as in a `.meguri` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// It waits to be fetched.
    Scheduled = 1,
    /// It is done, and had a response.
    Crawled = 4,
    /// It was done, and waits to be fetched again. A limit on pages counts it as a new one.
    Due = 5,
    /// It is done, and had none, or was given up.
    Gone = 6,
    /// robots.txt closes it.
    Excluded = 7,
    /// Parked: a trap made it.
    Trapped = 8,
}

impl Status {
    /// By its number. What other programs write besides (discovered, ready, in flight) waits, too.
    pub fn of(value: u8) -> Self {
        match value {
            4 => Status::Crawled,
            5 => Status::Due,
            6 => Status::Gone,
            7 => Status::Excluded,
            8 => Status::Trapped,
            _ => Status::Scheduled,
        }
    }

    /// Whether it waits to be fetched.
    pub fn waits(self) -> bool {
        matches!(self, Status::Scheduled | Status::Due)
    }
}

/// How a URL was found; values as in a `.meguri` file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Found {
    /// It was asked for.
    Seed = 0,
    /// By a link.
    Link = 1,
    /// By a redirect.
    Redirect = 3,
}

impl Found {
    pub(crate) fn of(value: u8) -> Self {
        match value {
            1 => Found::Link,
            3 => Found::Redirect,
            _ => Found::Seed,
        }
    }
}

/// The texts of a row in one allocation, shared by everybody who holds the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Texts {
    all: Arc<str>,
    url_end: u32,
    via_end: u32,
}

impl Texts {
    /// No texts: shared, so that it costs nothing.
    pub fn none() -> Self {
        static NONE: std::sync::OnceLock<Arc<str>> = std::sync::OnceLock::new();
        Texts { all: NONE.get_or_init(|| "".into()).clone(), url_end: 0, via_end: 0 }
    }

    pub fn new(url: &str, via: &str, meta: &str) -> Self {
        // A URL alone, as a list has them, is copied once.
        let all: Arc<str> =
            if via.is_empty() && meta.is_empty() { url.into() } else { [url, via, meta].concat().into() };
        // A URL is at most some kilobytes, metadata at most a few mebibytes: the sum fits.
        let (url_end, via_end) = (url.len() as u32, (url.len() + via.len()) as u32);
        Texts { all, url_end, via_end }
    }

    fn part(&self, from: u32, to: Option<u32>) -> &str {
        let to = to.map_or(self.all.len(), |to| to as usize);
        self.all.get(from as usize..to).unwrap_or_default()
    }

    pub fn url(&self) -> &str {
        self.part(0, Some(self.url_end))
    }

    pub fn via(&self) -> &str {
        self.part(self.url_end, Some(self.via_end))
    }

    pub fn meta(&self) -> &str {
        self.part(self.via_end, None)
    }

    /// Memory they take: two counts before them, and what the allocator adds.
    pub fn memory(&self) -> usize {
        self.all.len() + 32
    }
}

/// The numbers of a row in the log, in this order, and the largest value of each.
const NUMBERS: [(&str, u64); 14] = [
    ("a row's depth", u16::MAX as u64),
    ("a row's hops", u16::MAX as u64),
    ("a row's HTTP status", u16::MAX as u64),
    ("a row's errors", u16::MAX as u64),
    ("a row's crawls", u32::MAX as u64),
    ("the hour a row was first seen", u32::MAX as u64),
    ("the hour a row was last crawled", u32::MAX as u64),
    ("when a row is due", i64::MAX as u64),
    ("until when a robots.txt is believed", i64::MAX as u64),
    ("a row's arrival", u64::MAX),
    ("a row's note", u64::MAX),
    ("the end of a row's URL", u32::MAX as u64),
    ("the end of a row's via", u32::MAX as u64),
    ("the length of a row's texts", u32::MAX as u64),
];

/// A depth or a number of hops as rows have it: 65,535 stands for that and for more. Nothing is lost by that: where depth
/// decides anything the limit is lower ([`crate::Config::max_depth`]), and so many hops are refused whatever the limit.
pub(crate) fn small(count: u32) -> u16 {
    count.min(u32::from(u16::MAX)) as u16
}

/// A URL and all that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub id: UrlId,
    /// URL, page it was found on, metadata; of a robots.txt the rules instead of metadata.
    pub texts: Texts,
    /// Not before this millisecond; 0 for at once.
    pub due_ms: i64,
    /// Order of arrival.
    pub arrival: u64,
    /// What the caller wants to find again of the last capture; 0 for nothing.
    pub note: u64,
    /// Of a robots.txt: until when it is believed. 0 for pages.
    pub robots_until: i64,
    /// Hours since 1970.
    pub first_seen: u32,
    pub last_crawled: u32,
    /// Attempts with a response, and without.
    pub crawls: u32,
    pub errors: u16,
    pub depth: u16,
    pub hops: u16,
    pub http_status: u16,
    /// Attempts that count against it.
    pub strikes: u8,
    /// Priority, 63 the best.
    pub bucket: u8,
    pub status: Status,
    pub found: Found,
}

impl Row {
    pub fn url(&self) -> &str {
        self.texts.url()
    }

    pub fn attempts(&self) -> u32 {
        self.crawls.saturating_add(u32::from(self.errors))
    }

    /// Whether it was handed out since it was offered or became due: what is counted by a limit on pages.
    pub fn is_admitted(&self) -> bool {
        self.attempts() > 0 && self.status != Status::Due
    }

    /// Memory it takes in a window, texts and room for growth included.
    pub fn memory(&self) -> usize {
        size_of::<(u64, Row)>() * 5 / 4 + self.texts.memory()
    }

    /// Appends the row as the log has it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0.to_le_bytes());
        out.extend_from_slice(&[self.status as u8, self.found as u8, self.strikes, self.bucket]);
        for value in [
            u64::from(self.depth),
            u64::from(self.hops),
            u64::from(self.http_status),
            u64::from(self.errors),
            u64::from(self.crawls),
            u64::from(self.first_seen),
            u64::from(self.last_crawled),
            self.due_ms.max(0) as u64,
            self.robots_until.max(0) as u64,
            self.arrival,
            self.note,
            u64::from(self.texts.url_end),
            u64::from(self.texts.via_end),
            self.texts.all.len() as u64,
        ] {
            put_uvarint(out, value);
        }
        out.extend_from_slice(self.texts.all.as_bytes());
    }

    /// Reads a row of the log.
    pub fn decode(r: &mut SliceReader<'_>) -> Result<Row, SliceError> {
        let id = UrlId(u128::from_le_bytes(r.array("a row's key")?));
        let [status, found, strikes, bucket] = r.array("a row's state")?;
        let mut numbers = [0u64; 14];
        for (number, (what, limit)) in numbers.iter_mut().zip(NUMBERS) {
            let at = r.offset();
            *number = r.uvarint(what)?;
            if *number > limit {
                return Err(SliceError::OverLimit { at, what, claimed: *number, limit });
            }
        }
        let [
            depth,
            hops,
            http_status,
            errors,
            crawls,
            first_seen,
            last_crawled,
            due,
            until,
            arrival,
            note,
            url,
            via,
            len,
        ] = numbers;
        let at = r.offset();
        let bytes = r.take(len as usize, "a row's texts")?;
        let text = std::str::from_utf8(bytes).ok().filter(|text| {
            url <= via && via <= len && text.is_char_boundary(url as usize) && text.is_char_boundary(via as usize)
        });
        let Some(text) = text else {
            return Err(SliceError::OverLimit {
                at,
                what: "a row's texts in UTF-8, a part",
                claimed: via.max(url),
                limit: len,
            });
        };
        Ok(Row {
            id,
            texts: Texts { all: text.into(), url_end: url as u32, via_end: via as u32 },
            due_ms: due as i64,
            arrival,
            note,
            robots_until: until as i64,
            first_seen: first_seen as u32,
            last_crawled: last_crawled as u32,
            crawls: crawls as u32,
            errors: errors as u16,
            depth: depth as u16,
            hops: hops as u16,
            http_status: http_status as u16,
            strikes,
            bucket,
            status: Status::of(status),
            found: Found::of(found),
        })
    }
}
