//! Crawls of difficult webs, judged by the server's log.

mod common;

use common::{check, clock, config, ids};
use std::time::Duration;
use trawl_engine::{Stop, run};
use trawl_testweb::{Config as WebConfig, CrawlSettings, Profile, TestWeb, judge};

fn judged(profile: Profile, seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("web.log");
    let mut web =
        WebConfig { seed, domains: 40, pages: 400, seeds: 3, shares: profile.shares(), ..WebConfig::default() };
    (web.min_crawl_delay_ms, web.max_crawl_delay_ms, web.slow_ms, web.throttle_ms) = (40, 80, 100, 5);
    (web.endless_bytes, web.bomb_bytes, web.log) = (16 << 20, 8 << 20, Some(log.clone()));
    let web = TestWeb::start(web).unwrap();
    let (depth, interval) = (3, 20);
    let settings = CrawlSettings {
        depth,
        host_interval_ms: interval,
        retries: 3,
        max_redirects: 10,
        max_body_bytes: 2 << 20,
        robots_min_age_s: 0,
        tolerance_ms: 5,
        notice_ms: 1000,
        ..CrawlSettings::default()
    };
    let out = dir.path().join("out");
    let mut config = config(&out, web.addr(), web.world().seeds(), depth);
    config.frontier.delay = Duration::from_millis(interval);
    config.frontier.backoff = Duration::from_millis(100);
    config.frontier.max_attempts = settings.retries + 1;
    config.frontier.max_hops = settings.max_redirects;
    config.frontier.max_pages_per_host = Some(200);
    config.roll_bytes = 1 << 20;
    config.fetch.limits.body_bytes = 1 << 20;
    // Long enough that an answer that does come is waited for on a busy machine too: given up, it would be fetched twice.
    config.fetch.limits.first_byte = Duration::from_secs(8);
    config.fetch.limits.idle = Duration::from_secs(8);
    config.fetch.limits.total = Duration::from_secs(40);
    let report = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    assert!(report.complete);
    check(&out);
    let archives = report.files.iter().filter(|f| f.name.ends_with(".warc.gz")).count();
    assert!(archives > 1, "files rolled: {:?}", report.files);
    let indexes: Vec<_> = report.files.iter().filter(|f| f.name.ends_with(".parquet")).map(|f| &f.name).collect();
    assert_eq!(indexes, ["captures.parquet"], "and one index speaks of all");
    assert!(report.urls.add_up(), "{:?}", report.urls);
    assert!(out.join(".crawl/frontier/CURRENT").exists(), "what was fetched stays known");
    web.flush_log();
    let verdict = judge(&log, web.world(), &settings).unwrap();
    assert!(verdict.expected > 100, "{}", verdict.expected);
    assert!(verdict.clean, "{}", serde_json::to_string_pretty(&verdict).unwrap());
}

#[test]
fn an_ordinary_day() {
    judged(Profile::Standard, 1);
}

#[test]
fn mostly_trouble() {
    judged(Profile::Hostile, 2);
}
