//! From tags to links: which attribute of which tag is a link, and of what kind.

use super::attributes::Attributes;
use super::names::{Attr, tag};
use super::tokenizer::{Sink, Tokenizer};
use super::{Kind, Options, Rel};
use crate::charset;
use crate::directives::Directives;
use crate::words;
use trawl_url::entities;

/// A link whose text still has the page's bytes: the charset may be known only at the end.
#[derive(Debug)]
pub(super) struct RawLink {
    start: usize,
    end: usize,
    pub(super) kind: Kind,
    pub(super) rel: Rel,
    pub(super) list: bool,
}

/// What the tags have told so far.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) options: Options,
    text: Vec<u8>,
    pub(super) links: Vec<RawLink>,
    pub(super) base: Option<Vec<u8>>,
    pub(super) charset: Option<&'static encoding_rs::Encoding>,
    pub(super) directives: Directives,
    pub(super) refresh_delay: Option<u32>,
    pub(super) over_limit: u64,
    pub(super) not_web: u64,
    templates: Templates,
    /// Whether this is the document of a `srcdoc`: one inside it is not read.
    nested: bool,
}

impl Collector {
    pub(super) fn new(options: Options) -> Self {
        Collector {
            options,
            text: Vec::new(),
            links: Vec::new(),
            base: None,
            charset: None,
            directives: Directives::default(),
            refresh_delay: None,
            over_limit: 0,
            not_web: 0,
            templates: Templates::default(),
            nested: false,
        }
    }

    /// The links of an `<iframe srcdoc>`: a whole document in an attribute, relative to this page.
    fn srcdoc(&mut self, value: &[u8]) {
        if self.nested || (!self.options.templates && self.templates.inert()) {
            return;
        }
        // Every byte as a character of its own, so that undoing escapes leaves the page's encoding alone.
        let text: String = value.iter().map(|byte| char::from(*byte)).collect();
        let html: Vec<u8> = entities::decode(&text).chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect();
        let mut inner = Collector { nested: true, ..Collector::new(self.options.clone()) };
        Tokenizer::new(self.options.max_attribute_bytes).push(&html, &mut inner);
        self.over_limit += inner.over_limit;
        self.not_web += inner.not_web;
        for link in &inner.links {
            self.add_value(inner.bytes(link), link.kind, link.rel, link.list);
        }
    }

    /// The bytes of a link.
    pub(super) fn bytes(&self, link: &RawLink) -> &[u8] {
        self.text.get(link.start..link.end).unwrap_or_default()
    }

    fn add(&mut self, attributes: &Attributes, attr: Attr, kind: Kind, rel: Rel) {
        if let Some(value) = attributes.get(attr) {
            self.add_value(value, kind, rel, matches!(attr, Attr::Srcset | Attr::ImageSrcset));
        }
    }

    fn add_value(&mut self, value: &[u8], kind: Kind, rel: Rel, list: bool) {
        if (kind.is_embed() && !self.options.embeds) || (kind == Kind::Form && !self.options.forms) {
            return;
        }
        if !self.options.templates && self.templates.inert() {
            return;
        }
        let value = value.trim_ascii();
        if value.is_empty() || value.starts_with(b"#") {
            return; // the page itself
        }
        if !list && other_scheme(value) {
            self.not_web += 1;
            return;
        }
        if self.links.len() >= self.options.max_links || self.text.len() + value.len() > self.options.max_total_bytes {
            self.over_limit += 1;
            return;
        }
        let start = self.text.len();
        self.text.extend_from_slice(value);
        self.links.push(RawLink { start, end: self.text.len(), kind, rel, list });
    }

    fn link(&mut self, attributes: &Attributes) {
        let rel = attributes.get(Attr::Rel).unwrap_or_default();
        let kind = link_kind(rel, attributes.get(Attr::Type).unwrap_or_default());
        let Some(kind) = kind else { return };
        self.add(attributes, Attr::Href, kind, Rel::parse(rel));
        self.add(attributes, Attr::ImageSrcset, kind, Rel::default());
    }

    fn meta(&mut self, attributes: &Attributes) {
        if self.charset.is_none() {
            let declared = match attributes.get(Attr::Charset) {
                Some(label) => charset::for_meta(label),
                None if is(attributes, Attr::HttpEquiv, "content-type") => {
                    attributes.get(Attr::Content).and_then(charset::label_in).and_then(charset::for_meta)
                }
                None => None,
            };
            self.charset = declared;
        }
        let Some(content) = attributes.get(Attr::Content) else { return };
        if let Some(name) = attributes.get(Attr::Name).map(<[u8]>::trim_ascii)
            && (name.eq_ignore_ascii_case(b"robots")
                || self.options.agent.as_ref().is_some_and(|agent| name.eq_ignore_ascii_case(agent.as_bytes())))
        {
            let content = String::from_utf8_lossy(content);
            self.directives.merge(&Directives::parse(&entities::decode(&content)));
        }
        if is(attributes, Attr::HttpEquiv, "refresh") && self.refresh_delay.is_none() {
            let Some((delay, url)) = refresh(content) else { return };
            self.refresh_delay = Some(delay);
            self.add_value(url, Kind::Refresh, Rel::default(), false);
        }
    }
}

impl Sink for Collector {
    fn start(&mut self, name: u128, attributes: &Attributes) {
        self.over_limit += u64::from(attributes.too_long());
        let none = Rel::default();
        match name {
            tag::A | tag::AREA => {
                let rel = attributes.get(Attr::Rel).map(Rel::parse).unwrap_or_default();
                let kind = if name == tag::A { Kind::Anchor } else { Kind::Area };
                let attr = if attributes.has(Attr::Href) { Attr::Href } else { Attr::XlinkHref };
                self.add(attributes, attr, kind, rel);
            }
            tag::IMG | tag::IMAGE => {
                for attr in [Attr::Src, Attr::Srcset] {
                    self.add(attributes, attr, Kind::Image, none);
                }
                if name == tag::IMAGE {
                    let attr = if attributes.has(Attr::Href) { Attr::Href } else { Attr::XlinkHref };
                    self.add(attributes, attr, Kind::Image, none);
                }
            }
            tag::LINK => self.link(attributes),
            tag::META => self.meta(attributes),
            tag::SCRIPT => self.add(attributes, Attr::Src, Kind::Script, none),
            tag::FRAME => self.add(attributes, Attr::Src, Kind::Frame, none),
            tag::IFRAME => {
                self.add(attributes, Attr::Src, Kind::Frame, none);
                if let Some(html) = attributes.get(Attr::Srcdoc) {
                    self.srcdoc(html);
                }
            }
            tag::AUDIO | tag::TRACK => self.add(attributes, Attr::Src, Kind::Media, none),
            tag::VIDEO => {
                self.add(attributes, Attr::Src, Kind::Media, none);
                self.add(attributes, Attr::Poster, Kind::Image, none);
            }
            tag::SOURCE => {
                self.add(attributes, Attr::Src, Kind::Media, none);
                self.add(attributes, Attr::Srcset, Kind::Image, none);
            }
            tag::EMBED => self.add(attributes, Attr::Src, Kind::Object, none),
            tag::OBJECT => self.add(attributes, Attr::Data, Kind::Object, none),
            tag::FORM => {
                let rel = attributes.get(Attr::Rel).map(Rel::parse).unwrap_or_default();
                self.add(attributes, Attr::Action, Kind::Form, rel);
            }
            tag::BUTTON => self.add(attributes, Attr::FormAction, Kind::Form, none),
            tag::INPUT => {
                self.add(attributes, Attr::FormAction, Kind::Form, none);
                if is(attributes, Attr::Type, "image") {
                    self.add(attributes, Attr::Src, Kind::Image, none);
                }
            }
            tag::BASE if self.base.is_none() && !self.templates.inert() => {
                self.base = attributes.get(Attr::Href).map(<[u8]>::to_vec);
            }
            tag::TEMPLATE => self.templates.start(!attributes.has(Attr::ShadowRoot)),
            _ => self.add(attributes, Attr::Background, Kind::Image, none),
        }
    }

    fn end(&mut self, name: u128) {
        if name == tag::TEMPLATE {
            self.templates.end();
        }
    }
}

fn is(attributes: &Attributes, attr: Attr, value: &str) -> bool {
    attributes.get(attr).is_some_and(|found| found.trim_ascii().eq_ignore_ascii_case(value.as_bytes()))
}

/// The kind of a `<link>`, by the first of its `rel` words that says one; `None` if it names nothing to fetch.
pub(super) fn link_kind(rel: &[u8], media_type: &[u8]) -> Option<Kind> {
    const KINDS: [(&str, Option<Kind>); 16] = [
        ("canonical", Some(Kind::Canonical)),
        ("stylesheet", Some(Kind::Stylesheet)),
        ("icon", Some(Kind::Icon)),
        ("apple-touch-icon", Some(Kind::Icon)),
        ("mask-icon", Some(Kind::Icon)),
        ("next", Some(Kind::Next)),
        ("prev", Some(Kind::Prev)),
        ("previous", Some(Kind::Prev)),
        ("alternate", Some(Kind::Alternate)),
        ("amphtml", Some(Kind::Alternate)),
        ("preload", Some(Kind::Resource)),
        ("modulepreload", Some(Kind::Resource)),
        ("prefetch", Some(Kind::Resource)),
        ("manifest", Some(Kind::Resource)),
        // These two name hosts, not documents.
        ("dns-prefetch", None),
        ("preconnect", None),
    ];
    let found = |name: &str| words(rel).any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let media_type = media_type.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    let feed = [&b"application/rss+xml"[..], b"application/atom+xml", b"application/rdf+xml"];
    match KINDS.iter().find(|(name, _)| found(name)) {
        Some((_, Some(Kind::Alternate))) if feed.iter().any(|known| media_type.eq_ignore_ascii_case(known)) => {
            Some(Kind::Feed)
        }
        Some((_, kind)) => *kind,
        None if rel.is_empty() => None,
        None => Some(Kind::Link),
    }
}

/// The delay and the URL of a `refresh`, by the HTML standard's steps: `5`, `5; url=x`, `0;URL='x'`, `5, x`.
pub(crate) fn refresh(content: &[u8]) -> Option<(u32, &[u8])> {
    let content = content.trim_ascii_start();
    let digits = content.iter().position(|b| !b.is_ascii_digit()).unwrap_or(content.len());
    let (number, rest) = content.split_at_checked(digits)?;
    if number.is_empty() && !rest.starts_with(b".") {
        return None;
    }
    let delay = number.iter().fold(0u32, |sum, b| sum.saturating_mul(10).saturating_add(u32::from(b - b'0')));
    let fraction = rest.iter().position(|b| !(b.is_ascii_digit() || *b == b'.')).unwrap_or(rest.len());
    let rest = rest.get(fraction..)?;
    if !rest.is_empty() && !matches!(rest.first(), Some(b';' | b',')) && !rest.first()?.is_ascii_whitespace() {
        return None;
    }
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b";").or_else(|| rest.strip_prefix(b",")).unwrap_or(rest).trim_ascii_start();
    let url = match rest.split_at_checked(3) {
        Some((word, after)) if word.eq_ignore_ascii_case(b"url") => {
            after.trim_ascii_start().strip_prefix(b"=").map_or(rest, <[u8]>::trim_ascii_start)
        }
        _ => rest,
    };
    let url = match url.split_first() {
        Some((quote @ (b'"' | b'\''), inner)) => inner.split(|b| b == quote).next().unwrap_or_default(),
        _ => url,
    };
    Some((delay, url))
}

/// Whether a link has a scheme that is not fetched, told by its first letters alone.
fn other_scheme(value: &[u8]) -> bool {
    const OTHERS: [&[u8]; 9] =
        [b"javascript:", b"mailto:", b"data:", b"tel:", b"about:", b"blob:", b"sms:", b"whatsapp:", b"file:"];
    OTHERS.iter().any(|scheme| value.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme)))
}

/// The open `<template>`s: what stands in one is no part of the page, unless it declares a shadow root.
#[derive(Debug, Default)]
struct Templates {
    /// One bit for each open template, innermost lowest: whether it is inert.
    inert: u64,
    depth: u32,
    /// Templates deeper than the bits reach.
    deeper: u32,
}

impl Templates {
    fn inert(&self) -> bool {
        self.inert != 0
    }

    fn start(&mut self, inert: bool) {
        if self.depth == u64::BITS {
            self.deeper = self.deeper.saturating_add(1);
            return;
        }
        self.inert = self.inert << 1 | u64::from(inert);
        self.depth += 1;
    }

    fn end(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if self.depth > 0 {
            self.inert >>= 1;
            self.depth -= 1;
        }
    }
}
