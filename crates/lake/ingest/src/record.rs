//! A row on its way through the sort: one byte string that sorts as rows do.
//!
//! ```text
//!  domain prefix   0 or 1 byte: the part of domain_id by which files are split
//!  domain          text, 00
//!  SURT key        text, 00                  host and path_query come back out of it
//!  ts              00, or 01 and 8 bytes big-endian with the sign bit flipped: absent first
//!  scheme          1 byte: ftp 0, http 1, https 2
//!  port            3 bytes big-endian: absent 0, else port + 1
//!  raw URL         00 if it is the normalised one, else 01, text with 00 as 00 01, then 00 00
//!  the rest        1 byte of flags, then each field that is there: varints, and texts with their length before them
//! ```
//! Bytes compare as the rows do by (domain, SURT key, ts, scheme, port, raw URL), absent before present; the rest breaks
//! ties, so that equal inputs give equal files whichever thread was faster.

use std::borrow::Cow;
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;
use trawl_model::{Place, UnixMillis, UrlRecord};
use trawl_rows::{Row, Shape};
use trawl_url::{LakeUrl, domain_id};

const SCHEMES: [&str; 3] = ["ftp", "http", "https"];
/// Longest text in a record; a source's own limits are far below.
const MAX_TEXT: usize = 1 << 30;

const STATUS: u8 = 1;
const CONTENT_TYPE: u8 = 1 << 1;
const DIGEST: u8 = 1 << 2;
const BODY_LENGTH: u8 = 1 << 3;
const PLACE: u8 = 1 << 4;
const EXTRAS: u8 = 1 << 5;
const CAPTURE: u8 = STATUS | CONTENT_TYPE | DIGEST | BODY_LENGTH | PLACE;

/// The part of `domain_id` by which files are split, for 0, 1 or 2 hex digits.
fn prefix_byte(domain: &str, digits: u8) -> Option<u8> {
    let top = domain_id(domain).to_be_bytes()[0];
    match digits {
        0 => None,
        1 => Some(top >> 4),
        _ => Some(top),
    }
}

/// The value of `domain_prefix=` a record belongs to, made anew only where it changes.
#[derive(Debug, Default)]
pub(crate) struct Prefix {
    byte: Option<u8>,
    text: String,
}

impl Prefix {
    pub fn of(&mut self, record: &[u8], digits: u8) -> &str {
        let byte = record.first().copied().filter(|_| digits > 0);
        if self.text.is_empty() || self.byte != byte {
            self.byte = byte;
            self.text = match (digits, byte) {
                (_, None) => "all".to_owned(),
                (1, Some(byte)) => format!("{byte:x}"),
                (_, Some(byte)) => format!("{byte:02x}"),
            };
        }
        &self.text
    }
}

/// The host of the row before: sorted rows mostly have the same.
#[derive(Debug, Default)]
pub(crate) struct Host {
    reversed: String,
    name: String,
}

impl Host {
    /// The name of a host that has its labels reversed and joined by commas.
    fn of(&mut self, reversed: &str) -> &str {
        if self.reversed != reversed {
            reversed.clone_into(&mut self.reversed);
            self.name.clear();
            for (i, label) in reversed.rsplit(',').enumerate() {
                if i > 0 {
                    self.name.push('.');
                }
                self.name.push_str(label);
            }
        }
        &self.name
    }
}

/// Appends the sortable bytes of a record whose normalised URL is `url`. The error is a reason code.
/// `key` is room for the SURT key, so that rows need none of their own.
pub(crate) fn encode(
    url: &LakeUrl,
    record: &UrlRecord,
    digits: u8,
    key: &mut String,
    out: &mut Vec<u8>,
) -> Result<Shape, &'static str> {
    out.extend(prefix_byte(url.domain(), digits));
    out.extend(url.domain().as_bytes());
    out.push(0);
    key.clear();
    url.surt_into(key);
    // No normalised URL holds a zero byte; one that did would sort and decode wrongly.
    if memchr::memchr(0, key.as_bytes()).is_some() {
        return Err("control");
    }
    out.extend(key.as_bytes());
    out.push(0);
    match record.ts {
        None => out.push(0),
        Some(UnixMillis(ms)) => {
            out.push(1);
            out.extend((ms ^ i64::MIN).to_be_bytes());
        }
    }
    let scheme = SCHEMES.iter().position(|s| *s == url.scheme()).and_then(|i| u8::try_from(i).ok());
    out.push(scheme.ok_or("scheme")?);
    let port = url.port().map_or(0, |port| u32::from(port) + 1).to_be_bytes();
    out.extend(port.iter().skip(1));
    let raw_url = record.url != url.as_str();
    out.push(u8::from(raw_url));
    if raw_url {
        push_escaped(record.url.as_bytes(), out);
    }
    let shape = push_rest(record, out)?;
    Ok(Shape { raw_url, ..shape })
}

fn push_rest(record: &UrlRecord, out: &mut Vec<u8>) -> Result<Shape, &'static str> {
    let number = |n: u64| i64::try_from(n).map(|_| n).map_err(|_| "number_too_large");
    let extras = extras_of(record);
    let flag = |bit, there: bool| if there { bit } else { 0 };
    let flags = flag(STATUS, record.status.is_some())
        | flag(CONTENT_TYPE, record.content_type.is_some())
        | flag(DIGEST, record.digest.is_some())
        | flag(BODY_LENGTH, record.body_length.is_some())
        | flag(PLACE, record.place.is_some())
        | flag(EXTRAS, extras.is_some());
    out.push(flags);
    if let Some(status) = record.status {
        put_uvarint(out, u64::from(status));
    }
    if let Some(text) = &record.content_type {
        push_text(text, out);
    }
    if let Some(digest) = &record.digest {
        push_text(&digest.column(), out);
    }
    if let Some(length) = record.body_length {
        put_uvarint(out, number(length)?);
    }
    if let Some(Place { file, offset, length, .. }) = &record.place {
        push_text(file, out);
        put_uvarint(out, number(*offset)?);
        put_uvarint(out, number(*length)?);
    }
    if let Some(text) = &extras {
        push_text(text, out);
    }
    Ok(Shape { capture: flags & CAPTURE != 0, extras: extras.is_some(), raw_url: false })
}

/// The extras, with the place inside a compressed block, which has no column, put first.
fn extras_of(record: &UrlRecord) -> Option<Cow<'_, str>> {
    let index = record.place.as_ref().map_or(0, |place| place.index);
    let extras = record.extras.as_deref().map(str::trim).filter(|text| !text.is_empty() && *text != "{}");
    match (index, extras) {
        (0, extras) => extras.map(Cow::Borrowed),
        (index, None) => Some(Cow::Owned(format!("{{\"warc_index\":{index}}}"))),
        (index, Some(text)) => match text.strip_prefix('{') {
            Some(rest) => Some(Cow::Owned(format!("{{\"warc_index\":{index},{rest}"))),
            None => Some(Cow::Borrowed(text)),
        },
    }
}

fn push_text(text: &str, out: &mut Vec<u8>) {
    put_uvarint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(0, rest) {
        let (before, after) = rest.split_at(at);
        out.extend(before);
        out.extend([0, 1]);
        rest = after.get(1..).unwrap_or_default();
    }
    out.extend(rest);
    out.extend([0, 0]);
}

/// Reads a record back. `None` means that the sort handed out something else than it was given.
pub(crate) fn decode<'a>(record: &'a [u8], digits: u8, host: &'a mut Host) -> Option<Row<'a>> {
    let mut reader = SliceReader::new(record);
    if digits > 0 {
        reader.u8("domain prefix").ok()?;
    }
    let domain = text(zero_ended(&mut reader)?)?;
    let key = text(zero_ended(&mut reader)?)?;
    let ts = match reader.u8("ts").ok()? {
        0 => None,
        _ => Some(UnixMillis(i64::from_be_bytes(reader.array("ts").ok()?) ^ i64::MIN)),
    };
    let scheme = *SCHEMES.get(usize::from(reader.u8("scheme").ok()?))?;
    let [a, b, c] = reader.array::<3>("port").ok()?;
    let port = u32::from_be_bytes([0, a, b, c]).checked_sub(1).and_then(|port| u16::try_from(port).ok());
    let raw_url = match reader.u8("raw url").ok()? {
        0 => None,
        _ => Some(escaped(&mut reader)?),
    };
    let flags = reader.u8("flags").ok()?;
    let (host, path_query) = split_key(key, host);
    let mut row = Row { domain, key, scheme, host, port, path_query, ts, raw_url, ..Row::default() };
    if flags & STATUS != 0 {
        row.status = Some(u16::try_from(number(&mut reader)?).ok()?);
    }
    if flags & CONTENT_TYPE != 0 {
        row.content_type = Some(prefixed(&mut reader)?);
    }
    if flags & DIGEST != 0 {
        row.digest = Some(prefixed(&mut reader)?);
    }
    if flags & BODY_LENGTH != 0 {
        row.body_length = Some(number(&mut reader)?);
    }
    if flags & PLACE != 0 {
        row.place = Some((prefixed(&mut reader)?, number(&mut reader)?, number(&mut reader)?));
    }
    if flags & EXTRAS != 0 {
        row.extras = Some(prefixed(&mut reader)?);
    }
    Some(row)
}

/// Host and path of a SURT key. Names have their labels reversed and joined by commas; an IP literal has no comma.
fn split_key<'a>(key: &'a str, host: &'a mut Host) -> (&'a str, &'a str) {
    let (reversed, path_query) = key.split_once(')').unwrap_or((key, "/"));
    (host.of(reversed), path_query)
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn zero_ended<'a>(reader: &mut SliceReader<'a>) -> Option<&'a [u8]> {
    let len = memchr::memchr(0, reader.rest())?;
    let bytes = reader.take(len, "text").ok()?;
    reader.u8("end of text").ok()?;
    Some(bytes)
}

fn escaped<'a>(reader: &mut SliceReader<'a>) -> Option<Cow<'a, str>> {
    let first = zero_ended(reader)?;
    if reader.u8("end of text").ok()? == 0 {
        return text(first).map(Cow::Borrowed);
    }
    let mut bytes = first.to_vec();
    loop {
        bytes.push(0);
        bytes.extend(zero_ended(reader)?);
        if reader.u8("end of text").ok()? == 0 {
            return String::from_utf8(bytes).ok().map(Cow::Owned);
        }
    }
}

fn prefixed<'a>(reader: &mut SliceReader<'a>) -> Option<&'a str> {
    text(reader.prefixed(MAX_TEXT, "text").ok()?)
}

fn number(reader: &mut SliceReader<'_>) -> Option<i64> {
    i64::try_from(reader.uvarint("number").ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trawl_model::Digest;
    use trawl_url::SuffixList;

    fn encoded(record: &UrlRecord, digits: u8) -> Vec<u8> {
        let url = LakeUrl::parse(&record.url, SuffixList::builtin()).unwrap();
        let mut out = Vec::new();
        encode(&url, record, digits, &mut String::new(), &mut out).unwrap();
        out
    }

    fn full(url: &str) -> UrlRecord {
        UrlRecord {
            url: url.into(),
            ts: Some(UnixMillis(-5)),
            status: Some(404),
            content_type: Some("text/html".into()),
            digest: Some(Digest::sha1([7; 20])),
            body_length: Some(12),
            place: Some(Place::new("a.warc.gz", 9, 10)),
            extras: Some("{\"a\":1}".into()),
        }
    }

    #[test]
    fn everything_comes_back() {
        let record = full("HTTP://www.Example.co.uk:8080/a?b=1#c");
        let mut host = Host::default();
        for digits in 0..=2 {
            let bytes = encoded(&record, digits);
            let row = decode(&bytes, digits, &mut host).unwrap();
            assert_eq!((row.domain, row.host, row.path_query), ("example.co.uk", "www.example.co.uk", "/a?b=1"));
            assert_eq!((row.scheme, row.port, row.ts), ("http", Some(8080), record.ts));
            assert_eq!(row.key, "uk,co,example,www)/a?b=1");
            assert_eq!(row.raw_url.as_deref(), Some(&*record.url));
            assert_eq!((row.status, row.content_type, row.body_length), (Some(404), Some("text/html"), Some(12)));
            assert_eq!(row.digest, Some(&*record.digest.as_ref().unwrap().column()));
            assert_eq!((row.place, row.extras), (Some(("a.warc.gz", 9, 10)), Some("{\"a\":1}")));
            let mut prefix = Prefix::default();
            assert_eq!(prefix.of(&bytes, digits), trawl_url::domain_prefix(domain_id("example.co.uk"), digits));
        }
    }

    #[test]
    fn hosts_of_every_kind_come_back() {
        let mut host = Host::default();
        for url in [
            "http://localhost/",
            "http://192.0.2.1/x",
            "http://[2001:db8::1]:81/",
            "ftp://a.b.c.d.e/",
            "http://x.com./",
        ] {
            let bytes = encoded(&UrlRecord::bare(url), 0);
            let row = decode(&bytes, 0, &mut host).unwrap();
            let lake = LakeUrl::parse(url, SuffixList::builtin()).unwrap();
            assert_eq!(LakeUrl::from_parts(row.scheme, row.host, row.port, row.path_query), lake.as_str());
            assert_eq!(row.raw_url.is_none(), url == lake.as_str());
        }
    }

    #[test]
    fn a_place_inside_a_block_goes_to_the_extras() {
        let mut record = full("http://a.com/");
        record.place.as_mut().unwrap().index = 3;
        assert_eq!(
            decode(&encoded(&record, 0), 0, &mut Host::default()).unwrap().extras,
            Some("{\"warc_index\":3,\"a\":1}")
        );
        record.extras = None;
        assert_eq!(decode(&encoded(&record, 0), 0, &mut Host::default()).unwrap().extras, Some("{\"warc_index\":3}"));
    }

    #[test]
    fn numbers_too_large_for_their_columns_are_refused() {
        let url = LakeUrl::parse("http://a.com/", SuffixList::builtin()).unwrap();
        let record = UrlRecord { body_length: Some(u64::MAX), ..UrlRecord::bare("http://a.com/") };
        assert_eq!(encode(&url, &record, 0, &mut String::new(), &mut Vec::new()), Err("number_too_large"));
    }

    fn any_record() -> impl Strategy<Value = UrlRecord> {
        let url = "(http|https)://([ab]\\.)?[ab]\\.(com|co\\.uk)(:8[01])?/[a-b%\u{0}]{0,3}(#x)?";
        (url, proptest::option::of(-2i64..3), proptest::option::of(0u16..3)).prop_map(|(url, ts, status)| UrlRecord {
            ts: ts.map(UnixMillis),
            status,
            ..UrlRecord::bare(url)
        })
    }

    proptest! {
        #[test]
        fn bytes_sort_as_rows_do(a in any_record(), b in any_record()) {
            let psl = SuffixList::builtin();
            let rank = |r: &UrlRecord| {
                let url = LakeUrl::parse(&r.url, psl).unwrap();
                let raw = (r.url != url.as_str()).then(|| r.url.clone());
                (url.domain().to_owned(), url.surt(), r.ts, url.scheme().to_owned(), url.port(), raw)
            };
            if LakeUrl::parse(&a.url, psl).is_ok() && LakeUrl::parse(&b.url, psl).is_ok() {
                let by_rank = rank(&a).cmp(&rank(&b));
                let by_bytes = encoded(&a, 0).cmp(&encoded(&b, 0));
                prop_assert!(by_rank == by_bytes || by_rank.is_eq());
                let bytes = encoded(&a, 2);
                let mut host = Host::default();
                let row = decode(&bytes, 2, &mut host).unwrap();
                let raw = row.raw_url.clone().unwrap_or_else(|| {
                    LakeUrl::from_parts(row.scheme, row.host, row.port, row.path_query).into()
                });
                prop_assert_eq!(&*raw, &*a.url);
                prop_assert_eq!(row.status, a.status);
            }
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut host = Host::default();
            let _ = decode(&bytes, 0, &mut host);
            let _ = decode(&bytes, 1, &mut host);
        }
    }
}
