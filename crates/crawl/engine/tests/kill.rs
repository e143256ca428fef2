//! `kill -9` again and again during a crawl: every page ends up in the archive once.
//!
//! The crawl runs in a child process: this test program itself, told so by the environment. `TRAWL_KILLS` sets how many
//! kills at least.

mod common;

use common::{check, clock, config, ids};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use trawl_engine::{Start, Stop, run};
use trawl_testweb::{Config as WebConfig, TestWeb};

const OUT: &str = "TRAWL_TEST_OUT";
const ADDR: &str = "TRAWL_TEST_ADDR";
const SEEDS: &str = "TRAWL_TEST_SEEDS";
const FORMAT: &str = "TRAWL_TEST_FORMAT";
const DEPTH: u32 = 4;

/// The crawl itself; does nothing unless it is the child.
#[test]
fn child() {
    let (Ok(out), Ok(addr), Ok(seeds)) = (std::env::var(OUT), std::env::var(ADDR), std::env::var(SEEDS)) else {
        return;
    };
    let seeds = seeds.split(' ').map(str::to_owned).collect();
    let mut config = config(Path::new(&out), addr.parse().unwrap(), seeds, DEPTH);
    config.start = Start::Resume;
    config.format = std::env::var(FORMAT).unwrap();
    if config.format == "seqdb" {
        // Every page has a body of its own: whatever is left out here is lost.
        config.digests = Some(Path::new(&out).join("bodies"));
    }
    config.frontier.delay = Duration::from_millis(15);
    let report = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    assert!(report.complete);
}

fn start(out: &Path, addr: &str, seeds: &str, format: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--quiet"])
        .env(OUT, out)
        .env(ADDR, addr)
        .env(SEEDS, seeds)
        .env(FORMAT, format)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn every_page_once_however_often_it_is_killed() {
    killed("warc");
}

#[test]
fn also_in_a_container() {
    killed("seqdb");
}

/// Bytes of the rows that are on their way into the index: they grow with every commit.
fn rows_in(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    let rows = entries.filter_map(Result::ok).filter(|e| e.file_name().to_string_lossy().starts_with("rows-"));
    rows.filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum()
}

fn killed(format: &str) {
    let wanted: u32 = std::env::var("TRAWL_KILLS").map_or(8, |n| n.parse().unwrap());
    // Large enough that it is not done before it was killed that often, unless this process stands still for seconds.
    let kills = [100, 400, 1600].map(|pages| pages * wanted.max(6)).into_iter();
    let kills: Vec<u32> =
        kills.map(|pages| killed_of(format, pages, wanted)).take_while(|kills| *kills < wanted).collect();
    assert!(kills.len() < 3, "it was done too soon: {kills:?}");
}

/// Kills a crawl of so many pages as often as wanted, if it does not end before; tells how often it did.
fn killed_of(format: &str, pages: u32, wanted: u32) -> u32 {
    let dir = tempfile::tempdir().unwrap();
    let mut web = WebConfig { domains: 40, pages, seeds: 3, ..WebConfig::default() };
    (web.min_crawl_delay_ms, web.max_crawl_delay_ms) = (15, 30);
    web.max_pages_per_host = web.pages;
    let web = TestWeb::start(web).unwrap();
    let expected = web.world().expected_pages(DEPTH);
    let (out, addr, seeds) = (dir.path().join("out"), web.addr().to_string(), web.world().seeds().join(" "));
    let inner = out.join(".crawl");
    let mut kills = 0;
    loop {
        let before = rows_in(&inner);
        let mut child = start(&out, &addr, &seeds, format);
        if kills < wanted {
            // Somewhere in the middle of things, a different place each time; how long a start takes, nobody knows.
            while rows_in(&inner) <= before && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(u64::from(kills) * 37 % 100));
            child.kill().unwrap();
        }
        let status = child.wait().unwrap();
        if status.success() {
            break;
        }
        assert!(kills < wanted, "the crawl failed by itself: {status}");
        kills += 1;
    }
    let rows = check(&out);
    let pages: Vec<_> =
        rows.iter().filter(|r| r.status != 0 && !r.url.ends_with("robots.txt")).map(|r| r.url.clone()).collect();
    let fetched: BTreeSet<_> = pages.iter().cloned().collect();
    assert_eq!(fetched.len(), pages.len(), "some page twice");
    assert_eq!(fetched, expected);
    kills
}
