//! Response headers a crawler acts on: `Retry-After`, `Refresh` and `Link`.

use std::time::Duration;

use trawl_model::UnixMillis;
use trawl_model::date::http_date;
use trawl_url::{Base, WebUrl};

use crate::links::{Kind, Link, Rel};

/// How long a `Retry-After` asks to wait: seconds, or a date seen from `now` (a past one means no wait).
///
/// ```
/// # use trawl_parse::headers::retry_after;
/// # use trawl_model::UnixMillis;
/// # use std::time::Duration;
/// let now = UnixMillis(784_111_717_000);
/// assert_eq!(retry_after("120", now), Some(Duration::from_secs(120)));
/// assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), Some(Duration::from_secs(60)));
/// ```
pub fn retry_after(value: &str, now: UnixMillis) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        // More digits than fit mean: longer than anybody waits.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = http_date(value, now)?;
    Some(Duration::from_millis(u64::try_from(until.0.saturating_sub(now.0)).unwrap_or(0)))
}

/// Where a `Refresh` header leads: `5; url=x`. `None` if it only loads the page again, or leads nowhere on the web.
///
/// ```
/// # use trawl_parse::headers::refresh_header;
/// # let page = trawl_url::WebUrl::parse("http://h.example/d/").unwrap();
/// assert_eq!(refresh_header("0; URL='x'", &page).unwrap().url.as_str(), "http://h.example/d/x");
/// assert_eq!(refresh_header("5", &page), None);
/// ```
pub fn refresh_header(value: &str, page: &WebUrl) -> Option<Link> {
    let (_, target) = crate::links::refresh(value.as_bytes())?;
    let target = std::str::from_utf8(target).ok().filter(|target| !target.is_empty())?;
    Some(Link { url: page.join(target).ok()?, kind: Kind::Refresh, rel: Rel::default() })
}

/// One link of a `Link` header (RFC 8288).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeaderLink {
    /// The target as written; it may be relative.
    pub target: String,
    /// The parameters in order, names in lower case, values without quotes.
    pub parameters: Vec<(String, String)>,
}

/// Links kept of one header value.
const MAX_LINKS: usize = 1000;
/// Parameters kept of one link.
const MAX_PARAMETERS: usize = 32;

impl HeaderLink {
    /// The first parameter of a name.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The link as a page's `<link>` would give it; `None` if it names nothing to fetch, is no web URL, or speaks of
    /// another page (`anchor`).
    pub fn resolve(&self, page: &str) -> Option<Link> {
        if self.parameter("anchor").is_some_and(|anchor| !anchor.is_empty() && !anchor.starts_with('#')) {
            return None;
        }
        let rel = self.parameter("rel").unwrap_or_default().as_bytes();
        let kind = Kind::of_link(rel, self.parameter("type").unwrap_or_default().as_bytes())?;
        let url = Base::new(page).ok()?.resolve(&self.target).ok()?;
        Some(Link { url, kind, rel: Rel::parse(rel) })
    }
}

/// Reads a `Link` header. A link that does not start with `<…>` ends the list.
pub fn link_header(value: &str) -> Vec<HeaderLink> {
    let mut links = Vec::new();
    let mut rest = value.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
    while let Some((target, after)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        if links.len() == MAX_LINKS {
            break;
        }
        let mut link = HeaderLink { target: target.trim().to_owned(), parameters: Vec::new() };
        rest = after.trim_start();
        while let Some(after) = rest.strip_prefix(';') {
            let (name, value, after) = parameter(after.trim_start());
            if !name.is_empty() && link.parameters.len() < MAX_PARAMETERS {
                link.parameters.push((name.to_ascii_lowercase(), value));
            }
            rest = after.trim_start();
        }
        links.push(link);
        // Whatever follows a link up to the next comma is not ours to understand.
        let next = rest.find(',').and_then(|comma| rest.get(comma..)).unwrap_or_default();
        rest = next.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
    }
    links
}

/// `name=value` or `name="value"` or `name`: its parts, and what follows.
fn parameter(text: &str) -> (&str, String, &str) {
    let end = text.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | ';' | ',')).unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else {
        return (name, String::new(), rest);
    };
    let Some(quoted) = value.strip_prefix('"') else {
        let end = value.find([';', ',']).unwrap_or(value.len());
        let (value, rest) = value.split_at_checked(end).unwrap_or((value, ""));
        return (name, value.trim_end().to_owned(), rest);
    };
    let mut out = String::new();
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => out.extend(chars.next()),
            _ => out.push(c),
        }
    }
    (name, out, chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_forms() {
        let now = UnixMillis(1_700_000_000_000);
        for (value, want) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Tue, 14 Nov 2023 22:13:30 GMT", Some(10)),
            ("Tuesday, 14-Nov-23 22:13:30 GMT", Some(10)),
            ("Tue Nov 14 22:13:30 2023", Some(10)),
            ("Tue, 14 Nov 2023 22:00:00 GMT", Some(0)),
            ("-5", None),
            ("1.5", None),
            ("", None),
            ("soon", None),
        ] {
            assert_eq!(retry_after(value, now), want.map(Duration::from_secs), "{value}");
        }
    }

    fn show(value: &str) -> Vec<String> {
        link_header(value)
            .into_iter()
            .map(|link| {
                let parameters = link.parameters.iter().map(|(name, value)| format!(" {name}={value}"));
                format!("{}{}", link.target, parameters.collect::<String>())
            })
            .collect()
    }

    #[test]
    fn link_headers() {
        for (value, want) in [
            ("", &[][..]),
            ("</a>; rel=next", &["/a rel=next"]),
            (
                " , <a>;REL=\"next prev\" ; title=\"x, y; \\\"z\\\"\" , <b>; rel = canonical",
                &["a rel=next prev title=x, y; \"z\"", "b rel=canonical"],
            ),
            // RFC 8288, 3.5
            (
                "<http://example.com/TheBook/chapter2>; rel=\"previous\"; title=\"previous chapter\"",
                &["http://example.com/TheBook/chapter2 rel=previous title=previous chapter"],
            ),
            ("</>; rel=\"http://example.net/foo\"", &["/ rel=http://example.net/foo"]),
            ("</terms>; rel=\"copyright\"; anchor=\"#foo\"", &["/terms rel=copyright anchor=#foo"]),
            (
                "</TheBook/chapter2>; rel=\"previous\"; title*=UTF-8'de'letztes%20Kapitel, \
                 </TheBook/chapter4>; rel=\"next\"; title*=UTF-8'de'n%c3%a4chstes%20Kapitel",
                &[
                    "/TheBook/chapter2 rel=previous title*=UTF-8'de'letztes%20Kapitel",
                    "/TheBook/chapter4 rel=next title*=UTF-8'de'n%c3%a4chstes%20Kapitel",
                ],
            ),
            ("<a>; crossorigin; rel=preload, <b>", &["a crossorigin= rel=preload", "b"]),
            ("<a>; rel=\"open", &["a rel=open"]),
            ("<a>; ; rel=x junk, <b>", &["a rel=x junk", "b"]),
            ("<a> junk; rel=x, <b>", &["a", "b"]),
            ("<a", &[]),
            ("a; rel=next, <b>", &[]),
        ] {
            assert_eq!(show(value), want, "{value}");
        }
    }

    #[test]
    fn links_of_a_header() {
        let page = "http://h.example/d/p";
        let links = link_header(
            "<c>; rel=canonical, <f>; rel=alternate; type=\"application/atom+xml\", <//x>; rel=preconnect, \
             <y>; rel=next; anchor=\"/other\", <z>; rel=\"nofollow license\", <mailto:a@b>; rel=author",
        );
        let found: Vec<_> = links.iter().filter_map(|link| link.resolve(page)).collect();
        let shown: Vec<_> = found.iter().map(|link| (link.url.as_str(), link.kind, link.rel.nofollow)).collect();
        assert_eq!(
            shown,
            [
                ("http://h.example/d/c", Kind::Canonical, false),
                ("http://h.example/d/f", Kind::Feed, false),
                ("http://h.example/d/z", Kind::Link, true),
            ]
        );
    }
}
