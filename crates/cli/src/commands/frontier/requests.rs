//! The requests of `trawl frontier run`, and how its answers name things.

use serde::Deserialize;
use serde_json::{Value, json};
use std::net::IpAddr;
use trawl_frontier::{Admission, Answer, Lease, LeaseId, Outcome, UrlId};

#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Offer {
        urls: Vec<Offered>,
    },
    Lease {
        n: usize,
    },
    Settle {
        outcomes: Vec<Told>,
    },
    Robots {
        id: String,
        #[serde(default)]
        status: u16,
        #[serde(default)]
        text: String,
        /// Instead of a status: an error class.
        #[serde(default)]
        error: Option<String>,
    },
    Return {
        ids: Vec<String>,
    },
    /// Which addresses to look up, at most `n`.
    Wanted {
        n: usize,
    },
    /// What came of a lookup.
    Ready {
        site: String,
        #[serde(default)]
        ip: Option<IpAddr>,
        /// How long the address holds.
        #[serde(default = "holds")]
        seconds: f64,
        /// Instead of an address: an error class.
        #[serde(default)]
        error: Option<String>,
    },
    Pause {
        host: String,
    },
    Resume {
        host: String,
    },
    Block {
        host: String,
    },
    Unblock {
        host: String,
    },
    Delay {
        host: String,
        seconds: f64,
    },
    Release {
        host: String,
    },
    TakeUp {
        host: String,
    },
    Recrawl {
        #[serde(default)]
        before: Option<String>,
        #[serde(default)]
        host: Option<String>,
        #[serde(default)]
        gone: bool,
    },
    Report {
        host: String,
    },
    Stats,
}

/// Seconds for which an address holds if the request does not say: a system's resolver does not give a lifetime.
fn holds() -> f64 {
    300.0
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offered {
    pub url: String,
    #[serde(default)]
    pub depth: u32,
    #[serde(default)]
    pub via: Option<String>,
    #[serde(default)]
    pub priority: Option<f32>,
    #[serde(default)]
    pub meta: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Told {
    pub id: String,
    #[serde(default)]
    pub status: u16,
    #[serde(default)]
    pub retry_after_ms: Option<i64>,
    #[serde(default)]
    pub cut: bool,
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub ip: Option<IpAddr>,
    #[serde(default)]
    pub links: Vec<String>,
}

/// What became of the links of pages.
#[derive(Default)]
pub struct Linked {
    /// One for each link.
    pub admissions: Vec<&'static str>,
    /// Links that are no URLs.
    pub rejected: Vec<Value>,
    /// Pages that were fetched and are nearer now. Only the fetcher knows their links, some of which may have been too deep.
    pub reopened: Vec<Value>,
}

pub fn admission_name(admission: Admission) -> &'static str {
    match admission {
        Admission::New => "new",
        Admission::Seen => "seen",
        Admission::Nearer | Admission::AskedFor => "nearer",
        Admission::Reopened(_) => "reopened",
        Admission::InReach => "in_reach",
        Admission::Unparked => "unparked",
        Admission::TooDeep => "too_deep",
        Admission::Parked => "parked",
    }
}

pub fn lease_json(lease: &Lease) -> Value {
    let id = match lease.id {
        LeaseId::Page(id) => id.to_string(),
        LeaseId::Robots(number) => format!("robots-{number}"),
    };
    let mut line = json!({ "id": id, "url": lease.url(), "depth": lease.depth, "attempt": lease.attempt });
    if let Some(meta) = lease.meta_json().and_then(|meta| serde_json::from_str::<Value>(meta).ok()) {
        line["meta"] = meta;
    }
    if matches!(lease.id, LeaseId::Robots(_)) {
        line["robots"] = json!(true);
    }
    line
}

pub fn lease_id(text: &str) -> Result<LeaseId, String> {
    let wrong = || format!("expected the id of a lease, found {text:?}");
    match text.strip_prefix("robots-") {
        Some(number) => number.parse().map(LeaseId::Robots).map_err(|_| wrong()),
        None => text.parse::<UrlId>().map(LeaseId::Page).map_err(|_| wrong()),
    }
}

/// The note of a page that was fetched. Its links are kept nowhere: [`Admission::Reopened`] asks the fetcher for them.
const FETCHED: u64 = 1;

pub fn told_outcome(told: &Told) -> Result<Outcome, String> {
    let LeaseId::Page(id) = lease_id(&told.id)? else { return Err("a robots.txt is settled by \"robots\"".into()) };
    let answer = match &told.error {
        Some(class) => Answer::Failed(class.parse().map_err(|_| format!("unknown error class {class:?}"))?),
        None if (100..1000).contains(&told.status) => {
            Answer::Response { status: told.status, retry_after_ms: told.retry_after_ms, cut: told.cut }
        }
        None => return Err(format!("expected a status or an error, found status {}", told.status)),
    };
    let note = matches!(answer, Answer::Response { .. }).then_some(FETCHED);
    Ok(Outcome { id, answer, note })
}
