//! Partition files of the frontier, from lists and back.

mod common;

use common::{feed, stderr, stdout, trawl};
use std::path::Path;

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn json(dir: &Path, args: &[&str], status: i32) -> Vec<serde_json::Value> {
    let args: Vec<&str> = ["--json", "-q"].iter().chain(args).copied().collect();
    run(dir, &args, status).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

const LIST: &str = "https://a.example/?utm_source=x\nhttps://a.example/\nhttps://a.example/two\t2026-06-24\n\
    {\"url\":\"https://www.b.example/x\",\"ts\":\"2026-06-25T10:00:00Z\",\"status\":404}\nhttps://c.example/ \nmailto:a@b.example\n";

#[test]
fn a_list_becomes_a_file_that_can_be_asked() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("list.txt"), LIST).unwrap();
    let seed = json(dir, &["frontier", "seed", "list.txt", "--out", "a.meguri", "--created", "482817"], 1);
    assert_eq!((&seed[0]["urls"], &seed[0]["hosts"], &seed[0]["duplicates"]), (&4.into(), &3.into(), &1.into()));
    assert_eq!(seed[0]["rejected"].as_object().unwrap().len(), 1, "{seed:?}");

    let facts = &json(dir, &["frontier", "inspect", "a.meguri"], 0)[0];
    assert_eq!(
        (&facts["url_count"], &facts["created"], &facts["key_policy"]),
        (&4.into(), &482_817.into(), &"trawl".into())
    );
    assert!(run(dir, &["frontier", "inspect", "a.meguri"], 0).contains("flags        sorted|seenset|blob|ribbon"));

    let stats = &json(dir, &["frontier", "stats", "--data", "a.meguri"], 0)[0];
    assert_eq!(
        (&stats["statuses"]["scheduled"], &stats["statuses"]["crawled"], &stats["pending"]),
        (&3.into(), &1.into(), &3.into())
    );
    assert_eq!(stats["http_statuses"]["404"], 1);

    // The same from standard input, byte for byte.
    let mut command = trawl(dir);
    command.args(["-q", "frontier", "seed", "--out", "b.meguri", "--created", "482817"]);
    assert_eq!(feed(command, LIST.as_bytes()).status.code(), Some(1));
    assert!(std::fs::read(dir.join("a.meguri")).unwrap() == std::fs::read(dir.join("b.meguri")).unwrap());
    run(dir, &["frontier", "diff", "a.meguri", "b.meguri"], 0);

    // A file is a list, too.
    let again = json(dir, &["frontier", "seed", "a.meguri", "--out", "c.meguri", "--created", "482817", "--pack"], 0);
    assert_eq!(again[0]["urls"], 4);
    let wrong = trawl(dir).args(["frontier", "inspect", "list.txt"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("MEG1"), "{}", stderr(&wrong));
}

#[test]
fn split_merge_compact_map_diff() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let urls: String = (0..300).map(|n| format!("https://host{}.example/page/{n}\n", n % 17)).collect();
    std::fs::write(dir.join("all.txt"), &urls).unwrap();
    run(dir, &["-q", "frontier", "seed", "all.txt", "--out", "all.meguri", "--created", "1"], 0);
    let key = "0x8000000000000000";
    let parts =
        json(dir, &["frontier", "split", "all.meguri", "--at", key, "--low", "low.meguri", "--high", "high.meguri"], 0);
    let rows: u64 = parts.iter().map(|p| p["urls"].as_u64().unwrap()).sum();
    assert_eq!((parts.len(), rows), (2, 300));

    let map = json(dir, &["frontier", "map", "--manifest", "m", "low.meguri", "high.meguri"], 0);
    assert_eq!(map.len(), 3, "two partitions and the coverage: {map:?}");
    let routed = json(dir, &["frontier", "map", "--manifest", "m", "--host", "0xffff000000000000"], 0);
    assert_eq!(routed[0]["file_ref"], "high.meguri");
    run(dir, &["frontier", "map", "--manifest", "m", "--host", "1", "--epoch", "7"], 1);
    run(dir, &["-q", "frontier", "map", "--manifest", "half", "low.meguri"], 1);

    let merged = json(dir, &["frontier", "merge", "low.meguri", "high.meguri", "--out", "both.meguri"], 0);
    assert_eq!((&merged[0]["urls"], &merged[0]["superseded"]), (&300.into(), &0.into()));
    run(dir, &["frontier", "diff", "all.meguri", "both.meguri"], 0);
    let compact = json(dir, &["frontier", "compact", "all.meguri", "low.meguri", "--gc"], 0);
    assert_eq!((&compact[0]["urls"], &compact[0]["file"]), (&300.into(), &"./compact.meguri".into()));
    let half = json(dir, &["frontier", "merge", "all.meguri", "--from", key, "--out", "upper.meguri"], 0);
    assert_eq!(half[0]["urls"], parts[1]["urls"]);

    std::fs::write(dir.join("more.txt"), "https://host0.example/page/0\t2026-01-01\nhttps://new.example/\n").unwrap();
    run(dir, &["-q", "frontier", "seed", "more.txt", "--out", "more.meguri", "--created", "1"], 0);
    run(dir, &["-q", "frontier", "merge", "all.meguri", "more.meguri", "--out", "newer.meguri"], 0);
    let changes = json(dir, &["frontier", "diff", "all.meguri", "newer.meguri"], 1);
    let total = changes.last().unwrap();
    assert_eq!(
        (&total["added"], &total["removed"], &total["changed"], &total["same"]),
        (&1.into(), &0.into(), &1.into(), &299.into())
    );
    assert!(changes.iter().any(|c| c["change"] == "changed" && c["fields"]["first_seen"][0] == 1), "{changes:?}");
    let text = run(dir, &["frontier", "diff", "all.meguri", "newer.meguri"], 1);
    assert!(
        text.contains("+ https://new.example/\n") && text.contains("1 added, 0 removed, 1 changed, 299 the same"),
        "{text}"
    );
}

#[test]
fn what_is_due() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    // A published file: hours 400 to 405 are due.
    std::fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/meguri/tests/data/v1.meguri"),
        dir.join("v1.meguri"),
    )
    .unwrap();
    let due = json(dir, &["frontier", "schedule", "--data", "v1.meguri", "--before", "402"], 0);
    let mut urls: Vec<_> = due.iter().map(|d| d["url"].as_str().unwrap()).collect();
    urls.sort_unstable();
    assert_eq!(urls, ["example.com/", "example.com/about", "example.com/blog?page=2"]);
    assert_eq!(json(dir, &["frontier", "schedule", "v1.meguri", "--limit", "2"], 0).len(), 2);
    assert_eq!(json(dir, &["frontier", "schedule", "v1.meguri", "--host", "golang.org"], 0).len(), 2);
    assert_eq!(json(dir, &["frontier", "schedule", "v1.meguri", "--host", "0x5c94d8be4d1cd6be"], 0).len(), 2);
    run(dir, &["frontier", "schedule", "v1.meguri", "--before", "399"], 1);
    run(dir, &["frontier", "schedule", "v1.meguri", "--before", "1970-01-17T00:00:00Z"], 1);
}

#[test]
fn files_are_inspected_verified_and_printed_like_any_other() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("list.txt"), LIST).unwrap();
    run(dir, &["-q", "frontier", "seed", "list.txt", "--out", "a.meguri", "--created", "482817"], 1);
    let facts = &json(dir, &["inspect", "a.meguri", "-n", "2"], 0)[0];
    assert_eq!((&facts["format"], &facts["urls"], &facts["hosts"]), (&"meguri".into(), &4.into(), &3.into()));
    assert_eq!(facts["sample"].as_array().unwrap().len(), 2);
    assert!(facts["url_columns"].as_array().unwrap().len() >= 23);
    assert!(run(dir, &["-q", "inspect", "a.meguri"], 0).contains("4 urls, 3 hosts"));
    let summary = &json(dir, &["verify", "a.meguri"], 0)[0];
    assert_eq!(summary["checked"]["containers"]["entries"], 7);

    let cat = |more: &[&str], status: i32| -> Vec<String> {
        let args: Vec<&str> = ["cat", "a.meguri"].iter().chain(more).copied().collect();
        let rows = json(dir, &args, status);
        let mut urls: Vec<String> = rows.iter().map(|row| row["url"].as_str().unwrap().to_owned()).collect();
        urls.sort_unstable();
        urls
    };
    let all = cat(&[], 0);
    assert_eq!(all.len(), 4);
    assert_eq!(cat(&["--host", "www.b.example"], 0), ["https://www.b.example/x"]);
    assert_eq!(cat(&["--host", "a.example"], 0), ["https://a.example/?utm_source=x", "https://a.example/two"]);
    assert_eq!(cat(&["--host", "a.example", "--status", "crawled"], 1), [""; 0]);
    assert_eq!(cat(&["--status", "crawled"], 0), ["https://www.b.example/x"]);
    assert_eq!(cat(&["--status", "404"], 0), ["https://www.b.example/x"]);
    assert_eq!(cat(&["--url", "https://a.example/two?utm_source=y"], 0), ["https://a.example/two"]);
    assert_eq!(cat(&["--url", "https://a.example/nowhere"], 1), [""; 0]);
    assert_eq!(cat(&["--offset", "0"], 0).len(), 1);
    assert_eq!(cat(&["--due-before", "0"], 1), [""; 0], "nothing was ever scheduled");
    let wrong = trawl(dir).args(["cat", "a.meguri", "--status", "lost"]).output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(stderr(&wrong).contains("excluded_robots"), "{}", stderr(&wrong));

    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/meguri/tests/data/v1.meguri");
    std::fs::copy(golden, dir.join("v1.meguri")).unwrap();
    let due = json(dir, &["cat", "v1.meguri", "--due-before", "402", "--host", "example.com"], 0);
    assert_eq!(due.len(), 3);
    assert!(due.iter().all(|row| (400..=402).contains(&row["next_due"].as_u64().unwrap())), "{due:?}");

    // A flipped bit is told with its place.
    let mut bytes = std::fs::read(dir.join("a.meguri")).unwrap();
    bytes[100] ^= 1;
    std::fs::write(dir.join("bad.meguri"), bytes).unwrap();
    let faults = json(dir, &["verify", "bad.meguri"], 1);
    assert!(faults.iter().any(|f| f["type"] == "fault" && f["offset"].as_u64().is_some()), "{faults:?}");
    // Rows can only be chosen where there are some.
    std::fs::write(dir.join("x.warc"), "WARC/1.0\r\n\r\n").unwrap();
    run(dir, &["cat", "x.warc", "--host", "a.example"], 2);
}

#[test]
fn a_lake_takes_a_file_once() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("list.txt"), LIST).unwrap();
    run(dir, &["-q", "frontier", "seed", "list.txt", "--out", "a.meguri", "--created", "482817"], 1);
    let ingest = ["lake", "ingest", "a.meguri", "--lake", "lake", "--dataset", "front"];
    let first = json(dir, &ingest, 0);
    assert_eq!(first.last().unwrap()["rows"], 4, "{first:?}");
    let again = json(dir, &ingest, 0);
    assert_eq!(again.last().unwrap()["rows"], 0, "{again:?}");
    let urls = json(dir, &["query", "urls", "--lake", "lake", "b.example", "front"], 0);
    let text = serde_json::to_string(&urls).unwrap();
    assert!(text.contains("https://www.b.example/x") && text.contains("404"), "{text}");
}

/// A file that is there is never replaced unasked, and an input never at all.
#[test]
fn outputs_do_not_replace_what_is_there() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("list.txt"), LIST).unwrap();
    json(dir, &["frontier", "seed", "list.txt", "--out", "a.meguri"], 1);
    json(dir, &["frontier", "seed", "list.txt", "--out", "b.meguri"], 1);
    std::fs::write(dir.join("precious"), b"precious").unwrap();
    std::os::unix::fs::symlink("a.meguri", dir.join("link.meguri")).unwrap();
    let refused = |args: &[&str], why: &str| {
        let output = trawl(dir).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    };
    let before = std::fs::read(dir.join("a.meguri")).unwrap();
    for command in [
        &["frontier", "seed", "list.txt", "--out", "precious"][..],
        &["frontier", "merge", "a.meguri", "--out", "precious"],
        &["frontier", "compact", "a.meguri", "--out", "precious"],
        &["frontier", "map", "--manifest", "precious", "a.meguri"],
        &["frontier", "split", "a.meguri", "--at", "5", "--low", "precious", "--high", "new.meguri"],
        &["frontier", "split", "a.meguri", "--at", "5", "--low", "new.meguri", "--high", "precious"],
    ] {
        refused(command, "--overwrite");
    }
    for command in [
        &["frontier", "seed", "a.meguri", "--out", "a.meguri", "--overwrite"][..],
        &["frontier", "merge", "b.meguri", "a.meguri", "--out", "./a.meguri", "--overwrite"],
        &["frontier", "merge", "b.meguri", "link.meguri", "--out", "a.meguri", "--overwrite"],
        &["frontier", "compact", "a.meguri", "--out", "a.meguri", "--overwrite"],
        &["frontier", "map", "--manifest", "a.meguri", "a.meguri", "b.meguri", "--overwrite"],
        &["frontier", "split", "a.meguri", "--at", "5", "--low", "a.meguri", "--high", "new.meguri", "--overwrite"],
    ] {
        refused(command, "is an input");
    }
    std::os::unix::fs::symlink(".", dir.join("here")).unwrap();
    for high in ["new", "./new", "here/new"] {
        refused(&["frontier", "split", "a.meguri", "--at", "5", "--low", "new", "--high", high], "the same file");
        assert!(!dir.join("new").exists());
    }
    refused(&["frontier", "split", "a.meguri", "--at", "0", "--low", "new", "--high", "other"], "above 0");
    assert!(std::fs::read(dir.join("a.meguri")).unwrap() == before);
    assert_eq!(std::fs::read(dir.join("precious")).unwrap(), b"precious");
    run(dir, &["frontier", "merge", "a.meguri", "b.meguri", "--out", "precious", "--overwrite"], 0);
    run(dir, &["verify", "precious"], 0);
}

/// States and due times go over; what a file or a database knows is not begun anew.
#[test]
fn seeds_keep_their_state() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let crawldb = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/nutch/tests/fixtures/crawl-e2e/crawldb");
    let seed = json(dir, &["frontier", "seed", crawldb.to_str().unwrap(), "--out", "a.meguri"], 0);
    assert_eq!((&seed[0]["urls"], &seed[0]["carried"]), (&139.into(), &139.into()));
    run(dir, &["verify", "a.meguri"], 0);
    let stats = &json(dir, &["frontier", "stats", "a.meguri"], 0)[0];
    let of = |status: &str| stats["statuses"][status].as_u64().unwrap_or(0);
    let entries = json(dir, &["cat", crawldb.to_str().unwrap()], 0);
    let in_db = |name: &str| entries.iter().filter(|e| e["value"]["status_name"] == name).count() as u64;
    assert_eq!((of("scheduled"), of("gone")), (in_db("db_unfetched"), in_db("db_gone")));
    assert!(of("crawled") > 0 && of("gone") > 0 && of("scheduled") > 0);
    let rows = json(dir, &["cat", "a.meguri"], 0);
    for entry in entries.iter().take(30) {
        let row = rows.iter().find(|row| row["url"] == entry["key"]).unwrap();
        let due = entry["value"]["fetchTime"].as_u64().unwrap();
        assert_eq!((&row["due_ms"], &row["next_due"]), (&due.into(), &(due / 3_600_000).into()), "{row}");
    }
    // Signatures and media types have no column: they are in what the source knew.
    let signed = entries.iter().find(|entry| entry["value"]["signature"].is_string()).unwrap();
    let row = rows.iter().find(|row| row["url"] == signed["key"]).unwrap();
    let meta: serde_json::Value = serde_json::from_str(row["meta_json"].as_str().unwrap()).unwrap();
    assert_eq!(meta["digest"].as_str().unwrap(), format!("md5:{}", signed["value"]["signature"].as_str().unwrap()));
    assert!(rows.iter().any(|row| row["meta_json"].as_str().unwrap().contains("\"content_type\":\"text/html")));
    // Beside the segments that it was made from: captures of the same fetches say nothing of when a page is due.
    let crawl = crawldb.parent().unwrap().to_str().unwrap();
    let all = json(dir, &["frontier", "seed", crawl, "--out", "e.meguri"], 0);
    assert_eq!((&all[0]["urls"], &all[0]["carried"]), (&139.into(), &139.into()), "{all:?}");
    let with_captures = json(dir, &["cat", "e.meguri"], 0);
    for row in &rows {
        let other = with_captures.iter().find(|other| other["key"] == row["key"]).unwrap();
        for field in ["status", "priority", "next_due", "due_ms", "last_crawled", "retry_count", "meta_json"] {
            assert_eq!(row[field], other[field], "{field} of {row} and {other}");
        }
    }
    assert!(with_captures.iter().any(|row| row["http_status"] == 200 && row["archive_file"].is_string()));
    // Once more, through the file itself: the rows are the same.
    json(dir, &["frontier", "seed", "a.meguri", "--out", "b.meguri"], 0);
    run(dir, &["frontier", "diff", "a.meguri", "b.meguri"], 0);
    // Without what is gone, hosts count what is left.
    run(dir, &["frontier", "compact", "a.meguri", "--gc", "--out", "c.meguri"], 0);
    run(dir, &["verify", "c.meguri"], 0);
    // Keys of another policy: the rows stay as they are, hosts begin anew, and that is said.
    let exact = json(dir, &["frontier", "seed", "a.meguri", "--out", "d.meguri", "--key-policy", "reference"], 0);
    assert!(
        exact[0]["hosts_not_carried"].as_u64().unwrap() > 0 && exact[0]["carried"].as_u64().unwrap() > 0,
        "{exact:?}"
    );
}

/// Rows that lie under the key of another URL are left out and told, never printed as if nothing were wrong.
#[test]
fn a_row_under_the_key_of_another_url_is_left_out() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    std::fs::write(dir.join("list.txt"), "https://a.example/?utm_source=x\nhttps://a.example/two\n").unwrap();
    run(dir, &["-q", "frontier", "seed", "list.txt", "--out", "a.meguri", "--created", "482817"], 0);
    // The file says now that keys are those of the exact spelling, which only one of them is.
    let mut bytes = std::fs::read(dir.join("a.meguri")).unwrap();
    let at = bytes.windows(16).position(|w| w == b"key_policy\x05trawl").unwrap() + 11;
    bytes[at..at + 5].copy_from_slice(b"exact");
    let end = bytes.len() - 12;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
    let crc = trawl_io::crc::crc32c(&bytes[end - length..end]);
    bytes[end + 4..end + 8].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(dir.join("bad.meguri"), bytes).unwrap();

    let faults = json(dir, &["verify", "bad.meguri"], 1);
    assert!(
        faults.iter().any(|f| f["detail"].as_str().is_some_and(|d| d.starts_with("1 rows have a key"))),
        "{faults:?}"
    );
    let rows = json(dir, &["cat", "bad.meguri"], 1);
    assert_eq!((rows.len(), &rows[0]["url"]), (1, &"https://a.example/two".into()));
    let output = trawl(dir).args(["-q", "cat", "bad.meguri"]).output().unwrap();
    assert!(stderr(&output).contains("expected a row with the key of its URL"), "{}", stderr(&output));
    let seeded = &json(dir, &["frontier", "seed", "bad.meguri", "--out", "c.meguri"], 1)[0];
    assert_eq!((&seeded["urls"], &seeded["unreadable_items"]), (&1.into(), &1.into()), "{seeded}");
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "d", "bad.meguri"], 1);
}
