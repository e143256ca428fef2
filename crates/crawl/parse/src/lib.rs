#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]
//! What a crawler reads out of bytes that strangers wrote: robots.txt, links, headers.
//!
//! Pure functions. No input is an error unless the caller can do something about it, none panics, and each takes
//! memory and time within its stated limits, whatever it is fed. `now` is an argument where a date matters.
//!
//! | module | reads |
//! | --- | --- |
//! | [`robots`] | robots.txt (RFC 9309) |
//! | [`links`] | HTML in any encoding, as a stream |
//! | [`directives`] | `X-Robots-Tag`, `<meta name=robots>` |
//! | [`headers`] | `Retry-After`, `Link` |
//! | [`charset`] | which encoding a page is in |
//!
//! Sitemaps and feeds are lists of URLs: `formats/lists` reads them. Dates are in `core/model`.
//!
//! ```
//! use trawl_parse::{links, robots::Robots};
//!
//! let rules = Robots::parse(b"User-agent: *\nDisallow: /private/\n").agent("trawl");
//! assert!(rules.allows("/").allowed && !rules.allows("/private/x").allowed);
//! let page = links::links(b"<a href='../b'>b</a>", "http://example.org/a/", Some("text/html"), &links::Options::default());
//! assert_eq!(page.links[0].url.as_str(), "http://example.org/b");
//! ```

pub mod charset;
pub mod directives;
pub mod headers;
pub mod links;
pub mod robots;

/// The words of a list separated by blanks.
fn words(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|b| b.is_ascii_whitespace()).filter(|word| !word.is_empty())
}
