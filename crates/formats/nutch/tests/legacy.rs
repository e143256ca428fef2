//! Segments of 0.4 to 0.7: read as pages, and written as the original code wrote them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_hadoop::map::{self, MapReader};
use trawl_hadoop::seq::OpenOptions;
use trawl_io::{Fs, RealFs};
use trawl_nutch::legacy::{Era, LegacySegment, LegacySegmentWriter, webdb_order};

fn legacy(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/legacy").join(format!("nutch-{release}"))
}

fn pages(dir: &Path) -> (Era, Vec<trawl_nutch::legacy::LegacyPage>) {
    let mut segment = LegacySegment::open(dir, &OpenOptions::default()).unwrap();
    let mut pages = Vec::new();
    while let Some(page) = segment.next_page().unwrap() {
        pages.push(page);
    }
    (segment.era(), pages)
}

#[test]
fn pages_of_every_release() {
    for (release, era) in [("0.4", Era::V0_4), ("0.6", Era::V0_5), ("0.7.2", Era::V0_5)] {
        let (found, pages) = pages(&legacy(release).join("segments/20040525120000"));
        assert_eq!((found, pages.len()), (era, 18), "{release}");
        assert!(pages[1].output.entry.page.url.to_str().starts_with("http://widget1.example/"));
        assert!(!pages[1].text.as_ref().unwrap().0.as_bytes().is_empty());
        assert!(pages[1].content.as_ref().unwrap().content.starts_with(b"<html>"));
        assert!(!pages[1].data.as_ref().unwrap().outlinks.is_empty());
    }
}

#[test]
fn written_segments_are_those_of_the_original_code() {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    for (release, era) in [("0.4", Era::V0_4), ("0.6", Era::V0_5)] {
        let original = legacy(release).join("segments/20040525120000");
        let (_, before) = pages(&original);
        let dir = tempfile::tempdir().unwrap();
        let mut writer = LegacySegmentWriter::create(&fs, dir.path(), era).unwrap();
        for page in &before {
            writer.append(page).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), 18);
        assert_eq!(pages(dir.path()).1, before, "{release}");
        // Files without gzip members are the same byte by byte; Java's deflate differs from ours.
        for file in ["fetchlist/data", "fetchlist/index", "fetcher/data", "fetcher/index", "parse_data/data"] {
            let read = |dir: &Path| std::fs::read(dir.join(file)).ok();
            assert!(read(dir.path()) == read(&original), "{release} {file}");
        }
    }
}

#[test]
fn the_web_database_is_sorted_by_its_own_orders() {
    for release in ["0.4", "0.6", "0.7.2"] {
        for entry in std::fs::read_dir(legacy(release).join("webdb")).unwrap() {
            let dir = entry.unwrap().path();
            let order = webdb_order(dir.file_name().unwrap().to_str().unwrap());
            let options = OpenOptions::default();
            let mut faults = Vec::new();
            map::verify(&dir, &options, order, &mut |_, _, _| None, &mut |f| faults.push(f)).unwrap();
            assert_eq!(faults, [], "{}", dir.display());
            let mut keys = Vec::new();
            let mut map = MapReader::open_ordered(&dir, &options, order).unwrap();
            let scan = map.scan().unwrap();
            while let Some(r) = scan.next_record().unwrap() {
                keys.push(r.key.to_vec());
            }
            for key in &keys {
                assert_eq!(map.closest(key).unwrap().unwrap().key, key, "{}", dir.display());
            }
        }
    }
}
