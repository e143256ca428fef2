//! What a well-behaved crawler fetches: a walk over the model, without HTTP, HTML or the text of robots.txt.
//!
//! Two walks: what must be fetched follows only what any crawler can read; what may be fetched also follows bodies that
//! broke off. Depths are the least possible, so they hold for crawlers that correct a page's depth when a shorter way
//! turns up. Traps are not walked: they have no end.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::{Node, Outcome, PageId, Resource, World};
use crate::character::Character;
use crate::settings::CrawlSettings;

/// How a crawl has to treat a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Want {
    /// One good answer, and no second request after it.
    Once,
    /// At least one attempt; more while it fails.
    Try,
    /// It may be fetched, and need not be.
    May,
}

/// What a crawl with certain settings does in a web.
#[derive(Debug)]
pub struct Expectation<'a> {
    world: &'a World,
    settings: &'a CrawlSettings,
    must: Depths,
    may: Depths,
}

/// Least depth of every node reached: pages in a dense table, the rest by name.
#[derive(Debug)]
struct Depths {
    pages: Vec<u8>,
    others: HashMap<Node, u8>,
}

/// Depth of what was not reached; depths are cut off one below it.
const FAR: u8 = u8::MAX;

impl Depths {
    fn slot<'s>(&'s mut self, world: &World, node: Node) -> Option<&'s mut u8> {
        match node.what {
            Resource::Page(number) if node.secure == world.host(node.host)?.is_secure() => {
                self.pages.get_mut(world.dense(PageId { host: node.host, number })?)
            }
            _ => Some(self.others.entry(node).or_insert(FAR)),
        }
    }

    fn get(&self, world: &World, node: Node) -> Option<u8> {
        let page = match node.what {
            Resource::Page(number) => world.dense(PageId { host: node.host, number }).and_then(|n| self.pages.get(n)),
            _ => None,
        };
        let right_scheme = world.host(node.host).is_some_and(|h| h.is_secure() == node.secure);
        page.filter(|_| right_scheme).or_else(|| self.others.get(&node)).copied().filter(|&d| d != FAR)
    }
}

impl World {
    /// URLs that a crawler asks for if it starts at [`World::seeds`], obeys robots.txt and follows links up to `depth`
    /// steps (seeds have depth 0): each exactly once, except those that fail at first. robots.txt, sitemaps, feeds and
    /// traps are not listed.
    pub fn expected_pages(&self, depth: u32) -> BTreeSet<String> {
        let settings = CrawlSettings { depth, agent: self.config.agent.clone(), ..CrawlSettings::default() };
        self.expect(&settings).wanted().map(|(node, _)| self.url_of(node)).collect()
    }

    /// A depth from which on [`World::expected_pages`] no longer grows.
    pub fn full_depth(&self) -> u32 {
        let settings = CrawlSettings { agent: self.config.agent.clone(), ..CrawlSettings::default() };
        let expected = self.expect(&settings);
        expected.wanted().filter_map(|(node, _)| expected.depth(node)).max().unwrap_or(0)
    }

    /// What a crawl with these settings does.
    pub fn expect<'a>(&'a self, settings: &'a CrawlSettings) -> Expectation<'a> {
        let walk = |liberal| Walk::new(self, settings, liberal).run();
        Expectation { world: self, settings, must: walk(false), may: walk(true) }
    }

    /// The pages that the sitemap of a node's host lists.
    fn listed(&self, node: Node) -> impl Iterator<Item = Node> {
        let host = self.host(node.host).filter(|h| super::robots::has_rules(h));
        let mapped = host.filter(|h| matches!(h.announcement, Some(Character::Sitemap | Character::SitemapIndex)));
        (0..mapped.map_or(0, |h| h.pages)).map(move |number| self.node(node.host, Resource::Page(number)))
    }

    /// Whether a crawl may fetch a node, as far as robots.txt and certificates decide.
    fn is_open(&self, settings: &CrawlSettings, node: Node, liberal: bool) -> bool {
        let Some(host) = self.host(node.host) else { return false };
        if settings.verify_tls && host.certificate.is_some() && node.secure {
            return false;
        }
        if !settings.obey_robots {
            return true;
        }
        if self.robots_unreachable(node.host) || (host.robots == Some(Character::RobotsLoop) && !liberal) {
            return false;
        }
        self.allows_node(settings, node)
    }

    pub(crate) fn allows_node(&self, settings: &CrawlSettings, node: Node) -> bool {
        let Some(host) = self.host(node.host) else { return false };
        // Most hosts close nothing; do not write a path to find that out.
        if !super::robots::closes_section(host) && host.robots != Some(Character::RobotsClosed) {
            return true;
        }
        let mut path = String::new();
        self.push_target(node, &mut path);
        self.allows(node.host, &settings.agent, &path)
    }
}

/// A walk in progress: nodes whose depth was lowered wait in the queue to pass it on.
struct Walk<'a> {
    world: &'a World,
    settings: &'a CrawlSettings,
    liberal: bool,
    limit: u8,
    depths: Depths,
    queue: VecDeque<(Node, u8)>,
    sitemap_read: Vec<bool>,
}

impl<'a> Walk<'a> {
    fn new(world: &'a World, settings: &'a CrawlSettings, liberal: bool) -> Self {
        let pages = usize::try_from(world.page_count).unwrap_or(0);
        // A limit matters only for what must be fetched: what may be is compared with the limit by its depth.
        let limit = if liberal { FAR - 1 } else { u8::try_from(settings.depth).unwrap_or(FAR).min(FAR - 1) };
        let depths = Depths { pages: vec![FAR; pages], others: HashMap::new() };
        let sitemap_read = vec![settings.sitemap_depth.is_none(); world.hosts.len()];
        Self { world, settings, liberal, limit, depths, queue: VecDeque::new(), sitemap_read }
    }

    fn run(mut self) -> Depths {
        let world = self.world;
        if self.settings.seeds.is_empty() {
            let seeds = world.host_ids().take(super::index(world.config.seeds));
            seeds.for_each(|id| self.visit(world.node(id, Resource::Page(0)), 0));
        }
        for seed in self.settings.seeds.iter().filter_map(|url| world.find(url)) {
            self.visit(seed, 0);
        }
        while let Some((node, depth)) = self.queue.pop_front() {
            // A shorter way may have been found since; then this entry is out of date.
            if self.depths.get(world, node) == Some(depth) && world.is_open(self.settings, node, self.liberal) {
                self.read_sitemap(node);
                self.follow(node, depth);
            }
        }
        self.depths
    }

    fn visit(&mut self, node: Node, depth: u8) {
        let trap = matches!(node.what, Resource::Calendar(_) | Resource::Session { .. } | Resource::Facet(_));
        if depth > self.limit || trap {
            return;
        }
        if let Some(slot) = self.depths.slot(self.world, node).filter(|slot| depth < **slot) {
            *slot = depth;
            self.queue.push_back((node, depth));
        }
    }

    fn read_sitemap(&mut self, node: Node) {
        let Some(read) = self.sitemap_read.get_mut(super::index(node.host.0)) else { return };
        if !std::mem::replace(read, true) {
            let depth = self.settings.sitemap_depth.and_then(|d| u8::try_from(d).ok()).unwrap_or(FAR - 1);
            self.world.listed(node).for_each(|page| self.visit(page, depth));
        }
    }

    fn follow(&mut self, node: Node, depth: u8) {
        let readable = match self.world.outcome_of(node) {
            Outcome::Redirect { to, .. } => {
                // One redirect to spare: the chain may itself have been reached by the redirect from http to https.
                if self.liberal || redirects_before(node) + 1 < self.settings.max_redirects {
                    self.visit(to, depth);
                }
                false
            }
            Outcome::Content(_) | Outcome::Later { .. } | Outcome::Broken { .. } => true,
            Outcome::Trouble(..) | Outcome::NotFound(_) => self.liberal,
            _ => false,
        };
        let nofollow = |number| self.world.is_nofollow(PageId { host: node.host, number });
        let silenced = matches!(node.what, Resource::Page(number) if self.settings.obey_nofollow && nofollow(number));
        if readable && !silenced {
            self.world.links(node).into_iter().for_each(|link| self.visit(link.to, depth.saturating_add(1)));
        }
    }
}

impl Expectation<'_> {
    /// Everything that must be asked for, pages first.
    pub fn wanted(&self) -> impl Iterator<Item = (Node, Want)> {
        let world = self.world;
        let pages = world.host_ids().flat_map(move |host| world.pages(host));
        let pages = pages.map(|page| world.node(page.host, Resource::Page(page.number)));
        let others = self.must.others.keys().copied();
        pages
            .chain(others)
            .filter_map(|node| self.want(node).map(|want| (node, want)))
            .filter(|(_, want)| *want != Want::May)
    }

    /// How the crawl has to treat a node; `None` if it must leave it alone.
    pub fn want(&self, node: Node) -> Option<Want> {
        if !self.world.is_open(self.settings, node, true) {
            return None;
        }
        let must = self.must.get(self.world, node).is_some() && self.world.is_open(self.settings, node, false);
        if !must {
            let near = self.may.get(self.world, node).is_some_and(|d| u32::from(d) <= self.settings.depth);
            return near.then_some(Want::May);
        }
        match self.world.outcome_of(node) {
            Outcome::Content(_) | Outcome::Redirect { .. } | Outcome::NotFound(_) => Some(Want::Once),
            Outcome::Status(status) if status < 500 => Some(Want::Once),
            Outcome::NoAnswer(_) => Some(Want::May),
            _ => Some(Want::Try),
        }
    }

    /// The least depth at which a crawl can find a node; `None` if nothing leads to it.
    pub fn depth(&self, node: Node) -> Option<u32> {
        self.may.get(self.world, node).map(u32::from)
    }
}

/// How many redirects in a row lead to a node of a chain.
pub(crate) fn redirects_before(node: Node) -> u32 {
    match node.what {
        Resource::Hop { hop, .. } => hop,
        _ => 0,
    }
}
