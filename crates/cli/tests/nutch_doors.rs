//! Hadoop's and Nutch's files through the commands that know every container.

mod common;

use common::{Web, stderr, stdout, trawl};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn formats(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats").join(path)
}

fn nutch(path: &str) -> String {
    formats("nutch/tests/fixtures").join(path).canonicalize().unwrap().to_str().unwrap().to_owned()
}

fn run(dir: &Path, args: &[&str], status: i32) -> String {
    let output = trawl(dir).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every SequenceFile below `dir`.
fn sequence_files(dir: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sequence_files(&path, out);
        } else if std::fs::read(&path).unwrap().starts_with(b"SEQ") {
            out.push(path);
        }
    }
}

/// Whether a line has everything that is expected: those of the oldest releases were written down with fewer fields.
fn contains(ours: &Value, expected: &Value) -> bool {
    match (ours, expected) {
        (Value::Object(a), Value::Object(b)) => {
            b.iter().all(|(k, v)| k == "version_byte" || a.get(k).is_some_and(|ours| contains(ours, v)))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| contains(a, b)),
        (a, b) => a == b,
    }
}

#[test]
fn cat_prints_what_real_code_printed_for_every_fixture() {
    let mut count = 0;
    for root in [formats("nutch/tests/fixtures"), formats("hadoop/tests/fixtures")] {
        let mut files = Vec::new();
        sequence_files(&root, &mut files);
        for path in files {
            let name = path.strip_prefix(&root).unwrap();
            let expected = root.join("expected").join(format!("{}.jsonl", name.display()));
            let expected = std::fs::read_to_string(expected).unwrap();
            let empty = expected.is_empty();
            let file = path.to_str().unwrap();
            let ours = run(&root, &["cat", file, "--json=digest"], i32::from(empty));
            count += 1;
            if ours == expected {
                continue;
            }
            // The oldest ones lack fields, and one was written down without places.
            assert!(name.starts_with("legacy") || name.ends_with("v6-record-zstd.seq"), "{}", name.display());
            let (ours, expected) = (json_lines(&ours), json_lines(&expected));
            assert_eq!(ours.len(), expected.len());
            for (ours, expected) in ours.iter().zip(&expected) {
                assert!(contains(ours, expected), "{}:\n{ours}\n{expected}", name.display());
            }
        }
    }
    assert_eq!(count, 162 + 61);
}

#[test]
fn complete_json_has_no_hash_in_place_of_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let mut long = 0;
    for part in ["content/part-r-00000/data", "parse_text/part-r-00000/data", "parse_data/part-r-00000/data"] {
        let file = nutch(&format!("crawl-e2e/segments/20261115074416/{part}"));
        let complete = run(dir.path(), &["cat", &file, "--json"], 0);
        for line in json_lines(&complete) {
            // A content has its digest beside its bytes, not instead of them.
            let content = &line["value"]["content_base64"];
            assert_eq!(content.is_string(), line["value"]["content_sha256"].is_string(), "{part}");
            assert!(!line.to_string().contains("\"sha256\""), "{part}: {line}");
        }
        long += usize::from(complete.len() > run(dir.path(), &["cat", &file, "--json=digest"], 0).len());
    }
    assert!(long > 0, "no fixture has a long value");
}

#[test]
fn inspect_and_verify_know_them_all() {
    let dir = tempfile::tempdir().unwrap();
    let facts = json_lines(&run(dir.path(), &["--json", "-q", "inspect", &nutch("crawl-e2e")], 0));
    let files: BTreeSet<_> = facts.iter().map(|fact| fact["file"].as_str().unwrap().to_owned()).collect();
    for part in ["crawldb", "linkdb", "segments/20261115074402", "segments/20261115074416", "hostdb", "webgraphdb"] {
        assert!(files.iter().any(|file| file.contains(part)), "{part}: {files:?}");
    }
    let crawldb = facts.iter().find(|fact| fact["file"].as_str().unwrap().contains("crawldb!current/part-r-00000"));
    assert_eq!(crawldb.unwrap()["records"], 69);
    for name in ["crawl-e2e", "crawl-synth", "types", "legacy/nutch-0.4", "legacy/nutch-0.6", "legacy/nutch-0.7.2"] {
        let told = run(dir.path(), &["-q", "verify", &nutch(name)], 0);
        assert!(told.contains("sound"), "{name}: {told}");
    }
    for name in ["seqfiles", "seqversions", "mapfiles"] {
        let path = formats("hadoop/tests/fixtures").join(name);
        let told = run(dir.path(), &["-q", "verify", path.to_str().unwrap()], 0);
        assert!(told.contains("sound"), "{name}: {told}");
    }
}

/// The fetches of contents lie beside them, and places begin with the name of the segment.
#[test]
fn from_within_a_segment_its_captures_are_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let segment = PathBuf::from(nutch("crawl-e2e/segments/20261115074416"));
    let out = dir.path().join("seeds.meguri");
    let seed = |within: &Path, path: &str| {
        let out = out.to_str().unwrap();
        run(within, &["-q", "frontier", "seed", path, "--out", out, "--overwrite", "--created", "482817"], 0);
        std::fs::read(out).unwrap()
    };
    let paths = [("", "."), ("", "content"), ("content", "."), ("content", ".."), ("content", "part-r-00000")];
    for (within, path) in paths.into_iter().chain([("content", "../crawl_fetch"), ("content/part-r-00000", "data")]) {
        let within = segment.join(within);
        let whole = within.join(path).canonicalize().unwrap();
        assert!(seed(&within, path) == seed(dir.path(), whole.to_str().unwrap()), "{path} in {}", within.display());
    }
}

#[test]
fn a_crawl_into_a_segment_and_what_can_be_made_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let web = Web::start(dir);
    let crawled = web.crawl(dir, &["--format", "nutch", "--run-id", "one"]);
    assert_eq!(crawled.status.code(), Some(0), "{}", stderr(&crawled));
    let segment = "crawl/one/trawl-one-00000.segment";
    assert!(dir.join(segment).join("content/part-r-00000/data").is_file());
    assert!(!dir.join("crawl/one/trawl-one-00000.segment.spool").exists());
    // Going on with nothing left makes no second segment.
    let resumed = web.crawl(dir, &["--format", "nutch", "--run-id", "one", "--resume"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert!(!dir.join("crawl/one/trawl-one-00001.segment").exists());
    let told = run(dir, &["-q", "verify", "crawl/one"], 0);
    assert!(told.contains("sound"), "{told}");
    let report: Value = serde_json::from_slice(&std::fs::read(dir.join("crawl/one/run.json")).unwrap()).unwrap();
    let files: Vec<_> = report["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert!(files.contains(&"trawl-one-00000.segment/content/part-r-00000/data"), "{files:?}");

    // Nutch's own readers see it as theirs, and so does the index: each row points at its capture.
    let list = run(dir, &["nutch", "readseg", "-list", segment], 0);
    assert_eq!(list.lines().count(), 2, "{list}");
    let rows = json_lines(&run(dir, &["cat", "crawl/one/captures.parquet", "--json"], 0));
    let mut checked = 0;
    for row in rows.iter().filter(|row| row["status"] == 200).take(20) {
        let (file, offset) =
            (format!("crawl/one/{}", row["warc_file"].as_str().unwrap()), row["warc_offset"].to_string());
        let by_place = run(dir, &["cat", &file, "--offset", &offset, "--body"], 0);
        let by_url = run(dir, &["cat", segment, "--url", row["url"].as_str().unwrap(), "--body"], 0);
        assert_eq!(by_place, by_url);
        checked += 1;
    }
    assert_eq!(checked, 20);
    let page = rows.iter().find(|row| row["url"].as_str().unwrap().ends_with('/') && row["status"] == 200).unwrap();
    let page = page["url"].as_str().unwrap();
    assert!(run(dir, &["cat", segment, "--url", page, "--head"], 0).starts_with("HTTP/1.1 200"));
    run(dir, &["cat", segment, "--url", "http://nowhere.example/", "--body"], 1);

    // To WARC and back: the same bodies, and nothing is dropped on the way back but what WARC adds.
    run(dir, &["-q", "convert", segment, "a.warc.gz"], 0);
    run(dir, &["-q", "verify", "a.warc.gz"], 0);
    run(dir, &["-q", "convert", "a.warc.gz", "b.segment", "--compress", "block"], 1);
    run(dir, &["-q", "verify", "b.segment"], 0);
    for row in rows.iter().filter(|row| row["status"] == 200).take(20) {
        let url = row["url"].as_str().unwrap();
        let body = |path: &str| run(dir, &["cat", path, "--url", url, "--body"], 0);
        assert_eq!(body(segment), body("a.warc.gz"), "{url}");
        assert_eq!(body(segment), body("b.segment"), "{url}");
    }
    run(dir, &["-q", "convert", "a.warc.gz", "c.warc.gz", "--compress", "block"], 2);

    // Into a lake, as a crawl with its index and as a segment alone.
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "c", "crawl/one"], 0);
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "s", segment], 0);
    run(dir, &["-q", "lake", "verify", "--lake", "lake"], 0);
    let host = page.split('/').nth(2).unwrap();
    let answer = json_lines(&run(dir, &["--json", "query", "domain", host, "--lake", "lake"], 0));
    let datasets = answer[0]["datasets"].as_array().unwrap();
    assert_eq!(datasets.iter().map(|d| d["name"].as_str().unwrap()).collect::<Vec<_>>(), ["c", "s"]);
}

#[test]
fn what_a_segment_holds_beside_captures_is_said() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let segment = nutch("crawl-e2e/segments/20261115074416");
    let done = json_lines(&run(dir, &["--json", "-q", "convert", &segment, "a.warc.gz"], 1)).remove(0);
    assert!(done["left_out"]["parse_text"].as_u64().unwrap() > 0, "{done}");
    let strict = trawl(dir).args(["-q", "convert", &segment, "b.warc.gz", "--strict"]).output().unwrap();
    assert_eq!(strict.status.code(), Some(2));
    assert!(stderr(&strict).contains("are not captures"), "{}", stderr(&strict));
    assert!(!dir.join("b.warc.gz").exists());
    let body = |path: &str| run(dir, &["cat", path, "--url", "http://host0.example/page2.html", "--body"], 0);
    assert_eq!(body(&segment), body("a.warc.gz"));
    // So is it by an ingest, and when a partition file is made of it.
    let ingested =
        json_lines(&run(dir, &["--json", "-q", "lake", "ingest", "--lake", "lake", "--dataset", "s", &segment], 0));
    let seeded =
        json_lines(&run(dir, &["--json", "-q", "frontier", "seed", &segment, "--out", "s.meguri"], 0)).remove(0);
    assert_eq!(ingested.last().unwrap()["not_captures"], done["left_out"], "{ingested:?}");
    assert_eq!(seeded["not_captures"], done["left_out"]);
    // A directory of a crawl is read as an ingest reads it.
    let all = json_lines(&run(dir, &["--json", "-q", "frontier", "seed", &nutch("crawl-e2e"), "--out", "e.meguri"], 0));
    assert!(all[0]["urls"].as_u64() > seeded["urls"].as_u64(), "{all:?}");
    // A database holds no captures.
    run(dir, &["-q", "convert", &nutch("crawl-e2e/crawldb"), "c.warc.gz"], 2);
}

#[test]
fn a_crawldb_seeds_a_crawl_and_fills_a_lake() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let crawldb = nutch("crawl-e2e/crawldb");
    // Nobody listens there: each URL becomes a failure.
    let output = trawl(dir)
        .args(["crawl", &crawldb, "--out", "out", "-q", "--json", "--ignore-robots", "--wait", "0s"])
        .args(["--delay", "0ms", "--connect-to", "::127.0.0.1:9"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let report = json_lines(&stdout(&output)).remove(0);
    assert_eq!(report["seeds"][0]["rows"], 139, "{report}");
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "db", &crawldb], 0);
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "links", &nutch("crawl-e2e/linkdb")], 0);
    let stats = run(dir, &["--json", "lake", "stats", "--lake", "lake"], 0);
    assert!(stats.contains("\"rows\":271"), "{stats}");
    // All of a crawl of Nutch's at once: every database and segment is a source of its own.
    run(dir, &["-q", "lake", "ingest", "--lake", "lake", "--dataset", "all", &nutch("crawl-e2e/segments")], 0);
}

#[test]
fn damage_is_named_with_file_and_offset() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let from = nutch("crawl-synth/crawldb/current/part-r-00000");
    std::fs::create_dir(dir.join("map")).unwrap();
    for name in ["data", "index"] {
        std::fs::copy(Path::new(&from).join(name), dir.join("map").join(name)).unwrap();
    }
    run(dir, &["-q", "verify", "map"], 0);
    let whole = std::fs::read(dir.join("map/data")).unwrap();
    // Cut, flipped, and a length of 2^31 - 1.
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x10;
    let mut long = whole.clone();
    let at = whole.len() - 40;
    long[at..at + 4].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff]);
    for (name, bytes) in [("cut", &whole[..whole.len() - 9]), ("flipped", &flipped), ("long", &long)] {
        std::fs::write(dir.join("map/data"), bytes).unwrap();
        let faults = json_lines(&run(dir, &["--json", "-q", "verify", "map"], 1));
        assert!(faults[0]["file"].as_str().unwrap().ends_with("map/data"), "{name}: {}", faults[0]);
        assert!(faults[0]["offset"].is_u64(), "{name}: {}", faults[0]);
    }
    // A listing leaves out what is damaged, goes on behind it, and says so.
    std::fs::write(dir.join("map/data"), &flipped).unwrap();
    let output = trawl(dir).args(["cat", "map/data", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("left out: "), "{}", stderr(&output));
    // An index that points elsewhere.
    std::fs::write(dir.join("map/data"), &whole).unwrap();
    std::fs::copy(nutch("crawl-synth/crawldb/current/part-r-00001/index"), dir.join("map/index")).unwrap();
    let told = run(dir, &["-q", "verify", "map"], 1);
    assert!(told.contains("map/index") && told.contains("expected the key"), "{told}");
}

/// One page that cannot be unpacked costs itself, not those behind it.
#[test]
fn bodies_behind_damage_are_printed() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    copy_tree(Path::new(&nutch("crawl-e2e/segments/20261115074402")), &dir.join("segment"));
    let data = dir.join("segment/content/part-r-00000/data");
    let records = json_lines(&run(dir, &["--json", "cat", data.to_str().unwrap()], 0));
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[records[1]["pos"].as_u64().unwrap() as usize + 100] ^= 0x55;
    std::fs::write(&data, bytes).unwrap();
    std::fs::remove_file(data.with_file_name(".data.crc")).unwrap();
    let output = trawl(dir).args(["cat", "segment", "--body"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("left out: "), "{}", stderr(&output));
    let all: usize = records.iter().map(|record| record["value"]["content_len"].as_u64().unwrap() as usize).sum();
    let lost = records[1]["value"]["content_len"].as_u64().unwrap() as usize;
    assert_eq!(output.stdout.len(), all - lost);
}

/// Whatever lies below a directory is looked at, however deep, and links in circles end.
#[test]
fn directories_are_searched_to_the_bottom() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let deep = dir.join("all/2026/crawls/one/segments");
    copy_tree(Path::new(&nutch("crawl-e2e/segments/20261115074402")), &deep.join("20261115074402"));
    copy_tree(Path::new(&nutch("crawl-e2e/segments/20261115074416")), &dir.join("all/20261115074416"));
    std::os::unix::fs::symlink("..", dir.join("all/2026/up")).unwrap();
    let whole = json_lines(&run(dir, &["--json", "-q", "verify", "all"], 0)).remove(0);
    let shallow = json_lines(&run(dir, &["--json", "-q", "verify", "all/20261115074416"], 0)).remove(0);
    let records = |summary: &Value| summary["checked"]["records"].as_u64().unwrap();
    let below = json_lines(&run(dir, &["--json", "-q", "verify", "all/2026/crawls"], 0)).remove(0);
    assert_eq!(records(&whole), records(&shallow) + records(&below));
    let captures = |source: &str, target: &str| {
        let done = json_lines(&run(dir, &["--json", "-q", "convert", source, target], 1)).remove(0);
        done["left_out"]["parse_text"].as_u64().unwrap()
    };
    assert_eq!(
        captures("all", "a.warc"),
        captures("all/2026/crawls", "b.warc") + captures("all/20261115074416", "c.warc")
    );
    // Damage far below is found.
    let data = deep.join("20261115074402/crawl_fetch/part-r-00000/data");
    let whole = std::fs::read(&data).unwrap();
    std::fs::write(&data, &whole[..whole.len() - 9]).unwrap();
    assert!(run(dir, &["-q", "verify", "all"], 1).contains("crawls/one/segments"));
    // Deeper than a walk goes is said, not passed over.
    let mut path = dir.join("deep");
    (0..70).for_each(|_| path.push("d"));
    std::fs::create_dir_all(&path).unwrap();
    let output = trawl(dir).args(["-q", "verify", "deep"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("directories below one another"), "{}", stderr(&output));
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A version that is not known is said to be one; a value that does not decode is a finding.
#[test]
fn what_cannot_be_read_of_a_file_is_said() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let mut bytes = std::fs::read(nutch("crawl-synth/crawldb/current/part-r-00000/data")).unwrap();
    bytes[3] = 7;
    std::fs::write(dir.join("seven"), &bytes).unwrap();
    let output = trawl(dir).args(["cat", "seven"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("SequenceFile version 7"), "{}", stderr(&output));
    // A text whose class says that it is an Inlinks.
    bytes[3] = 6;
    let class = b"org.apache.nutch.crawl.CrawlDatum";
    let at = bytes.windows(class.len()).position(|part| part == class).unwrap();
    bytes[at..at + class.len()].copy_from_slice(b"org.apache.hadoop.io.LongWritable");
    std::fs::write(dir.join("other"), &bytes).unwrap();
    let output = trawl(dir).args(["cat", "other", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("other@") && stderr(&output).contains("LongWritable"), "{}", stderr(&output));
}

/// Segments from before Hadoop are listed and printed, too.
#[test]
fn readseg_of_the_oldest_segments() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    for release in ["0.4", "0.6", "0.7.2"] {
        let segment = nutch(&format!("legacy/nutch-{release}/segments/20040525120000"));
        let facts = json_lines(&run(dir, &["--json", "nutch", "readseg", "-list", &segment], 0)).remove(0);
        let fetched = facts["fetched"].as_u64().unwrap();
        assert!(fetched > 0 && facts["generated"].as_u64().unwrap() >= fetched, "{release}: {facts}");
        assert!(facts["parsed"].is_u64() && facts["fetcherStart"].is_string(), "{release}: {facts}");
        let without =
            json_lines(&run(dir, &["--json", "nutch", "readseg", "-list", &segment, "-nofetch"], 0)).remove(0);
        assert!(without["fetched"].is_null() && without["fetcherStart"].is_null(), "{without}");
        let dump = run(dir, &["nutch", "readseg", "-dump", &segment], 0);
        assert_eq!(dump.matches("Recno:: ").count() as u64, fetched, "{release}");
        let url = dump.lines().find_map(|line| line.strip_prefix("URL:: ")).unwrap();
        assert!(run(dir, &["nutch", "readseg", "-get", &segment, url], 0).contains("FetcherOutput::"));
        let found = json_lines(&run(dir, &["--json", "nutch", "readseg", "-get", &segment, url], 0)).remove(0);
        assert!(found["found"]["fetcher"].is_array(), "{found}");
        run(dir, &["nutch", "readseg", "-get", &segment, "http://nowhere.example/"], 1);
        assert!(!run(dir, &["--json", "nutch", "readseg", "-dump", &segment], 0).is_empty());
    }
    let segment = nutch("crawl-e2e/segments/20261115074402");
    let line = run(dir, &["nutch", "readseg", "-list", &segment, "-nofetch"], 0);
    assert!(line.lines().nth(1).unwrap().contains('?'), "{line}");
}
