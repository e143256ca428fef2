//! Flags of `trawl crawl`: where a run is written, which seeds it takes, what it tells while it runs and after.

mod common;

use common::{Web, stderr, stdout, trawl};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// URLs of an index whose pages had an answer.
fn pages(dir: &Path) -> BTreeSet<String> {
    let rows = trawl(dir).args(["--json", "-q", "cat", "captures.parquet"]).output().unwrap();
    let rows = stdout(&rows).lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    let answered = rows.iter().filter(|row| row["status"].as_i64() > Some(0) && !row["robots"].is_null());
    answered.map(|row| row["url"].as_str().unwrap().to_owned()).collect()
}

fn lines(path: &Path) -> BTreeSet<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_named_run_has_a_directory_of_its_own() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, web) = (temp.path(), Web::start(temp.path()));
    for run in ["one", "two"] {
        let crawled = web.crawl(dir, &["--run-id", run, "--max-pages", "3"]);
        assert_eq!(crawled.status.code(), Some(0), "{}", stderr(&crawled));
        assert!(dir.join(format!("crawl/{run}/trawl-{run}-00000.warc.gz")).is_file());
    }
    // A resume finds it by the same name, with its settings.
    let named = ["crawl", "-q", "--resume", "--run-id", "one", "--out", "crawl", "--max-pages", "9"];
    let resumed = trawl(dir).args(named).output().unwrap();
    assert!(resumed.status.code() == Some(2) && stderr(&resumed).contains("--change"), "{}", stderr(&resumed));
    let wrong = web.crawl(dir, &["--run-id", "../up"]);
    assert!(wrong.status.code() == Some(2) && stderr(&wrong).contains("run-id"), "{}", stderr(&wrong));
    assert!(!dir.join("up").exists());
}

#[test]
fn seeds_by_pattern_and_added_later() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, web) = (temp.path(), Web::start(temp.path()));
    let expected: Vec<String> = lines(&dir.join("expected.txt")).into_iter().collect();
    std::fs::create_dir(dir.join("lists")).unwrap();
    for (n, urls) in expected.chunks(expected.len().div_ceil(3)).enumerate() {
        std::fs::write(dir.join(format!("lists/{n}.txt")), urls.join("\n")).unwrap();
    }
    let crawl = |more: &[&str]| {
        let mut command = trawl(dir);
        command.args(["crawl", "-q", "--out", "crawl", "--delay", "5ms", "--connect-to", &web.connect_to]).args(more);
        command.output().unwrap()
    };
    let none = crawl(&["lists/*.csv"]);
    assert!(none.status.code() == Some(2) && stderr(&none).contains("lists/*.csv"), "{}", stderr(&none));
    let first = crawl(&["lists/[01].txt"]);
    assert_eq!(first.status.code(), Some(0), "{}", stderr(&first));
    let found = pages(&dir.join("crawl"));
    assert!(!found.is_empty() && found.len() < expected.len());
    let second = crawl(&["--resume", "lists/2.txt"]);
    assert_eq!(second.status.code(), Some(0), "{}", stderr(&second));
    assert_eq!(pages(&dir.join("crawl")), expected.into_iter().collect::<BTreeSet<_>>());
    let sound = trawl(dir).args(["-q", "verify", "crawl"]).output().unwrap();
    assert_eq!(sound.status.code(), Some(0), "{}", stdout(&sound));
}

#[test]
fn prometheus_sees_the_state_of_a_crawl() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, web) = (temp.path(), Web::start(temp.path()));
    let free: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut child = trawl(dir)
        .args(["crawl", "seeds.txt", "--out", "crawl", "--depth", "2", "--scope", "any", "--delay", "1s", "-q"])
        .args(["--connect-to", &web.connect_to, "--metrics", &free.to_string()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ask = |path: &str| -> std::io::Result<String> {
        let mut stream = TcpStream::connect(free)?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let begun = Instant::now();
    let answer = loop {
        match ask("/metrics") {
            Ok(answer) if answer.contains("trawl_crawl_responses_total{status=\"200\"}") => break answer,
            _ => assert!(begun.elapsed() < Duration::from_secs(120), "nothing was served"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    for name in ["captures_total", "in_flight", "queued", "hosts", "failures_total", "body_bytes_total"] {
        assert!(answer.contains(&format!("# TYPE trawl_crawl_{name} ")), "{name}: {answer}");
    }
    assert!(ask("/").unwrap().starts_with("HTTP/1.1 404 "));
    child.kill().unwrap();
    child.wait().unwrap();
    // An address that is taken is told before anything is fetched.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = web.crawl_into(dir, "other", &["--metrics", &address]);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains(&address), "{}", stderr(&refused));
}

#[test]
fn sitemaps_need_links_to_be_followed() {
    let temp = tempfile::tempdir().unwrap();
    let told = trawl(temp.path()).args(["crawl", "http://a.example/", "--sitemaps"]).output().unwrap();
    assert!(told.status.code() == Some(2) && stderr(&told).contains("--depth 1"), "{}", stderr(&told));
}
