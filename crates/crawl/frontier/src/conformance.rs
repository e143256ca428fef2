//! What every frontier must do: a suite that any implementation of [`FrontierApi`] can be run against.
//!
//! ```
//! use trawl_frontier::{Frontier, conformance};
//!
//! let faults = conformance::run(&mut |config| Ok(Box::new(Frontier::in_memory(config))));
//! assert!(faults.is_empty(), "{faults:?}");
//! ```

use crate::candidate::{
    Address, Admission, Answer, Candidate, HostId, Lease, LeaseId, Next, Outcome, Settled, Wanted, Work,
};
use crate::config::{Config, RobotsPolicy};
use crate::error::{Error, Result};
use crate::frontier::Frontier;
use crate::identity::{Identity, UrlId};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use trawl_model::{ErrorClass, UnixMillis};
use trawl_url::WebUrl;

/// The calls of a frontier; [`Frontier`] says what each means.
pub trait FrontierApi {
    /// See [`Frontier::offer`].
    fn offer(&mut self, now: UnixMillis, candidates: &[Candidate]) -> Result<Vec<Admission>>;
    /// See [`Frontier::wanted`].
    fn wanted(&mut self, now: UnixMillis, n: usize) -> Vec<Wanted>;
    /// See [`Frontier::ready`].
    fn ready(&mut self, now: UnixMillis, host: HostId, found: Result<Option<Address>, ()>);
    /// See [`Frontier::lease`].
    fn lease(&mut self, now: UnixMillis, n: usize, work: &mut Vec<Work>) -> Result<Next>;
    /// See [`Frontier::released`].
    fn released(&mut self, now: UnixMillis, id: LeaseId, answer: Answer, ip: Option<IpAddr>) -> Result<()>;
    /// See [`Frontier::returned`].
    fn returned(&mut self, now: UnixMillis, id: LeaseId) -> Result<()>;
    /// See [`Frontier::settle`].
    fn settle(&mut self, now: UnixMillis, outcomes: &[Outcome]) -> Result<Vec<Settled>>;
    /// See [`Frontier::sync`].
    fn sync(&mut self) -> Result<()>;
}

impl FrontierApi for Frontier {
    fn offer(&mut self, now: UnixMillis, candidates: &[Candidate]) -> Result<Vec<Admission>> {
        Frontier::offer(self, now, candidates)
    }

    fn wanted(&mut self, now: UnixMillis, n: usize) -> Vec<Wanted> {
        Frontier::wanted(self, now, n)
    }

    fn ready(&mut self, now: UnixMillis, host: HostId, found: Result<Option<Address>, ()>) {
        Frontier::ready(self, now, host, found);
    }

    fn lease(&mut self, now: UnixMillis, n: usize, work: &mut Vec<Work>) -> Result<Next> {
        Frontier::lease(self, now, n, work)
    }

    fn released(&mut self, now: UnixMillis, id: LeaseId, answer: Answer, ip: Option<IpAddr>) -> Result<()> {
        Frontier::released(self, now, id, answer, ip)
    }

    fn returned(&mut self, now: UnixMillis, id: LeaseId) -> Result<()> {
        Frontier::returned(self, now, id)
    }

    fn settle(&mut self, now: UnixMillis, outcomes: &[Outcome]) -> Result<Vec<Settled>> {
        Frontier::settle(self, now, outcomes)
    }

    fn sync(&mut self) -> Result<()> {
        Frontier::sync(self)
    }
}

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which rule.
    pub rule: &'static str,
    /// What was found.
    pub found: String,
}

/// Makes an empty frontier with the settings of a rule.
pub type Make<'a> = &'a mut dyn FnMut(Config) -> Result<Box<dyn FrontierApi>>;

type Found<T> = std::result::Result<T, String>;
type Rule = (&'static str, fn(Make<'_>) -> Found<()>);

/// The rules, by name.
const RULES: [Rule; 9] = [
    ("a URL is known once, however it is spelled", known_once),
    ("a host is asked one at a time, and after its delay", one_at_a_time),
    ("a host that asks to be left alone is", retry_after),
    ("a failing page is tried again, and not for ever", tried_again),
    ("trouble of this machine settles nothing", returned),
    ("an address has a limit from the first request on", address_limit),
    ("a lease without an outcome expires", expiry),
    ("links that are too deep are left out, seeds never", depth),
    ("a limit on pages holds back, and seeds come first", order),
];

/// Runs every rule; the faults that were found.
pub fn run(make: Make<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (rule, check) in RULES {
        if let Err(found) = check(make) {
            faults.push(Fault { rule, found });
        }
    }
    faults
}

fn settings() -> Config {
    Config { robots: RobotsPolicy::Ignore, background: false, ..Config::default() }
}

fn fail<T>(expected: &str, found: impl std::fmt::Debug) -> Found<T> {
    Err(format!("expected {expected}, found {found:?}"))
}

fn candidate(url: &str) -> Found<Candidate> {
    Ok(Candidate::seed(Identity::Key, WebUrl::parse(url).map_err(|e| e.to_string())?, None))
}

/// A frontier and the calls on it that every rule needs.
struct Driver(Box<dyn FrontierApi>);

impl Driver {
    fn new(make: Make<'_>, config: Config) -> Found<Self> {
        make(config).map(Driver).map_err(said)
    }

    fn seed(&mut self, url: &str) -> Found<Admission> {
        let admissions = self.0.offer(UnixMillis(0), &[candidate(url)?]).map_err(said)?;
        admissions.first().copied().ok_or_else(|| "expected one admission, found none".into())
    }

    /// What is leased now, at most `n`, and what comes next.
    fn lease(&mut self, now: i64, n: usize) -> Found<(Vec<Lease>, Next)> {
        let mut work = Vec::new();
        let next = self.0.lease(UnixMillis(now), n, &mut work).map_err(said)?;
        let leases = work.into_iter().map(|work| match work {
            Work::Fetch(lease) => Ok(lease),
            refused => fail("a page to fetch", refused),
        });
        Ok((leases.collect::<Found<_>>()?, next))
    }

    fn one(&mut self, now: i64) -> Found<Lease> {
        match self.lease(now, 9)? {
            (mut leases, _) if leases.len() == 1 => leases.pop().ok_or_else(String::new),
            other => fail("one lease", other),
        }
    }

    /// The next lease, waiting as long as the frontier says.
    fn soonest(&mut self, mut now: i64) -> Found<(i64, Lease)> {
        for _ in 0..1000 {
            match self.lease(now, 1)? {
                (mut leases, _) if !leases.is_empty() => return Ok((now, leases.remove(0))),
                (_, Next::WaitUntil(at)) if at.0 > now => now = at.0,
                (_, other) => return fail("a moment to wait for", other),
            }
        }
        fail("a lease", "nothing but moments to wait for")
    }

    fn settle(&mut self, now: i64, lease: &Lease, answer: Answer) -> Found<Settled> {
        let outcome = Outcome { id: page(lease)?, answer, note: None };
        let settled = self.0.settle(UnixMillis(now), &[outcome]).map_err(said)?;
        self.0.sync().map_err(said)?;
        settled.first().copied().ok_or_else(|| "expected one outcome, found none".into())
    }
}

fn said(error: Error) -> String {
    error.to_string()
}

fn page(lease: &Lease) -> Found<UrlId> {
    match lease.id {
        LeaseId::Page(id) => Ok(id),
        LeaseId::Robots(_) => fail("a page", lease.url()),
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, expected: T, found: T) -> Found<()> {
    if expected == found { Ok(()) } else { Err(format!("{what}: expected {expected:?}, found {found:?}")) }
}

const OK: Answer = Answer::Response { status: 200, retry_after_ms: None, cut: false };

fn known_once(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, settings())?;
    expect("first", Admission::New, f.seed("http://a.example/?b=1&a=2")?)?;
    expect("again", Admission::Seen, f.seed("http://a.example/?b=1&a=2")?)?;
    expect("another order", Admission::Seen, f.seed("http://A.example:80/?a=2&b=1&utm_source=x#top")?)?;
    expect("another page", Admission::New, f.seed("http://a.example/?a=1&b=2")?)?;
    let lease = f.one(0)?;
    expect("the URL as found", "http://a.example/?b=1&a=2", lease.url())?;
    expect("settled", Settled::Done { depth: 0 }, f.settle(0, &lease, OK)?)?;
    expect("when done", Admission::Seen, f.seed("http://a.example/?b=1&a=2")?)?;
    expect("settled twice", Settled::Unknown, f.settle(1, &lease, OK)?)
}

fn one_at_a_time(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, Config { delay: Duration::from_secs(5), ..settings() })?;
    for n in 0..3 {
        f.seed(&format!("http://a.example/{n}"))?;
    }
    let first = f.one(0)?;
    expect("in flight", (0, Next::Blocked), f.lease(100_000, 9).map(|(l, next)| (l.len(), next))?)?;
    f.settle(100_000, &first, OK)?;
    expect("delay", (0, Next::WaitUntil(UnixMillis(105_000))), f.lease(104_999, 9).map(|(l, n)| (l.len(), n))?)?;
    f.one(105_000).map(|_| ())
}

fn retry_after(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, settings())?;
    f.seed("http://a.example/1")?;
    f.seed("http://a.example/2")?;
    f.seed("http://b.example/")?;
    let (leases, _) = f.lease(0, 9)?;
    expect("hosts at once", 2, leases.len())?;
    for lease in &leases {
        let busy = Answer::Response { status: 429, retry_after_ms: Some(77_000), cut: false };
        f.settle(0, lease, if lease.url().contains("a.example") { busy } else { OK })?;
    }
    let (at, lease) = f.soonest(0)?;
    expect("when", 77_000, at)?;
    f.settle(at, &lease, OK)?;
    let (_, other) = f.soonest(at)?;
    // Which of its pages the host is asked for first is up to the frontier.
    let mut attempts = [lease.attempt, other.attempt];
    attempts.sort_unstable();
    expect("attempts", [1, 2], attempts)
}

fn tried_again(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, Config { max_attempts: 3, ..settings() })?;
    f.seed("http://a.example/")?;
    let mut now = 0;
    for attempt in 1..=3 {
        let (at, lease) = f.soonest(now)?;
        expect("attempt", attempt, lease.attempt)?;
        let settled = f.settle(at, &lease, Answer::status(500))?;
        let expected = if attempt < 3 { Settled::Again { depth: 0 } } else { Settled::Done { depth: 0 } };
        expect("outcome", expected, settled)?;
        now = at;
    }
    expect("in the end", (0, Next::Empty), f.lease(now, 9).map(|(l, next)| (l.len(), next))?)
}

fn returned(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, Config { max_attempts: 1, ..settings() })?;
    f.seed("http://a.example/")?;
    let mut now = 0;
    for _ in 0..5 {
        let (at, lease) = f.soonest(now)?;
        expect("attempt", 1, lease.attempt)?;
        f.0.returned(UnixMillis(at), lease.id).map_err(said)?;
        now = at;
    }
    let (at, lease) = f.soonest(now)?;
    expect("settled", Settled::Done { depth: 0 }, f.settle(at, &lease, OK)?)
}

fn address_limit(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, Config { per_ip: Some(2), lookups: 9, delay: Duration::ZERO, ..settings() })?;
    for host in 0..6 {
        f.seed(&format!("http://h{host}.example/"))?;
    }
    let ip: IpAddr = Ipv4Addr::new(192, 0, 2, 7).into();
    expect("before any address is known", 0, f.lease(0, 9)?.0.len())?;
    for wanted in f.0.wanted(UnixMillis(0), 9) {
        f.0.ready(UnixMillis(0), wanted.id, Ok(Some((ip, Duration::from_secs(600)))));
    }
    let mut fetched = 0;
    for now in 0..6 {
        let (leases, _) = f.lease(now, 9)?;
        if leases.len() > 2 {
            return fail("at most two at once", leases.len());
        }
        for lease in &leases {
            f.0.released(UnixMillis(now), lease.id, OK, Some(ip)).map_err(said)?;
            f.settle(now, lease, OK)?;
            fetched += 1;
        }
    }
    expect("in the end", 6, fetched)
}

fn expiry(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, Config { lease_ttl: Some(Duration::from_secs(60)), ..settings() })?;
    f.seed("http://a.example/")?;
    f.one(0)?;
    expect("before it expires", 0, f.lease(59_999, 9)?.0.len())?;
    let (at, lease) = f.soonest(59_999)?;
    if at < 60_000 {
        return fail("a second lease after a minute", at);
    }
    expect("attempt", 1, lease.attempt)
}

fn depth(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, Config { max_depth: 1, ..settings() })?;
    let link = |url: &str, depth: u32| -> Found<Candidate> {
        let seed = candidate(url)?;
        Ok(Candidate::link(seed.id, seed.url, &"http://a.example/".into(), depth))
    };
    let offered = [candidate("http://a.example/")?, link("http://b.example/", 0)?, link("http://c.example/", 1)?];
    let admissions = f.0.offer(UnixMillis(0), &offered).map_err(said)?;
    expect("admissions", vec![Admission::New, Admission::New, Admission::TooDeep], admissions)?;
    expect("the same by a shorter way", Admission::New, f.seed("http://c.example/")?)?;
    expect("a seed that a link was to", Admission::AskedFor, f.seed("http://b.example/")?)?;
    let (leases, _) = f.lease(0, 9)?;
    expect("leases", 3, leases.len())?;
    expect("depths", vec![0, 0, 0], leases.iter().map(|lease| lease.depth).collect())
}

fn order(make: Make<'_>) -> Found<()> {
    let mut f = Driver::new(make, Config { max_pages: Some(2), max_depth: 9, delay: Duration::ZERO, ..settings() })?;
    let (a, b) = (candidate("http://a.example/deep")?, candidate("http://b.example/")?);
    let deep = Candidate::link(a.id, a.url, &"http://b.example/".into(), 4);
    f.0.offer(UnixMillis(0), &[deep, b]).map_err(said)?;
    f.seed("http://c.example/")?;
    let (leases, _) = f.lease(0, 9)?;
    let urls: Vec<&str> = leases.iter().map(Lease::url).collect();
    expect("leases", vec!["http://b.example/", "http://c.example/"], urls)?;
    for lease in &leases {
        f.settle(0, lease, Answer::Failed(ErrorClass::TooLarge))?;
    }
    expect("in the end", (0, Next::Empty), f.lease(9, 9).map(|(l, next)| (l.len(), next))?)
}
