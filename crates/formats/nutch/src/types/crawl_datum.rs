//! `crawl.CrawlDatum`: the state of a URL.
//!
//! ```text
//!  off  size  field (version 7)
//!   0    1    version
//!   1    1    status
//!   2    8    fetch time, ms: the next one in a CrawlDb, the time of the fetch in crawl_fetch
//!  10    1    retries since the last success
//!  11    4    interval, seconds
//!  15    4    score, f32
//!  19    8    modified time, ms, 0 = unknown
//!  27    1    length n of the signature; 0 and less: none
//!  28    n    signature
//!  28+n  1    1 if metadata follow, a MapWritable
//! ```
//! Up to version 5 the interval is an f32 of days; versions 4 to 6 have Nutch's own map; 3 has no map, 2 ends behind the
//! score, 1 has a number of links in place of the score.

use super::nutch_map::decode_nutch_map;
use super::{Status, StringForm};
use crate::class::NutchClasses;
use std::borrow::Cow;
use std::cmp::Ordering;
use trawl_hadoop::{Decoded, Decoder, Encode, MapWritable};

/// Time between two fetches, as stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Interval {
    /// Versions 6 and 7.
    Seconds(i32),
    /// Versions 1 to 5. Snapshots of mid-2007 stored seconds in version 5; the file does not say so.
    Days(f32),
}

impl Interval {
    const DAY: f32 = 86_400.0;

    /// In seconds.
    pub fn seconds(self) -> i32 {
        match self {
            Interval::Seconds(s) => s,
            // A float cast saturates, as Java's does.
            Interval::Days(days) => (days * Self::DAY) as i32,
        }
    }
}

/// The state of a URL.
#[derive(Debug, Clone, PartialEq)]
pub struct CrawlDatum<'a> {
    /// The version it was read from; 7 is written.
    pub version: u8,
    /// The code as stored; see [`CrawlDatum::status`].
    pub stored_status: u8,
    /// Milliseconds since 1970: when to fetch next, or when it was fetched.
    pub fetch_time: i64,
    /// Failed attempts since the last success.
    pub retries: i8,
    /// Time between two fetches.
    pub interval: Interval,
    /// Importance.
    pub score: f32,
    /// Milliseconds since 1970 when the page last changed; 0 = unknown.
    pub modified_time: i64,
    /// What tells equal pages, an MD5 usually; empty = none.
    pub signature: Cow<'a, [u8]>,
    /// Anything else.
    pub metadata: MapWritable<'a>,
    /// Number of links, which only version 1 has.
    pub link_count: Option<i32>,
}

impl CrawlDatum<'_> {
    /// The version that is written.
    pub const VERSION: u8 = 7;
    /// Milliseconds of 30 days, the interval of a new URL, in seconds.
    pub const DEFAULT_INTERVAL: i32 = 2_592_000;

    /// A datum with a status, a time and a score; everything else empty, the interval 30 days.
    pub fn new(status: Status, fetch_time: i64, score: f32) -> Self {
        CrawlDatum {
            version: Self::VERSION,
            stored_status: status.0,
            fetch_time,
            retries: 0,
            interval: Interval::Seconds(Self::DEFAULT_INTERVAL),
            score,
            modified_time: 0,
            signature: Cow::Borrowed(&[]),
            metadata: MapWritable::default(),
            link_count: None,
        }
    }
}

impl<'a> CrawlDatum<'a> {
    /// The status by the codes of today.
    pub fn status(&self) -> Status {
        if self.version <= 4 { Status::from_version_4(self.stored_status) } else { Status(self.stored_status) }
    }

    /// Sets the status.
    pub fn set_status(&mut self, status: Status) {
        (self.version, self.stored_status) = (Self::current_version(), status.0);
    }

    const fn current_version() -> u8 {
        CrawlDatum::VERSION
    }

    /// Reads any version. The map of versions 4 to 6 has its strings as `Text` or as `UTF8`; whichever reads is taken.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a CrawlDatum")?;
        if !(1..=7).contains(&version) {
            return Err(d.error("a CrawlDatum of version 1 to 7", version.to_string()));
        }
        let stored_status = d.u8("status")?;
        let fetch_time = d.i64("fetch time")?;
        let retries = d.i8("retries")?;
        let interval =
            if version >= 6 { Interval::Seconds(d.i32("interval")?) } else { Interval::Days(d.f32("interval")?) };
        let mut datum = CrawlDatum {
            version,
            stored_status,
            fetch_time,
            retries,
            interval,
            score: 0.0,
            modified_time: 0,
            signature: Cow::Borrowed(&[]),
            metadata: MapWritable::default(),
            link_count: None,
        };
        if version == 1 {
            datum.link_count = Some(d.i32("number of links")?);
            return Ok(datum);
        }
        datum.score = d.f32("score")?;
        if version == 2 {
            return Ok(datum);
        }
        datum.modified_time = d.i64("modified time")?;
        let len = usize::try_from(d.i8("length of the signature")?).unwrap_or(0);
        datum.signature = Cow::Borrowed(d.take(len, "signature")?);
        if version >= 4 && d.bool("whether there are metadata")? {
            datum.metadata = match version {
                7 => MapWritable::decode(d, &NutchClasses)?,
                _ => either_map(d)?,
            };
        }
        Ok(datum)
    }

    /// Writes version 7. A signature above 127 bytes, which Java writes and cannot read, is cut.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(CrawlDatum::VERSION);
        out.put_u8(self.status().0);
        out.put_i64(self.fetch_time);
        out.put_u8(self.retries.cast_unsigned());
        out.put_i32(self.interval.seconds());
        out.put_f32(self.score);
        out.put_i64(self.modified_time);
        let signature = self.signature.get(..127).unwrap_or(&self.signature);
        out.put_u8(signature.len() as u8);
        out.put(signature);
        out.put_bool(!self.metadata.is_empty());
        if !self.metadata.is_empty() {
            self.metadata.encode(out);
        }
    }

    /// Nutch's order: higher scores first, then by status, later times, more retries, longer intervals, later changes
    /// first, then by signature.
    pub fn compare(&self, other: &CrawlDatum<'_>) -> Ordering {
        let score = |a: f32, b: f32| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
        score(self.score, other.score)
            .then_with(|| self.status().cmp(&other.status()))
            .then_with(|| other.fetch_time.cmp(&self.fetch_time))
            .then_with(|| other.retries.cmp(&self.retries))
            .then_with(|| other.interval.seconds().cmp(&self.interval.seconds()))
            .then_with(|| other.modified_time.cmp(&self.modified_time))
            .then_with(|| self.signature.cmp(&other.signature))
    }

    /// The same datum with bytes of its own.
    pub fn into_owned(self) -> CrawlDatum<'static> {
        CrawlDatum {
            version: self.version,
            stored_status: self.stored_status,
            fetch_time: self.fetch_time,
            retries: self.retries,
            interval: self.interval,
            score: self.score,
            modified_time: self.modified_time,
            signature: Cow::Owned(self.signature.into_owned()),
            metadata: self.metadata.into_owned(),
            link_count: self.link_count,
        }
    }
}

/// A map whose strings are of either form, told by which one reads.
fn either_map<'a>(d: &mut Decoder<'a>) -> Decoded<MapWritable<'a>> {
    let mut attempt = d.clone();
    match decode_nutch_map(&mut attempt, StringForm::Text) {
        Ok(map) if attempt.rest().is_empty() => {
            *d = attempt;
            Ok(map)
        }
        // Inside another value the rest says nothing; UTF8 is tried, and `Text` stands if that fails.
        text => {
            let mut second = d.clone();
            match (decode_nutch_map(&mut second, StringForm::Utf8), text) {
                (Ok(map), _) => {
                    *d = second;
                    Ok(map)
                }
                (Err(_), Ok(map)) => {
                    *d = attempt;
                    Ok(map)
                }
                (Err(e), Err(_)) => Err(e),
            }
        }
    }
}
