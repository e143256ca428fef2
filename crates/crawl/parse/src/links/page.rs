//! The end of a page: bytes become text, text becomes URLs.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8};
use trawl_url::{Base, WebUrl};

use super::collect::{Collector, RawLink};
use super::{Kind, Rel, srcset};
use crate::charset::Source;
use crate::directives::Directives;
use trawl_url::entities;

/// What a page says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// What its links are relative to: its own URL, or that of its `<base>`.
    pub base: String,
    /// Its links in document order, absolute, without fragments; repetitions are kept.
    pub links: Vec<Link>,
    /// Where it says it belongs: its first `<link rel=canonical>`.
    pub canonical: Option<WebUrl>,
    /// Its first `<meta http-equiv=refresh>`.
    pub refresh: Option<Refresh>,
    /// Its `<meta name=robots>` tags, merged.
    pub directives: Directives,
    /// The name of its encoding, as in the Encoding Standard.
    pub charset: &'static str,
    /// How the encoding was found.
    pub charset_source: Source,
    /// Links that were not kept for want of room, or because they were too long.
    pub over_limit: u64,
    /// Links that are no web URLs: other schemes, or beyond repair.
    pub not_web: u64,
}

/// One link.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Link {
    /// Where it leads.
    pub url: WebUrl,
    /// Where it stands.
    pub kind: Kind,
    /// What the page says of it.
    pub rel: Rel,
}

/// A `<meta http-equiv=refresh>`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refresh {
    /// Seconds to wait; fractions are dropped.
    pub delay_seconds: u32,
    /// Where to go; `None` to load the page again.
    pub url: Option<WebUrl>,
}

/// Decodes and resolves what was collected. `text` is the encoding of the collected bytes, `page` that of the page.
pub(super) fn build(
    collected: &Collector,
    base_url: &str,
    text: &'static Encoding,
    page: &'static Encoding,
    source: Source,
) -> Page {
    let own = Base::new(base_url).ok();
    let declared = collected.base.as_deref().and_then(|bytes| {
        let href = decode(bytes, text);
        let url = match &own {
            Some(own) => own.resolve(href.trim()),
            None => WebUrl::parse(&href),
        };
        url.ok()
    });
    let base = match &declared {
        Some(url) => Base::new(url).ok(),
        None => own,
    };
    let mut out = Page {
        base: declared.map_or_else(|| base_url.to_owned(), String::from),
        links: Vec::with_capacity(collected.links.len()),
        canonical: None,
        refresh: None,
        directives: collected.directives,
        charset: page.name(),
        charset_source: source,
        over_limit: collected.over_limit,
        not_web: collected.not_web,
    };
    // URLs in UTF-16 pages are sent as UTF-8.
    let query = page.output_encoding();
    for raw in &collected.links {
        let value = decode(collected.bytes(raw), text);
        if raw.list {
            for url in srcset::urls(&value) {
                if out.links.len() < collected.options.max_links {
                    out.add(base.as_ref(), url, query, raw);
                } else {
                    out.over_limit += 1;
                }
            }
        } else if out.links.len() < collected.options.max_links {
            out.add(base.as_ref(), &value, query, raw);
        } else {
            out.over_limit += 1;
        }
    }
    let first = |kind| out.links.iter().find(|link| link.kind == kind).map(|link| link.url.clone());
    out.canonical = first(Kind::Canonical);
    out.refresh = collected.refresh_delay.map(|delay_seconds| Refresh { delay_seconds, url: first(Kind::Refresh) });
    out
}

impl Page {
    fn add(&mut self, base: Option<&Base>, url: &str, query: &'static Encoding, raw: &RawLink) {
        let url = encode_query(url, query);
        let resolved = match base {
            Some(base) => base.resolve(&url),
            None => WebUrl::parse(&url),
        };
        match resolved {
            Ok(url) => self.links.push(Link { url, kind: raw.kind, rel: raw.rel }),
            Err(_) => self.not_web += 1,
        }
    }
}

fn decode<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> Cow<'a, str> {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    if !bytes.contains(&0) && !bytes.contains(&b'&') {
        return text;
    }
    Cow::Owned(entities::decode(&text.replace('\0', "\u{fffd}")).into_owned())
}

/// Percent-encodes what is not ASCII in a link's query in the page's own encoding, as browsers do.
fn encode_query<'a>(url: &'a str, encoding: &'static Encoding) -> Cow<'a, str> {
    if encoding == UTF_8 || url.is_ascii() {
        return Cow::Borrowed(url);
    }
    let fragment = url.find('#').unwrap_or(url.len());
    let query = url.get(..fragment).and_then(|url| url.find('?'));
    let Some(query) = query.filter(|query| url.get(*query..fragment).is_some_and(|text| !text.is_ascii())) else {
        return Cow::Borrowed(url);
    };
    let mut out = url.get(..query).unwrap_or_default().to_owned();
    let mut buffer = [0; 4];
    for c in url.get(query..fragment).unwrap_or_default().chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        let (bytes, _, unmapped) = encoding.encode(c.encode_utf8(&mut buffer));
        for &byte in bytes.iter() {
            // A second byte may be an ASCII character, and then stays one where a query may hold it. What the encoding
            // lacks comes as `&#NNN;`, of which everything but the digits is escaped.
            let plain =
                if unmapped { byte.is_ascii_digit() } else { byte.is_ascii_graphic() && !b"\"#<>'".contains(&byte) };
            if plain {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    out.push_str(url.get(fragment..).unwrap_or_default());
    Cow::Owned(out)
}

/// The top-level domain of a URL, in the form the guesser wants: lower case, ASCII.
pub(super) fn tld(url: &str) -> Option<String> {
    let host = url.split_once("://")?.1.split(['/', '?', '#']).next()?;
    let host = host.rsplit('@').next()?.split(':').next()?;
    let label = host.trim_end_matches('.').rsplit('.').next()?.to_ascii_lowercase();
    label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-').then_some(label).filter(|label| !label.is_empty())
}
