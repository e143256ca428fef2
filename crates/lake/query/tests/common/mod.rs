//! A lake made of generated records, and the same answers worked out the slow way.
#![allow(dead_code)] // each test file uses a part

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_index::BuildOptions;
use trawl_ingest::{IngestSettings, ingest};
use trawl_model::{DoorError, Items, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};
use trawl_store::{DatasetInfo, DirStore, Lake, MemStore, RemoteSettings, RemoteStore, Store};
use trawl_url::{LakeUrl, SuffixList};

/// Records in memory.
pub struct VecSource {
    pub name: String,
    pub records: Vec<UrlRecord>,
}

impl UrlSource for VecSource {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity { uri: self.name.clone(), size: self.records.len() as u64, tag: String::new() }
    }

    fn splits(&self, _: u64) -> Result<Vec<Split>, DoorError> {
        Ok(vec![Split { start: 0, end: self.records.len() as u64 }])
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let range = split.start as usize..split.end as usize;
        (split.start..).zip(&self.records[range]).try_for_each(|(n, record)| each(n, Ok(record.clone())))
    }
}

/// A store of its own: in a directory, or where `TRAWL_TEST_STORE` says, `memory` or `s3://bucket/prefix` (with the AWS variables of
/// its server). The same tests hold everywhere; `.ci/run` and `.ci/long` run them so.
pub fn store_in(dir: &std::path::Path) -> Arc<dyn Store> {
    match std::env::var("TRAWL_TEST_STORE").as_deref() {
        Err(_) | Ok("directory") => Arc::new(DirStore::new(dir.join("lake"))),
        Ok("memory") => Arc::new(MemStore::new()),
        Ok(place) => {
            let env: Vec<_> = std::env::vars().collect();
            // The directory has a name that nobody else has now; a server has those of earlier runs, too.
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
            let name = dir.file_name().unwrap().to_string_lossy().replace('.', "");
            let place = format!("{place}/{since}-{name}");
            // Tests ask at once for what they have written, as they do of a directory; polling.rs has the interval.
            let settings = RemoteSettings { poll: std::time::Duration::ZERO, ..RemoteSettings::default() };
            Arc::new(RemoteStore::open(&place, &env, settings).unwrap())
        }
    }
}

/// What a row must look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    pub domain: String,
    pub surt: String,
    pub record: UrlRecord,
    order: (Option<UnixMillis>, u8, u32, Option<String>),
}

/// A lake in a directory of its own, and every record that went in, by (dataset, domain), in the order of pages.
pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub store: Arc<dyn Store>,
    pub lake: Lake,
    pub rows: BTreeMap<(u32, String), Vec<Expected>>,
    /// Digits by which rows and index are split, however few they are.
    pub split: Option<u8>,
    clock: AtomicU64,
    runs: AtomicU64,
}

/// Digits by which `TRAWL_TEST_SPLIT` says that all rows and segments are split: the same tests hold.
pub fn forced_split() -> Option<u8> {
    std::env::var("TRAWL_TEST_SPLIT").ok().map(|digits| digits.parse().expect("TRAWL_TEST_SPLIT is 1 or 2"))
}

/// Little memory, one thread, and pieces where [`forced_split`] says so.
pub fn small_options(scratch: &std::path::Path) -> BuildOptions {
    let mut options = BuildOptions { memory_bytes: 2 << 20, threads: 1, ..BuildOptions::new(scratch) };
    options.piece_rows = if forced_split().is_some() { 1 } else { options.piece_rows };
    options
}

impl Fixture {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = store_in(dir.path());
        let psl = SuffixList::builtin().text();
        let lake = Lake::init(store.clone(), UnixMillis(1_000_000), "probe", psl.as_bytes()).unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        let (clock, runs) = (AtomicU64::new(1_700_000_000_000), AtomicU64::new(0));
        Self { dir, store, lake, rows: BTreeMap::new(), split: forced_split(), clock, runs }
    }

    pub fn now(&self) -> UnixMillis {
        UnixMillis(self.clock.fetch_add(1000, Ordering::Relaxed) as i64)
    }

    pub fn writer(&self) -> String {
        format!("w{}", self.runs.fetch_add(1, Ordering::Relaxed))
    }

    pub fn register(&self, info: DatasetInfo) -> u32 {
        self.lake.register_dataset(self.now(), &self.writer(), &info).unwrap()
    }

    /// Takes records into a dataset: one commit.
    pub fn ingest(&mut self, dataset_id: u32, records: Vec<UrlRecord>, change: impl Fn(&mut IngestSettings)) {
        let mut settings = IngestSettings::new(self.writer(), self.dir.path().join("tmp"));
        settings.memory_bytes = 32 << 20;
        change(&mut settings);
        settings.prefix_digits = settings.prefix_digits.or(self.split);
        let mut batch: BTreeMap<String, Vec<Expected>> = BTreeMap::new();
        for record in &records {
            if let Some(row) = expected(record) {
                batch.entry(row.domain.clone()).or_default().push(row);
            }
        }
        let rows: usize = batch.values().map(Vec::len).sum();
        if settings.mode == trawl_ingest::Mode::Replace {
            self.rows.retain(|(dataset, _), _| *dataset != dataset_id);
        }
        for (domain, mut rows) in batch {
            rows.sort_by(|a, b| (&a.surt, &a.order).cmp(&(&b.surt, &b.order)));
            self.rows.entry((dataset_id, domain)).or_default().extend(rows);
        }
        let name = format!("source {}", self.runs.fetch_add(1, Ordering::Relaxed));
        let source = vec![trawl_ingest::source::Source::new(VecSource { name, records })];
        let report = ingest(&self.lake, dataset_id, &source, &settings, &|| self.now(), &|_| ()).unwrap();
        assert_eq!(report.rows, rows as u64, "the ingest took other rows than expected");
    }

    pub fn build_options(&self) -> BuildOptions {
        let mut options = BuildOptions::new(self.dir.path().join("tmp"));
        options.memory_bytes = 16 << 20;
        options.piece_rows = if self.split.is_some() { 1 } else { options.piece_rows };
        options
    }

    pub fn publish(&self) -> trawl_index::Published {
        let options = self.build_options();
        trawl_index::publish(&self.lake, &|| self.now(), &self.writer(), &options, &|_| ()).unwrap()
    }

    /// Datasets that hold a domain, with rows and distinct URLs.
    pub fn expected_counts(&self, domain: &str) -> Vec<(u32, u64, u64)> {
        let of_domain = self.rows.iter().filter(|((_, d), _)| d == domain);
        let count = |rows: &Vec<Expected>| {
            let urls: BTreeSet<&str> = rows.iter().map(|r| r.record.url.as_str()).collect();
            (rows.len() as u64, urls.len() as u64)
        };
        of_domain.map(|((dataset, _), rows)| (*dataset, count(rows).0, count(rows).1)).collect()
    }

    pub fn domains(&self) -> BTreeSet<String> {
        self.rows.keys().map(|(_, domain)| domain.clone()).collect()
    }
}

fn expected(record: &UrlRecord) -> Option<Expected> {
    let url = LakeUrl::parse(&record.url, SuffixList::builtin()).ok()?;
    let scheme = ["ftp", "http", "https"].iter().position(|s| *s == url.scheme())? as u8;
    let raw = (record.url != url.as_str()).then(|| record.url.clone());
    let port = url.port().map_or(0, |p| u32::from(p) + 1);
    Some(Expected {
        domain: url.domain().to_owned(),
        surt: url.surt(),
        record: record.clone(),
        order: (record.ts, scheme, port, raw),
    })
}

/// A small generator: the same numbers every time.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Hosts of every kind: subdomains, private suffixes, bare suffixes, addresses, international names.
pub fn hosts(dice: &mut Dice, count: u64) -> Vec<String> {
    let mut hosts: Vec<String> = [
        "example.com",
        "www.example.com",
        "news.example.com",
        "example.co.uk",
        "a.b.c.example.co.uk",
        "co.uk",
        "com",
        "localhost",
        "192.0.2.1",
        "[2001:db8::1]",
        "bücher.example",
        "www.xn--bcher-kva.com",
        "me.github.io",
        "github.io",
        "a-b.org",
        "a.org",
        "ab.org",
        "z.z.z.z",
        "x.kobe.jp",
        "city.kobe.jp",
        "under_score.net",
    ]
    .map(str::to_owned)
    .into();
    for _ in 0..count {
        let n = dice.roll(1 << 20);
        hosts.push(format!(
            "{}site{n}.{}",
            ["", "www.", "m."][(n % 3) as usize],
            ["com", "net", "de", "co.jp"][(n % 4) as usize]
        ));
    }
    hosts
}

/// Records over `hosts`, the first ones most often; some repeated, some with times, some with capture fields.
pub fn records(dice: &mut Dice, hosts: &[String], count: u64, captures: bool) -> Vec<UrlRecord> {
    let mut out: Vec<UrlRecord> = Vec::new();
    for n in 0..count as i64 {
        if !out.is_empty() && dice.roll(10) == 0 {
            let again = out[dice.roll(out.len() as u64) as usize].clone();
            out.push(UrlRecord { ts: again.ts.map(|t| UnixMillis(t.0 + dice.roll(3) as i64 * 1000)), ..again });
            continue;
        }
        let skew = dice.roll(hosts.len() as u64).min(dice.roll(hosts.len() as u64));
        let host = &hosts[skew as usize];
        let scheme = ["http", "https", "HTTPS", "ftp"][dice.roll(20).min(3) as usize];
        let port = ["", "", "", ":8080", ":443"][dice.roll(5) as usize];
        let section = ["", "news/", "a/b/", "Path%20x/", "news/today/"][dice.roll(5) as usize];
        let tail = ["", "?b=2&a=1", "#frag", "index.html"][dice.roll(4) as usize];
        let mut record = UrlRecord::bare(format!("{scheme}://{host}{port}/{section}{}{tail}", dice.roll(40)));
        if dice.roll(4) > 0 {
            // No two new records have one time, so that only equal rows tie.
            record.ts = Some(UnixMillis(1_600_000_000_000 + dice.roll(100) as i64 * 1_000_000_007 + n * 10_000));
        }
        if captures && record.ts.is_some() && dice.roll(3) > 0 {
            record.status = Some([200, 301, 404][dice.roll(3) as usize]);
            record.content_type = Some(["text/html", "image/png"][dice.roll(2) as usize].into());
            record.digest = Some(trawl_model::Digest::sha1([dice.roll(256) as u8; 20]));
            record.body_length = Some(dice.roll(1 << 30));
            record.place = Some(trawl_model::Place::new("a.warc.gz", dice.roll(1 << 40), dice.roll(5000)));
            record.extras = Some(format!("{{\"n\":{}}}", dice.roll(9)));
        }
        out.push(record);
    }
    out
}
