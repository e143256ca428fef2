//! One record a line: a plain URL, a JSON object, CDXJ or CDX.

mod answer;

use crate::cdx::Legend;
use crate::csv::{looks_like_host, looks_like_url};
use crate::fields::{Fields, Roles, Value, has_field_mark, has_second_url, is_one_word, may_be_url};
use crate::file::text_of;
use crate::{BadItem, Format, Options, json};
use trawl_model::{UnixMillis, UrlRecord};

/// Digits of a time in a CDX index.
const CDX_TIME: usize = 14;
/// Digits of an HTTP status.
const STATUS: usize = 3;

/// The record of a line; `None` for a line that holds none on purpose: a blank one, a comment, a header.
pub(crate) fn parse(
    format: Format,
    options: &Options,
    legend: &mut Option<Legend>,
    line: &[u8],
) -> Result<Option<UrlRecord>, BadItem> {
    let trimmed = line.trim_ascii();
    match (format, trimmed.first()) {
        (_, None) | (Format::Lines | Format::Cdxj, Some(b'#')) | (Format::Cdxj, Some(b'!')) => Ok(None),
        (Format::Cdxj, _) => cdxj(options, trimmed).map(Some),
        (Format::Cdx, _) => Legend::record(legend, options, line),
        (Format::Lines, Some(first)) if *first != b'{' => url(options, trimmed),
        _ => object(options, false, &text_of(trimmed), trimmed).map(Some),
    }
}

/// `url`, or a line of what a CDX server answers ([`answer`]), or `url`, a tab and a time, or a blank and a time of 14 digits; an HTTP
/// status before or behind the time, or alone; behind white space and `#` a comment.
///
/// A line ends at a line feed or a carriage return. Whatever else separates lines to some programs (`find -print0`, Unicode) is no end,
/// because a URL may hold those characters; but one that does writes them escaped.
fn url(options: &Options, line: &[u8]) -> Result<Option<UrlRecord>, BadItem> {
    // Most lines are nothing but a URL, and none of the questions below arises.
    if line.starts_with(b"http")
        && is_one_word(line)
        && memchr::memmem::find(line, b"://").is_some()
        && let Ok(url) = std::str::from_utf8(line)
    {
        return Ok(Some(UrlRecord::bare(url)));
    }
    let text = text_of(line);
    let text = without_comment(text.trim());
    if has_odd_end(text) {
        let message = "expected a URL and the end of its line, found a character that ends lines elsewhere (zero, vertical tab, form feed, U+0085, U+2028, U+2029): put line feeds in its place, or escape it";
        return Err(BadItem::new("line_end", message, line));
    }
    if has_field_mark(text.as_bytes()) {
        let message = "expected a URL, found a character that separates fields elsewhere (U+0001 to U+0003, U+001C to U+001F): read the list as a table (--format csv with that character as --separator)";
        return Err(BadItem::new("columns", message, line));
    }
    if let Some(record) = answer::record(options, text) {
        return Ok(Some(record));
    }
    if has_second_url(text) {
        let message = "expected one URL in a line, found another behind white space: put it into its own line, or read the list as a table (--format tsv)";
        return Err(BadItem::new("several", message, line));
    }
    let Columns { url, ts, status } = columns(text);
    // The header of a table with one column: read as a host, it would add a row that is not in the list.
    if may_be_url(url) {
        return Err(BadItem::new("header", "expected a URL, found the name of a column", line));
    }
    // In front of the name that it blocks, the address of a hosts file is no page.
    let is_name = |word: &str| looks_like_host(word) || word == "localhost";
    if matches!(url, "0.0.0.0" | "127.0.0.1" | "::1" | "::") && ts.split_whitespace().next().is_some_and(is_name) {
        return Err(BadItem::new("several", "expected a URL, found a line of a hosts file", line));
    }
    // The rank in front of a host would be an address: 17 is 0.0.0.17.
    if !url.is_empty() && url.bytes().all(|b| b.is_ascii_digit()) && text.contains('\t') {
        let message = "expected a URL in front of the tab, found a number: read the list as a table (--format tsv)";
        return Err(BadItem::new("columns", message, line));
    }
    // Another field, or a word of an address that was not escaped: nothing in the line says which, and as part of the URL a field would
    // make it that of a page that does not exist.
    if url.split_once(' ').is_some_and(|(first, _)| looks_like_url(first)) {
        let message = "expected a URL, and behind it at most a time, a status or a comment, found a blank and other text: read the list as a table, by --format or the ending of its name: tsv if blanks are part of the URLs, csv with --separator ' ' if they separate fields";
        return Err(BadItem::new("words", message, line));
    }
    // Most lists are nothing but URLs.
    if ts.is_empty() && status.is_empty() {
        return Ok(Some(UrlRecord::bare(url)));
    }
    let named = [("ts", ts), ("status", status)];
    let roles = Roles::of(options, false, named.iter().map(|(name, _)| *name));
    let mut fields = roles.fields();
    fields.set_url(url);
    for (role, (name, text)) in roles.each.iter().zip(named).filter(|(_, (_, text))| !text.is_empty()) {
        fields.put(*role, name, Value::Text(text));
    }
    Ok(fields.finish())
}

/// A line of a list; what it does not have is empty.
struct Columns<'a> {
    url: &'a str,
    ts: &'a str,
    status: &'a str,
}

/// Cuts off what stands behind a URL.
fn columns(text: &str) -> Columns<'_> {
    let (before, status) = before_status(text).unwrap_or((text, ""));
    let (url, ts) = before.split_once('\t').or_else(|| before_time(before)).unwrap_or((before, ""));
    // The status may also come in front of the time.
    let (url, status) = before_status(url).filter(|_| status.is_empty()).unwrap_or((url, status));
    let (url, ts) = (url.trim(), ts.trim());
    // Where blanks are left in front of it, the number is one more word of an address that was not escaped.
    if !status.is_empty() && (url.contains(char::is_whitespace) || !looks_like_url(url)) {
        let (url, ts) = text.split_once('\t').or_else(|| before_time(text)).unwrap_or((text, ""));
        return Columns { url: url.trim(), ts: ts.trim(), status: "" };
    }
    Columns { url, ts, status }
}

/// What stands before a blank or tab and an HTTP status: CDX servers answer `fl=original,statuscode` so, and crawlers write such logs. As
/// part of the URL, it would make it that of a page that does not exist.
fn before_status(text: &str) -> Option<(&str, &str)> {
    let (before, status) = text.split_at_checked(text.len().checked_sub(STATUS)?)?;
    before.strip_suffix([' ', '\t']).filter(|_| is_status(status)).map(|before| (before.trim_end(), status))
}

/// What stands before a blank and a time of 14 digits: CDX servers answer `fl=original,timestamp` so. As part of the URL, the blank
/// would be escaped and the time would make it the URL of a page that does not exist.
fn before_time(text: &str) -> Option<(&str, &str)> {
    let (before, time) = text.split_at_checked(text.len().checked_sub(CDX_TIME)?)?;
    before.strip_suffix(' ').filter(|_| is_time(time)).map(|url| (url, time))
}

fn is_status(word: &str) -> bool {
    word.len() == STATUS && word.starts_with(['1', '2', '3', '4', '5']) && word.bytes().all(|b| b.is_ascii_digit())
}

fn is_time(word: &str) -> bool {
    word.len() == CDX_TIME && word.bytes().all(|b| b.is_ascii_digit()) && UnixMillis::parse(word).is_ok()
}

/// Whether a text holds a character that ends lines to some programs.
fn has_odd_end(text: &str) -> bool {
    memchr::memchr3(0, 0xb, 0xc, text.as_bytes()).is_some()
        || !text.is_ascii() && text.contains(['\u{85}', '\u{2028}', '\u{2029}'])
}

/// A line up to a `#` behind white space. As a fragment it would leave an escaped space at the end of the URL.
fn without_comment(text: &str) -> &str {
    let begins = |at: &usize| text.get(..*at).is_some_and(|before| before.ends_with(char::is_whitespace));
    let comment = memchr::memchr_iter(b'#', text.as_bytes()).find(begins);
    comment.and_then(|at| text.get(..at)).map_or(text, str::trim_end)
}

/// `com,example)/a 20260624010203 {"url": …}`.
fn cdxj(options: &Options, line: &[u8]) -> Result<UrlRecord, BadItem> {
    let text = text_of(line);
    let mut parts = text.splitn(3, ' ');
    let (Some(key), Some(ts), Some(json)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(BadItem::new("cdxj", "expected a key, a time and a json object", line));
    };
    let ts = UnixMillis::parse(ts).map_err(|e| BadItem::new("cdxj", e.to_string(), line))?;
    let mut fields = json::object(options, true, json).map_err(|e| not_json(e, line))?;
    fields.set_ts(ts);
    fields.set_url_of_key(key);
    fields.finish().ok_or_else(|| no_url(line))
}

/// The record of a JSON object.
pub(crate) fn object(options: &Options, is_cdx: bool, json: &str, line: &[u8]) -> Result<UrlRecord, BadItem> {
    let fields: Fields = json::object(options, is_cdx, json).map_err(|e| not_json(e, line))?;
    fields.finish().ok_or_else(|| no_url(line))
}

fn not_json(error: serde_json::Error, line: &[u8]) -> BadItem {
    BadItem::new("json", format!("expected a json object: {error}"), line)
}

fn no_url(line: &[u8]) -> BadItem {
    BadItem::new("no_url", "expected a text under \"url\", found none", line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_model::Place;

    fn one(format: Format, line: &[u8]) -> Result<UrlRecord, BadItem> {
        parse(format, &Options::default(), &mut None, line).map(Option::unwrap)
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
        assert_eq!(url(b"http://a.com/ 19700101000001"), with_ts);
        assert_eq!(url(b"http://a.com/19700101000001"), UrlRecord::bare("http://a.com/19700101000001"));
        let never = UrlRecord { extras: Some(r#"{"ts":"never \"so\""}"#.into()), ..UrlRecord::bare("http://a.com/") };
        assert_eq!(url(b"http://a.com/\tnever \"so\""), never);
        assert_eq!(url(br#" {"url":"http://a.com/","ts":1}"#), with_ts);
        for breaks in [
            "http://a.com/\0http://b.com/",
            "http://a.com/\0",
            "\0",
            "a.com/\u{2028}b.com/",
            "a.com/\u{85}b",
            "a\u{b}b",
        ] {
            assert_eq!(one(Format::Lines, breaks.as_bytes()).unwrap_err().code, "line_end", "{breaks:?}");
        }
        for header in ["url", " URL\t", "Domain"] {
            assert_eq!(one(Format::Lines, header.as_bytes()).unwrap_err().code, "header", "{header:?}");
        }
        for several in ["http://a.com/ http://b.com/", "http://a.com/?x=1\u{a0}https://b.com/", "a.com\tftp://b.com/"] {
            assert_eq!(one(Format::Lines, several.as_bytes()).unwrap_err().code, "several", "{several:?}");
        }
        // A hosts file is no list of URLs, unless it is one of addresses with times.
        for blocked in ["0.0.0.0\tads.a.com", "127.0.0.1\tlocalhost", "::1\ta.com b.com"] {
            assert_eq!(one(Format::Lines, blocked.as_bytes()).unwrap_err().code, "several", "{blocked:?}");
        }
        // As Hive writes tables, and as ASCII has it.
        for fields in ["17\ta.com", "http://a.com/\u{1}title\u{1}200", "1\u{1}http://a.com/", "http://a.com/\u{1f}x"] {
            assert_eq!(one(Format::Lines, fields.as_bytes()).unwrap_err().code, "columns", "{fields:?}");
        }
        assert_eq!(url(b"127.0.0.1\t1970-01-01T00:00:01Z").ts, Some(UnixMillis(1000)));
        assert_eq!(url(b"http://a.com/ -"), UrlRecord::bare("http://a.com/"));
        for (line, expected) in [
            ("http://a.com/ # why", "http://a.com/"),
            ("http://a.com/\t# why http://b.com/", "http://a.com/"),
            ("http://a.com/#x #y", "http://a.com/#x"),
            ("http://a.com/?u=http://b.com/", "http://a.com/?u=http://b.com/"),
            ("http://a.com/a\u{3000}b", "http://a.com/a\u{3000}b"),
            ("http://a.com/\u{2028}\u{85}\u{b}", "http://a.com/"),
        ] {
            assert_eq!(url(line.as_bytes()), UrlRecord::bare(expected), "{line:?}");
        }
        for nothing in [&b""[..], b" \t", b" # http://a.com/"] {
            assert_eq!(parse(Format::Lines, &Options::default(), &mut None, nothing), Ok(None));
        }
    }

    /// The blank was escaped and the status became part of the path.
    #[test]
    fn a_status_behind_a_url_is_not_part_of_it() {
        let url = |text: &str| one(Format::Lines, text.as_bytes()).unwrap();
        let found = UrlRecord { status: Some(200), ..UrlRecord::bare("http://a.com/") };
        let dated = UrlRecord { ts: Some(UnixMillis(1000)), ..found.clone() };
        for line in ["http://a.com/ 200", "http://a.com/\t200", "http://a.com/   200 ", "http://a.com/ 200 # why"] {
            assert_eq!(url(line), found, "{line:?}");
        }
        for line in [
            "http://a.com/ 19700101000001 200",
            "http://a.com/ 200 19700101000001",
            "http://a.com/\t1970-01-01T00:00:01Z\t200",
        ] {
            assert_eq!(url(line), dated, "{line:?}");
        }
        assert_eq!(url("a.com 404"), UrlRecord { status: Some(404), ..UrlRecord::bare("a.com") });
        for line in ["http://a.com/200", "room 200"] {
            assert_eq!(url(line), UrlRecord::bare(line), "{line:?}");
        }
        let seed = parse(Format::Lines, &Options::crawl(), &mut None, b"http://a.com/ 200").unwrap().unwrap();
        assert_eq!((seed.url.as_str(), seed.extras.as_deref()), ("http://a.com/", Some(r#"{"status":"200"}"#)));
    }

    /// What other programs print behind a URL was escaped and became part of it, with exit code 0.
    #[test]
    fn words_behind_a_url_are_not_part_of_it() {
        for line in [
            "http://a.com/ [200] [Example Domain]",
            "http://a.com/admin (Status: 200) [Size: 7]",
            "http://a.com/ 200 0.123",
            "http://a.com/ 200 1234",
            "http://a.com/ - Example Domain",
            "http://a.com/ Example Domain",
            "http://a.com/ 600",
            "http://a.com/ 19701301000001",
            "http://a.com/my file 200",
            "http://a.com/my file\t2026",
            "http://a.com/a b",
            "a.com/x Example Domain",
        ] {
            assert_eq!(one(Format::Lines, line.as_bytes()).unwrap_err().code, "words", "{line:?}");
            let seed = parse(Format::Lines, &Options::crawl(), &mut None, line.as_bytes());
            assert_eq!(seed.unwrap_err().code, "words", "{line:?}");
        }
        // A line without any URL is for the URL parser to refuse.
        assert_eq!(one(Format::Lines, b"not a url").unwrap(), UrlRecord::bare("not a url"));
        let json = br#"{"url":"http://a.com/a b"}"#;
        assert_eq!(one(Format::Lines, json).unwrap(), UrlRecord::bare("http://a.com/a b"));
    }

    #[test]
    fn lines_with_tabs() {
        assert_eq!(one(Format::Lines, b"\t http://a.com/ \t2026\r").unwrap().url, "http://a.com/");
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
        let meta = |line: &[u8]| parse(Format::Lines, &Options::crawl(), &mut None, line).unwrap().unwrap().extras;
        let line =
            br#"{"z": 1.0, "url": "http://a.example/", "status": 200, "a": {"b": [1, "\u0041"]}, "host":"\u0041"}"#;
        assert_eq!(meta(line).as_deref(), Some(r#"{"z":1.0,"status":200,"a":{"b": [1, "\u0041"]},"host":"\u0041"}"#));
        assert_eq!(meta(br#"{"url":"http://a.example/"}"#), None);
        assert_eq!(meta(b"http://a.example/\t2026").as_deref(), Some(r#"{"ts":"2026"}"#));
    }

    /// What the index server of Common Crawl answers, with `output=json`.
    #[test]
    fn answers_of_a_cdx_server() {
        let line = br#"{"urlkey": "com,example)/", "timestamp": "20240519004320", "url": "https://example.com/", "mime": "text/html", "mime-detected": "text/html", "status": "200", "digest": "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ", "length": "1229", "offset": "14332155", "filename": "crawl-data/CC-MAIN-2024-22/segments/1/warc/x.warc.gz", "languages": "eng", "encoding": "UTF-8"}"#;
        let record = one(Format::Jsonl, line).unwrap();
        assert_eq!(
            record.place,
            Some(Place::new("crawl-data/CC-MAIN-2024-22/segments/1/warc/x.warc.gz", 14_332_155, 1229))
        );
        assert_eq!((record.status, record.content_type.as_deref()), (Some(200), Some("text/html")));
        assert_eq!(record.ts, UnixMillis::parse("20240519004320").ok());
        assert!(record.digest.is_some());
        let extras = r#"{"urlkey":"com,example)/","mime-detected":"text/html","languages":"eng","encoding":"UTF-8"}"#;
        assert_eq!(record.extras.as_deref(), Some(extras));
    }

    #[test]
    fn answers_of_a_cdx_server_without_the_key() {
        let line = br#"{"timestamp": "20240224110114", "url": "http://a.com/", "mime": "text/html", "status": "200", "length": "10", "offset": "5", "filename": "x.warc.gz"}"#;
        let record = one(Format::Jsonl, line).unwrap();
        assert_eq!(record.place, Some(Place::new("x.warc.gz", 5, 10)));
        assert_eq!((record.content_type.as_deref(), record.extras), (Some("text/html"), None));
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
        assert_eq!(parse(Format::Cdxj, &Options::default(), &mut None, b"!OpenWayback-CDXJ 1.0"), Ok(None));
        let escaped = cdxj_line(b"com,a)/ 2026 {\"url\": \"http://a.com/\xe4\"}").unwrap();
        assert_eq!(escaped.url, "http://a.com/%E4");
        assert_eq!(cdxj_line(b"com,a)/ 2026").unwrap_err().code, "cdxj");
        assert_eq!(cdxj_line(b"com,a)/ soon {}").unwrap_err().code, "cdxj");
        // Without its URL a line has one by its key.
        let by_key = cdxj_line(br#"com,a,www)/b?c=1 2026 {"status":"404"}"#).unwrap();
        assert_eq!((by_key.url.as_str(), by_key.status), ("http://www.a.com/b?c=1", Some(404)));
        assert_eq!(by_key.extras.as_deref(), Some(r#"{"urlkey":"com,a,www)/b?c=1"}"#));
        assert_eq!(cdxj_line(b"nonsense 2026 {}").unwrap_err().code, "no_url");
    }
}
