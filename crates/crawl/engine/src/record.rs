//! What the journal holds: JSON, one object a record.
//!
//! ```text
//! header tag   {"crawl":1,"run":"20261103100000","started":1762164000000,"identity":"key","format":"warc"}
//! batch        one or more of
//!   {"t":"seeds","seeds":[{"u":"http://…","m":"{…}"}],"rejects":[…],"lines":1000}        "end":[…] on the last
//!   {"t":"event","id":"…32 hex…","answer":{"status":200},"links":["…"],"row":{…}}        one capture with its links
//!   {"t":"leg","started":…,"arguments":[…],"seeds":[…],"settings":{…}}                   each time the run is started
//! and, last,
//!   {"t":"commit","file":"trawl-….warc.gz","end":123456}                                 the archive, synced before;
//!                                        "others":[["…",78]]                             its other open files
//! ```
//! A batch is whole or absent, so an outcome, its links, its index row and the archive's end are believed together.

use crate::error::Error;
use crate::report::Leg;
use crate::rules::Rule;
use crate::seeds::{Reject, Seed, SeedIdentity};
use serde::{Deserialize, Serialize};
use std::path::Path;
use trawl_archive::CaptureRow;
use trawl_frontier::{Answer, Identity};
use trawl_model::{Durable, ErrorClass, UnixMillis};
use trawl_url::WebUrl;

/// The tag of a crawl's journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tag {
    /// Version of the records, now 1.
    pub crawl: u32,
    pub run: String,
    pub started: UnixMillis,
    pub identity: String,
    /// What captures are archived in.
    #[serde(default = "warc")]
    pub format: String,
}

fn warc() -> String {
    "warc".to_owned()
}

pub(crate) const VERSION: u32 = 1;

pub(crate) fn identity_name(identity: Identity) -> &'static str {
    match identity {
        Identity::Key => "key",
        Identity::Exact => "exact",
    }
}

/// One record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub(crate) enum Record {
    Seeds(SeedsRecord),
    Event(Box<EventRecord>),
    Leg(Leg),
    Commit(CommitRecord),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeedsRecord {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<Seed>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejects: Vec<Reject>,
    /// Items read so far, over all inputs.
    pub items: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Vec<SeedIdentity>>,
}

/// A capture: what came of it, what it leads to, its row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EventRecord {
    /// The page's id in the frontier; absent for a robots.txt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Any URL of the site whose robots.txt this settles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<WebUrl>,
    /// The robots.txt itself, where it holds rules; empty for a 4xx.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hops: u32,
    pub answer: AnswerRecord,
    /// Links of the page, as found, those too deep included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<WebUrl>,
    /// Where it redirects to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<WebUrl>,
    /// Why nobody goes where it redirects to.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "class")]
    pub bad_to: Option<ErrorClass>,
    /// What the page had besides `links`.
    #[serde(default, skip_serializing_if = "LinkCounts::is_zero")]
    pub left_out: LinkCounts,
    /// Its row in the capture index.
    #[serde(with = "row")]
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

/// An [`Answer`] on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AnswerRecord {
    /// 0 where there was no response.
    #[serde(default, skip_serializing_if = "is_zero_u16")]
    pub status: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "class")]
    pub class: Option<ErrorClass>,
    /// Whether the body broke off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Links of a page that are not among its links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LinkCounts {
    /// Out of scope.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub outside: u64,
    /// Refused by a rule.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub prefix: u64,
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub surt: u64,
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub include: u64,
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub exclude: u64,
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub shard: u64,
    /// More than may be kept of one page.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub over_limit: u64,
    /// Repeated on the page.
    #[serde(skip_serializing_if = "is_zero_u64")]
    pub repeated: u64,
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
        ];
        counts.into_iter().filter(|(_, count)| *count > 0)
    }

    fn is_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl From<Answer> for AnswerRecord {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Response { status, retry_after_ms, cut } => Self { status, retry_after_ms, class: None, cut },
            Answer::Failed(class) => Self { status: 0, retry_after_ms: None, class: Some(class), cut: false },
        }
    }
}

impl From<AnswerRecord> for Answer {
    fn from(record: AnswerRecord) -> Self {
        match record.class {
            Some(class) => Self::Failed(class),
            None => {
                let AnswerRecord { status, retry_after_ms, cut, .. } = record;
                Self::Response { status, retry_after_ms, cut }
            }
        }
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_zero_u64(n: &u64) -> bool {
    *n == 0
}

fn is_zero_u16(n: &u16) -> bool {
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

/// An error class by its name.
mod class {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use trawl_model::ErrorClass;

    #[expect(clippy::ref_option, reason = "the shape serde asks for")]
    pub(super) fn serialize<S: Serializer>(class: &Option<ErrorClass>, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(class.map(ErrorClass::as_str).unwrap_or_default())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<ErrorClass>, D::Error> {
        String::deserialize(d)?.parse().map(Some).map_err(D::Error::custom)
    }
}

/// Writes a record. It cannot fail: there is nothing in it that JSON has no form for.
pub(crate) fn encode(record: &Record) -> Vec<u8> {
    serde_json::to_vec(record).unwrap_or_default()
}

/// Reads a record of the batch at `offset`.
pub(crate) fn decode(path: &Path, offset: u64, bytes: &[u8]) -> Result<Record, Error> {
    serde_json::from_slice(bytes).map_err(|e| Error::Journal {
        path: path.into(),
        offset,
        expected: "a record of a crawl",
        found: format!("{e} in {:?}", String::from_utf8_lossy(bytes.get(..bytes.len().min(60)).unwrap_or_default())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds::SeedInput;

    #[test]
    fn records_come_back() {
        let event = EventRecord {
            id: Some("00ff".into()),
            site: None,
            robots: None,
            hops: 2,
            answer: Answer::Failed(ErrorClass::BodyTimeout).into(),
            links: vec![WebUrl::parse("http://a.example/").unwrap()],
            to: None,
            bad_to: Some(ErrorClass::BadScheme),
            left_out: LinkCounts { over_limit: 3, ..LinkCounts::default() },
            row: CaptureRow { url: "http://b.example/\u{e9}".into(), attempt: Some(0), ..CaptureRow::default() },
        };
        let response = Answer::Response { status: 429, retry_after_ms: Some(5), cut: true };
        for record in [
            Record::Event(Box::new(event.clone())),
            Record::Event(Box::new(EventRecord { answer: response.into(), ..event })),
            Record::Seeds(SeedsRecord {
                seeds: vec![Seed { url: WebUrl::parse("http://u/").unwrap(), meta: Some("{\"a\":1.0}".into()) }],
                items: 7,
                end: Some(vec![]),
                ..SeedsRecord::default()
            }),
            Record::Leg(Leg { seeds: vec![SeedInput::Stdin], ..Leg::default() }),
            Record::Commit(CommitRecord { file: "x".into(), end: u64::MAX, others: vec![("y".into(), 1)] }),
        ] {
            let bytes = encode(&record);
            assert!(!bytes.is_empty());
            assert_eq!(decode(Path::new("j"), 0, &bytes).unwrap(), record);
        }
        assert_eq!(Answer::from(AnswerRecord::from(response)), response);
        let error = decode(Path::new("j"), 9, b"{\"t\":\"nonsense\"}").unwrap_err().to_string();
        assert!(error.starts_with("j@9: expected a record"), "{error}");
    }
}
