//! A host and its origins: queues, gates and what robots.txt said.

use crate::candidate::{Rules, Source};
use crate::identity::UrlId;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use trawl_model::ErrorClass;
use trawl_url::WebUrl;

/// Index of a host in its frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub usize);

/// An origin of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OriginId {
    pub host: HostId,
    pub index: usize,
}

/// Order of work: depth, then order of arrival.
pub(crate) type Rank = (u32, u64);

/// A URL that is not done.
#[derive(Debug)]
pub(crate) struct Entry {
    pub url: WebUrl,
    pub origin: OriginId,
    pub rank: Rank,
    pub hops: u32,
    /// Attempts made.
    pub attempts: u32,
    /// Those of them that count against it.
    pub strikes: u32,
    pub source: Source,
    pub meta_json: Option<Arc<str>>,
    /// Decided already at admission: it is not to be fetched.
    pub refused: Option<ErrorClass>,
    pub state: EntryState,
}

/// ```text
/// queued --lease--> out --ack--> (gone)      out --ack, to be tried again--> deferred --due--> queued
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryState {
    Queued,
    Out,
    Deferred(i64),
}

/// A robots.txt to fetch, for an origin that may be another host's.
#[derive(Debug, Clone)]
pub(crate) struct Errand {
    pub url: WebUrl,
    pub origin: OriginId,
    pub hops: u32,
}

pub(crate) struct Host {
    pub name: String,
    pub origins: Vec<Origin>,
    pub errands: VecDeque<Errand>,
    pub in_flight: u32,
    /// Not before this moment, in milliseconds.
    pub next_ms: i64,
    /// Pages admitted.
    pub admitted: u64,
    /// When the last fetch ended.
    pub ended_ms: i64,
    /// 429s and 503s in a row.
    pub backoffs: u32,
    /// Failed connections in a row.
    pub failures: u32,
    /// When the first of them failed.
    pub away_since: Option<i64>,
    /// Troubles of this machine's own in a row.
    pub troubles: u32,
    /// Set once it is asked no more: why.
    pub given_up: Option<String>,
    pub ip: Option<IpAddr>,
    pub name_state: NameState,
    pub placed: Placed,
}

/// What is known of a host's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameState {
    Unknown,
    /// A lookup is under way.
    Asked,
    /// `ip` holds until then.
    Known(i64),
}

/// Where a host stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Busy, or without work it may do.
    Nowhere,
    /// In the wait heap until this moment; whether that is because something failed.
    Waiting(i64, bool),
    /// Waiting until fewer names are looked up.
    Name,
    /// Among the ready, under this rank.
    Ready(Rank),
    /// Waiting for its address to become free.
    Address(IpAddr),
}

impl Host {
    pub(crate) fn new(name: String, next_ms: i64) -> Self {
        Self {
            name,
            origins: Vec::new(),
            errands: VecDeque::new(),
            in_flight: 0,
            next_ms,
            admitted: 0,
            ended_ms: i64::MIN,
            backoffs: 0,
            failures: 0,
            away_since: None,
            troubles: 0,
            given_up: None,
            ip: None,
            name_state: NameState::Unknown,
            placed: Placed::Nowhere,
        }
    }

    /// The index of the origin of a URL, created if new.
    pub(crate) fn origin(&mut self, url: &WebUrl) -> usize {
        match self.origins.iter().position(|o| o.root.same_site(url)) {
            Some(index) => index,
            None => {
                self.origins.push(Origin {
                    root: url.root(),
                    robots: Robots::Unknown { attempts: 0 },
                    queue: BTreeMap::new(),
                });
                self.origins.len() - 1
            }
        }
    }

    /// The origin with the best work that may be done now, and the rank of that work.
    pub(crate) fn best(&self, now: i64, dead: bool) -> Option<(usize, Rank)> {
        // The URLs of a dead host are refused, for which nothing need be known of its robots.txt.
        let open = self.origins.iter().enumerate().filter(|(_, o)| dead || o.robots.blocked_until(now).is_none());
        open.filter_map(|(index, o)| Some((index, *o.queue.keys().next()?))).min_by_key(|(_, rank)| *rank)
    }

    /// Whether it is asked no more.
    pub(crate) fn is_dead(&self) -> bool {
        self.given_up.is_some()
    }

    /// Whether it waits because something failed, and not for politeness alone.
    pub(crate) fn is_in_backoff(&self) -> bool {
        self.backoffs + self.failures + self.troubles > 0
    }

    /// When an origin with work stops being blocked; those waiting for an errand have no such moment.
    pub(crate) fn unblocks_at(&self, now: i64) -> Option<i64> {
        let busy = self.origins.iter().filter(|o| !o.queue.is_empty());
        busy.filter_map(|o| o.robots.blocked_until(now)).filter(|at| *at < i64::MAX).min()
    }
}

pub(crate) struct Origin {
    /// Of the site, whose robots.txt decides.
    pub root: WebUrl,
    pub robots: Robots,
    pub queue: BTreeMap<Rank, UrlId>,
}

/// ```text
/// Unknown --errand--> Fetching --rules--> Known --ttl--> Unknown
///                        └──5xx, no answer──> Resting --time--> (errand again)      after the last attempt: GivenUp
/// ```
#[derive(Clone)]
pub(crate) enum Robots {
    Unknown { attempts: u32 },
    Fetching { attempts: u32 },
    Known { rules: Arc<dyn Rules>, until: i64 },
    Resting { attempts: u32, until: i64 },
    GivenUp { class: ErrorClass, message: String },
}

impl Robots {
    /// Until when nothing of the origin may be fetched, if so; `i64::MAX` while an errand is out.
    fn blocked_until(&self, now: i64) -> Option<i64> {
        match self {
            Self::Fetching { .. } => Some(i64::MAX),
            Self::Resting { until, .. } if *until > now => Some(*until),
            _ => None,
        }
    }

    pub(crate) fn attempts(&self) -> u32 {
        match self {
            Self::Unknown { attempts } | Self::Fetching { attempts } | Self::Resting { attempts, .. } => *attempts,
            Self::Known { .. } | Self::GivenUp { .. } => 0,
        }
    }
}
