//! `trawl frontier run`: a fetcher in any language, by JSON lines.

mod common;

use common::trawl;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A frontier in another process.
struct Desk {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Desk {
    fn open(dir: &Path, more: &[&str]) -> Self {
        let args = ["frontier", "run", "frontier", "--delay", "0s", "--backoff", "0s"];
        let mut command = trawl(dir);
        let mut process =
            command.args(args).args(more).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        Desk { process, input, output }
    }

    fn ask(&mut self, request: &Value) -> Value {
        self.ask_bytes(request.to_string().as_bytes())
    }

    fn ask_bytes(&mut self, request: &[u8]) -> Value {
        let input = self.input.as_mut().unwrap();
        input.write_all(request).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let request = String::from_utf8_lossy(request);
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line:?} answers {request}"))
    }

    /// Leases a page, waiting for it if need be.
    fn lease(&mut self) -> Option<Value> {
        for _ in 0..5000 {
            let answer = self.ask(&json!({"op": "lease", "n": 1}));
            if let Some(lease) = answer["leases"].get(0) {
                return Some(lease.clone());
            }
            match answer["next"].as_str() {
                Some("empty") => return None,
                _ => std::thread::sleep(std::time::Duration::from_millis(1)),
            }
        }
        panic!("nothing to lease");
    }

    fn settle(&mut self, lease: &Value, links: &[&str]) -> Value {
        self.ask(&json!({"op": "settle", "outcomes": [{"id": lease["id"], "status": 200, "links": links}]}))
    }

    fn drain(&mut self) -> Vec<String> {
        let mut urls = Vec::new();
        while let Some(lease) = self.lease() {
            urls.push(lease["url"].as_str().unwrap().to_owned());
            assert_eq!(self.settle(&lease, &[])["settled"], json!(["done"]));
        }
        urls.sort();
        urls
    }

    fn close(mut self) {
        drop(self.input.take());
        assert!(self.process.wait().unwrap().success());
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn every_link_is_answered_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &["--depth", "1"]);
    let offered = desk.ask(&json!({"op": "offer", "urls": [{"url": "http://a.example/dir/", "meta": {"n": 1}}]}));
    assert_eq!(offered, json!({"admissions": ["new"]}));
    let page = desk.lease().unwrap();
    assert_eq!(page["meta"], json!({"n": 1}));
    let links = ["http://b.example/", "x.html", "http://", "mailto:a@b.example", "http://a.example/dir/"];
    let answer = desk.settle(&page, &links);
    assert_eq!(answer["settled"], json!(["done"]));
    assert_eq!(answer["admissions"], json!(["new", "new", "rejected", "rejected", "seen"]));
    let rejected: Vec<_> = answer["rejected"].as_array().unwrap().iter().map(|r| r["link"].clone()).collect();
    assert_eq!(rejected, [json!("http://"), json!("mailto:a@b.example")]);
    // Settled already: what is told of it is answered for as well.
    let late = desk.settle(&page, &["http://c.example/", "mailto:x"]);
    assert_eq!(late, json!({"settled": ["unknown"], "admissions": ["unknown", "unknown"]}));
    let next = desk.lease().unwrap();
    let too_deep = desk.settle(&next, &["deeper.html"]);
    assert_eq!(too_deep["admissions"], json!(["too_deep"]));
    assert_eq!(desk.drain().len(), 1);
    let refused = desk.ask(&json!({"op": "delay", "host": "a.example", "seconds": 1e9}));
    assert!(refused["error"].as_str().unwrap().contains("49 days"), "{refused}");
    assert!(desk.ask(&json!({"op": "nonsense"}))["error"].is_string());
    desk.close();
    // Where a page was found is kept.
    let packed = trawl(dir.path()).args(["frontier", "pack", "frontier", "--out", "all.meguri"]).output().unwrap();
    assert!(packed.status.success(), "{packed:?}");
    // Neither what is there already nor a file of the frontier is replaced.
    for (out, code) in [(&["all.meguri"][..], 2), (&["all.meguri", "--overwrite"], 0), (&["frontier/run-9.meguri"], 2)]
    {
        let again = trawl(dir.path()).args(["frontier", "pack", "frontier", "--out"]).args(out).output().unwrap();
        assert_eq!(again.status.code(), Some(code), "{out:?}: {again:?}");
    }
    let cat = trawl(dir.path()).args(["cat", "--json", "all.meguri"]).output().unwrap();
    let text = String::from_utf8(cat.stdout).unwrap();
    let row = text.lines().find(|line| line.contains("x.html")).unwrap_or_else(|| panic!("{text}"));
    let row: Value = serde_json::from_str(row).unwrap();
    assert!(row.to_string().contains(r#""http://a.example/dir/""#), "{row}");
    // Links that were turned away are not kept: a larger depth is refused, and says so.
    let deeper = trawl(dir.path()).args(["frontier", "run", "frontier", "--depth", "2"]).output().unwrap();
    assert_eq!(deeper.status.code(), Some(2));
    let said = String::from_utf8(deeper.stderr).unwrap();
    assert!(said.contains("created with depth 1") && said.contains("opened with 2"), "{said}");
}

/// A page that was fetched at the limit of depth, and is then linked nearer to a seed, has links that were too deep and are not any
/// more. Its links are kept nowhere: without being told, the fetcher would end without them.
#[test]
fn a_shorter_way_to_a_page_that_was_fetched_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &["--depth", "2"]);
    let urls = json!([{"url": "http://slow.example/"}, {"url": "http://b.example/"}]);
    desk.ask(&json!({"op": "offer", "urls": urls}));
    let (slow, b) = (desk.lease().unwrap(), desk.lease().unwrap());
    assert_eq!((&slow["url"], &b["url"]), (&json!("http://slow.example/"), &json!("http://b.example/")));
    desk.settle(&b, &["http://c.example/"]);
    let c = desk.lease().unwrap();
    desk.settle(&c, &["http://p.example/", "http://gone.example/"]);
    for _ in 0..2 {
        let page = desk.lease().unwrap();
        if page["url"] == "http://p.example/" {
            let answer = desk.settle(&page, &["http://deep.example/"]);
            assert_eq!(answer["admissions"], json!(["too_deep"]));
        } else {
            let gone = json!({"op": "settle", "outcomes": [{"id": page["id"], "error": "dns_nxdomain"}]});
            assert_eq!(desk.ask(&gone)["settled"], json!(["done"]));
        }
    }
    let answer = desk.settle(&slow, &["http://p.example/", "http://p.example/", "http://gone.example/"]);
    assert_eq!(answer["admissions"], json!(["reopened", "seen", "nearer"]));
    assert_eq!(answer["reopened"], json!([{"url": "http://p.example/", "depth": 1}]));
    let again = json!({"url": "http://deep.example/", "depth": 2, "via": "http://p.example/"});
    assert_eq!(desk.ask(&json!({"op": "offer", "urls": [again]}))["admissions"], json!(["new"]));
    assert_eq!(desk.drain(), ["http://deep.example/"]);
    desk.close();
}

/// A process that is killed before its answer is read leaves reopened pages to the next one: by then the request that reopened them
/// was carried out, and repeated it reopens none.
#[test]
fn reopened_pages_are_named_again_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &["--depth", "2"]);
    desk.ask(&json!({"op": "offer", "urls": [{"url": "http://slow.example/"}, {"url": "http://b.example/"}]}));
    let (slow, b) = (desk.lease().unwrap(), desk.lease().unwrap());
    desk.settle(&b, &["http://c.example/"]);
    let c = desk.lease().unwrap();
    desk.settle(&c, &["http://p.example/", "http://q.example/"]);
    for _ in 0..2 {
        let page = desk.lease().unwrap();
        assert_eq!(desk.settle(&page, &["http://deep.example/"])["admissions"], json!(["too_deep"]));
    }
    let p = json!([{"url": "http://p.example/", "depth": 1}]);
    assert_eq!(desk.settle(&slow, &["http://p.example/"])["reopened"], p);
    desk.kill();
    let mut desk = Desk::open(dir.path(), &["--depth", "2"]);
    assert!(desk.ask(&json!({"op": "nonsense"}))["reopened"].is_null());
    let again = desk.settle(&slow, &["http://p.example/"]);
    assert_eq!((&again["settled"], &again["reopened"]), (&json!(["unknown"]), &p));
    let q = json!([{"url": "http://q.example/", "depth": 1}]);
    assert_eq!(desk.ask(&json!({"op": "offer", "urls": q}))["reopened"], q);
    // The next request says that this answer was read.
    assert!(desk.ask(&json!({"op": "stats"}))["reopened"].is_null());
    desk.kill();
    let mut desk = Desk::open(dir.path(), &["--depth", "2"]);
    assert!(desk.ask(&json!({"op": "stats"}))["reopened"].is_null());
    desk.close();
}

#[test]
fn seeds_are_added_and_a_recrawl_begins_after_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &[]);
    let urls: Vec<Value> = (0..40).map(|n| json!({"url": format!("http://h{}.example/{n}", n % 4)})).collect();
    desk.ask(&json!({"op": "offer", "urls": urls}));
    assert_eq!(desk.drain().len(), 40);
    desk.close();
    let mut desk = Desk::open(dir.path(), &[]);
    assert_eq!(desk.ask(&json!({"op": "stats"}))["pending"], 0);
    let more = json!({"op": "offer", "urls": [{"url": "http://h0.example/0"}, {"url": "http://h0.example/new"}]});
    assert_eq!(desk.ask(&more)["admissions"], json!(["seen", "new"]));
    assert_eq!(desk.drain(), ["http://h0.example/new"]);
    assert_eq!(desk.ask(&json!({"op": "recrawl", "before": "2001-01-01T00:00:00Z"})), json!({"due": 0}));
    assert_eq!(desk.ask(&json!({"op": "recrawl", "host": "h3.example"})), json!({"due": 10}));
    assert_eq!(desk.drain().len(), 10);
    assert_eq!(desk.ask(&json!({"op": "recrawl"})), json!({"due": 41}));
    desk.close();
    // It is durable.
    let mut desk = Desk::open(dir.path(), &[]);
    assert_eq!(desk.drain().len(), 41);
    assert!(desk.ask(&json!({"op": "recrawl", "host": "nobody.example"}))["error"].is_string());
    assert!(desk.ask(&json!({"op": "recrawl", "before": "yesterday"}))["error"].is_string());
    desk.close();
}

#[test]
fn what_cannot_be_understood_changes_nothing_and_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &[]);
    let refused = desk.ask_bytes(b"{\"op\":\"offer\",\"urls\":[{\"url\":\"http://a.example/\xe9\"}]}");
    assert!(refused["error"].is_string(), "{refused}");
    desk.ask(&json!({"op": "offer", "urls": [{"url": "http://a.example/"}]}));
    let page = desk.lease().unwrap();
    let refused = desk.ask(&json!({"op": "return", "ids": [page["id"], "nonsense"]}));
    assert!(refused["error"].is_string(), "{refused}");
    assert_eq!(desk.ask(&json!({"op": "stats"}))["leased"], 1);
    let long = json!({"url": "http://b.example/", "meta": {"x": "x".repeat(17 << 20)}});
    let refused = desk.ask(&json!({"op": "offer", "urls": [long]}));
    assert!(refused["error"].as_str().unwrap().contains("16 MiB"), "{refused}");
    assert_eq!(desk.settle(&page, &[])["settled"], json!(["done"]));
    desk.close();
}

/// A server may send any amount as its robots.txt. One that says to come back later does not allow everything.
#[test]
fn robots_files_are_cut_and_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &["--robots", "bot"]);
    desk.ask(&json!({"op": "offer", "urls": [{"url": "http://a.example/"}]}));
    for (status, text) in [(408, ""), (200, "User-agent: *\nDisallow: /x\n# ")] {
        let lease = desk.lease().unwrap();
        assert_eq!(lease["url"], "http://a.example/robots.txt");
        let text = [text, &"x".repeat(17 << 20)].concat();
        let told = desk.ask(&json!({"op": "robots", "id": lease["id"], "status": status, "text": text}));
        assert_eq!(told, json!({"ok": true}));
    }
    assert_eq!(desk.drain(), ["http://a.example/"]);
    desk.close();
    let packed = trawl(dir.path()).args(["frontier", "pack", "frontier", "--out", "all.meguri"]).output().unwrap();
    assert!(packed.status.success(), "{packed:?}");
}

/// Who does not answer for its robots.txt is asked again for as long as one that does not answer for a page.
#[test]
fn a_host_that_does_not_answer_for_its_robots_file_is_not_given_up_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &["--robots", "bot"]);
    desk.ask(&json!({"op": "offer", "urls": [{"url": "http://a.example/"}]}));
    for n in 0..6 {
        let lease = desk.lease().unwrap();
        assert_eq!(lease["url"], "http://a.example/robots.txt");
        let wrong = desk.ask(&json!({"op": "robots", "id": lease["id"], "error": "nonsense"}));
        assert!(wrong["error"].is_string(), "{wrong}");
        let told = match n % 2 {
            0 => json!({"op": "robots", "id": lease["id"], "status": 0}),
            _ => json!({"op": "robots", "id": lease["id"], "error": "connect_refused"}),
        };
        assert_eq!(desk.ask(&told), json!({"ok": true}));
    }
    let lease = desk.lease().unwrap();
    assert_eq!(desk.ask(&json!({"op": "robots", "id": lease["id"], "status": 404})), json!({"ok": true}));
    assert_eq!(desk.drain(), ["http://a.example/"]);
    desk.close();
}

/// What is refused is settled at once. No lease is out then whose end could be waited for.
#[test]
fn after_refusals_there_is_nothing_to_wait_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut desk = Desk::open(dir.path(), &["--robots", "bot"]);
    let urls: Vec<Value> = (0..3).map(|n| json!({"url": format!("http://a.example/x/{n}")})).collect();
    desk.ask(&json!({"op": "offer", "urls": urls}));
    let lease = desk.lease().unwrap();
    desk.ask(&json!({"op": "robots", "id": lease["id"], "status": 200, "text": "User-agent: *\nDisallow: /x"}));
    let answer = desk.ask(&json!({"op": "lease", "n": 9}));
    assert_eq!((answer["refused"].as_array().unwrap().len(), &answer["next"]), (3, &json!("now")), "{answer}");
    assert_eq!(desk.ask(&json!({"op": "lease", "n": 9}))["next"], "empty");
    desk.close();
}

#[test]
fn addresses_that_are_looked_up_first_are_limited_from_the_first_request_on() {
    for (more, at_once) in [(&[][..], 2), (&["--exempt", "192.0.2.1"][..], 9)] {
        let dir = tempfile::tempdir().unwrap();
        let mut desk = Desk::open(dir.path(), &[&["--per-ip", "2", "--lookups", "4"][..], more].concat());
        let urls: Vec<Value> = (0..9).map(|n| json!({"url": format!("http://h{n}.example/")})).collect();
        desk.ask(&json!({"op": "offer", "urls": urls}));
        let waits = desk.ask(&json!({"op": "lease", "n": 9}));
        assert_eq!((&waits["leases"], &waits["wanted"]), (&json!([]), &json!(true)));
        let mut looked_up = 0;
        loop {
            let wanted = desk.ask(&json!({"op": "wanted", "n": 9}));
            let sites = wanted["wanted"].as_array().unwrap();
            if sites.is_empty() {
                break;
            }
            assert!(sites.len() <= 4, "{wanted}");
            looked_up += sites.len();
            for site in sites {
                let ready = desk.ask(&json!({"op": "ready", "site": site, "ip": "192.0.2.1"}));
                assert_eq!(ready, json!({"ok": true}));
            }
        }
        assert_eq!(looked_up, 9);
        assert!(desk.ask(&json!({"op": "ready", "site": "http://h0.example"}))["error"].is_string());
        let leases = desk.ask(&json!({"op": "lease", "n": 9}));
        assert_eq!(leases["leases"].as_array().unwrap().len(), at_once, "{leases}");
        desk.close();
    }
}

/// Seeds of a host that is at its own limit keep no room from the pages of others.
#[test]
fn room_for_seeds_that_cannot_go_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let limits = ["--max-pages", "10", "--max-pages-per-host", "2", "--depth", "1"];
    let mut desk = Desk::open(dir.path(), &limits);
    let urls: Vec<Value> = (0..10).map(|n| json!({"url": format!("http://a.example/{n}")})).collect();
    desk.ask(&json!({"op": "offer", "urls": urls}));
    let first = desk.lease().unwrap();
    let links: Vec<String> = (0..20).map(|n| format!("http://c{n}.example/")).collect();
    desk.settle(&first, &links.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(desk.drain().len(), 9);
    desk.close();
}
