//! Sitemaps met in a crawl: named by a robots.txt, by another sitemap, or by a seed.

use crate::lease::Lease;
use crate::page::Worker;
use crate::record::LinkCounts;
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Read;
use trawl_frontier::{Answer, Source, UrlId};
use trawl_http::decode_content;
use trawl_lists::sitemap::{Kind, Options, parse};
use trawl_model::UnixMillis;
use trawl_parse::links::root_name;
use trawl_parse::robots::Robots;
use trawl_url::WebUrl;

/// Bytes at the start of a document within which its root element is looked for.
const ROOT_WITHIN: usize = 4096;

/// Whether the first element of a document is that of a sitemap, whatever type it is sent with: many scripts that make sitemaps
/// send them as `text/html`, like everything else they make.
pub(crate) fn has_root(start: &[u8]) -> bool {
    let text = start_of_text(start);
    let name = root_name(&text).unwrap_or_default();
    name.eq_ignore_ascii_case(b"urlset") || name.eq_ignore_ascii_case(b"sitemapindex")
}

fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

/// Whether a robots.txt or a sitemap names it as a sitemap: `sitemap` in [`crate::state`] gives it the depth of what names it, or one
/// hop more. An ordinary link leads deeper, and ends a chain of redirects.
pub(crate) fn is_named(source: &Source, depth: u32, hops: u32) -> bool {
    matches!(source, Source::Link(_)) && (depth == 0 || hops > 0)
}

/// Whether a page is probably a sitemap, before it is fetched: it is named as one, or its own name says so.
pub(crate) fn is_announced(lease: &Lease) -> bool {
    let path = lease.url.path_query().split('?').next().unwrap_or_default().to_ascii_lowercase();
    is_named(&lease.source, lease.depth, lease.hops)
        || path.rsplit('/').next().is_some_and(|name| name.contains("sitemap"))
}

/// Whether a document that is not HTML is a sitemap: by its root element, or where none is found by its name or because it is named
/// as one.
pub(crate) fn is_one(lease: &Lease, content_type: Option<&str>, start: &[u8]) -> bool {
    let text = start_of_text(start);
    let text = text.get(..ROOT_WITHIN.min(text.len())).unwrap_or_default();
    let has = |root: &[u8]| text.windows(root.len()).any(|window| window.eq_ignore_ascii_case(root));
    if has(b"<urlset") || has(b"<sitemapindex") || has(b":urlset") || has(b":sitemapindex") {
        return true;
    }
    let is_text = content_type.is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("text/plain"));
    // A feed may be a sitemap: but most are only the news of a site.
    let is_feed = has(b"<rss") || has(b"<feed");
    (is_gzip(start) || is_text || is_feed || utf16_unit(start).is_some()) && is_announced(lease)
}

/// The start of a document, unpacked, and in an encoding in which markup can be looked for.
fn start_of_text(start: &[u8]) -> Cow<'_, [u8]> {
    if is_gzip(start) {
        let unpacked = unpacked_start(start);
        return Cow::Owned(from_utf16(&unpacked).unwrap_or(unpacked));
    }
    from_utf16(start).map_or(Cow::Borrowed(start), Cow::Owned)
}

/// How to read a code unit of a text in UTF-16, which the reader of sitemaps knows by its byte order mark.
fn utf16_unit(text: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    match text {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// As much of a text in UTF-16 as is needed, in UTF-8; `None` if it is in another encoding.
fn from_utf16(text: &[u8]) -> Option<Vec<u8>> {
    let unit = utf16_unit(text)?;
    let (pairs, _) = text.get(2..)?.as_chunks::<2>();
    let units = pairs.iter().take(ROOT_WITHIN).map(|pair| unit(*pair));
    let text: String = char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    Some(text.into_bytes())
}

/// As much as is needed of what the start of a gzip file holds.
fn unpacked_start(start: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    if let Ok(reader) = decode_content(start, &["gzip".to_owned()], u64::MAX) {
        // The file goes on behind `start`, so that reading ends with an error: what came before it is kept.
        let _ = reader.take(2 * ROOT_WITHIN as u64).read_to_end(&mut text);
    }
    text
}

/// Why a sitemap was not read, or only in part, though its server sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is something else, such as an error page.
    NotASitemap,
    /// It ends in the middle, or cannot be unpacked.
    Damaged,
}

impl Unread {
    fn as_str(self) -> &'static str {
        match self {
            Self::NotASitemap => "not_a_sitemap",
            Self::Damaged => "damaged",
        }
    }
}

/// A sitemap as it comes in. Holds at most what the protocol allows, 50 MiB.
#[derive(Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    cut: bool,
}

/// What a sitemap lists.
#[derive(Default)]
pub(crate) struct Listed {
    pub pages: Vec<WebUrl>,
    pub sitemaps: Vec<WebUrl>,
    /// Entries past the number that is kept, at least 1 if there was more than is read.
    pub over_limit: u64,
    /// Entries that are not URLs.
    pub not_urls: u64,
    pub unread: Option<Unread>,
}

impl Gathered {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = Options::default().max_bytes - self.bytes.len();
        self.cut |= bytes.len() > room;
        self.bytes.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }

    /// What it lists, at most as many as the links of a page, or the protocol's 50,000 if that is more.
    pub(crate) fn finish(self, url: &WebUrl, now: UnixMillis, max_links: usize) -> Listed {
        let options = Options::default();
        let options = Options { max_urls: options.max_urls.max(max_links), ..options };
        let Ok(document) = parse(&self.bytes, url.as_str(), now, &options) else {
            return Listed { unread: Some(Unread::NotASitemap), ..Listed::default() };
        };
        let over_limit = document.left_out.max(u64::from(self.cut || document.over_limit));
        let unread = document.damaged.then_some(Unread::Damaged);
        let urls = document.entries.into_iter().map(|entry| entry.url).collect();
        let (pages, sitemaps) = match document.kind {
            Kind::Index => (Vec::new(), urls),
            Kind::Urls | Kind::Text | Kind::Rss | Kind::Atom => (urls, Vec::new()),
        };
        Listed { pages, sitemaps, over_limit, not_urls: document.not_web, unread }
    }
}

impl Worker {
    /// Why a document that should be a sitemap lists less than it could, by the word of the report; `None` if nothing is missing.
    pub(crate) fn why_unread(
        &self,
        lease: &Lease,
        answer: Answer,
        unread: Option<Unread>,
        moves: bool,
    ) -> Option<String> {
        let is_named = self.sitemaps && is_named(&lease.source, lease.depth, lease.hops);
        match answer {
            Answer::Response { status: 200..=299, cut, .. } => {
                let broken = (cut && is_named).then_some(Unread::Damaged);
                unread.or(broken).map(|why| why.as_str().to_owned())
            }
            _ if !is_named => None,
            // Where it leads to is named as well, or counted as out of scope.
            Answer::Response { status: 300..=399, .. } if moves => None,
            // It lists what it listed before.
            Answer::Response { status: 304, .. } => None,
            Answer::Response { status, .. } => Some(format!("status_{status}")),
            Answer::Failed(class) => Some(class.to_string()),
        }
    }

    /// The sitemaps that a robots.txt names, and how many of the names are not URLs.
    pub(crate) fn sitemaps_of_robots(&self, url: &str, text: &str) -> (Vec<WebUrl>, u64) {
        if !(self.sitemaps && self.follow) {
            return (Vec::new(), 0);
        }
        let Ok(robots_url) = WebUrl::parse(url) else { return (Vec::new(), 0) };
        let robots = Robots::parse(text.as_bytes());
        let found: Vec<_> = robots.sitemaps().iter().filter_map(|named| robots_url.join(named).ok()).collect();
        let not_urls = robots.sitemaps().len() - found.len();
        (found, not_urls as u64)
    }

    /// Those that may be read, each once.
    pub(crate) fn sitemaps(
        &self,
        from: &WebUrl,
        named: impl Iterator<Item = WebUrl>,
        left_out: &mut LinkCounts,
    ) -> Vec<(UrlId, WebUrl)> {
        let (mut seen, mut kept) = (HashSet::new(), Vec::new());
        for url in named {
            if !self.scope.allows(from, &url) {
                left_out.outside += 1;
            } else if let Some(rule) = self.rules.refuses_sitemap(&url) {
                left_out.refuse(rule);
            } else {
                let id = self.identity.in_queue(&url, self.queue).0;
                match seen.insert(id) {
                    true => kept.push((id, url)),
                    false => left_out.repeated += 1,
                }
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sitemap_is_told_by_its_root_or_its_name() {
        let lease = |url: &str, source| Lease {
            id: trawl_frontier::LeaseId::Robots(0),
            url: WebUrl::parse(url).unwrap(),
            depth: 0,
            hops: 0,
            attempt: 1,
            source,
            robots: trawl_model::RobotsVerdict::Allowed,
            meta_json: None,
            delay: std::time::Duration::ZERO,
        };
        let (plain, xml) = (Some("text/plain; charset=utf-8"), Some("application/xml"));
        for (at, kind, start, expected) in [
            (
                "http://a.example/x",
                xml,
                &b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"[..],
                true,
            ),
            ("http://a.example/x", None, b"<sm:sitemapindex>", true),
            ("http://a.example/sitemap.txt?x", plain, b"http://a.example/1\n", true),
            ("http://a.example/Sitemap1.xml.gz", Some("application/gzip"), &[0x1f, 0x8b, 8], true),
            ("http://a.example/dump.gz", Some("application/gzip"), &[0x1f, 0x8b, 8], false),
            ("http://a.example/robots.txt", plain, b"http://a.example/1\n", false),
            ("http://a.example/feed", xml, b"<rss><channel>", false),
            ("http://a.example/sitemap.xml", xml, b"\xff\xfe<\0u\0r\0l\0s\0e\0t\0>\0", true),
            ("http://a.example/data.xml", xml, b"\xff\xfe<\0u\0r\0l\0s\0e\0t\0>\0", true),
            ("http://a.example/data.xml", xml, b"\xfe\xff\0<\0d\0a\0t\0a\0>", false),
        ] {
            assert_eq!(is_one(&lease(at, Source::Seed), kind, start), expected, "{at}");
        }
        // Its root tells it from a page, whatever type it is sent with.
        let comment = format!("<?xml version='1.0'?>\n<!-- {} --><urlset>", "made by a plugin ".repeat(300));
        for (start, expected) in [
            (
                &b"\xef\xbb\xbf<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>"[..],
                true,
            ),
            (comment.as_bytes(), true),
            (b"<sm:sitemapindex>", true),
            (b"\xfe\xff\0\n\0<\0u\0r\0l\0s\0e\0t\0>", true),
            (b"<!DOCTYPE html><html><body>&lt;urlset> <urlset>", false),
            (b"<p>text", false),
            (b"urlset", false),
            (b"", false),
        ] {
            assert_eq!(has_root(start), expected, "{}", String::from_utf8_lossy(start));
        }
        // By what is in it, however it is named and packed; a list of lines by who names it.
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, b"<sitemapindex>").unwrap();
        let packed = gzip.finish().unwrap();
        assert!(has_root(&packed));
        assert!(is_one(&lease("http://a.example/i.xml.gz", Source::Seed), Some("application/gzip"), &packed));
        let robots = Source::Link("http://a.example/robots.txt".into());
        assert!(is_one(&lease("http://a.example/pages.txt", robots.clone()), plain, b"http://a.example/1"));
        assert!(is_one(&lease("http://a.example/feed", robots.clone()), xml, b"<rss><channel>"));
        assert!(is_one(&lease("http://a.example/data.xml", robots.clone()), xml, b"\xfe\xff\0<\0u\0r\0l"));
        assert!(is_one(&lease("http://a.example/pages.gz", robots), None, &[0x1f, 0x8b, 8]));
    }

    #[test]
    fn an_index_lists_sitemaps_and_a_sitemap_pages() {
        let url = WebUrl::parse("http://a.example/sitemap.xml").unwrap();
        let read = |text: &str| {
            let mut gathered = Gathered::default();
            text.as_bytes().chunks(7).for_each(|chunk| gathered.push(chunk));
            gathered.finish(&url, UnixMillis(0), 10)
        };
        let listed = read("<urlset><url><loc>http://a.example/1</loc></url></urlset>");
        assert_eq!((listed.pages.len(), listed.sitemaps.len(), listed.over_limit), (1, 0, 0));
        let listed = read("<sitemapindex><sitemap><loc>http://a.example/s1.xml</loc></sitemap></sitemapindex>");
        assert_eq!((listed.pages.len(), listed.sitemaps.len()), (0, 1));
        let listed = read("nothing");
        assert_eq!((listed.pages.len(), listed.unread), (0, Some(Unread::NotASitemap)));
        let listed = read("<urlset><url><loc>/1</loc></url><url><loc>http://</loc></url><url><loc>/2</lo");
        // Of a tag that ends an entry the beginning is enough.
        assert_eq!((listed.pages.len(), listed.not_urls, listed.unread), (2, 1, Some(Unread::Damaged)));
        // Many generators put more into one file than the protocol allows.
        let many: String = (0..60_000).map(|n| format!("<url><loc>/{n}</loc></url>")).collect();
        for (max_links, found) in [(10, (50_000, 10_000)), (200_000, (60_000, 0))] {
            let mut gathered = Gathered::default();
            gathered.push(format!("<urlset>{many}</urlset>").as_bytes());
            let listed = gathered.finish(&url, UnixMillis(0), max_links);
            assert_eq!((listed.pages.len(), listed.over_limit), found);
        }
    }
}
