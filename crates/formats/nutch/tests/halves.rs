//! A capture is made of a content and of a fetch: damage in one file costs no half that can be read, and is told.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::seq::{OpenOptions, Pack, Writer, WriterOptions};
use trawl_hadoop::{Codec, class as hadoop};
use trawl_io::format::{Format, Opening};
use trawl_io::{Fs, RealFs};
use trawl_model::{Check, DoorError, Entry, Finding, Outcome, Pick, UrlRecord};
use trawl_nutch::NutchFormat;
use trawl_nutch::class;
use trawl_nutch::db::text_key;
use trawl_nutch::tools::legacy_missing;
use trawl_nutch::types::{Content, CrawlDatum, Metadata, Status, encoded};

fn fs() -> Arc<dyn Fs> {
    Arc::new(RealFs)
}

/// A URL, and its body; nothing for a fetch without one.
type Seen = (String, Option<String>);

/// Captures, and what was told of the others.
fn read_through(path: &Path) -> (Vec<Seen>, Vec<String>) {
    let archive = NutchFormat.open(&Opening::new(&fs(), path)).unwrap();
    let mut source = archive.captures(Pick::All).unwrap().unwrap();
    let (mut all, mut told) = (Vec::new(), Vec::new());
    loop {
        match source.next_entry() {
            Ok(Some((Entry::Capture(capture), _))) => {
                let Outcome::Response { mut message, truncated, .. } = capture.outcome else { panic!("no response") };
                let body = message.body.read_to_bytes(u64::MAX).unwrap().to_vec();
                all.push((capture.url, truncated.is_none().then(|| String::from_utf8(body).unwrap())));
            }
            Ok(Some(_)) => panic!("not a capture"),
            Ok(None) => return (all, told),
            Err(error) => told.push(error.to_string()),
        }
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

fn records(file: &Path, class: &str, pack: Pack, records: &[(&str, Vec<u8>)]) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let options = WriterOptions { pack, ..WriterOptions::new(hadoop::TEXT, class, [7; 16]) };
    let mut writer = Writer::create(file, options).unwrap();
    for (url, value) in records {
        writer.append(&text_key(hadoop::TEXT, url.as_bytes()), value).unwrap();
    }
    writer.finish().unwrap();
}

fn data(segment: &Path, part: &str) -> PathBuf {
    segment.join(part).join("part-r-00000/data")
}

/// A segment whose every URL has a content and a fetch, in this order.
fn segment(dir: &Path, contents: &[&str], fetches: &[&str]) {
    let content = |url: &str| {
        let content = Content {
            url: url.to_owned().into(),
            base: url.to_owned().into(),
            content: format!("body of {url}").into_bytes().into(),
            content_type: "text/plain".to_owned().into(),
            metadata: Metadata::default(),
        };
        encoded(|out| content.encode(out))
    };
    let fetch = || {
        let mut datum = CrawlDatum::new(Status::FETCH_SUCCESS, 5, 1.0);
        datum.metadata.insert("nutch.protocol.code", trawl_hadoop::Any::text(b"200"));
        encoded(|out| datum.encode(out))
    };
    let block = Pack::Block(Codec::Default);
    let contents: Vec<_> = contents.iter().map(|url| (*url, content(url))).collect();
    let fetches: Vec<_> = fetches.iter().map(|url| (*url, fetch())).collect();
    records(&data(dir, "content"), class::CONTENT, block, &contents);
    records(&data(dir, "crawl_fetch"), class::CRAWL_DATUM, block, &fetches);
}

/// The values of a block lie at its end: keys can be read, values cannot.
#[test]
fn one_bad_byte_in_a_block_leaves_the_other_halves() {
    let urls: Vec<String> = (0..50).map(|n| format!("http://a.example/{n:02}")).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    for part in ["crawl_fetch", "content"] {
        let temp = tempfile::tempdir().unwrap();
        segment(temp.path(), &urls, &urls);
        let file = data(temp.path(), part);
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.len() - 20;
        bytes[at] ^= 4;
        std::fs::write(&file, bytes).unwrap();
        // Without checksums, the file opens and the values are found to be damaged.
        std::fs::remove_file(file.with_file_name(".data.crc")).unwrap();
        let (all, told) = read_through(temp.path());
        assert_eq!(all.iter().map(|(url, _)| url.as_str()).collect::<Vec<_>>(), urls, "{part}");
        assert!(all.iter().all(|(_, body)| body.is_some() == (part == "crawl_fetch")), "{part}");
        // Not once for each record: where the halves are looked up, and where the file itself is read.
        assert!((1..=3).contains(&told.len()), "{part}: {told:?}");
        assert!(told.iter().all(|error| error.contains(&format!("{part}/part-r-00000/data@"))), "{told:?}");
    }
}

/// A fetch behind the last content's may be that of a content before.
#[test]
fn contents_alone_tell_of_disorder_behind_their_last_key() {
    let temp = tempfile::tempdir().unwrap();
    let [one, two, three] = ["http://a.example/1", "http://a.example/2", "http://a.example/3"];
    segment(temp.path(), &[one, two], &[two, three, one]);
    let (all, told) = read_through(&temp.path().join("content"));
    assert_eq!((all.len(), told.len()), (2, 1), "{told:?}");
    assert!(told.iter().all(|error| error.contains("crawl_fetch") && error.contains("keys that ascend")), "{told:?}");
}

#[test]
fn a_part_of_a_segment_without_files_is_a_fault() {
    let urls = ["http://a.example/1", "http://a.example/2"];
    for part in ["content", "crawl_fetch"] {
        let temp = tempfile::tempdir().unwrap();
        segment(temp.path(), &urls, &urls);
        assert_eq!(findings(temp.path()).iter().filter(|f| !f.detail.contains("index")).count(), 0);
        std::fs::remove_dir_all(temp.path().join(part).join("part-r-00000")).unwrap();
        assert!(findings(temp.path()).iter().any(|f| f.detail.contains("parts are missing")), "{part}");
        let (all, told) = read_through(temp.path());
        assert_eq!((all.len(), told.len()), (2, 1), "{part}: {told:?}");
    }
}

/// Every task of a job writes a file, so that a number that is missing is a file that is lost.
#[test]
fn a_lost_file_of_a_fetch_list_is_a_fault() {
    let temp = tempfile::tempdir().unwrap();
    let urls = ["http://a.example/1"];
    segment(temp.path(), &urls, &urls);
    let list = temp.path().join("crawl_generate");
    for n in [0, 2] {
        let datum = encoded(|out| CrawlDatum::new(Status::DB_UNFETCHED, 5, 1.0).encode(out));
        let file = list.join(format!("part-r-0000{n}"));
        records(&file, class::CRAWL_DATUM, Pack::None, &[(urls[0], datum)]);
    }
    let found = findings(temp.path());
    assert!(found.iter().any(|f| f.file.ends_with("part-r-00001") && f.detail.contains("found no file")), "{found:?}");
}

/// Nothing is left of contents and fetches, as after a copy that was interrupted: the list of URLs to fetch is all there is, and
/// must not pass for all there was.
#[test]
fn a_segment_that_lost_both_halves_is_a_fault() {
    let temp = tempfile::tempdir().unwrap();
    let urls = ["http://a.example/1"];
    segment(temp.path(), &urls, &urls);
    let datum = encoded(|out| CrawlDatum::new(Status::DB_UNFETCHED, 5, 1.0).encode(out));
    records(&temp.path().join("crawl_generate/part-r-00000"), class::CRAWL_DATUM, Pack::None, &[(urls[0], datum)]);
    for part in ["content", "crawl_fetch"] {
        std::fs::remove_dir_all(temp.path().join(part).join("part-r-00000")).unwrap();
    }
    let faults = findings(temp.path());
    assert_eq!(faults.iter().filter(|f| f.detail.contains("parts are missing")).count(), 2, "{faults:?}");
    let archive = NutchFormat.open(&Opening::new(&fs(), temp.path())).unwrap();
    let source = archive.urls(&archive.identity().unwrap()).unwrap().unwrap();
    let (mut found, mut told) = (0, 0);
    for split in source.splits(1 << 20).unwrap() {
        let mut each = |_: u64, item: Result<UrlRecord, DoorError>| -> Result<(), DoorError> {
            match item {
                Ok(_) => found += 1,
                Err(_) => told += 1,
            }
            Ok(())
        };
        source.read(split, &mut each).unwrap();
    }
    assert_eq!((found, told), (1, 2));
    let mut source = archive.captures_to_convert().unwrap().unwrap();
    for _ in 0..2 {
        assert!(source.next_entry().is_err());
    }
    assert!(source.next_entry().unwrap().is_none());
}

/// A segment of 0.4 to 0.7 has one file in each directory. Where it is lost, what it held must not pass for what was never stored.
#[test]
fn an_old_segment_that_lost_a_file_is_a_fault() {
    let releases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/legacy");
    for (release, lost) in [("nutch-0.4", "fetcher_content"), ("nutch-0.7.2", "content")] {
        let temp = tempfile::tempdir().unwrap();
        for dir in std::fs::read_dir(releases.join(release).join("segments/20040525120000")).unwrap() {
            let from = dir.unwrap().path();
            let to = temp.path().join(from.file_name().unwrap());
            std::fs::create_dir_all(&to).unwrap();
            for file in ["data", "index"] {
                std::fs::copy(from.join(file), to.join(file)).unwrap();
            }
        }
        let missing = || legacy_missing(temp.path(), &[], &OpenOptions::default()).unwrap().len();
        assert_eq!((findings(temp.path()).len(), missing()), (0, 0), "{release}");
        std::fs::remove_file(temp.path().join(lost).join("data")).unwrap();
        let faults = findings(temp.path());
        assert!(faults.iter().any(|f| f.detail.contains("parts are missing")), "{release}: {faults:?}");
        assert_eq!(missing(), 1, "{release}");
        let archive = NutchFormat.open(&Opening::new(&fs(), temp.path())).unwrap();
        let mut source = archive.captures(Pick::All).unwrap().unwrap();
        let Err(told) = source.next_entry() else { panic!("{release}: not told") };
        assert!(told.to_string().contains(lost), "{told}");
        let mut pages = 0;
        while source.next_entry().unwrap().is_some() {
            pages += 1;
        }
        assert_eq!(pages, 18, "{release}");
    }
}
