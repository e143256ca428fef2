//! The whole way, as a user runs it.

mod common;

use common::{stderr, stdout, trawl};
use std::process::Command;

#[test]
fn demo_checks_itself() {
    let dir = tempfile::tempdir().unwrap();
    // As in a shell that lets a program begin with few open files: fewer than the demo has hosts.
    let plain = trawl(dir.path());
    let mut command = Command::new("sh");
    command.current_dir(dir.path()).args(["-c", "ulimit -S -n 200 && exec \"$0\" demo --check --quiet"]);
    for (name, _) in plain.get_envs() {
        command.env_remove(name);
    }
    let output = command.arg(plain.get_program()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("checks passed"), "{}", stdout(&output));
    assert_eq!(stderr(&output), "");
}

#[test]
fn demo_reports_a_port_that_is_taken_before_it_makes_anything() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = trawl(dir.path()).args(["demo", "--listen", &port]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("choose another address"), "{}", stderr(&output));
    assert!(!dir.path().join("trawl-demo").exists());
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
