//! From a request to what is to be sent, and in which manner; nothing is sent yet.

use super::Shared;
use super::coding;
use crate::character::Character;
use crate::date;
use crate::log::Request;
use crate::world::{HostId, Node, Outcome, PageId, Resource, World, nofollow_in_header};

/// How a reply is put on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// With its length.
    Plain,
    /// In chunks.
    Chunked,
    /// Without a length; the connection ends the body.
    UntilClose,
    /// In small pieces over the time of a slow host.
    Drip,
    /// Reset in the middle of the body.
    Reset,
    /// With a length larger than what comes.
    Short,
    /// With a length smaller than what comes.
    Long,
    /// With an unrequested response right behind it, on a connection that stays open.
    Surplus,
    /// Half of it, then nothing; the connection stays open.
    Stall,
    /// For ever.
    Endless,
    /// With a head of this odd kind.
    BadHead(u8),
    /// Not at all; the connection stays open.
    Silence,
    /// Not at all; the connection is reset.
    HangUp,
}

/// Number of odd heads.
pub(super) const BAD_HEADS: u64 = 12;

/// A reply before it is sent.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) manner: Manner,
    /// Wait before sending, milliseconds.
    pub(super) wait_ms: u64,
    /// Whether the host closes the connection after each response.
    pub(super) close: bool,
}

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

impl Reply {
    fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status, headers, body: body.into(), manner: Manner::Plain, wait_ms: 0, close: false }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    fn in_manner(mut self, manner: Manner) -> Self {
        self.manner = manner;
        self
    }

    /// What is answered when nothing is: no bytes at all.
    pub(super) fn nothing(manner: Manner) -> Self {
        Self { status: 0, headers: Vec::new(), body: Vec::new(), manner, wait_ms: 0, close: true }
    }
}

/// The reply to a request that arrived over https (`secure`) or http.
pub(super) fn plan(shared: &Shared, request: &Request<'_>, secure: bool) -> Reply {
    let world = &shared.world;
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or("");
    let lower = request.host.map_or("", text).to_ascii_lowercase();
    let name = lower.split(':').next().unwrap_or("");
    let Some(id) = world.host_by_name(name) else {
        return Reply::new(421, PLAIN, "no such host in this web\n");
    };
    let conduct = world.host(id).and_then(|h| h.conduct);
    let mut reply = if !matches!(request.method, b"GET" | b"HEAD") {
        Reply::new(405, PLAIN, "only GET and HEAD\n").with("allow", "GET, HEAD")
    } else if conduct == Some(Character::Throttle)
        && shared.state.too_soon(id, shared.log.now(), shared.world.config().throttle_ms * 1000)
    {
        Reply::new(429, PLAIN, "not so fast\n").with("retry-after", world.config().retry_after_s.to_string())
    } else {
        let target = text(request.target);
        match world.find_target(secure, id, target) {
            Some(node) => answer(shared, request, world.outcome_of(node), node),
            None => absent(world, id),
        }
    };
    reply.close |= conduct == Some(Character::Closing);
    if conduct == Some(Character::Slow) {
        reply.wait_ms = world.config().slow_ms;
    }
    reply
}

fn answer(shared: &Shared, request: &Request<'_>, outcome: Outcome, asked: Node) -> Reply {
    let world = &shared.world;
    let config = world.config();
    match outcome {
        Outcome::Content(node) => content(shared, request, node),
        Outcome::Redirect { status, to } => {
            // Some servers write the whole URL, some only the path.
            let mut location = String::new();
            if to.host == asked.host && to.secure == asked.secure && asked.host.0.is_multiple_of(3) {
                world.push_target(to, &mut location);
            } else {
                location = world.url_of(to);
            }
            Reply::new(status, HTML, "<p>It is elsewhere.</p>\n").with("location", location)
        }
        Outcome::Status(status) => Reply::new(status, PLAIN, format!("status {status}\n")),
        Outcome::Later { node, status, times } => {
            if shared.state.turn_away(node, times) {
                let after = match status {
                    // The other form of the header: a date, by the clock on the wall, which is what the client compares with.
                    503 if node.host.0.is_multiple_of(2) => date::http(shared.log.unix_s() + config.retry_after_s),
                    _ => config.retry_after_s.to_string(),
                };
                Reply::new(status, PLAIN, "later\n").with("retry-after", after)
            } else {
                content(shared, request, node)
            }
        }
        Outcome::Broken { node, times, stall } => {
            let reply = content(shared, request, node);
            match shared.state.turn_away(node, times) {
                true => reply.in_manner(if stall { Manner::Stall } else { Manner::Reset }),
                false => reply,
            }
        }
        Outcome::Trouble(node, character) => trouble(shared, node, character),
        Outcome::NoAnswer(Character::Silent) => Reply::nothing(Manner::Silence),
        Outcome::NoAnswer(_) => Reply::nothing(Manner::HangUp),
        Outcome::NotFound(id) => absent(world, id),
        Outcome::UnknownHost | Outcome::NotAUrl => Reply::new(404, PLAIN, "not found\n"),
    }
}

fn absent(world: &World, id: HostId) -> Reply {
    match world.host(id) {
        Some(host) if host.conduct == Some(Character::Silent) => Reply::nothing(Manner::Silence),
        Some(host) if host.conduct == Some(Character::HangUp) => Reply::nothing(Manner::HangUp),
        Some(host) if host.absence == Some(Character::SoftNotFound) => {
            let mut body = String::new();
            world.render_absent(id, &mut body);
            Reply::new(200, HTML, body)
        }
        _ => Reply::new(404, HTML, NOT_FOUND),
    }
}

fn trouble(shared: &Shared, node: Node, character: Character) -> Reply {
    let page = page_of(node);
    let manner = match character {
        Character::Stall => return Reply::nothing(Manner::Silence),
        Character::Drip => Manner::Drip,
        Character::ResetBody => Manner::Reset,
        Character::ShortBody => Manner::Short,
        Character::LongBody => Manner::Long,
        Character::SurplusBody | Character::NoContentBody => Manner::Surplus,
        Character::EndlessBody => Manner::Endless,
        Character::BadHead => {
            Manner::BadHead(u8::try_from((u64::from(page.number) + u64::from(page.host.0)) % BAD_HEADS).unwrap_or(0))
        }
        Character::Bomb => {
            let body = coding::bomb(shared.world.config().bomb_bytes);
            return Reply::new(200, HTML, body).with("content-encoding", "gzip");
        }
        _ => Manner::Plain,
    };
    let mut html = String::with_capacity(16 << 10);
    shared.world.render(node, shared.clock.now_s(), &mut html);
    let status = if character == Character::NoContentBody { 204 } else { 200 };
    Reply::new(status, HTML, html).in_manner(manner)
}

fn content(shared: &Shared, request: &Request<'_>, node: Node) -> Reply {
    let (world, now_s) = (&shared.world, shared.clock.now_s());
    match node.what {
        Resource::Robots | Resource::RobotsHop(_) => {
            let reply = world.robots_reply(node.host);
            Reply::new(200, reply.content_type, reply.body)
        }
        Resource::Sitemap(number) => {
            let xml = world.sitemap(node.host, number, now_s).into_bytes();
            if world.sitemap_is_gzip(number) {
                // A gzip file, not a coding: it stays compressed for every client.
                Reply::new(200, "application/gzip", coding::encode(Character::Gzip, xml))
            } else {
                Reply::new(200, "application/xml", xml)
            }
        }
        Resource::Feed => Reply::new(200, "application/xml", world.feed(node.host, now_s)),
        Resource::Page(_) => page(shared, request, node, now_s),
        _ => {
            let mut html = String::new();
            world.render(node, now_s, &mut html);
            Reply::new(200, HTML, html)
        }
    }
}

fn page(shared: &Shared, request: &Request<'_>, node: Node, now_s: u64) -> Reply {
    let world = &shared.world;
    let page = page_of(node);
    let form = world.form(page);
    let (version, _) = world.version(page, now_s);
    let (etag, modified) = (world.etag(page, version), world.last_modified(page, now_s));
    let unchanged = match (request.if_none_match, request.if_modified_since) {
        (Some(tags), _) => etag.as_deref().is_some_and(|etag| has_tag(tags, etag)),
        (None, Some(since)) => {
            let since = std::str::from_utf8(since).ok().and_then(date::parse_http);
            modified.is_some_and(|modified| since.is_some_and(|since| modified <= since))
        }
        (None, None) => false,
    };
    let charset = world.charset(page);
    let mut reply = if unchanged {
        Reply { headers: Vec::new(), ..Reply::new(304, HTML, "") }
    } else {
        let content_type = if form.charset_in_header && charset != "utf-16le" {
            format!("text/html; charset={charset}")
        } else {
            "text/html".to_owned()
        };
        let mut html = String::with_capacity(16 << 10);
        world.render(node, now_s, &mut html);
        let body = coding::to_charset(html, charset);
        match coding::negotiate(form.coding, request.accept_encoding) {
            Some((coding, name)) => Reply::new(200, &content_type, coding::encode(coding, body))
                .with("content-encoding", name)
                .with("vary", "accept-encoding"),
            None => Reply::new(200, &content_type, body),
        }
    };
    if world.is_nofollow(page) && nofollow_in_header(page) {
        reply = reply.with("x-robots-tag", "nofollow");
    }
    if let Some(etag) = etag {
        reply = reply.with("etag", etag);
    }
    if let Some(modified) = modified {
        reply = reply.with("last-modified", date::http(modified));
    }
    match form.framing.filter(|_| !unchanged) {
        Some(Character::Chunked) => reply.in_manner(Manner::Chunked),
        Some(Character::UntilClose) => reply.in_manner(Manner::UntilClose),
        _ => reply,
    }
}

fn page_of(node: Node) -> PageId {
    let number = match node.what {
        Resource::Page(number) => number,
        _ => 0,
    };
    PageId { host: node.host, number }
}

/// Whether a list of entity tags holds this one; `If-None-Match` compares weakly.
fn has_tag(list: &[u8], tag: &str) -> bool {
    let list = std::str::from_utf8(list).unwrap_or("");
    list.split(',').map(|t| t.trim().trim_start_matches("W/")).any(|t| t == tag || t == "*")
}

const NOT_FOUND: &str =
    "<!DOCTYPE html>\n<html><head><title>Not found</title></head><body><h1>Not found</h1></body></html>\n";
