//! What the deny list says of records, files and rejected lines: what a purge takes and an ingest leaves.

use super::{DenyList, ascii};
use crate::manifest::DenyTarget;
use crate::{DataFile, Manifest};
use std::borrow::Cow;
use std::collections::HashSet;
use trawl_url::{LakeUrl, SuffixList};

/// The deny list over things that are not rows yet, or no longer.
#[derive(Debug)]
pub struct Denied<'a> {
    list: DenyList,
    suffixes: &'a SuffixList,
    /// Hosts of denied URLs and prefixes: a rejected line that names one is known to be about something denied.
    hosts: HashSet<String>,
    /// The IPv6 addresses among all that is denied.
    addresses: Vec<String>,
    /// Whether the suffix list cuts denied domains further, so that their rows may be of longer ones.
    cut_below: bool,
}

impl<'a> Denied<'a> {
    /// The deny list of a state of the lake, under a suffix list.
    pub fn new(manifest: &Manifest, suffixes: &'a SuffixList) -> Self {
        let list = DenyList::new(manifest, suffixes);
        let host = |target: &DenyTarget| match target {
            DenyTarget::Url(url) | DenyTarget::Prefix(url) => LakeUrl::parse(url, suffixes).ok(),
            DenyTarget::Domain(_) | DenyTarget::Dataset(_) => None,
        };
        let hosts = manifest.deny.iter().filter_map(|deny| host(&deny.target)).map(|url| url.host().to_owned());
        let cut_below = list.cuts_below(suffixes);
        let hosts: HashSet<String> = hosts.collect();
        let all = hosts.iter().map(String::as_str).chain(list.domains());
        let addresses = all.filter(|host| host.starts_with('[')).map(str::to_owned).collect();
        Self { hosts, addresses, list, suffixes, cut_below }
    }

    /// The list itself.
    pub fn list(&self) -> &DenyList {
        &self.list
    }

    /// Whether nothing that a record or a line says is denied.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.list.domains().next().is_none()
    }

    /// Whether a URL stays, in any spelling.
    pub fn keeps(&self, url: &str) -> bool {
        match LakeUrl::parse(url, self.suffixes) {
            Ok(url) => !self.list.row(url.host(), url.as_str()),
            // Whatever this is, no entry can be about it.
            Err(_) => true,
        }
    }

    /// Whether a file whose domains are cut by the lake's list may hold something denied.
    pub fn may_be_in(&self, file: &DataFile) -> bool {
        self.cut_below || self.list.names_between(&file.min_domain, &file.max_domain)
    }

    /// Whether a line of a rejects file stays: only what the source said is looked at, not where it said so.
    pub fn keeps_reject(&self, line: &str) -> bool {
        #[derive(serde::Deserialize)]
        struct Line {
            text: String,
        }
        // A line that is not an entry has no parts: all of it counts.
        let text = serde_json::from_str::<Line>(line).map_or_else(|_| line.to_owned(), |line| line.text);
        !self.is_named_in(&text)
    }

    /// Whether a text names a denied host, in any spelling.
    pub fn is_named_in(&self, text: &str) -> bool {
        if self.names_denied(text) {
            return true;
        }
        // Most texts have nothing that could be spelled otherwise.
        let plain = if text.contains("\\u") { Cow::Owned(unescaped(text)) } else { Cow::Borrowed(text) };
        let decoded = if plain.contains('%') { Cow::Owned(percent_decoded(&plain)) } else { plain.clone() };
        *plain != *text && self.names_denied(&plain) || *decoded != *plain && self.names_denied(&decoded)
    }

    fn names_denied(&self, text: &str) -> bool {
        let is_denied = |name: &str| self.hosts.contains(name) || self.list.domain(name);
        // Other scripts may stand beside a name without a space: so with them as part of it, and without.
        let with_scripts = |c: char| !c.is_ascii() && !c.is_whitespace();
        let ascii_only = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let lower = text.to_ascii_lowercase();
        let mut names = lower.split(|c| !ascii_only(c)).map(|part| part.trim_matches('.'));
        if names.any(is_denied) || self.addresses.iter().any(|address| lower.contains(address.as_str())) {
            return true;
        }
        let mut parts = lower.split(|c| !(ascii_only(c) || with_scripts(c))).filter(|part| !part.is_ascii());
        parts.any(|part| ascii(part.trim_matches('.')).is_some_and(|name| is_denied(&name)))
    }
}

/// A text with the `\u00fc` of JSON spelled out: a rejected line may be such a text.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut units: Vec<u16> = Vec::new();
    let mut rest = text;
    loop {
        let unit =
            rest.strip_prefix("\\u").and_then(|more| more.get(..4)).and_then(|d| u16::from_str_radix(d, 16).ok());
        if let Some(unit) = unit {
            units.push(unit);
            rest = rest.get(6..).unwrap_or_default();
            continue;
        }
        out.push_str(&String::from_utf16_lossy(&units));
        units.clear();
        let mut chars = rest.chars();
        let Some(c) = chars.next() else { return out };
        out.push(c);
        rest = chars.as_str();
    }
}

fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, more)) = rest.split_first() {
        let digits = rest.get(1..3).and_then(|d| std::str::from_utf8(d).ok()).filter(|_| byte == b'%');
        match digits.and_then(|d| u8::from_str_radix(d, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                rest = rest.get(3..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_lines_are_known_by_what_they_say() {
        let manifest = super::super::tests::manifest(&[
            DenyTarget::Domain("zap.org".into()),
            DenyTarget::Domain("xn--bcher-kva.example".into()),
            DenyTarget::Url("http://www.one.com/x".into()),
            DenyTarget::Domain("[2001:db8::1]".into()),
        ]);
        let suffixes = SuffixList::parse("com\n").unwrap();
        let denied = Denied::new(&manifest, &suffixes);
        for (text, keeps) in [
            ("https://ZAP.org:99999/", false),
            ("https://a.zap.org.:99999/", false),
            ("https://bigzap.org:99999/", true),
            ("https://zap.org.uk:99999/", true),
            ("https://keep.org:99999/", true),
            ("https://keep.org:99999/?to=https%3A%2F%2Fzap.org", false),
            ("https://bücher.example:99999/secret1", false),
            ("https://BU\u{308}CHER.example:99999/", false),
            ("https://b%C3%BCcher.example:99999/", false),
            ("https://xn--bcher-kva.example:99999/", false),
            (r#"{"url":"https:\/\/b\u00fccher.example:99999\/"}"#, false),
            ("訪問zap.org、", false),
            ("https://zap。org:99999", false),
            ("https://www.one.com:99999/", false),
            ("https://one.com:99999/", true),
            ("https://x.www.one.com:99999/", true),
            ("https://[2001:DB8::1]:99999/", false),
            ("", true),
        ] {
            let line =
                serde_json::json!({ "code": "port", "message": "m", "source": "/in/zap.org/r.txt", "text": text });
            assert_eq!(denied.keeps_reject(&line.to_string()), keeps, "{text}");
        }
        assert!(!denied.keeps_reject("no json, but zap.org"));
    }
}
