//! `trawl seqdb` as a user has it: maps, perms, and everything that can be done wrong with them.

mod common;

use common::{feed, stderr, stdout, trawl};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;

/// The vectors of the format.
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../formats/seqdb/tests/data");

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    expect(&output, args, status);
    stdout(&output)
}

fn expect(output: &Output, args: &[&str], status: i32) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(output);
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
}

/// Runs it with stdin, and returns what it says on stderr if it fails.
fn fed(dir: &Path, args: &[&str], input: &[u8], status: i32) -> String {
    let mut command = trawl(dir);
    command.args(args);
    let output = feed(command, input);
    expect(&output, args, status);
    if status == 2 { stderr(&output) } else { stdout(&output) }
}

fn fails(dir: &Path, args: &[&str]) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    expect(&output, args, 2);
    assert_eq!(stdout(&output), "", "{args:?}: a failure has no result");
    stderr(&output)
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A map `w` and a perm over it.
fn make(dir: &Path) {
    run(dir, &["seqdb", "create", "kvseq", "w.kvseq"], 0);
    run(dir, &["seqdb", "create", "hindex", "w.hindex", "--container", "w.kvseq", "--htsize", "5"], 0);
    run(dir, &["seqdb", "create", "perm", "w.perm", "--container", "w.kvseq"], 0);
}

const ADD: [&str; 7] = ["seqdb", "add", "w.kvseq", "--index", "w.hindex", "--perm", "w.perm"];

fn sound(dir: &Path) {
    let text = run(dir, &["seqdb", "check", "w.kvseq", "w.hindex", "w.perm"], 0);
    assert_eq!(text.matches("0 faults, 0 warnings").count(), 3, "{text}");
}

#[test]
fn the_vector_is_what_the_commands_write() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let kvseq = ["--sbsize", "256", "--purpose", "TEST", "--valrepr", "int16", "--fileincr", "0"];
    run(dir, &[&["seqdb", "create", "kvseq", "v1"], &kvseq[..]].concat(), 0);
    for (key, value) in [("apple", "red"), ("pear", "green"), ("fig", "")] {
        run(dir, &["seqdb", "add", "v1", key, value], 0);
    }
    run(dir, &["seqdb", "delete", "v1", "pear"], 0);
    run(dir, &["seqdb", "superblock", "v1", "--set", "SYNCTIME", "0x47947c62"], 0);
    assert!(std::fs::read(dir.join("v1")).unwrap() == std::fs::read(format!("{VECTORS}/v1.kvseq")).unwrap());

    let index = ["--container", "v1", "--htsize", "5", "--cellsz", "2", "--sbsize", "256", "--purpose", "TESTIDX"];
    run(dir, &[&["seqdb", "create", "hindex", "v3"], &index[..]].concat(), 0);
    run(dir, &["seqdb", "index-rebuild", "v3", "--container", "v1"], 0);
    let listed = run(dir, &["seqdb", "list", "v3", "--container", "v1"], 0);
    assert_eq!(listed, "281\t04d8b0d72264ac23\tfig\t\n256\t1f3870be274f6c49\tapple\tred\n");
    run(dir, &["seqdb", "create", "perm", "v4", "--container", "v1", "--sbsize", "256", "--purpose", "TESTPRM"], 0);
    run(dir, &["seqdb", "group", "v4", "--container", "v1", "--fill"], 0);
    let mine = std::fs::read(dir.join("v4")).unwrap();
    let vector = std::fs::read(format!("{VECTORS}/v4.perm")).unwrap();
    assert!(mine[256..] == vector[256..], "the pairs of V4");
}

#[test]
fn a_map_from_creation_to_compaction() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    make(dir);
    assert_eq!(run(dir, &[&ADD[..], &["apple", "red"]].concat(), 0), "1 added\n");
    assert_eq!(
        fed(dir, &[&ADD[..], &["--tsv", "-"]].concat(), b"pear\tgreen\tand more\nfig\t\n\tempty key\n", 0),
        "3 added\n"
    );
    let odd = b"3:\xff\n\0,4:\0\x01\t\n,5:apple,4:pink,0:,0:,";
    assert_eq!(fed(dir, &[&ADD[..], &["--netstrings", "-"]].concat(), odd, 0), "3 added\n");
    sound(dir);

    // Values come as they are, to the byte.
    let get = |key: &str| trawl(dir).args(["seqdb", "get", "w.kvseq", "--index", "w.hindex", key]).output().unwrap();
    assert_eq!(get("apple").stdout, b"pink", "the newer value counts");
    assert_eq!(get("pear").stdout, b"green\tand more");
    assert_eq!(get("").stdout, b"");
    let missing = get("none");
    expect(&missing, &["get none"], 1);
    assert_eq!((stdout(&missing), stderr(&missing)), (String::new(), "no such key\n".into()));
    let text = run(dir, &["seqdb", "list", "w.kvseq", "--deleted", "--pointers"], 0);
    assert_eq!(text.lines().next().unwrap(), "4096\tdeleted\tapple\tred");
    let pointer = text.lines().find(|line| line.contains("\\xff")).unwrap().split('\t').next().unwrap().to_owned();
    assert!(text.contains("\\xff\\n\\x00\t\\x00\\x01\\t\\n\n"), "{text}");
    let raw = trawl(dir).args(["seqdb", "get", "w.kvseq", "--pointer", &pointer]).output().unwrap();
    assert_eq!(raw.stdout, b"\0\x01\t\n");
    let row = &json_lines(&run(dir, &["--json", "seqdb", "get", "w.kvseq", "--pointer", &pointer], 0))[0];
    assert_eq!((&row["key"], &row["value"]), (&json!({"base64": "/woA"}), &json!("\0\u{1}\t\n")));
    assert_eq!(run(dir, &["seqdb", "list", "w.kvseq", "--keys"], 0), "pear\nfig\n\\xff\\n\\x00\napple\n\n");

    // Equal keys become neighbours.
    assert_eq!(
        run(dir, &["seqdb", "group", "w.perm", "--container", "w.kvseq", "--memory", "6MiB"], 0),
        "7 pairs grouped\n"
    );
    let keys = run(dir, &["--json", "seqdb", "list", "w.perm", "--container", "w.kvseq", "--keys"], 0);
    let keys: Vec<_> = json_lines(&keys).iter().map(|row| row["key"].to_string()).collect();
    for i in 0..keys.len() {
        let first = keys.iter().position(|key| *key == keys[i]).unwrap();
        assert!(keys[first..=i].iter().all(|key| *key == keys[i]), "{keys:?}");
    }

    run(dir, &["seqdb", "delete", "w.kvseq", "--index", "w.hindex", "fig"], 0);
    assert_eq!(run(dir, &["seqdb", "delete", "w.kvseq", "--index", "w.hindex", "fig"], 1), "no such key\n");
    sound(dir);
    let sizes = &json_lines(&run(
        dir,
        &["--json", "seqdb", "compact", "w.kvseq", "--index", "w.hindex", "--perm", "w.perm"],
        0,
    ))[0];
    assert!(sizes["new_bytes"].as_u64() < sizes["old_bytes"].as_u64(), "{sizes}");
    sound(dir);
    assert_eq!(get("apple").stdout, b"pink");
    assert_eq!(json_lines(&run(dir, &["--json", "seqdb", "list", "w.perm"], 0)).len(), 4);
}

#[test]
fn what_is_wrong_is_said_and_harms_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    make(dir);
    // A bad line stops the work; what came before it is there, and nothing asks for a repair.
    let text = fed(dir, &[&ADD[..], &["--tsv", "-"]].concat(), b"a\t1\nno tab here\nb\t2\n", 2);
    assert!(text.contains("stopped after 1 entries") && text.contains("line 2: expected a key, a tab"), "{text}");
    let long = format!("{}\tx\n", "k".repeat(256));
    let text = fed(dir, &[&ADD[..], &["--tsv", "-"]].concat(), format!("c\t3\n{long}").as_bytes(), 2);
    assert!(text.contains("line 2") && text.contains("256 bytes is over the limit of 255"), "{text}");
    for bad in [&b"3:ab"[..], b"x:", b"1:a,", b"1:a,99999999999:", b"1:a;1:b,"] {
        fed(dir, &[&ADD[..], &["--netstrings", "-"]].concat(), bad, 2);
    }
    assert!(!fails(dir, &[&ADD[..], &["--tsv", "no file"]].concat()).contains("added"));
    sound(dir);
    assert_eq!(run(dir, &["seqdb", "list", "w.kvseq"], 0), "a\t1\nc\t3\n");

    // A disk that is full in the middle: nothing is claimed to be stored that may not be. (`ulimit -f` stands for it.)
    let script = "ulimit -f 64; trap '' XFSZ; exec \"$0\" seqdb add w.kvseq --index w.hindex --tsv big.tsv";
    let big: String = (0..3000).map(|n| format!("big{n}\t{}\n", "x".repeat(1000))).collect();
    std::fs::write(dir.join("big.tsv"), big).unwrap();
    let full = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_trawl")])
        .current_dir(dir)
        .output()
        .unwrap();
    assert_eq!(full.status.code(), Some(2), "{}", stderr(&full));
    assert!(stderr(&full).contains("which may not all be stored"), "{}", stderr(&full));
    run(dir, &["seqdb", "check", "w.kvseq", "--repair"], 0);
    assert!(run(dir, &["seqdb", "list", "w.kvseq"], 0).starts_with("a\t1\nc\t3\n"));

    std::fs::write(dir.join("text"), "not a container").unwrap();
    assert!(
        fails(dir, &["seqdb", "list", "text"])
            .contains("text@0: expected a seqdb file, which begins with \"#!WINKME\"")
    );
    assert!(fails(dir, &["seqdb", "list", "absent"]).contains("absent"));
    assert!(fails(dir, &["seqdb", "get", "w.hindex", "a"]).contains("expected kvseq, found FORMAT 32"));
    assert!(fails(dir, &["seqdb", "get", "w.kvseq", "--pointer", "4097"]).contains("w.kvseq@4097"));
    assert!(fails(dir, &["seqdb", "get", "w.kvseq", "--pointer", "1"]).contains("no entry can start at 1"));
    assert!(fails(dir, &["seqdb", "create", "kvseq", "w.kvseq"]).contains("w.kvseq"));
    assert!(fails(dir, &["seqdb", "create", "kvseq", "n", "--keyrepr", "int9"]).contains("int9"));
    assert!(fails(dir, &["seqdb", "create", "kvseq", "n", "--sbsize", "65"]).contains("65"));
    assert!(fails(dir, &["seqdb", "create", "kvseq", "n", "--purpose", "NINE BYTES"]).contains("8 bytes"));
    assert!(
        fails(dir, &["seqdb", "create", "kvseq", "n", "--keyrepr", "fixed:0", "--valrepr", "fixed:0", "--no-delete"])
            .contains("no bytes")
    );
    assert!(fails(dir, &["seqdb", "create", "hindex", "n", "--container", "text"]).contains("text"));
    assert!(fails(dir, &["seqdb", "superblock", "w.kvseq", "--set", "SBSIZE", "64"]).contains("SBSIZE"));
    assert!(fails(dir, &["seqdb", "superblock", "w.kvseq", "--set", "lower", "64"]).contains("lower"));
    assert!(fails(dir, &["seqdb", "superblock", "w.kvseq", "--set", "ISZ", "many"]).contains("many"));
    assert!(fails(dir, &["seqdb", "rollback", "w.hindex"]).contains("index-rebuild"));
    assert!(!dir.join("n").exists(), "a refused creation leaves nothing");

    // A kvseq without delete flags says so.
    run(dir, &["seqdb", "create", "kvseq", "plain", "--no-delete"], 0);
    run(dir, &["seqdb", "add", "plain", "k", "v"], 0);
    assert!(fails(dir, &["seqdb", "delete", "plain", "k"]).contains("no delete flag"));
    run(dir, &["seqdb", "check", "plain"], 0);
}

#[test]
fn variables_are_shown_and_set() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    make(dir);
    let text = run(dir, &["seqdb", "superblock", "w.kvseq", "--set", "PURPOSE", "MINE", "--set", "USERVAR", "0x10"], 0);
    assert!(text.starts_with("Superblock of w.kvseq:\n  SBSIZE  :                4096\n"), "{text}");
    assert!(text.contains("\n  FORMAT  :                  16 (kvseq)\n"), "{text}");
    assert!(text.contains("(MINE)\n") && text.ends_with("  USERVAR :                  16\n"), "{text}");
    let json = &json_lines(&run(dir, &["--json", "seqdb", "superblock", "w.kvseq"], 0))[0];
    assert_eq!((&json["format"], &json["purpose"], &json["clean"]), (&json!("kvseq"), &json!("MINE"), &json!(true)));
    // User variables survive other changes.
    run(dir, &["seqdb", "add", "w.kvseq", "a", "b"], 0);
    run(dir, &["seqdb", "compact", "w.kvseq"], 0);
    assert!(run(dir, &["seqdb", "superblock", "w.kvseq"], 0).contains("USERVAR :                  16"));
}

#[test]
fn torn_files_are_found_and_repaired() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    make(dir);
    run(dir, &[&ADD[..], &["apple", "red"]].concat(), 0);
    run(dir, &[&ADD[..], &["fig", "green"]].concat(), 0);
    // As if the machine had stopped after fig was written and before it was synced.
    let end = json_lines(&run(dir, &["--json", "seqdb", "list", "w.kvseq"], 0))[1]["pointer"].as_u64().unwrap();
    run(dir, &["seqdb", "superblock", "w.kvseq", "--set", "SYNCSIZE", &end.to_string()], 0);
    run(dir, &["seqdb", "superblock", "w.hindex", "--set", "SYNCSIZE", "0"], 0);
    let text = fails(dir, &[&ADD[..], &["pear", "blue"]].concat());
    assert!(text.contains("not closed properly") && text.contains("trawl seqdb check"), "{text}");
    assert_eq!(run(dir, &["seqdb", "list", "w.kvseq"], 0), "apple\tred\n", "what was not synced is not believed");
    let found = json_lines(&run(dir, &["--json", "seqdb", "check", "w.kvseq"], 1));
    assert_eq!(found.iter().filter(|row| row["type"] == "fault").count(), 2, "{found:?}");
    assert!(run(dir, &["verify", "w.kvseq"], 1).contains("fault: w.hindex@0"));
    let done = json_lines(&run(dir, &["--json", "seqdb", "check", "w.kvseq", "--repair"], 0));
    assert!(done.iter().any(|row| row["type"] == "repaired" && row["done"]["new_bytes"] == end), "{done:?}");
    assert_eq!(run(dir, &["seqdb", "list", "w.kvseq"], 0), "apple\tred\n");

    // Salvage keeps what is whole instead.
    run(dir, &["seqdb", "add", "w.kvseq", "--index", "w.hindex", "fig", "green"], 0);
    run(dir, &["seqdb", "superblock", "w.kvseq", "--set", "SYNCSIZE", &end.to_string()], 0);
    run(dir, &["seqdb", "check", "w.kvseq", "--salvage"], 0);
    assert_eq!(run(dir, &["seqdb", "list", "w.kvseq"], 0), "apple\tred\nfig\tgreen\n");

    // Rollback is the same by name, and rebuilds what is named.
    run(dir, &["seqdb", "superblock", "w.kvseq", "--set", "SYNCSIZE", &end.to_string()], 0);
    run(dir, &["seqdb", "rollback", "w.kvseq", "--index", "w.hindex", "--perm", "w.perm"], 0);
    assert_eq!(run(dir, &["seqdb", "list", "w.kvseq"], 0), "apple\tred\n");
    sound(dir);
    run(dir, &["seqdb", "checkpoint", "w.kvseq"], 0);
    run(dir, &["seqdb", "checkpoint", "w.hindex"], 0);
    run(dir, &["seqdb", "checkpoint", "w.perm"], 0);

    // A file without a superblock is a fault, not a failure; one that is not there is a failure.
    std::fs::write(dir.join("cut.kvseq"), &std::fs::read(dir.join("w.kvseq")).unwrap()[..100]).unwrap();
    let text = run(dir, &["seqdb", "check", "cut.kvseq"], 1);
    assert!(text.contains("fault: cut.kvseq@"), "{text}");
    assert!(run(dir, &["inspect", "cut.kvseq"], 1).contains("damaged: cut.kvseq@"));
    run(dir, &["verify", "cut.kvseq"], 1);
    let text = fails(dir, &["seqdb", "check", "absent.kvseq"]);
    assert!(text.contains("absent.kvseq"), "{text}");
}

#[test]
fn other_commands_know_the_formats() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    make(dir);
    run(dir, &[&ADD[..], &["apple", "red"]].concat(), 0);
    let text = run(dir, &["inspect", "."], 0);
    for part in [
        "./w.hindex: hindex, 5 cells, 1 keys",
        "./w.kvseq: kvseq, 1 entries, 1 live",
        "./w.perm: perm, 1 pairs",
        "3 B  apple",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let facts = &json_lines(&run(dir, &["--json", "inspect", "w.kvseq"], 0))[0];
    assert_eq!((&facts["format"], &facts["counts"]["entries"]), (&json!("kvseq"), &json!(1)));
    assert_eq!(run(dir, &["verify", "."], 0), ".: 2 container(s), 2 entries: sound\n");
    assert_eq!(run(dir, &["cat", "w.kvseq"], 0), "apple\tred\n");
    assert_eq!(run(dir, &["cat", "w.kvseq", "--url", "apple"], 0), "apple\tred\n");
    assert_eq!(run(dir, &["cat", "w.kvseq", "--offset", "4096"], 0), "apple\tred\n");
    run(dir, &["cat", "w.kvseq", "--url", "none"], 1);
    let row = &json_lines(&run(dir, &["--json", "cat", "w.kvseq", "--digests"], 0))[0];
    assert_eq!(row["value"]["sha256"], "b1f51a511f1da0cd348b8f8598db32e61cb963e5fc69e2b41485bf99590ed75a");
    assert!(fails(dir, &["cat", "w.hindex"]).contains("trawl seqdb list"));
    assert!(fails(dir, &["cat", "w.kvseq", "--body"]).contains("captures"));
    for vector in ["v1.kvseq", "v2.hindex", "v3.hindex", "v4.perm", "v5.data", "v6.idx", "v7.time"] {
        let path = format!("{VECTORS}/{vector}");
        let facts = &json_lines(&run(dir, &["--json", "inspect", &path], if vector == "v5.data" { 1 } else { 0 }))[0];
        let format = ["kvseq", "hindex", "perm"].into_iter().find(|f| vector.ends_with(f));
        let format = format.unwrap_or(if vector.ends_with("idx") { "hindex" } else { "kvseq" });
        assert_eq!(facts["format"], format, "{vector}");
    }
}

#[test]
fn every_command_shows_an_example_of_itself() {
    let temp = tempfile::tempdir().unwrap();
    let help = |verbs: &[&str]| run(temp.path(), &[&["seqdb"], verbs, &["--help"]].concat(), 0);
    let listed = |text: &str| -> Vec<String> {
        let commands = text.split("Commands:").nth(1).map(|rest| rest.split("Options:").next().unwrap().to_owned());
        let names = commands.unwrap_or_default();
        let names = names.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        names
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help")
            .map(str::to_owned)
            .collect()
    };
    let (mut todo, mut seen) = (vec![Vec::new()], 0);
    while let Some(verbs) = todo.pop() {
        let words: Vec<&str> = verbs.iter().map(String::as_str).collect();
        let text = help(&words);
        let examples = text.lines().filter(|line| line.contains(&format!("trawl seqdb {}", words.join(" "))));
        assert!(examples.filter(|line| !line.starts_with("Usage")).count() > 0, "{words:?} has no example:\n{text}");
        todo.extend(listed(&text).into_iter().map(|name| [&verbs[..], &[name]].concat()));
        seen += 1;
    }
    assert!(seen > 30, "only {seen} commands");
}
