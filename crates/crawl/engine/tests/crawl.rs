//! Whole crawls of a synthetic web.

mod common;

use common::{archived, check, clock, config, container, ids, most_at_once, requests, rows};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use trawl_captures::CaptureRow;
use trawl_engine::{Error, Report, SeedInput, Start, Stop, run};
use trawl_frontier::Identity;
use trawl_testweb::{Config as WebConfig, Running, TestWeb};

fn web(dir: &std::path::Path, change: impl FnOnce(&mut WebConfig)) -> Running {
    let mut config = WebConfig { domains: 40, pages: 400, seeds: 3, ..WebConfig::default() };
    (config.min_crawl_delay_ms, config.max_crawl_delay_ms) = (5, 20);
    config.log = Some(dir.join("web.log"));
    change(&mut config);
    TestWeb::start(config).unwrap()
}

fn crawl(config: trawl_engine::Config) -> Result<Report, Error> {
    run(config, clock(), ids(), &Stop::new(), &mut |_| {})
}

#[test]
fn every_expected_page_once_politely() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let depth = 3;
    let expected = web.world().expected_pages(depth);
    assert!(expected.len() > 100, "{}", expected.len());
    let out = dir.path().join("out");
    let mut shots = 0;
    let mut progress = |p: &trawl_engine::Progress| {
        assert!(p.unacked >= p.in_flight);
        shots += 1;
    };
    let report =
        run(config(&out, web.addr(), web.world().seeds(), depth), clock(), ids(), &Stop::new(), &mut progress).unwrap();
    assert!(shots > 0);
    assert!(report.complete && report.left == 0, "{report:?}");

    let rows = check(&out);
    let pages: Vec<_> = rows.iter().filter(|r| r.status != 0 && !r.url.ends_with("/robots.txt")).collect();
    let fetched: BTreeSet<_> = pages.iter().map(|r| r.url.clone()).collect();
    assert_eq!(fetched.len(), pages.len(), "some page twice");
    let missing: Vec<_> = expected.difference(&fetched).collect();
    let extra: Vec<_> = fetched.difference(&expected).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");

    // The server's side of the story: one at a time per host, each page once, robots.txt once and first, nothing closed.
    web.flush_log();
    let asked = requests(&dir.path().join("web.log"));
    assert_eq!(most_at_once(&asked), 1);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    for r in &asked {
        *counts.entry(format!("http://{}{}", r.host, r.target)).or_default() += 1;
        first.entry(&r.host).or_insert(&r.target);
    }
    assert!(counts.values().all(|n| *n == 1), "{:?}", counts.iter().filter(|(_, n)| **n > 1).collect::<Vec<_>>());
    assert!(first.values().all(|target| *target == "/robots.txt"));
    let pages: BTreeSet<_> = counts.into_keys().filter(|url| !url.ends_with("/robots.txt")).collect();
    assert_eq!(pages, expected);

    // What robots.txt closes is recorded as such.
    assert_eq!(report.counts.failed_captures(), report.counts.failures.get("robots_denied").copied().unwrap_or(0));
    assert_eq!(report.counts.captures, rows.len() as u64);
    assert!(report.files.iter().any(|f| f.name == "captures.parquet"));
    for file in &report.files {
        let bytes = std::fs::read(out.join(&file.name)).unwrap();
        assert_eq!(file.sha256, data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)), "{}", file.name);
    }
    let json: Report = serde_json::from_slice(&std::fs::read(out.join("run.json")).unwrap()).unwrap();
    assert_eq!(json, report);

    // The directory is taken now; a resume of a complete run changes nothing.
    let again = config(&out, web.addr(), web.world().seeds(), depth);
    assert!(matches!(crawl(again.clone()), Err(Error::Occupied { .. })));
    let before = archived(&out);
    let resumed = crawl(trawl_engine::Config { start: Start::Resume, ..again.clone() }).unwrap();
    assert_eq!((resumed.counts, resumed.files, resumed.complete), (report.counts, report.files, true));
    assert_eq!(archived(&out), before);
    let over = crawl(trawl_engine::Config { start: Start::Overwrite, ..again }).unwrap();
    assert!(over.complete);
    assert_eq!(check(&out).len(), rows.len());
}

#[test]
fn a_list_is_fetched_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let page = &web.world().seeds()[0];
    let list = dir.path().join("list.jsonl");
    let text = format!(
        "# a list\n{page}\n{page}\n{{\"url\":\"{page}?utm_source=x\",\"n\":1.50,\"s\":\"a\"}}\nnonsense\n{page}absent\n"
    );
    std::fs::write(&list, &text).unwrap();
    let out = dir.path().join("out");
    let mut config = config(&out, web.addr(), vec![], 0);
    config.seeds = vec![SeedInput::File(list.clone())];
    config.frontier.identity = Identity::Exact;
    let report = crawl(config).unwrap();
    assert!(report.complete);
    let rows = check(&out);
    let pages: BTreeMap<_, _> =
        rows.iter().filter(|r| !r.url.ends_with("robots.txt")).map(|r| (r.url.clone(), r)).collect();
    assert_eq!(pages.len(), 3, "identical lines once, tracking parameters count");
    assert_eq!(pages[&format!("{page}?utm_source=x")].meta_json, r#"{"n":1.50,"s":"a"}"#);
    assert_eq!(pages[page].status, 200);
    assert_eq!((report.counts.seeds, report.counts.rejects), (4, 1));
    assert_eq!((report.seeds[0].rows, report.seeds[0].rejects), (4, 1));
    let rejects = std::fs::read_to_string(out.join("rejects.jsonl")).unwrap();
    assert_eq!(rejects.lines().count(), 1);
    let offset = format!("\"offset\":{},", text.find("nonsense").unwrap());
    assert!(rejects.contains(&offset) && rejects.contains("nonsense"), "{rejects}");
}

#[test]
fn too_many_bad_lines_end_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let list = dir.path().join("list");
    std::fs::write(&list, "x\ny\n").unwrap();
    let mut config = config(&dir.path().join("out"), web.addr(), vec![], 0);
    config.seeds = vec![SeedInput::File(list)];
    config.max_rejects = Some(1);
    assert!(matches!(crawl(config), Err(Error::TooManyRejects { found: 2, limit: 1 })));
    let rejects = std::fs::read_to_string(dir.path().join("out/rejects.jsonl")).unwrap();
    assert_eq!(rejects.lines().count(), 2, "the error names this file");
}

#[test]
fn a_stop_loses_nothing_and_a_resume_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // Few workers and slow answers: the crawl must not be over before it is stopped, however fast the machine.
    let web = web(dir.path(), |web| web.latency_ms = 5);
    let expected = web.world().expected_pages(3);
    let out = dir.path().join("out");
    let mut stops = 0;
    loop {
        let mut config = config(&out, web.addr(), web.world().seeds(), 3);
        config.start = Start::Resume;
        config.workers = 4;
        // However slow the disk is: what waits for it is little, so that a stop comes before the end.
        config.max_unacked = 20;
        config.progress_interval = Duration::from_millis(10);
        config.grace = Duration::from_millis(if stops % 2 == 0 { 2000 } else { 0 });
        let stop = Stop::new();
        let mut begun = None;
        let report = run(config, clock(), ids(), &stop, &mut |p| {
            let before = *begun.get_or_insert(p.counts.captures);
            if p.counts.captures > before + 60 {
                stop.ask();
            }
        })
        .unwrap();
        check(&out);
        if report.complete {
            break;
        }
        stops += 1;
        assert!(stops < 50);
    }
    assert!(stops >= 2, "{stops}");
    let rows = rows(&out);
    let pages: Vec<_> =
        rows.iter().filter(|r| r.status != 0 && !r.url.ends_with("robots.txt")).map(|r| &r.url).collect();
    assert_eq!(pages.iter().collect::<BTreeSet<_>>().len(), pages.len());
    assert_eq!(pages.into_iter().cloned().collect::<BTreeSet<_>>(), expected);
    // Rules are remembered: one robots.txt a host, over all restarts.
    let robots: Vec<_> = rows.iter().filter(|r| r.url.ends_with("robots.txt")).map(|r| &r.url).collect();
    assert_eq!(robots.iter().collect::<BTreeSet<_>>().len(), robots.len());
}

#[test]
fn a_limit_leaves_pages_waiting_and_a_larger_one_takes_them_up() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let out = dir.path().join("out");
    let mut small = config(&out, web.addr(), web.world().seeds(), 3);
    small.frontier.max_pages = Some(50);
    small.settings.insert("max_pages".into(), vec!["50".into()]);
    let report = crawl(small.clone()).unwrap();
    assert!(report.complete && report.counts.over_limit > 0 && report.left == 0, "{report:?}");
    assert_eq!(report.counts.fetched + report.counts.denied, 50);
    assert!(report.urls.add_up(), "{:?}", report.urls);
    // What makes two URLs the same cannot change within a run.
    let mut large = small.clone();
    large.start = Start::Resume;
    large.frontier.max_pages = Some(1_000_000);
    large.settings.insert("max_pages".into(), vec!["1000000".into()]);
    let mut other = large.clone();
    other.frontier.identity = Identity::Exact;
    assert!(matches!(crawl(other), Err(Error::Setting { .. })));
    let report = crawl(large).unwrap();
    assert!(report.complete && report.counts.over_limit == 0 && report.urls.add_up(), "{report:?}");
    let pages = check(&out).into_iter().filter(|r| r.status != 0 && !r.url.ends_with("robots.txt")).map(|r| r.url);
    assert_eq!(pages.collect::<BTreeSet<_>>(), web.world().expected_pages(3));
    assert_eq!((report.legs.len(), report.legs[1].seeds.len()), (2, 0), "{:?}", report.legs);
}

#[test]
fn a_deeper_resume_brings_back_the_links_that_were_too_deep() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let stopped_after = |out: &std::path::Path, depth, pages| {
        let mut config = config(out, web.addr(), web.world().seeds(), depth);
        config.frontier.max_pages = Some(pages);
        config.settings.insert("max_pages".into(), vec![pages.to_string()]);
        config.start = Start::Resume;
        config
    };
    let out = dir.path().join("out");
    let first = crawl(stopped_after(&out, 1, 40)).unwrap();
    assert!(first.counts.outside > 0 && first.counts.over_limit > 0, "{first:?}");
    let report = crawl(stopped_after(&out, 3, 1_000_000)).unwrap();
    assert!(report.complete && report.counts.over_limit == 0 && report.urls.add_up(), "{report:?}");
    let pages = check(&out).into_iter().filter(|r| r.status != 0 && !r.url.ends_with("robots.txt")).map(|r| r.url);
    assert_eq!(pages.collect::<BTreeSet<_>>(), web.world().expected_pages(3));
    // A run that looked for no links cannot find them later.
    let out = dir.path().join("flat");
    assert!(crawl(stopped_after(&out, 0, 2)).unwrap().counts.over_limit > 0);
    let error = crawl(stopped_after(&out, 1, 1_000_000)).unwrap_err();
    assert!(error.to_string().contains("without looking for links"), "{error}");
}

#[test]
fn a_resume_knows_its_seeds_and_takes_more() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let out = dir.path().join("out");
    let seeds = web.world().seeds();
    let list = dir.path().join("list");
    std::fs::write(&list, format!("{}\n", seeds[0])).unwrap();
    let stopped = |mut config: trawl_engine::Config| {
        config.start = Start::Resume;
        config.workers = 1;
        let stop = Stop::new();
        stop.ask();
        run(config, clock(), ids(), &stop, &mut |_| {}).unwrap()
    };
    let mut first = config(&out, web.addr(), vec![], 0);
    first.arguments = vec!["crawl".into(), "http://me:secret@a.example/".into()];
    first.seeds = vec![SeedInput::File(list.clone())];
    stopped(first);
    // The same list, longer; a URL with a password; and what is known already.
    std::fs::write(&list, format!("{}\n{}\n", seeds[0], seeds[1])).unwrap();
    let mut second = config(&out, web.addr(), vec![], 0);
    let url = seeds[2].replacen("http://", "http://me:secret@", 1);
    second.seeds = vec![SeedInput::File(list.clone()), SeedInput::Url(url)];
    stopped(second);
    // Nothing named at all.
    let last = trawl_engine::Config { start: Start::Resume, ..config(&out, web.addr(), vec![], 0) };
    let report = crawl(last.clone()).unwrap();
    assert!(report.complete && report.legs.len() == 3, "{report:#?}");
    let fetched: BTreeSet<_> = check(&out).into_iter().filter(|r| r.robots.is_some()).map(|r| r.url).collect();
    assert_eq!(fetched, seeds.iter().take(3).cloned().collect());
    assert!(report.legs.iter().all(|leg| leg.ended_at.is_some()), "{:?}", report.legs);
    let json = std::fs::read_to_string(out.join("run.json")).unwrap();
    assert!(!json.contains("secret"), "{json}");
    // A complete run does nothing where nothing is new, says so where a setting is, and takes more seeds.
    assert_eq!(crawl(last.clone()).unwrap(), report);
    let new = web.world().expected_pages(1).into_iter().find(|url| !seeds.contains(url)).unwrap();
    let more = trawl_engine::Config { seeds: vec![SeedInput::Url(new.clone())], ..last };
    let report = crawl(more).unwrap();
    assert!(report.complete && report.legs.len() == 4 && report.urls.add_up(), "{report:#?}");
    let fetched: BTreeSet<_> = check(&out).into_iter().filter(|r| r.robots.is_some()).map(|r| r.url).collect();
    assert_eq!(fetched, seeds.iter().take(3).cloned().chain([new]).collect());
}

#[test]
fn private_addresses_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut config = config(&out, "127.0.0.1:9".parse().unwrap(), vec!["http://127.0.0.1:9/".into()], 0);
    config.fetch.connect_to.clear();
    config.frontier.backoff = Duration::from_secs(3600);
    let report = crawl(config).unwrap();
    assert!(report.complete && report.counts.retries == 0, "{report:?}");
    assert_eq!(report.counts.failures, BTreeMap::from([("private_address".to_owned(), 2)]), "robots.txt and the page");
    assert!(check(&out).iter().all(|row| row.error.contains("--allow-private 127.0.0.1")));
}

#[test]
fn a_seed_list_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let mut config = config(&dir.path().join("out"), web.addr(), vec![], 0);
    config.seeds = vec![SeedInput::File("no/such/list".into())];
    let error = crawl(config).unwrap_err().to_string();
    assert!(error.contains("no/such/list"), "{error}");
}

/// The bodies that a store of digests knows are in captures, which do not go before it.
#[test]
fn captures_that_a_store_of_digests_may_refer_to_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let out = dir.path().join("out");
    let mut config = config(&out, web.addr(), web.world().seeds(), 1);
    config.digests = Some(dir.path().join("bodies"));
    assert!(crawl(config.clone()).unwrap().complete);
    config.start = Start::Overwrite;
    let error = crawl(config.clone()).unwrap_err().to_string();
    assert!(error.contains("captures that --overwrite removes"), "{error}");
    assert!(check(&out).iter().any(|row| row.status == 200), "they are still there");
    config.digests = Some(dir.path().join("others"));
    config.settings.insert("digests".into(), Vec::new());
    assert!(crawl(config.clone()).unwrap().complete);
    // A run that had no store, as the command notes it, is not in one.
    config.digests = Some(dir.path().join("bodies"));
    assert!(crawl(config).unwrap().complete);
}

/// Crawls the same web again, with what was seen the first time in mind.
#[test]
fn bodies_that_did_not_change_are_revisits() {
    for format in ["warc", "seqdb"] {
        let dir = tempfile::tempdir().unwrap();
        let web = web(dir.path(), |_| {});
        let crawled = |name: &str| {
            let mut config = config(&dir.path().join(name), web.addr(), web.world().seeds(), 2);
            config.format = format.into();
            config.digests = Some(dir.path().join("bodies"));
            let report = crawl(config).unwrap();
            assert!(report.complete);
            check(&dir.path().join(name))
        };
        let good = |rows: Vec<CaptureRow>| rows.into_iter().filter(|r| r.status == 200 && r.body_length > 0);
        let first: Vec<_> = good(crawled("first")).collect();
        let own: BTreeMap<_, _> = first.iter().filter(|r| !r.unchanged).map(|r| (r.digest.clone(), r)).collect();
        assert!(own.len() > 50, "{}", own.len());
        let bytes = |name: &str| -> u64 {
            let files = std::fs::read_dir(dir.path().join(name)).unwrap().map(|e| e.unwrap());
            let archive = files.filter(|f| !f.file_name().to_string_lossy().contains("captures"));
            archive.map(|f| f.metadata().unwrap().len()).sum()
        };
        for again in ["second", "third"] {
            let rows: Vec<_> = good(crawled(again)).collect();
            assert_eq!(rows.len(), first.len());
            for row in rows {
                let earlier = own[&row.digest];
                assert!(row.unchanged && row.record_type.as_deref() == Some("revisit"), "{}", row.url);
                // The newest with a body: the first crawl has them all, whichever of its pages shared it.
                let same = first.iter().find(|r| !r.unchanged && Some(&r.url) == row.refers_to_uri.as_ref()).unwrap();
                assert_eq!((same.digest.as_str(), same.started_at), (earlier.digest.as_str(), row.refers_to_date));
                assert_eq!(row.body_length, same.body_length);
            }
            if format == "warc" {
                assert!(bytes(again) < bytes("first"), "nothing was saved");
            }
        }
    }
}

#[test]
fn a_container_has_the_pages_of_a_crawl_by_url() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(dir.path(), |_| {});
    let out = dir.path().join("out");
    let mut config = config(&out, web.addr(), web.world().seeds(), 2);
    config.format = "seqdb".into();
    let report = crawl(config.clone()).unwrap();
    assert!(report.files.iter().any(|file| file.name.ends_with(".urls")), "{:?}", report.files);
    let rows = check(&out);
    let pages = container(&out.join(&rows[0].warc_file));
    for row in rows.iter().filter(|row| !row.is_failure()) {
        let page = pages.newest(row.url.as_bytes()).unwrap().unwrap();
        assert!(page.time.0 >= row.started_at.unwrap());
    }
    // Done is done, in one format; another one is refused, and so is a new run on top.
    config.start = Start::Resume;
    assert_eq!(crawl(config.clone()).unwrap().counts, report.counts);
    config.format = "warc".into();
    config.start = Start::New;
    assert!(matches!(crawl(config.clone()), Err(Error::Occupied { .. })));
    config.start = Start::Overwrite;
    crawl(config).unwrap();
    assert!(!out.join(&rows[0].warc_file).exists(), "the container stayed beside what overwrote it");
}
