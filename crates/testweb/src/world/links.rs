//! Where pages link, and how each link is written.

use super::{HOST_FANOUT, HostId, Node, PageId, Resource, World, trap};
use crate::character::Character;
use crate::dice::{Dice, purpose};

/// A link as it stands in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// Where it leads.
    pub to: Node,
    /// Whether it carries `utm_` parameters, which do not change where it leads.
    pub tracked: bool,
    /// Which odd spelling it is written in, if any.
    pub(super) spelling: Option<u8>,
}

/// A page with more links than this has its repeats found by hashing.
const MANY_LINKS: usize = 64;
/// Number of odd spellings.
const SPELLINGS: u64 = 9;

impl World {
    /// The links of a node's body, in order, without repeats; empty for nodes whose body has none.
    pub fn links(&self, mut node: Node) -> Vec<Link> {
        if let Resource::Page(number) = &mut node.what {
            // A duplicate has the very bytes of the page before it, links included.
            *number = self.original(PageId { host: node.host, number: *number }).number;
        }
        let mut targets = match node.what {
            Resource::Page(number) => self.page_links(PageId { host: node.host, number }),
            Resource::Calendar(_) | Resource::Session { .. } | Resource::Facet(_) => trap::links(self, node),
            Resource::Missing(_) => vec![self.node(node.host, Resource::Page(0))],
            _ => Vec::new(),
        };
        if targets.len() > MANY_LINKS {
            let mut seen = std::collections::HashSet::with_capacity(targets.len());
            targets.retain(|to| seen.insert(*to));
        }
        // Twenty-odd entries: comparing them all is faster than hashing them.
        let mut at = 0;
        while targets.len() <= MANY_LINKS
            && let Some((seen, [this, ..])) = targets.split_at_checked(at)
        {
            if seen.contains(this) {
                targets.remove(at);
            } else {
                at += 1;
            }
        }
        if self.draws.links_are_plain() {
            return targets.into_iter().map(|to| Link { to, tracked: false, spelling: None }).collect();
        }
        self.with_characters(node, targets)
    }

    fn with_characters(&self, node: Node, targets: Vec<Node>) -> Vec<Link> {
        let nofollow = |number| self.is_nofollow(PageId { host: node.host, number });
        let (page, salt) = match node.what {
            Resource::Page(number) => (number, 0),
            _ => (0, 1),
        };
        let mut dice = Dice::new(self.config.seed, purpose::SPELLING, node.host.0.into(), u64::from(page) << 1 | salt);
        let mut out: Vec<Link> = Vec::with_capacity(targets.len() + 1);
        let mut broken = matches!(node.what, Resource::Page(number) if nofollow(number));
        for mut to in targets {
            let drawn = self.draws.link.draw(&mut dice);
            let spelling = u8::try_from(dice.below(SPELLINGS)).unwrap_or(0);
            broken |= drawn == Some(Character::BrokenLink);
            if drawn == Some(Character::Insecure) && matches!(to.what, Resource::Page(_)) {
                to.secure = false;
            }
            // A rule that ends in $ tells a tracked URL from the plain one, and then they are no longer the same page.
            let closed = matches!(to.what, Resource::Page(number) if self.is_closed(PageId { host: to.host, number }));
            out.push(Link {
                to,
                tracked: drawn == Some(Character::Tracked) && !closed,
                spelling: (drawn == Some(Character::OddSpelling)).then_some(spelling),
            });
        }
        if broken && matches!(node.what, Resource::Page(_)) {
            let to = self.node(node.host, Resource::Missing(page));
            out.push(Link { to, tracked: false, spelling: None });
        }
        out
    }

    fn page_links(&self, page: PageId) -> Vec<Node> {
        let Some(host) = self.host(page.host).filter(|h| page.number < h.pages) else { return Vec::new() };
        let mut out = Vec::with_capacity(24);
        let on_host = |number| self.node(page.host, Resource::Page(number));
        out.push(on_host(0));
        if page.number > 0 {
            out.push(on_host((page.number - 1) / host.branching.max(1)));
        }
        let first = u64::from(page.number) * u64::from(host.branching) + 1;
        let children = first..(first + u64::from(host.branching)).min(host.pages.into());
        let orphan = |number| self.is_orphan(PageId { host: page.host, number });
        out.extend(children.filter_map(|n| u32::try_from(n).ok()).filter(|&n| !orphan(n)).map(on_host));
        let mut dice = Dice::new(self.config.seed, purpose::LINKS, page.host.0.into(), page.number.into());
        for _ in 0..dice.below(4) {
            let number = u32::try_from(dice.below(host.pages.into())).unwrap_or(0);
            out.push(on_host(if orphan(number) { 0 } else { number }));
        }
        for _ in 0..dice.below(4) {
            out.extend(self.popular_page(&mut dice));
        }
        if page.number == 0 {
            out.extend(self.linked_hosts(page.host));
        }
        trap::entrances(self, page, &mut out);
        out
    }

    /// Home pages that a hub links so that every host is reachable.
    fn linked_hosts(&self, host: HostId) -> impl Iterator<Item = Node> {
        let hub = self.host(host).and_then(|h| h.hub).map(u64::from);
        let first = u64::from(self.config.seeds) + hub.unwrap_or(u64::from(u32::MAX)) * u64::from(HOST_FANOUT);
        let hosts = first..(first + u64::from(HOST_FANOUT)).min(self.hosts.len() as u64);
        hosts.filter_map(|n| u32::try_from(n).ok()).map(|n| self.node(HostId(n), Resource::Page(0)))
    }

    /// A page of a host drawn by popularity, mostly its home page.
    fn popular_page(&self, dice: &mut Dice) -> Option<Node> {
        // Rank = hosts^u is Zipf with exponent 1: the first ten hosts draw as many links as the next ninety.
        let rank = (self.hosts.len() as f64).powf(dice.unit()) - 1.0;
        let host = HostId((rank as u32).min(u32::try_from(self.hosts.len()).ok()?.saturating_sub(1)));
        let pages = self.host(host)?.pages;
        let number = if dice.percent(60) { 0 } else { u32::try_from(dice.below(pages.into())).ok()? };
        let orphan = self.is_orphan(PageId { host, number });
        Some(self.node(host, Resource::Page(if orphan { 0 } else { number })))
    }

    /// Appends the value of the `href` attribute of a link on a page of `host`.
    pub(super) fn push_href(&self, host: HostId, link: &Link, out: &mut String) {
        let name = self.host(link.to.host).map_or("", |h| &h.name);
        let same_origin = link.to.host == host && link.to.secure == self.host(host).is_some_and(|h| h.is_secure());
        let (scheme, port) = if link.to.secure { ("https", ":443") } else { ("http", ":80") };
        let mut target = String::with_capacity(64);
        self.push_target(link.to, &mut target);
        if link.tracked {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str("utm_source=web&utm_medium=link");
        }
        // In an attribute, & is written &amp;.
        let target = if target.contains('&') { target.replace('&', "&amp;") } else { target };
        let mut put = |parts: &[&str]| parts.iter().for_each(|part| out.push_str(part));
        let upper = || name.to_ascii_uppercase();
        let slash_less = target.strip_prefix('/').unwrap_or("");
        match link.spelling {
            None if same_origin => put(&[&target]),
            None => put(&[scheme, "://", name, &target]),
            Some(0) => put(&[scheme, "://", name, port, &target]),
            Some(1) => put(&[&scheme.to_ascii_uppercase(), "://", &upper(), &target]),
            Some(2) => put(&[scheme, "://", name, &target, "#top"]),
            Some(3) => put(&["\n  ", scheme, "://", name, &target, " "]),
            Some(4) => put(&[scheme, "://", name, "/here/../", slash_less]),
            Some(5) => put(&[scheme, "://", name, "/./", slash_less]),
            Some(6) => put(&[scheme, ":&#x2F;&#47;", name, &target]),
            // Relative to any page of the host: it climbs above the root, where dot segments stop.
            Some(7) if same_origin => put(&["../../../../../../", slash_less]),
            Some(7) => put(&[scheme, "://", name, "\t", &target]),
            Some(_) if same_origin => put(&["//", name, &target]),
            Some(_) => put(&[scheme, ":\\\\", name, &target]),
        }
    }
}
