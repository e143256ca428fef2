//! What holds for every command: exit codes, settings, help, closed pipes.

mod common;

use common::{feed, stderr, stdout, trawl};
use std::io::Read;
use std::process::Stdio;

#[test]
fn help_teaches_and_a_wrong_call_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let help = trawl(dir.path()).arg("--help").output().unwrap();
    assert_eq!(help.status.code(), Some(0));
    for word in ["trawl demo", "crawl", "lake", "query", "serve", "Exit codes"] {
        assert!(stdout(&help).contains(word), "help does not mention {word}");
    }
    let wrong = trawl(dir.path()).arg("--no-such-flag").output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("--no-such-flag"));
    let nothing = trawl(dir.path()).output().unwrap();
    assert_eq!(nothing.status.code(), Some(2));
}

#[test]
fn version_says_what_it_was_built_from() {
    let dir = tempfile::tempdir().unwrap();
    let short = trawl(dir.path()).arg("--version").output().unwrap();
    assert_eq!(stdout(&short), format!("trawl {}\n", env!("CARGO_PKG_VERSION")));
    let long = trawl(dir.path()).args(["--version", "--verbose"]).output().unwrap();
    assert!(stdout(&long).contains("suffix list: 20"), "{}", stdout(&long));
    let json = trawl(dir.path()).args(["--version", "--json"]).output().unwrap();
    let value: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(value["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn completions_and_manual_pages() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = trawl(dir.path()).args(["completions", shell]).output().unwrap();
        assert_eq!(script.status.code(), Some(0));
        assert!(stdout(&script).contains("trawl"), "{shell}");
    }
    let man = trawl(dir.path()).arg("man").output().unwrap();
    assert!(stdout(&man).starts_with(".ie"), "no roff: {}", &stdout(&man)[..60]);
    let pages = trawl(dir.path()).args(["man", "--dir", "pages", "--quiet"]).output().unwrap();
    assert_eq!(stderr(&pages), "");
    assert!(dir.path().join("pages/trawl-url.1").exists());
}

#[test]
fn settings_come_from_flag_then_environment_then_file() {
    let dir = tempfile::tempdir().unwrap();
    let base_of = |command: &mut std::process::Command| {
        let output = command.args(["--json", "url", "x"]).output().unwrap();
        assert_eq!(stderr(&output), "");
        let value: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        value["lake"]["url"].as_str().unwrap().to_owned()
    };
    std::fs::write(dir.path().join("trawl.toml"), "[url]\nbase = 'http://file.example/'\n").unwrap();
    assert_eq!(base_of(&mut trawl(dir.path())), "http://file.example/x");
    assert_eq!(base_of(trawl(dir.path()).env("TRAWL_URL_BASE", "http://env.example/")), "http://env.example/x");
    let flag = trawl(dir.path())
        .env("TRAWL_URL_BASE", "http://env.example/")
        .args(["--json", "url", "x", "--base", "http://flag.example/"])
        .output()
        .unwrap();
    assert!(stdout(&flag).contains("http://flag.example/x"));
    let other = dir.path().join("other.toml");
    std::fs::write(&other, "[url]\nbase = 'http://other.example/'\n").unwrap();
    assert_eq!(base_of(trawl(dir.path()).env("TRAWL_CONFIG", &other)), "http://other.example/x");
    assert_eq!(base_of(trawl(dir.path()).env("TRAWL_JSON", "true")), "http://file.example/x");
}

#[test]
fn a_wrong_settings_file_is_refused_with_its_name_and_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trawl.toml");
    for (text, expected) in [
        ("[url]\nbsae = 'x'", "url.bsae: there is no setting by that name"),
        ("[ulr]\nbase = 'x'", "[ulr]: there is no command by that name"),
        ("[url\nbase", "trawl.toml is not valid TOML"),
        ("[url]\nbase = 1979-05-27", "url.base: expected text, a number, true, false or a list of these"),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = trawl(dir.path()).args(["url", "http://a.com/"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(stderr(&output).contains(expected) && stderr(&output).contains("trawl.toml"), "{}", stderr(&output));
    }
    std::fs::remove_file(&file).unwrap();
    let missing = trawl(dir.path()).env("TRAWL_CONFIG", "gone.toml").args(["url", "http://a.com/"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("gone.toml"));
}

#[test]
fn every_setting_is_listed_once() {
    let dir = tempfile::tempdir().unwrap();
    let listed = trawl(dir.path()).args(["settings", "--json"]).output().unwrap();
    let names: Vec<String> = stdout(&listed)
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.contains(&"url.base".to_owned()) && names.contains(&"json".to_owned()));
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn a_closed_pipe_is_quiet() {
    let dir = tempfile::tempdir().unwrap();
    let lines = "http://example.com/a\n".repeat(200_000);
    let input = dir.path().join("urls");
    std::fs::write(&input, lines).unwrap();
    let mut child = trawl(dir.path())
        .args(["--json", "url", "-"])
        .stdin(std::fs::File::open(&input).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdout.take().unwrap();
    let mut first = [0u8; 100];
    pipe.read_exact(&mut first).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stderr(&output), "");
}

#[test]
fn url_reads_a_stream_and_counts_a_refusal_as_a_finding() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = trawl(dir.path());
    command.args(["--json", "url", "-"]);
    let long = format!("http://e.com/{}\n", "a".repeat(3 << 20));
    let input =
        [b"http://Example.com/b\r\n\nmailto:x@y.com\nhttp://e.com/\xff\xfe\n".as_slice(), long.as_bytes()].concat();
    let output = feed(command, &input);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> = stdout(&output).lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["lake"]["url"], "http://example.com/b");
    assert_eq!(lines[1]["rejected"]["code"], "scheme");
    assert!(lines[3]["rejected"].is_object(), "{}", lines[3]);
    let fine = trawl(dir.path()).args(["url", "http://example.com/"]).output().unwrap();
    assert_eq!(fine.status.code(), Some(0));
    assert!(stdout(&fine).contains("lake form  http://example.com/"));
}
