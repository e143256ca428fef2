//! The lake form: the spelling under which a lake stores, sorts and compares a URL.
//!
//! The rules, in order:
//!
//! 1. White space and control characters at both ends go, tabs and line ends inside too (as in browsers).
//! 2. A missing scheme is `http`: `example.com/x`, `//example.com/x`, `example.com:8080/x`. A path alone is no URL.
//! 3. The rest is parsed as browsers do (the WHATWG standard): `\` is `/`, user information goes, numeric hosts are IPv4
//!    addresses, IPv6 literals get their shortest text. Schemes: `http`, `https`, `ftp`.
//! 4. Scheme and host are lower case, the host in punycode, its trailing dots gone. A host holds letters, digits, `-`, `_`, `.`.
//! 5. The scheme's default port goes; the fragment goes.
//! 6. Path: escapes of unreserved bytes are decoded, other escapes upper-cased, a stray `%` is `%25`, bytes no URL may hold are
//!    escaped; then dot segments are resolved, then runs of `/` collapse. A trailing slash stays. An empty path is `/`.
//! 7. Query: split at `&`; each piece is spelled as in 6; pieces are sorted by key (the text before `=`), equal keys keep their
//!    order; empty pieces go; a query without pieces loses its `?`.
//!
//! Two readers produce the parts: [`fast`] for plain ASCII URLs, [`slow`] over the `url` crate for all others. Rules 4 to 7 are
//! written once, here, and the readers agree on everything the fast one takes (a property test says so).

mod fast;
mod slow;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::percent::{self, LAKE_PATH, LAKE_QUERY};
use crate::{MAX_URL_LEN, Reject, SuffixList, dots, raw, surt};

/// A URL in lake form, in one string with the places of its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LakeUrl {
    text: String,
    scheme_end: usize,
    domain_start: usize,
    host_end: usize,
    path_start: usize,
    port: Option<u16>,
}

/// Which of two spellings is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The lake form.
    Lake,
    /// The identity of the frontier: see [`crate::key::identity`].
    Identity,
}

/// What a reader finds; path and query still as written.
struct Parts<'a> {
    scheme: &'a str,
    host: Cow<'a, str>,
    port: Option<u16>,
    path: &'a str,
    query: Option<&'a str>,
}

impl LakeUrl {
    /// Brings a URL into lake form.
    ///
    /// ```
    /// use trawl_url::{LakeUrl, SuffixList};
    /// let url = LakeUrl::parse("HTTP://Www.Example.co.uk:80//a/./b/?y=2&x=%7e1#top", SuffixList::builtin())?;
    /// assert_eq!(url.as_str(), "http://www.example.co.uk/a/b/?x=~1&y=2");
    /// assert_eq!(url.domain(), "example.co.uk");
    /// assert_eq!(url.surt(), "uk,co,example,www)/a/b/?x=~1&y=2");
    /// # Ok::<(), trawl_url::Reject>(())
    /// ```
    pub fn parse(raw: &str, psl: &SuffixList) -> Result<LakeUrl, Reject> {
        let mut url = LakeUrl::with_capacity(raw.len());
        url.assign(raw, psl)?;
        Ok(url)
    }

    /// An empty one, with room for a URL of this many bytes.
    pub fn with_capacity(len: usize) -> LakeUrl {
        LakeUrl { text: String::with_capacity(len.min(MAX_URL_LEN) + 8), ..LakeUrl::default() }
    }

    /// As [`parse`](LakeUrl::parse), for bytes of any kind: what is not UTF-8 is taken as if it had been escaped.
    pub fn parse_bytes(raw: &[u8], psl: &SuffixList) -> Result<LakeUrl, Reject> {
        raw::check_len(raw.len())?;
        LakeUrl::parse(&percent::text_of(raw), psl)
    }

    /// As [`parse`](LakeUrl::parse), into this value's own buffer: for loops over many URLs. After an error the value is empty.
    pub fn assign(&mut self, raw: &str, psl: &SuffixList) -> Result<(), Reject> {
        self.assign_as(raw, psl, Form::Lake)
    }

    /// As [`assign`](LakeUrl::assign), in either form.
    pub(crate) fn assign_as(&mut self, raw: &str, psl: &SuffixList, form: Form) -> Result<(), Reject> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        *self = LakeUrl { text, ..LakeUrl::default() };
        raw::check_len(raw.len())?;
        let done = match fast::read(raw) {
            Some(parts) => self.build(&parts, psl, form),
            None => slow::read(raw, |parts| self.build(&parts, psl, form)),
        };
        if done.is_err() {
            *self = LakeUrl::default();
        }
        done
    }

    fn build(&mut self, parts: &Parts<'_>, psl: &SuffixList, form: Form) -> Result<(), Reject> {
        let text = &mut self.text;
        text.push_str(parts.scheme);
        self.scheme_end = text.len();
        text.push_str("://");
        let host_start = text.len();
        text.push_str(&parts.host);
        if let Some(host) = text.get_mut(host_start..) {
            host.make_ascii_lowercase();
        }
        self.host_end = text.len();
        // An identity needs no domain, and looking it up is a sixth of the work.
        let domain = match form {
            Form::Lake => text.get(host_start..).map_or(0, |host| psl.registrable(host).len()),
            Form::Identity => self.host_end - host_start,
        };
        self.domain_start = self.host_end - domain;
        self.port = parts.port;
        if let Some(port) = parts.port {
            push_port(port, text);
        }
        self.path_start = text.len();
        push_path(parts.path, form, text);
        if let Some(query) = parts.query {
            push_query(query, form, text);
        }
        raw::check_len(text.len())
    }

    fn part(&self, start: usize, end: usize) -> &str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// `http`, `https` or `ftp`.
    pub fn scheme(&self) -> &str {
        self.part(0, self.scheme_end)
    }

    /// The host in punycode, or an IP literal (IPv6 in brackets).
    pub fn host(&self) -> &str {
        self.part(self.scheme_end + 3, self.host_end)
    }

    /// The port, if it is not the scheme's own.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// Path and query, `/a/b?x=1`; starts with `/`.
    pub fn path_query(&self) -> &str {
        self.part(self.path_start, self.text.len())
    }

    /// The registrable domain in punycode.
    pub fn domain(&self) -> &str {
        self.part(self.domain_start, self.host_end)
    }

    /// The whole URL in lake form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The key by which a lake sorts the rows of a domain: `com,example)/path?query`, without scheme and port.
    pub fn surt(&self) -> String {
        let mut key = String::with_capacity(self.text.len());
        self.surt_into(&mut key);
        key
    }

    /// Appends [`surt`](LakeUrl::surt) to a buffer.
    pub fn surt_into(&self, key: &mut String) {
        surt::host_into(self.host(), key);
        key.push(')');
        key.push_str(self.path_query());
    }

    /// Puts a URL together again from the columns of a row.
    pub fn from_parts(scheme: &str, host: &str, port: Option<u16>, path_query: &str) -> String {
        let mut url = String::with_capacity(scheme.len() + host.len() + path_query.len() + 9);
        LakeUrl::from_parts_into(scheme, host, port, path_query, &mut url);
        url
    }

    /// Appends [`from_parts`](LakeUrl::from_parts) to a buffer.
    pub fn from_parts_into(scheme: &str, host: &str, port: Option<u16>, path_query: &str, out: &mut String) {
        out.push_str(scheme);
        out.push_str("://");
        out.push_str(host);
        if let Some(port) = port {
            push_port(port, out);
        }
        out.push_str(path_query);
    }
}

impl From<LakeUrl> for String {
    fn from(url: LakeUrl) -> String {
        url.text
    }
}

impl std::fmt::Display for LakeUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

fn push_port(port: u16, out: &mut String) {
    out.push(':');
    out.push_str(&port.to_string());
}

/// Rule 6.
fn push_path(path: &str, form: Form, out: &mut String) {
    let start = out.len();
    percent::normalise(path, LAKE_PATH, out);
    if out.len() == start {
        out.push('/');
        return;
    }
    let written = out.get(start..).unwrap_or_default();
    let (dotted, doubled) = dots::look(written);
    let doubled = doubled && form == Form::Lake;
    if dotted || doubled {
        let written = written.to_owned();
        out.truncate(start);
        if dotted && form == Form::Identity {
            dots::remove(&written, out);
        } else if dotted {
            let mut resolved = String::with_capacity(written.len());
            dots::remove(&written, &mut resolved);
            dots::collapse(&resolved, out);
        } else {
            dots::collapse(&written, out);
        }
    }
}

/// Rule 7.
fn push_query(query: &str, form: Form, out: &mut String) {
    let mark = out.len();
    out.push('?');
    let start = out.len();
    let mut ordered = true;
    let mut previous = start..start;
    for piece in query.split('&').filter(|piece| !piece.is_empty()) {
        let before = out.len();
        if before > start {
            out.push('&');
        }
        let begin = out.len();
        percent::normalise(piece, LAKE_QUERY, out);
        let key = out.get(begin..).unwrap_or_default();
        if form == Form::Identity && is_tracking(key_of(key)) {
            out.truncate(before);
            continue;
        }
        ordered &= out.get(previous.clone()).map(key_of) <= Some(key_of(key));
        previous = begin..out.len();
    }
    if out.len() == start {
        out.truncate(mark);
    } else if !ordered {
        let written = out.get(start..).unwrap_or_default().to_owned();
        out.truncate(start);
        let mut pieces: Vec<&str> = written.split('&').collect();
        pieces.sort_by_key(|piece| key_of(piece));
        for (index, piece) in pieces.into_iter().enumerate() {
            if index > 0 {
                out.push('&');
            }
            out.push_str(piece);
        }
    }
}

/// Query keys that say where a visitor came from, not what the page shows. `ref` is not among them: it names branches
/// and referees as often as it names referrers.
fn is_tracking(key: &str) -> bool {
    key.starts_with("utm_") || matches!(key, "gclid" | "fbclid" | "msclkid" | "mc_eid" | "igshid" | "yclid" | "_ga")
}

/// The text of a query piece before its first `=`.
fn key_of(piece: &str) -> &str {
    match memchr::memchr(b'=', piece.as_bytes()) {
        Some(equals) => piece.get(..equals).unwrap_or(piece),
        None => piece,
    }
}
