//! What the deny list says of rows, files and rejected lines: what a purge takes.

use anyhow::Context;
use trawl_model::UrlRecord;
use trawl_query::DenyList;
use trawl_store::manifest::DenyTarget;
use trawl_store::{DataFile, Lake, Manifest};
use trawl_url::{LakeUrl, SuffixList};

/// What a purge takes, decided row by row.
pub(super) struct Denied {
    pub list: DenyList,
    suffixes: SuffixList,
    /// Hosts by which a rejected line is known to be about something denied; those below count where it says so.
    hosts: Vec<(String, bool)>,
    /// Whether the suffix list cuts denied domains further, so that their rows may be of longer ones.
    cut_below: bool,
}

impl Denied {
    pub fn new(lake: &Lake, manifest: &Manifest) -> anyhow::Result<Self> {
        let bytes = lake.suffix_list(manifest)?;
        let suffixes = SuffixList::parse(std::str::from_utf8(&bytes)?).context("the lake's suffix list")?;
        let list = DenyList::new(manifest, &suffixes);
        let host = |target: &DenyTarget| match target {
            DenyTarget::Url(url) | DenyTarget::Prefix(url) => {
                LakeUrl::parse(url, &suffixes).ok().map(|url| (url.host().to_owned(), false))
            }
            DenyTarget::Domain(domain) => Some((domain.to_ascii_lowercase(), true)),
            DenyTarget::Dataset(_) => None,
        };
        let hosts = manifest.deny.iter().filter_map(|deny| host(&deny.target)).collect();
        let rules = suffixes.text().lines().map(|line| line.split_whitespace().next().unwrap_or_default());
        let names = rules.map(|rule| rule.trim_start_matches('!').trim_start_matches("*."));
        let is_denied = |name: &str| ascii(name).is_some_and(|name| list.domain(&name));
        // A top level that no rule names is a suffix too.
        let cut_below = list.domains().any(|domain| !domain.contains('.'))
            || list.domains().next().is_some() && names.filter(|name| !name.starts_with("//")).any(is_denied);
        Ok(Self { list, suffixes, hosts, cut_below })
    }

    pub fn keeps(&self, record: &UrlRecord) -> bool {
        match LakeUrl::parse(&record.url, &self.suffixes) {
            Ok(url) => !self.list.row(url.host(), url.as_str()),
            // Whatever this is, no entry can be about it.
            Err(_) => true,
        }
    }

    /// Whether a file whose domains are cut by the lake's list may hold something denied.
    pub fn may_be_in(&self, file: &DataFile) -> bool {
        self.cut_below || self.list.names().any(|name| *file.min_domain <= *name && *name <= *file.max_domain)
    }

    /// Whether a line of a rejects file stays: only what the source said is looked at, not where it said so.
    pub fn keeps_reject(&self, line: &str) -> bool {
        #[derive(serde::Deserialize)]
        struct Line {
            text: String,
        }
        // A line that is none tells nothing apart: all of it counts.
        let text = serde_json::from_str::<Line>(line).map_or_else(|_| line.to_owned(), |line| line.text);
        let plain = unescaped(&text);
        let decoded = percent_decoded(&plain);
        ![text, plain, decoded].iter().any(|text| self.names_denied(text))
    }

    /// Whether a text names a denied host, in any spelling.
    fn names_denied(&self, text: &str) -> bool {
        let is_denied = |name: &str| {
            self.hosts.iter().any(|(host, below)| match name.strip_suffix(host.as_str()) {
                Some("") => true,
                Some(rest) => *below && rest.ends_with('.'),
                None => false,
            })
        };
        // Other scripts may stand beside a name without a space: so with them as part of it, and without.
        let with_scripts = |c: char| !c.is_ascii() && !c.is_whitespace();
        let ascii_only = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let any = text.split(|c| !(ascii_only(c) || with_scripts(c))).any(|part| {
            let name = ascii(part);
            name.is_some_and(|name| is_denied(&name))
        });
        any || text.split(|c| !ascii_only(c)).any(|part| is_denied(&part.trim_matches('.').to_ascii_lowercase()))
            || self.names_address(text)
    }

    fn names_address(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        self.hosts.iter().any(|(host, _)| host.starts_with('[') && text.contains(host.as_str()))
    }
}

/// A name in any script as rows have it, if it is one.
fn ascii(name: &str) -> Option<String> {
    let name = name.trim_matches('.');
    if name.is_empty() {
        return None;
    }
    if name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.')) {
        return Some(name.to_owned());
    }
    // The list does not matter: only the host is wanted.
    LakeUrl::parse(&format!("http://{name}/"), SuffixList::builtin()).ok().map(|url| url.host().to_owned())
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
        let denied = Denied {
            list: DenyList::default(),
            suffixes: SuffixList::parse("com\n").unwrap(),
            hosts: [
                ("zap.org", true),
                ("xn--bcher-kva.example", true),
                ("www.one.com", false),
                ("[2001:db8::1]", true),
            ]
            .map(|(host, below)| (host.to_owned(), below))
            .to_vec(),
            cut_below: false,
        };
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
