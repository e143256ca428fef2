//! Sitemaps, indexes of sitemaps, and feeds.
//!
//! ```text
//! /sitemap.xml ── few pages, no index ──► all pages
//!      │ else
//!      └─► /sitemaps/index.xml (an index in an index) ─► /sitemaps/part-2.xml, part-3.xml.gz, part-4.xml …
//! ```

use std::fmt::{self, Write};

use super::{HostId, PageId, Resource, World};
use crate::character::Character;
use crate::date;

/// Pages in one part of an indexed sitemap.
const PART: u32 = 500;
/// A sitemap with more pages than this is always indexed.
const MAX_PLAIN: u32 = 5_000;
/// The index inside the index.
const INNER: u32 = 1;
/// The first part.
const FIRST: u32 = 2;
/// Entries of a feed.
const FEED_ENTRIES: u32 = 10;

const HEAD: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
const NAMESPACE: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";

/// Number of sitemap files of a host: 0 without, 1 for a plain one.
fn files(world: &World, id: HostId) -> u32 {
    let Some(host) = world.host(id) else { return 0 };
    match host.announcement {
        Some(Character::Sitemap) if host.pages <= MAX_PLAIN => 1,
        Some(Character::Sitemap | Character::SitemapIndex) => FIRST + host.pages.div_ceil(PART),
        _ => 0,
    }
}

/// Whether a part is sent as a gzip file.
pub(super) fn is_gzip(number: u32) -> bool {
    number >= FIRST && number % 2 == 1
}

pub(super) fn guess(world: &World, id: HostId, target: &str) -> Option<u32> {
    let number = match target {
        "/sitemap.xml" => 0,
        "/sitemaps/index.xml" => INNER,
        _ => {
            let rest = target.strip_prefix("/sitemaps/part-")?;
            rest.strip_suffix(".gz").unwrap_or(rest).strip_suffix(".xml")?.parse().ok()?
        }
    };
    (number < files(world, id)).then_some(number)
}

pub(super) fn push_target(number: u32, out: &mut String) -> fmt::Result {
    match number {
        0 => out.write_str("/sitemap.xml"),
        INNER => out.write_str("/sitemaps/index.xml"),
        _ => write!(out, "/sitemaps/part-{number}.xml{}", if is_gzip(number) { ".gz" } else { "" }),
    }
}

impl World {
    /// Whether a sitemap is sent as a gzip file.
    pub(crate) fn sitemap_is_gzip(&self, number: u32) -> bool {
        is_gzip(number)
    }

    /// The XML of a sitemap at a virtual time.
    pub fn sitemap(&self, host: HostId, number: u32, now_s: u64) -> String {
        let files = files(self, host);
        let mut out = String::from(HEAD);
        // Writing to a String cannot fail.
        let mut index = |parts: std::ops::Range<u32>| {
            let _ = writeln!(out, "<sitemapindex {NAMESPACE}>");
            for part in parts {
                let url = self.url_of(self.node(host, Resource::Sitemap(part)));
                let _ = writeln!(out, "<sitemap><loc>{}</loc></sitemap>", escape(&url));
            }
            out.push_str("</sitemapindex>\n");
        };
        match number {
            0 if files > 1 => index(INNER..FIRST),
            INNER => index(FIRST..files),
            _ => {
                let pages = self.host(host).map_or(0, |h| h.pages);
                let from = number.saturating_sub(FIRST).saturating_mul(PART);
                let to = if number == 0 { pages } else { pages.min(from.saturating_add(PART)) };
                let _ = writeln!(out, "<urlset {NAMESPACE}>");
                for number in from..to {
                    let page = PageId { host, number };
                    let modified = date::rfc3339(self.version(page, now_s).1);
                    let url = self.url(page);
                    let _ = writeln!(out, "<url><loc>{}</loc><lastmod>{modified}</lastmod></url>", escape(&url));
                }
                out.push_str("</urlset>\n");
            }
        }
        out
    }

    /// The XML of the host's feed at a virtual time: Atom for some hosts, RSS for others.
    pub fn feed(&self, host: HostId, now_s: u64) -> String {
        let pages = self.host(host).map_or(0, |h| h.pages);
        let entries = (pages.saturating_sub(FEED_ENTRIES)..pages).map(|number| PageId { host, number });
        let title = escape(&self.title(PageId { host, number: 0 }));
        let atom = host.0.is_multiple_of(2);
        let mut out = if atom {
            format!("{HEAD}<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>{title}</title>\n")
        } else {
            format!("{HEAD}<rss version=\"2.0\"><channel><title>{title}</title>\n")
        };
        for page in entries {
            let (title, url) = (escape(&self.title(page)), escape(&self.url(page)));
            let modified = self.version(page, now_s).1;
            let _ = if atom {
                let updated = date::rfc3339(modified);
                writeln!(out, "<entry><title>{title}</title><link href=\"{url}\"/><updated>{updated}</updated></entry>")
            } else {
                let updated = date::http(modified);
                writeln!(out, "<item><title>{title}</title><link>{url}</link><pubDate>{updated}</pubDate></item>")
            };
        }
        out.push_str(if atom { "</feed>\n" } else { "</channel></rss>\n" });
        out
    }
}

/// Text for XML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
