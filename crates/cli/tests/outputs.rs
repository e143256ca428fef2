//! What commands write, and where: never over what they read, everything that was read, and no more than was asked for.

mod common;

use common::lakes::{ask, refuse, write};
use common::warcs::{page, record};
use common::{stderr, stdout, trawl};
use std::os::unix::fs::symlink;

#[test]
fn no_output_replaces_an_input() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let warc = page("http://a.example/", 1);
    write(dir, "d/a.warc", &warc);
    write(dir, "other.warc", page("http://a.example/2", 2));
    ask(dir, &["captures", "rebuild", "d"], 0);
    ask(dir, &["cdxj", "index", "d/a.warc", "-o", "a.cdxj"], 0);
    write(dir, "seeds.txt", "http://a.example/\n");
    ask(dir, &["frontier", "seed", "seeds.txt", "--out", "a.meguri"], 0);
    symlink("d/a.warc", dir.join("link")).unwrap();
    symlink("d", dir.join("e")).unwrap();
    std::fs::hard_link(dir.join("d/a.warc"), dir.join("hard")).unwrap();
    let files = || {
        ["d/a.warc", "other.warc", "d/captures.parquet", "a.cdxj", "seeds.txt", "a.meguri", "hard", "link"]
            .map(|name| std::fs::read(dir.join(name)).unwrap())
    };
    let before = files();
    for args in [
        &["cdxj", "index", "d/a.warc", "-o", "d/a.warc"][..],
        &["cdxj", "index", "d", "-o", "./d/../d/a.warc"],
        &["cdxj", "index", "d", "-o", "e/a.warc"],
        &["cdxj", "index", "d/a.warc", "-o", "link"],
        &["cdxj", "index", "d/a.warc", "-o", "hard"],
        &["cdxj", "index", "link", "-o", "d/a.warc"],
        &["cdxj", "index", "d/a.warc", "-o", "other.warc"],
        &["cdxj", "merge", "a.cdxj", "-o", "a.cdxj"],
        &["captures", "rebuild", "d", "-o", "d/a.warc"],
        &["captures", "rebuild", "d", "-o", "link"],
        &["captures", "rebuild", "d", "-o", "other.warc"],
        &["captures", "export", "d/captures.parquet", "d/captures.parquet"],
        &["captures", "export", "d/captures.parquet", "other.warc"],
        &["convert", "d/a.warc", "d/a.warc", "--overwrite"],
        &["convert", "d", "e/a.warc", "--overwrite"],
        &["convert", "other.warc", "d/a.warc", "e/../d/a.warc", "--overwrite"],
        &["frontier", "seed", "seeds.txt", "--out", "seeds.txt"],
        &["frontier", "merge", "a.meguri", "--out", "a.meguri"],
    ] {
        let said = refuse(dir, args);
        assert!(said.contains("choose another name"), "{args:?}: {said}");
        assert_eq!(files(), before, "{args:?}");
    }
}

#[test]
fn files_of_one_name_are_told_apart_in_an_index() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "x/a.warc", page("http://a.example/", 1));
    write(dir, "y/a.warc", page("http://a.example/", 1));
    let index = |paths: &[&str]| {
        let said = trawl(dir).args(["-q", "cdxj", "index"]).args(paths).output().unwrap();
        assert_eq!(said.status.code(), Some(0), "{}", stderr(&said));
        stdout(&said)
    };
    let both = index(&["x/a.warc", "y/a.warc"]);
    assert!(both.contains("\"x/a.warc\"") && both.contains("\"y/a.warc\"") && both.lines().count() == 2, "{both}");
    // The same file twice is one.
    let once = index(&["x/a.warc", "x/../x/a.warc", "x"]);
    assert!(once.contains("\"a.warc\"") && once.lines().count() == 1, "{once}");
    // Two packages with an archive of one name, and one with two entries of one name.
    ask(dir, &["convert", "x/a.warc", "one.wacz"], 0);
    ask(dir, &["convert", "y/a.warc", "two.wacz"], 0);
    let packages = index(&["one.wacz", "two.wacz"]);
    assert!(packages.contains("\"one.wacz/archive/a.warc\"") && packages.lines().count() == 2, "{packages}");
    write(
        dir,
        "twice.wacz",
        zip(&[("archive/a.warc", &page("http://a.example/1", 1)), ("archive/a.warc", &page("http://a.example/2", 2))]),
    );
    let twice = index(&["twice.wacz"]);
    assert!(twice.contains("a.example/1") && twice.contains("a.example/2") && twice.contains("a.warc#2\""), "{twice}");
}

/// A ZIP file of stored entries.
fn zip(entries: &[(&str, &str)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, text) in entries {
        let crc = crc32(text.as_bytes()).to_le_bytes();
        let (size, len) = ((text.len() as u32).to_le_bytes(), (name.len() as u16).to_le_bytes());
        let at = (out.len() as u32).to_le_bytes();
        let common = [&[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..], &crc, &size, &size, &len, &[0, 0]].concat();
        out.extend([b"PK\x03\x04", &common[..], name.as_bytes(), text.as_bytes()].concat());
        directory.extend([b"PK\x01\x02\x14\0", &common[..], &[0; 10], &at, name.as_bytes()].concat());
    }
    let (n, size, at) = (entries.len() as u16, directory.len() as u32, out.len() as u32);
    out.extend(&directory);
    out.extend(
        [
            b"PK\x05\x06\0\0\0\0",
            &n.to_le_bytes()[..],
            &n.to_le_bytes(),
            &size.to_le_bytes(),
            &at.to_le_bytes(),
            &[0, 0],
        ]
        .concat(),
    );
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// A record without a date is packed all the same, listed as of 1970, and named.
#[test]
fn one_bad_record_does_not_spoil_a_package() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let undated =
        record("response", "http://a.example/bad", 2, "WARC-Date: not a date\r\n", "HTTP/1.1 200 OK\r\n\r\nx");
    let good = [page("http://a.example/1", 1), undated, page("http://a.example/3", 3)].concat();
    write(dir, "undated.warc", &good);
    let third =
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000003>\r\n";
    assert!(good.contains(third));
    write(dir, "damaged.warc", good.replace(third, "garbage, ") + &page("http://a.example/4", 4));
    for (source, records) in [("undated.warc", 3), ("damaged.warc", 3)] {
        let target = source.replace("warc", "wacz");
        let said = trawl(dir).args(["--json", "-q", "convert", source, &target]).output().unwrap();
        assert_eq!(said.status.code(), Some(1), "{source}: {}{}", stdout(&said), stderr(&said));
        assert!(stderr(&said).contains("WARC-Date"), "{}", stderr(&said));
        let done: serde_json::Value = serde_json::from_str(&stdout(&said)).unwrap();
        assert_eq!((done["records"].as_u64(), done["unlisted"].as_u64()), (Some(records), Some(1)), "{done}");
        let lines = trawl(dir).args(["-q", "cdxj", "index", &target]).output().unwrap();
        assert_eq!(stdout(&lines).lines().count() as u64, records);
    }
    // Of a date that is none, verify speaks.
    let found = ask(dir, &["verify", "undated.warc"], 1);
    assert!(found.iter().any(|line| line["kind"] == "date"), "{found:?}");
}

/// Files keep what was found, screens do not, and say so.
#[test]
fn names_and_passwords_in_an_index() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(dir, "a.warc", page("http://me:secret@a.example/", 1));
    ask(dir, &["cdxj", "index", "a.warc", "--out", "a.cdxj"], 0);
    assert!(std::fs::read_to_string(dir.join("a.cdxj")).unwrap().contains("me:secret@"));
    for args in [&["cdxj", "index", "a.warc"][..], &["cdxj", "merge", "a.cdxj"]] {
        let said = trawl(dir).args(args).output().unwrap();
        assert!(!stdout(&said).contains("secret") && stderr(&said).contains("--credentials"), "{}", stderr(&said));
        let asked = trawl(dir).arg("--credentials").args(args).output().unwrap();
        assert!(stdout(&asked).contains("me:secret@") && stderr(&asked).is_empty(), "{}", stderr(&asked));
    }
}

#[test]
fn a_full_disk_behind_standard_output_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = trawl(temp.path()).args(["url", "http://a.example/"]).stdout(full).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("trawl: cannot write to standard output: No space left on device"), "{said}");
}
