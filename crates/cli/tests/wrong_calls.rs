//! Wrong calls, each with its exit code and what is said about it.

mod common;

use common::{stderr, stdout, trawl};
use std::path::Path;

#[test]
fn a_wrong_call_is_answered_with_what_is_wrong() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().canonicalize().unwrap();
    prepare(&dir);
    let mut wrong = Vec::new();
    for line in include_str!("wrong_calls.txt").lines().filter(|line| !line.starts_with('#')) {
        let parts: Vec<_> = line.splitn(3, " | ").collect();
        let [code, args, expected] = parts[..] else { panic!("{line}") };
        let output = trawl(&dir).args(words(args)).stdin(std::process::Stdio::null()).output().unwrap();
        let said = format!("{}{}", stdout(&output), stderr(&output)).replace(&format!("{}/", dir.display()), "");
        if output.status.code() != code.parse().ok() || !said.contains(expected) {
            wrong.push(format!("{line}\n  exit {:?}: {said}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{} of the calls:\n{}", wrong.len(), wrong.join("\n"));
}

/// Arguments as a shell would split them; quotes are all that is needed here.
fn words(args: &str) -> Vec<String> {
    let (mut words, mut quoted, mut open) = (Vec::new(), false, false);
    for c in args.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                if !open {
                    words.push(String::new());
                    open = true;
                }
            }
            ' ' if !quoted => open = false,
            _ if open => words.last_mut().unwrap().push(c),
            _ => {
                words.push(c.to_string());
                open = true;
            }
        }
    }
    words
}

fn prepare(dir: &Path) {
    let put = |name: &str, content: &[u8]| std::fs::write(dir.join(name), content).unwrap();
    put("list.txt", b"http://127.0.0.1:9/\n");
    put("empty.txt", b"");
    put("ftp.txt", b"ftp://a.com/\n");
    put("table.csv", b"a,b\n1,2\n");
    put("parts.csv", b"scheme,host,path_query\nhttp,a.example,/x\n");
    put("page.html", b"<html><body>hi</body></html>\n");
    put("two.txt", b"http://example.com/a\nhttp://example.com/b\n");
    put("junk.bin", &[6, 0x78, 0x38, 0xad, 0x8f, 0x7f, 0xe0, 0xf6].repeat(400));
    let record = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
        WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Target-URI: http://a.example/\r\nContent-Type: text/plain\r\n\
        Content-Length: 5\r\n\r\nhello\r\n\r\n";
    put("good.warc", record.as_bytes());
    // The head of a gzip member, and what no deflate stream can end with.
    put("cut.warc.gz", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x0b, 0x77]);
    for name in ["emptydir", "full"] {
        std::fs::create_dir(dir.join(name)).unwrap();
    }
    put("full/x", b"x");
    let made =
        trawl(dir).args(["-q", "lake", "ingest", "--lake", "lk", "--dataset", "one", "two.txt"]).output().unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
}
