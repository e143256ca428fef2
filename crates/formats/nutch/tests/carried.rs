//! What a segment says of a fetch goes through captures and comes back; damage is passed over once; missing parts are found.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use trawl_hadoop::seq::OpenOptions;
use trawl_hadoop::{Any, Text};
use trawl_io::format::{Creation, Format, Opening, Target};
use trawl_io::{Fs, RealFs};
use trawl_model::{Aside, Capture, Check, Clock, Entry, Finding, Outcome, Pick, SourceIdentity, UnixMillis};
use trawl_nutch::NutchFormat;
use trawl_nutch::db::{Compress, Scan, WriteSettings};
use trawl_nutch::segment::SegmentWriter;
use trawl_nutch::types::{Content, CrawlDatum, Metadata, Status, whole};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

fn fs() -> Arc<dyn Fs> {
    Arc::new(RealFs)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to)
        } else {
            drop(std::fs::copy(entry.path(), to))
        }
    }
}

/// Writes every capture of `source` to a segment, as `change` leaves it. Returns what it lost, by name.
fn convert(source: &Path, target: &Path, change: &dyn Fn(&mut Capture<'_>)) -> Vec<String> {
    let ids = AtomicU8::new(1);
    let ids = Arc::new(move || [ids.fetch_add(1, Ordering::Relaxed); 16]);
    let creation = Creation::new(fs(), Target::File(target.into()), ids, Clock::fixed(UnixMillis(0)));
    let mut sink = NutchFormat.create(creation).unwrap();
    let archive = NutchFormat.open(&Opening::new(&fs(), source)).unwrap();
    let mut captures = archive.captures_to_convert().unwrap().unwrap();
    while let Some((entry, _)) = captures.next_entry().unwrap() {
        let Entry::Capture(mut capture) = entry else { panic!("not a capture") };
        change(&mut capture);
        sink.write(*capture).unwrap();
    }
    sink.finish().unwrap().dropped.into_keys().map(|lost| lost.to_string()).collect()
}

/// The fetches of a segment by URL, and whether there is content.
fn fetches(segment: &Path) -> BTreeMap<String, (CrawlDatum<'static>, bool)> {
    let options = OpenOptions::default();
    let mut contents = Vec::new();
    let mut scan = Scan::of(&segment.join("content"), &options).unwrap();
    while let Some(entry) = scan.next_entry().unwrap() {
        contents.push(entry.key.to_string());
    }
    let mut all = BTreeMap::new();
    let mut scan = Scan::of(&segment.join("crawl_fetch"), &options).unwrap();
    while let Some(entry) = scan.next_entry().unwrap() {
        let url = entry.key.to_string();
        let value = entry.value.to_vec();
        let datum = whole(&value, CrawlDatum::decode).unwrap();
        if datum.status().is_fetch() {
            let has_content = contents.contains(&url);
            all.insert(url, (datum.into_owned(), has_content));
        }
    }
    all
}

#[test]
fn a_segment_becomes_the_same_segment() {
    for name in [
        "crawl-e2e/segments/20261115074402",
        "crawl-e2e/segments/20261115074416",
        "crawl-synth/segments/20240102030405",
    ] {
        let temp = tempfile::tempdir().unwrap();
        let target = temp.path().join("a.segment");
        let lost = convert(&fixture(name), &target, &|_| {});
        assert!(lost.iter().all(|lost| lost == "many_per_url"), "{name}: {lost:?}");
        let (before, after) = (fetches(&fixture(name)), fetches(&target));
        assert_eq!(before.len(), after.len(), "{name}");
        for (url, (datum, has_content)) in &before {
            let (found, found_content) = &after[url];
            let facts = |d: &CrawlDatum<'_>| {
                let metadata = format!("{:?}", d.metadata.entries());
                (
                    d.status(),
                    d.fetch_time,
                    d.retries,
                    d.interval.seconds(),
                    d.score.to_bits(),
                    d.modified_time,
                    metadata,
                )
            };
            assert_eq!(facts(datum), facts(found), "{name} {url}");
            assert_eq!(datum.signature, found.signature, "{name} {url}");
            assert_eq!(has_content, found_content, "{name} {url}");
        }
    }
}

/// The URL of a content may be another than that of its fetch: it comes back, so that it does not count as lost.
#[test]
fn the_url_of_a_content_is_not_lost() {
    for name in ["nutch-0.6", "nutch-0.7.2"] {
        let temp = tempfile::tempdir().unwrap();
        let segment = fixture("legacy").join(name).join("segments/20040525120000");
        assert_eq!(convert(&segment, &temp.path().join("a.segment"), &|_| {}), Vec::<String>::new(), "{name}");
    }
}

/// URL, base and type, bytes, metadata.
type ContentFacts = (String, Vec<u8>, BTreeMap<String, Vec<String>>);

/// Contents of a segment by URL, their metadata sorted, without the name of the segment.
fn contents(segment: &Path) -> BTreeMap<String, ContentFacts> {
    let mut all = BTreeMap::new();
    let mut scan = Scan::of(&segment.join("content"), &OpenOptions::default()).unwrap();
    while let Some(entry) = scan.next_entry().unwrap() {
        let content = whole(entry.value, Content::decode).unwrap();
        let mut metadata: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in content.metadata.0.iter().filter(|(name, _)| *name != *"nutch.segment.name") {
            metadata.entry(name.to_string()).or_default().extend(values.iter().map(ToString::to_string));
        }
        let texts = format!("{} {} {}", content.url, content.base, content.content_type);
        let facts = (texts, content.content.to_vec(), metadata);
        all.insert(entry.key.to_string(), facts);
    }
    all
}

/// Heads that were made of metadata do not come back as heads that were received, and no line changes its name or value.
#[test]
fn contents_stay_as_they_were() {
    let temp = tempfile::tempdir().unwrap();
    let odd = temp.path().join("odd");
    let url = "http://a.example/";
    let mut metadata = Metadata::default();
    for (name, value) in [
        ("Content-Encoding", "gzip"),
        ("Content-Length", "17"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("X-Title", "日本"),
        ("X-Lines", "one\r\ntwo"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("_fst_", "36"),
        ("nutch.crawl.score", "0.5"),
    ] {
        metadata.add(name, value.to_owned());
    }
    let body: Cow<'static, [u8]> = b"not compressed any more"[..].into();
    let text = |text: &str| Text::from(text.to_owned());
    let other = text("http://a.example/index.html");
    let content = Content { url: other, base: text(url), content: body, content_type: text("text/html"), metadata };
    let settings = WriteSettings::new(temp.path(), [3; 16]);
    let mut writer = SegmentWriter::new(Compress::Nutch, &settings);
    writer.content(url.as_bytes(), &content).unwrap();
    writer.fetched(url.as_bytes(), &CrawlDatum::new(Status::FETCH_SUCCESS, 5, 1.0)).unwrap();
    writer.finish(&odd, &mut |_, _, _, _| Ok(())).unwrap();
    let fixtures = ["crawl-e2e/segments/20261115074416", "crawl-synth/segments/20240102030405"].map(fixture);
    for (n, segment) in fixtures.iter().chain([&odd]).enumerate() {
        let target = temp.path().join(format!("{n}.segment"));
        convert(segment, &target, &|_| {});
        assert_eq!(contents(segment), contents(&target), "{}", segment.display());
    }
}

/// A segment knows of pages that did not change, so that it takes those of another.
#[test]
fn pages_that_were_not_modified_stay() {
    let temp = tempfile::tempdir().unwrap();
    let (first, second) = (temp.path().join("first"), temp.path().join("second.segment"));
    let mut datum = CrawlDatum::new(Status::FETCH_NOTMODIFIED, 5, 0.25);
    datum.metadata.insert("nutch.protocol.code", Any::text(b"304"));
    datum.signature = vec![9; 16].into();
    let settings = WriteSettings::new(temp.path(), [3; 16]);
    let mut writer = SegmentWriter::new(Compress::Nutch, &settings);
    writer.fetched(b"http://a.example/", &datum).unwrap();
    writer.finish(&first, &mut |_, _, _, _| Ok(())).unwrap();
    let lost = convert(&first, &second, &|_| {});
    assert!(lost.is_empty(), "{lost:?}");
    let after = fetches(&second);
    let (found, has_content) = &after["http://a.example/"];
    assert_eq!(
        (found.status(), &found.signature[..], found.score, *has_content),
        (datum.status(), &[9; 16][..], 0.25, false)
    );
}

#[test]
fn a_page_that_was_not_found_has_its_status() {
    let segment = fixture("crawl-e2e/segments/20261115074416");
    let archive = NutchFormat.open(&Opening::new(&fs(), &segment)).unwrap();
    let mut one = archive.captures(Pick::Newest("http://host3.example/page1.html")).unwrap().unwrap();
    let Some((Entry::Capture(capture), _)) = one.next_entry().unwrap() else { panic!("not there") };
    let Outcome::Response { message, truncated, .. } = &capture.outcome else { panic!("{:?}", capture.outcome) };
    assert!(message.head.starts_with(b"HTTP/1.1 404 Not Found\r\n"));
    assert!(truncated.is_some(), "its body was not empty, it was not stored");
    assert!(capture.facts.meta_json.as_deref().unwrap().contains("\"score\":0.1984127"));
}

/// `meta_json` is anybody's word.
#[test]
fn nonsense_in_the_carried_facts_is_lost_and_said() {
    let segment = fixture("crawl-e2e/segments/20261115074402");
    let temp = tempfile::tempdir().unwrap();
    for nonsense in [
        r#"{"nutch":{"score":"high"}}"#,
        r#"{"nutch":{"metadata":[["k",{"class":"org.apache.hadoop.io.LongWritable","hex":"00"}]]}}"#,
        r#"{"nutch":{"metadata":[["k",{"class":"no.such.Class","hex":"00"}]]}}"#,
        r#"{"nutch":{"signature":"zz"}}"#,
        r#"{"nutch":{"status":"fetch_maybe"}}"#,
        r#"{"nutch":[]}"#,
        r#"{"seed":1}"#,
        "not JSON",
    ] {
        let target = temp.path().join("a.segment");
        let lost = convert(&segment, &target, &|capture| capture.facts.meta_json = Some(nonsense.into()));
        assert!(lost.contains(&"facts".to_owned()), "{nonsense}: {lost:?}");
        assert!(fetches(&target).values().any(|(datum, _)| datum.status() == Status::FETCH_SUCCESS), "{nonsense}");
    }
}

#[test]
fn a_chunk_that_fails_its_checksum_is_told_once() {
    let temp = tempfile::tempdir().unwrap();
    let segment = temp.path().join("segment");
    copy(&fixture("crawl-e2e/segments/20261115074416"), &segment);
    let sound = fetches(&segment).len();
    for part in ["content", "crawl_fetch"] {
        let data = segment.join(part).join("part-r-00000/data");
        let whole = std::fs::read(&data).unwrap();
        for at in (512..whole.len()).step_by(if part == "content" { 1407 } else { 803 }).chain([9140 % whole.len()]) {
            let mut bad = whole.clone();
            bad[at] = !bad[at];
            std::fs::write(&data, &bad).unwrap();
            let archive = NutchFormat.open(&Opening::new(&fs(), &segment)).unwrap();
            let mut captures = archive.captures(Pick::All).unwrap().unwrap();
            let (mut found, mut errors) = (0, Vec::new());
            loop {
                match captures.next_entry() {
                    Ok(None) => break,
                    Ok(Some(_)) => found += 1,
                    Err(error) => errors.push(error.to_string()),
                }
                assert!(errors.len() < 20, "{part}@{at}: {errors:?}");
            }
            assert!(!errors.is_empty() && found + 12 >= sound, "{part}@{at}: {found} of {sound}, {errors:?}");
            // And of each split.
            for split in archive.splits(1000).unwrap() {
                let mut captures = archive.captures(Pick::Split(split)).unwrap().unwrap();
                let mut errors = 0;
                while errors < 100 {
                    match captures.next_entry() {
                        Ok(None) => break,
                        Ok(Some(_)) => {}
                        Err(_) => errors += 1,
                    }
                }
                assert!(errors < 100, "{part}@{at}");
            }
            archive.left_out().unwrap();
        }
        std::fs::write(&data, &whole).unwrap();
    }
}

fn findings(path: &Path) -> Vec<Finding> {
    let temp = tempfile::tempdir().unwrap();
    let mut findings = Vec::new();
    let (on_finding, progress) = (&mut |finding| findings.push(finding), &mut |_| {});
    let mut check = Check { temp_dir: temp.path(), memory_bytes: 1 << 20, on_finding, progress };
    NutchFormat.verify(&fs(), &[path.to_owned()], &mut check).unwrap();
    findings
}

/// Reads all URLs; the message of what stops it.
fn read_urls(path: &Path) -> Result<u64, String> {
    let archive = NutchFormat.open(&Opening::new(&fs(), path)).map_err(|e| e.to_string())?;
    let identity = SourceIdentity { uri: String::new(), size: 0, tag: String::new() };
    let urls = archive.urls(&identity).map_err(|e| e.to_string())?.ok_or("no URLs")?;
    let mut all = 0;
    for split in urls.splits(u64::MAX).map_err(|e| e.to_string())? {
        urls.read(split, &mut |_, item| item.map(|_| all += 1)).map_err(|e| e.to_string())?;
    }
    Ok(all)
}

#[test]
fn a_database_that_lost_a_part_is_not_sound() {
    let temp = tempfile::tempdir().unwrap();
    let sound = temp.path().join("sound");
    copy(&fixture("crawl-e2e/crawldb"), &sound);
    assert!(findings(&sound).is_empty());
    assert_eq!(read_urls(&sound), Ok(139));
    // What is taken away, and what the fault names.
    for (gone, named) in [
        ("current", "current/part-r-00000/data"),
        ("current/part-r-00000", "current/part-r-00000/data"),
        ("current/part-r-00001", "current"),
        ("current/part-r-00001/data", "current/part-r-00001/data"),
    ] {
        let db = temp.path().join("db");
        copy(&sound, &db);
        let path = db.join(gone);
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap()
        } else {
            std::fs::remove_file(&path).unwrap()
        }
        let found = findings(&db);
        assert!(found.iter().any(|finding| finding.file.ends_with(named)), "{gone}: {found:?}");
        let error = read_urls(&db).unwrap_err();
        assert!(error.contains(named), "{gone}: {error}");
        // It has an identity all the same: whoever asks for its URLs is told why there are none.
        assert!(NutchFormat.open(&Opening::new(&fs(), &db)).unwrap().identity().is_some());
        std::fs::remove_dir_all(&db).unwrap();
    }
    // Damage to the first bytes of every part does not make it something else.
    for part in ["part-r-00000", "part-r-00001"] {
        let data = sound.join("current").join(part).join("data");
        std::fs::remove_file(data.with_file_name(".data.crc")).unwrap();
        let mut bytes = std::fs::read(&data).unwrap();
        bytes[0] = 0;
        std::fs::write(&data, bytes).unwrap();
    }
    let error = read_urls(&sound).unwrap_err();
    assert!(error.contains("current/part-r-00000/data"), "{error}");
}

/// The entries of a segment's list of URLs to fetch.
fn listed(segment: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut scan = Scan::of(&segment.join("crawl_generate"), &OpenOptions::default()).unwrap();
    while let Some(entry) = scan.next_entry().unwrap() {
        let d = whole(entry.value, CrawlDatum::decode).unwrap();
        let facts = (d.status(), d.fetch_time, d.retries, d.interval.seconds(), d.score.to_bits(), d.modified_time);
        all.insert(entry.key.to_string(), format!("{facts:?} {:?} {:?}", d.signature, d.metadata));
    }
    all
}

#[test]
fn the_list_of_urls_to_fetch_comes_back() {
    let temp = tempfile::tempdir().unwrap();
    for name in [
        "crawl-e2e/segments/20261115074402",
        "crawl-e2e/segments/20261115074416",
        "crawl-synth/segments/20240102030405",
    ] {
        let (segment, target) = (fixture(name), temp.path().join("a.segment"));
        convert(&segment, &target, &|_| {});
        let (mut before, after, fetched) = (listed(&segment), listed(&target), fetches(&segment));
        // What was never fetched has no capture; it is counted as left out.
        before.retain(|url, _| fetched.contains_key(url));
        assert!(!before.is_empty(), "{name}");
        assert_eq!(before, after, "{name}");
        std::fs::remove_dir_all(&target).unwrap();
    }
}

/// Captures come in any order.
#[test]
fn the_latest_capture_of_a_url_stays() {
    let segment = fixture("crawl-e2e/segments/20261115074402");
    let temp = tempfile::tempdir().unwrap();
    let target = temp.path().join("a.segment");
    let ids = Arc::new(move || [7; 16]);
    let creation = Creation::new(fs(), Target::File(target.clone()), ids, Clock::fixed(UnixMillis(0)));
    let mut sink = NutchFormat.create(creation).unwrap();
    for later in [500, 1000, 0] {
        let archive = NutchFormat.open(&Opening::new(&fs(), &segment)).unwrap();
        let mut captures = archive.captures(Pick::All).unwrap().unwrap();
        while let Some((Entry::Capture(mut capture), _)) = captures.next_entry().unwrap() {
            capture.started_at.0 += later;
            sink.write(*capture).unwrap();
        }
    }
    sink.finish().unwrap();
    let (before, after) = (fetches(&segment), fetches(&target));
    assert_eq!(before.len(), after.len());
    for (url, (datum, _)) in &before {
        assert_eq!(after[url].0.fetch_time, datum.fetch_time + 1000, "{url}");
    }
}

/// What is neither a capture nor a URL is told by name, whoever reads the container.
#[test]
fn records_that_are_not_urls_are_told() {
    let asides = |name: &str| {
        let archive = NutchFormat.open(&Opening::new(&fs(), &fixture(name))).unwrap();
        let identity = SourceIdentity { uri: String::new(), size: 0, tag: String::new() };
        let urls = archive.urls(&identity).unwrap().unwrap();
        let mut told = BTreeMap::new();
        for split in urls.splits(1000).unwrap() {
            let mut aside = |_: u64, what: Aside<'_>| match what {
                Aside::Record(kind) => *told.entry(kind.to_owned()).or_insert(0u64) += 1,
                Aside::Oddity(code, _) => panic!("{code}"),
            };
            urls.read_all(split, &mut |_, _| Ok(()), &mut aside).unwrap();
        }
        told
    };
    let told = asides("legacy/nutch-0.4/webdb");
    assert!(told.get("linksByURL").is_some_and(|count| *count > 0), "{told:?}");
    assert!(asides("crawl-e2e/crawldb").is_empty());
    let legacy = fixture("legacy/nutch-0.4/segments/20040525120000");
    let left_out = NutchFormat.open(&Opening::new(&fs(), &legacy)).unwrap().left_out().unwrap();
    for name in ["fetcher_text", "titles of pages", "links of pages", "anchors of links to pages"] {
        assert!(left_out.get(name).is_some_and(|n| *n > 0), "{name}: {left_out:?}");
    }
}
