//! The whole way, as a user runs it.

mod common;

use common::{stderr, stdout, trawl};

#[test]
fn demo_checks_itself() {
    let dir = tempfile::tempdir().unwrap();
    let output = trawl(dir.path()).args(["demo", "--check", "--quiet"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("checks passed"), "{}", stdout(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
fn demo_does_not_touch_a_directory_it_did_not_make() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("trawl-demo")).unwrap();
    std::fs::write(dir.path().join("trawl-demo/mine.txt"), "precious").unwrap();
    let output = trawl(dir.path()).args(["demo", "--check"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read_to_string(dir.path().join("trawl-demo/mine.txt")).unwrap(), "precious");
}
