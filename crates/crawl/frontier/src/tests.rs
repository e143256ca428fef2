//! Rules one by one. Every frontier here is durable and has so little memory that it is flushed all the time.

mod absence;
mod addresses;
mod durability;
mod durable;
mod intake;
mod limits;
mod pleas;
mod simulation;

use super::*;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use trawl_io::fault::FaultFs;
use trawl_model::{ErrorClass, RobotsVerdict, UnixMillis};
use trawl_url::WebUrl;

const OK: Answer = Answer::Response { status: 200, retry_after_ms: None, cut: false };

fn status(status: u16) -> Answer {
    Answer::status(status)
}

/// A frontier that answers step by step.
pub(crate) struct F {
    pub inner: Frontier,
    pub disk: FaultFs,
    config: Config,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    Lease(Lease),
    Refuse(Lease, ErrorClass, String),
    Lookup(HostId, String),
    WaitUntil(UnixMillis),
    Blocked,
    Empty,
}

impl F {
    pub fn new(config: Config) -> Self {
        let config = Config { memory_bytes: 16 << 10, background: false, ..config };
        Self::on(FaultFs::new(), config, 0)
    }

    pub fn on(disk: FaultFs, config: Config, now: i64) -> Self {
        let dir = std::path::Path::new("/frontier");
        let inner = Frontier::open(&disk.shared(), dir, config.clone(), UnixMillis(now), "test").unwrap();
        Self { inner, disk, config }
    }

    /// What a power cut leaves, opened again.
    pub fn crash(self, now: i64) -> Self {
        let disk = self.disk.reboot(trawl_io::fault::Loss::All);
        Self::on(disk, self.config.clone(), now)
    }

    /// The same after all was made durable.
    pub fn crash_synced(mut self, now: i64) -> Self {
        self.inner.sync().unwrap();
        self.crash(now)
    }

    pub fn step(&mut self, now: UnixMillis) -> Step {
        self.inner.commit().unwrap();
        if let Some(wanted) = self.inner.wanted(now, 1).pop() {
            return Step::Lookup(wanted.id, wanted.site);
        }
        let mut work = Vec::new();
        let next = self.inner.lease(now, 1, &mut work).unwrap();
        match work.pop() {
            Some(Work::Fetch(lease)) => Step::Lease(lease),
            Some(Work::Refuse(lease, class, why)) => Step::Refuse(lease, class, why),
            // A host may have become one whose address is wanted.
            None => match (next, self.inner.wanted(now, 1).pop()) {
                (_, Some(wanted)) => Step::Lookup(wanted.id, wanted.site),
                (Next::WaitUntil(at), None) => Step::WaitUntil(at),
                (Next::Blocked, None) => Step::Blocked,
                (Next::Empty, None) => Step::Empty,
                (Next::Now, None) => panic!("now, but nothing"),
            },
        }
    }

    pub fn discover(&mut self, candidate: Candidate) -> Admission {
        let now = self.inner.clock.latest;
        self.inner.offer(UnixMillis(now), &[candidate]).unwrap()[0]
    }

    pub fn released(&mut self, now: UnixMillis, id: LeaseId, answer: Answer, ip: Option<IpAddr>) {
        self.inner.released(now, id, answer, ip).unwrap();
    }

    pub fn acknowledged(&mut self, now: UnixMillis, id: UrlId, answer: Answer, note: Option<u64>) -> bool {
        let settled = self.inner.settle(now, &[Outcome { id, answer, note }]).unwrap();
        matches!(settled[0], Settled::Again { .. })
    }

    pub fn robots(&mut self, now: UnixMillis, id: LeaseId, answer: RobotsAnswer) {
        self.inner.robots(now, id, answer).unwrap();
    }
}

impl Deref for F {
    type Target = Frontier;
    fn deref(&self) -> &Frontier {
        &self.inner
    }
}

impl DerefMut for F {
    fn deref_mut(&mut self) -> &mut Frontier {
        &mut self.inner
    }
}

struct Deny(&'static str, Option<i64>);

impl Rules for Deny {
    fn allows(&self, path: &str) -> bool {
        self.0.is_empty() || !path.starts_with(self.0)
    }
    fn crawl_delay_ms(&self) -> Option<i64> {
        self.1
    }
}

fn rules(denied: &'static str, delay_ms: Option<i64>) -> RobotsAnswer {
    RobotsAnswer::Rules(Arc::new(Deny(denied, delay_ms)))
}

fn web(url: &str) -> WebUrl {
    WebUrl::parse(url).unwrap()
}

fn seed(frontier: &mut F, url: &str) -> Admission {
    let identity = frontier.config().identity;
    frontier.discover(Candidate::seed(identity, web(url), None))
}

fn ignoring() -> Config {
    Config { robots: RobotsPolicy::Ignore, ..Config::default() }
}

fn lease(frontier: &mut F, now: i64) -> Lease {
    match frontier.step(UnixMillis(now)) {
        Step::Lease(lease) => lease,
        other => panic!("{other:?}"),
    }
}

fn page(id: LeaseId) -> UrlId {
    match id {
        LeaseId::Page(id) => id,
        LeaseId::Robots(_) => panic!("a robots errand"),
    }
}

fn done(frontier: &mut F, now: i64, lease: &Lease, answer: Answer) {
    frontier.released(UnixMillis(now), lease.id, answer, None);
    if let LeaseId::Page(id) = lease.id {
        frontier.acknowledged(UnixMillis(now), id, answer, None);
    }
}

fn link(page: &Lease, from: &Arc<str>, url: &str) -> Candidate {
    Candidate::link(Identity::Key.of(&web(url)), web(url), from, page.depth)
}

fn wait(frontier: &mut F, now: i64) -> i64 {
    match frontier.step(UnixMillis(now)) {
        Step::WaitUntil(at) => at.0,
        other => panic!("{other:?}"),
    }
}

/// The next lease and when it comes, if nothing else happens.
fn soonest(frontier: &mut F, mut now: i64) -> (i64, Lease) {
    loop {
        match frontier.step(UnixMillis(now)) {
            Step::WaitUntil(at) => now = at.0,
            Step::Lease(lease) => return (now, lease),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn one_at_a_time_and_a_delay_after_each() {
    let mut f = F::new(ignoring());
    seed(&mut f, "http://a.example/1");
    seed(&mut f, "http://a.example:8080/2");
    assert_eq!(seed(&mut f, "http://a.example/1?utm_source=x"), Admission::Seen);
    assert_eq!(f.longest_queue(), Duration::from_secs(2));
    let first = lease(&mut f, 1000);
    assert_eq!((first.url(), first.robots), ("http://a.example/1", RobotsVerdict::Ignored));
    assert_eq!(f.step(UnixMillis(99_000)), Step::Blocked, "another port is the same host");
    f.released(UnixMillis(5000), first.id, OK, None);
    // The gate opens by the end of the fetch, not by its acknowledgement.
    assert_eq!(wait(&mut f, 5000), 6000);
    assert_eq!(wait(&mut f, 5999), 6000);
    let second = lease(&mut f, 6000);
    assert_eq!(second.url(), "http://a.example:8080/2");
    done(&mut f, 6500, &second, OK);
    assert_eq!(f.step(UnixMillis(9000)), Step::Blocked, "the first is not yet durable");
    f.acknowledged(UnixMillis(9000), page(first.id), OK, None);
    assert_eq!(f.step(UnixMillis(9000)), Step::Empty);
    assert_eq!((f.known(), f.pending(), f.out()), (2, 0, 0));
}

#[test]
fn shallow_first_then_first_come() {
    let mut f = F::new(Config { max_depth: 2, ..ignoring() });
    seed(&mut f, "http://s.example/");
    let root = lease(&mut f, 0);
    let from: Arc<str> = root.url().into();
    let mut deep = root.clone();
    deep.depth = 1;
    for (lease, url) in
        [(&deep, "http://a.example/deep"), (&root, "http://b.example/"), (&root, "http://a.example/flat")]
    {
        let candidate = link(lease, &from, url);
        assert_eq!(f.discover(candidate), Admission::New);
    }
    let too_deep = Lease { depth: 2, ..root.clone() };
    let candidate = link(&too_deep, &from, "http://c.example/");
    assert_eq!(f.discover(candidate), Admission::TooDeep);
    done(&mut f, 0, &root, OK);
    let order: Vec<_> = (0..3)
        .map(|n| {
            let next = lease(&mut f, 10_000 * n);
            assert_eq!(next.source(), Source::Link(from.clone()));
            done(&mut f, 10_000 * n, &next, OK);
            next.url().to_owned()
        })
        .collect();
    assert_eq!(order, ["http://b.example/", "http://a.example/flat", "http://a.example/deep"]);
}

#[test]
fn robots_come_first_and_once_per_origin() {
    let mut f = F::new(Config::default());
    for url in ["http://a.example/x", "http://a.example/no/y", "https://a.example/z"] {
        seed(&mut f, url);
    }
    let robots = lease(&mut f, 0);
    assert_eq!(robots.url(), "http://a.example/robots.txt");
    assert_eq!(f.errand_site(robots.id).unwrap(), "http://a.example");
    done(&mut f, 0, &robots, OK);
    f.robots(UnixMillis(0), robots.id, rules("/no", Some(3000)));
    assert_eq!(wait(&mut f, 0), 3000, "the crawl-delay counts from the robots.txt on");
    let x = lease(&mut f, 3000);
    assert_eq!((x.url(), x.robots), ("http://a.example/x", RobotsVerdict::Allowed));
    done(&mut f, 3000, &x, OK);
    assert_eq!(wait(&mut f, 3000), 6000, "the crawl-delay");
    let Step::Refuse(no, class, _) = f.step(UnixMillis(6000)) else { panic!() };
    assert_eq!(
        (no.url(), class, no.robots),
        ("http://a.example/no/y", ErrorClass::RobotsDenied, RobotsVerdict::Denied)
    );
    // A refusal costs no politeness; the other scheme has a robots.txt of its own.
    let other = lease(&mut f, 6000);
    assert_eq!(other.url(), "https://a.example/robots.txt");
    done(&mut f, 6000, &other, status(404));
    f.robots(UnixMillis(6000), other.id, RobotsAnswer::Rules(Arc::new(AllowAll)));
    let z = lease(&mut f, 9000);
    assert_eq!(z.url(), "https://a.example/z");
    done(&mut f, 9000, &z, OK);
    f.acknowledged(UnixMillis(9000), page(no.id), Answer::Failed(class), None);
    assert_eq!(f.step(UnixMillis(9000)), Step::Empty);
    // A day later they are asked again.
    seed(&mut f, "http://a.example/later");
    assert_eq!(lease(&mut f, 86_400_000).url(), "http://a.example/robots.txt");
}

#[test]
fn a_crawl_delay_counts_up_to_a_cap() {
    let mut f = F::new(Config { crawl_delay_cap: Duration::from_secs(5), ..Config::default() });
    seed(&mut f, "http://a.example/x");
    seed(&mut f, "http://a.example/y");
    let robots = lease(&mut f, 0);
    done(&mut f, 0, &robots, OK);
    f.robots(UnixMillis(0), robots.id, rules("", Some(9_000_000)));
    assert_eq!(wait(&mut f, 0), 5000);
    let x = lease(&mut f, 5000);
    done(&mut f, 5000, &x, OK);
    assert_eq!(wait(&mut f, 5000), 10_000);
}

#[test]
fn without_robots_nothing_is_fetched_for_now_and_in_the_end_not_at_all() {
    let mut f = F::new(Config { robots_attempts: 2, ..Config::default() });
    seed(&mut f, "http://a.example/x");
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, status(500));
    f.robots(UnixMillis(0), first.id, RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, "status 500".into()));
    let at = wait(&mut f, 0);
    assert!((30_000..=60_000).contains(&at), "{at}");
    let second = lease(&mut f, at);
    assert_eq!((second.url(), second.attempt), ("http://a.example/robots.txt", 2));
    done(&mut f, at, &second, status(500));
    f.robots(UnixMillis(at), second.id, RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, "status 500".into()));
    let at = wait(&mut f, at);
    let Step::Refuse(x, class, message) = f.step(UnixMillis(at)) else { panic!() };
    assert_eq!((class, message.as_str()), (ErrorClass::RobotsUnavailable, "robots.txt: status 500"));
    assert_eq!(x.robots, RobotsVerdict::Unavailable);
    assert!(!f.acknowledged(UnixMillis(at), page(x.id), Answer::Failed(class), None));
    assert_eq!(f.step(UnixMillis(at)), Step::Empty);
}

#[test]
fn a_name_that_does_not_exist_is_not_waited_for() {
    let mut f = F::new(Config::default());
    seed(&mut f, "http://gone.example/x");
    let robots = lease(&mut f, 0);
    done(&mut f, 0, &robots, Answer::Failed(ErrorClass::DnsNxdomain));
    f.robots(UnixMillis(0), robots.id, RobotsAnswer::Unavailable(ErrorClass::DnsNxdomain, "no such name".into()));
    let at = wait(&mut f, 0);
    assert!(matches!(f.step(UnixMillis(at)), Step::Refuse(_, ErrorClass::DnsNxdomain, _)));
}

/// Files have them as `retry_count`: a search for pages with trouble must not find every page that was fetched.
#[test]
fn an_answer_ends_the_failures_in_a_row() {
    let config = Config { memory_bytes: 1 << 20, background: false, max_attempts: 3, ..ignoring() };
    let denied = Answer::Failed(ErrorClass::RobotsDenied);
    let tls = Answer::Failed(ErrorClass::TlsFailure);
    let cases: [(&[Answer], &[u8]); 5] = [
        (&[OK], &[0]),
        (&[status(503), status(500), status(404)], &[1, 2, 0]),
        (&[status(500), status(503), status(500)], &[1, 2, 3]),
        (&[tls, tls, tls], &[1, 2, 3]),
        (&[status(500), denied], &[1, 0]),
    ];
    for (answers, strikes) in cases {
        let mut f = F::on(FaultFs::new(), config.clone(), 0);
        seed(&mut f, "http://a.example/");
        let mut now = 0;
        for (answer, expected) in answers.iter().zip(strikes) {
            let (at, leased) = soonest(&mut f, now);
            now = at;
            done(&mut f, now, &leased, *answer);
            assert_eq!(f.recent_row(page(leased.id)).unwrap().strikes, *expected, "{answers:?}");
        }
        assert_eq!(f.pending(), 0, "{answers:?}");
    }
}

/// Neither the delay nor the time that rules hold may be so short that no page is ever asked for.
#[test]
fn rules_that_hold_for_no_time_let_pages_go() {
    let mut f = F::new(Config { robots_ttl: Duration::ZERO, delay: Duration::ZERO, ..Config::default() });
    for n in 0..3 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    let errand = lease(&mut f, 0);
    done(&mut f, 0, &errand, OK);
    f.robots(UnixMillis(0), errand.id, rules("", None));
    for _ in 0..3 {
        let next = lease(&mut f, 5);
        assert!(matches!(next.id, LeaseId::Page(_)), "{}", next.url());
        done(&mut f, 5, &next, OK);
    }
    assert_eq!(f.step(UnixMillis(5)), Step::Empty);
}

/// RFC 9309, 2.4: rules may be used for longer than a day while the file is unreachable.
#[test]
fn rules_that_cannot_be_had_anew_go_on() {
    const DAY: i64 = 86_400_000;
    let mut f = F::new(Config { robots_attempts: 2, ..Config::default() });
    seed(&mut f, "http://a.example/1");
    let robots = lease(&mut f, 0);
    done(&mut f, 0, &robots, OK);
    f.robots(UnixMillis(0), robots.id, rules("/no", None));
    let (at, first) = soonest(&mut f, 0);
    done(&mut f, at, &first, OK);
    seed(&mut f, "http://a.example/2");
    seed(&mut f, "http://a.example/no");
    let mut now = DAY;
    for _ in 0..2 {
        let (at, errand) = soonest(&mut f, now);
        assert_eq!(errand.url(), "http://a.example/robots.txt");
        done(&mut f, at, &errand, status(503));
        let failed = RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, "status 503".into());
        f.robots(UnixMillis(at), errand.id, failed);
        now = at;
    }
    // Both in either order: a host in backoff is asked for any page that was never tried.
    let mut seen = Vec::new();
    while seen.len() < 2 {
        match f.step(UnixMillis(now)) {
            Step::WaitUntil(at) => now = at.0,
            Step::Lease(page) => {
                assert_eq!(page.robots, RobotsVerdict::Allowed);
                done(&mut f, now, &page, OK);
                seen.push(page.url().to_owned());
            }
            Step::Refuse(page, ErrorClass::RobotsDenied, _) => seen.push(page.url().to_owned()),
            other => panic!("{other:?}"),
        }
    }
    seen.sort();
    assert_eq!(seen, ["http://a.example/2", "http://a.example/no"]);
    // And once more after a day.
    seed(&mut f, "http://a.example/3");
    let (_, errand) = soonest(&mut f, now + DAY);
    assert_eq!(errand.url(), "http://a.example/robots.txt");
}

#[test]
fn robots_may_be_some_redirects_away() {
    let mut f = F::new(Config { delay: Duration::ZERO, ..Config::default() });
    seed(&mut f, "http://a.example/x");
    for hop in 0..=5 {
        let robots = lease(&mut f, hop);
        assert_eq!(robots.hops, u32::try_from(hop).unwrap());
        done(&mut f, hop, &robots, status(301));
        f.robots(UnixMillis(hop), robots.id, RobotsAnswer::Redirect(web(&format!("http://h{hop}.example/robots.txt"))));
    }
    assert_eq!(lease(&mut f, 9).url(), "http://a.example/x", "too far away is none at all");
    // An errand waits for the gate of the host it goes to.
    let mut f = F::new(Config::default());
    seed(&mut f, "http://b.example/busy");
    seed(&mut f, "http://a.example/x");
    let b = lease(&mut f, 0);
    let a = lease(&mut f, 0);
    assert_eq!(a.url(), "http://a.example/robots.txt");
    done(&mut f, 0, &a, status(301));
    f.robots(UnixMillis(0), a.id, RobotsAnswer::Redirect(web("http://b.example/other-robots")));
    assert_eq!(f.step(UnixMillis(0)), Step::Blocked);
    done(&mut f, 500, &b, OK);
    f.robots(UnixMillis(500), b.id, rules("", None));
    assert_eq!(wait(&mut f, 500), 1500);
    assert_eq!(lease(&mut f, 1500).url(), "http://b.example/other-robots");
}

#[test]
fn pleas_are_heard() {
    let mut f = F::new(Config { max_attempts: 3, ..ignoring() });
    seed(&mut f, "http://a.example/1");
    seed(&mut f, "http://a.example/2");
    let one = lease(&mut f, 0);
    done(&mut f, 0, &one, Answer::Response { status: 429, retry_after_ms: Some(120_000), cut: false });
    assert_eq!(wait(&mut f, 0), 120_000, "the whole host rests");
    let two = lease(&mut f, 120_000);
    assert_eq!((two.url(), two.attempt), ("http://a.example/2", 1), "the first page is not to blame alone");
    done(&mut f, 120_000, &two, status(503));
    let (at, next) = soonest(&mut f, 120_000);
    assert!((180_000..=240_000).contains(&at), "{at}: the second plea waits longer");
    done(&mut f, at, &next, OK);
    let (at, other) = soonest(&mut f, at);
    assert_ne!(next.url(), other.url());
    done(&mut f, at, &other, OK);
    assert_eq!(f.step(UnixMillis(at)), Step::Empty);
}

/// A restart of a minute, by a server that says "one second" all the while, or names a moment that is past.
#[test]
fn a_plea_that_is_repeated_is_answered_with_more_patience() {
    for asked in [0, 1_000] {
        let mut f = F::new(Config { max_attempts: 3, ..ignoring() });
        seed(&mut f, "http://a.example/1");
        let (mut now, mut attempts) = (0, Vec::new());
        for _ in 0..3 {
            let (at, one) = soonest(&mut f, now);
            attempts.push(at);
            done(&mut f, at, &one, Answer::Response { status: 503, retry_after_ms: Some(asked), cut: false });
            now = at;
        }
        assert_eq!(attempts[1], 1_000, "the first time it is believed");
        assert!((30_000..=60_000).contains(&(attempts[2] - attempts[1])), "{attempts:?}");
    }
}

#[test]
fn a_host_that_used_up_its_budget_still_has_the_robots_of_others() {
    let mut f = F::new(Config { delay: Duration::ZERO, ..Config::default() });
    seed(&mut f, "http://a.example/1");
    seed(&mut f, "http://b.example/1");
    f.hold(UnixMillis(0), "a.example").unwrap();
    let robots = lease(&mut f, 0);
    done(&mut f, 0, &robots, status(301));
    f.robots(UnixMillis(0), robots.id, RobotsAnswer::Redirect(web("http://a.example/robots.txt")));
    let errand = lease(&mut f, 1);
    assert_eq!(errand.url(), "http://a.example/robots.txt");
    done(&mut f, 1, &errand, OK);
    f.robots(UnixMillis(1), errand.id, rules("", None));
    let one = lease(&mut f, 2);
    assert_eq!(one.url(), "http://b.example/1");
    done(&mut f, 2, &one, OK);
    assert_eq!((f.step(UnixMillis(3)), f.pending()), (Step::Empty, 1), "its own page waits");
}

/// `http:` redirects its robots.txt to `https:`, which is being restarted.
#[test]
fn robots_elsewhere_are_waited_for_as_an_origin_is() {
    let config = Config { delay: Duration::ZERO, give_up_after: Duration::from_secs(3600), ..Config::default() };
    let mut f = F::new(config);
    seed(&mut f, "http://a.example/1");
    let robots = lease(&mut f, 0);
    done(&mut f, 0, &robots, status(301));
    f.robots(UnixMillis(0), robots.id, RobotsAnswer::Redirect(web("https://a.example/robots.txt")));
    let refused = ErrorClass::ConnectRefused;
    let mut now = 0;
    while now < 600_000 {
        let (at, errand) = soonest(&mut f, now);
        assert_eq!(errand.url(), "https://a.example/robots.txt");
        done(&mut f, at, &errand, Answer::Failed(refused));
        f.robots(UnixMillis(at), errand.id, RobotsAnswer::Unavailable(refused, "refused".into()));
        now = at.max(now + 1);
    }
    let (at, errand) = soonest(&mut f, now);
    done(&mut f, at, &errand, OK);
    f.robots(UnixMillis(at), errand.id, rules("", None));
    assert_eq!(soonest(&mut f, at).1.url(), "http://a.example/1");
}

#[test]
fn the_last_attempt_settles_it() {
    let mut f = F::new(Config { max_attempts: 3, ..ignoring() });
    seed(&mut f, "http://a.example/1");
    let mut now = 0;
    for attempt in 1..=3 {
        let (at, l) = soonest(&mut f, now);
        assert_eq!(l.attempt, attempt);
        done(&mut f, at, &l, status(500));
        now = at;
    }
    assert_eq!((f.pending(), f.step(UnixMillis(now))), (0, Step::Empty));
}

#[test]
fn a_server_cannot_ask_for_ever() {
    let mut f = F::new(ignoring());
    seed(&mut f, "http://a.example/1");
    let one = lease(&mut f, 0);
    done(&mut f, 0, &one, Answer::Response { status: 503, retry_after_ms: Some(i64::MAX), cut: false });
    assert_eq!(wait(&mut f, 0), 86_400_000);
}

/// Refuses whatever is refused now; how many URLs that were.
fn refuse_all(f: &mut F, now: i64) -> usize {
    let mut refused = 0;
    while let Step::Refuse(l, ErrorClass::DeadHost, _) = f.step(UnixMillis(now)) {
        assert!(!f.acknowledged(UnixMillis(now), page(l.id), Answer::Failed(ErrorClass::DeadHost), None));
        refused += 1;
    }
    refused
}

#[test]
fn a_host_that_is_away_is_waited_for_and_given_up_by_time() {
    let config = Config { give_up_after: Duration::from_secs(600), max_attempts: 2, ..ignoring() };
    // A restart: however many attempts fail meanwhile, no page is lost.
    let patient =
        Config { give_up_after: Duration::from_secs(3600), backoff: Duration::from_secs(1), ..config.clone() };
    let mut f = F::new(patient);
    for n in 0..4 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    let (mut now, mut failures) = (0, 0);
    while now < 500_000 {
        let (at, l) = soonest(&mut f, now);
        done(&mut f, at, &l, Answer::Failed(ErrorClass::ConnectRefused));
        (now, failures) = (at, failures + 1);
    }
    assert!((8..13).contains(&failures), "{failures}: it backs off");
    for _ in 0..4 {
        let (at, l) = soonest(&mut f, now);
        done(&mut f, at, &l, OK);
        now = at;
    }
    assert_eq!(f.step(UnixMillis(now)), Step::Empty);
    // One that stays away.
    let mut f = F::new(config);
    for n in 0..4 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    now = 0;
    while f.host_report("a.example").unwrap().given_up.is_none() {
        let (at, l) = soonest(&mut f, now);
        done(&mut f, at, &l, Answer::Failed(ErrorClass::ConnectTimeout));
        now = at;
    }
    assert!((600_000..=1_800_000).contains(&now), "{now}");
    assert_eq!(refuse_all(&mut f, now), 4);
    assert_eq!(f.step(UnixMillis(now)), Step::Empty);
}

#[test]
fn addresses_are_shared_fairly() {
    let ip: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
    let mut f = F::new(Config { per_ip: Some(2), delay: Duration::ZERO, ..ignoring() });
    for host in 0..5 {
        for n in 0..3 {
            seed(&mut f, &format!("http://h{host}.example/{n}"));
        }
    }
    // Nobody's address is known before the first fetch.
    let first: Vec<_> = (0..5).map(|_| lease(&mut f, 0)).collect();
    for l in &first {
        f.released(UnixMillis(1), l.id, OK, Some(ip));
        f.acknowledged(UnixMillis(1), page(l.id), OK, None);
    }
    let (mut out, mut served) = (Vec::new(), 0);
    for now in 2..200 {
        while let Step::Lease(l) = f.step(UnixMillis(now)) {
            out.push(l);
        }
        assert!(out.len() <= 2, "{now}");
        if !out.is_empty() {
            let l = out.remove(0);
            f.released(UnixMillis(now), l.id, OK, Some(ip));
            f.acknowledged(UnixMillis(now), page(l.id), OK, None);
            served += 1;
        }
    }
    assert_eq!(served, 10);
    assert_eq!(f.step(UnixMillis(200)), Step::Empty);
}

/// A page that is refused asks nobody, so that no fetch of it ends: who waits behind its host for their address is called all
/// the same.
#[test]
fn a_refusal_gives_up_its_turn_at_an_address() {
    let ip: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
    let mut f = F::new(Config { per_ip: Some(1), max_hops: 1, delay: Duration::ZERO, ..ignoring() });
    let identity = f.config().identity;
    for host in ["a", "b", "c"] {
        seed(&mut f, &format!("http://{host}.example/1"));
    }
    let first: Vec<_> = (0..3).map(|_| lease(&mut f, 0)).collect();
    for l in &first {
        f.released(UnixMillis(1), l.id, OK, Some(ip));
        f.acknowledged(UnixMillis(1), page(l.id), OK, None);
    }
    seed(&mut f, "http://a.example/2");
    let a = lease(&mut f, 2);
    // In line behind it: a URL past the limit of redirects, then a page.
    let far = web("http://b.example/2");
    let id = identity.of(&far);
    f.discover(Candidate::redirect(id, far, &"http://b.example/1".into(), 0, 1, None));
    seed(&mut f, "http://c.example/2");
    assert!(!matches!(f.step(UnixMillis(2)), Step::Lease(_)));
    f.released(UnixMillis(3), a.id, OK, Some(ip));
    f.acknowledged(UnixMillis(3), page(a.id), OK, None);
    assert!(matches!(f.step(UnixMillis(3)), Step::Refuse(_, ErrorClass::RedirectLimit, _)));
    assert_eq!(lease(&mut f, 4).url(), "http://c.example/2");
}

#[test]
fn a_shorter_way_found_late_counts() {
    let mut f = F::new(Config { max_depth: 2, delay: Duration::ZERO, ..ignoring() });
    for url in ["http://slow.example/", "http://b.example/"] {
        seed(&mut f, url);
    }
    let (slow, b) = (lease(&mut f, 0), lease(&mut f, 0));
    let (from_slow, from_b): (Arc<str>, Arc<str>) = (slow.url().into(), b.url().into());
    done(&mut f, 1, &b, OK);
    f.discover(link(&b, &from_b, "http://c.example/"));
    let c = lease(&mut f, 2);
    f.released(UnixMillis(2), c.id, OK, None);
    let from_c: Arc<str> = c.url().into();
    f.discover(link(&c, &from_c, "http://p.example/"));
    f.discover(link(&c, &from_c, "http://q.example/"));
    f.acknowledged(UnixMillis(2), page(c.id), OK, Some(7));
    // p is fetched as one of depth 2, so its link is too deep.
    let p = lease(&mut f, 3);
    assert_eq!((p.url(), p.depth), ("http://p.example/", 2));
    f.released(UnixMillis(3), p.id, OK, None);
    f.acknowledged(UnixMillis(3), page(p.id), OK, Some(8));
    let from_p: Arc<str> = p.url().into();
    assert_eq!(f.discover(link(&p, &from_p, "http://deep.example/")), Admission::TooDeep);
    // The slow seed links p and q: both are of depth 1 now.
    assert_eq!(f.discover(link(&slow, &from_slow, "http://p.example/")), Admission::Reopened(8));
    assert_eq!(f.discover(link(&slow, &from_slow, "http://q.example/")), Admission::Nearer);
    assert_eq!(f.discover(link(&slow, &from_slow, "http://q.example/")), Admission::Seen);
    let again = link(&Lease { depth: 1, ..p.clone() }, &from_p, "http://deep.example/");
    assert_eq!(f.discover(again), Admission::New);
    assert_eq!(lease(&mut f, 4).depth, 1);
    assert_eq!(lease(&mut f, 4).url(), "http://deep.example/");
}

#[test]
fn redirects_end() {
    let mut f = F::new(Config { max_hops: 2, delay: Duration::ZERO, ..ignoring() });
    let identity = f.config().identity;
    f.discover(Candidate::seed(identity, web("http://a.example/0"), Some("{\"k\":1}".into())));
    for hop in 0..3 {
        let l = lease(&mut f, hop);
        assert_eq!((l.hops, l.meta_json()), (u32::try_from(hop).unwrap(), Some("{\"k\":1}")));
        let from: Arc<str> = l.url().into();
        done(&mut f, hop, &l, status(302));
        let target = web(&format!("http://a.example/{}", hop + 1));
        let id = f.id_of_redirect(page(l.id), &target).unwrap();
        let moved = Candidate::redirect(id, target, &from, l.depth, l.hops, l.meta_json().map(Into::into));
        assert_eq!(f.discover(moved), Admission::New);
    }
    assert!(matches!(f.step(UnixMillis(9)), Step::Refuse(_, ErrorClass::RedirectLimit, _)));
}

#[test]
fn trouble_of_ours_settles_nothing_and_counts_against_nobody() {
    let config = Config { give_up_after: Duration::ZERO, max_attempts: 1, robots_attempts: 1, ..Config::default() };
    let mut f = F::new(config);
    seed(&mut f, "http://a.example/x");
    seed(&mut f, "http://b.example/y");
    let mut now = 0;
    for n in 0..20 {
        let (at, l) = soonest(&mut f, now);
        assert_eq!(l.attempt, 1, "{n}");
        assert!(!f.only_backoff());
        f.returned(UnixMillis(at), l.id).unwrap();
        now = at;
    }
    assert!(now < 20 * 60_000 && f.only_backoff());
    let mut pages = 0;
    while pages < 2 {
        let (at, l) = soonest(&mut f, now);
        done(&mut f, at, &l, OK);
        match l.id {
            LeaseId::Robots(_) => f.robots(UnixMillis(at), l.id, rules("", None)),
            LeaseId::Page(_) => pages += 1,
        }
        now = at;
    }
    assert_eq!(f.step(UnixMillis(now)), Step::Empty);
}

#[test]
fn the_limit_per_address_holds_from_the_first_request_on() {
    let ip: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
    let mut f = F::new(Config { per_ip: Some(2), lookups: 3, delay: Duration::ZERO, ..ignoring() });
    for host in 0..9 {
        seed(&mut f, &format!("http://h{host}.example/"));
    }
    let (mut leases, mut lookups, mut fetched) = (Vec::new(), Vec::new(), 0);
    for now in 0..100 {
        loop {
            match f.step(UnixMillis(now)) {
                Step::Lease(l) => leases.push(l),
                Step::Lookup(id, url) => lookups.push((id, url)),
                Step::Blocked | Step::WaitUntil(_) | Step::Empty => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(lookups.len() <= 3 && leases.len() <= 2, "{} lookups, {} leases", lookups.len(), leases.len());
        if let Some((id, _)) = lookups.pop() {
            f.ready(UnixMillis(now), id, Ok(Some((ip, Duration::from_secs(60)))));
        } else if let Some(l) = leases.pop() {
            f.released(UnixMillis(now), l.id, OK, Some(ip));
            f.acknowledged(UnixMillis(now), page(l.id), OK, None);
            fetched += 1;
        }
    }
    assert_eq!((fetched, f.step(UnixMillis(100))), (9, Step::Empty));
}

#[test]
fn a_run_waits_only_so_long_for_what_is_in_backoff() {
    let mut f = F::new(ignoring());
    for url in ["http://away.example/1", "http://away.example/2", "http://sick.example/", "http://well.example/"] {
        seed(&mut f, url);
    }
    let leases: Vec<_> = (0..3).map(|_| lease(&mut f, 0)).collect();
    for (l, answer) in leases.iter().zip([Answer::Failed(ErrorClass::ConnectRefused), status(500), OK]) {
        assert!(!f.only_backoff());
        done(&mut f, 0, l, answer);
    }
    assert!(f.only_backoff(), "one host is away, one page to be tried again");
    let forgotten = f.give_up(UnixMillis(5), "waited 5 s").unwrap();
    assert_eq!(forgotten, Forgotten { answered: 1, unanswered: 0 }, "the page of the host that answers");
    assert_eq!(refuse_all(&mut f, 5), 2);
    assert_eq!(f.step(UnixMillis(5)), Step::Empty);
}

#[test]
fn a_cut_body_is_tried_again() {
    let mut f = F::new(Config { max_attempts: 2, ..ignoring() });
    seed(&mut f, "http://a.example/");
    let cut = Answer::Response { status: 200, retry_after_ms: None, cut: true };
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, cut);
    let (at, second) = soonest(&mut f, 0);
    done(&mut f, at, &second, cut);
    assert_eq!(f.step(UnixMillis(at)), Step::Empty);
}
