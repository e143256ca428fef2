//! What goes into a frontier, and what comes out of it.

use crate::identity::{Identity, UrlId};
use crate::politeness::is_passing;
use std::sync::Arc;
use trawl_model::{ErrorClass, RobotsVerdict, UnixMillis};
use trawl_url::WebUrl;

/// A URL somebody wants fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Its identity.
    pub id: UrlId,
    /// What is fetched and archived.
    pub url: WebUrl,
    /// How it got here.
    pub source: Source,
    /// Links followed from a seed.
    pub depth: u32,
    /// Redirects followed in a row.
    pub hops: u32,
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

impl Candidate {
    /// A URL that was asked for.
    pub fn seed(identity: Identity, url: WebUrl, meta_json: Option<Arc<str>>) -> Self {
        Self { id: identity.of(&url), url, source: Source::Seed, depth: 0, hops: 0, meta_json }
    }

    /// A link on a page of this depth.
    pub fn link(id: UrlId, url: WebUrl, page: &Arc<str>, page_depth: u32) -> Self {
        let depth = page_depth.saturating_add(1);
        Self { id, url, source: Source::Link(page.clone()), depth, hops: 0, meta_json: None }
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
        Self { id, url, source: Source::Redirect(page.clone()), depth, hops: page_hops.saturating_add(1), meta_json }
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
    /// The same, and its page was fetched already: its links, noted there, are nearer too and must be discovered again,
    /// because some of them may have been too deep.
    Reopened(u64),
    /// Too many links from a seed.
    TooDeep,
    /// Enough pages were admitted, of its host or in all.
    OverLimit,
    /// The frontier is full, or its host has more than its share of it ([`crate::Config::max_known`]).
    NoRoom,
}

/// Which lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeaseId {
    /// A page.
    Page(UrlId),
    /// A robots.txt errand.
    Robots(u64),
}

/// A URL to fetch now. Its host is busy until [`crate::Frontier::released`], the URL itself until it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Which.
    pub id: LeaseId,
    /// What to fetch.
    pub url: WebUrl,
    /// Links followed from a seed.
    pub depth: u32,
    /// Redirects followed in a row.
    pub hops: u32,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How it was found.
    pub source: Source,
    /// What robots.txt said.
    pub robots: RobotsVerdict,
    /// The seed's metadata.
    pub meta_json: Option<Arc<str>>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Fetch this.
    Lease(Lease),
    /// Do not fetch this, but record why.
    Refuse(Lease, ErrorClass, String),
    /// Find out the address of this site's host, and tell it by [`crate::Frontier::resolved`].
    Lookup(LookupId, WebUrl),
    /// Nothing before this moment, unless a lease comes back earlier.
    WaitUntil(UnixMillis),
    /// Nothing before a lease comes back or is acknowledged.
    Blocked,
    /// Nothing is left.
    Empty,
}

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

/// Whose address is to be found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LookupId(pub(crate) usize);

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
