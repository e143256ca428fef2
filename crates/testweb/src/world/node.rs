//! Everything a URL can name, and the way from a node to its URL and back.
//!
//! No table maps paths to nodes: a path carries the numbers of its node, and whatever is read from a path is believed
//! only if it gives that same path again.

use std::fmt::Write;

use super::{HostId, PageId, World, robots, sitemap, trap};
use crate::character::Character;
use crate::dice::{Dice, purpose};

/// What a URL names on its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Resource {
    /// A page by its number.
    Page(u32),
    /// `/robots.txt`.
    Robots,
    /// A file that robots.txt redirects to, counted from 1.
    RobotsHop(u32),
    /// A URL on the way of a redirect chain that starts at `page`, counted from 1.
    Hop {
        /// The page whose URL starts the chain.
        page: u32,
        /// Redirects behind it.
        hop: u32,
    },
    /// A path that is linked (from the page with this number) but does not exist.
    Missing(u32),
    /// `/sitemap.xml` (0) or another sitemap of the host.
    Sitemap(u32),
    /// The feed.
    Feed,
    /// A month of the calendar trap: months since year 0.
    Calendar(u32),
    /// A page under a session id.
    Session {
        /// The page.
        page: u32,
        /// The session.
        sid: u64,
    },
    /// A combination of filters.
    Facet(u32),
}

/// One URL of the web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Node {
    /// The host it is asked of.
    pub host: HostId,
    /// Whether it is asked over https.
    pub secure: bool,
    /// What is asked for.
    pub what: Resource,
}

impl World {
    /// A resource of a host, over the scheme the host lives on.
    pub fn node(&self, host: HostId, what: Resource) -> Node {
        Node { host, secure: self.host(host).is_some_and(|h| h.is_secure()), what }
    }

    /// The absolute URL of a node.
    pub fn url_of(&self, node: Node) -> String {
        let mut out = String::with_capacity(96);
        out.push_str(if node.secure { "https://" } else { "http://" });
        out.push_str(self.host(node.host).map_or("", |h| &h.name));
        self.push_target(node, &mut out);
        out
    }

    /// The node an absolute URL names; `None` for strangers. Fragments and `utm_` parameters do not matter.
    pub fn find(&self, url: &str) -> Option<Node> {
        let (secure, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let (authority, target) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let name = authority.strip_suffix(if secure { ":443" } else { ":80" }).unwrap_or(authority);
        self.find_target(secure, self.host_by_name(name)?, target)
    }

    /// The node that a request target names on a host.
    pub fn find_target(&self, secure: bool, host: HostId, target: &str) -> Option<Node> {
        let target = without_tracking(target.split('#').next().unwrap_or(target));
        let what = self.guess(host, &target)?;
        let node = Node { host, secure, what };
        let mut again = String::with_capacity(target.len());
        self.push_target(node, &mut again);
        (again == *target).then_some(node)
    }

    /// What a target might name, to be checked by writing it again.
    fn guess(&self, id: HostId, target: &str) -> Option<Resource> {
        let host = self.host(id)?;
        match target {
            "/" => return Some(Resource::Page(0)),
            "/robots.txt" => return Some(Resource::Robots),
            "/feed.xml" => return (host.announcement == Some(Character::Feed)).then_some(Resource::Feed),
            _ => {}
        }
        if let Some(rest) = target.strip_prefix("/robots/") {
            let hop = rest.strip_suffix(".txt")?.parse().ok()?;
            return (1..=robots::hops(self, id)).contains(&hop).then_some(Resource::RobotsHop(hop));
        }
        if let Some(rest) = target.strip_prefix("/go/") {
            let (page, hop) = rest.split_once('/')?;
            let (page, hop) = (page.parse().ok()?, hop.parse().ok()?);
            let hops = self.hops(PageId { host: id, number: page });
            return (hop >= 1 && hop < hops).then_some(Resource::Hop { page, hop });
        }
        if target.starts_with("/sitemap") {
            return sitemap::guess(self, id, target).map(Resource::Sitemap);
        }
        if let Some(trapped) = trap::guess(self, id, target) {
            return Some(trapped);
        }
        if let Some(rest) = target.strip_prefix("/old/") {
            return rest.rsplit('-').next()?.parse().ok().filter(|&n| n < host.pages).map(Resource::Missing);
        }
        self.guess_page(host, target).map(Resource::Page)
    }

    /// Appends the request target of a node.
    pub(crate) fn push_target(&self, node: Node, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = match node.what {
            Resource::Page(number) => {
                self.push_path(PageId { host: node.host, number }, out);
                Ok(())
            }
            Resource::Robots => out.write_str("/robots.txt"),
            Resource::RobotsHop(hop) => write!(out, "/robots/{hop}.txt"),
            Resource::Hop { page, hop } => write!(out, "/go/{page}/{hop}"),
            Resource::Missing(number) => {
                out.push_str("/old/");
                let place = u64::from(number) | 1 << 33;
                super::page::push_slug(&mut Dice::new(self.config.seed, purpose::SLUG, node.host.0.into(), place), out);
                write!(out, "-{number}")
            }
            Resource::Sitemap(number) => sitemap::push_target(number, out),
            Resource::Feed => out.write_str("/feed.xml"),
            Resource::Calendar(_) | Resource::Session { .. } | Resource::Facet(_) => trap::push_target(self, node, out),
        };
    }
}

/// A target without its `utm_` parameters.
fn without_tracking(target: &str) -> std::borrow::Cow<'_, str> {
    let Some((path, query)) = target.split_once('?').filter(|(_, query)| query.contains("utm_")) else {
        return target.into();
    };
    let kept: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("utm_")).collect();
    if kept.is_empty() { path.into() } else { format!("{path}?{}", kept.join("&")).into() }
}

#[cfg(test)]
mod tests {
    use super::without_tracking;

    #[test]
    fn tracking_parameters_are_dropped_and_others_stay() {
        for (from, to) in [
            ("/a", "/a"),
            ("/a?x=1", "/a?x=1"),
            ("/a?utm_source=s", "/a"),
            ("/a?utm_source=s&x=1&utm_medium=m", "/a?x=1"),
            ("/utm_a?x=utm_", "/utm_a?x=utm_"),
        ] {
            assert_eq!(without_tracking(from), to);
        }
    }
}
