//! A crawler that keeps every rule, in virtual time, over the model: it writes the log a server would have written.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write;
use std::net::Ipv4Addr;

use crate::character::Character;
use crate::settings::CrawlSettings;
use crate::world::{HostId, Node, Outcome, PageId, Resource, World, redirects_before};

/// A request to be logged.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) start_us: u64,
    pub(super) length_us: u64,
    pub(super) local: Ipv4Addr,
    pub(super) secure: bool,
    pub(super) name: Option<String>,
    pub(super) host: Option<String>,
    pub(super) method: &'static str,
    pub(super) target: String,
    pub(super) status: u16,
    pub(super) bytes: u64,
    pub(super) agent: Option<String>,
    pub(super) if_none_match: Option<String>,
    pub(super) if_modified_since: Option<String>,
    pub(super) whole: bool,
    pub(super) node: Option<Node>,
}

pub(super) struct Simulation<'a> {
    pub(super) world: &'a World,
    pub(super) settings: &'a CrawlSettings,
    pub(super) requests: Vec<Request>,
    now_us: u64,
    free_at: HashMap<HostId, u64>,
    address_free_at: HashMap<Ipv4Addr, u64>,
    delay_us: HashMap<HostId, u64>,
    origins: HashSet<(HostId, bool)>,
    refused: HashMap<Node, u32>,
    trapped: HashMap<(HostId, Option<u32>), u32>,
}

const LENGTH_US: u64 = 2_000;

impl<'a> Simulation<'a> {
    pub(super) fn run(world: &'a World, settings: &'a CrawlSettings) -> Self {
        let mut simulation = Self {
            world,
            settings,
            requests: Vec::new(),
            now_us: 0,
            free_at: HashMap::new(),
            address_free_at: HashMap::new(),
            delay_us: HashMap::new(),
            origins: HashSet::new(),
            refused: HashMap::new(),
            trapped: HashMap::new(),
        };
        simulation.crawl();
        simulation
    }

    fn crawl(&mut self) {
        let seeds = self.world.seeds();
        let mut queue: VecDeque<(Node, u32)> = seeds.iter().map(|url| (self.world.find(url).unwrap(), 0)).collect();
        // The least depth known of each node: a shorter way found later is passed on, without another fetch.
        let mut depths: HashMap<Node, u32> = queue.iter().copied().collect();
        let mut fetched: HashMap<Node, bool> = HashMap::new();
        let mut mapped: HashSet<HostId> = HashSet::new();
        while let Some((node, depth)) = queue.pop_front() {
            if depths[&node] < depth {
                continue;
            }
            let open = *fetched.entry(node).or_insert_with(|| {
                let allowed = self.may_fetch(node);
                if allowed {
                    self.fetch_until_settled(node);
                }
                allowed
            });
            if !open {
                continue;
            }
            let nofollow = |number| self.world.is_nofollow(PageId { host: node.host, number });
            let found: Vec<(Node, u32)> = match self.world.outcome_of(node) {
                Outcome::Redirect { to, .. } if redirects_before(node) < self.settings.max_redirects => {
                    vec![(to, depth)]
                }
                Outcome::Content(_) | Outcome::Later { .. } | Outcome::Broken { .. } if depth < self.settings.depth => {
                    let silenced = matches!(node.what, Resource::Page(number) if nofollow(number));
                    let links = self.world.links(node).into_iter().filter(|_| !silenced);
                    links.map(|link| (link.to, depth + 1)).collect()
                }
                _ => Vec::new(),
            };
            let mut found = found;
            if let Some(depth) = self.settings.sitemap_depth.filter(|_| mapped.insert(node.host)) {
                let host = self.world.host(node.host).unwrap();
                let announced = self.world.robots(node.host).is_some_and(|r| !r.sitemaps.is_empty());
                let pages = (0..host.pages).filter(|_| announced);
                found.extend(pages.map(|n| (self.world.node(node.host, Resource::Page(n)), depth)));
            }
            for (to, depth) in found.into_iter().filter(|&(_, depth)| depth <= self.settings.depth) {
                let known = depths.entry(to).or_insert(u32::MAX);
                if depth < *known {
                    *known = depth;
                    queue.push_back((to, depth));
                }
            }
        }
    }

    /// Fetches robots.txt where needed; whether the node may be fetched then.
    fn may_fetch(&mut self, node: Node) -> bool {
        if matches!(node.what, Resource::Calendar(_) | Resource::Session { .. } | Resource::Facet(_)) {
            let page = if let Resource::Session { page, .. } = node.what { Some(page) } else { None };
            let count = self.trapped.entry((node.host, page)).or_default();
            *count += 1;
            if *count > self.settings.trap_budget {
                return false;
            }
        }
        if self.origins.insert((node.host, node.secure)) {
            let mut at = Node { what: Resource::Robots, ..node };
            for _ in 0..6 {
                self.fetch(at);
                match self.world.outcome_of(at) {
                    Outcome::Broken { .. } => {
                        self.fetch(at);
                        break;
                    }
                    Outcome::Redirect { to, .. } => {
                        // The rules of the right scheme may be known already; a crawler fetches them again all the same.
                        self.origins.insert((to.host, to.secure));
                        at = to;
                    }
                    _ => break,
                }
            }
            let delay = self.world.robots(node.host).and_then(|r| r.crawl_delay_ms(&self.settings.agent)).unwrap_or(0);
            self.delay_us.insert(node.host, delay.min(self.settings.max_crawl_delay_ms) * 1000);
        }
        let mut path = String::new();
        self.world.push_target(node, &mut path);
        !self.world.robots_unreachable(node.host) && self.world.allows(node.host, &self.settings.agent, &path)
    }

    fn fetch_until_settled(&mut self, node: Node) {
        let times = match self.world.outcome_of(node) {
            Outcome::Later { times, .. } | Outcome::Broken { times, .. } => times,
            _ => 0,
        };
        for _ in 0..=times {
            self.fetch(node);
        }
    }

    /// Asks for a node as soon as politeness allows; the number of the request.
    pub(super) fn fetch(&mut self, node: Node) -> usize {
        let address = self.world.address(node.host);
        let host_free = self.free_at.get(&node.host).copied().unwrap_or(0);
        let address_free = self.address_free_at.get(&address).copied().unwrap_or(0);
        let start_us = self.now_us.max(host_free).max(address_free);
        let mut request = self.request(node);
        request.start_us = start_us;
        // Another host can be asked while this one rests.
        self.now_us += 100;
        let mut free =
            start_us + (self.settings.host_interval_ms * 1000).max(self.delay_us.get(&node.host).copied().unwrap_or(0));
        if matches!(request.status, 429 | 503) {
            free = free.max(start_us + LENGTH_US + self.world.config().retry_after_s * 1_000_000);
        }
        self.free_at.insert(node.host, free.max(start_us + LENGTH_US));
        let address_free = start_us
            + (self.settings.ip_interval_ms * 1000).max(if self.settings.ip_in_flight > 0 { LENGTH_US } else { 0 });
        self.address_free_at.insert(address, address_free);
        self.requests.push(request);
        self.requests.len() - 1
    }

    /// A request for a node with the answer it gets, at time 0.
    pub(super) fn request(&mut self, node: Node) -> Request {
        let host = self.world.host(node.host).unwrap().name.clone();
        let mut target = String::new();
        self.world.push_target(node, &mut target);
        let (status, whole) = match self.world.outcome_of(node) {
            Outcome::Content(_) => (200, true),
            Outcome::Redirect { status, .. } | Outcome::Status(status) => (status, true),
            Outcome::Later { status, times, .. } => {
                let count = self.refused.entry(node).or_default();
                *count += 1;
                (if *count <= times { status } else { 200 }, true)
            }
            Outcome::Broken { times, .. } => {
                let count = self.refused.entry(node).or_default();
                *count += 1;
                (200, *count > times)
            }
            Outcome::Trouble(_, Character::Drip | Character::Bomb | Character::BadHead) => (200, true),
            Outcome::Trouble(_, Character::Stall) | Outcome::NoAnswer(_) => (0, false),
            Outcome::Trouble(..) => (200, false),
            Outcome::NotFound(id) if self.world.host(id).unwrap().absence.is_some() => (200, true),
            Outcome::NotFound(_) => (404, true),
            Outcome::UnknownHost | Outcome::NotAUrl => (421, true),
        };
        Request {
            start_us: 0,
            length_us: LENGTH_US,
            local: self.world.address(node.host),
            secure: node.secure,
            name: Some(host.clone()),
            host: Some(host),
            method: "GET",
            target,
            status,
            bytes: 1_000,
            agent: Some(format!("{}/1.0", self.settings.agent)),
            if_none_match: None,
            if_modified_since: None,
            whole,
            node: Some(node),
        }
    }

    /// The first request for which a condition holds.
    pub(super) fn find(&self, wanted: impl Fn(&Request) -> bool) -> usize {
        self.requests.iter().position(wanted).unwrap()
    }

    /// The first request for a page that was answered with 200, not the home page.
    pub(super) fn some_page(&self) -> usize {
        let page = |r: &Request| {
            matches!(r.node.map(|n| n.what), Some(Resource::Page(n)) if n > 0) && r.status == 200 && r.whole
        };
        self.find(|r| page(r) && self.world.outcome_of(r.node.unwrap()) == Outcome::Content(r.node.unwrap()))
    }

    /// When the last request ends.
    pub(super) fn end_us(&self) -> u64 {
        self.requests.iter().map(|r| r.start_us + r.length_us).max().unwrap()
    }

    /// Repeats a request long after everything else, so that politeness is no question.
    pub(super) fn append(&mut self, mut request: Request) -> usize {
        request.start_us = self.end_us() + 100_000_000;
        self.requests.push(request);
        self.requests.len() - 1
    }

    /// The log, in order of ends as a server writes it, and the line of each request.
    pub(super) fn render(&self) -> (String, Vec<u64>) {
        let mut order: Vec<usize> = (0..self.requests.len()).collect();
        order.sort_by_key(|&n| (self.requests[n].start_us + self.requests[n].length_us, n));
        let mut out = format!("testweb-log 1\tseed={}\tunix_us=1000\n", self.world.config().seed);
        let _ = writeln!(out, "T\t0\t{}\t0", self.world.config().epoch_s);
        let (mut lines, mut line) = (vec![0; self.requests.len()], 3);
        let value = |v: &Option<String>| v.clone().unwrap_or_else(|| "-".into());
        for n in order {
            let r = &self.requests[n];
            let _ = writeln!(out, "C\t{}\t{n}\t{}:80\t127.0.0.1:50000", r.start_us, r.local);
            line += 1;
            if r.secure {
                let _ = writeln!(out, "S\t{}\t{n}\t{}\thttp/1.1", r.start_us, value(&r.name));
                line += 1;
            }
            lines[n] = line;
            let _ = writeln!(
                out,
                "R\t{}\t{}\t{n}\t1\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                r.start_us,
                r.length_us,
                if r.secure { "https/1" } else { "http/1" },
                value(&r.host),
                r.method,
                r.target,
                r.status,
                r.bytes,
                value(&r.agent),
                value(&r.if_none_match),
                value(&r.if_modified_since),
                if r.whole { "ok" } else { "cut" }
            );
            let _ = writeln!(out, "X\t{}\t{n}", r.start_us + r.length_us);
            line += 2;
        }
        (out, lines)
    }
}
