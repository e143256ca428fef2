//! What a later start, or a later crawl, takes up: pages that lead on, other versions, hosts that are back, deeper links.

mod common;

use common::{any_port, check, clock, config, ids, page, serve};
use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;
use trawl_engine::{Config, Report, Retry, SeedInput, Start, Stop, run};

fn crawl(config: Config) -> Report {
    let report = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    assert!(report.complete && report.urls.add_up(), "{report:?}");
    report
}

/// Paths of the pages that had a response.
fn fetched(out: &Path) -> BTreeSet<String> {
    let rows = check(out).into_iter().filter(|row| row.status != 0 && row.robots.is_some());
    rows.map(|row| row.url.trim_start_matches("http://a.example").to_owned()).collect()
}

fn from_list(out: &Path, addr: SocketAddr, list: &Path, depth: u32) -> Config {
    Config { seeds: vec![SeedInput::File(list.to_owned())], ..config(out, addr, Vec::new(), depth) }
}

/// A 304 has no links, so that what the page leads to would never be found.
#[test]
fn a_page_that_did_not_change_still_leads_on() {
    let dir = tempfile::tempdir().unwrap();
    let addr = serve(any_port(), |path, request| match path {
        "/index" if request.contains("If-None-Match") => {
            "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".into()
        }
        "/index" => page("ETag: \"1\"\r\n", "<a href=/a>a</a>"),
        _ => page("", "another page"),
    });
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    crawl(config(&first, addr, vec!["http://a.example/index".into()], 0));
    crawl(from_list(&second, addr, &first.join("captures.parquet"), 1));
    assert!(fetched(&second).contains("/a"), "{:?}", fetched(&second));
    let rows = check(&second);
    let index = rows.iter().find(|row| row.url.ends_with("/index")).unwrap();
    assert_eq!((index.status, index.record_type.as_deref()), (200, Some("revisit")), "by its digest");
}

/// A server that looks at the date alone says "not modified" of a page that has another `ETag` by now.
#[test]
fn a_304_of_another_version_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let date = "Last-Modified: Tue, 01 Jul 2025 00:00:00 GMT\r\n";
    let addr = serve(any_port(), move |path, request| match path {
        "/page" if request.contains("If-Modified-Since") => {
            "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nETag: W/\"2\"\r\n\r\n".into()
        }
        _ => page(&format!("ETag: \"2\"\r\n{date}"), "the new words"),
    });
    let (out, list) = (dir.path().join("out"), dir.path().join("list.jsonl"));
    let seed = |etag: &str| {
        format!(r#"{{"url":"http://a.example/page","etag":"{etag}","last_modified":"Tue, 01 Jul 2025 00:00:00 GMT"}}"#)
    };
    for (n, (etag, status, kind)) in [("\\\"1\\\"", 200, "response"), ("\\\"2\\\"", 304, "revisit")].iter().enumerate()
    {
        std::fs::write(&list, seed(etag)).unwrap();
        let out = out.join(n.to_string());
        crawl(from_list(&out, addr, &list, 0));
        let row = check(&out).into_iter().find(|row| row.url.ends_with("/page")).unwrap();
        assert_eq!((row.status, row.record_type.as_deref()), (*status, Some(*kind)), "{etag}");
    }
}

/// A body that was cut is never what a revisit refers to.
#[test]
fn what_was_cut_is_fetched_whole_later() {
    let dir = tempfile::tempdir().unwrap();
    let addr = serve(any_port(), |path, request| match path {
        "/long" if request.contains("If-None-Match") => "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n".into(),
        _ => page("ETag: \"1\"\r\n", &"many words ".repeat(500)),
    });
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let mut short = config(&first, addr, vec!["http://a.example/long".into()], 0);
    short.fetch.limits.body_bytes = 1000;
    crawl(short);
    let index = first.join("captures.parquet");
    crawl(from_list(&second, addr, &index, 0));
    let row = check(&second).into_iter().find(|row| row.url.ends_with("/long")).unwrap();
    assert_eq!((row.status, row.body_length, row.truncated), (200, 5500, None));
    // Those that a limit cut can be asked for by name. By default they are left out: the same limit would cut them again.
    for (name, class, expected) in [("cut", Some("truncated"), vec![5500]), ("all", None, vec![])] {
        let (out, classes) = (dir.path().join(name), class.into_iter().map(String::from).collect());
        let seeds = vec![SeedInput::Retry(Retry { path: index.clone(), classes })];
        crawl(Config { seeds, ..config(&out, addr, Vec::new(), 0) });
        let pages = check(&out).into_iter().filter(|row| row.url.ends_with("/long"));
        assert_eq!(pages.map(|row| row.body_length).collect::<Vec<_>>(), expected, "{class:?}");
    }
}

/// A host that was given up is asked again for seeds that are added to the run.
#[test]
fn a_seed_that_is_added_asks_its_host_again() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = TcpListener::bind(any_port()).unwrap().local_addr().unwrap();
    let mut first = config(&out, addr, vec!["http://a.example/1".into()], 0);
    first.frontier.give_up_after = Duration::ZERO;
    assert_eq!(crawl(first.clone()).counts.given_up, 1);
    serve(addr, |_, _| page("", "back again"));
    let seeds = vec![SeedInput::Url("http://a.example/2".into())];
    let report = crawl(Config { seeds, start: Start::Resume, ..first });
    assert_eq!(report.counts.fetched, 1, "{report:?}");
    assert_eq!(fetched(&out), BTreeSet::from(["/2".to_owned()]));
}

#[test]
fn a_complete_run_goes_deeper() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, _| match path {
        "/" => page("", "<a href=/a>a</a>"),
        "/a" => page("", "<a href=/b>b</a>"),
        _ => page("", "the end"),
    });
    let mut first = config(&out, addr, vec!["http://a.example/".into()], 1);
    first.settings.insert("depth".into(), vec!["1".into()]);
    crawl(first.clone());
    let mut deeper = Config { start: Start::Resume, ..first };
    deeper.frontier.max_depth = 2;
    deeper.settings.insert("depth".into(), vec!["2".into()]);
    crawl(deeper);
    assert!(fetched(&out).contains("/b"), "{:?}", fetched(&out));
}

/// The directories of seeds are known only if they were noted while the seeds were read: all links would be refused.
#[test]
fn no_parent_cannot_be_turned_on_later() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |_, _| page("", "<a href=below>b</a>"));
    let mut first = config(&out, addr, vec!["http://a.example/docs/".into()], 1);
    first.settings.insert("no_parent".into(), vec!["false".into()]);
    crawl(first.clone());
    let mut later = Config { start: Start::Resume, ..first };
    later.rules.no_parent = true;
    later.settings.insert("no_parent".into(), vec!["true".into()]);
    // Something new, so that the run goes on.
    later.seeds = vec![SeedInput::Url("http://a.example/more/".into())];
    let error = run(later, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("no-parent: expected not given, as when the run began"), "{error}");
}

/// Failures may be tried again class by class, in one run.
#[test]
fn other_classes_of_an_index_are_tried_later() {
    let dir = tempfile::tempdir().unwrap();
    let addr = serve(any_port(), |path, _| match path {
        "/gone" => page("", "nothing").replace("200 OK", "404 Not Found"),
        "/bad" => page("", "nothing").replace("200 OK", "410 Gone"),
        _ => page("", "a page"),
    });
    let (first, again) = (dir.path().join("first"), dir.path().join("again"));
    crawl(config(&first, addr, ["/ok", "/gone", "/bad"].map(|path| format!("http://a.example{path}")).into(), 0));
    let mut found = Vec::new();
    for (class, start) in [("404", Start::New), ("410", Start::Resume), ("404", Start::Resume)] {
        let (path, classes) = (first.join("captures.parquet"), BTreeSet::from([class.to_owned()]));
        let seeds = vec![SeedInput::Retry(Retry { path, classes })];
        crawl(Config { seeds, start, ..config(&again, addr, Vec::new(), 0) });
        found.push(fetched(&again).into_iter().collect::<Vec<_>>().join(" "));
    }
    assert_eq!(found, ["/gone", "/bad /gone", "/bad /gone"]);
}

/// `<(…)` of a shell has the same name each time.
#[test]
fn another_pipe_of_the_same_name_is_another_list() {
    let dir = tempfile::tempdir().unwrap();
    let addr = serve(any_port(), |_, _| page("", "a page"));
    let (out, pipe) = (dir.path().join("out"), dir.path().join("pipe"));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    for (path, start) in [("/1", Start::New), ("/2", Start::Resume)] {
        let (writes, line) = (pipe.clone(), format!("http://a.example{path}\n"));
        std::thread::spawn(move || std::fs::write(writes, line));
        crawl(Config { start, ..from_list(&out, addr, &pipe, 0) });
    }
    assert_eq!(fetched(&out), BTreeSet::from(["/1", "/2"].map(String::from)));
}
