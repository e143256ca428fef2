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
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{request}").unwrap();
        input.flush().unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
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
