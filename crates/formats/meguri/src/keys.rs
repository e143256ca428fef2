//! How the keys of a file were made from URLs.

use crate::footer::Metadata;
use trawl_url::key::{self, HostGroup, Policy, UrlKey};
use trawl_url::{Reject, SuffixList, WebUrl};
use xxhash_rust::xxh3::xxh3_64;

/// The metadata key that names the policy; absent means the reference's.
pub const KEY_POLICY: &[u8] = b"key_policy";
/// The metadata key that names the host group: `registrable` or `full_host`; absent means the policy's own.
pub const HOST_GROUP: &[u8] = b"host_group";

/// A rule that turns URLs into keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyPolicy {
    /// The reference's canonical form, or the legacy one: its files do not say which of them, and mix both.
    #[default]
    Reference,
    /// Raw text cut at the first `/`, `?` or `#`, as the reference's seed commands have it.
    Legacy,
    /// Trawl's identity: see [`trawl_url::key::identity`].
    Trawl,
    /// The URL exactly as it was found.
    Exact,
}

/// A host key: `0x` and hex digits, a number, or the name of a host group, which is hashed in the spelling that keys are made
/// of: in lower case, in ASCII, without a dot at its end.
pub fn parse_host(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => Some(u64::from_str_radix(hex, 16)),
        None if text.bytes().all(|b| b.is_ascii_digit()) => Some(text.parse()),
        None => None,
    };
    match number {
        Some(parsed) => parsed.map_err(|e| format!("expected a host or its key, found {text:?}: {e}")),
        None => Ok(match WebUrl::parse(&format!("http://{}/", text.strip_suffix('.').unwrap_or(text))) {
            Ok(url) if !text.contains(['/', '@']) => key::host_key(url.host()),
            _ => key::host_key(&text.to_ascii_lowercase()),
        }),
    }
}

/// Whether a host key is that of a host or of a domain above it.
fn host_fits(host_key: u64, mut host: &str) -> bool {
    loop {
        if key::host_key(host) == host_key {
            return true;
        }
        match host.split_once('.') {
            Some((_, above)) => host = above,
            None => return false,
        }
    }
}

/// Whether a row lies beside the page of its URL: a frontier gives keys of their own to the target of a redirect between two
/// spellings of one key, and to the robots.txt of a site.
fn is_aside(path_key: u64, url: &str) -> bool {
    let robots = |site: &str| xxh3_64(format!("robots {site}").as_bytes());
    path_key == xxh3_64(url.as_bytes()) || url.strip_suffix("/robots.txt").is_some_and(|site| path_key == robots(site))
}

impl KeyPolicy {
    const NAMES: [(KeyPolicy, &'static str); 4] = [
        (KeyPolicy::Reference, "reference"),
        (KeyPolicy::Legacy, "legacy"),
        (KeyPolicy::Trawl, "trawl"),
        (KeyPolicy::Exact, "exact"),
    ];

    /// Its name in metadata.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(policy, _)| *policy == self).map_or("", |(_, name)| name)
    }

    /// By its name.
    pub fn from_name(name: &str) -> Option<KeyPolicy> {
        Self::NAMES.iter().find(|(_, known)| *known == name).map(|(policy, _)| *policy)
    }

    /// What a file says; a name that is unknown here counts as the reference's, whose keys match no other policy's.
    pub fn of(metadata: &Metadata) -> KeyPolicy {
        let name = metadata.get(KEY_POLICY).and_then(|name| std::str::from_utf8(name).ok());
        name.and_then(Self::from_name).unwrap_or_default()
    }

    /// What a file says, if it says it and the name is known: only then is it known what its keys must be.
    pub fn stated(metadata: &Metadata) -> Option<KeyPolicy> {
        metadata.get(KEY_POLICY).and_then(|name| std::str::from_utf8(name).ok()).and_then(Self::from_name)
    }

    /// Whether a row of `url` may have this key. The host half is that of the host or of a domain above it: which one depends
    /// on the grouping and on the suffix list of the writer.
    pub fn fits(self, key: UrlKey, url: &str, psl: &SuffixList) -> bool {
        let normal = || match self {
            KeyPolicy::Reference => key::canonical(url.as_bytes(), None, &Policy::default()).ok(),
            _ => key::identity(url, psl).ok(),
        };
        if self == KeyPolicy::Legacy {
            return key::legacy(url, None) == key;
        }
        // Most URLs are spelt as they are hashed: the spelling first, which costs a tenth of the normal form.
        let by_spelling = match self {
            KeyPolicy::Reference => key.path == key::path_key(url),
            _ => key.path == key::path_key(url) || is_aside(key.path, url),
        };
        if by_spelling && host_fits(key.host, key::host_of(url)) {
            return true;
        }
        let by_form = |form: &str| key.path == key::path_key(form) && self != KeyPolicy::Exact;
        normal().is_some_and(|form| (by_spelling || by_form(&form)) && host_fits(key.host, key::host_of(&form)))
    }

    /// As [`KeyPolicy::fits`], of stored bytes. Keys are made of text, so that what is not UTF-8 has none.
    pub(crate) fn fits_bytes(self, key: UrlKey, url: &[u8], psl: &SuffixList) -> bool {
        std::str::from_utf8(url).is_ok_and(|url| self.fits(key, url, psl))
    }

    /// The host group unless a caller says otherwise: the reference counts by registrable domain, Trawl by host name.
    pub fn default_group(self) -> HostGroup {
        match self {
            KeyPolicy::Reference => HostGroup::Registrable,
            KeyPolicy::Legacy | KeyPolicy::Trawl | KeyPolicy::Exact => HostGroup::FullHost,
        }
    }

    /// The key of a URL, and the host group it counts to.
    pub fn key(self, url: &str, group: HostGroup, psl: &SuffixList) -> Result<(UrlKey, String), Reject> {
        let grouped = |canonical: &str| {
            let host = key::host_of(canonical);
            let name = if group == HostGroup::Registrable { psl.registrable(host) } else { host };
            name.to_owned()
        };
        match self {
            KeyPolicy::Reference => {
                let canonical = key::canonical(url.as_bytes(), None, &Policy::default())?;
                Ok((key::of(&canonical, group, psl), grouped(&canonical)))
            }
            KeyPolicy::Legacy => {
                let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
                let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
                Ok((key::legacy(url, None), host.to_owned()))
            }
            KeyPolicy::Trawl => {
                let identity = key::identity(url, psl)?;
                Ok((key::of(&identity, group, psl), grouped(&identity)))
            }
            KeyPolicy::Exact => {
                let identity = key::identity(url, psl)?;
                let host = grouped(&identity);
                Ok((UrlKey { host: key::host_key(&host), path: key::path_key(url) }, host))
            }
        }
    }

    /// Every key under which a file of this policy may have the URL, the likeliest first.
    pub fn candidates(self, url: &str, psl: &SuffixList) -> Vec<UrlKey> {
        let groups = [self.default_group(), HostGroup::FullHost, HostGroup::Registrable];
        let mut keys: Vec<UrlKey> = Vec::new();
        let mut add = |policy: KeyPolicy, group| {
            if let Ok((key, _)) = policy.key(url, group, psl)
                && !keys.contains(&key)
            {
                keys.push(key);
            }
        };
        groups.iter().for_each(|group| add(self, *group));
        if self == KeyPolicy::Reference {
            add(KeyPolicy::Legacy, HostGroup::FullHost);
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_in_any_spelling() {
        for (spelled, group) in [
            ("Shop.Example", "shop.example"),
            ("b\u{fc}cher.example", "xn--bcher-kva.example"),
            ("shop.example.", "shop.example"),
            ("[::1]", "[::1]"),
            ("under_score.example", "under_score.example"),
        ] {
            assert_eq!(parse_host(spelled), Ok(key::host_key(group)), "{spelled}");
        }
        assert_eq!(parse_host("0x1f"), Ok(31));
        assert_eq!(parse_host("31"), Ok(31));
    }

    #[test]
    fn keys_that_fit_their_urls() {
        let psl = SuffixList::builtin();
        let url = "HTTP://Shop.Example.co.uk:80/a?utm_source=x&b=1#top";
        for policy in [KeyPolicy::Trawl, KeyPolicy::Exact, KeyPolicy::Reference, KeyPolicy::Legacy] {
            for group in [HostGroup::FullHost, HostGroup::Registrable] {
                let (key, _) = policy.key(url, group, psl).unwrap();
                assert!(policy.fits(key, url, psl), "{policy:?} {group:?}");
                assert!(!policy.fits(key, "http://shop.example.co.uk/other", psl), "{policy:?} {group:?}");
                assert!(!policy.fits(UrlKey { host: key.host ^ 1, ..key }, url, psl), "{policy:?} {group:?}");
            }
        }
        let (key, _) = KeyPolicy::Trawl.key(url, HostGroup::FullHost, psl).unwrap();
        assert!(KeyPolicy::Trawl.fits(key, "http://shop.example.co.uk/a?b=1", psl), "another spelling of the page");
        assert!(!KeyPolicy::Exact.fits(key, url, psl), "the key of another policy");
        // Rows of a frontier that are not pages of their own.
        let aside = |text: &str| UrlKey { path: xxh3_64(text.as_bytes()), ..key };
        assert!(KeyPolicy::Trawl.fits(aside("http://shop.example.co.uk/a/"), "http://shop.example.co.uk/a/", psl));
        let robots = aside("robots http://shop.example.co.uk");
        assert!(KeyPolicy::Trawl.fits(robots, "http://shop.example.co.uk/robots.txt", psl));
        assert!(!KeyPolicy::Trawl.fits(robots, "https://shop.example.co.uk/robots.txt", psl));
    }
}
