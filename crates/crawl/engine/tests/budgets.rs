//! What a crawl may spend, and what it tells of it: limits, seeds before links, seeds added later, sitemaps, crawl.log, hosts.

mod common;

use common::{any_port, check, clock, config, ids, page, serve};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use trawl_engine::{Config, Report, SeedInput, Start, Stop, run};
use trawl_testweb::{Character, Config as WebConfig, CrawlSettings, Profile, Running, TestWeb, judge};

fn web() -> Running {
    let mut web = WebConfig { domains: 60, pages: 900, seeds: 6, ..WebConfig::default() };
    (web.min_crawl_delay_ms, web.max_crawl_delay_ms) = (5, 10);
    TestWeb::start(web).unwrap()
}

fn crawl(config: Config) -> Report {
    run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap()
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// Pages of the index that had an answer.
fn pages(out: &Path) -> Vec<String> {
    check(out).into_iter().filter(|row| row.status != 0 && row.robots.is_some()).map(|row| row.url).collect()
}

#[test]
fn a_limit_on_pages_takes_no_seed_the_room_of_links() {
    let (dir, web) = (tempfile::tempdir().unwrap(), web());
    let out = dir.path().join("out");
    // Half of the pages are seeds, of hosts that make them wait; the other half are links of hosts that are idle by then.
    let all: Vec<String> = web.world().expected_pages(4).into_iter().collect();
    let seeds: BTreeSet<String> = all.iter().step_by(2).cloned().collect();
    let mut limited = config(&out, web.addr(), Vec::new(), 3);
    let list = dir.path().join("seeds.txt");
    std::fs::write(&list, seeds.iter().map(|url| format!("{url}\n")).collect::<String>()).unwrap();
    limited.seeds = vec![SeedInput::File(list)];
    limited.frontier.delay = Duration::from_millis(20);
    limited.frontier.max_pages = Some(seeds.len() as u64);
    let report = crawl(limited);
    assert!(report.complete && report.urls.add_up() && report.counts.over_limit > 0, "{report:?}");
    let rows = check(&out).into_iter().filter(|row| row.robots.is_some()).map(|row| row.url);
    assert_eq!(rows.collect::<BTreeSet<_>>(), seeds, "every seed, and nothing else");
}

#[test]
fn bytes_and_time_are_limited_for_the_run_and_for_a_host() {
    let (dir, web) = (tempfile::tempdir().unwrap(), web());
    let out = dir.path().join("out");
    let mut limited = config(&out, web.addr(), web.world().seeds(), 4);
    limited.budget.host_bytes = Some(60_000);
    limited.settings.insert("max_bytes_per_host".into(), vec!["60000".into()]);
    let report = crawl(limited.clone());
    assert!(report.complete && report.urls.add_up() && report.counts.over_limit > 0, "{report:?}");
    let mut by_host: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let mut rows = check(&out);
    // Two captures of a host may be archived in another order than they were fetched in.
    rows.sort_by_key(|row| row.fetched_at);
    for row in rows {
        let (sum, last) = by_host.entry(row.host).or_default();
        (*sum, *last) = (*sum + row.body_length, row.body_length);
    }
    assert!(
        by_host.values().all(|(sum, last)| sum - last < 60_000),
        "the capture that reached the limit is the last: {by_host:?}"
    );
    assert!(by_host.values().any(|(sum, _)| *sum >= 60_000));
    // hosts.jsonl says the same.
    for line in lines(&out.join("hosts.jsonl")) {
        let host: serde_json::Value = serde_json::from_str(&line).unwrap();
        let bytes = by_host.get(host["host"].as_str().unwrap()).map_or(0, |(sum, _)| *sum);
        assert_eq!(host["bytes"].as_i64(), Some(bytes), "{line}");
        assert_eq!(host["state"] == "held", bytes >= 60_000, "{line}");
    }
    // A larger limit takes up what waits, and knows what was spent.
    limited.start = Start::Resume;
    limited.budget.host_bytes = None;
    limited.settings.insert("max_bytes_per_host".into(), vec![]);
    let report = crawl(limited);
    assert!(report.complete && report.counts.over_limit == 0 && report.urls.add_up(), "{report:?}");
    assert_eq!(pages(&out).into_iter().collect::<BTreeSet<_>>(), web.world().expected_pages(4));

    let mut limited = config(&dir.path().join("bytes"), web.addr(), web.world().seeds(), 4);
    (limited.budget.bytes, limited.workers) = (Some(300_000), 2);
    let report = crawl(limited);
    assert!(report.complete && report.counts.over_limit > 0 && report.urls.add_up(), "{report:?}");
    assert!((300_000..500_000).contains(&report.counts.body_bytes), "{}", report.counts.body_bytes);

    let out = dir.path().join("time");
    let mut limited = config(&out, web.addr(), web.world().seeds(), 4);
    (limited.budget.time, limited.frontier.delay) = (Some(Duration::from_millis(300)), Duration::from_millis(100));
    let stopped = crawl(limited.clone());
    assert!(!stopped.complete && !stopped.seeds_unread, "it stopped in order: {stopped:?}");
    (limited.budget.time, limited.start) = (None, Start::Resume);
    limited.frontier.delay = Duration::ZERO;
    assert!(crawl(limited).complete);
    assert_eq!(pages(&out).into_iter().collect::<BTreeSet<_>>(), web.world().expected_pages(4));

    // What is left of a list that was not read to its end is more than anybody knows.
    let list = dir.path().join("long.txt");
    std::fs::write(&list, (0..300_000).map(|n| format!("http://a.example/{n}\n")).collect::<String>()).unwrap();
    let mut limited = config(&dir.path().join("long"), web.addr(), Vec::new(), 0);
    (limited.seeds, limited.budget.time) = (vec![SeedInput::File(list)], Some(Duration::ZERO));
    let report = crawl(limited);
    assert!(!report.complete && report.seeds_unread && report.left < 300_000, "{report:?}");
}

#[test]
fn seeds_can_be_added_to_a_complete_run() {
    let (dir, web) = (tempfile::tempdir().unwrap(), web());
    let out = dir.path().join("out");
    let seeds = web.world().seeds();
    let mut first = config(&out, web.addr(), seeds[..1].to_vec(), 2);
    first.roll_bytes = 1 << 20;
    assert!(crawl(first.clone()).complete);
    let before = pages(&out).len();
    let mut more = first.clone();
    more.start = Start::Resume;
    assert_eq!(crawl(more.clone()).legs.len(), 1, "nothing new: nothing is done");
    // The far page of the first run is near as a seed of the second: its links are followed again, from the rows that were kept.
    more.seeds = seeds.iter().map(|url| SeedInput::Url(url.clone())).collect();
    let report = crawl(more);
    assert!(report.complete && report.legs.len() == 2 && report.urls.add_up(), "{report:?}");
    let found = pages(&out);
    assert!(found.len() > before);
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len(), "each page once");
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), web.world().expected_pages(2));
    assert_eq!(lines(&out.join("crawl.log")).len() as u64, report.counts.captures);
}

#[test]
fn the_log_is_made_again_where_a_crash_took_it() {
    let (dir, web) = (tempfile::tempdir().unwrap(), web());
    let out = dir.path().join("out");
    let mut first = config(&out, web.addr(), web.world().seeds(), 3);
    first.frontier.max_pages = Some(40);
    first.settings.insert("max_pages".into(), vec!["40".into()]);
    crawl(first.clone());
    let log = out.join("crawl.log");
    let whole = std::fs::read(&log).unwrap();
    assert!(lines(&log).iter().all(|line| line.split_whitespace().count() == 12));
    for (most, broken) in [(41, whole[..whole.len() / 2].to_vec()), (42, [&whole[..], b"half a li"].concat())] {
        std::fs::write(&log, broken).unwrap();
        let mut again = first.clone();
        again.start = Start::Resume;
        again.frontier.max_pages = Some(most);
        again.settings.insert("max_pages".into(), vec![most.to_string()]);
        let report = crawl(again);
        assert!(std::fs::read(&log).unwrap().starts_with(&whole));
        assert_eq!(lines(&log).len() as u64, report.counts.captures);
        std::fs::write(&log, &whole).unwrap();
    }
}

#[test]
fn sitemaps_that_robots_txt_names_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("web.log");
    let mut web = WebConfig { domains: 40, pages: 500, seeds: 4, log: Some(log.clone()), ..WebConfig::default() };
    web.shares = Profile::Demo.shares();
    web.shares.set(Character::Sitemap, 400).set(Character::SitemapIndex, 300);
    (web.min_crawl_delay_ms, web.max_crawl_delay_ms) = (5, 10);
    let web = TestWeb::start(web).unwrap();
    let out = dir.path().join("out");
    let mut with = config(&out, web.addr(), web.world().seeds(), 3);
    with.sitemaps = true;
    let report = crawl(with);
    assert!(report.complete && report.urls.add_up());
    web.flush_log();
    let settings = CrawlSettings {
        depth: 3,
        host_interval_ms: 0,
        sitemap_depth: Some(1),
        robots_min_age_s: 0,
        notice_ms: 1000,
        ..CrawlSettings::default()
    };
    let verdict = judge(&log, web.world(), &settings).unwrap();
    assert!(verdict.clean, "{}", serde_json::to_string_pretty(&verdict).unwrap());
    let without = web.world().expected_pages(3).len();
    assert!(pages(&out).len() > without, "sitemaps list what links do not reach: {} and {without}", pages(&out).len());
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 301 Moved\r\nConnection: close\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

/// Paths of all pages that were asked for.
fn asked(out: &Path) -> BTreeSet<String> {
    let rows = check(out).into_iter().filter(|row| row.robots.is_some());
    rows.map(|row| row.url.trim_start_matches("http://a.example").to_owned()).collect()
}

fn list(path: &Path, lines: impl Iterator<Item = String>) -> Vec<SeedInput> {
    std::fs::write(path, lines.map(|line| line + "\n").collect::<String>()).unwrap();
    vec![SeedInput::File(path.to_owned())]
}

/// The list of a crawl may be read for long: some of its URLs are found by links and redirects before.
#[test]
fn a_seed_that_was_found_before_it_was_read_is_a_seed() {
    for redirects in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let addr = serve(any_port(), move |path, _| match path {
            "/" if redirects => moved("/9"),
            "/" => page("", &(0..40).map(|n| format!("<a href=/{n}>{n}</a>")).collect::<String>()),
            _ => page("", "a page"),
        });
        let mut config = config(&out, addr, vec!["http://a.example/".into()], u32::from(!redirects));
        config.frontier.max_pages = Some(1);
        assert_eq!(crawl(config.clone()).counts.over_limit, if redirects { 1 } else { 40 });
        let seeds = [9, 30, 99].map(|n| format!(r#"{{"url":"http://a.example/{n}","n":{n}}}"#));
        config.seeds = list(&dir.path().join("more.jsonl"), seeds.into_iter());
        (config.start, config.frontier.max_pages) = (Start::Resume, Some(4));
        let report = crawl(config);
        assert!(report.complete && report.urls.add_up(), "{report:?}");
        assert_eq!(asked(&out), BTreeSet::from(["/", "/9", "/30", "/99"].map(String::from)), "{redirects}");
        for row in check(&out).iter().filter(|row| row.robots.is_some() && row.url != "http://a.example/") {
            let n = row.url.trim_start_matches("http://a.example/");
            assert_eq!(row.meta_json, format!(r#"{{"n":{n}}}"#), "{}", row.url);
            assert_eq!((row.depth, &row.via, &row.redirect_of), (Some(0), &None, &None), "{}", row.url);
        }
    }
}

/// More redirects wait than a host keeps at hand, and seeds come later: they get the room that is kept for them.
#[test]
fn seeds_that_come_later_are_not_hidden_by_redirects() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, _| match path.strip_prefix("/old") {
        Some(n) => moved(&format!("/new{n}")),
        None => page("", "a page"),
    });
    let all = |name: &'static str| (0..30).map(move |n| format!("http://a.example/{name}{n}"));
    let mut config = config(&out, addr, all("old").collect(), 0);
    config.frontier.max_pages = Some(30);
    assert_eq!(crawl(config.clone()).counts.over_limit, 30);
    config.seeds = list(&dir.path().join("more.txt"), all("later"));
    (config.start, config.frontier.max_pages) = (Start::Resume, Some(60));
    let report = crawl(config);
    assert!(report.complete && report.urls.add_up() && report.counts.over_limit == 30, "{report:?}");
    assert!(asked(&out).iter().all(|path| !path.starts_with("/new")), "{:?}", asked(&out));
}
