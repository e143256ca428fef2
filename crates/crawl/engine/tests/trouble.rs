//! Ordinary trouble: restarts, name servers that fail, connections that break. The crawl waits, and ends with every page.

mod common;

use common::{check, clock, config, ids};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};
use trawl_captures::CaptureRow;
use trawl_engine::{Config, Report, Stop, run};
use trawl_model::{Clock, UnixMillis};
use trawl_testweb::{
    Addresses, Character, Config as WebConfig, CrawlSettings, NameService, Profile, Running, Shares, TestWeb, judge,
};

const DEPTH: u32 = 3;
const INTERVAL_MS: u64 = 20;

fn web(dir: &Path, shares: Shares) -> Running {
    let mut web = WebConfig { seed: 5, domains: 30, pages: 400, seeds: 4, shares, ..WebConfig::default() };
    (web.min_crawl_delay_ms, web.max_crawl_delay_ms, web.slow_ms) = (40, 80, 200);
    (web.addresses, web.domains_per_address) = (Addresses::Many, 6);
    web.log = Some(dir.join("web.log"));
    TestWeb::start(web).unwrap()
}

/// A crawl that resolves names itself, by the name server of the web.
fn crawl_of(web: &Running, out: &Path) -> Config {
    let mut config = config(out, web.addr(), web.world().seeds(), DEPTH);
    config.fetch.connect_to = vec![format!(":::{}", web.addr().port()).parse().unwrap()];
    config.fetch.dns.servers = vec![web.names_addr()];
    config.fetch.dns.timeout = Duration::from_secs(1);
    config.fetch.limits.idle = Duration::from_secs(3);
    config.fetch.limits.first_byte = Duration::from_secs(10);
    config.frontier.delay = Duration::from_millis(INTERVAL_MS);
    config.frontier.backoff = Duration::from_millis(200);
    config.frontier.backoff_cap = Duration::from_secs(2);
    config.frontier.max_attempts = 4;
    config.frontier.robots_attempts = 4;
    config.frontier.per_ip = Some(2);
    config.wait = Duration::from_secs(60);
    config
}

/// Every page that had to be fetched is archived whole exactly once, with its own bytes; the server saw no rule broken.
fn verify(web: &Running, out: &Path, report: &Report) -> Vec<CaptureRow> {
    assert!(report.complete && report.urls.add_up(), "{report:#?}");
    assert_eq!(report.counts.given_up, 0, "{:?}", report.counts);
    let rows = check(out);
    let mut whole: BTreeMap<&str, Vec<&CaptureRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.status == 200 && row.truncated.is_none() && row.robots.is_some()) {
        whole.entry(&row.url).or_default().push(row);
    }
    for url in web.world().expected_pages(DEPTH) {
        let found = whole.get(url.as_str()).map_or(&[][..], |rows| rows);
        let node = web.world().find(&url).unwrap();
        // A 204 has no body to compare.
        let statuses: Vec<_> = rows.iter().filter(|row| row.url == url).map(|row| row.status).collect();
        if statuses.contains(&204) {
            continue;
        }
        assert_eq!(found.len(), 1, "{url}: {statuses:?}");
        let mut html = String::new();
        web.world().render(node, web.time(), &mut html);
        let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(html.as_bytes()));
        assert_eq!(found[0].body_digest.as_deref(), Some(digest.as_str()), "{url} has another page's bytes");
    }
    web.flush_log();
    let settings = CrawlSettings {
        depth: DEPTH,
        host_interval_ms: INTERVAL_MS,
        ip_in_flight: 2,
        retries: 3,
        robots_min_age_s: 0,
        tolerance_ms: 5,
        notice_ms: 1000,
        ..CrawlSettings::default()
    };
    let verdict = judge(web.log_path().unwrap(), web.world(), &settings).unwrap();
    assert!(verdict.expected > 50, "{}", verdict.expected);
    assert!(verdict.clean, "{verdict}");
    rows
}

/// Crawls while `meddle` does something to the web.
fn crawl_while(config: Config, clock: Clock, meddle: impl FnOnce() + Send) -> Report {
    std::thread::scope(|scope| {
        let meddling = scope.spawn(meddle);
        let report = run(config, clock, ids(), &Stop::new(), &mut |_| {}).unwrap();
        meddling.join().unwrap();
        report
    })
}

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[test]
fn a_web_in_ordinary_trouble() {
    let dir = tempfile::tempdir().unwrap();
    let (web, out) = (web(dir.path(), Profile::Trouble.shares()), dir.path().join("out"));
    let report = crawl_while(crawl_of(&web, &out), clock(), || {});
    verify(&web, &out, &report);
    assert!(report.counts.retries > 0, "{:?}", report.counts);
    assert!(report.counts.truncated.contains_key("disconnect"), "{:?}", report.counts.truncated);
}

#[test]
fn servers_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (web, out) = (web(dir.path(), Shares::default()), dir.path().join("out"));
    let report = crawl_while(crawl_of(&web, &out), clock(), || {
        for _ in 0..3 {
            pause(150);
            web.set_open(false);
            pause(1500);
            web.set_open(true);
        }
    });
    verify(&web, &out, &report);
    assert!(report.counts.failures.contains_key("connect_refused"), "{:?}", report.counts.failures);
}

#[test]
fn name_servers_are_away() {
    for mode in [NameService::Silent, NameService::Fails, NameService::Refuses] {
        let dir = tempfile::tempdir().unwrap();
        let (web, out) = (web(dir.path(), Shares::default()), dir.path().join("out"));
        let mut told = Vec::new();
        let config = crawl_of(&web, &out);
        let report = std::thread::scope(|scope| {
            web.set_names(mode);
            scope.spawn(|| {
                pause(4000);
                web.set_names(NameService::Answers);
            });
            run(config, clock(), ids(), &Stop::new(), &mut |p| told.extend(p.trouble.clone())).unwrap()
        });
        verify(&web, &out, &report);
        let failures = &report.counts.failures;
        match mode {
            NameService::Silent => {
                assert!(failures.is_empty(), "not the hosts' fault: {failures:?}");
                assert!(told.iter().any(|why| why.contains("no name server answered")), "{told:?}");
            }
            NameService::Fails => assert!(failures.contains_key("dns_servfail"), "{failures:?}"),
            _ => assert!(failures.contains_key("dns_refused"), "{failures:?}"),
        }
    }
}

#[test]
fn the_clock_is_set() {
    for step in [-3_600_000, 3_600_000] {
        let dir = tempfile::tempdir().unwrap();
        let (web, out) = (web(dir.path(), Shares::default()), dir.path().join("out"));
        let (begun, steady) = (Instant::now(), clock());
        let off = Arc::new(AtomicI64::new(0));
        let shown = off.clone();
        let stepped = Clock::new(move || UnixMillis(steady.now().0 + shown.load(Ordering::Relaxed)));
        let report = crawl_while(crawl_of(&web, &out), stepped, || {
            pause(300);
            off.store(step, Ordering::Relaxed);
        });
        assert!(begun.elapsed() < Duration::from_secs(60));
        let rows = verify(&web, &out, &report);
        let times: Vec<_> = rows.iter().map(|row| row.fetched_at).collect();
        let spread = times.iter().max().unwrap() - times.iter().min().unwrap();
        assert!(spread > 3_000_000, "captures bear the time of day: {spread}");
    }
}

#[test]
fn what_stays_away_is_named_and_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut shares = Shares::default();
    shares.set(Character::ServerError, 100);
    let (web, out) = (web(dir.path(), shares), dir.path().join("out"));
    let mut config = crawl_of(&web, &out);
    // Nobody listens there.
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rule = format!("away.example::127.0.0.1:{}", dead.port());
    config.fetch.connect_to.insert(0, rule.parse().unwrap());
    for n in 0..3 {
        config.seeds.push(trawl_engine::SeedInput::Url(format!("http://away.example/{n}")));
    }
    config.frontier.backoff = Duration::from_secs(1);
    config.wait = Duration::from_secs(3);
    let mut waited = false;
    let begun = Instant::now();
    let report = run(config, clock(), ids(), &Stop::new(), &mut |p| waited |= p.waiting.is_some()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(40) && waited);
    assert!(report.complete && report.urls.add_up(), "{:?}", report.urls);
    assert_eq!(report.counts.given_up_hosts, BTreeMap::from([("away.example".to_owned(), 3)]));
    assert!(report.counts.given_up >= 3);
    let rows = check(&out);
    let of = |class: &str| rows.iter().filter(|row| row.error_class.as_deref() == Some(class)).count();
    assert!(of("connect_refused") >= 1 && of("dead_host") == 3, "{:?}", report.counts.failures);

    // Taken up again: exactly those that might answer now.
    let again = dir.path().join("again");
    let mut retry = crawl_of(&web, &again);
    retry.frontier.max_depth = 0;
    let path = out.join("captures.parquet");
    let classes = ["dead_host".to_owned()].into();
    retry.seeds = vec![trawl_engine::SeedInput::Retry(trawl_engine::Retry { path, classes })];
    retry.frontier.identity = trawl_frontier::Identity::Exact;
    retry.fetch.connect_to.insert(0, format!("away.example::{}", web.addr()).parse().unwrap());
    let report = run(retry, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    assert_eq!((report.urls.offered, report.urls.fetched), (3, 3), "{report:#?}");
}

/// A part of a site that says 503 for ever does not cost its other pages, and an outage costs no page at all.
#[test]
fn pages_that_ask_for_patience_do_not_speak_for_their_host() {
    let dir = tempfile::tempdir().unwrap();
    let busy = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let addr = common::serve(common::any_port(), move |path, _| match path.contains("broken") {
        true => busy.to_owned(),
        false => common::page("", "a page"),
    });
    let urls = |name: &'static str, n: u32| (0..n).map(move |n| format!("http://a.example/{name}{n}"));
    let backoff = Duration::from_millis(50);
    // As the defaults have it, 1,200 times as fast; the second section is larger than what a host keeps at hand, and gets twice the time.
    for (broken, pages, wait_ms) in [(4, 20, 750), (24, 60, 1500)] {
        let out = dir.path().join(format!("broken{broken}"));
        let seeds = urls("broken", broken).chain(urls("page", pages)).collect();
        let mut patient = common::config(&out, addr, seeds, 0);
        (patient.frontier.backoff, patient.wait) = (backoff, Duration::from_millis(wait_ms));
        let report = trawl_engine::run(patient, clock(), ids(), &trawl_engine::Stop::new(), &mut |_| {}).unwrap();
        // With the robots.txt.
        let expected = (u64::from(pages) + 1, u64::from(broken));
        assert_eq!((report.counts.statuses[&200], report.counts.given_up), expected, "{report:?}");
        assert!(report.counts.failures.is_empty(), "{report:?}");
    }

    let begun = Arc::new(std::sync::OnceLock::new());
    let addr = common::serve(common::any_port(), move |path, _| {
        let begun: &std::time::Instant = begun.get_or_init(std::time::Instant::now);
        match path != "/robots.txt" && begun.elapsed() < Duration::from_millis(350) {
            true => busy.to_owned(),
            false => common::page("", "a page"),
        }
    });
    let mut waits = common::config(&dir.path().join("outage"), addr, urls("page", 20).collect(), 0);
    (waits.frontier.backoff, waits.wait) = (backoff, Duration::from_secs(5));
    let report = trawl_engine::run(waits, clock(), ids(), &trawl_engine::Stop::new(), &mut |_| {}).unwrap();
    assert_eq!((report.counts.fetched, report.counts.given_up), (20, 0), "{report:?}");
}
