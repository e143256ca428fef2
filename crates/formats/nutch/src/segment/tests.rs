use super::*;
use crate::RecordPrinter;
use crate::db::{Compress, WriteSettings, text_key};
use crate::types::{Content, CrawlDatum, LinkForm, ParseData, ParseText, Status, encoded, whole};
use std::path::{Path, PathBuf};
use trawl_hadoop::class as hadoop;
use trawl_hadoop::json::Detail;
use trawl_hadoop::map::{MapWriter, MapWriterOptions};
use trawl_hadoop::parts::part_of_text;
use trawl_hadoop::seq::{OpenOptions, WriterOptions};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

/// Everything in a segment, ordered, so that two segments can be compared whatever their parts are.
fn everything(dir: &Path) -> Vec<String> {
    let segment = Segment::open(dir, &OpenOptions::default()).unwrap();
    let mut all = Vec::new();
    for part in SegmentPart::ALL {
        let mut scan = segment.scan(part).unwrap();
        while scan.advance().unwrap() {
            let reader = scan.reader().unwrap();
            let header = reader.header().clone();
            let record = reader.record().unwrap();
            let value = RecordPrinter::new(&header, Detail::Full).print(&record);
            all.push(format!("{} {} {}", part.name(), value["key"], value["value"]));
        }
    }
    all.sort();
    all
}

fn copy(from: &Path, to: &Path, compress: Compress, parts: u32) -> WrittenSegment {
    let segment = Segment::open(from, &OpenOptions::default()).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let settings = WriteSettings { parts, ..WriteSettings::new(temp.path(), [5; 16]) };
    let mut writer = SegmentWriter::new(compress, &settings);
    for part in segment.parts().iter().copied() {
        let mut scan = segment.scan(part).unwrap();
        while let Some(entry) = scan.next_entry().unwrap() {
            let (key, value) = (entry.key.as_bytes(), entry.value);
            match part {
                SegmentPart::CrawlGenerate => {
                    writer.generate(&entry.key.to_str(), &whole(value, CrawlDatum::decode).unwrap()).unwrap();
                }
                SegmentPart::CrawlFetch => {
                    writer.fetched(key, &whole(value, CrawlDatum::decode).unwrap()).unwrap();
                }
                SegmentPart::Content => writer.content(key, &whole(value, Content::decode).unwrap()).unwrap(),
                SegmentPart::CrawlParse => {
                    writer.crawl_parse(b"", key, &whole(value, CrawlDatum::decode).unwrap()).unwrap();
                }
                SegmentPart::ParseData | SegmentPart::ParseText => writer.raw(part, key, value, 0).unwrap(),
            }
        }
    }
    writer.finish(to, &mut |_, _, _, _| Ok(())).unwrap()
}

/// `readseg -get` said that a URL was not on the fetch list whose part was missing; then it refused whole segments that `mergesegs` wrote
/// with more tasks than there are records.
#[test]
fn files_that_are_missing_are_told_and_the_others_read() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("20300101000000");
    copy(&fixture("crawl-synth/segments/20240102030405"), &to, Compress::Nutch, 3);
    let part = to.join("crawl_generate/part-r-00001");
    let mut segment = Segment::open(&to, &OpenOptions::default()).unwrap();
    assert!(segment.get(SegmentPart::CrawlGenerate, b"http://nosuch.example/").unwrap().is_empty());
    assert!(segment.missing(&[]).unwrap().is_empty());
    std::fs::remove_file(&part).unwrap();
    assert!(segment.get(SegmentPart::CrawlGenerate, b"http://nosuch.example/").unwrap().is_empty());
    let count = |segment: &Segment, part| {
        let (mut scan, mut records) = (segment.scan(part).unwrap(), 0);
        while scan.advance().unwrap() {
            records += 1;
        }
        records
    };
    assert!(count(&segment, SegmentPart::CrawlGenerate) > 0);
    let told = segment.missing(&[]).unwrap();
    assert!(told.len() == 1 && told[0].to_string().contains("crawl_generate/part-r-00001"), "{told:?}");
    assert!(segment.missing(&[SegmentPart::CrawlGenerate]).unwrap().is_empty());
    // The same of maps.
    std::fs::remove_dir_all(to.join("crawl_fetch/part-r-00000")).unwrap();
    let mut segment = Segment::open(&to, &OpenOptions::default()).unwrap();
    let told: Vec<_> = segment.missing(&[]).unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told.iter().any(|fault| fault.contains("crawl_fetch/part-r-00000")), "{told:?}");
    assert!(count(&segment, SegmentPart::CrawlFetch) > 0);
    let mut scan = segment.scan(SegmentPart::CrawlFetch).unwrap();
    let url = scan.next_entry().unwrap().unwrap().key.as_bytes().to_vec();
    assert!(!segment.get(SegmentPart::CrawlFetch, &url).unwrap().is_empty());
}

#[test]
fn a_copy_has_the_same_records_in_any_number_of_parts() {
    for name in ["crawl-e2e/segments/20261115074416", "crawl-synth/segments/20240102030405"] {
        for (compress, parts) in [(Compress::Nutch, 1), (Compress::Block, 3)] {
            let dir = tempfile::tempdir().unwrap();
            let to = dir.path().join("20300101000000");
            copy(&fixture(name), &to, compress, parts);
            assert_eq!(everything(&to), everything(&fixture(name)), "{name}");
            let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
            assert_eq!(left.len(), 1, "nothing is left beside the segment");
        }
    }
}

#[test]
fn the_fetch_list_is_ordered_as_nutch_orders_it() {
    for name in ["crawl-e2e/segments/20261115074416", "crawl-e2e/segments/20261115074402"] {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("20300101000000");
        copy(&fixture(name), &to, Compress::Nutch, 1);
        let keys = |dir: &Path| {
            let segment = Segment::open(dir, &OpenOptions::default()).unwrap();
            let mut scan = segment.scan(SegmentPart::CrawlGenerate).unwrap();
            let mut keys = Vec::new();
            while let Some(entry) = scan.next_entry().unwrap() {
                keys.push(entry.key.to_string());
            }
            keys
        };
        assert_eq!(keys(&to), keys(&fixture(name)));
    }
}

#[test]
fn compression_is_that_of_nutch_or_of_its_documentation() {
    let packs = |dir: &Path| {
        let segment = Segment::open(dir, &OpenOptions::default()).unwrap();
        let pack = |part| {
            let mut scan = segment.scan(part).unwrap();
            scan.advance().unwrap();
            scan.reader().unwrap().header().compression.name()
        };
        SegmentPart::ALL.map(pack)
    };
    let original = fixture("crawl-e2e/segments/20261115074416");
    let dir = tempfile::tempdir().unwrap();
    let (plain, blocks) = (dir.path().join("1"), dir.path().join("2"));
    copy(&original, &plain, Compress::Nutch, 1);
    copy(&original, &blocks, Compress::Block, 1);
    assert_eq!(packs(&plain), packs(&original));
    assert_eq!(packs(&blocks), ["BLOCK", "BLOCK", "BLOCK", "BLOCK", "BLOCK", "RECORD"]);
}

#[test]
fn a_url_is_looked_up_in_every_directory() {
    let mut segment = Segment::open(&fixture("crawl-e2e/segments/20261115074402"), &OpenOptions::default()).unwrap();
    let url = b"http://host0.example/";
    let mut get = |part| segment.get(part, url).unwrap();
    assert_eq!(whole(&get(SegmentPart::Content)[0], Content::decode).unwrap().url.as_bytes(), url);
    let fetched = get(SegmentPart::CrawlFetch);
    assert_eq!(whole(&fetched[0], CrawlDatum::decode).unwrap().status(), Status::FETCH_SUCCESS);
    assert_eq!(get(SegmentPart::CrawlGenerate).len(), 1);
    let data = get(SegmentPart::ParseData);
    assert_eq!(whole(&data[0], |d| ParseData::decode(d, LinkForm::WithMetadata)).unwrap().outlinks.len(), 18);
    assert!(!whole(&get(SegmentPart::ParseText)[0], ParseText::decode).unwrap().0.as_bytes().is_empty());
    assert!(segment.get(SegmentPart::Content, b"http://nosuch.example/").unwrap().is_empty());
}

/// A redirect leaves a datum of its target beside that of the target's own fetch; and of a merged segment, parts without
/// records are missing, so that the hash over those that are left names another part.
#[test]
fn every_value_of_a_url_is_found_in_whichever_part_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let url = b"http://a.example/target";
    let datum = |status, time| encoded(|out| CrawlDatum::new(status, time, 1.0).encode(out));
    for (n, values) in [vec![datum(Status::LINKED, 1), datum(Status::FETCH_SUCCESS, 2)], vec![]].into_iter().enumerate()
    {
        // Of two parts, the one that the hash does not name.
        let part = (part_of_text(url, 2) as usize + 1 + n) % 2;
        let options = WriterOptions::new(hadoop::TEXT, SegmentPart::CrawlFetch.class(), [7; 16]);
        let path = dir.path().join(format!("crawl_fetch/part-r-{part:05}"));
        let mut writer = MapWriter::create(&path, MapWriterOptions::new(options, [8; 16])).unwrap();
        values.iter().for_each(|value| writer.append(&text_key(hadoop::TEXT, url), value).unwrap());
        writer.finish().unwrap();
    }
    let mut segment = Segment::open(dir.path(), &OpenOptions::default()).unwrap();
    let found = segment.get(SegmentPart::CrawlFetch, url).unwrap();
    let statuses: Vec<_> = found.iter().map(|value| whole(value, CrawlDatum::decode).unwrap().status()).collect();
    assert_eq!(statuses, [Status::LINKED, Status::FETCH_SUCCESS]);
    assert!(segment.get(SegmentPart::CrawlFetch, b"http://a.example/").unwrap().is_empty());
    let mut printed = Vec::new();
    assert_eq!(crate::tools::write_get(&mut segment, "http://a.example/target", &mut printed).unwrap(), 2);
    let mut nothing = segment.without(&[SegmentPart::CrawlFetch]);
    assert_eq!(crate::tools::write_get(&mut nothing, "http://a.example/target", &mut printed).unwrap(), 0);
}

#[test]
fn the_last_content_of_a_url_counts_and_places_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let settings = WriteSettings::new(dir.path(), [5; 16]);
    let mut writer = SegmentWriter::new(Compress::Nutch, &settings);
    for n in 0..300 {
        let url = format!("http://a/{}", n % 200);
        let body = vec![n as u8; 40_000];
        let content = Content { url: url.as_str().into(), content: body.into(), ..Content::default() };
        writer.content(url.as_bytes(), &content).unwrap();
    }
    let to = dir.path().join("seg");
    let mut places = Vec::new();
    let written = writer
        .finish(&to, &mut |part, url, path, at| {
            places.push((part, url.to_vec(), path.to_owned(), at));
            Ok(())
        })
        .unwrap();
    assert_eq!((written[&SegmentPart::Content].records, written[&SegmentPart::Content].replaced), (200, 100));
    assert_eq!(places.len(), 200);
    for (_, url, path, at) in places {
        let mut reader = trawl_hadoop::seq::Reader::open(&to.join(path)).unwrap();
        reader.seek(at);
        let record = reader.next_record().unwrap().unwrap();
        assert_eq!(whole(record.key, |d| d.text_bytes("url")).unwrap(), url);
        let content = whole(record.value, Content::decode).unwrap();
        let n: u32 = content.url.to_str().rsplit('/').next().unwrap().parse().unwrap();
        assert_eq!(content.content[0], if n < 100 { (n + 200) as u8 } else { n as u8 });
    }
    let again = SegmentWriter::new(Compress::Nutch, &settings);
    assert!(again.finish(&to, &mut |_, _, _, _| Ok(())).unwrap_err().to_string().contains("exists already"));
}
