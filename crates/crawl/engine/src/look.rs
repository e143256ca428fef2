//! What a body says: its digest, its links, the text of a robots.txt. Read once, decoded.

use crate::lease::Lease;
use crate::page::Worker;
use crate::sitemaps::{self, Unread};
use std::io::Read;
use trawl_frontier::LeaseId;
use trawl_http::{Head, decode_content};
use trawl_io::Hasher;
use trawl_model::{Digest, Message, UnixMillis};
use trawl_parse::directives::Directives;
use trawl_parse::headers::{link_header, refresh_header};
use trawl_parse::links::{Kind, Link, LinkExtractor, Options, root_is_html};
use trawl_parse::robots::MAX_BYTES;
use trawl_url::WebUrl;

/// What was found in a body.
#[derive(Default)]
pub(crate) struct Looked {
    pub digest: Option<Digest>,
    pub links: Vec<WebUrl>,
    /// Sitemaps that a sitemap lists.
    pub sitemaps: Vec<WebUrl>,
    /// Links past the number that is kept.
    pub over_limit: u64,
    /// Entries of a sitemap that are not URLs.
    pub not_urls: u64,
    /// Why a document that should be a sitemap lists less than it could.
    pub unread: Option<Unread>,
    /// Links that the page asks crawlers not to follow.
    pub nofollow: u64,
    /// Of a robots.txt, as much as counts.
    pub text: Vec<u8>,
    /// Whether the body could be read to its end.
    pub is_whole: bool,
}

/// Bytes of all links of one page together.
const MAX_LINK_BYTES: usize = 16 << 20;

impl Worker {
    /// Reads the decoded body once, for everything that is wanted of it.
    pub(crate) fn look(&self, lease: &Lease, message: &mut Message<'_>, now: UnixMillis) -> Looked {
        let head = Head::new(&message.head);
        let content_type = head.text("content-type");
        let is_robots = matches!(lease.id, LeaseId::Robots(_));
        let wants_links = self.follow && !is_robots && matches!(head.status(), Some(200..=299));
        let mut looked = Looked::default();
        let (mut extractor, mut sitemap) = (None, None);
        let result = (|| -> std::io::Result<()> {
            let mut hasher = Hasher::sha256();
            let mut body = decode_content(message.body.reader()?, &head.known_codings(), self.decode_bytes)?;
            let (mut buf, mut first) = (vec![0; 64 << 10], true);
            loop {
                let (n, read) = fill(&mut body, &mut buf);
                if n == 0 {
                    read?;
                    break;
                }
                let bytes = buf.get(..n).unwrap_or_default();
                if std::mem::take(&mut first) && wants_links {
                    if self.sitemaps && sitemaps::has_root(bytes) {
                        sitemap = Some(sitemaps::Gathered::default());
                    } else if is_html(content_type.as_deref(), bytes) {
                        extractor = Some(LinkExtractor::new(self.options(), content_type.as_deref()));
                    } else if self.sitemaps && sitemaps::is_one(lease, content_type.as_deref(), bytes) {
                        sitemap = Some(sitemaps::Gathered::default());
                    }
                }
                hasher.update(bytes);
                if let Some(extractor) = &mut extractor {
                    extractor.push(bytes);
                }
                if let Some(sitemap) = &mut sitemap {
                    sitemap.push(bytes);
                }
                // One byte more than counts, so that the parser sees that the file goes on, and leaves out half a rule at its end.
                if is_robots && looked.text.len() <= MAX_BYTES {
                    let room = MAX_BYTES + 1 - looked.text.len();
                    looked.text.extend_from_slice(bytes.get(..room.min(n)).unwrap_or_default());
                }
                read?;
            }
            looked.digest = Some(hasher.finish());
            Ok(())
        })();
        // A body that cannot be decoded to its end has no digest of the whole; its links count up to there.
        looked.is_whole = result.is_ok();
        let (mut directives, mut found) = (Directives::default(), Vec::new());
        if let Some(extractor) = extractor {
            let page = extractor.finish(&lease.url);
            directives = page.directives;
            looked.over_limit = page.over_limit;
            found = page.links;
        }
        if let Some(sitemap) = sitemap {
            let listed = sitemap.finish(&lease.url, now, self.max_links);
            (looked.links, looked.sitemaps, looked.over_limit) = (listed.pages, listed.sitemaps, listed.over_limit);
            let broken = (!looked.is_whole).then_some(Unread::Damaged);
            (looked.not_urls, looked.unread) = (listed.not_urls, listed.unread.or(broken));
        } else if wants_links && self.sitemaps && sitemaps::is_named(&lease.source, lease.depth, lease.hops) {
            looked.unread = Some(Unread::NotASitemap);
        }
        if wants_links {
            found.extend(header_links(&lease.url, &head));
            for value in head.all("x-robots-tag") {
                directives.merge(&Directives::header(&String::from_utf8_lossy(&value), &self.agent));
            }
        }
        let wanted = found.into_iter().filter(|l| l.kind != Kind::Form && (self.embeds || !l.kind.is_embed()));
        if self.obey && directives.nofollow {
            looked.nofollow = wanted.count() as u64;
        } else {
            looked.links.extend(wanted.map(|l| l.url));
        }
        looked
    }

    fn options(&self) -> Options {
        Options {
            embeds: self.embeds,
            agent: Some(self.agent.clone()),
            max_links: self.max_links,
            max_total_bytes: MAX_LINK_BYTES,
            ..Options::default()
        }
    }
}

/// Fills a buffer as far as a body goes: its start tells what it is, and a coding may give that out in small pieces. Says how many
/// bytes came before the end, or before an error.
fn fill(body: &mut impl Read, buf: &mut [u8]) -> (usize, std::io::Result<()>) {
    let mut n = 0;
    while let Some(room) = buf.get_mut(n..).filter(|room| !room.is_empty()) {
        match body.read(room) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return (n, Err(e)),
        }
    }
    (n, Ok(()))
}

/// What the headers of a response link: `Link`, `Refresh`.
fn header_links(page: &WebUrl, head: &Head<'_>) -> Vec<Link> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let links = head.all("link").flat_map(|value| link_header(&text(&value)));
    let mut found: Vec<Link> = links.filter_map(|link| link.resolve(page)).collect();
    found.extend(head.all("refresh").filter_map(|value| refresh_header(&text(&value), page)));
    found
}

/// HTML by its media type, or by its looks where none is given.
fn is_html(content_type: Option<&str>, start: &[u8]) -> bool {
    match content_type {
        Some(value) => {
            // `text/html charset=utf-8` lacks its semicolon: browsers take it for what it means.
            let end = |c: char| matches!(c, ';' | ',') || c.is_ascii_whitespace();
            let media_type = value.trim_start().split(end).next().unwrap_or_default().to_ascii_lowercase();
            match media_type.as_str() {
                "text/html" => true,
                "text/xml" | "application/xml" => root_is_html(start),
                // Also the kinds for telephones.
                other if other.ends_with("xhtml+xml") => true,
                // What says nothing is looked at, as browsers do.
                "" | "*/*" | "unknown/unknown" | "application/unknown" | "text/xhtml" => looks_like_html(start),
                other => !other.contains('/') && looks_like_html(start),
            }
        }
        None => looks_like_html(start),
    }
}

fn looks_like_html(start: &[u8]) -> bool {
    let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
    start.trim_ascii_start().starts_with(b"<")
}
