//! Asking a lake in a directory, and the files around it.

use super::{stderr, stdout, trawl};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Runs `trawl ARGS --json --quiet` and wants this exit code; its lines.
pub fn ask(dir: &Path, args: &[&str], code: i32) -> Vec<Value> {
    let output = trawl(dir).args(["--json", "--quiet"]).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a command that must fail, and what it says.
pub fn refuse(dir: &Path, args: &[&str]) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {}{}", stdout(&output), stderr(&output));
    assert_eq!(stdout(&output), "", "{args:?}");
    stderr(&output)
}

/// Reads sources into a dataset; the report.
pub fn ingest(dir: &Path, dataset: &str, sources: &[&str], more: &[&str], code: i32) -> Value {
    let args = [&["lake", "ingest", "--dataset", dataset][..], sources, more].concat();
    ask(dir, &args, code).remove(0)
}

/// Writes a file, with the directories above it.
pub fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Two datasets: `a` of three URLs of two domains, `b` of three of two, one shared.
pub fn two_datasets() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "a.txt", "http://a.com/1\nhttp://a.com/2\nhttp://b.co.uk/x\n");
    write(dir.path(), "b.txt", "HTTP://WWW.a.com:80/3\nhttp://a.com/2\t2026-01-02T00:00:00Z\nhttp://c.github.io/x\n");
    ingest(dir.path(), "a", &["a.txt"], &[], 0);
    ingest(dir.path(), "b", &["b.txt"], &[], 0);
    dir
}

/// Every file at any depth, sorted.
pub fn walk(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
