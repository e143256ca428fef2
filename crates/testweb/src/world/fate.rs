//! What becomes of a request: content, a redirect, an error, or trouble.

use super::{HostId, Node, PageId, Resource, World, robots};
use crate::character::Character;
use crate::dice::{Dice, purpose};

/// Redirects of the long chain: more than any client should follow.
const LONG_CHAIN: u32 = 30;
/// URLs in a circle of redirects.
const LOOP: u32 = 3;

/// What a request for a URL is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Status 200 with a body.
    Content(Node),
    /// A redirect.
    Redirect {
        /// 301, 302, 303, 307 or 308.
        status: u16,
        /// Where it leads.
        to: Node,
    },
    /// This status, whenever it is asked for.
    Status(u16),
    /// At first a status with `Retry-After`, then content.
    Later {
        /// The content.
        node: Node,
        /// 429 or 503.
        status: u16,
        /// How many requests are turned away.
        times: u32,
    },
    /// At first an answer that breaks off in the middle, then content.
    Broken {
        /// The content.
        node: Node,
        /// How many requests get half an answer.
        times: u32,
        /// Whether the other half is silence; otherwise the connection is reset.
        stall: bool,
    },
    /// An answer that breaks off, never ends, or breaks the rules of HTTP, in the way of this character.
    Trouble(Node, Character),
    /// No answer: the host is silent, hangs up, or cuts the TLS handshake off.
    NoAnswer(Character),
    /// A path that does not exist on a host that does.
    NotFound(HostId),
    /// No such host in this web; the server answers 421.
    UnknownHost,
    /// Not an absolute http or https URL.
    NotAUrl,
}

impl World {
    /// What a request for `url` is answered with.
    pub fn outcome(&self, url: &str) -> Outcome {
        let Some(rest) = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")) else {
            return Outcome::NotAUrl;
        };
        if let Some(node) = self.find(url) {
            return self.outcome_of(node);
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        match self.host_by_name(authority.split(':').next().unwrap_or(authority)) {
            Some(host) => self.outcome_of_absent(host),
            None => Outcome::UnknownHost,
        }
    }

    /// What a request for a node is answered with.
    pub fn outcome_of(&self, node: Node) -> Outcome {
        let Some(host) = self.host(node.host) else { return Outcome::UnknownHost };
        if host.is_dead() && (node.secure || host.certificate != Some(Character::CertBroken)) {
            return Outcome::NoAnswer(host.conduct.or(host.certificate).unwrap_or(Character::Silent));
        }
        if node.secure != host.is_secure() {
            // The wrong scheme leads to the right one, whatever is asked for.
            return Outcome::Redirect { status: 301, to: Node { secure: host.is_secure(), ..node } };
        }
        match node.what {
            Resource::Robots | Resource::RobotsHop(_) => robots::outcome(self, node),
            Resource::Hop { page, hop } => self.chain(PageId { host: node.host, number: page }, hop),
            Resource::Missing(_) => self.outcome_of_absent(node.host),
            Resource::Page(number) => self.outcome_of_page(node, PageId { host: node.host, number }),
            _ => Outcome::Content(node),
        }
    }

    /// What a request for a path that does not exist is answered with.
    fn outcome_of_absent(&self, id: HostId) -> Outcome {
        match self.host(id) {
            Some(host) if host.is_dead() => Outcome::NoAnswer(host.conduct.unwrap_or(Character::Silent)),
            _ => Outcome::NotFound(id),
        }
    }

    fn outcome_of_page(&self, node: Node, page: PageId) -> Outcome {
        use Character::*;
        match self.fate(page) {
            None => Outcome::Content(node),
            Some(Redirect | RedirectAway | RedirectChain | RedirectLong | RedirectLoop) => self.chain(page, 0),
            Some(Gone) => Outcome::Status(410),
            Some(ServerError) => Outcome::Status(500),
            Some(fate @ (Busy | Unavailable)) => {
                let times = if self.chance(page, 3).percent(70) { 1 } else { 2 };
                Outcome::Later { node, status: if fate == Busy { 429 } else { 503 }, times }
            }
            Some(CutOnce) => Outcome::Broken { node, times: 1, stall: false },
            Some(trouble) => Outcome::Trouble(node, trouble),
        }
    }

    /// What is special about requests for a page. Only leaves have a fate, so that no page is lost behind one.
    pub fn fate(&self, page: PageId) -> Option<Character> {
        if self.draws.fate.is_plain() || !self.is_leaf(page) {
            return None;
        }
        let fate = self.draws.fate.draw(&mut self.chance(page, 0))?;
        // HTTP/2 frames cannot lie in these ways.
        let needs_http1 = matches!(
            fate,
            Character::BadHead
                | Character::ShortBody
                | Character::LongBody
                | Character::SurplusBody
                | Character::NoContentBody
        );
        let http2 = self.host(page.host)?.transport == Some(Character::Http2);
        (!(needs_http1 && http2)).then_some(fate)
    }

    /// Redirects from a page's URL to the end of its chain; 0 for pages that do not redirect.
    pub(super) fn hops(&self, page: PageId) -> u32 {
        match self.fate(page) {
            Some(Character::Redirect | Character::RedirectAway) => 1,
            Some(Character::RedirectChain) => u32::try_from(self.chance(page, 1).range(2, 4)).unwrap_or(2),
            Some(Character::RedirectLong) => LONG_CHAIN,
            Some(Character::RedirectLoop) => LOOP,
            _ => 0,
        }
    }

    /// The redirect at `hop` of the chain that starts at a page.
    fn chain(&self, page: PageId, hop: u32) -> Outcome {
        let status = self.chance(page, u64::from(hop) + 16).pick(&[301, 302, 302, 303, 307, 308]);
        let what = if hop + 1 < self.hops(page) {
            Resource::Hop { page: page.number, hop: hop + 1 }
        } else {
            match self.fate(page) {
                Some(Character::RedirectLoop) => Resource::Page(page.number),
                Some(Character::RedirectAway) => {
                    let host = HostId(u32::try_from(self.chance(page, 2).below(self.hosts.len() as u64)).unwrap_or(0));
                    return Outcome::Redirect { status, to: self.node(host, Resource::Page(0)) };
                }
                // Inner pages are plain, so a chain ends where it should.
                _ => {
                    let inner = self.host(page.host).map_or(1, |h| h.inner_pages());
                    Resource::Page(u32::try_from(self.chance(page, 2).below(inner.into())).unwrap_or(0))
                }
            }
        };
        Outcome::Redirect { status, to: self.node(page.host, what) }
    }

    /// Chance about the fate of a page.
    pub(super) fn chance(&self, page: PageId, what: u64) -> Dice {
        Dice::new(self.config.seed, purpose::FATE, page.host.0.into(), u64::from(page.number) << 16 | what)
    }
}
