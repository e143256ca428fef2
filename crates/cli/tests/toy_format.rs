//! A format that nobody knows: one module that implements the doors, one registration, and everything works with it.

mod toy;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toy::Toy;
use trawl_archive::{Creation, Found, Registry, Target, convert, inspect, verify};
use trawl_ingest::IngestSettings;
use trawl_ingest::source::{self, Opening};
use trawl_io::{Fs, RealFs};
use trawl_model::{
    Capability, Check, Clock, Entry, Finding, IdSource, Outcome, Pick, UnixMillis, UrlRecord, UrlSource,
};
use trawl_store::{DatasetInfo, DirStore, Lake};
use trawl_testweb::{Config as WebConfig, TestWeb};
use trawl_url::SuffixList;

fn fs() -> Arc<dyn Fs> {
    Arc::new(RealFs)
}

fn ids() -> Arc<dyn IdSource> {
    let next = AtomicU64::new(0);
    Arc::new(move || u128::from(next.fetch_add(1, Ordering::Relaxed)).to_be_bytes())
}

fn registry() -> Registry {
    Registry::default().with(Toy)
}

fn creation(path: &Path) -> Creation {
    Creation::new(fs(), Target::File(path.into()), ids(), Clock::fixed(UnixMillis(1_782_262_900_000)))
}

/// What is in an archive: URL, time, head and body of every response.
fn responses(found: &Found) -> BTreeSet<(String, i64, Vec<u8>, Vec<u8>)> {
    let archive = found.open(&fs()).unwrap();
    let mut source = archive.captures(Pick::All).unwrap().unwrap();
    let mut all = BTreeSet::new();
    while let Some((entry, _)) = source.next_entry().unwrap() {
        if let Entry::Capture(capture) = entry
            && let Outcome::Response { mut message, .. } = capture.outcome
        {
            let body = message.body.read_to_bytes(u64::MAX).unwrap().to_vec();
            all.insert((capture.url, capture.started_at.0, message.head.to_vec(), body));
        }
    }
    all
}

/// Crawls a small web into an archive of a format.
fn crawl(out: &Path, format: &str) -> trawl_engine::Report {
    let web = TestWeb::start(WebConfig { domains: 10, pages: 60, seeds: 3, ..WebConfig::default() }).unwrap();
    let seeds = web.world().seeds().into_iter().map(trawl_engine::SeedInput::Url).collect();
    let mut config = trawl_engine::Config::new(out, seeds);
    config.registry = registry();
    config.format = format.into();
    config.run_id = "run".into();
    config.fetch.user_agent = "trawl/test".into();
    config.fetch.connect_to = vec![format!("::{}:{}", web.addr().ip(), web.addr().port()).parse().unwrap()];
    config.frontier.max_depth = 2;
    config.scope = trawl_engine::Scope::Any;
    config.frontier.delay = std::time::Duration::ZERO;
    let clock = Clock::new(|| {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        UnixMillis(i64::try_from(since.as_millis()).unwrap())
    });
    trawl_engine::run(config, clock, ids(), &trawl_engine::Stop::new(), &mut |_| {}).unwrap()
}

fn check(path: &Path) -> (trawl_archive::Verified, Vec<Finding>) {
    let files = registry().files(&fs(), path).unwrap();
    let temp = tempfile::tempdir().unwrap();
    let mut findings = Vec::new();
    let (on_finding, progress) = (&mut |finding| findings.push(finding), &mut |_| {});
    let mut check = Check { temp_dir: temp.path(), memory_bytes: 1 << 20, on_finding, progress };
    let verified = verify(&fs(), &files, path.is_dir(), &mut check).unwrap();
    (verified, findings)
}

fn only(path: &Path) -> Found {
    let mut files = registry().files(&fs(), path).unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn a_crawl_goes_into_it_and_on_to_every_other_format() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let report = crawl(&dir.join("crawl"), "toy");
    assert!(report.complete && report.counts.responses() > 30, "{report:?}");
    let container = dir.join("crawl/trawl-run.toy");
    assert!(report.files.iter().any(|file| file.name == "trawl-run.toy"), "{:?}", report.files);
    let original = responses(&only(&container));
    assert_eq!(original.len() as u64, report.counts.responses());

    // Checked and looked into, by what every format has.
    let (verified, findings) = check(&dir.join("crawl"));
    assert_eq!((verified.records, findings), (report.counts.responses(), Vec::new()));
    let seen = inspect(&only(&container), &fs(), 3, &mut |_| {}).unwrap();
    assert_eq!((seen[0].format.as_str(), seen[0].sample.len()), ("toy", 3));
    assert_eq!(seen[0].facts["rows"], report.counts.responses());

    // Ingested: a row for each capture, with what a WARC file would say of it.
    let registry_ = registry();
    let opening = Opening { registry: Some(&registry_), ..Opening::default() };
    let source = source::open_as(&fs(), &container, &opening).unwrap();
    let mut records = Vec::new();
    for split in source.splits(1000).unwrap() {
        let mut take = |_, record: Result<UrlRecord, _>| record.map(|record| records.push(record));
        source.read(split, &mut take).unwrap();
    }
    assert_eq!(records.len(), original.len());
    assert!(records.iter().all(|r| r.status.is_some() && r.digest.is_some() && r.body_length.is_some()));
    assert!(records.iter().all(|r| r.place.as_ref().is_some_and(|place| &*place.file == "trawl-run.toy")));
    let now = UnixMillis(1_782_262_900_000);
    let store = Arc::new(DirStore::with_fs(fs(), dir.join("lake")));
    let lake = Lake::init(store, now, "n1", SuffixList::builtin().text().as_bytes()).unwrap();
    let id = lake.register_dataset(now, "test", &DatasetInfo::named("toys")).unwrap();
    let settings = IngestSettings { memory_bytes: 64 << 20, ..IngestSettings::new("w", dir.join("tmp")) };
    let report = trawl_ingest::ingest(&lake, id, &[source], &settings, &|| now, &|_| {}).unwrap();
    assert_eq!((report.rows, report.rejected), (original.len() as u64, 0));

    // To WARC, WACZ and seqdb, and back from each: the same responses, and nothing to drop.
    for name in ["a.warc.gz", "a.wacz", "a.data"] {
        let path = dir.join(name);
        let sources = [only(&container)];
        let done = convert(&registry(), &sources, creation(&path), true, &mut |_| {}, &mut |_| {}).unwrap();
        assert!(done.dropped.is_empty(), "{done:?}");
        let (_, findings) = check(&path);
        assert_eq!(findings, [], "{name}");
        assert!(responses(&only(&path)) == original, "{name}");
        let back = dir.join(format!("{name}.toy"));
        let done = convert(&registry(), &[only(&path)], creation(&back), false, &mut |_| {}, &mut |_| {}).unwrap();
        // The archive had a record about itself; the toy has no place for it.
        let lost: Vec<_> = done.dropped.iter().map(|(lost, count)| (*lost, *count)).collect();
        assert_eq!(lost, [(Capability::OtherRecords, 1)], "{done:?}");
        assert!(responses(&only(&back)) == original, "{name}");
    }

    // Damage is found.
    let mut bytes = std::fs::read(&container).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] = 0xff;
    std::fs::write(&container, bytes).unwrap();
    assert!(check(&container).1.iter().any(|finding| finding.kind == "damage"));
}

#[test]
fn what_it_cannot_carry_is_counted_or_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let report = crawl(&dir.join("crawl"), "warc");
    let sources = registry().files(&fs(), &dir.join("crawl")).unwrap();
    let target = dir.join("a.toy");
    let done = convert(&registry(), &sources, creation(&target), false, &mut |_| {}, &mut |_| {}).unwrap();
    assert_eq!((done.records, done.damaged), (report.counts.responses(), 0));
    assert_eq!(done.dropped[&Capability::Request], report.counts.responses());
    assert_eq!(done.dropped.get(&Capability::Failures).copied().unwrap_or(0), report.counts.failed_captures());
    assert_eq!(done.dropped[&Capability::OtherRecords], 1, "the warcinfo record");
    let json = serde_json::to_value(&done).unwrap();
    assert_eq!(json["dropped"]["request"], report.counts.responses());

    let strict = dir.join("strict.toy");
    let refused = convert(&registry(), &sources, creation(&strict), true, &mut |_| {}, &mut |_| {});
    assert!(refused.unwrap_err().to_string().contains("toy cannot carry"), "--strict");
    assert!(!strict.exists());
}
