//! Links out of HTML, from a stream of bytes in any encoding, in bounded memory.
//!
//! ```
//! # use trawl_parse::links::{Kind, Options, links};
//! let page = links(b"<base href=/d/><a href='x?a=1&amp;b' rel=nofollow>", "http://h.example/", None, &Options::default());
//! assert_eq!(page.links[0].url.as_str(), "http://h.example/d/x?a=1&b");
//! assert_eq!(page.links[0].kind, Kind::Anchor);
//! assert!(page.links[0].rel.nofollow);
//! ```
//!
//! The tokenizer is our own: it follows the HTML standard's states but keeps no tree, so that its memory is bounded by
//! construction; `docs/parsing.md` has the measurements that decided it.

mod attributes;
mod collect;
mod foreign;
mod names;
mod page;
mod raw;
mod srcset;
#[cfg(test)]
mod tests;
mod tokenizer;

use encoding_rs::{CoderResult, Decoder, Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};

use crate::charset::{self, Guesser, Source};
use crate::words;
use collect::Collector;
pub(crate) use collect::refresh;
pub use page::{Link, Page, Refresh};
use tokenizer::Tokenizer;

/// Where on the page a link stands, and so what it leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// `<a href>`.
    Anchor,
    /// `<area href>`.
    Area,
    /// `<iframe src>`, `<frame src>`.
    Frame,
    /// `<form action>` and `formaction`; only with [`Options::forms`].
    Form,
    /// `<meta http-equiv=refresh>`.
    Refresh,
    /// `<link rel=canonical>`.
    Canonical,
    /// `<link rel=next>`.
    Next,
    /// `<link rel=prev>`.
    Prev,
    /// `<link rel=alternate>`: the page in another language or form.
    Alternate,
    /// `<link rel=alternate>` with a feed's media type.
    Feed,
    /// Any other `<link href>`.
    Link,
    /// `<img>`, `srcset`, `<input type=image>`, `poster`, `background`.
    Image,
    /// `<video>`, `<audio>`, `<source>`, `<track>`.
    Media,
    /// `<script src>`.
    Script,
    /// `<link rel=stylesheet>`.
    Stylesheet,
    /// `<link rel=icon>` and its relatives.
    Icon,
    /// `<object data>`, `<embed src>`.
    Object,
    /// `<link rel=preload>`, `prefetch`, `modulepreload`, `manifest`.
    Resource,
}

impl Kind {
    /// Whether the target is part of the page rather than another page.
    pub fn is_embed(self) -> bool {
        use Kind::{Icon, Image, Media, Object, Resource, Script, Stylesheet};
        matches!(self, Image | Media | Script | Stylesheet | Icon | Object | Resource)
    }

    /// The kind of a `<link>` or `Link` header, by its `rel` words; `None` if it names nothing to fetch.
    pub(crate) fn of_link(rel: &[u8], media_type: &[u8]) -> Option<Kind> {
        collect::link_kind(rel, media_type)
    }
}

/// What the page says of its relation to a link's target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Rel {
    /// `nofollow`: the page does not vouch for the target.
    pub nofollow: bool,
    /// `ugc`: users wrote the link.
    pub ugc: bool,
    /// `sponsored`: the link was paid for.
    pub sponsored: bool,
}

impl Rel {
    pub(crate) fn parse(value: &[u8]) -> Rel {
        let has = |name: &str| words(value).any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
        Rel { nofollow: has("nofollow"), ugc: has("ugc"), sponsored: has("sponsored") }
    }
}

/// What to look for, and how much to keep.
#[derive(Clone, Debug)]
pub struct Options {
    /// Links kept of one page; 20,000.
    pub max_links: usize,
    /// Longest attribute that is kept; 32 KiB. A longer one counts as absent.
    pub max_attribute_bytes: usize,
    /// Bytes of all links together; 8 MiB.
    pub max_total_bytes: usize,
    /// Images, scripts, styles and so on too; yes.
    pub embeds: bool,
    /// Targets of forms too; no.
    pub forms: bool,
    /// Links inside `<template>` too; no, since they are no part of the page.
    pub templates: bool,
    /// The product token whose `<meta name=…>` is read beside `robots`; none.
    pub agent: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            max_links: 20_000,
            max_attribute_bytes: 32 << 10,
            max_total_bytes: 8 << 20,
            embeds: true,
            forms: false,
            templates: false,
            agent: None,
        }
    }
}

/// The links of a whole page in memory. `content_type` is the header's value, for its charset.
pub fn links(html: &[u8], base_url: &str, content_type: Option<&str>, options: &Options) -> Page {
    let mut extractor = LinkExtractor::new(options.clone(), content_type);
    extractor.push(html);
    extractor.finish(base_url)
}

/// Takes a page in pieces of any size.
#[derive(Debug)]
pub struct LinkExtractor {
    tokenizer: Tokenizer,
    collector: Collector,
    input: Input,
    header: Option<&'static Encoding>,
    bom: Option<&'static Encoding>,
    guesser: Guesser,
}

/// How the bytes reach the tokenizer.
enum Input {
    /// The first bytes, until there are enough to tell.
    Head(Vec<u8>),
    /// As they are: every encoding but the three below agrees with ASCII on the bytes that matter to the tokenizer.
    Bytes,
    /// UTF-16 or ISO-2022-JP, through a decoder.
    Decoded(Box<Decoder>),
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Input::Head(_) => "Head",
            Input::Bytes => "Bytes",
            Input::Decoded(_) => "Decoded",
        })
    }
}

/// Whether a media type (no parameters) makes a page XML.
fn is_xml(media_type: &str) -> bool {
    let media_type = media_type.trim().to_ascii_lowercase();
    matches!(media_type.as_str(), "text/xml" | "application/xml") || media_type.ends_with("+xml")
}

/// Whether XML is a page, by its first bytes: whether its first element is `html`, of any prefix.
pub fn root_is_html(start: &[u8]) -> bool {
    root_name(start).is_some_and(|name| name.eq_ignore_ascii_case(b"html"))
}

/// The name of the first element of XML, as it is written, without its prefix; `None` if these bytes do not begin as XML.
pub fn root_name(start: &[u8]) -> Option<&[u8]> {
    let after = |text: &'_ [u8], end: &[u8]| text.windows(end.len()).position(|w| w == end).map(|at| at + end.len());
    let mut rest = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    while let Some(end) = match rest {
        [b'<', b'?', ..] => after(rest, b"?>"),
        [b'<', b'!', b'-', b'-', ..] => after(rest, b"-->"),
        // A document type may hold declarations of its own.
        [b'<', b'!', ..] => match after(rest, b">").zip(after(rest, b"[")) {
            Some((end, inner)) if inner < end => after(rest, b"]>"),
            _ => after(rest, b">"),
        },
        _ => None,
    } {
        rest = rest.get(end..).unwrap_or_default().trim_ascii_start();
    }
    let name = rest.strip_prefix(b"<")?.split(|b| b.is_ascii_whitespace() || matches!(b, b'>' | b'/')).next()?;
    name.rsplit(|b| *b == b':').next()
}

/// Browsers look for an encoding in this many bytes before they start.
const HEAD_BYTES: usize = 1024;

impl LinkExtractor {
    /// Starts a page. `content_type` is the header's value, for its charset.
    pub fn new(options: Options, content_type: Option<&str>) -> Self {
        let end = |c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace();
        let is_xml = |value: &str| value.trim_start().split(end).next().is_some_and(is_xml);
        LinkExtractor {
            tokenizer: Tokenizer::new(options.max_attribute_bytes).xml(content_type.is_some_and(is_xml)),
            collector: Collector::new(options),
            input: Input::Head(Vec::new()),
            header: content_type.and_then(charset::from_content_type),
            bom: None,
            guesser: Guesser::default(),
        }
    }

    /// Reads the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let Input::Head(head) = &mut self.input else { return self.feed(bytes) };
        let (first, rest) = bytes.split_at_checked(HEAD_BYTES - head.len()).unwrap_or((bytes, &[]));
        head.extend_from_slice(first);
        if head.len() == HEAD_BYTES {
            self.start();
            self.feed(rest);
        }
    }

    /// The number of links found so far.
    pub fn found(&self) -> usize {
        self.collector.links.len()
    }

    /// Ends the page and resolves its links against `base_url`, the URL it was fetched from.
    pub fn finish(mut self, base_url: &str) -> Page {
        if matches!(self.input, Input::Head(_)) {
            self.start();
        }
        self.decode(&[], true);
        let decoded = matches!(self.input, Input::Decoded(_));
        let tld = page::tld(base_url);
        let (encoding, source) = match (self.bom, self.header, self.collector.charset) {
            (Some(bom), ..) => (bom, Source::ByteOrderMark),
            (None, Some(header), _) => (header, Source::Header),
            (None, None, Some(declared)) => (declared, Source::Declared),
            (None, None, None) => (self.guesser.finish(tld.as_deref()), Source::Detected),
        };
        let text = if decoded { UTF_8 } else { encoding };
        page::build(&self.collector, base_url, text, encoding, source)
    }

    /// Chooses how to read, once the first bytes are there.
    fn start(&mut self) {
        let Input::Head(head) = std::mem::replace(&mut self.input, Input::Bytes) else { return };
        self.bom = charset::from_bom(&head);
        let known = self.bom.or(self.header).or_else(|| {
            let mut probe = Collector::new(Options { max_links: 0, ..Options::default() });
            Tokenizer::new(HEAD_BYTES).push(&head, &mut probe);
            probe.charset
        });
        if let Some(encoding) = known
            && [UTF_16LE, UTF_16BE, ISO_2022_JP].contains(&encoding)
        {
            self.input = Input::Decoded(Box::new(encoding.new_decoder_with_bom_removal()));
        }
        self.feed(&head);
    }

    fn feed(&mut self, bytes: &[u8]) {
        if matches!(self.input, Input::Decoded(_)) {
            return self.decode(bytes, false);
        }
        if self.bom.is_none() && self.header.is_none() && self.collector.charset.is_none() {
            self.guesser.feed(bytes);
        }
        self.tokenizer.push(bytes, &mut self.collector);
    }

    fn decode(&mut self, bytes: &[u8], last: bool) {
        let Input::Decoded(decoder) = &mut self.input else { return };
        let mut buffer = [0; 4096];
        let mut rest = bytes;
        loop {
            let (result, read, written, _) = decoder.decode_to_utf8(rest, &mut buffer, last);
            self.tokenizer.push(buffer.get(..written).unwrap_or_default(), &mut self.collector);
            rest = rest.get(read..).unwrap_or_default();
            if result == CoderResult::InputEmpty {
                break;
            }
        }
    }
}
