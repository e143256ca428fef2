//! The model: everything about the synthetic web, computed from the seed, without any I/O.
//!
//! ```text
//! seed ─► domains ─► hosts (name, page count, robots, style)      kept: about 100 bytes a host
//!                      └─► page p: path, links, size, text        computed when asked, never kept
//!
//! hosts form a tree:   the home page of host i links the home pages of hosts S+iB .. S+(i+1)B   (S seeds, B below)
//! pages form a tree:   page p of a host links pages pb+1 ..= pb+b of it                         (b differs by host)
//! ```
//! Both trees make every page reachable from the seeds; links drawn by chance come on top.

mod build;
mod expect;
mod html;
mod page;
mod robots;
mod text;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;

use crate::config::Config;
use crate::error::Result;

pub use robots::{Group, Robots, Rule};

/// Hosts whose home page is linked from one host's home page for the sake of reachability.
const HOST_FANOUT: u32 = 5;

/// A host of the synthetic web, by its position in [`World::hosts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// A page of the synthetic web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId {
    /// Its host.
    pub host: HostId,
    /// Its number on the host; 0 is the home page.
    pub number: u32,
}

/// A host of the synthetic web.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Host {
    /// Host name in ASCII form, as it stands in URLs and in the `Host` header.
    pub name: String,
    /// The registrable domain the host belongs to, in ASCII form.
    pub domain: String,
    /// Number of pages; at least 1.
    pub pages: u32,
    /// How many children each page has in the page tree.
    branching: u32,
    /// How its paths look.
    style: page::Style,
    language: text::Language,
    robots: robots::Kind,
}

/// What a request for a URL is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// An HTML page with status 200.
    Page(PageId),
    /// The host's robots.txt with status 200.
    Robots(HostId),
    /// Status 404 of a host that exists.
    NotFound,
    /// No such host in this web; the server answers 421.
    UnknownHost,
    /// Not an absolute http URL of this web.
    NotAUrl,
}

/// The synthetic web as a pure model.
pub struct World {
    config: Config,
    hosts: Vec<Host>,
    by_name: HashMap<String, u32>,
    /// Pages of all hosts before this one: turns a page into a dense number.
    first_page: Vec<u64>,
    page_count: u64,
    pool: text::Pool,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("hosts", &self.hosts.len())
            .field("pages", &self.page_count)
            .finish_non_exhaustive()
    }
}

impl World {
    /// Computes the web of `config`.
    pub fn new(config: &Config) -> Result<Self> {
        config.validate()?;
        Ok(build::build(config))
    }

    /// The settings the web was computed from.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// All hosts, most popular first.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// One host.
    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.get(index(id.0))
    }

    /// The host with this (ASCII, lower-case) name.
    pub fn host_by_name(&self, name: &str) -> Option<HostId> {
        self.by_name.get(name).copied().map(HostId)
    }

    /// The pages of a host, home page first.
    pub fn pages(&self, host: HostId) -> impl Iterator<Item = PageId> + use<> {
        let count = self.host(host).map_or(0, |h| h.pages);
        (0..count).map(move |number| PageId { host, number })
    }

    /// Pages over all hosts.
    pub fn page_count(&self) -> u64 {
        self.page_count
    }

    /// The absolute URL of a page; empty for a page that does not exist.
    pub fn url(&self, page: PageId) -> String {
        let Some(host) = self.host(page.host).filter(|h| page.number < h.pages) else { return String::new() };
        let mut out = format!("http://{}", host.name);
        self.push_path(page, &mut out);
        out
    }

    /// URLs to start a crawl from: every expected page can be reached from them.
    pub fn seeds(&self) -> Vec<String> {
        (0..self.config.seeds).map(|host| self.url(PageId { host: HostId(host), number: 0 })).collect()
    }

    /// What a request for `url` is answered with.
    pub fn outcome(&self, url: &str) -> Outcome {
        let Some(rest) = url.strip_prefix("http://") else { return Outcome::NotAUrl };
        let (authority, target) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        self.answer(authority.strip_suffix(":80").unwrap_or(authority), target)
    }

    /// What a request with this `Host` and request target is answered with.
    pub fn answer(&self, host: &str, target: &str) -> Outcome {
        let Some(id) = self.host_by_name(host) else { return Outcome::UnknownHost };
        let target = target.split('#').next().unwrap_or(target);
        if target == "/robots.txt" {
            return if self.robots(id).is_some() { Outcome::Robots(id) } else { Outcome::NotFound };
        }
        self.page_at(id, target).map_or(Outcome::NotFound, Outcome::Page)
    }

    /// Position of a page among all pages of the web.
    fn dense(&self, page: PageId) -> Option<usize> {
        let host = self.host(page.host)?;
        let first = self.first_page.get(index(page.host.0))?;
        (page.number < host.pages).then(|| usize::try_from(first + u64::from(page.number)).ok()).flatten()
    }
}

/// A `u32` as an index; `usize` has at least 32 bits wherever this runs.
pub(crate) fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}
