//! Sitemaps (XML, text, index, gzip) and feeds (RSS 2.0, RSS 1.0, Atom): lists of URLs with dates.
//!
//! ```
//! # use trawl_lists::sitemap::{Kind, Options, parse};
//! # use trawl_model::UnixMillis;
//! let xml = b"<urlset><url><loc>http://h.example/a?b&amp;c</loc><lastmod>2026-01-02</lastmod></url><url><loc>http:/";
//! let document = parse(xml, "http://h.example/sitemap.xml", UnixMillis(0), &Options::default()).unwrap();
//! assert_eq!(document.kind, Kind::Urls);
//! assert_eq!(document.entries[0].url.as_str(), "http://h.example/a?b&c");
//! assert!(document.damaged); // and what was read is kept
//! ```

mod base;
pub(crate) mod elements;

pub(crate) use base::is_relative;

use std::borrow::Cow;
use std::io::Read;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use trawl_io::Compression;
use trawl_model::UnixMillis;
use trawl_url::{Base, WebUrl, push_surrogate, text_of};

use crate::Error;

/// What a document is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A sitemap: its entries are pages.
    Urls,
    /// An index: its entries are sitemaps.
    Index,
    /// A text file with one URL a line.
    Text,
    /// An RSS feed, 2.0 or 1.0: its entries are items.
    Rss,
    /// An Atom feed.
    Atom,
}

/// One URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The absolute URL, without fragment.
    pub url: WebUrl,
    /// When it last changed, as the document says.
    pub lastmod: Option<UnixMillis>,
}

/// A document that was read, maybe in part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// What it is.
    pub kind: Kind,
    /// Its URLs in order; repetitions are kept.
    pub entries: Vec<Entry>,
    /// The date of a feed as a whole.
    pub updated: Option<UnixMillis>,
    /// Entries that are no web URLs.
    pub not_web: u64,
    /// Whether there was more than the limits allow.
    pub over_limit: bool,
    /// Entries past the number that is kept.
    pub left_out: u64,
    /// Whether it ended in the middle, or its compression was broken.
    pub damaged: bool,
}

/// How much to read.
#[derive(Clone, Debug)]
pub struct Options {
    /// Entries kept; 50,000, as sitemaps.org has it.
    pub max_urls: usize,
    /// Bytes read, after decompression; 50 MiB, as sitemaps.org has it.
    pub max_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { max_urls: 50_000, max_bytes: 50 << 20 }
    }
}

/// Reads a sitemap or feed that was found at `url`; gzip is recognised by its first bytes. `now` settles years of two digits.
///
/// # Errors
///
/// If the document is neither: no known root element, and no line of it is a URL.
pub fn parse(bytes: &[u8], url: &str, now: UnixMillis, options: &Options) -> Result<Document, Error> {
    let mut document = Document {
        kind: Kind::Text,
        entries: Vec::new(),
        updated: None,
        not_web: 0,
        over_limit: false,
        left_out: 0,
        damaged: false,
    };
    let plain = match Compression::detect(bytes) {
        Compression::Gzip => Cow::Owned(gunzip(bytes, options.max_bytes, &mut document)),
        _ => Cow::Borrowed(bytes),
    };
    let plain = match plain.get(..options.max_bytes) {
        Some(head) if head.len() < plain.len() => {
            document.over_limit = true;
            head
        }
        _ => &plain,
    };
    let (text, encoding) = decoded(plain);
    let base = Base::new(url).ok();
    if text.trim_ascii_start().first() != Some(&b'<') {
        let mut target = Target { document, base, max_urls: options.max_urls };
        lines(&text, encoding, &mut target)?;
        return Ok(target.document);
    }
    let over_limit = document.over_limit;
    let mut target = Target { document, base: base.clone(), max_urls: options.max_urls };
    let read = elements::read(&text, encoding, base, now, &mut |found| {
        if let Some(address) = &found.address {
            target.add(address, found.date);
        }
        true
    });
    let mut document = target.document;
    match read {
        Ok(seen) => {
            document.kind = seen.kind;
            document.updated = seen.updated;
            document.damaged |= seen.damaged;
        }
        // What was cut may have lost its first element.
        Err(Error::Document { offset: 0, .. }) if over_limit => {}
        Err(e) => return Err(e),
    }
    Ok(document)
}

/// Decompresses at most `limit` bytes and one more, so that the caller sees that there was more.
fn gunzip(bytes: &[u8], limit: usize, document: &mut Document) -> Vec<u8> {
    let mut out = Vec::new();
    let limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    if flate2::read::MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut out).is_err() {
        document.damaged = true;
    }
    out
}

/// The bytes as ASCII-compatible text, and their encoding: from a byte order mark, or from the XML declaration.
pub(crate) fn decoded(bytes: &[u8]) -> (Cow<'_, [u8]>, &'static Encoding) {
    match Encoding::for_bom(bytes) {
        Some((encoding, _)) if encoding == UTF_16LE || encoding == UTF_16BE => {
            let units = bytes.get(2..).unwrap_or_default().chunks(2).map(|unit| match unit {
                [a, b] if encoding == UTF_16LE => u16::from_le_bytes([*a, *b]),
                [a, b] => u16::from_be_bytes([*a, *b]),
                // Half a unit at the end stands for nothing.
                _ => 0xFFFD,
            });
            let mut text = String::with_capacity(bytes.len() / 2);
            for c in char::decode_utf16(units) {
                match c {
                    Ok(c) => text.push(c),
                    Err(lone) => push_surrogate(lone.unpaired_surrogate(), &mut text),
                }
            }
            (Cow::Owned(text.into_bytes()), UTF_8)
        }
        Some((encoding, mark)) => (Cow::Borrowed(bytes.get(mark..).unwrap_or_default()), encoding),
        None => (Cow::Borrowed(bytes), declared(bytes).unwrap_or(UTF_8)),
    }
}

/// A piece of a document as text, losing nothing: what is not in the encoding is escaped, so that two URLs stay two.
pub(crate) fn text<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> Cow<'a, str> {
    match encoding.decode_without_bom_handling_and_without_replacement(bytes) {
        Some(text) => text,
        None => text_of(bytes),
    }
}

/// The `encoding` of `<?xml … ?>`.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let declaration = bytes.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = declaration.iter().take(1024).position(|b| *b == b'>')?;
    let declaration = declaration.get(..end)?;
    let at = declaration.windows(8).position(|word| word.eq_ignore_ascii_case(b"encoding"))?;
    let label = declaration.get(at + 8..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (quote, label) = label.split_first()?;
    // A declaration that can be read as ASCII is not in UTF-16, whatever it says.
    let encoding = Encoding::for_label(label.split(|b| b == quote).next()?)?;
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}

/// A text sitemap.
fn lines(text: &[u8], encoding: &'static Encoding, target: &mut Target) -> Result<(), Error> {
    let whole = match target.document.over_limit || target.document.damaged {
        // The last line is likely half a URL.
        true => {
            text.iter().rposition(|b| matches!(b, b'\n' | b'\r')).and_then(|end| text.get(..end)).unwrap_or_default()
        }
        false => text,
    };
    for line in whole.split(|b| matches!(b, b'\n' | b'\r')).filter(|line| !line.trim_ascii().is_empty()) {
        let line = self::text(line, encoding);
        target.add(&line, None);
    }
    if target.document.entries.is_empty() && !target.document.over_limit {
        let text = text.get(..200).unwrap_or(text);
        let found = self::text(text, encoding);
        return Err(unknown(0, if found.trim().is_empty() { "nothing" } else { &found }));
    }
    Ok(())
}

fn unknown(offset: usize, found: &str) -> Error {
    let found = found.trim().chars().take(40).collect();
    Error::Document { offset, expected: "a sitemap or a feed", found }
}

/// Where entries go.
struct Target {
    document: Document,
    base: Option<Base>,
    max_urls: usize,
}

impl Target {
    /// Adds an entry if its text is a URL. One for which there is no room is counted: a report is to say how many are missing.
    fn add(&mut self, text: &str, lastmod: Option<UnixMillis>) {
        let text = text.trim();
        let resolved = match &self.base {
            // A path can only be meant relative to the document; anything else without a scheme is not a URL.
            Some(base) if text.starts_with('/') => base.resolve(text),
            _ => WebUrl::parse(text),
        };
        match resolved {
            Ok(_) if self.document.entries.len() >= self.max_urls => {
                self.document.over_limit = true;
                self.document.left_out += 1;
            }
            Ok(url) => self.document.entries.push(Entry { url, lastmod }),
            Err(_) => self.document.not_web += 1,
        }
    }
}
