//! How a run begins, and what is left of one that was killed while it did.

mod common;

use common::{check, clock, config, ids};
use std::path::Path;
use std::sync::Arc;
use trawl_engine::{Config, Error, Report, SeedInput, Start, Stop, run, settings_of};
use trawl_frontier::{Frontier, Identity};
use trawl_io::{Fs, RealFs};
use trawl_model::UnixMillis;
use trawl_testweb::{Config as WebConfig, Running, TestWeb};

fn web() -> Running {
    TestWeb::start(WebConfig { seed: 7, domains: 5, pages: 60, seeds: 3, ..WebConfig::default() }).unwrap()
}

fn crawl(config: Config) -> Result<Report, Error> {
    run(config, clock(), ids(), &Stop::new(), &mut |_| {})
}

/// What is there when a process dies before its log says what it was to crawl.
fn leave_a_frontier(out: &Path, identity: Identity) {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let settings = trawl_frontier::Config { identity, ..trawl_frontier::Config::default() };
    let mut frontier = Frontier::open(&fs, &out.join(".crawl/frontier"), settings, UnixMillis(0), "test").unwrap();
    frontier.sync().unwrap();
    frontier.close().unwrap();
}

#[test]
fn a_run_that_never_began_asks_for_seeds_and_then_begins() {
    let dir = tempfile::tempdir().unwrap();
    let web = web();
    for (name, killed) in [("nothing", false), ("killed", true)] {
        let out = dir.path().join(name);
        let resumed = Config { start: Start::Resume, ..config(&out, web.addr(), vec![], 1) };
        if killed {
            // Made for other settings than those of the next start.
            leave_a_frontier(&out, Identity::Exact);
        }
        let error = crawl(resumed.clone()).unwrap_err().to_string();
        assert!(error.contains("seeds") && error.contains("no run was begun"), "{error}");
        let seeds = web.world().seeds().into_iter().map(SeedInput::Url).collect();
        let start = if killed { Start::New } else { Start::Resume };
        let report = crawl(Config { start, seeds, ..resumed }).unwrap();
        assert!(report.complete && report.counts.fetched > 0, "{report:?}");
        check(&out);
    }
}

#[test]
fn settings_are_those_of_the_last_start_whatever_run_json_says() {
    let dir = tempfile::tempdir().unwrap();
    let web = web();
    let out = dir.path().join("out");
    let with = |pages: u64, start| {
        let mut config = Config { start, ..config(&out, web.addr(), web.world().seeds(), 1) };
        config.frontier.max_pages = Some(pages);
        config.settings.insert("max_pages".into(), vec![pages.to_string()]);
        config.settings.insert("delay".into(), vec![format!("{pages}s")]);
        config
    };
    assert_eq!(settings_of(&out).unwrap(), None);
    assert!(crawl(with(2, Start::New)).unwrap().counts.over_limit > 0);
    let run_json = out.join("run.json");
    let first = std::fs::read(&run_json).unwrap();
    // Killed before there was a run.json.
    std::fs::remove_file(&run_json).unwrap();
    assert_eq!(settings_of(&out).unwrap().unwrap()["delay"], ["2s"]);
    std::fs::write(&run_json, &first).unwrap();
    // A second start with others, killed before it replaced run.json.
    assert!(crawl(with(4, Start::Resume)).unwrap().counts.over_limit > 0);
    std::fs::write(&run_json, &first).unwrap();
    assert_eq!(settings_of(&out).unwrap().unwrap()["delay"], ["4s"]);
    // The old report says that the run is complete; the log knows better.
    let report = crawl(with(4, Start::Resume)).unwrap();
    assert_eq!(report.legs.len(), 3, "{:?}", report.legs);
    assert_eq!(report.legs[1].settings["max_pages"], ["4"]);
    assert_eq!(report.counts.fetched + report.counts.denied, 4, "{:?}", report.counts);
}

#[test]
fn a_list_that_is_not_there_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let web = web();
    let out = dir.path().join("out");
    let list = |name: &str| vec![SeedInput::File(dir.path().join(name))];
    std::fs::write(dir.path().join("right"), web.world().seeds().join("\n")).unwrap();
    let error = crawl(Config { seeds: list("typo"), ..config(&out, web.addr(), vec![], 0) }).unwrap_err();
    assert!(matches!(error, Error::Seeds { .. }) && error.to_string().contains("typo"), "{error}");
    let report = crawl(Config { seeds: list("right"), ..config(&out, web.addr(), vec![], 0) }).unwrap();
    assert!(report.complete && report.counts.seeds > 0, "{report:?}");
    // Nor does one that is added to a run.
    let mut added = Config { start: Start::Resume, ..config(&out, web.addr(), vec![], 0) };
    added.seeds = list("typo");
    assert!(matches!(crawl(added.clone()), Err(Error::Seeds { .. })));
    assert_eq!(crawl(Config { seeds: vec![], ..added }).unwrap(), report);
}
