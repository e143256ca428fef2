//! Which links a crawl follows. Decided here and nowhere else: for links when a page is read (or read back from the journal,
//! by when the setting may be another one), for redirects when they are followed, because that depends on the depth.

use trawl_url::{SuffixList, WebUrl};

/// Which links are followed, seen from the page they stand on. Seeds, and where seeds redirect to, are always in scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Links to the same host.
    Host,
    /// Links to the same registrable domain.
    Domain,
    /// All links.
    Any,
}

impl Scope {
    /// Whether a link on one page to another is followed.
    pub(crate) fn allows(self, from: &WebUrl, to: &WebUrl) -> bool {
        let psl = SuffixList::builtin();
        match self {
            Self::Any => true,
            Self::Host => from.host() == to.host(),
            Self::Domain => psl.registrable(from.host()) == psl.registrable(to.host()),
        }
    }

    /// Whether a redirect of a page that is `depth` links from a seed is followed.
    pub(crate) fn follows(self, depth: u32, from: &WebUrl, to: &WebUrl) -> bool {
        // Where a seed moved to is what was asked for.
        depth == 0 || self.allows(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_is_seen_from_the_page() {
        let web = |url: &str| WebUrl::parse(url).unwrap();
        let page = web("http://www.a.co.uk/");
        let links = ["https://www.a.co.uk:8443/x", "http://cdn.a.co.uk/", "http://b.co.uk/"].map(web);
        for (scope, inside) in [(Scope::Host, 1), (Scope::Domain, 2), (Scope::Any, 3)] {
            assert_eq!(links.iter().filter(|link| scope.allows(&page, link)).count(), inside, "{scope:?}");
            // Where a seed moved to is in scope; where a page moved to only if a link to it were.
            assert!(scope.follows(0, &page, &links[2]));
            assert_eq!(scope.follows(1, &page, &links[2]), scope == Scope::Any);
        }
    }
}
