//! The commit stage under power cuts: cut at every operation, lose what was not synced, go on, compare.

use super::*;
use crate::config::{Config, Start};
use crate::derived::write_index;
use crate::layout::Layout;
use crate::lease::Lease;
use crate::open::{Opened, open, read_run};
use crate::page::Worker;
use crate::rules::LinkRules;
use crate::scope::Scope;
use crate::seeds::{Seed, SeedIdentity};
use crate::state::State;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;
use trawl_captures::CapturesReader;
use trawl_frontier::{Identity, Next, QueueBy, RobotsPolicy, Work};
use trawl_io::Fs;
use trawl_io::fault::{FaultFs, Loss};
use trawl_io::read_at::FileReader;
use trawl_model::{Body, Capture, Clock, IdSource, Message, Outcome, UnixMillis};
use trawl_warc::{RecordType, WarcReader};

/// A made-up web: page n links 2n+1 and 2n+2.
#[derive(Clone, Copy)]
struct Plan {
    pages: u32,
    body_bytes: usize,
    /// Events between commits.
    every: usize,
    format: &'static str,
    frontier_bytes: usize,
}

impl Plan {
    fn new(pages: u32, body_bytes: usize) -> Self {
        Plan { pages, body_bytes, every: 2, format: "warc", frontier_bytes: 1 << 20 }
    }

    /// Containers take a disk at its word that a sector is written whole or not at all.
    fn can_lose(self, loss: Loss) -> bool {
        self.format == "warc" || !matches!(loss, Loss::Torn { unit: 1..512, .. })
    }
}

fn url(n: u32) -> String {
    format!("http://h{}.example/{n}", n % 3)
}

/// What the pages of a plan answer: page 5 fails at first, page 3 redirects to 4.
fn answer(plan: Plan, lease: &Lease, now: UnixMillis) -> Capture<'static> {
    let n: u32 = lease.url.rsplit('/').next().unwrap().parse().unwrap();
    let (status, extra) = match n {
        5 if lease.attempt == 1 => (503, "Retry-After: 0\r\n".to_owned()),
        3 => (302, format!("Location: {}\r\n", url(4))),
        _ => (200, String::new()),
    };
    let mut text = String::new();
    for link in [2 * n + 1, 2 * n + 2].into_iter().filter(|l| *l < plan.pages) {
        text += &format!("<a href='{}'>", url(link));
    }
    let mut body = text.into_bytes();
    // Bytes that do not compress, so that files roll.
    let mut dice = u64::from(n) + 1;
    while body.len() < plan.body_bytes {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        body.extend_from_slice(&dice.to_le_bytes()[3..]);
    }
    let head = format!("HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n{extra}\r\n");
    let message = Message { head: Bytes::from(head), body: Body::Memory(body.into()) };
    let outcome = Outcome::Response { message, payload_digest: None, truncated: None };
    let mut facts = crate::page::facts_of(lease, "run");
    facts.fetched_at = now;
    Capture { url: lease.url.to_string(), started_at: now, request: None, outcome, facts }
}

struct Bench {
    plan: Plan,
    /// Captures acknowledged, over all restarts: URL and attempt.
    acked: BTreeSet<(String, u32)>,
    now: Arc<AtomicI64>,
    ids: Arc<AtomicU64>,
}

impl Bench {
    fn new(plan: Plan) -> Self {
        Self { plan, acked: BTreeSet::new(), now: Arc::new(AtomicI64::new(1_000_000)), ids: Arc::default() }
    }

    fn config(&self) -> Config {
        let mut config = Config::new("/out", Vec::new());
        config.start = Start::Resume;
        config.run_id = "run".into();
        config.format = self.plan.format.into();
        config.digests = (self.plan.format == "seqdb").then(|| "/bodies".into());
        config.fetch.user_agent = "trawl/1".into();
        config.roll_bytes = 1 << 20;
        config.frontier.robots = RobotsPolicy::Ignore;
        config.frontier.delay = Duration::ZERO;
        config.frontier.backoff = Duration::ZERO;
        config.frontier.max_depth = 99;
        config.scope = Scope::Any;
        config.frontier.identity = Identity::Exact;
        // So little that it is flushed, and on this thread, so that a cut hits the same step every time.
        config.frontier.memory_bytes = self.plan.frontier_bytes;
        config.frontier.background = false;
        config
    }

    /// Crawls until done or until the power goes. The frontier is driven as the crawl loop drives it.
    fn crawl(&mut self, fs: &Arc<dyn Fs>) -> Result<State, Error> {
        let config = self.config();
        let layout = Layout::new(&config.out);
        let _lock = layout.lock(&**fs, "test", UnixMillis(0))?;
        let now = self.now.clone();
        let clock = Clock::new(move || UnixMillis(now.fetch_add(1, Ordering::Relaxed)));
        let next = self.ids.clone();
        let ids: Arc<dyn IdSource> = Arc::new(move || u128::from(next.fetch_add(1, Ordering::Relaxed)).to_be_bytes());
        let begun = read_run(&**fs, &layout)?.is_some_and(|run| !run.legs.is_empty());
        let Opened { mut state, mut committer, preparer, carries, digests } =
            open(fs, &config, &layout, &clock, &ids, begun)?;
        let worker = Worker {
            preparer,
            carries,
            digests,
            identity: Identity::Exact,
            queue: QueueBy::Host,
            scope: Scope::Any,
            rules: LinkRules::default(),
            store_unchanged: false,
            follow: true,
            sitemaps: false,
            embeds: false,
            obey: true,
            agent: "trawl".into(),
            run_id: "run".into(),
            decode_bytes: 1 << 20,
            max_links: 1000,
        };
        if state.run.seeds.is_empty() {
            let identity = SeedIdentity {
                name: "x".into(),
                bytes: 1,
                sha256: String::new(),
                rows: 1,
                rejects: 0,
                other_shards: 0,
                robots_files: 0,
            };
            let seeds = vec![Seed { url: trawl_url::WebUrl::parse(&url(0)).unwrap(), meta: Some("{\"a\":1}".into()) }];
            let batch = SeedBatch { seeds, items: 1, end: Some(vec![identity]), ..SeedBatch::default() };
            committer.add_seeds(batch);
        }
        let (mut waiting, mut work) = (0, Vec::new());
        loop {
            let next = state.frontier.lease(clock.now(), 1, &mut work)?;
            match (work.pop(), next) {
                (Some(Work::Fetch(lease)), _) => {
                    let lease = Lease::try_from(lease)?;
                    assert!(
                        !self.acked.contains(&(lease.url.to_string(), lease.attempt)),
                        "{} was acknowledged and is fetched again",
                        lease.url
                    );
                    let fetched = answer(self.plan, &lease, clock.now());
                    let event = worker.event(lease, fetched)?;
                    state.frontier.released(clock.now(), event.lease.id, event.answer, None)?;
                    committer.add_event(event, None)?;
                    waiting += 1;
                    if waiting < self.plan.every {
                        continue;
                    }
                }
                (Some(Work::Refuse(..)), _) => panic!("nothing is refused here"),
                (None, Next::WaitUntil(_) | Next::Now) if committer.is_idle() => continue,
                (None, Next::Empty) if committer.is_idle() => break,
                (None, _) => {}
            }
            waiting = 0;
            if let Some(synced) = committer.sync()? {
                let made = synced.done.iter().filter_map(|done| match done {
                    Done::Event(event) => {
                        Some((event.row.url.clone(), u32::try_from(event.row.attempt.unwrap()).unwrap()))
                    }
                    Done::Seeds(_) => None,
                });
                let made: Vec<_> = made.collect();
                let (ticket, _) = state.synced(synced, clock.now())?;
                committer.acknowledge(ticket)?;
                for capture in made {
                    assert!(self.acked.insert(capture));
                }
            }
        }
        committer.finish()?;
        write_index(fs, &layout, &state.spools(), &*trawl_archive::Registry::default().format("warc")?, true)?;
        Ok(state)
    }

    /// Every capture of the plan is in the index once, and where the index says, and the archive holds nothing else.
    fn verify(&self, fs: &Arc<dyn Fs>) {
        let mut archived: BTreeMap<(String, u64), String> = BTreeMap::new();
        let mut rows = Vec::new();
        for entry in fs.list(Path::new("/out")).unwrap() {
            let name = entry.name.into_string().unwrap();
            let path = Path::new("/out").join(&name);
            assert!(!name.ends_with(".open") && !name.starts_with(".tmp"), "{name} was left behind");
            if name.ends_with(".parquet") {
                let file = FileReader::open_in(&**fs, &path).unwrap();
                rows.extend(CapturesReader::over(Arc::new(file)).unwrap().map(Result::unwrap));
            } else if name.ends_with(".warc.gz") {
                let mut reader = WarcReader::builder().over(Arc::new(FileReader::open_in(&**fs, &path).unwrap()));
                while let Some(record) = reader.next_record().unwrap() {
                    if record.header().record_type() == RecordType::Response {
                        let id = record.header().record_id().unwrap().into_owned();
                        assert!(archived.insert((name.clone(), record.place().offset), id).is_none());
                    }
                }
            } else if name.ends_with(".data") {
                self.verify_container(fs, &path, &mut archived);
            }
        }
        let mut seen = BTreeSet::new();
        for row in &rows {
            let at = (row.warc_file.clone(), u64::try_from(row.warc_offset).unwrap());
            assert_eq!(archived.remove(&at), row.record_id, "{}", row.url);
            assert!(seen.insert((row.url.clone(), u32::try_from(row.attempt.unwrap()).unwrap())), "{} twice", row.url);
        }
        assert!(archived.is_empty(), "the archive holds what the index does not: {archived:?}");
        let mut expected: BTreeSet<_> = (0..self.plan.pages).map(|n| (url(n), 1)).collect();
        if self.plan.pages > 5 {
            expected.insert((url(5), 2));
        }
        // Page 3 only redirects, so what only it leads to is not found.
        expected.retain(|(url, _)| {
            let mut page: u32 = url.rsplit('/').next().unwrap().parse().unwrap();
            while page > 3 && (page - 1) / 2 != 3 {
                page = (page - 1) / 2;
            }
            page <= 3
        });
        assert_eq!(seen, expected);
        assert!(self.acked.is_subset(&seen), "an acknowledged capture is gone");
    }
}

impl Bench {
    /// The container is sound, and its events are what captures they say.
    fn verify_container(&self, fs: &Arc<dyn Fs>, path: &Path, archived: &mut BTreeMap<(String, u64), String>) {
        let settings = trawl_seqdb::Settings::new(Clock::fixed(UnixMillis(0)), "test").on(fs.clone());
        let paths = trawl_seqdb::FsPaths::of(path).unwrap();
        let mut findings = trawl_seqdb::Findings::new();
        trawl_seqdb::pages::verify(&paths, &settings, &mut findings, &trawl_seqdb::silent).unwrap();
        assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
        let pages = trawl_seqdb::Pages::open(&paths, trawl_seqdb::Access::Read, &settings).unwrap();
        let mut scan = pages.scan();
        let mut infos = 0;
        while let Some(page) = scan.next_page().unwrap() {
            let event = std::io::Cursor::new(page.event.unwrap().to_vec());
            let mut reader = WarcReader::builder().from_read(event, "event");
            let record = reader.next_record().unwrap().unwrap();
            if record.header().record_type() != RecordType::Response {
                infos += 1;
                continue;
            }
            assert_eq!(record.header().target_uri().unwrap().as_bytes(), page.url);
            let id = record.header().record_id().unwrap().into_owned();
            assert!(archived.insert((page.place.file.to_string(), page.place.offset), id).is_none());
        }
        assert_eq!(infos, 1, "one warcinfo, whatever happened");
    }
}

/// Cuts the power at every `step`-th operation of a crawl, in every way, and goes on.
fn cut_everywhere(plan: Plan, step: u64, seeds: u64) -> u64 {
    let whole = FaultFs::new();
    let mut bench = Bench::new(plan);
    bench.crawl(&whole.shared()).unwrap();
    bench.verify(&whole.shared());
    let ops = whole.counts().ops;
    for cut in (0..ops).step_by(usize::try_from(step).unwrap()) {
        for loss in Loss::variants(seeds).filter(|loss| plan.can_lose(*loss)) {
            let fs = FaultFs::new();
            fs.cut_after(cut);
            let mut bench = Bench::new(plan);
            // The last operations (giving the lock back) may be cut without anyone noticing.
            let first = bench.crawl(&fs.shared());
            assert!(first.is_err() || cut + 2 >= ops, "cut {cut} of {ops} was not noticed");
            let fs = fs.reboot(loss);
            if let Err(error) = bench.crawl(&fs.shared()) {
                panic!("cut {cut}, {loss:?}: {error}");
            }
            bench.verify(&fs.shared());
        }
    }
    ops
}

#[test]
fn a_power_cut_at_every_step_loses_nothing_acknowledged() {
    let ops = cut_everywhere(Plan::new(12, 300), 1, 3);
    assert!(ops > 40, "{ops}");
}

#[test]
fn nor_while_the_frontier_is_flushed_and_merged() {
    let ops = cut_everywhere(Plan { frontier_bytes: 8 << 10, ..Plan::new(30, 300) }, 3, 1);
    assert!(ops > 200, "{ops}");
}

#[test]
fn nor_of_a_container() {
    let ops = cut_everywhere(Plan { format: "seqdb", ..Plan::new(12, 300) }, 4, 2);
    assert!(ops > 40, "{ops}");
}

#[test]
fn also_while_files_roll() {
    let plan = Plan::new(7, 400_000);
    let ops = cut_everywhere(plan, 5, 0);
    assert!(ops > 30, "{ops}");
}

#[test]
fn a_second_cut_during_recovery_is_survived() {
    second_cut(Plan::new(6, 300), 1, 1);
    second_cut(Plan { format: "seqdb", ..Plan::new(6, 300) }, 512, 13);
}

fn second_cut(plan: Plan, unit: usize, step: usize) {
    let whole = FaultFs::new();
    Bench::new(plan).crawl(&whole.shared()).unwrap();
    for first in (0..whole.counts().ops).step_by(7 * step) {
        for second in (0..).step_by(step) {
            let fs = FaultFs::new();
            fs.cut_after(first);
            let mut bench = Bench::new(plan);
            let _ = bench.crawl(&fs.shared());
            let fs = fs.reboot(Loss::Torn { seed: first * 31 + second, unit });
            fs.cut_after(second);
            if bench.crawl(&fs.shared()).is_ok() && !fs.is_cut() {
                bench.verify(&fs.shared());
                break;
            }
            let fs = fs.reboot(Loss::All);
            bench.crawl(&fs.shared()).unwrap();
            bench.verify(&fs.shared());
        }
    }
}

#[test]
fn a_full_disk_stops_the_run_and_a_resume_goes_on() {
    full_disk(Plan::new(10, 100_000), 500_000);
    // A container takes room in steps of 4 MiB, and less where there is less.
    for mib in [5, 6, 8, 9] {
        full_disk(Plan { format: "seqdb", ..Plan::new(10, 1_000_000) }, mib << 20);
    }
}

fn full_disk(plan: Plan, capacity: u64) {
    let fs = FaultFs::new();
    fs.set_capacity(capacity);
    let mut bench = Bench::new(plan);
    let error = bench.crawl(&fs.shared()).map(|_| ()).unwrap_err();
    assert_eq!(error.advice(), trawl_model::Advice::Stop, "{error}");
    assert!(!bench.acked.is_empty(), "full before anything was done");
    let fs = fs.reboot(Loss::None);
    fs.set_capacity(u64::MAX);
    bench.crawl(&fs.shared()).unwrap();
    bench.verify(&fs.shared());
}
