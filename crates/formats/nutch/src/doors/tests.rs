use super::*;
use crate::class;
use crate::types::{Content, CrawlDatum, Status, encoded};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use trawl_hadoop::{Text, class as hadoop};
use trawl_io::RealFs;
use trawl_io::format::Target;
use trawl_model::{
    Body, Capability, Capture, CaptureFacts, Clock, Entry, ErrorClass, Failure, Finding, Message, Outcome, Pick, Place,
    SourceIdentity, UnixMillis, UrlRecord,
};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

fn fs() -> Arc<dyn Fs> {
    Arc::new(RealFs)
}

fn open(path: &Path) -> Box<dyn Archive> {
    NutchFormat.open(&Opening::new(&fs(), path)).unwrap()
}

/// URL, time, head or message, body.
type Seen = (String, i64, String, Vec<u8>);

fn seen(capture: Capture<'_>) -> Seen {
    let (text, body) = match capture.outcome {
        Outcome::Response { mut message, .. } => {
            let body = message.body.read_to_bytes(u64::MAX).unwrap().to_vec();
            (String::from_utf8_lossy(&message.head).into_owned(), body)
        }
        Outcome::Revisit(revisit) => (String::from_utf8_lossy(&revisit.head).into_owned(), Vec::new()),
        Outcome::Failed(failed) => (format!("{}: {}", failed.class, failed.message), Vec::new()),
    };
    (capture.url, capture.started_at.0, text, body)
}

fn captures(archive: &dyn Archive, pick: Pick<'_>) -> Vec<(Seen, Place)> {
    let mut source = archive.captures(pick).unwrap().unwrap();
    let mut all = Vec::new();
    while let Some((entry, place)) = source.next_entry().unwrap() {
        let Entry::Capture(capture) = entry else { panic!("not a capture") };
        all.push((seen(*capture), place));
    }
    all
}

fn creation(target: Target) -> Creation {
    let ids = AtomicU8::new(1);
    let ids = Arc::new(move || [ids.fetch_add(1, Ordering::Relaxed); 16]);
    let clock = Clock::fixed(UnixMillis(1_782_262_900_000));
    Creation { memory_bytes: 1 << 20, ..Creation::new(fs(), target, ids, clock) }
}

fn response(url: &str, time: i64, head: &str, body: &[u8]) -> Capture<'static> {
    let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n");
    let message = Message { head: head.into(), body: Body::Memory(body.to_vec().into()) };
    let outcome = Outcome::Response { message, payload_digest: None, truncated: None };
    let facts = CaptureFacts { fetched_at: UnixMillis(time), ..CaptureFacts::default() };
    Capture { url: url.into(), started_at: UnixMillis(time), request: None, outcome, facts }
}

fn failure(url: &str, time: i64) -> Capture<'static> {
    let outcome = Outcome::Failed(Failure { class: ErrorClass::ConnectTimeout, message: "10 s".into() });
    Capture { outcome, ..response(url, time, "", b"") }
}

fn check(path: &Path) -> (Checked, Vec<Finding>) {
    let temp = tempfile::tempdir().unwrap();
    let mut findings = Vec::new();
    let (on_finding, progress) = (&mut |finding| findings.push(finding), &mut |_| {});
    let mut check = Check { temp_dir: temp.path(), memory_bytes: 1 << 20, on_finding, progress };
    let checked = NutchFormat.verify(&fs(), &[path.to_owned()], &mut check).unwrap();
    (checked, findings)
}

fn urls(path: &Path, target_bytes: u64) -> Vec<UrlRecord> {
    let archive = open(path);
    let source = archive.urls(&archive.identity().unwrap()).unwrap().unwrap();
    let mut all = Vec::new();
    for split in source.splits(target_bytes).unwrap() {
        source.read(split, &mut |_, item| item.map(|record| all.push(record))).unwrap();
    }
    all
}

/// Records in a directory of parts.
fn count(dir: &Path) -> u64 {
    let mut scan = crate::db::Scan::of(dir, &OpenOptions::default()).unwrap();
    std::iter::from_fn(|| scan.next_entry().unwrap().map(|_| ())).count() as u64
}

#[test]
fn a_segment_of_nutch_is_an_archive() {
    for name in ["crawl-e2e/segments/20261115074402", "crawl-e2e/segments/20261115074416"] {
        let archive = open(&fixture(name));
        let all = captures(&*archive, Pick::All);
        // The fetcher notes where redirects lead; those are links, not fetches.
        let mut fetched = urls(&fixture(name).join("crawl_fetch"), u64::MAX);
        let links = fetched.extract_if(.., |record| record.extras.as_deref().unwrap().contains("\"linked\"")).count();
        let unique: BTreeSet<_> = fetched.iter().map(|record| record.url.clone()).collect();
        let of_captures: BTreeSet<_> = all.iter().map(|(seen, _)| seen.0.clone()).collect();
        assert_eq!((&of_captures, all.len()), (&unique, fetched.len()), "{name}");
        // Splits of any size are the whole; each capture is found at its place, from the segment and from the file alone,
        // and by its URL.
        for target in [100, 1000, 1 << 20] {
            let mut split = Vec::new();
            for part in archive.splits(target).unwrap() {
                split.extend(captures(&*archive, Pick::Split(part)));
            }
            assert!(split == all, "{name} {target}");
        }
        for (n, (expected, place)) in all.iter().enumerate() {
            let rest = captures(&*archive, Pick::At(place));
            assert!(rest[..] == all[n..], "{name} {place}");
            let alone = open(&fixture(name).parent().unwrap().join(&*place.file));
            assert_eq!(captures(&*alone, Pick::At(&Place::new("", place.offset, 0)))[0], all[n], "{name} {place}");
            assert_eq!(captures(&*archive, Pick::Newest(&expected.0)), [all[n].clone()], "{name} {place}");
        }
        assert!(captures(&*archive, Pick::Newest("http://nosuch.example/")).is_empty());
        let left_out = archive.left_out().unwrap();
        assert_eq!(left_out.get("links of redirects").copied().unwrap_or(0), links as u64);
        for part in ["crawl_parse", "parse_data", "parse_text"] {
            assert_eq!(left_out[part], count(&fixture(name).join(part)), "{name} {part}");
        }
        let generated = urls(&fixture(name).join("crawl_generate"), u64::MAX);
        let waiting = generated.iter().filter(|record| !of_captures.contains(&record.url)).count();
        let told = left_out.get("crawl_generate, never fetched").copied().unwrap_or(0);
        assert_eq!(told, waiting as u64, "{name}");
    }
}

#[test]
fn a_page_has_what_its_server_said() {
    let archive = open(&fixture("crawl-synth/segments/20240102030405"));
    let all = captures(&*archive, Pick::All);
    assert!(all.len() > 10);
    for ((url, time, text, _), place) in all {
        assert!(url.starts_with("http") && time > 1_000_000_000_000, "{url} {time}");
        let is_content = place.file.contains("/content/");
        let is_answer = text.starts_with("HTTP/1.1 ");
        // Of many answers Nutch keeps the status and no content.
        let without = ["HTTP/1.1 30", "HTTP/1.1 40", "HTTP/1.1 41"].iter().any(|start| text.starts_with(start));
        assert!(is_answer == is_content || without, "{url}: {text}");
        assert!(!is_answer || text.ends_with("\r\n\r\n"));
    }
}

#[test]
fn segments_of_0_4_to_0_7_are_archives_too() {
    for (name, pages) in [("nutch-0.4", 0), ("nutch-0.6", 0), ("nutch-0.7.2", 0)] {
        let root = fixture("legacy").join(name);
        let dir = find_segment(&root).unwrap();
        let archive = open(&dir);
        let all = captures(&*archive, Pick::All);
        assert!(all.len() > pages, "{name}");
        assert!(all.iter().any(|(seen, _)| !seen.3.is_empty()), "{name}: no body");
        let (_, place) = all.last().unwrap();
        assert_eq!(captures(&*archive, Pick::At(place)), all[all.len() - 1..], "{name}");
    }
}

/// The first directory below `dir` that is a segment.
/// Files of 0.4 to 0.7 have nothing but the numbers of pages in common.
#[test]
fn damage_in_old_segments_costs_the_page_that_it_hit() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("segment");
    let copy = |from: &Path| {
        for name in ["fetchlist", "fetcher", "content", "parse_text", "parse_data"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            for file in ["data", "index"] {
                std::fs::copy(from.join(name).join(file), dir.join(name).join(file)).unwrap();
            }
        }
    };
    let original = fixture("legacy/nutch-0.7.2/segments/20040525120000");
    copy(&original);
    let (whole, told) = read_through(&*open(&dir));
    assert_eq!((whole.len(), told.len()), (18, 0));
    // Offsets of the contents of pages 2 and 9.
    let mut reader = trawl_hadoop::seq::Reader::open(&dir.join("content/data")).unwrap();
    let mut offsets = Vec::new();
    while reader.advance().unwrap() {
        offsets.push(reader.at().offset as usize);
    }
    let damaged = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        copy(&original);
        let path = dir.join(name).join("data");
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        read_through(&*open(&dir))
    };
    // A byte inside a content.
    let (left, told) = damaged("content", &|bytes| bytes[offsets[2] + 150] ^= 0xff);
    assert_eq!((left.len(), told.len()), (17, 1), "{told:?}");
    assert!(left.iter().all(|page| whole.contains(page)));
    // The length of a record: the rest is found behind the next marker.
    let (left, told) = damaged("content", &|bytes| bytes[offsets[2]] = 0x7f);
    assert!(left.len() >= 16 && !told.is_empty() && told.len() <= 3, "{}: {told:?}", left.len());
    // Contents that end early are reported once; the fetches are there.
    let (left, told) = damaged("content", &|bytes| bytes.truncate(offsets[9]));
    assert_eq!((left.len(), told.len()), (18, 1), "{told:?}");
    assert!(told[0].contains("expected page 9, found the end of the file"), "{told:?}");
    // Nothing of a capture is in the texts.
    let (left, told) = damaged("parse_text", &|bytes| bytes.truncate(50));
    assert!(left == whole && told.is_empty(), "{told:?}");
}

fn find_segment(dir: &Path) -> Option<PathBuf> {
    if dir.join("fetcher").is_dir() {
        return Some(dir.to_owned());
    }
    let below = std::fs::read_dir(dir).ok()?.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    below.into_iter().find_map(|path| find_segment(&path))
}

#[test]
fn databases_are_sources_of_urls() {
    let crawldb = fixture("crawl-e2e/crawldb");
    let all = urls(&crawldb, u64::MAX);
    assert_eq!(all.len(), 69 + 70);
    for target in [64, 500] {
        assert!(urls(&crawldb, target) == all);
    }
    let first = all.iter().find(|record| record.url == "http://host0.example/").unwrap();
    assert_eq!(first.digest.as_ref().map(|digest| digest.algorithm()), Some(trawl_model::Algorithm::Md5));
    let extras: serde_json::Value = serde_json::from_str(first.extras.as_deref().unwrap()).unwrap();
    assert_eq!(extras["nutch_status"], "db_fetched");
    assert!(urls(&fixture("crawl-e2e/linkdb"), 100).iter().all(|record| record.extras.is_some()));
    // A list of hosts is not one of URLs.
    let hosts = open(&fixture("crawl-e2e/derived/hostdb"));
    let identity = SourceIdentity { uri: String::new(), size: 0, tag: String::new() };
    assert!(hosts.urls(&identity).unwrap().is_none());
    assert!(hosts.captures(Pick::All).unwrap().is_none());
}

#[test]
fn everything_in_the_fixtures_is_sound() {
    for name in [
        "crawl-e2e/crawldb",
        "crawl-e2e/linkdb",
        "crawl-e2e/derived/hostdb",
        "crawl-e2e/derived/webgraphdb",
        "crawl-e2e/segments/20261115074402",
        "crawl-e2e/segments/20261115074416",
        "crawl-synth/segments/20240102030405",
        "crawl-synth/crawldb",
    ] {
        let (checked, findings) = check(&fixture(name));
        assert!(checked.records > 0, "{name}");
        assert_eq!(findings, [], "{name}");
    }
}

fn write(target: &Path, captures: Vec<Capture<'static>>) -> trawl_model::Summary {
    let mut sink = NutchFormat.create(creation(Target::File(target.to_owned()))).unwrap();
    for capture in captures {
        assert_eq!(sink.write(capture).unwrap(), None, "no place is known before the end");
    }
    sink.finish().unwrap()
}

#[test]
fn what_goes_in_comes_out() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let large: Vec<u8> = (0..300_000u32).map(|n| (n % 251) as u8).collect();
    let plain = "Content-Type: text/html\r\nX-Odd:  \u{e9} \r\nContent-Length: 5\r\n";
    let summary = write(
        &target,
        vec![
            response("http://b.example/", 1_782_262_900_001, plain, b"hello"),
            response("http://a.example/", 1_782_262_900_002, "Content-Length: 300000\r\n", &large),
            failure("http://c.example/", 1_782_262_900_003),
        ],
    );
    assert!(summary.dropped.is_empty(), "{summary:?}");
    let archive = open(&target);
    let all = captures(&*archive, Pick::All);
    assert_eq!(all.len(), 3);
    assert_eq!((all[0].0.0.as_str(), all[0].0.1, all[0].0.3.len()), ("http://a.example/", 1_782_262_900_002, 300_000));
    assert!(all[0].0.3 == large);
    assert_eq!(all[1].0.2, format!("HTTP/1.1 200 OK\r\n{plain}\r\n"));
    assert_eq!(all[1].0.3, b"hello");
    assert!(all[2].0.2.contains("connect_timeout: 10 s"), "{}", all[2].0.2);
    let (checked, findings) = check(&target);
    assert_eq!((checked.records, findings), (3 + 3 + 2, vec![]));
    assert!(!temp.path().join("a.segment.spool").exists());
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "something was left");
}

#[test]
fn codings_are_undone_and_said() {
    use std::io::Write as _;
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"hello").unwrap();
    let head = "Content-Encoding: gzip\r\nContent-Length: 25\r\n";
    let summary = write(&target, vec![response("http://a.example/", 1, head, &gzip.finish().unwrap())]);
    assert_eq!(summary.dropped.get(&Capability::Codings), Some(&1));
    let all = captures(&*open(&target), Pick::All);
    assert_eq!(
        all[0].0.2,
        "HTTP/1.1 200 OK\r\nX-Crawler-Content-Encoding: gzip\r\nX-Crawler-Content-Length: 25\r\n\r\n"
    );
    assert_eq!(all[0].0.3, b"hello");
}

/// It went into the segment as it was, and nothing said so.
#[test]
fn a_coding_that_was_cut_is_a_loss() {
    use std::io::Write as _;
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"hello, hello, hello").unwrap();
    let mut body = gzip.finish().unwrap();
    body.truncate(body.len() - 9);
    let summary = write(&target, vec![response("http://a.example/", 1, "Content-Encoding: gzip\r\n", &body)]);
    assert_eq!(summary.dropped.get(&Capability::Codings), Some(&1));
    let all = captures(&*open(&target), Pick::All);
    assert_eq!(all[0].0.3, body);
}

/// Each URL of the list was looked up: minutes where fetches are packed in blocks.
#[test]
fn a_fetch_list_is_compared_without_lookups() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let page = |n: i64| response(&format!("http://a.example/{n}"), n, "", b"x");
    write(&target, (0..50).map(page).collect());
    let other = temp.path().join("b.segment");
    write(&other, (40..60).map(page).collect());
    std::fs::remove_dir_all(target.join("crawl_generate")).unwrap();
    std::fs::rename(other.join("crawl_generate"), target.join("crawl_generate")).unwrap();
    let opened = Arc::new(AtomicU8::new(0));
    let (seen, disk) = (opened.clone(), fs());
    let counting: Arc<dyn Fs> = Arc::new(trawl_io::fault::Stepped::new(move |op, path| {
        // A lookup begins with the index of its map.
        if matches!(op, trawl_io::Op::Open) && path.ends_with("index") {
            seen.fetch_add(1, Ordering::Relaxed);
        }
        disk.clone()
    }));
    let archive = NutchFormat.open(&Opening::new(&counting, &target)).unwrap();
    opened.store(0, Ordering::Relaxed);
    let told: Vec<_> = archive.left_out().unwrap().into_iter().collect();
    assert_eq!(told, [("crawl_generate, never fetched".to_owned(), 10)]);
    assert_eq!(opened.load(Ordering::Relaxed), 0);
}

#[test]
fn what_was_to_be_fetched_and_was_not_is_counted() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let page = |n: i64| response(&format!("http://a.example/{n}"), n, "", b"x");
    write(&target, (0..5).map(page).collect());
    let other = temp.path().join("b.segment");
    write(&other, (3..10).map(page).collect());
    std::fs::remove_dir_all(target.join("crawl_generate")).unwrap();
    std::fs::rename(other.join("crawl_generate"), target.join("crawl_generate")).unwrap();
    let told: Vec<_> = open(&target).left_out().unwrap().into_iter().collect();
    assert_eq!(told, [("crawl_generate, never fetched".to_owned(), 5)]);
    // Of one that was only generated all, and no capture: it kept every segment beside it from being converted.
    for part in ["content", "crawl_fetch"] {
        std::fs::remove_dir_all(target.join(part)).unwrap();
    }
    let archive = open(&target);
    assert!(archive.captures_to_convert().unwrap().unwrap().next_entry().unwrap().is_none());
    assert_eq!(archive.left_out().unwrap().into_values().collect::<Vec<_>>(), [7]);
    assert!(archive.captures(Pick::All).unwrap().is_none(), "it is a list of URLs");
}

#[test]
fn the_last_capture_of_a_url_stays() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let url = "http://a.example/";
    let page = |time, body: &'static [u8]| response(url, time, "", body);
    let summary = write(&target, vec![page(1, b"one"), page(2, b"two")]);
    assert_eq!(summary.dropped.get(&Capability::ManyPerUrl), Some(&1));
    assert_eq!(captures(&*open(&target), Pick::All)[0].0.3, b"two");
    // A failure too: the content that was there before is of another capture.
    write(&target, vec![page(1, b"one"), failure(url, 2)]);
    let all = captures(&*open(&target), Pick::All);
    assert_eq!((all.len(), all[0].0.1), (1, 2));
    assert!(all[0].0.2.contains("connect_timeout"));
    let list = urls(&target.join("crawl_generate"), u64::MAX);
    assert_eq!(list.len(), 1);

    let strict = Creation { strict: true, ..creation(Target::File(temp.path().join("b.segment"))) };
    let mut sink = NutchFormat.create(strict).unwrap();
    sink.write(page(1, b"one")).unwrap();
    sink.write(page(2, b"two")).unwrap();
    let error = sink.finish().unwrap_err().to_string();
    assert!(error.contains("many_per_url (1 times)"), "{error}");
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1, "something was left");
}

#[test]
fn a_run_goes_on_where_it_was_synced() {
    let temp = tempfile::tempdir().unwrap();
    let run = || creation(Target::run(temp.path(), "t", "run"));
    let page = |n: i64| response(&format!("http://a.example/{n}"), n, "", b"x");
    let mut sink = NutchFormat.create(run()).unwrap();
    sink.write(page(1)).unwrap();
    let committed = sink.sync().unwrap();
    assert_eq!(committed.current(), "t-run-00000.segment");
    sink.write(page(2)).unwrap();
    sink.sync().unwrap();
    drop(sink);
    assert!(NutchFormat.create(run()).is_err(), "a run's spool was overwritten");
    // The second capture was not committed: it goes.
    let mut sink = NutchFormat.resume(run(), Some(&committed)).unwrap();
    sink.write(page(3)).unwrap();
    let committed = sink.sync().unwrap();
    sink.finish().unwrap();
    let of = |name: &str| {
        let all = captures(&*open(&temp.path().join(name)), Pick::All);
        all.into_iter().map(|(seen, _)| seen.1).collect::<Vec<_>>()
    };
    assert_eq!(of("t-run-00000.segment"), [1, 3]);
    // A finished segment stays; the run goes on in another.
    let mut sink = NutchFormat.resume(run(), Some(&committed)).unwrap();
    sink.write(page(4)).unwrap();
    assert_eq!(sink.sync().unwrap().current(), "t-run-00001.segment");
    sink.finish().unwrap();
    assert_eq!((of("t-run-00000.segment"), of("t-run-00001.segment")), (vec![1, 3], vec![4]));
    let names: Vec<String> = ["t-run-00000.segment", "t-run-00001.segment.spool"].map(String::from).to_vec();
    assert_eq!(
        names.iter().map(|name| NutchFormat.role(name, &names)).collect::<Vec<_>>(),
        [Some(Role::Complete), Some(Role::Working)]
    );
}

/// Three captures, two of them synced, then the end.
fn write_run(fs: &Arc<dyn Fs>, committed: &mut Option<Durable>) -> Result<(), DoorError> {
    let creation = Creation { fs: fs.clone(), ..creation(Target::run(Path::new("/out"), "t", "run")) };
    let mut sink = NutchFormat.create(creation)?;
    for n in 1..=3 {
        sink.write(response(&format!("http://a.example/{n}"), n, "", b"x"))?;
        if n < 3 {
            *committed = Some(sink.sync()?);
        }
    }
    sink.finish().map(drop)
}

#[test]
fn a_power_cut_at_any_step_keeps_what_was_synced() {
    use trawl_io::fault::{FaultFs, Loss};
    for cut in 0.. {
        let disk = FaultFs::new();
        disk.shared().create_dir_all(Path::new("/out")).unwrap();
        disk.shared().sync_dir(Path::new("/")).unwrap();
        disk.cut_after(cut);
        let mut committed = None;
        let done = write_run(&disk.shared(), &mut committed).is_ok();
        // Each record of the plan is as long as the others.
        let synced = committed.as_ref().map_or(0, |durable| if durable.files[0].1 < 500 { 1 } else { 2 });
        for loss in Loss::variants(3) {
            let context = format!("cut {cut}, {loss:?}");
            let fs = disk.reboot(loss).shared();
            let run = Creation { fs: fs.clone(), ..creation(Target::run(Path::new("/out"), "t", "run")) };
            let sink = NutchFormat.resume(run, committed.as_ref()).unwrap_or_else(|e| panic!("{context}: {e}"));
            sink.finish().unwrap_or_else(|e| panic!("{context}: {e}"));
            let mut found = Vec::new();
            for entry in fs.list(Path::new("/out")).unwrap() {
                let name = entry.name.to_string_lossy().into_owned();
                assert!(name.ends_with(".segment"), "{context}: {name} was left");
                let archive = NutchFormat.open(&Opening::new(&fs, &Path::new("/out").join(name))).unwrap();
                found.extend(captures(&*archive, Pick::All).into_iter().map(|(seen, _)| seen.1));
            }
            // All of it if the end was reached, else exactly what the caller knows to be safe.
            let expected: Vec<i64> = if found.len() == 3 { vec![1, 2, 3] } else { (1..=synced).collect() };
            assert_eq!(found, expected, "{context}");
        }
        if done {
            assert!(cut > 20, "the work takes {cut} operations");
            break;
        }
    }
}

#[test]
fn compression_is_chosen_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    for (name, expected) in [("nutch", "RECORD"), ("block", "BLOCK")] {
        let creation = Creation { compress: Some(name.into()), ..creation(Target::File(target.clone())) };
        let mut sink = NutchFormat.create(creation).unwrap();
        for n in 0..300 {
            sink.write(response(&format!("http://a.example/{n}"), n, "", b"x")).unwrap();
        }
        sink.finish().unwrap();
        let archive = open(&target);
        let seen = archive.inspect(1, &mut |_| {}).unwrap();
        let content = seen.iter().find(|seen| seen.inside.as_deref() == Some("content/part-r-00000/data")).unwrap();
        assert_eq!(content.details["compression"], expected);
        let all = captures(&*archive, Pick::All);
        assert_eq!(all.len(), 300);
        let (last, place) = &all[299];
        assert_eq!(captures(&*archive, Pick::At(place)), [(last.clone(), place.clone())]);
    }
    let odd = Creation { compress: Some("odd".into()), ..creation(Target::File(target)) };
    assert!(NutchFormat.create(odd).is_err());
}

#[test]
fn damage_costs_what_it_hit_and_is_listed() {
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let pages = (0..400).map(|n| response(&format!("http://a.example/{n:04}"), n, "", &[b'x'; 600])).collect();
    write(&target, pages);
    let data = target.join("content/part-r-00000/data");
    let whole = std::fs::read(&data).unwrap();
    let _ = std::fs::remove_file(target.join("content/part-r-00000/.data.crc"));
    for at in [whole.len() / 3, whole.len() / 2, whole.len() - 10] {
        let mut bytes = whole.clone();
        bytes[at..at + 8].fill(0xa5);
        std::fs::write(&data, bytes).unwrap();
        let archive = open(&target);
        let mut source = archive.captures(Pick::All).unwrap().unwrap();
        let (mut found, mut errors) = (0, 0);
        loop {
            match source.next_entry() {
                Ok(None) => break,
                Ok(Some(_)) => found += 1,
                Err(error) => {
                    assert_eq!(error.advice, Advice::Skip, "{error}");
                    assert!(error.to_string().contains("content/part-r-00000/data"), "{error}");
                    errors += 1;
                }
            }
        }
        assert!(errors > 0 && errors < 10 && found >= 350, "{at}: {found} found, {errors} errors");
        let (_, findings) = check(&target);
        assert!(findings.iter().any(|f| f.offset.is_some() && f.file.ends_with("data")), "{findings:?}");
    }
    // A key in the wrong part, a value of another class.
    std::fs::write(&data, &whole).unwrap();
    let other = target.join("content/part-r-00001");
    std::fs::create_dir(&other).unwrap();
    for name in ["data", "index"] {
        std::fs::copy(target.join("content/part-r-00000").join(name), other.join(name)).unwrap();
    }
    let (_, findings) = check(&target);
    assert!(findings.iter().filter(|f| f.detail.contains("a lookup misses it")).count() > 300, "{}", findings.len());
}

/// A part that lost its records, or its first bytes, is a fault: its URLs do not vanish without a word.
#[test]
fn a_part_that_cannot_be_read_is_not_passed_over() {
    let temp = tempfile::tempdir().unwrap();
    let (segment, base) = (temp.path().join("a.segment"), temp.path().join("base"));
    write(&segment, (0..5).map(|n| response(&format!("http://a.example/{n}"), n, "", b"x")).collect());
    // A database of two parts.
    for part in ["part-r-00000", "part-r-00001"] {
        let to = base.join("current").join(part);
        std::fs::create_dir_all(&to).unwrap();
        for name in ["data", "index"] {
            std::fs::copy(fixture("crawl-e2e/crawldb/current/part-r-00000").join(name), to.join(name)).unwrap();
        }
    }
    let read = |path: &Path| -> Result<usize, DoorError> {
        let archive = NutchFormat.open(&Opening::new(&fs(), path))?;
        if let Some(mut source) = archive.captures(Pick::All)? {
            let mut all = 0;
            while source.next_entry()?.is_some() {
                all += 1;
            }
            return Ok(all);
        }
        let identity = SourceIdentity { uri: "x".into(), size: 0, tag: String::new() };
        let (source, mut all) = (archive.urls(&identity)?.unwrap(), 0);
        for split in source.splits(u64::MAX)? {
            source.read(split, &mut |_, item| item.map(|_| all += 1))?;
        }
        Ok(all)
    };
    let data = |path: &Path, part: &str| path.join(part).join("data");
    for (path, file) in
        [(&segment, data(&segment, "content/part-r-00000")), (&base, data(&base, "current/part-r-00001"))]
    {
        let whole = std::fs::read(&file).unwrap();
        assert!(read(path).unwrap() >= 5);
        let _ = std::fs::remove_file(file.with_file_name(".data.crc"));
        let flipped = [&[whole[0] ^ 1][..], &whole[1..]].concat();
        for damaged in [None, Some(&[][..]), Some(&whole[..3]), Some(&flipped[..])] {
            std::fs::remove_file(&file).unwrap();
            if let Some(bytes) = damaged {
                std::fs::write(&file, bytes).unwrap();
            }
            let error = read(path).unwrap_err().to_string();
            assert!(error.contains("data"), "{error}");
            let (_, findings) = check(path);
            assert!(findings.iter().any(|finding| finding.file.ends_with("data")), "{damaged:?}: {findings:?}");
            std::fs::write(&file, &whole).unwrap();
        }
    }
}

/// A MapFile with these records in this order; a writer of maps would refuse unsorted ones.
fn map_of(dir: &Path, class: &str, records: &[(impl AsRef<[u8]>, Vec<u8>)]) {
    use trawl_hadoop::seq::{Writer, WriterOptions};
    std::fs::create_dir_all(dir).unwrap();
    let options = WriterOptions::new(hadoop::TEXT, class, [7; 16]);
    let mut writer = Writer::create(&dir.join("data"), options).unwrap();
    for (url, value) in records {
        writer.append(&crate::db::text_key(hadoop::TEXT, url.as_ref()), value).unwrap();
    }
    writer.finish().unwrap();
}

fn fetch_of(status: Status, time: i64, code: &str) -> Vec<u8> {
    let mut datum = CrawlDatum::new(status, time, 1.0);
    if !code.is_empty() {
        datum.metadata.insert("nutch.protocol.code", trawl_hadoop::Any::text(code.as_bytes()));
    }
    encoded(|out| datum.encode(out))
}

fn content_of(url: &str) -> Vec<u8> {
    let (url, content_type) = (Text::from(url.to_owned()), Text::from("text/plain".to_owned()));
    let body = format!("body of {url}").into_bytes();
    let content = Content {
        base: url.clone(),
        url,
        content: body.into(),
        content_type,
        metadata: crate::types::Metadata::default(),
    };
    encoded(|out| content.encode(out))
}

/// The fetcher notes where a redirect leads under the key of the target, which may have been fetched as well.
#[test]
fn the_fetch_of_a_page_is_not_the_link_that_led_to_it() {
    let [page, gone] = ["http://a.example/page", "http://a.example/z-gone"];
    let link = || fetch_of(Status::LINKED, 1_800_000_000_000, "");
    for link_first in [true, false] {
        let temp = tempfile::tempdir().unwrap();
        let mut fetches = vec![
            (page, link()),
            (page, fetch_of(Status::FETCH_SUCCESS, 1_700_000_000_000, "203")),
            (gone, link()),
            (gone, fetch_of(Status::FETCH_GONE, 1_700_000_000_001, "404")),
        ];
        if !link_first {
            fetches.swap(0, 1);
            fetches.swap(2, 3);
        }
        let dir = temp.path();
        map_of(&dir.join("crawl_fetch/part-r-00000"), class::CRAWL_DATUM, &fetches);
        map_of(
            &dir.join("content/part-r-00000"),
            class::CONTENT,
            &[(page, content_of(page)), (page, content_of(page))],
        );
        let archive = open(dir);
        let all = captures(&*archive, Pick::All);
        let told = |seen: &Seen| (seen.0.clone(), seen.1, seen.2.lines().next().unwrap().to_owned());
        let found = (page.to_owned(), 1_700_000_000_000, "HTTP/1.1 203 ".to_owned());
        let lost = (gone.to_owned(), 1_700_000_000_001, "HTTP/1.1 404 Not Found".to_owned());
        let seen: Vec<_> = all.iter().map(|(seen, _)| told(seen)).collect();
        assert_eq!(seen, [found.clone(), found.clone(), lost.clone()], "link first: {link_first}");
        for (url, expected) in [(page, found), (gone, lost)] {
            let newest = captures(&*archive, Pick::Newest(url));
            assert_eq!(newest.iter().map(|(seen, _)| told(seen)).collect::<Vec<_>>(), [expected], "{link_first}");
        }
    }
}

/// Both halves of a capture are found by walking over sorted files: a file that is not sorted must not give captures without
/// their other half as if there were none.
#[test]
fn segments_out_of_order_are_told() {
    let urls: Vec<String> = (0..6).map(|n| format!("http://a.example/{n}")).collect();
    let mut mixed: Vec<&str> = urls.iter().map(String::as_str).collect();
    let sorted = mixed.clone();
    mixed.swap(1, 4);
    for (contents, fetches, file) in [(&mixed, &sorted, "content"), (&sorted, &mixed, "crawl_fetch")] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        let contents: Vec<_> = contents.iter().map(|url| (*url, content_of(url))).collect();
        let fetches: Vec<_> = fetches.iter().map(|url| (*url, fetch_of(Status::FETCH_SUCCESS, 5, "203"))).collect();
        map_of(&dir.join("content/part-r-00000"), class::CONTENT, &contents);
        map_of(&dir.join("crawl_fetch/part-r-00000"), class::CRAWL_DATUM, &fetches);
        let (_, told) = read_through(&*open(dir));
        let here = |error: &String| {
            error.contains(&format!("{file}/part-r-00000/data@")) && error.contains("keys that ascend")
        };
        assert!(told.iter().any(here), "{file}: {told:?}");
    }
}

/// An index leads to the first record of the fetches: if that one is out of place, all behind it are.
#[test]
fn contents_alone_tell_of_fetches_out_of_order() {
    let urls = ["http://a.example/3", "http://a.example/1", "http://a.example/2"];
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let mut contents: Vec<_> = urls.iter().map(|url| (*url, content_of(url))).collect();
    contents.sort();
    let fetches: Vec<_> = urls.iter().map(|url| (*url, fetch_of(Status::FETCH_SUCCESS, 5, "203"))).collect();
    map_of(&dir.join("content/part-r-00000"), class::CONTENT, &contents);
    map_of(&dir.join("crawl_fetch/part-r-00000"), class::CRAWL_DATUM, &fetches);
    let (_, told) = read_through(&*open(&dir.join("content")));
    assert!(told.iter().any(|error| error.contains("crawl_fetch/part-r-00000/data@")), "{told:?}");
}

/// Captures, and what was told of the others.
fn read_through(archive: &dyn Archive) -> (Vec<Seen>, Vec<String>) {
    let mut source = archive.captures(Pick::All).unwrap().unwrap();
    let (mut all, mut told) = (Vec::new(), Vec::new());
    loop {
        match source.next_entry() {
            Ok(Some((Entry::Capture(capture), _))) => all.push(seen(*capture)),
            Ok(Some(_)) => panic!("not a capture"),
            Ok(None) => return (all, told),
            Err(error) => told.push(error.to_string()),
        }
    }
}

/// Java's URLs are text. Two that are not would become one, with a character that stands for what cannot be read.
#[test]
fn urls_that_are_not_text_are_told() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let urls: [&[u8]; 3] = [b"http://a.example/", b"http://a.example/\xfe", b"http://a.example/\xff"];
    let contents = urls.map(|url| (url, content_of("http://a.example/")));
    let fetches = urls.map(|url| (url, fetch_of(Status::FETCH_SUCCESS, 5, "200")));
    map_of(&dir.join("segment/content/part-r-00000"), class::CONTENT, &contents);
    map_of(&dir.join("segment/crawl_fetch/part-r-00000"), class::CRAWL_DATUM, &fetches);
    let (all, told) = read_through(&*open(&dir.join("segment")));
    assert_eq!(all.len(), 1);
    assert!(told.len() == 2 && told.iter().all(|error| error.contains("a URL in UTF-8")), "{told:?}");

    map_of(&dir.join("crawldb/current/part-r-00000"), class::CRAWL_DATUM, &fetches);
    let archive = open(&dir.join("crawldb"));
    let source = archive.urls(&archive.identity().unwrap()).unwrap().unwrap();
    let (mut found, mut told) = (Vec::new(), Vec::new());
    for split in source.splits(u64::MAX).unwrap() {
        let mut take = |item: Result<UrlRecord, DoorError>| match item {
            Ok(record) => found.push(record.url),
            Err(error) => told.push(error.to_string()),
        };
        source
            .read(split, &mut |_, item| {
                take(item);
                Ok(())
            })
            .unwrap();
    }
    assert_eq!(found, ["http://a.example/"]);
    assert!(told.len() == 2 && told.iter().all(|error| error.contains("a URL in UTF-8")), "{told:?}");
}

/// Whoever reads a stored head with an empty line in its middle takes the rest of it for a part of the body.
#[test]
fn a_stored_head_is_one_head() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, url) = (temp.path(), "http://a.example/");
    let mut content = Content { content: b"body"[..].into(), ..Content::default() };
    content.metadata.add("_response.headers_", "HTTP/1.1 200 OK\r\nA: b\r\n\r\nC: d\r\n\r\n".to_owned());
    map_of(&dir.join("content/part-r-00000"), class::CONTENT, &[(url, encoded(|out| content.encode(out)))]);
    let fetch = fetch_of(Status::FETCH_SUCCESS, 5, "200");
    map_of(&dir.join("crawl_fetch/part-r-00000"), class::CRAWL_DATUM, &[(url, fetch)]);
    let (all, _) = read_through(&*open(dir));
    assert_eq!((&*all[0].2, &*all[0].3), ("HTTP/1.1 200 OK\r\nA: b\r\n\r\n", &b"body"[..]));
}

/// Contents need not be stored, and are deleted to save room: what was fetched did not fail for that.
#[test]
fn a_fetch_without_its_content_is_not_a_failure() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, url) = (temp.path(), "http://a.example/");
    let mut told = CrawlDatum::new(Status::FETCH_SUCCESS, 5, 1.0);
    super::capture::set_protocol_status(&mut told, &crate::types::ProtocolStatus::new(1, 0, None));
    for fetch in [fetch_of(Status::FETCH_SUCCESS, 5, ""), encoded(|out| told.encode(out))] {
        map_of(&dir.join("crawl_fetch/part-r-00000"), class::CRAWL_DATUM, &[(url, fetch)]);
        let archive = open(dir);
        let mut source = archive.captures(Pick::All).unwrap().unwrap();
        let Some((Entry::Capture(capture), _)) = source.next_entry().unwrap() else { panic!("no capture") };
        let Outcome::Response { message, truncated, .. } = &capture.outcome else { panic!("{:?}", capture.outcome) };
        assert!(message.head.starts_with(b"HTTP/1.1 200 OK\r\n") && truncated.is_some());
    }
}

/// Halves of captures are looked for by the hash of their URL: in a segment that lost a part, or whose parts have other names,
/// they are not found.
#[test]
fn parts_that_are_lost_or_renamed_are_told() {
    use trawl_hadoop::parts::part_of_text;
    let urls: Vec<String> = (0..40).map(|n| format!("http://a.example/{n:02}")).collect();
    let of_part = |n: u32| urls.iter().map(String::as_str).filter(move |url| part_of_text(url.as_bytes(), 2) == n);
    // Which part of the fetches has which name.
    for (names, lost) in [([0, 1], 0), ([1, 0], 2), ([0, 9], 2)] {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path();
        for n in [0, 1] {
            let contents: Vec<_> = of_part(n).map(|url| (url, content_of(url))).collect();
            map_of(&dir.join(format!("content/part-r-0000{n}")), class::CONTENT, &contents);
            let fetches: Vec<_> = of_part(n).map(|url| (url, fetch_of(Status::FETCH_SUCCESS, 5, "200"))).collect();
            let name = names[n as usize];
            if name < 2 {
                map_of(&dir.join(format!("crawl_fetch/part-r-0000{name}")), class::CRAWL_DATUM, &fetches);
            }
        }
        let (all, told) = read_through(&*open(dir));
        assert_eq!((all.len(), told.len()), (urls.len(), lost), "{names:?}: {told:?}");
        assert!(told.iter().all(|error| error.contains("parts are missing")), "{told:?}");
        let (_, findings) = check(dir);
        let is_told =
            |finding: &Finding| finding.detail.contains("found no file") || finding.detail.contains("of part");
        assert_eq!(findings.iter().any(is_told), lost > 0, "{names:?}: {findings:?}");
    }
}

/// A merge of segments writes only parts that have records. Where the last part has no contents, those of the others are
/// found by a hash over all parts, as many as there are of fetches.
#[test]
fn halves_meet_where_the_last_part_has_no_contents() {
    use trawl_hadoop::parts::part_of_text;
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let urls: Vec<String> = (0..40).map(|n| format!("http://a.example/{n:02}")).collect();
    for n in 0..3 {
        let of_part = || urls.iter().map(String::as_str).filter(|url| part_of_text(url.as_bytes(), 3) == n);
        let fetches: Vec<_> = of_part().map(|url| (url, fetch_of(Status::FETCH_SUCCESS, 5, "200"))).collect();
        map_of(&dir.join(format!("crawl_fetch/part-r-0000{n}")), class::CRAWL_DATUM, &fetches);
        if n < 2 {
            let contents: Vec<_> = of_part().map(|url| (url, content_of(url))).collect();
            map_of(&dir.join(format!("content/part-r-0000{n}")), class::CONTENT, &contents);
        }
    }
    let list: Vec<_> = urls.iter().map(|url| (&**url, fetch_of(Status::DB_UNFETCHED, 5, ""))).collect();
    map_of(&dir.join("list"), class::CRAWL_DATUM, &list);
    std::fs::create_dir_all(dir.join("crawl_generate")).unwrap();
    std::fs::rename(dir.join("list/data"), dir.join("crawl_generate/part-r-00000")).unwrap();
    let archive = open(dir);
    let (all, told) = read_through(&*archive);
    let found: BTreeSet<_> = all.iter().map(|(url, ..)| url.clone()).collect();
    assert_eq!((all.len(), found.len()), (urls.len(), urls.len()), "no capture comes twice");
    assert!(told.iter().all(|error| error.contains("content/part-r-00002/data@0: expected the records")), "{told:?}");
    let has_content = |url: &&String| part_of_text(url.as_bytes(), 3) < 2;
    assert_eq!(all.iter().filter(|(.., body)| !body.is_empty()).count(), urls.iter().filter(has_content).count());
    for url in urls.iter().filter(has_content) {
        let [(one, _)] = captures(&*archive, Pick::Newest(url)).try_into().unwrap();
        assert!(!one.3.is_empty(), "{url}");
    }
    // So it is in splits of any size, which an ingest reads.
    for target in [100, 1 << 20] {
        let (mut all, mut told) = (Vec::new(), 0);
        for split in archive.splits(target).unwrap() {
            let mut source = archive.captures(Pick::Split(split)).unwrap().unwrap();
            loop {
                match source.next_entry() {
                    Ok(Some((Entry::Capture(capture), _))) => all.push(capture.url),
                    Ok(Some(_)) => panic!("not a capture"),
                    Ok(None) => break,
                    Err(error) => told += u32::from(error.to_string().contains("parts are missing")),
                }
            }
        }
        all.sort();
        assert_eq!(all, urls);
        assert!(told > 0);
    }
    // All of them were fetched: none counts as listed in vain.
    assert_eq!(archive.left_out().unwrap(), BTreeMap::new());
}

/// The same parts of contents and fetches are missing behind the last one, as after a copy that was interrupted, and between others,
/// as a merge by more tasks than there are records leaves them: each page became two captures.
#[test]
fn halves_meet_in_parts_that_are_not_all() {
    use trawl_hadoop::parts::part_of_text;
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let urls: Vec<String> = (0..90).map(|n| format!("http://a.example/{n:02}")).collect();
    let mut there = BTreeSet::new();
    for n in [0, 2, 3] {
        let of_part = || urls.iter().map(String::as_str).filter(|url| part_of_text(url.as_bytes(), 5) == n);
        let fetches: Vec<_> = of_part().map(|url| (url, fetch_of(Status::FETCH_SUCCESS, 5, "200"))).collect();
        map_of(&dir.join(format!("crawl_fetch/part-r-0000{n}")), class::CRAWL_DATUM, &fetches);
        let contents: Vec<_> = of_part().map(|url| (url, content_of(url))).collect();
        map_of(&dir.join(format!("content/part-r-0000{n}")), class::CONTENT, &contents);
        there.extend(of_part());
    }
    let archive = open(dir);
    let (all, told) = read_through(&*archive);
    let found: BTreeSet<_> = all.iter().map(|(url, ..)| url.as_str()).collect();
    assert_eq!((all.len(), &found), (there.len(), &there), "each once");
    assert!(all.iter().all(|(_, time, _, body)| *time == 5 && !body.is_empty()), "with both halves");
    assert!(!told.is_empty() && told.iter().all(|error| error.contains("parts are missing")), "{told:?}");
    for url in there {
        let [(one, _)] = captures(&*archive, Pick::Newest(url)).try_into().unwrap();
        assert!(one.1 == 5 && !one.3.is_empty(), "{url}");
    }
}

/// Hashes of URLs that are much alike have something in common too: those of one part of three are all even, as if it were one of six.
/// The other parts tell that it is not.
#[test]
fn urls_that_are_alike_do_not_look_like_parts_that_are_missing() {
    use trawl_hadoop::parts::part_of_text;
    let temp = tempfile::tempdir().unwrap();
    let (segment, db) = (temp.path().join("20240101000000"), temp.path().join("crawldb"));
    let pages: BTreeSet<String> = (0..150).map(|n| format!("http://h{n}.example/{n}")).collect();
    for n in 0..3 {
        let of_part = || pages.iter().map(String::as_str).filter(|url| part_of_text(url.as_bytes(), 3) == n);
        assert!(of_part().count() > 32);
        let fetches: Vec<_> = of_part().map(|url| (url, fetch_of(Status::FETCH_SUCCESS, 5, "200"))).collect();
        map_of(&segment.join(format!("crawl_fetch/part-r-0000{n}")), class::CRAWL_DATUM, &fetches);
        let contents: Vec<_> = of_part().map(|url| (url, content_of(url))).collect();
        map_of(&segment.join(format!("content/part-r-0000{n}")), class::CONTENT, &contents);
        let states: Vec<_> = of_part().map(|url| (url, fetch_of(Status::DB_UNFETCHED, 5, ""))).collect();
        map_of(&db.join(format!("current/part-r-0000{n}")), class::CRAWL_DATUM, &states);
    }
    let (all, told) = read_through(&*open(&segment));
    assert_eq!((all.len(), told), (pages.len(), Vec::new()));
    assert_eq!(urls(&db, 1 << 20).len(), pages.len());
    // Without the last part, all of them are those of one of three.
    std::fs::remove_dir_all(db.join("current/part-r-00002")).unwrap();
    let archive = open(&db);
    let source = archive.urls(&archive.identity().unwrap()).unwrap().unwrap();
    let (mut found, mut told) = (0, Vec::new());
    for split in source.splits(1000).unwrap() {
        let mut each = |_: u64, item: Result<UrlRecord, DoorError>| -> Result<(), DoorError> {
            match item {
                Ok(_) => found += 1,
                Err(error) => told.push(error.to_string()),
            }
            Ok(())
        };
        source.read(split, &mut each).unwrap();
    }
    assert!(found > 64 && told.len() == 1 && told[0].contains("parts are missing"), "{found}: {told:?}");
}
