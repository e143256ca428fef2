//! `trawl lake plan`, `task`, `commit` and `parts`: an ingest by many processes.

mod common;

use common::lakes::write;
use common::{stderr, stdout, trawl};
use serde_json::Value;
use std::path::Path;

fn run(dir: &Path, args: &[&str], code: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn lists(dir: &Path) {
    for file in ["a.txt", "b.txt"] {
        let lines = (0..700).map(|n| format!("https://www.h{}.org/{file}/{n}\n", n % 41));
        write(dir, file, lines.collect::<String>() + "no url\n");
    }
}

#[test]
fn tasks_write_what_an_ingest_writes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    lists(dir);
    run(
        dir,
        &["lake", "ingest", "-q", "--lake", "plain", "--dataset", "d", "--prefix-digits", "1", "a.txt", "b.txt"],
        1,
    );
    let planned = run(
        dir,
        &[
            "--json",
            "lake",
            "plan",
            "--dataset",
            "d",
            "--prefix-digits",
            "1",
            "--map-tasks",
            "3",
            "--reduce-tasks",
            "2",
            "a.txt",
            "b.txt",
        ],
        0,
    );
    let tasks: Vec<&str> = planned.lines().collect();
    assert_eq!(tasks.len(), 3 + 2 + 2, "{planned}");
    let first: Value = serde_json::from_str(tasks[0]).unwrap();
    let job = first["job"].as_str().unwrap();
    let numbered = ["lake", "task", "-q", "--job", job, "reduce", "0"];
    let early = trawl(dir).args(numbered).output().unwrap();
    assert!(stderr(&early).contains("map task 0") && early.status.code() == Some(2), "{}", stderr(&early));
    for task in &tasks[..5] {
        run(dir, &["lake", "task", "-q", "--memory", "16MiB", "--threads", "1", task], 0);
    }
    assert!(run(dir, &numbered, 0).starts_with("reduce 0: "), "done already");
    let commit = ["lake", "commit", "-q", "--job", job];
    assert!(run(dir, &commit, 1).starts_with("committed 1,400 rows"), "and two were rejected");
    run(dir, &commit, 1);
    for task in &tasks[5..] {
        run(dir, &["lake", "task", "-q", task], 0);
    }
    assert!(run(dir, &commit, 0).starts_with("published version "));
    let ended = trawl(dir).args(commit).output().unwrap();
    assert!(stderr(&ended).contains("it has ended"), "{}", stderr(&ended));

    let hashes = |lake: &str| run(dir, &["lake", "parts", "--hashes", "--lake", lake], 0);
    assert_eq!(hashes("lake"), hashes("plain"));
    assert!(hashes("lake").lines().count() > 16, "Parquet files and index files");
    let parts = run(dir, &["--json", "lake", "parts", "--dataset", "d"], 0);
    for part in parts.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        assert_eq!(part["type"], "rows");
        assert!(dir.join("lake").join(part["path"].as_str().unwrap()).is_file());
    }
    run(dir, &["lake", "verify", "-q"], 0);
    // The dataset has them: there is nothing to plan.
    run(dir, &["lake", "plan", "-q", "--dataset", "d", "a.txt", "b.txt"], 1);
}

#[test]
fn what_cannot_be_a_job_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    lists(dir);
    let told = |args: &[&str]| {
        let output = trawl(dir).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output));
        stderr(&output)
    };
    run(dir, &["lake", "ingest", "-q", "--dataset", "d", "a.txt"], 1);
    write(dir, "a.txt", std::fs::read_to_string(dir.join("a.txt")).unwrap() + "https://more.org/\n");
    assert!(told(&["lake", "plan", "--dataset", "d", "a.txt"]).contains("has grown since the dataset took it"));
    assert!(told(&["lake", "plan", "--dataset", "new", "-"]).contains("can be read only by this process"));
    assert!(!run(dir, &["lake", "datasets"], 0).contains("new"), "what failed leaves no name behind");
    assert!(told(&["lake", "task", "--job", "none", "map", "0"]).contains("jobs/none/job.json"));
    assert!(told(&["lake", "task", "--job", "none", "sort", "0"]).contains("expected map, reduce or index"));
    assert!(told(&["lake", "task", "map", "0"]).contains("expected --job JOB"));
    assert!(told(&["lake", "task", "{}"]).contains("trawl lake plan --json"));
    assert!(told(&["lake", "commit", "--job", "../x"]).contains("../x"));
}
