//! What a crawl keeps: two notes in the frontier's log, and a record for each capture in a spool.
//!
//! ```text
//! note 0   {"crawl":2,"run":"20261103100000","started":…,"format":"warc","legs":[…],"inputs":[…],"seeds":[…],"spools":[…]}
//!          each time something of it changes
//! note 1   {"counts":{…},"items":1000,"archive":{"file":"trawl-….warc.gz","end":123456},"spool":[…],"rejects":78}
//!          with every batch: the archive, the spool and the rejects were synced up to there before
//! spool    {"row":{…},"links":["…"]}                                     see `spool.rs`
//! ```
//! A batch of the log is whole or absent, so outcomes, links, counts and the ends of all files are believed together.

use crate::report::{Counts, Leg};
use crate::rules::Rule;
use crate::seeds::{SeedIdentity, SeedInput};
use serde::{Deserialize, Serialize};
use trawl_archive::CaptureRow;
use trawl_frontier::{Answer, LeaseId};
use trawl_model::{Durable, ErrorClass, UnixMillis};
use trawl_url::WebUrl;

/// The slot of [`RunNote`] in the frontier's log.
pub(crate) const RUN_SLOT: u8 = 0;
/// The slot of [`ProgressNote`].
pub(crate) const PROGRESS_SLOT: u8 = 1;

pub(crate) const VERSION: u32 = 2;

/// What is known of a run from its start on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunNote {
    /// Version of the notes.
    pub crawl: u32,
    pub run: String,
    pub started: UnixMillis,
    /// What captures are archived in.
    pub format: String,
    /// Each start of the run.
    pub legs: Vec<Leg>,
    /// Seeds that were not read to their end.
    pub inputs: Vec<SeedInput>,
    /// Seeds that were.
    pub seeds: Vec<SeedIdentity>,
    /// Spools that are closed.
    pub spools: Vec<SpoolEnd>,
    /// How deep links were followed so far.
    #[serde(default)]
    pub depth: u32,
    /// Directories of seeds that links must stay in: see [`crate::LinkRules`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<(String, String)>,
}

/// Where a run stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProgressNote {
    pub counts: Counts,
    /// Items of the seeds that were read.
    pub items: u64,
    /// Their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_digest: Option<String>,
    /// Seeds that the frontier took and that were never settled: a limit on pages keeps room for them.
    #[serde(default)]
    pub seeds_waiting: u64,
    /// When the last capture ended, by the time of day.
    #[serde(default)]
    pub last: Option<UnixMillis>,
    #[serde(default)]
    pub archive: Option<CommitRecord>,
    #[serde(default)]
    pub spool: Option<SpoolEnd>,
    /// Bytes of the rejects.
    #[serde(default)]
    pub rejects: u64,
    /// Bytes of `crawl.log` that are about closed spools; the rest is made again from the rows.
    #[serde(default)]
    pub log: u64,
}

/// A spool, the archive file its rows are of, and how far it is good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpoolEnd {
    pub number: u64,
    pub file: String,
    pub end: u64,
}

/// A capture in a spool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SpoolRecord {
    /// Its row in the capture index.
    #[serde(with = "row")]
    pub row: CaptureRow,
    /// What the page leads to, where a shorter way to it may be found late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<WebUrl>,
    /// Where it redirects to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<WebUrl>,
    /// Sitemaps that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sitemaps: Vec<WebUrl>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
}

/// A capture whose archive bytes and row are synced.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EventRecord {
    pub id: LeaseId,
    pub url: WebUrl,
    /// Whether this was the first attempt at a seed.
    pub first_of_seed: bool,
    /// The site whose robots.txt this settles.
    pub site: Option<String>,
    /// The robots.txt itself, where it holds rules; empty for a 4xx.
    pub robots: Option<String>,
    pub hops: u32,
    pub answer: Answer,
    /// Distinct links of the page that are in scope.
    pub links: Vec<(trawl_frontier::UrlId, WebUrl)>,
    /// Sitemaps that it names: as far from a seed as itself.
    pub sitemaps: Vec<(trawl_frontier::UrlId, WebUrl)>,
    /// Where it redirects to.
    pub to: Option<WebUrl>,
    /// Why its redirect is not followed.
    pub bad_to: Option<ErrorClass>,
    /// What the page had besides `links`.
    pub left_out: LinkCounts,
    /// Of a document that should be a sitemap: why it lists less than it could.
    pub unread: Option<String>,
    /// Where its record is, for the frontier.
    pub note: Option<u64>,
    pub row: CaptureRow,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommitRecord {
    /// The file that takes what comes next.
    pub file: String,
    pub end: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<(String, u64)>,
}

impl CommitRecord {
    pub(crate) fn of(durable: &Durable) -> Self {
        let mut others = durable.files.clone();
        let (file, end) = others.pop().unwrap_or_default();
        Self { file, end, others }
    }

    pub(crate) fn durable(self) -> Durable {
        let mut files = self.others;
        files.push((self.file, self.end));
        Durable { files }
    }
}

/// Links of a page that are not among its links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LinkCounts {
    /// Out of scope.
    pub outside: u64,
    /// Refused by a rule.
    pub prefix: u64,
    pub surt: u64,
    pub include: u64,
    pub exclude: u64,
    pub shard: u64,
    pub nofollow: u64,
    /// More than may be kept of one page.
    pub over_limit: u64,
    /// Repeated on the page.
    pub repeated: u64,
    /// Entries of a sitemap, or sitemaps of a robots.txt, that are not URLs.
    pub not_urls: u64,
}

impl LinkCounts {
    /// Counts a link that a rule refuses.
    pub(crate) fn refuse(&mut self, rule: Rule) {
        *match rule {
            Rule::Prefix => &mut self.prefix,
            Rule::Surt => &mut self.surt,
            Rule::Include => &mut self.include,
            Rule::Exclude => &mut self.exclude,
            Rule::Shard => &mut self.shard,
            Rule::Nofollow => &mut self.nofollow,
        } += 1;
    }

    /// Links that rules refused, by rule.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (Rule, u64)> {
        let counts = [
            (Rule::Prefix, self.prefix),
            (Rule::Surt, self.surt),
            (Rule::Include, self.include),
            (Rule::Exclude, self.exclude),
            (Rule::Shard, self.shard),
            (Rule::Nofollow, self.nofollow),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0)
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// A row without its empty columns: most are.
mod row {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error};
    use serde_json::Value;
    use trawl_archive::CaptureRow;

    pub(super) fn serialize<S: Serializer>(row: &CaptureRow, s: S) -> Result<S::Ok, S::Error> {
        let mut value = serde_json::to_value(row).map_err(S::Error::custom)?;
        if let Value::Object(columns) = &mut value {
            columns.retain(|_, v| match v {
                Value::Null | Value::Bool(false) => false,
                Value::String(text) => !text.is_empty(),
                _ => true,
            });
        }
        value.serialize(s)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<CaptureRow, D::Error> {
        CaptureRow::deserialize(d)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let record = SpoolRecord {
            row: CaptureRow { url: "http://b.example/\u{e9}".into(), attempt: Some(0), ..CaptureRow::default() },
            links: vec![WebUrl::parse("http://a.example/").unwrap()],
            to: None,
            sitemaps: Vec::new(),
            hops: 2,
        };
        let bytes = serde_json::to_vec(&record).unwrap();
        assert_eq!(serde_json::from_slice::<SpoolRecord>(&bytes).unwrap(), record);
        let durable = Durable { files: vec![("y".into(), 1), ("x".into(), u64::MAX)] };
        let note = ProgressNote {
            archive: Some(CommitRecord::of(&durable)),
            spool: Some(SpoolEnd { number: 3, file: "x".into(), end: 9 }),
            ..ProgressNote::default()
        };
        let bytes = serde_json::to_vec(&note).unwrap();
        let back: ProgressNote = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(back, note);
        assert_eq!(back.archive.unwrap().durable(), durable);
    }
}
