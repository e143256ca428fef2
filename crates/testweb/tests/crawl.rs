//! A small but real crawler, over real sockets, through every profile: what it does is found clean, and what it does
//! wrong on purpose is found out. It shows that server, expectation and judge agree.

mod common;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{Answer, get, parts, tcp};
use trawl_testweb::{
    Character, Config, CrawlSettings, Kind, Node, Outcome, PageId, Profile, Resource, Running, TestWeb, Verdict, World,
    judge,
};

/// What the crawler does wrong.
#[derive(Default, Clone, Copy)]
struct Sins {
    ignores_robots: bool,
    hurries: bool,
    follows_nofollow: bool,
    never_retries: bool,
}

struct Crawler<'a> {
    web: &'a Running,
    world: &'a World,
    settings: &'a CrawlSettings,
    sins: Sins,
    tls: Arc<rustls::ClientConfig>,
    /// When each host may be asked again.
    free_at: HashMap<String, Instant>,
    delays: HashMap<String, Duration>,
    origins: HashSet<(String, bool)>,
    attempts: HashMap<Node, u32>,
    trapped: HashMap<String, u32>,
}

/// With those who never answer, patience is short; with all others it is long: an answer that was sent and not waited
/// for would be fetched twice in the log.
const SILENCE: Duration = Duration::from_millis(120);
const PATIENCE: Duration = Duration::from_secs(60);
/// Until the server has noticed, for sure, that the crawler gave up a request.
const LEFT: Duration = Duration::from_millis(250);

impl Crawler<'_> {
    fn patience(&self, node: Node) -> Duration {
        match self.world.outcome_of(node) {
            Outcome::NoAnswer(Character::Silent)
            | Outcome::Trouble(_, Character::Stall)
            | Outcome::Broken { stall: true, .. } => SILENCE,
            _ => PATIENCE,
        }
    }

    /// One request, after whatever time politeness asks for.
    fn fetch(&mut self, node: Node) -> Answer {
        let (host, target) = parts(self.world, node);
        if !self.sins.hurries {
            let free = self.free_at.get(&host).copied().unwrap_or_else(Instant::now);
            std::thread::sleep(free.saturating_duration_since(Instant::now()));
        }
        let rest = Duration::from_millis(self.settings.host_interval_ms);
        let rest = rest.max(self.delays.get(&host).copied().unwrap_or_default());
        let patience = self.patience(node);
        let rest = if patience == SILENCE { rest.max(LEFT) } else { rest };
        let answer = if node.secure {
            match common::tls_with(self.web.addr(), Arc::clone(&self.tls), &host, patience) {
                Ok(mut stream) => get(&mut stream, &host, &target, ""),
                Err(error) => Answer { error: Some(error), ..Answer::default() },
            }
        } else {
            let mut stream = tcp(self.web.addr());
            stream.set_read_timeout(Some(patience)).unwrap();
            get(&mut stream, &host, &target, "")
        };
        let asked = answer.header("retry-after").map(|_| Duration::from_secs(self.world.config().retry_after_s));
        // Counted from the answer, so never shorter than the server can see.
        self.free_at.insert(host, Instant::now() + rest.max(asked.unwrap_or_default()));
        answer
    }

    fn crawl(&mut self) {
        let seeds = self.world.seeds();
        let mut queue: VecDeque<Node> = seeds.iter().filter_map(|url| self.world.find(url)).collect();
        let mut seen: HashSet<Node> = queue.iter().copied().collect();
        while let Some(node) = queue.pop_front() {
            let (host, _) = parts(self.world, node);
            // Rather ask somebody else than wait long; but somebody must be left to ask.
            let wait =
                self.free_at.get(&host).map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
            if wait > Duration::from_millis(10) && !queue.is_empty() && !self.sins.hurries {
                queue.push_back(node);
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            if !self.may_fetch(node, &host) {
                continue;
            }
            let answer = self.fetch(node);
            let attempts = self.attempts.entry(node).or_default();
            *attempts += 1;
            let failed = matches!(answer.status, 0 | 429 | 500..) || answer.error.is_some();
            if failed && *attempts <= self.settings.retries && !self.sins.never_retries {
                queue.push_back(node);
            }
            for next in self.links(node, &answer) {
                if seen.insert(next) {
                    queue.push_back(next);
                }
            }
        }
    }

    fn may_fetch(&mut self, node: Node, host: &str) -> bool {
        let is_trap = matches!(node.what, Resource::Calendar(_) | Resource::Session { .. } | Resource::Facet(_));
        if is_trap && !self.attempts.contains_key(&node) {
            let count = self.trapped.entry(host.to_owned()).or_default();
            *count += 1;
            if *count > self.settings.trap_budget {
                return false;
            }
        }
        if self.sins.ignores_robots {
            return true;
        }
        if self.origins.insert((host.to_owned(), node.secure)) {
            let mut at = Node { what: Resource::Robots, ..node };
            for _ in 0..=5 {
                let mut answer = self.fetch(at);
                if answer.error.is_some() && matches!(self.world.outcome_of(at), Outcome::Broken { .. }) {
                    answer = self.fetch(at);
                }
                match answer.header("location").and_then(|l| self.resolve(at, l)) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            let rules = self.world.robots(node.host);
            let delay = rules.and_then(|r| r.crawl_delay_ms(&self.settings.agent)).unwrap_or(0);
            let delay = Duration::from_millis(delay.min(self.settings.max_crawl_delay_ms));
            self.delays.insert(host.to_owned(), delay);
            let free = self.free_at.get(host).copied().unwrap_or_else(Instant::now);
            self.free_at.insert(host.to_owned(), free + delay);
        }
        let (_, target) = parts(self.world, node);
        !self.world.robots_unreachable(node.host) && self.world.allows(node.host, &self.settings.agent, &target)
    }

    fn resolve(&self, from: Node, reference: &str) -> Option<Node> {
        let base = url::Url::parse(&self.world.url_of(from)).unwrap();
        self.world.find(base.join(reference).ok()?.as_str())
    }

    fn links(&self, node: Node, answer: &Answer) -> Vec<Node> {
        if let Some(location) = answer.header("location") {
            let hop = if let Resource::Hop { hop, .. } = node.what { hop } else { 0 };
            return self.resolve(node, location).into_iter().filter(|_| hop < self.settings.max_redirects).collect();
        }
        let html = match answer.body.strip_prefix(b"\xff\xfe") {
            Some(wide) => encoding_rs::UTF_16LE.decode_without_bom_handling(wide).0.into_owned(),
            None => answer.text(),
        };
        let nofollow = answer.header("x-robots-tag").is_some() || html.contains("content=\"nofollow\"");
        if nofollow && !self.sins.follows_nofollow {
            return Vec::new();
        }
        let hrefs = html.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let decoded = hrefs.map(|h| h.replace("&amp;", "&").replace("&#x2F;", "/").replace("&#47;", "/"));
        let found: Vec<Option<Node>> = decoded.map(|href| self.resolve(node, &href)).collect();
        assert!(found.iter().all(Option::is_some) || answer.error.is_some(), "a link of {node:?} leads nowhere");
        found.into_iter().flatten().collect()
    }
}

fn crawl(profile: Profile, seed: u64, sins: Sins) -> Verdict {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("requests.log");
    let config = Config {
        seed,
        domains: 30,
        seeds: 3,
        pages: 350,
        throttle_ms: 2,
        slow_ms: 20,
        endless_bytes: 2 << 20,
        bomb_bytes: 1 << 20,
        max_page_bytes: 8_000,
        log: Some(log.clone()),
        ..Config::profile(profile)
    };
    let web = TestWeb::start(config).unwrap();
    let settings = CrawlSettings {
        // Who does not keep any interval does not keep a long one, however slow the machine is.
        host_interval_ms: if sins.hurries { 1000 } else { 3 },
        max_crawl_delay_ms: 15,
        tolerance_ms: 2,
        notice_ms: 1000,
        trap_budget: 15,
        retries: 3,
        ..CrawlSettings::default()
    };
    let mut crawler = Crawler {
        web: &web,
        world: web.world(),
        settings: &settings,
        sins,
        tls: Arc::new(common::credulous()),
        free_at: HashMap::new(),
        delays: HashMap::new(),
        origins: HashSet::new(),
        attempts: HashMap::new(),
        trapped: HashMap::new(),
    };
    crawler.crawl();
    let world = World::new(web.world().config()).unwrap();
    web.stop().unwrap();
    judge(&log, &world, &settings).unwrap()
}

/// Crawls side by side: they mostly wait.
fn crawls<const N: usize>(list: [(Profile, Sins); N]) -> [Verdict; N] {
    std::thread::scope(|scope| {
        list.map(|(profile, sins)| scope.spawn(move || crawl(profile, 1, sins))).map(|thread| thread.join().unwrap())
    })
}

#[test]
fn a_crawler_that_keeps_the_rules_is_found_clean() {
    let profiles = Profile::ALL;
    for (profile, verdict) in profiles.iter().zip(crawls(profiles.map(|p| (p, Sins::default())))) {
        assert!(verdict.clean && verdict.expected > 150, "{profile:?}: {verdict}");
    }
}

#[test]
fn a_crawler_that_breaks_rules_is_found_out() {
    let [ignorant, hasty, curious, fickle] = crawls([
        (Profile::Standard, Sins { ignores_robots: true, ..Sins::default() }),
        (Profile::Standard, Sins { hurries: true, ..Sins::default() }),
        (Profile::Standard, Sins { follows_nofollow: true, ..Sins::default() }),
        (Profile::Hostile, Sins { never_retries: true, ..Sins::default() }),
    ]);
    assert!(ignorant.count(Kind::RobotsNotFetched) > 0 && ignorant.count(Kind::RobotsDisallowed) > 0, "{ignorant}");
    assert!(hasty.count(Kind::HostSpacing) > 0, "{hasty}");
    assert_eq!(curious.counts.keys().collect::<Vec<_>>(), [&Kind::NotLinked], "{curious}");
    // What only the pages link that were given up is never found.
    assert!(fickle.count(Kind::GivenUp) > 0, "{fickle}");
    assert!(fickle.counts.keys().all(|k| matches!(k, Kind::GivenUp | Kind::NeverFetched)), "{fickle}");
}

#[test]
fn page_numbers_are_plain() {
    // The crawler above relies on the home page being number 0.
    let world = World::new(&Config::default()).unwrap();
    assert_eq!(world.find(&world.seeds()[0]).unwrap().what, Resource::Page(0));
    assert_eq!(world.url(PageId { host: trawl_testweb::HostId(0), number: 0 }), world.seeds()[0]);
}
