//! One record a line: plain URLs, or JSON objects, or CDXJ.

use super::fields::{Fields, Names, Value};
use super::text::{Line, SourceFile, text_of};
use super::{BadItem, fields, json, time};
use trawl_model::{DoorError, Grown, Items, SourceIdentity, Split, Stamp, UrlRecord, UrlSource};

/// What a line holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFormat {
    /// `url`, or `url`, a tab and a time.
    Urls,
    /// A JSON object.
    Json,
    /// A SURT key, 14 digits and a JSON object.
    Cdxj,
}

/// A file of lines.
#[derive(Debug)]
pub(crate) struct LineSource {
    pub file: SourceFile,
    pub format: LineFormat,
}

impl UrlSource for LineSource {
    fn identity(&self) -> SourceIdentity {
        self.file.identity.clone()
    }

    fn stamp(&self) -> Option<Stamp> {
        self.file.stamp
    }

    fn grown(&self) -> Option<&Grown> {
        self.file.grown.as_ref()
    }

    fn known_by_name(&self) -> Option<&[SourceIdentity]> {
        self.file.known_by_name.as_deref()
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        Ok(self.file.splits(target_bytes))
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let mut each = self.file.fresh(each);
        self.file.lines(split, &mut |at, line| {
            let (parsed, len) = match line {
                Line::TooLong(head) => {
                    (Err(BadItem::new("line_too_long", "expected a line of at most 4 MiB", head)), 0)
                }
                Line::Whole(line) => (self.parse(line), line.len()),
            };
            match parsed {
                Ok(None) => Ok(()),
                Ok(Some(record)) => each(at, Ok(record)),
                Err(bad) => each(at, Err(bad.at(self.file.place(at, len)))),
            }
        })
    }
}

impl LineSource {
    /// The record of a line; `None` for a line that holds none on purpose.
    fn parse(&self, line: &[u8]) -> Result<Option<UrlRecord>, BadItem> {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() || self.format != LineFormat::Json && trimmed.starts_with(b"#") {
            return Ok(None);
        }
        match self.format {
            LineFormat::Urls => Ok(Some(url_line(line))),
            LineFormat::Json => json_line(trimmed).map(Some),
            LineFormat::Cdxj => cdxj_line(trimmed),
        }
    }
}

fn url_line(line: &[u8]) -> UrlRecord {
    let text = text_of(line);
    let (url, ts) = match text.split_once('\t') {
        Some((url, ts)) if !ts.trim().is_empty() => (url, Some(ts)),
        Some((url, _)) => (url, None),
        None => (&*text, None),
    };
    let Some(ts) = ts else { return UrlRecord::bare(url.trim()) };
    match time::from_text(ts) {
        Some(ts) => UrlRecord { ts: Some(ts), ..UrlRecord::bare(url.trim()) },
        // As in every other source: what is no time is kept.
        None => UrlRecord { extras: Some(fields::object("ts", Value::Text(ts))), ..UrlRecord::bare(url.trim()) },
    }
}

fn json_line(line: &[u8]) -> Result<UrlRecord, BadItem> {
    let mut fields = Fields::default();
    json::members(line, |name, value| fields.take(Names::General, name, value))
        .map_err(|e| BadItem::new("json", format!("expected a json object: {e}"), line))?;
    fields.finish().ok_or_else(|| BadItem::new("no_url", "expected a text under \"url\", found none", line))
}

/// `com,example)/a 20260624010203 {"url": …}`; header lines (`!…`) hold no record.
fn cdxj_line(line: &[u8]) -> Result<Option<UrlRecord>, BadItem> {
    if line.starts_with(b"!") {
        return Ok(None);
    }
    let bad = |expected: &str| BadItem::new("cdxj", format!("expected {expected}"), line);
    let text = std::str::from_utf8(line).map_err(|_| bad("utf-8"))?;
    let mut parts = text.splitn(3, ' ');
    let (Some(_key), Some(ts), Some(object)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(bad("a key, a time and a json object"));
    };
    let ts = trawl_model::UnixMillis::parse(ts).map_err(|e| BadItem::new("cdxj", e.to_string(), line))?;
    let mut fields = Fields::default();
    fields.set_ts(ts);
    // Indexers write "-" for what they do not know.
    let dash = |value: Value<'_>| matches!(value, Value::Text("-"));
    json::members(object.trim().as_bytes(), |name, value| {
        if !dash(value) {
            fields.take(Names::Cdxj, name, value);
        }
    })
    .map_err(|e| BadItem::new("json", format!("expected a json object after the time: {e}"), line))?;
    fields.finish().map(Some).ok_or_else(|| BadItem::new("no_url", "expected a text under \"url\", found none", line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_model::{Place, UnixMillis};

    #[test]
    fn url_lines() {
        let url = |text: &[u8]| url_line(text);
        assert_eq!(url(b" http://a.com/ "), UrlRecord::bare("http://a.com/"));
        let with_ts = UrlRecord { ts: Some(UnixMillis(1000)), ..UrlRecord::bare("http://a.com/") };
        assert_eq!(url(b"http://a.com/\t1970-01-01T00:00:01Z"), with_ts);
        assert_eq!(url(b"http://a.com/\t"), UrlRecord::bare("http://a.com/"));
        assert_eq!(url(b"http://a.com/\xff\xc3\xa9"), UrlRecord::bare("http://a.com/%FFé"));
        assert_eq!(url(b"http://a.com/\t-1").ts, Some(UnixMillis(-1000)));
        let never = UrlRecord { extras: Some(r#"{"ts":"never \"so\""}"#.into()), ..UrlRecord::bare("http://a.com/") };
        assert_eq!(url(b"http://a.com/\tnever \"so\""), never);
    }

    #[test]
    fn json_lines() {
        let record =
            json_line(br#"{ "a" : [ 1.0, "x y" ], "url":"http://a.com/\u0041", "n":12345678901234567890123 }"#);
        let record = record.unwrap();
        assert_eq!(record.url, "http://a.com/A");
        assert_eq!(record.extras.as_deref(), Some(r#"{"a":[1.0,"x y"],"n":12345678901234567890123}"#));
        assert_eq!(json_line(b"{").unwrap_err().code, "json");
        assert_eq!(json_line(b"[]").unwrap_err().code, "json");
        assert_eq!(json_line(b"{\"url\":\"x\"} x").unwrap_err().code, "json");
        assert_eq!(json_line(b"{\"uri\":\"http://a.com/\"}").unwrap_err().code, "no_url");
    }

    #[test]
    fn cdxj_lines() {
        let line = concat!(
            r#"com,a)/ 20260624010203 {"url": "http://a.com/", "mime": "text/html", "status": "200", "#,
            r#""digest": "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": "10", "offset": "5", "filename": "x.warc.gz", "#,
            r#""languages": "eng", "charset": "-"}"#
        );
        let record = cdxj_line(line.as_bytes()).unwrap().unwrap();
        assert_eq!(record.ts, UnixMillis::parse("20260624010203").ok());
        assert_eq!((record.status, record.place), (Some(200), Some(Place::new("x.warc.gz", 5, 10))));
        assert_eq!(record.extras.as_deref(), Some(r#"{"languages":"eng"}"#));
        assert_eq!(cdxj_line(b"!OpenWayback-CDXJ 1.0"), Ok(None));
        assert_eq!(cdxj_line(b"com,a)/ 2026").unwrap_err().code, "cdxj");
        assert_eq!(cdxj_line(b"com,a)/ soon {}").unwrap_err().code, "cdxj");
        assert_eq!(cdxj_line(b"com,a)/ 2026 {}").unwrap_err().code, "no_url");
    }
}
