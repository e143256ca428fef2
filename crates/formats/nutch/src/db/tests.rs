use super::*;
use crate::types::{CrawlDatum, Inlink, Inlinks, Status, encoded, whole};
use std::path::Path;
use std::sync::Arc;
use trawl_hadoop::seq::OpenOptions;
use trawl_hadoop::{Any, Encode, class};
use trawl_io::Fs;
use trawl_io::fault::{FaultFs, Loss};

fn settings(parts: u32) -> (WriteSettings, OpenOptions) {
    let fs: Arc<dyn Fs> = FaultFs::new().shared();
    fs.create_dir(Path::new("/tmp")).unwrap();
    let settings = WriteSettings {
        fs: fs.clone(),
        parts,
        memory_bytes: 4 << 20,
        ..WriteSettings::new(Path::new("/tmp"), [3; 16])
    };
    (settings, OpenOptions { fs, ..OpenOptions::default() })
}

fn url(n: u32) -> String {
    format!("http://host{}.example/page{n}.html", n % 17)
}

fn datum(time: i64) -> Vec<u8> {
    encoded(|out| CrawlDatum::new(Status::DB_FETCHED, time, 1.0).encode(out))
}

#[test]
fn a_crawldb_of_several_parts_finds_every_url() {
    for compress in [Compress::Nutch, Compress::Block] {
        let (settings, options) = settings(3);
        let mut writer = CrawlDb::writer(compress, &settings).unwrap();
        for n in (0..2000).rev() {
            writer.push(url(n).as_bytes(), &datum(i64::from(n))).unwrap();
        }
        writer.push(url(5).as_bytes(), &datum(777)).unwrap();
        let written = CrawlDb::install(writer, Path::new("/db"), &settings).unwrap();
        assert_eq!((written.records, written.replaced), (2000, 1));
        let mut db = CrawlDb::open(Path::new("/db"), &options).unwrap();
        assert_eq!(db.map().parts().len(), 3);
        for n in 0..2000 {
            let time = if n == 5 { 777 } else { i64::from(n) };
            assert_eq!(db.get(url(n).as_bytes()).unwrap().unwrap().fetch_time, time);
        }
        assert!(db.get(b"http://nosuch.example/").unwrap().is_none());
        let mut scan = db.scan();
        let mut count = 0;
        while let Some(entry) = scan.next_entry().unwrap() {
            whole(entry.value, CrawlDatum::decode).unwrap();
            count += 1;
        }
        assert_eq!(count, 2000);
        assert!(!settings.fs.exists(Path::new("/db/.locked")).unwrap());
        assert_eq!(settings.fs.list(Path::new("/tmp")).unwrap(), [], "no temporary file is left");
    }
}

/// After a copy that was interrupted: most URLs of the parts that are there were "not found", and the numbers of all URLs too small, without
/// a word.
#[test]
fn urls_are_found_and_the_loss_told_where_the_last_part_is_missing() {
    let (settings, options) = settings(3);
    let mut writer = CrawlDb::writer(Compress::Nutch, &settings).unwrap();
    for n in 0..2000 {
        writer.push(url(n).as_bytes(), &datum(i64::from(n))).unwrap();
    }
    CrawlDb::install(writer, Path::new("/db"), &settings).unwrap();
    assert!(CrawlDb::open(Path::new("/db"), &options).unwrap().map().cut().is_none());
    trawl_io::remove_tree(&*settings.fs, Path::new("/db/current/part-r-00002")).unwrap();
    let mut db = CrawlDb::open(Path::new("/db"), &options).unwrap();
    let fault = db.map().cut().unwrap().to_string();
    assert!(fault.contains("expected 3 parts") && fault.contains("found 2: parts are missing"), "{fault}");
    for n in 0..2000 {
        let is_there = trawl_hadoop::parts::part_of_text(url(n).as_bytes(), 3) < 2;
        assert_eq!(db.get(url(n).as_bytes()).unwrap().is_some(), is_there, "{n}");
    }
    let inputs = [Path::new("/db").to_owned()];
    let merged = merge_crawldbs(&inputs, &options, Path::new("/merged"), Compress::Nutch, &settings);
    assert!(merged.unwrap_err().to_string().contains("parts are missing"));
    // A part alone is whole.
    assert!(CrawlDb::open(Path::new("/db/current/part-r-00000"), &options).unwrap().map().cut().is_none());
}

#[test]
fn an_install_keeps_the_generation_before() {
    let (settings, options) = settings(1);
    for time in [1, 2, 3] {
        let mut writer = CrawlDb::writer(Compress::Nutch, &settings).unwrap();
        writer.push(b"http://a/", &datum(time)).unwrap();
        CrawlDb::install(writer, Path::new("/db"), &settings).unwrap();
    }
    let time =
        |dir: &str| CrawlDb::open(Path::new(dir), &options).unwrap().get(b"http://a/").unwrap().unwrap().fetch_time;
    assert_eq!((time("/db"), time("/db/current"), time("/db/old")), (3, 3, 2));
    let _lock = Lock::take(&settings.fs, Path::new("/db")).unwrap();
    let writer = CrawlDb::writer(Compress::Nutch, &settings).unwrap();
    let error = CrawlDb::install(writer, Path::new("/db"), &settings).unwrap_err();
    assert!(error.to_string().contains("locked by another job"), "{error}");
}

#[test]
fn merging_keeps_the_newest_state_and_all_metadata() {
    let (settings, options) = settings(2);
    let with = |status: Status, time: i64, interval: i32, meta: &[(&str, i64)]| {
        let mut datum = CrawlDatum::new(status, time, 1.0);
        datum.interval = crate::types::Interval::Seconds(interval);
        for (k, v) in meta {
            datum.metadata.insert(k, Any::new(class::LONG, |out| out.put_i64(*v)));
        }
        encoded(|out| datum.encode(out))
    };
    let make = |dir: &str, records: &[(&str, Vec<u8>)]| {
        let mut writer = CrawlDb::writer(Compress::Nutch, &settings).unwrap();
        for (url, value) in records {
            writer.push(url.as_bytes(), value).unwrap();
        }
        CrawlDb::install(writer, Path::new(dir), &settings).unwrap();
    };
    make(
        "/a",
        &[
            ("http://a/", with(Status::DB_FETCHED, 10_000, 5, &[("x", 1), ("y", 1)])),
            ("http://b/", with(Status::DB_UNFETCHED, 99_000, 5, &[])),
            ("http://only-a/", with(Status::DB_GONE, 1, 1, &[])),
        ],
    );
    make(
        "/b",
        &[
            ("http://a/", with(Status::DB_FETCHED, 11_000, 5, &[("x", 2), ("z", 2)])),
            ("http://b/", with(Status::DB_FETCHED, 20_000, 5, &[])),
        ],
    );
    let inputs = ["/a".into(), "/b".into()];
    let written = merge_crawldbs(&inputs, &options, Path::new("/out"), Compress::Nutch, &settings).unwrap();
    assert_eq!(written.records, 3);
    let mut db = CrawlDb::open(Path::new("/out"), &options).unwrap();
    let a = db.get(b"http://a/").unwrap().unwrap();
    assert_eq!(a.fetch_time, 11_000);
    let meta: Vec<_> =
        a.metadata.entries().iter().map(|(k, v)| (k.as_text().unwrap().to_string(), v.bytes[7])).collect();
    assert_eq!(meta, [("x".into(), 2), ("z".into(), 2), ("y".into(), 1)]);
    assert_eq!(db.get(b"http://b/").unwrap().unwrap().status(), Status::DB_FETCHED);
    assert!(db.get(b"http://only-a/").unwrap().is_some());
}

#[test]
fn large_values_wait_in_a_spool() {
    let (settings, options) = settings(2);
    let mut writer = LinkDb::writer(Compress::Nutch, &settings).unwrap();
    for n in 0..40u32 {
        let links = (0..=n * 200).map(|i| Inlink::new(format!("http://from/{i}"), "anchor")).collect();
        writer.push(url(n).as_bytes(), &encoded(|out| Inlinks(links).encode(out))).unwrap();
    }
    LinkDb::install(writer, Path::new("/links"), &settings).unwrap();
    let mut db = LinkDb::open(Path::new("/links"), &options).unwrap();
    for n in 0..40u32 {
        assert_eq!(db.get(url(n).as_bytes()).unwrap().unwrap().0.len(), n as usize * 200 + 1);
    }
    assert_eq!(settings.fs.list(Path::new("/tmp")).unwrap(), []);
    assert!(!settings.fs.exists(Path::new("/links/old")).unwrap());
}

#[test]
fn a_power_cut_at_any_step_leaves_the_old_or_the_new_generation() {
    let settings_on = |disk: &FaultFs| {
        let settings = WriteSettings::new(Path::new("/tmp"), [3; 16]);
        WriteSettings { fs: disk.shared(), threads: 1, ..settings }
    };
    let generation = |settings: &WriteSettings, time: i64| {
        let mut writer = CrawlDb::writer(Compress::Nutch, settings)?;
        writer.push(b"http://a/", &datum(time))?;
        CrawlDb::install(writer, Path::new("/db"), settings)
    };
    let start = FaultFs::new();
    start.shared().create_dir(Path::new("/tmp")).unwrap();
    start.shared().sync_dir(Path::new("/")).unwrap();
    generation(&settings_on(&start), 1).unwrap();
    let mut done = false;
    for step in 0.. {
        let disk = start.reboot(Loss::None);
        disk.cut_after(step);
        done = generation(&settings_on(&disk), 2).is_ok();
        for loss in Loss::variants(8) {
            let fs = disk.reboot(loss).shared();
            let options = OpenOptions { fs, ..OpenOptions::default() };
            let time = |dir: &str| {
                let mut db = CrawlDb::open(Path::new(dir), &options).ok()?;
                db.get(b"http://a/").ok()?.map(|datum| datum.fetch_time)
            };
            let (current, old) = (time("/db/current"), time("/db/old"));
            assert!(current.or(old).is_some(), "step {step}, {loss:?}: {current:?} {old:?}");
            assert!(!done || current == Some(2), "step {step}, {loss:?}: reported as done");
        }
        if done {
            break;
        }
    }
    assert!(done);
}

/// Looking for a URL in something else than a CrawlDb must not end in "not found".
#[test]
fn a_database_of_another_kind_is_refused() {
    let fixture = |path: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/crawl-e2e").join(path);
    let options = OpenOptions::default();
    let error = CrawlDb::open(&fixture("linkdb"), &options).unwrap_err().to_string();
    assert!(error.contains("Inlinks: it is not part of a CrawlDb"), "{error}");
    let error = LinkDb::open(&fixture("crawldb"), &options).unwrap_err().to_string();
    assert!(error.contains("CrawlDatum: it is not part of a LinkDb"), "{error}");
    let temp = tempfile::tempdir().unwrap();
    let error = CrawlDb::open(temp.path(), &options).unwrap_err().to_string();
    assert!(error.contains("no part of a CrawlDb"), "{error}");
}
