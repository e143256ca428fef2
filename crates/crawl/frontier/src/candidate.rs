//! What goes into a frontier, and what comes out of it.

use crate::identity::{Identity, UrlId};
use crate::policy::politeness::is_passing;
use crate::row::{Found, Texts};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use trawl_model::{ErrorClass, RobotsVerdict, UnixMillis};
use trawl_url::WebUrl;

/// A URL somebody wants fetched.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its identity, by the frontier's own settings.
    pub id: UrlId,
    /// What is fetched and archived.
    pub url: WebUrl,
    /// How it got here.
    pub source: Source,
    /// Links followed from a seed.
    pub depth: u32,
    /// Redirects followed in a row.
    pub hops: u32,
    /// Importance, from 0 to 1.
    pub priority: f32,
    /// The seed's metadata, a JSON object; redirects inherit it.
    pub meta_json: Option<Arc<str>>,
}

/// How a URL was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// It was asked for.
    Seed,
    /// By a link on this page.
    Link(Arc<str>),
    /// By a redirect of this URL.
    Redirect(Arc<str>),
}

impl Source {
    pub(crate) fn of(found: Found, via: &str) -> Self {
        match found {
            Found::Seed => Source::Seed,
            Found::Link => Source::Link(via.into()),
            Found::Redirect => Source::Redirect(via.into()),
        }
    }

    pub(crate) fn parts(&self) -> (Found, &str) {
        match self {
            Source::Seed => (Found::Seed, ""),
            Source::Link(page) => (Found::Link, page),
            Source::Redirect(page) => (Found::Redirect, page),
        }
    }
}

/// Default priority of a URL.
pub const DEFAULT_PRIORITY: f32 = 0.5;

impl Candidate {
    /// A URL that was asked for, in a frontier whose queues are hosts.
    pub fn seed(identity: Identity, url: WebUrl, meta_json: Option<Arc<str>>) -> Self {
        Self::of(identity.of(&url), url, Source::Seed, 0, 0, meta_json)
    }

    fn of(id: UrlId, url: WebUrl, source: Source, depth: u32, hops: u32, meta_json: Option<Arc<str>>) -> Self {
        Self { id, url, source, depth, hops, priority: DEFAULT_PRIORITY, meta_json }
    }

    /// A link on a page of this depth.
    pub fn link(id: UrlId, url: WebUrl, page: &Arc<str>, page_depth: u32) -> Self {
        Self::of(id, url, Source::Link(page.clone()), page_depth.saturating_add(1), 0, None)
    }

    /// Where a page redirects to, by the page's depth, hops and metadata.
    pub fn redirect(
        id: UrlId,
        url: WebUrl,
        page: &Arc<str>,
        depth: u32,
        page_hops: u32,
        meta_json: Option<Arc<str>>,
    ) -> Self {
        Self::of(id, url, Source::Redirect(page.clone()), depth, page_hops.saturating_add(1), meta_json)
    }
}

/// What became of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It waits to be fetched.
    New,
    /// It was known.
    Seen,
    /// It was known, and is nearer to a seed than was thought.
    Nearer,
    /// The same, and its page was fetched already: its links, noted there, are nearer too and must be offered again,
    /// because some of them may have been too deep.
    Reopened(u64),
    /// It was known and refused, because too many redirects led to it; now it waits to be fetched.
    InReach,
    /// It was known and parked as a trap's; now somebody asked for it, and it waits to be fetched.
    Unparked,
    /// It was known by a link or a redirect and still waits; now somebody asked for it, and it is a seed like any other.
    AskedFor,
    /// Too many links from a seed.
    TooDeep,
    /// It is kept and not fetched: a trap made it.
    Parked,
}

/// Which lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeaseId {
    /// A page.
    Page(UrlId),
    /// A robots.txt errand.
    Robots(u64),
}

/// A URL to fetch now. Its host is busy until [`crate::Frontier::released`], the URL itself until it is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which.
    pub id: LeaseId,
    pub(crate) texts: Texts,
    pub(crate) found: Found,
    /// Links followed from a seed.
    pub depth: u32,
    /// Redirects followed in a row.
    pub hops: u32,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// What robots.txt said.
    pub robots: RobotsVerdict,
    /// From the end of a request to the host to the start of its next one: a fetcher that has to ask again keeps it too.
    pub delay: Duration,
}

impl Lease {
    /// What to fetch.
    pub fn url(&self) -> &str {
        self.texts.url()
    }

    /// How it was found.
    pub fn source(&self) -> Source {
        Source::of(self.found, self.texts.via())
    }

    /// The seed's metadata.
    pub fn meta_json(&self) -> Option<&str> {
        Some(self.texts.meta()).filter(|meta| !meta.is_empty())
    }
}

/// A lease, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Fetch this.
    Fetch(Lease),
    /// Do not fetch this, but record why, and settle it.
    Refuse(Lease, ErrorClass, String),
}

/// When there is more to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// At once: ask again.
    Now,
    /// Nothing before this moment, unless a lease comes back earlier.
    WaitUntil(UnixMillis),
    /// Nothing before a lease comes back or is settled, or an address becomes known.
    Blocked,
    /// Nothing is left.
    Empty,
}

/// A host whose address is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which.
    pub id: HostId,
    /// A site of it: scheme, host and port.
    pub site: String,
}

/// An address and how long it holds.
pub type Address = (IpAddr, Duration);

/// What came of a fetch, as far as politeness and retries care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A response.
    Response {
        /// Its status.
        status: u16,
        /// What `Retry-After` asked for, in milliseconds from the end of the fetch.
        retry_after_ms: Option<i64>,
        /// Whether its body broke off before its end.
        cut: bool,
    },
    /// None.
    Failed(ErrorClass),
}

impl Answer {
    /// A whole response that asks for nothing.
    pub fn status(status: u16) -> Self {
        Self::Response { status, retry_after_ms: None, cut: false }
    }

    /// Whether asking again later may bring something better: what ends with such an answer was given up.
    pub fn is_passing(self) -> bool {
        is_passing(self)
    }
}

/// What became of a page, to be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Which page.
    pub id: UrlId,
    /// What came of it.
    pub answer: Answer,
    /// Where the caller keeps what the page leads to, for [`Admission::Reopened`]; not 0.
    pub note: Option<u64>,
}

/// What a settled page is from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done. Links of it are one deeper than this.
    Done {
        /// Links from a seed, on the shortest way found so far.
        depth: u32,
    },
    /// It will be tried again.
    Again {
        /// As above.
        depth: u32,
    },
    /// It is not leased, or the lease has expired.
    Unknown,
}

/// Whose address is to be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub(crate) u32);

/// What came of a robots.txt errand.
#[derive(Clone)]
pub enum RobotsAnswer {
    /// Rules; none of them for a 4xx.
    Rules(Arc<dyn Rules>),
    /// To be looked for there.
    Redirect(WebUrl),
    /// A 5xx, or no response.
    Unavailable(ErrorClass, String),
}

/// The rules of one robots.txt for one agent.
pub trait Rules: Send + Sync {
    /// Whether a path with its query may be fetched.
    fn allows(&self, path_and_query: &str) -> bool;
    /// The delay the site asks for, in milliseconds.
    fn crawl_delay_ms(&self) -> Option<i64>;
}

/// No rules: everything may be fetched.
#[derive(Debug, Clone, Copy)]
pub struct AllowAll;

impl Rules for AllowAll {
    fn allows(&self, _: &str) -> bool {
        true
    }

    fn crawl_delay_ms(&self) -> Option<i64> {
        None
    }
}
