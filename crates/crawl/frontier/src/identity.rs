//! What makes two URLs the same, and which queue they stand in.

use std::fmt;
use std::str::FromStr;
use trawl_url::key::{self, UrlKey};
use trawl_url::{LakeUrl, SuffixList, WebUrl};
use xxhash_rust::xxh3::xxh3_64;

/// The name of a URL inside a frontier: the key of its host in the upper half, that of the URL in the lower one. The same in
/// every run; ordered by host first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlId(pub u128);

impl UrlId {
    /// Of both halves.
    pub fn new(host: u64, path: u64) -> Self {
        Self(u128::from(host) << 64 | u128::from(path))
    }

    /// The key of its host group.
    pub fn host(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// The key of the URL.
    pub fn path(self) -> u64 {
        self.0 as u64
    }

    /// The same for one spelling of the URL alone: a key that no other URL has.
    pub(crate) fn spelt(self, url: &WebUrl) -> Self {
        Self::new(self.host(), xxh3_64(url.as_bytes()))
    }

    pub(crate) fn key(self) -> UrlKey {
        UrlKey { host: self.host(), path: self.path() }
    }
}

impl From<UrlKey> for UrlId {
    fn from(key: UrlKey) -> Self {
        Self::new(key.host, key.path)
    }
}

impl fmt::Debug for UrlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlId({self})")
    }
}

impl fmt::Display for UrlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for UrlId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

/// When two URLs count as the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// By [`key::identity`]: tracking parameters, and the order of parameters with different keys, do not count. For
    /// discovery.
    Key,
    /// By their spelling. For a list that someone wrote.
    Exact,
}

/// What stands in one queue: is asked one at a time, and with a delay in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueBy {
    /// Each host name.
    Host,
    /// All hosts of a registrable domain.
    Domain,
    /// All hosts behind an address. Rows are kept by host name; the delay and `per_host` hold for the address.
    Ip,
}

impl QueueBy {
    /// The queue of a host name.
    pub(crate) fn group(self, host: &str) -> &str {
        match self {
            Self::Domain => SuffixList::builtin().registrable(host),
            Self::Host | Self::Ip => host,
        }
    }
}

impl Identity {
    /// The id of a URL in queues by host. One that has no key form is identified by its spelling.
    pub fn of(self, url: &WebUrl) -> UrlId {
        self.in_queue(url, QueueBy::Host).0
    }

    /// The id of a URL; with the name of its queue where that differs from the host of the URL.
    pub fn in_queue(self, url: &WebUrl, queue: QueueBy) -> (UrlId, Option<String>) {
        let mut scratch = LakeUrl::with_capacity(url.len());
        if self == Self::Key
            && let Ok((key, host)) = key::identity_key(url, &mut scratch, |host| queue.group(host))
        {
            return (key.into(), (host != url.host()).then(|| host.to_owned()));
        }
        let host = queue.group(url.host());
        let other = (host != url.host()).then(|| host.to_owned());
        (UrlId::new(key::host_key(host), key::path_key(url)), other)
    }
}

/// The key of a site's robots.txt, which no page has.
pub(crate) fn robots_id(host: u64, site: &str) -> UrlId {
    UrlId::new(host, xxh3_64(format!("robots {site}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_spellings() {
        let [a, b] =
            ["http://a.example/?x=1&utm_source=z", "http://a.example/?x=1"].map(|url| WebUrl::parse(url).unwrap());
        let (a, b) = (&a, &b);
        assert_eq!(Identity::Key.of(a), Identity::Key.of(b));
        assert_ne!(Identity::Exact.of(a), Identity::Exact.of(b));
        assert_eq!(Identity::Exact.of(a).host(), Identity::Key.of(b).host());
        assert_ne!(Identity::Key.of(a).spelt(b), Identity::Key.of(b));
        // What may be two pages is never one: the reference's canonicaliser drops or merges all of these.
        let pages = [
            "p=a.git;a=tree",
            "p=a.git;a=log",
            "ref=a|b",
            "ref=a|c",
            "ref=b",
            "x=%zz",
            "x=%zy",
            "x=1&x=2",
            "x=2&x=1",
            "",
        ];
        let ids: std::collections::HashSet<_> = pages
            .iter()
            .flat_map(|query| ["/", "//", "/%zz"].map(|path| format!("http://a.example{path}?{query}")))
            .map(|url| Identity::Key.of(&WebUrl::parse(&url).unwrap()))
            .collect();
        assert_eq!(ids.len(), 3 * pages.len());
        let id = Identity::Key.of(a);
        assert_eq!(id.to_string().parse(), Ok(id));
        // By domain, hosts of one domain share the upper half.
        let [x, y] = ["http://x.a.co.uk/", "http://y.a.co.uk/"].map(|url| WebUrl::parse(url).unwrap());
        let by = |url| Identity::Key.in_queue(url, QueueBy::Domain);
        assert_eq!((by(&x).0.host(), by(&x).1.as_deref()), (by(&y).0.host(), Some("a.co.uk")));
    }
}
