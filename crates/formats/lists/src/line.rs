//! One record a line: a plain URL, a JSON object, or CDXJ.

use crate::fields::{Fields, Names, Value};
use crate::file::text_of;
use crate::{BadItem, Format, json};
use trawl_model::{UnixMillis, UrlRecord};

/// The record of a line; `None` for a line that holds none on purpose: a blank one, a comment, a header.
pub(crate) fn parse(format: Format, names: Names, line: &[u8]) -> Result<Option<UrlRecord>, BadItem> {
    let trimmed = line.trim_ascii();
    match (format, trimmed.first()) {
        (_, None) | (Format::Lines | Format::Cdxj, Some(b'#')) | (Format::Cdxj, Some(b'!')) => Ok(None),
        (Format::Cdxj, _) => cdxj(names, trimmed).map(Some),
        (Format::Lines, Some(first)) if *first != b'{' => Ok(url(names, line)),
        _ => object(Fields::new(names), &text_of(trimmed), trimmed).map(Some),
    }
}

/// `url`, or `url`, a tab and a time.
fn url(names: Names, line: &[u8]) -> Option<UrlRecord> {
    let text = text_of(line);
    let (url, ts) = text.split_once('\t').unwrap_or((&text, ""));
    let mut fields = Fields::new(names);
    fields.set_url(url.trim());
    if !ts.trim().is_empty() {
        fields.take("ts", Value::Text(ts));
    }
    fields.finish()
}

/// `com,example)/a 20260624010203 {"url": …}`.
fn cdxj(names: Names, line: &[u8]) -> Result<UrlRecord, BadItem> {
    let text = text_of(line);
    let mut parts = text.splitn(3, ' ');
    let (Some(_key), Some(ts), Some(json)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(BadItem::new("cdxj", "expected a key, a time and a json object", line));
    };
    let ts = UnixMillis::parse(ts).map_err(|e| BadItem::new("cdxj", e.to_string(), line))?;
    let mut fields = Fields::new(names);
    fields.set_ts(ts);
    object(fields, json, line)
}

/// Adds the members of a JSON object.
fn object(mut fields: Fields, json: &str, line: &[u8]) -> Result<UrlRecord, BadItem> {
    json::members(json, fields.names, |name, value| fields.take(name, value))
        .map_err(|e| BadItem::new("json", format!("expected a json object: {e}"), line))?;
    fields.finish().ok_or_else(|| BadItem::new("no_url", "expected a text under \"url\", found none", line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_model::Place;

    fn one(format: Format, line: &[u8]) -> Result<UrlRecord, BadItem> {
        let names = if format == Format::Cdxj { Names::Cdxj } else { Names::General };
        parse(format, names, line).map(Option::unwrap)
    }

    #[test]
    fn url_lines() {
        let url = |text: &[u8]| one(Format::Lines, text).unwrap();
        assert_eq!(url(b" http://a.com/ "), UrlRecord::bare("http://a.com/"));
        let with_ts = UrlRecord { ts: Some(UnixMillis(1000)), ..UrlRecord::bare("http://a.com/") };
        assert_eq!(url(b"http://a.com/\t1970-01-01T00:00:01Z"), with_ts);
        assert_eq!(url(b"http://a.com/\t"), UrlRecord::bare("http://a.com/"));
        assert_eq!(url(b"http://a.com/\xff\xc3\xa9"), UrlRecord::bare("http://a.com/%FFé"));
        assert_eq!(url(b"http://a.com/\t-1").ts, Some(UnixMillis(-1000)));
        let never = UrlRecord { extras: Some(r#"{"ts":"never \"so\""}"#.into()), ..UrlRecord::bare("http://a.com/") };
        assert_eq!(url(b"http://a.com/\tnever \"so\""), never);
        assert_eq!(url(br#" {"url":"http://a.com/","ts":1}"#), with_ts);
        for nothing in [&b""[..], b" \t", b" # http://a.com/"] {
            assert_eq!(parse(Format::Lines, Names::General, nothing), Ok(None));
        }
    }

    #[test]
    fn json_lines() {
        let json_line = |line: &[u8]| one(Format::Jsonl, line);
        let record =
            json_line(br#"{ "a" : [ 1.0, "x y" ], "url":"http://a.com/\u0041", "n":12345678901234567890123 }"#);
        let record = record.unwrap();
        assert_eq!(record.url, "http://a.com/A");
        assert_eq!(record.extras.as_deref(), Some(r#"{"a":[1.0,"x y"],"n":12345678901234567890123}"#));
        assert_eq!(json_line(b"{\"url\":\"http://a.com/\xff\"}").unwrap().url, "http://a.com/%FF");
        assert_eq!(json_line(b"{").unwrap_err().code, "json");
        assert_eq!(json_line(b"[]").unwrap_err().code, "json");
        assert_eq!(json_line(b"# x").unwrap_err().code, "json");
        assert_eq!(json_line(b"{\"url\":\"x\"} x").unwrap_err().code, "json");
        assert_eq!(json_line(b"{\"uri\":\"http://a.com/\"}").unwrap_err().code, "no_url");
    }

    /// Metadata of a seed keeps its types, numbers and order as they were written.
    #[test]
    fn seeds_keep_their_metadata_byte_for_byte() {
        let meta = |line: &[u8]| parse(Format::Lines, Names::Url, line).unwrap().unwrap().extras;
        let line = br#"{"z": 1.0, "url": "http://a.example/", "status": 200, "a": {"b": [1, "\u0041"]}, "s":"\u0041"}"#;
        assert_eq!(meta(line).as_deref(), Some(r#"{"z":1.0,"status":200,"a":{"b": [1, "\u0041"]},"s":"\u0041"}"#));
        assert_eq!(meta(br#"{"url":"http://a.example/"}"#), None);
        assert_eq!(meta(b"http://a.example/\t2026").as_deref(), Some(r#"{"ts":"2026"}"#));
    }

    #[test]
    fn cdxj_lines() {
        let cdxj_line = |line: &[u8]| one(Format::Cdxj, line);
        let line = concat!(
            r#"com,a)/ 20260624010203 {"url": "http://a.com/", "mime": "text/html", "status": "200", "#,
            r#""digest": "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": "10", "offset": "5", "filename": "x.warc.gz", "#,
            r#""languages": "eng", "charset": "-"}"#
        );
        let record = cdxj_line(line.as_bytes()).unwrap();
        assert_eq!(record.ts, UnixMillis::parse("20260624010203").ok());
        assert_eq!((record.status, record.place), (Some(200), Some(Place::new("x.warc.gz", 5, 10))));
        assert_eq!(record.extras.as_deref(), Some(r#"{"languages":"eng"}"#));
        assert_eq!(parse(Format::Cdxj, Names::Cdxj, b"!OpenWayback-CDXJ 1.0"), Ok(None));
        let escaped = cdxj_line(b"com,a)/ 2026 {\"url\": \"http://a.com/\xe4\"}").unwrap();
        assert_eq!(escaped.url, "http://a.com/%E4");
        assert_eq!(cdxj_line(b"com,a)/ 2026").unwrap_err().code, "cdxj");
        assert_eq!(cdxj_line(b"com,a)/ soon {}").unwrap_err().code, "cdxj");
        assert_eq!(cdxj_line(b"com,a)/ 2026 {}").unwrap_err().code, "no_url");
    }
}
