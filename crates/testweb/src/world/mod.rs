//! The model: everything about the synthetic web, computed from the seed, without any I/O.
//!
//! ```text
//! seed ─► domains ─► hosts (name, page count, characters)         kept: about 150 bytes a host
//!                      └─► page p: path, links, fate, form, text  computed when asked, never kept
//!
//! hosts form a tree:   the home page of hub i links the home pages of hosts S+iB .. S+(i+1)B   (S seeds, B below)
//! pages form a tree:   page p of a host links pages pb+1 ..= pb+b of it                        (b differs by host)
//! ```
//! Both trees make every page reachable from the seeds: only hosts without serious trouble are hubs, and only pages
//! without children have trouble of their own. Links drawn by chance come on top.

mod build;
mod describe;
mod expect;
mod fate;
mod form;
mod html;
mod links;
mod node;
mod page;
mod robots;
mod sitemap;
mod text;
mod trap;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::net::Ipv4Addr;

use crate::character::Character;
use crate::config::{Addresses, Config};
use crate::error::Result;

pub use describe::{CharacterCount, Description};
pub(crate) use expect::redirects_before;
pub use expect::{Expectation, Want};
pub use fate::Outcome;
pub use form::Form;
pub(crate) use html::nofollow_in_header;
pub use links::Link;
pub use node::{Node, Resource};
pub use robots::{Group, Robots, RobotsReply, Rule};

/// Hosts whose home page is linked from one hub's home page for the sake of reachability.
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
    /// Number of its registrable domain; hosts with equal numbers share the domain.
    pub domain: u32,
    /// Where in `name` the registrable domain begins.
    domain_at: u8,
    /// Number of pages; at least 1.
    pub pages: u32,
    /// How many children each page has in the page tree.
    branching: u32,
    /// Position among the hubs (hosts whose home page is sure to be read), if it is one.
    hub: Option<u32>,
    style: page::Style,
    language: text::Language,
    /// How it is reached; plain http without a character.
    pub transport: Option<Character>,
    /// What is wrong with its certificate.
    pub certificate: Option<Character>,
    /// Its robots.txt.
    pub robots: Option<Character>,
    /// How it treats every request.
    pub conduct: Option<Character>,
    /// How it announces its pages.
    pub announcement: Option<Character>,
    /// A space without end on it.
    pub trap: Option<Character>,
    /// What it says about paths that do not exist.
    pub absence: Option<Character>,
    /// How its pages hang together.
    pub shape: Option<Character>,
    /// How its name is resolved.
    pub resolution: Option<Character>,
}

impl Host {
    /// The registrable domain, in ASCII form.
    pub fn registrable(&self) -> &str {
        self.name.get(usize::from(self.domain_at)..).unwrap_or(&self.name)
    }

    /// Whether its pages live on https.
    pub fn is_secure(&self) -> bool {
        self.transport.is_some()
    }

    /// Its characters on all axes that concern hosts.
    pub fn characters(&self) -> impl Iterator<Item = Character> {
        let address = match self.style {
            page::Style::Semicolon => Some(Character::SemicolonQuery),
            page::Style::Pipe => Some(Character::PipeQuery),
            _ => None,
        };
        let reached = [self.transport, self.certificate, self.robots, self.conduct, self.resolution];
        let built = [self.announcement, self.trap, self.absence, address, self.shape];
        reached.into_iter().chain(built).flatten()
    }

    /// Whether no request to it is ever answered.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.conduct, Some(Character::Silent | Character::HangUp))
            || self.certificate == Some(Character::CertBroken)
    }
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
    draws: form::Draws,
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

    /// The numbers of all hosts.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..u32::try_from(self.hosts.len()).unwrap_or(u32::MAX)).map(HostId)
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
        match self.host(page.host) {
            Some(host) if page.number < host.pages => self.url_of(self.node(page.host, Resource::Page(page.number))),
            _ => String::new(),
        }
    }

    /// URLs to start a crawl from: every expected page can be reached from them.
    pub fn seeds(&self) -> Vec<String> {
        (0..self.config.seeds).map(|host| self.url(PageId { host: HostId(host), number: 0 })).collect()
    }

    /// The address a host is to be found at; its port is that of the running server.
    pub fn address(&self, host: HostId) -> Ipv4Addr {
        let domain = self.host(host).map_or(0, |h| h.domain);
        match self.config.addresses {
            Addresses::One => match self.config.listen.ip() {
                std::net::IpAddr::V4(ip) => ip,
                std::net::IpAddr::V6(_) => Ipv4Addr::LOCALHOST,
            },
            Addresses::Many => {
                // 127.1.0.0 upward leaves 127.0.x.x to others; 2 million domains end at 127.31.x.x.
                let number = domain / self.config.domains_per_address.max(1);
                Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 1, 0, 0)).saturating_add(number))
            }
        }
    }

    /// All hosts with their addresses, in the format of a hosts file.
    pub fn hosts_file(&self) -> String {
        use fmt::Write;
        let mut out = String::new();
        for (id, host) in self.host_ids().zip(&self.hosts) {
            let _ = writeln!(out, "{} {}", self.address(id), host.name);
        }
        out
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
