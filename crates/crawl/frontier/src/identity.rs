//! What makes two URLs the same.

use std::fmt;
use std::str::FromStr;
use trawl_url::{SuffixList, WebUrl, key};
use xxhash_rust::xxh3::xxh3_128;

/// The name of a URL inside a frontier: 128 bits, the same in every run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlId(pub u128);

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

/// How URLs are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// By [`key::identity`]: tracking parameters, and the order of parameters with different keys, do not count. For
    /// discovery.
    Key,
    /// By their spelling. For a list that someone wrote.
    Exact,
}

impl Identity {
    /// The id of a URL. One that has no key form is told by its spelling.
    pub fn of(self, url: &WebUrl) -> UrlId {
        match self {
            Self::Exact => Self::exact(url),
            Self::Key => match key::identity(url, SuffixList::builtin()) {
                Ok(canonical) => {
                    let key = key::of(&canonical, key::HostGroup::FullHost, SuffixList::builtin());
                    UrlId(u128::from_le_bytes(key.to_bytes()))
                }
                Err(_) => Self::exact(url),
            },
        }
    }

    /// The id of where a redirect leads. A redirect between two spellings of one key is still a redirect: its target has
    /// to be fetched.
    pub fn of_redirect(self, source: UrlId, target: &WebUrl) -> UrlId {
        match self.of(target) {
            id if id == source => Self::exact(target),
            id => id,
        }
    }

    fn exact(url: &str) -> UrlId {
        UrlId(xxh3_128(url.as_bytes()))
    }
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
        assert_ne!(Identity::Key.of_redirect(Identity::Key.of(a), b), Identity::Key.of(b));
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
    }
}
