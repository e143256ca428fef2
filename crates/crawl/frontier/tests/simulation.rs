//! A crawl of a made-up web on a made-up clock, with slow and failing hosts, leases that nobody answers, power cuts and clocks that
//! are set. A checker that knows the web and the rules, and nothing of the frontier's code, judges every lease.
//!
//! `FRONTIER_EVENTS` sets how many events at least (200,000), `FRONTIER_SEED` which course they take.
#![expect(clippy::print_stdout, reason = "a long run says what it went through")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;
use trawl_frontier::*;
use trawl_io::fault::{FaultFs, Loss};
use trawl_model::{ErrorClass, UnixMillis};
use trawl_url::WebUrl;

/// splitmix64: the seed alone decides.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const HOSTS: u64 = 60;
const DELAY: i64 = 1000;
const PER_HOST: usize = 1;
const PER_IP: usize = 2;
const TTL: i64 = 600_000;
const SEEDS: u64 = 5;

/// The web: pages by number, each on a host, each with links.
struct Web {
    pages: u64,
}

impl Web {
    /// A few hosts have most pages.
    fn host(&self, page: u64) -> u64 {
        let x = (mix(page ^ 77) % 10_000) as f64 / 10_000.0;
        ((x * x * x) * HOSTS as f64) as u64
    }

    fn url(&self, page: u64) -> String {
        format!("http://h{}.example/{page}", self.host(page))
    }

    fn links(&self, page: u64) -> Vec<u64> {
        let tree = [2 * page + SEEDS, 2 * page + SEEDS + 1];
        let more = (0..4).map(|n| mix(page * 31 + n) % self.pages);
        tree.into_iter().chain(more).filter(|to| *to < self.pages && *to != page).collect()
    }

    /// Hosts share addresses, three and three.
    fn address(&self, host: u64) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, u8::try_from(host / 3).unwrap()).into()
    }

    fn host_of(url: &str) -> u64 {
        url["http://h".len()..].split('.').next().unwrap().parse().unwrap()
    }

    fn page_of(url: &str) -> u64 {
        url.rsplit('/').next().unwrap().parse().unwrap()
    }
}

/// What the checker knows of a lease that is out.
#[derive(Clone, Copy)]
struct Out {
    page: u64,
    host: u64,
    expires: i64,
    ends: i64,
    answer: Answer,
    /// Nobody will ever answer it.
    lost: bool,
    released: bool,
}

/// What must hold of a host, in true time.
#[derive(Clone, Copy, Default)]
struct Gate {
    not_before: i64,
}

#[derive(Default)]
struct Checker {
    out: HashMap<UrlId, Out>,
    gates: BTreeMap<u64, Gate>,
    /// Gates as of the last durable moment.
    durable_gates: BTreeMap<u64, Gate>,
    /// Pages whose outcome is durable, and pages settled since.
    done: BTreeSet<u64>,
    unsure: BTreeSet<u64>,
    /// Pages that were settled at all.
    ever: BTreeSet<u64>,
    leases: u64,
    most_per_host: usize,
    most_per_address: usize,
    expired: u64,
}

impl Checker {
    fn lease(&mut self, web: &Web, lease: &Lease, now: i64) -> (UrlId, u64, u64) {
        let LeaseId::Page(id) = lease.id else { panic!("nobody asks for a robots.txt here") };
        let (page, host) = (Web::page_of(lease.url()), Web::host_of(lease.url()));
        assert_eq!(lease.url(), web.url(page));
        assert!(!self.done.contains(&page), "page {page} is done and durable, and leased again");
        if let Some(out) = self.out.remove(&id) {
            assert!(now >= out.expires, "page {page} is leased twice: out until {}, now {now}", out.expires);
            self.expired += 1;
        }
        let busy = |out: &&Out| !out.released && now < out.expires;
        let at_host = self.out.values().filter(busy).filter(|out| out.host == host).count();
        assert!(at_host < PER_HOST, "{at_host} in flight for host {host}");
        let ip = web.address(host);
        let at_ip = self.out.values().filter(busy).filter(|out| web.address(out.host) == ip).count();
        assert!(at_ip < PER_IP, "{at_ip} in flight for {ip}");
        let gate = self.gates.entry(host).or_default();
        assert!(now >= gate.not_before, "host {host} is asked at {now}, not before {}", gate.not_before);
        gate.not_before = now + DELAY;
        self.most_per_host = self.most_per_host.max(at_host + 1);
        self.most_per_address = self.most_per_address.max(at_ip + 1);
        self.leases += 1;
        (id, page, host)
    }

    fn ended(&mut self, host: u64, answer: Answer, now: i64) {
        let gate = self.gates.entry(host).or_default();
        gate.not_before = gate.not_before.max(now + DELAY);
        if let Answer::Response { status: 429, retry_after_ms: Some(ms), .. } = answer {
            gate.not_before = gate.not_before.max(now + ms);
        }
    }

    /// All that was settled so far is durable.
    fn synced(&mut self) {
        // Not `append`, which goes through all that is done.
        self.done.extend(std::mem::take(&mut self.unsure));
        self.durable_gates = self.gates.clone();
    }

    /// The machine was off. What was not durable may be there or not. Without a jump of the clock what hosts asked for holds.
    fn rebooted(&mut self, now: i64, jumped_ahead: bool) {
        self.out.clear();
        self.unsure.clear();
        self.gates = if jumped_ahead { BTreeMap::new() } else { self.durable_gates.clone() };
        // Whoever was asked just before rests, even if nothing that was written down says so.
        for host in 0..HOSTS {
            let gate = self.gates.entry(host).or_default();
            gate.not_before = gate.not_before.max(now + DELAY);
        }
        self.durable_gates = self.gates.clone();
    }
}

struct World {
    web: Web,
    dice: Dice,
    checker: Checker,
    disk: FaultFs,
    /// True time, and what the clock on the wall says beside it.
    now: i64,
    skew: i64,
    events: u64,
    crashes: u64,
}

/// Little memory, so that everything is flushed and merged all the time, but as much a page in a long run as in a short one: a
/// refill reads all rows of a host, so windows that stay small while hosts grow make a run of ten times the pages take a hundred
/// times as long.
fn config(pages: u64) -> Config {
    let times = (pages / 20_000).max(1) as usize;
    Config {
        identity: Identity::Exact,
        max_depth: u32::MAX,
        robots: RobotsPolicy::Ignore,
        delay: Duration::from_millis(DELAY as u64),
        per_ip: Some(PER_IP as u32),
        lookups: 8,
        backoff: Duration::from_secs(20),
        backoff_cap: Duration::from_secs(900),
        give_up_after: Duration::from_secs(1 << 40),
        max_attempts: 200,
        trap_threshold: 0,
        lease_ttl: Some(Duration::from_millis(TTL as u64)),
        memory_bytes: times * (256 << 10),
        background: false,
        ..Config::default()
    }
}

impl World {
    fn wall(&self) -> UnixMillis {
        UnixMillis(1_700_000_000_000 + self.now + self.skew)
    }

    fn open(&mut self) -> Result<Frontier> {
        Frontier::open(&self.disk.shared(), Path::new("/frontier"), config(self.web.pages), self.wall(), "simulation")
    }

    /// Loses the power, and whatever was not synced.
    fn crash(&mut self) -> Frontier {
        self.crashes += 1;
        loop {
            let seed = self.dice.next();
            let loss = match seed % 4 {
                0 => Loss::All,
                1 => Loss::None,
                _ => Loss::Torn { seed, unit: if seed % 8 < 4 { 512 } else { 1 } },
            };
            self.disk = self.disk.reboot(loss);
            self.now += 1 + self.dice.below(20_000) as i64;
            let before = self.skew;
            if self.dice.one_in(3) {
                self.skew = self.dice.below(20_000_000) as i64 - 10_000_000;
            }
            // Sometimes the power goes again while it starts.
            if self.dice.one_in(3) {
                self.disk.cut_after(self.dice.below(30));
            }
            self.checker.rebooted(self.now, self.skew > before);
            match self.open() {
                Ok(frontier) => return frontier,
                Err(error) => assert!(self.disk.is_cut(), "it does not open: {error}"),
            }
        }
    }

    fn candidates(&self, pages: &[u64], from: Option<(u64, u32)>) -> Vec<Candidate> {
        let candidate = |page: &u64| {
            let url = WebUrl::parse(&self.web.url(*page)).unwrap();
            match from {
                None => Candidate::seed(Identity::Exact, url, None),
                Some((from, depth)) => {
                    let id = Identity::Exact.of(&url);
                    Candidate::link(id, url, &self.web.url(from).as_str().into(), depth)
                }
            }
        };
        pages.iter().map(candidate).collect()
    }

    /// What a page answers, and after how long.
    fn answer(&mut self, page: u64, host: u64) -> (i64, Answer) {
        let slow = host % 7 == 3;
        let takes = 20 + self.dice.below(if slow { 30_000 } else { 400 }) as i64;
        let answer = match self.dice.below(100) {
            0..=2 => {
                Answer::Response { status: 429, retry_after_ms: Some(5_000 + 100 * (page % 50) as i64), cut: false }
            }
            3..=4 => Answer::Failed(ErrorClass::ConnectRefused),
            5 => Answer::Failed(ErrorClass::Reset),
            6 => Answer::status(503),
            7 => Answer::status(404),
            _ => Answer::status(200),
        };
        (takes, answer)
    }

    /// One round: addresses, leases, ends, outcomes with their links, sometimes a sync.
    fn round(&mut self, f: &mut Frontier) -> Result<Option<Next>> {
        let wall = self.wall();
        for wanted in f.wanted(wall, 8) {
            let host = Web::host_of(&wanted.site);
            f.ready(wall, wanted.id, Ok(Some((self.web.address(host), Duration::from_secs(300)))));
            self.events += 1;
        }
        let mut work = Vec::new();
        let n = 1 + self.dice.below(6) as usize;
        let next = f.lease(wall, n, &mut work)?;
        for work in work {
            let Work::Fetch(lease) = work else { panic!("nothing is refused here: {work:?}") };
            let (id, page, host) = self.checker.lease(&self.web, &lease, self.now);
            let (takes, answer) = self.answer(page, host);
            let lost = self.dice.one_in(200);
            let (ends, expires) = (self.now + takes, self.now + TTL);
            self.checker.out.insert(id, Out { page, host, expires, ends, answer, lost, released: false });
            self.events += 1;
        }
        // Fetches end, and are settled then or some time later.
        let mut ended: Vec<(i64, UrlId)> = self.checker.out.iter().map(|(id, out)| (out.ends, *id)).collect();
        ended.sort_unstable();
        for (ends, id) in ended {
            let Some(out) = self.checker.out.get(&id).copied() else { continue };
            if out.lost || ends > self.now || self.now >= out.expires {
                continue;
            }
            if !out.released {
                f.released(wall, LeaseId::Page(id), out.answer, Some(self.web.address(out.host)))?;
                self.checker.ended(out.host, out.answer, self.now);
                if let Some(out) = self.checker.out.get_mut(&id) {
                    out.released = true;
                }
                self.events += 1;
            }
            if self.dice.one_in(3) {
                continue;
            }
            let settled = f.settle(wall, &[Outcome { id, answer: out.answer, note: None }])?;
            self.checker.out.remove(&id);
            self.events += 1;
            if let Settled::Done { depth } = settled[0] {
                self.checker.unsure.insert(out.page);
                self.checker.ever.insert(out.page);
                let links = self.web.links(out.page);
                f.offer(wall, &self.candidates(&links, Some((out.page, depth))))?;
                self.events += links.len() as u64;
            } else {
                assert!(matches!(settled[0], Settled::Again { .. }), "page {}: {settled:?}", out.page);
            }
        }
        if self.dice.one_in(8) {
            f.sync()?;
            self.checker.synced();
        } else if self.dice.one_in(4) {
            f.commit()?;
        }
        Ok(Some(next))
    }

    fn later(&mut self, next: Option<Next>) -> bool {
        let ends = self.checker.out.values().filter(|out| !out.lost).map(|out| out.ends.max(self.now + 1)).min();
        let wake = match next {
            Some(Next::WaitUntil(at)) => Some(at.0 - 1_700_000_000_000 - self.skew),
            Some(Next::Now) => Some(self.now),
            _ => None,
        };
        let step = 1 + self.dice.below(40) as i64;
        match ends.into_iter().chain(wake).min() {
            Some(at) => self.now = at.max(self.now + step.min(at.saturating_sub(self.now).max(1))),
            None if matches!(next, Some(Next::Empty)) && self.checker.out.is_empty() => return false,
            None => self.now += 1000,
        }
        true
    }
}

fn simulate(events: u64, seed: u64) -> World {
    // Between eight and nine events a page, fewer in a large web: an offer of it now and again, a lease, an end, an outcome.
    let pages = (events / 8).max(100);
    let mut world = World {
        web: Web { pages },
        dice: Dice(seed),
        checker: Checker::default(),
        disk: FaultFs::new(),
        now: 0,
        skew: 0,
        events: 0,
        crashes: 0,
    };
    // A restart reads all keys: as often in a long run as in a short one, restarts would be all it does. Still thousands.
    let rare = (pages / 250_000).max(1);
    let mut frontier = world.open().unwrap();
    let mut seeded = false;
    let mut idle = 0;
    loop {
        let step = (|| -> Result<Option<Next>> {
            if !seeded {
                let seeds: Vec<u64> = (0..SEEDS).collect();
                frontier.offer(world.wall(), &world.candidates(&seeds, None))?;
                frontier.sync()?;
                world.checker.synced();
                seeded = true;
            }
            world.round(&mut frontier)
        })();
        let next = match step {
            Ok(next) => next,
            Err(error) => {
                assert!(world.disk.is_cut(), "{error}");
                drop(frontier);
                frontier = world.crash();
                continue;
            }
        };
        if world.dice.one_in(400 * rare) {
            drop(frontier);
            frontier = world.crash();
            continue;
        }
        if world.dice.one_in(300 * rare) {
            world.disk.cut_after(world.dice.below(60));
        }
        if !world.later(next) {
            // Nothing is left, as far as the frontier knows: that must be so after a restart, too.
            if frontier.sync().is_ok() {
                world.checker.synced();
                break;
            }
        }
        idle += 1;
        assert!(idle < 400 * events, "no end: {} of {pages} pages", world.checker.ever.len());
    }
    let (known, pending) = (frontier.known(), frontier.pending());
    assert_eq!((known, pending), (pages, 0));
    drop(frontier);
    let again = world.crash();
    assert_eq!((again.known(), again.pending()), (pages, 0), "after a restart");
    world
}

#[test]
fn rules_hold_whatever_happens() {
    let number = |name: &str, default| std::env::var(name).map_or(default, |n| n.parse().unwrap());
    let (events, seed) = (number("FRONTIER_EVENTS", 200_000), number("FRONTIER_SEED", 20));
    let world = simulate(events, seed);
    let Checker { ever, leases, most_per_host, most_per_address, expired, .. } = &world.checker;
    let missing = (0..world.web.pages).filter(|page| !ever.contains(page)).count();
    assert_eq!(missing, 0, "pages that were never settled");
    println!(
        "{} events, {} pages, {leases} leases, {} power cuts, {expired} leases expired, {} virtual hours, at most {most_per_host} \
         in flight for a host, {most_per_address} for an address",
        world.events,
        world.web.pages,
        world.crashes,
        world.now / 3_600_000,
    );
    assert!(world.events >= events, "{} events", world.events);
    assert!(world.crashes > events / 10_000 && *expired > 0, "{} crashes, {expired} expired", world.crashes);
    assert_eq!((*most_per_host, *most_per_address), (PER_HOST, PER_IP), "the limits were reached");
}
