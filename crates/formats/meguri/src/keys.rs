//! How the keys of a file were made from URLs.

use crate::footer::Metadata;
use trawl_url::key::{self, HostGroup, Policy, UrlKey};
use trawl_url::{Reject, SuffixList};

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

/// A host key: `0x` and hex digits, a number, or the name of a host group, which is hashed.
pub fn parse_host(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => Some(u64::from_str_radix(hex, 16)),
        None if text.bytes().all(|b| b.is_ascii_digit()) => Some(text.parse()),
        None => None,
    };
    match number {
        Some(parsed) => parsed.map_err(|e| format!("expected a host or its key, found {text:?}: {e}")),
        None => Ok(key::host_key(&text.to_ascii_lowercase())),
    }
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
