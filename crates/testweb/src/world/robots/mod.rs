//! robots.txt of the hosts: which rules each has, and what is sent for them.

mod rules;
mod wire;

pub use rules::{Group, Robots, Rule};

use super::{Host, HostId, Node, Outcome, Resource, World};
use crate::character::Character;
use crate::dice::{Dice, purpose};

/// URLs in the circle of a robots.txt that never arrives.
const LOOP_HOPS: u32 = 2;
/// Most redirects to get at a robots.txt: with that from http to https they are the five a client must follow.
const MAX_HOPS: u64 = 4;

/// What is sent for a robots.txt, before HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobotsReply {
    /// The media type.
    pub content_type: &'static str,
    /// The bytes.
    pub body: Vec<u8>,
}

/// Whether the host keeps a section to itself.
pub(super) fn closes_section(host: &Host) -> bool {
    use Character::*;
    matches!(
        host.robots,
        Some(
            RobotsPartial
                | RobotsPartialDelay
                | RobotsMerged
                | RobotsWildcard
                | RobotsOdd
                | RobotsBom
                | RobotsHuge
                | RobotsRedirect
                | RobotsCut
                | RobotsStall
        )
    )
}

/// Whether the host sends a file with rules.
pub(super) fn has_rules(host: &Host) -> bool {
    use Character::*;
    !matches!(host.robots, Some(RobotsMissing | RobotsForbidden | RobotsError | RobotsHtml | RobotsLoop))
}

/// Redirects between `/robots.txt` and the rules.
pub(super) fn hops(world: &World, id: HostId) -> u32 {
    match world.host(id).and_then(|h| h.robots) {
        Some(Character::RobotsLoop) => LOOP_HOPS,
        Some(Character::RobotsRedirect) => {
            let mut dice = Dice::new(world.config.seed, purpose::ROBOTS, id.0.into(), 1 << 40);
            u32::try_from(dice.range(1, MAX_HOPS)).unwrap_or(1)
        }
        _ => 0,
    }
}

/// What a request for a robots.txt, or for a file it redirects to, is answered with.
pub(super) fn outcome(world: &World, node: Node) -> Outcome {
    let kind = world.host(node.host).and_then(|h| h.robots);
    let at = match node.what {
        Resource::RobotsHop(hop) => hop,
        _ => 0,
    };
    let hops = hops(world, node.host);
    let redirect = |what| Outcome::Redirect { status: 301, to: Node { what, ..node } };
    match kind {
        Some(Character::RobotsMissing) => Outcome::Status(404),
        Some(Character::RobotsForbidden) => Outcome::Status(403),
        Some(Character::RobotsError) => Outcome::Status(503),
        _ if at < hops => redirect(Resource::RobotsHop(at + 1)),
        Some(Character::RobotsLoop) => redirect(Resource::Robots),
        Some(kind @ (Character::RobotsCut | Character::RobotsStall)) => {
            Outcome::Broken { node, times: 1, stall: kind == Character::RobotsStall }
        }
        _ => Outcome::Content(node),
    }
}

impl World {
    /// The robots rules of a host; `None` where there is no file with rules.
    pub fn robots(&self, id: HostId) -> Option<Robots> {
        use Character::*;
        let host = self.host(id).filter(|h| has_rules(h))?;
        let section = self.closed_section(id);
        let disallow = |pattern: String| Rule { allow: false, pattern };
        let everyone = |rules, crawl_delay_ms| Group { agents: vec!["*".into()], rules, crawl_delay_ms };
        let closed = disallow(format!("/{section}/"));
        let delayed = matches!(host.robots, Some(RobotsDelay | RobotsPartialDelay));
        let crawl_delay_ms = delayed.then(|| self.crawl_delay_ms(id));
        let groups = match host.robots {
            Some(RobotsClosed) => vec![everyone(vec![disallow("/".into())], None)],
            Some(RobotsMerged) => {
                let ours =
                    |rule| Group { agents: vec![self.config.agent.clone()], rules: vec![rule], crawl_delay_ms: None };
                let strangers = everyone(vec![disallow("/".into())], Some(30_000));
                vec![ours(disallow("/nothing/".into())), strangers, ours(closed)]
            }
            Some(RobotsWildcard) => {
                let allow = Rule { allow: true, pattern: format!("/{section}/*1$") };
                vec![everyone(vec![disallow("/*.pdf$".into()), disallow(format!("/{section}*")), allow], None)]
            }
            _ if closes_section(host) => vec![everyone(vec![closed], crawl_delay_ms)],
            // A group needs a rule; an empty Disallow closes nothing.
            _ => vec![everyone(vec![disallow(String::new())], crawl_delay_ms)],
        };
        let mapped = matches!(host.announcement, Some(Sitemap | SitemapIndex));
        let sitemaps = if mapped { vec![self.url_of(self.node(id, Resource::Sitemap(0)))] } else { Vec::new() };
        Some(Robots { groups, sitemaps })
    }

    fn crawl_delay_ms(&self, id: HostId) -> u64 {
        let mut dice = Dice::new(self.config.seed, purpose::ROBOTS, id.0.into(), 0);
        // Whole tenths of a second: that is how they are written.
        dice.range(self.config.min_crawl_delay_ms / 100, self.config.max_crawl_delay_ms / 100) * 100
    }

    /// Whether the host's robots.txt lets `agent` (a lower-case product token) fetch `path`.
    pub fn allows(&self, host: HostId, agent: &str, path: &str) -> bool {
        path == "/robots.txt" || self.robots(host).is_none_or(|robots| robots.allows(agent, path))
    }

    /// Whether nothing of a host may be fetched because its robots.txt cannot be had.
    pub fn robots_unreachable(&self, host: HostId) -> bool {
        self.host(host).is_some_and(|h| h.is_dead() || h.robots == Some(Character::RobotsError))
    }

    /// What is sent where the rules of a host are.
    pub fn robots_reply(&self, host: HostId) -> RobotsReply {
        wire::reply(self, host)
    }
}
