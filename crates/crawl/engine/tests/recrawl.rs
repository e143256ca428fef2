//! Crawls that know of earlier ones, and crawls that take only a part of the web.

mod common;

use common::{check, clock, config, ids};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex};
use trawl_engine::{Config, SeedInput, Stop, run};

/// A server of pages that refer to each other. `/etag` has one, and says 304 to those who know it; `/same` has none.
fn serve() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (addr, asked) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let log = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, log) = (stream.unwrap(), log.clone());
            std::thread::spawn(move || {
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    request.push(byte[0]);
                }
                let request = String::from_utf8(request).unwrap();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let knows = request.contains("If-None-Match: \"v1\"\r\n");
                log.lock().unwrap().push(format!("{path}{}", if knows { " conditional" } else { "" }));
                let body = match path.as_str() {
                    "/robots.txt" => "",
                    "/docs/" => {
                        "<a href=/docs/a.html>a</a> <a href=/docs/print.html>p</a> <a href=/other/>o</a> <a href=/docs/moved>m</a>"
                    }
                    _ => "a page like any other",
                };
                let head = match path.as_str() {
                    "/etag" if knows => "304 Not Modified\r\nETag: \"v1\"".to_owned(),
                    "/docs/moved" => "302 Found\r\nLocation: /docs/print.html?2\r\nContent-Length: 0".to_owned(),
                    "/etag" => format!("200 OK\r\nETag: \"v1\"\r\nContent-Length: {}", body.len()),
                    _ => format!("200 OK\r\nContent-Type: text/html\r\nContent-Length: {}", body.len()),
                };
                let body = if head.starts_with('3') { "" } else { body };
                let _ = stream.write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}").as_bytes());
            });
        }
    });
    (addr, asked)
}

fn crawl(config: Config) {
    assert!(run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap().complete);
}

fn urls(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| format!("http://a.example{path}")).collect()
}

fn again(out: &Path, addr: SocketAddr, seeds: &Path) -> Config {
    let mut config = config(out, addr, Vec::new(), 0);
    config.seeds = vec![SeedInput::File(seeds.to_owned())];
    config
}

#[test]
fn pages_that_did_not_change_are_revisits_of_the_capture_with_the_body() {
    let dir = tempfile::tempdir().unwrap();
    let (addr, asked) = serve();
    let first = dir.path().join("first");
    crawl(config(&first, addr, urls(&["/etag", "/same"]), 0));
    let before = check(&first);
    let prior = first.join("captures.parquet");
    asked.lock().unwrap().clear();

    let second = dir.path().join("second");
    crawl(again(&second, addr, &prior));
    let mut asked = asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!(asked, ["/etag conditional", "/robots.txt", "/same"], "a robots.txt is not a page of the index");
    for row in check(&second).iter().filter(|row| !row.url.ends_with("robots.txt")) {
        let earlier = before.iter().find(|earlier| earlier.url == row.url).unwrap();
        assert_eq!(row.record_type.as_deref(), Some("revisit"), "{}", row.url);
        assert_eq!(row.status, if row.url.ends_with("/etag") { 304 } else { 200 });
        assert_eq!((&row.digest, row.refers_to_uri.as_deref()), (&earlier.digest, Some(row.url.as_str())));
        assert_eq!(row.refers_to_date, earlier.started_at, "{}", row.url);
        assert_eq!(row.meta_json, "", "the seeds had none");
    }

    // From a line, and asked for whole.
    let list = dir.path().join("list.jsonl");
    let line = "{\"url\":\"http://a.example/etag\",\"etag\":\"\\\"v1\\\"\",\"note\":1.50}\n";
    std::fs::write(&list, line).unwrap();
    for (name, store_unchanged, status) in [("line", false, 304), ("whole", true, 200)] {
        let out = dir.path().join(name);
        crawl(Config { store_unchanged, ..again(&out, addr, &list) });
        let rows = check(&out);
        let row = rows.iter().find(|row| row.url.ends_with("/etag")).unwrap();
        assert_eq!(row.status, status, "{name}");
        assert_eq!(row.meta_json, "{\"etag\":\"\\\"v1\\\"\",\"note\":1.50}", "the line's own words stay");
    }
    // And crawl after crawl.
    let mut index = dir.path().join("line/captures.parquet");
    for n in 0..2 {
        let out = dir.path().join(format!("later{n}"));
        crawl(again(&out, addr, &index));
        let rows = check(&out);
        let row = rows.iter().find(|row| row.url.ends_with("/etag")).unwrap();
        assert_eq!((row.status, row.meta_json.as_str()), (304, "{\"etag\":\"\\\"v1\\\"\",\"note\":1.50}"));
        index = out.join("captures.parquet");
    }
}

/// Two pages have the same body: the second is a revisit of the first, and so is every later capture of either.
#[test]
fn a_revisit_names_the_url_whose_capture_has_the_body() {
    let dir = tempfile::tempdir().unwrap();
    let (addr, _) = serve();
    for page in ["/same", "/other"] {
        let mut config = config(&dir.path().join(&page[1..]), addr, urls(&[page]), 0);
        config.digests = Some(dir.path().join("bodies"));
        crawl(config);
    }
    let index = dir.path().join("other/captures.parquet");
    let later = dir.path().join("later");
    crawl(again(&later, addr, &index));
    for out in ["other", "later"] {
        let rows = check(&dir.path().join(out));
        let row = rows.iter().find(|row| row.url.ends_with("/other")).unwrap();
        assert_eq!(row.refers_to_uri.as_deref(), Some("http://a.example/same"), "{out}");
    }
}

#[test]
fn links_are_refused_by_rule_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (addr, _) = serve();
    let out = dir.path().join("out");
    let mut config = config(&out, addr, urls(&["/docs/"]), 2);
    config.rules.no_parent = true;
    config.rules.exclude = vec![regex_lite::Regex::new("print").unwrap()];
    let report = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    let fetched: BTreeSet<String> = check(&out).into_iter().map(|row| row.url).collect();
    let expected = urls(&["/docs/", "/docs/a.html", "/docs/moved", "/robots.txt"]).into_iter().collect();
    assert_eq!(fetched, expected);
    let refused: Vec<_> = report.counts.refused.iter().map(|(rule, n)| (rule.as_str(), *n)).collect();
    assert_eq!(refused, [("exclude", 2), ("prefix", 1)], "a link, and a redirect");
}

/// Many sites redirect whatever they do not have, a robots.txt too, to their first page. The rows of such an errand are not seeds.
#[test]
fn a_robots_txt_that_leads_to_a_page_leaves_the_seed_its_metadata() {
    let dir = tempfile::tempdir().unwrap();
    let addr = common::serve(common::any_port(), |path, _| match path {
        "/robots.txt" => {
            "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        _ => common::page("", "the first page"),
    });
    let list = dir.path().join("list.jsonl");
    std::fs::write(&list, "{\"url\":\"http://a.example/\",\"n\":7}\n").unwrap();
    let mut index = list;
    for n in 0..3 {
        let out = dir.path().join(n.to_string());
        crawl(again(&out, addr, &index));
        let pages: Vec<_> = check(&out).into_iter().filter(|row| row.robots.is_some()).collect();
        assert_eq!(pages.len(), 1, "{n}");
        assert_eq!(pages[0].meta_json, "{\"n\":7}", "{n}");
        index = out.join("captures.parquet");
    }
}

/// The directory of a seed comes along when the seed moves to another host.
#[test]
fn links_stay_in_the_directory_that_a_seed_moved_to() {
    let dir = tempfile::tempdir().unwrap();
    let addr = common::serve(common::any_port(), |path, request| match path {
        "/docs/" if request.contains("Host: a.example") => {
            let to = "http://www.a.example/docs/";
            format!("HTTP/1.1 301 Moved\r\nConnection: close\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
        }
        "/docs/" => common::page("", "<a href=/docs/a>a</a><a href=/other>o</a><a href=http://a.example/x>x</a>"),
        _ => common::page("", "a page"),
    });
    let out = dir.path().join("out");
    let mut config = config(&out, addr, urls(&["/docs/"]), 2);
    config.rules.no_parent = true;
    let report = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    let pages = check(&out).into_iter().filter(|row| row.robots.is_some()).map(|row| row.url);
    let www = ["http://www.a.example/docs/", "http://www.a.example/docs/a"].map(String::from);
    assert_eq!(pages.collect::<BTreeSet<_>>(), urls(&["/docs/"]).into_iter().chain(www).collect());
    assert_eq!(report.counts.refused["prefix"], 2);
}

#[test]
fn shards_share_the_seeds_out() {
    let dir = tempfile::tempdir().unwrap();
    let (addr, _) = serve();
    let seeds: Vec<String> = (0..20).map(|n| format!("http://www.d{n}.example/x")).collect();
    let mut all = BTreeSet::new();
    for shard in ["0/2", "1/2"] {
        let out = dir.path().join(shard.replace('/', "-"));
        let mut config = config(&out, addr, seeds.clone(), 0);
        config.rules.shard = Some(shard.parse().unwrap());
        let report = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
        let pages: Vec<_> = check(&out).into_iter().filter(|row| row.url.ends_with("/x")).map(|row| row.url).collect();
        let others: u64 = report.seeds.iter().map(|seed| seed.other_shards).sum();
        assert_eq!(pages.len() as u64 + others, 20);
        for url in pages {
            assert!(all.insert(url), "fetched by both");
        }
    }
    assert_eq!(all.len(), 20);
}
