//! `trawl crawl` when something is wrong: what it says, how it ends, how it goes on.

mod common;

use common::{Web, stderr, stdout, trawl};
use std::path::Path;
use std::process::Output;

fn crawl(dir: &Path, web: &Web, more: &[&str]) -> Output {
    let fixed = ["crawl", "--delay", "0s", "--connect-to", &web.connect_to, "--quiet"];
    trawl(dir).args(fixed).args(more).output().unwrap()
}

fn report(dir: &Path, out: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(dir.join(out).join("run.json")).unwrap()).unwrap()
}

#[test]
fn settings_belong_to_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, web) = (dir.path(), Web::start(dir.path()));
    let first = crawl(dir, &web, &["seeds.txt", "--out", "run", "--depth", "3", "--scope", "any", "--max-pages", "20"]);
    assert_eq!(first.status.code(), Some(0), "{}{}", stdout(&first), stderr(&first));
    assert!(stdout(&first).contains("because of --max-pages"), "{}", stdout(&first));
    let run = report(dir, "run");
    assert_eq!(run["legs"][0]["settings"]["depth"][0], "3");
    assert_eq!(run["urls"]["fetched"].as_u64().unwrap() + run["counts"]["denied"].as_u64().unwrap(), 20);
    // Alone there is nothing more to do, from any directory.
    let alone = trawl(&dir.join("run")).args(["crawl", "--resume", "--out", ".", "--quiet"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(0), "{}", stderr(&alone));
    assert_eq!(report(dir, "run")["legs"].as_array().unwrap().len(), 1);
    // What differs is named, and needs saying.
    let more = ["--resume", "--out", "run", "--max-pages", "100000"];
    let differs = trawl(dir).args(["crawl", "--quiet"]).args(more).output().unwrap();
    assert_eq!(differs.status.code(), Some(2));
    assert!(stderr(&differs).contains("--max-pages 100000 (was 20)"), "{}", stderr(&differs));
    let changed = trawl(dir).args(["crawl", "--quiet", "--change"]).args(more).output().unwrap();
    assert_eq!(changed.status.code(), Some(0), "{}{}", stdout(&changed), stderr(&changed));
    let run = report(dir, "run");
    assert_eq!((run["complete"].as_bool(), run["legs"].as_array().unwrap().len()), (Some(true), 2));
    assert_eq!(run["legs"][1]["settings"]["scope"][0], "any");
    let expected = std::fs::read_to_string(dir.join("expected.txt")).unwrap().lines().count();
    assert!(run["urls"]["fetched"].as_u64().unwrap() as usize >= expected.min(40), "{}", run["urls"]);
    assert!(dir.join("run/captures.parquet").exists());
}

#[test]
fn what_is_given_up_is_said_and_taken_up_again() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, web) = (dir.path(), Web::start(dir.path()));
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let seed = std::fs::read_to_string(dir.join("seeds.txt")).unwrap().lines().next().unwrap().to_owned();
    let away = format!("::127.0.0.1:{}", nobody.port());
    let lost = trawl(dir)
        .args(["crawl", &seed, "--out", "lost", "--wait", "1s", "--backoff", "10s", "--connect-to", &away, "--quiet"])
        .output()
        .unwrap();
    assert_eq!(lost.status.code(), Some(1), "{}", stderr(&lost));
    let said = stdout(&lost);
    assert!(said.contains("gave up ") && said.lines().last().unwrap().contains("--retry-from"), "{said}");
    let again = crawl(dir, &web, &["--retry-from", "lost/captures.parquet", "--out", "again"]);
    assert_eq!(again.status.code(), Some(0), "{}{}", stdout(&again), stderr(&again));
    assert_eq!(report(dir, "again")["urls"]["fetched"], 1);
    // The run itself knows these URLs, and would fetch none of them.
    for seeds in [&["--retry-from", "lost/captures.parquet"][..], &["lost/captures.parquet"]] {
        let same = trawl(dir).args(["crawl", "--resume", "--out", "lost", "--quiet"]).args(seeds).output().unwrap();
        assert_eq!(same.status.code(), Some(2), "{}", stdout(&same));
        assert!(stderr(&same).contains("in a new crawl"), "{}", stderr(&same));
    }
    let none = crawl(dir, &web, &["--retry-from", "lost/captures.parquet", "--retry-class", "503", "--out", "none"]);
    assert_eq!(report(dir, "none")["urls"]["offered"], 0, "{}", stdout(&none));
    // Its directory is not the index, and must not leave a run behind that the corrected call meets.
    let whole = crawl(dir, &web, &["--retry-from", "lost", "--out", "whole"]);
    assert_eq!(whole.status.code(), Some(2), "{}", stdout(&whole));
    assert!(stderr(&whole).contains("name its index (lost/captures.parquet)"), "{}", stderr(&whole));
    assert!(!dir.join("whole").exists());
    let typo = crawl(dir, &web, &["--retry-from", "lost/captures.parquet", "--retry-class", "deadhost", "--out", "no"]);
    assert_eq!(typo.status.code(), Some(2));
    assert!(stderr(&typo).contains("dead_host"), "{}", stderr(&typo));
    // A private address is refused at once, with the way out.
    let private = trawl(dir).args(["crawl", "http://127.0.0.1:9/", "--out", "private", "--quiet"]).output().unwrap();
    assert_eq!(private.status.code(), Some(1));
    assert!(stdout(&private).contains("private_address") && stdout(&private).contains("--allow-private"), "{said}");
}

/// What a complete run cannot do any more is refused, not passed over in silence.
#[test]
fn a_complete_run_says_what_it_does_not_do() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, web) = (dir.path(), Web::start(dir.path()));
    let first = crawl(dir, &web, &["seeds.txt", "--out", "run", "--digests", "bodies"]);
    assert!(first.status.code() < Some(2), "{}", stderr(&first));
    assert_eq!(report(dir, "run")["complete"], true);
    let resume =
        |more: &[&str]| trawl(dir).args(["crawl", "--quiet", "--resume", "--out", "run"]).args(more).output().unwrap();
    assert!(resume(&[]).status.code() < Some(2));
    assert!(resume(&["seeds.txt"]).status.code() < Some(2));
    let deeper = resume(&["--change", "--depth", "2"]);
    assert_eq!(deeper.status.code(), Some(2), "{}", stdout(&deeper));
    assert!(stderr(&deeper).contains("--depth 2"), "{}", stderr(&deeper));
    let list = std::fs::read_to_string(dir.join("seeds.txt")).unwrap();
    std::fs::write(dir.join("seeds.txt"), list + "http://grown.example/\n").unwrap();
    // Seeds can be added: what was fetched is not fetched again.
    let before = report(dir, "run")["urls"]["fetched"].as_u64().unwrap();
    let grown = resume(&["seeds.txt"]);
    assert!(grown.status.code() < Some(2), "{}", stderr(&grown));
    let run = report(dir, "run");
    assert_eq!((run["complete"].as_bool(), run["urls"]["fetched"].as_u64()), (Some(true), Some(before + 1)));
    // Files that settings name are found from elsewhere.
    let digests = report(dir, "run")["legs"][0]["settings"]["digests"][0].clone();
    assert_eq!(digests.as_str(), Some(dir.join("bodies").to_str().unwrap()));
}
