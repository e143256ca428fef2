//! Questions: what does a lake cost as it grows?
//!
//! `cargo run --release --features growth --bin growth -- [part] [directory]`
//!
//! | part | question |
//! | --- | --- |
//! | `publish` | does publishing 100 thousand URLs cost the same onto a lake of 100 thousand and of 50 million? |
//! | `ingest` | does an ingest of 100 million URLs stay within 1 GiB? |
//! | `domains` | what memory does a server need for a million domains, and how many bytes are they on disk? |
//! | `members` | which datasets a domain is in, for 1, 2, 4 and 8 datasets a domain: bytes, beside other forms |
//! | `wide` | a million URLs in one domain: first, middle and last page |
//!
//! All of them without a part, `ingest` with a hundredth of its rows. Memory is what the kernel says of this process; each
//! part runs as a process of its own, so that none inherits another's. Scratch space: 3 GB for `publish`, 12 GB for
//! `ingest`.

#[path = "../lake/measure.rs"]
mod measure;
#[path = "../lake/members.rs"]
mod members;
#[path = "../lake/rows.rs"]
mod rows;

use measure::{bytes_below, each, forget_peak, memory_mib, spent};
use rows::{Rows, name};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_index::{BuildOptions, Compaction};
use trawl_model::{DoorError, Items, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};
use trawl_query::{Filter, Options, Page, Principal};
use trawl_store::{DatasetInfo, DirStore, Lake, Store};
use trawl_url::SuffixList;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: u64| args.get(n).map_or(Ok(default), |a| a.parse());
    let dir = args.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let room = Room::new(&dir.join(format!("trawl-bench-growth-{}", std::process::id())))?;
    match args.first().map(String::as_str) {
        Some("publish") => publish(&room, number(2, 50_000_000)?),
        Some("ingest") => ingest(&room, number(2, 100_000_000)?),
        Some("domains") => domains(&room, number(2, 1_000_000)?),
        Some("members") => members(&room, number(2, 200_000)?),
        Some("wide") => wide(&room, number(2, 1_000_000)?),
        Some(other) => Err(format!("no part {other:?}; there are publish, ingest, domains, members and wide").into()),
        None => {
            let parts: [&[&str]; 5] =
                [&["publish", "."], &["ingest", ".", "1000000"], &["domains", "."], &["members", "."], &["wide", "."]];
            for part in parts {
                let status = std::process::Command::new(std::env::current_exe()?)
                    .arg(part[0])
                    .arg(&dir)
                    .args(&part[2..])
                    .status()?;
                if !status.success() {
                    return Err(format!("{}: {status}", part[0]).into());
                }
            }
            Ok(())
        }
    }
}

/// A directory that goes when it is done with.
struct Room(PathBuf);

impl Room {
    fn new(dir: &Path) -> Result<Self> {
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir.join("tmp"))?;
        Ok(Self(dir.to_owned()))
    }

    fn lake(&self, name: &str) -> Result<(Arc<dyn Store>, Lake)> {
        let store: Arc<dyn Store> = Arc::new(DirStore::new(self.0.join(name)));
        let lake = Lake::init(store.clone(), UnixMillis(0), "bench", SuffixList::builtin().text().as_bytes())?;
        Ok((store, lake))
    }

    fn take(&self, lake: &Lake, dataset: &str, source: impl UrlSource + 'static) -> Result<trawl_ingest::IngestReport> {
        let id = lake.register_dataset(UnixMillis(1), "test", &DatasetInfo::named(dataset))?;
        let settings = trawl_ingest::IngestSettings::new(format!("i-{dataset}"), self.0.join("tmp"));
        let sources = vec![trawl_ingest::source::Source::new(source)];
        Ok(trawl_ingest::ingest(lake, id, &sources, &settings, &|| UnixMillis(2), &|_| ())?)
    }

    fn publish(&self, lake: &Lake, writer: &str) -> Result<trawl_index::Published> {
        let options = BuildOptions::new(self.0.join("tmp"));
        Ok(trawl_index::publish(lake, &|| UnixMillis(3), writer, &options, &|_| ())?)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A hundred thousand more URLs onto lakes of two sizes: seconds and bytes of ingest and publish.
fn publish(room: &Room, large: u64) -> Result<()> {
    const MORE: u64 = 100_000;
    println!("publishing {MORE} more URLs (ingest and publish, three times each)");
    let mut sums = Vec::new();
    for base in [MORE, large] {
        let dir = format!("lake-{base}");
        let (store, lake) = room.lake(&dir)?;
        room.take(&lake, "base", Rows { seed: 1, count: base, domains: base / 50 })?;
        room.publish(&lake, "base")?;
        let mut costs = Vec::new();
        for turn in 0..3u64 {
            let before = bytes_below(&room.0.join(&dir));
            let (done, cost) = spent(|| -> Result<()> {
                // As a command does it: from opening the lake to the new version.
                let lake = Lake::open(store.clone())?;
                let rows = Rows { seed: 2 + turn, count: MORE, domains: MORE / 50 };
                room.take(&lake, &format!("more{turn}"), rows)?;
                room.publish(&lake, &format!("more{turn}"))?;
                Ok(())
            });
            done?;
            costs.push((cost.cpu, bytes_below(&room.0.join(&dir)) - before));
        }
        costs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (cpu, bytes) = costs[1];
        println!("  onto {base:>9}: {cpu:.2} s of processor time, {:.2} MB written", bytes as f64 / 1e6);
        sums.push((cpu, bytes as f64));
        std::fs::remove_dir_all(room.0.join(&dir))?;
    }
    println!("  ratio: time {:.2}x, bytes {:.2}x", sums[1].0 / sums[0].0, sums[1].1 / sums[0].1);
    Ok(())
}

/// Peak memory of a large ingest, and of building its index.
fn ingest(room: &Room, rows: u64) -> Result<()> {
    let (_, lake) = room.lake("lake")?;
    forget_peak();
    let (report, cost) = spent(|| room.take(&lake, "large", Rows { seed: 1, count: rows, domains: rows / 50 }));
    let report = report?;
    println!(
        "ingest of {rows} URLs: {:.0} s ({:.0} s of processor time), {} files, {:.2} bytes a URL, {:.0} MB spilled, peak {:.0} MiB resident, {:.0} MiB anonymous at the end",
        cost.wall,
        cost.cpu,
        report.files,
        report.bytes as f64 / rows as f64,
        report.spilled_bytes as f64 / 1e6,
        memory_mib("VmHWM"),
        memory_mib("RssAnon")
    );
    forget_peak();
    let (published, cost) = spent(|| room.publish(&lake, "large"));
    let meta = published?.segment.ok_or("nothing was published")?;
    println!(
        "publish of them: {:.0} s ({:.0} s of processor time), {} domains, peak {:.0} MiB resident",
        cost.wall,
        cost.cpu,
        meta.domains,
        memory_mib("VmHWM")
    );
    Ok(())
}

/// Datasets of the lakes of many domains.
const DATASETS: u64 = 8;

/// One URL for each of many domains: each dataset has a half of them, another half each; or `of` datasets have each domain.
struct Tail {
    seed: u64,
    count: u64,
    of: Option<u64>,
}

impl Tail {
    fn has(&self, n: u64) -> bool {
        let score = |seed: u64| rows::Dice(n << 4 | seed).next();
        match self.of {
            None => rows::Dice(n).next() >> self.seed & 1 == 1,
            Some(of) => (0..DATASETS).filter(|other| score(*other) < score(self.seed)).count() < of as usize,
        }
    }
}

impl UrlSource for Tail {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity { uri: format!("tail {}", self.seed), size: self.count * 40, tag: String::new() }
    }

    fn splits(&self, _: u64) -> std::result::Result<Vec<Split>, DoorError> {
        Ok(vec![Split { start: 0, end: self.count / 2 }, Split { start: self.count / 2, end: self.count }])
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> std::result::Result<(), DoorError> {
        for n in (split.start..split.end).filter(|n| self.has(*n)) {
            let ts = Some(UnixMillis(1_700_000_000_000 + (n as i64 * 7919 + self.seed as i64) % 100_000_000 * 1000));
            each(n, Ok(UrlRecord { ts, ..UrlRecord::bare(format!("https://www.{}/", domain(n))) }))?;
        }
        Ok(())
    }
}

/// The n-th domain: no two the same.
fn domain(n: u64) -> String {
    let name = name(n);
    let (first, rest) = name.split_once('.').unwrap_or((&name, "com"));
    format!("{first}{n:x}.{rest}")
}

/// Many domains, each with one URL in about four of eight datasets: bytes on disk, memory of a server that answered for all of them.
fn domains(room: &Room, count: u64) -> Result<()> {
    let (store, meta) = tail(room, "lake", count, None)?;
    let of = |name: &str| meta.files.get(name).map_or(0, |f| f.bytes) as f64;
    let (domains, pairs) = (meta.domains as f64, meta.pairs as f64);
    let numbers = of("domain_to_datasets.roar") + of("counts.bin");
    let lookup = numbers + of("domains.txt.zst") + of("domains.mphf");
    println!("{} domains of one URL in each of about four of eight datasets, {} pairs", meta.domains, meta.pairs);
    println!("  domain_to_datasets.roar + counts.bin: {:.2} bytes a pair (limit 7)", numbers / pairs);
    println!("  + domains.txt.zst + domains.mphf: {:.2} bytes a domain (limit 62)", lookup / domains);
    let postings: u64 = meta.files.iter().filter(|(name, _)| name.starts_with("postings/")).map(|(_, f)| f.bytes).sum();
    println!(
        "  beside them: times.bin {:.2}, paths.bin {:.2}, postings {:.2}, pages.bin {:.2} bytes a pair",
        of("times.bin") / pairs,
        of("paths.bin") / pairs,
        postings as f64 / pairs,
        of("pages.bin") / pairs
    );
    serve(&store, count, meta.pairs)
}

/// A lake of many domains in one segment.
fn tail(room: &Room, name: &str, count: u64, of: Option<u64>) -> Result<(Arc<dyn Store>, trawl_index::SegmentMeta)> {
    let (store, lake) = room.lake(name)?;
    for seed in 0..DATASETS {
        room.take(&lake, &format!("d{seed}"), Tail { seed, count, of })?;
    }
    room.publish(&lake, "all")?;
    let options = BuildOptions::new(room.0.join("tmp"));
    trawl_index::compact(&lake, &|| UnixMillis(4), "full", Compaction::Full, &options, &|_| ())?;
    let manifest = lake.current()?;
    let segment = manifest.current().and_then(|v| v.segments.first()).ok_or("no segment")?;
    let meta = trawl_index::SegmentMeta::read(&*store, segment)?;
    Ok((store, meta))
}

/// Bytes of membership and counts by datasets a domain, in the lake's form and in others.
fn members(room: &Room, count: u64) -> Result<()> {
    println!("{count} domains of one URL in each of their datasets; bytes, all files with their checksums");
    for of in [1, 2, 4, 8] {
        let (store, meta) = tail(room, &format!("lake-{of}"), count, Some(of))?;
        let size = |name: &str| meta.files.get(name).map_or(0, |f| f.bytes);
        let (roar, counts) = (size("domain_to_datasets.roar"), size("counts.bin"));
        let names = size("domains.txt.zst") + size("domains.mphf");
        let pinned = trawl_query::Lake::open(store, Options::default())?.pin()?;
        let (who, mut slots, mut records, mut after) = (Principal::anyone(), Vec::new(), Vec::new(), None::<String>);
        loop {
            let some = pinned.domains("", after.as_deref(), 1000, &who)?;
            let Some(last) = some.last() else { break };
            after = Some(last.domain.clone());
            for summary in &some {
                let datasets = pinned.domain_counts(&summary.domain, &who)?;
                slots.push(datasets.iter().map(|d| d.dataset_id).collect::<Vec<_>>());
                records.push(datasets.iter().map(|d| (d.rows * 2) as u8).collect::<Vec<_>>());
            }
        }
        let sets = members::Sets::new(&slots);
        let budget = 7 * meta.pairs + 62 * meta.domains;
        println!(
            "  {of} dataset(s) a domain: {} domains, {} pairs, {} sets; budget of 7 a pair and 62 a domain {budget}",
            meta.domains,
            meta.pairs,
            sets.len()
        );
        let line = |form: &str, membership: u64, nanos: Option<f64>| {
            let all = membership + counts + names;
            println!(
                "    {form:36} membership {membership:>8}, with counts {:5.2} a pair, with names {:5.2} a domain, {:.2} of the budget{}",
                (membership + counts) as f64 / meta.pairs as f64,
                all as f64 / meta.domains as f64,
                all as f64 / budget as f64,
                nanos.map_or(String::new(), |n| format!(", {n:.0} ns a lookup"))
            );
        };
        line("domain_to_datasets.roar", roar, None);
        let (bytes, nanos) = sets.numbered();
        line("bit-packed numbers of distinct sets", bytes, Some(nanos));
        let (bytes, nanos) = sets.in_counts(&records);
        line("number of the set in counts.bin", bytes, Some(nanos));
    }
    Ok(())
}

/// Opens the lake as a server does and asks for every domain.
fn serve(store: &Arc<dyn Store>, count: u64, pairs: u64) -> Result<()> {
    let empty = memory_mib("RssAnon");
    let lake = trawl_query::Lake::open(store.clone(), Options::default())?;
    let (pinned, who) = (lake.pin()?, Principal::anyone());
    let (anon, mapped) = (memory_mib("RssAnon") - empty, memory_mib("RssFile"));
    println!("  opened: {anon:.0} MiB of memory, {mapped:.0} MiB mapped");
    let names: Vec<u64> = (0..count).map(|n| n.wrapping_mul(0x9e37_79b9) % count).collect();
    let names_mib = names.len() as f64 * 8.0 / f64::from(1 << 20);
    let before = memory_mib("RssAnon") - names_mib;
    let found = each(&names, |n| pinned.domain_counts(&domain(*n), &who).map_or(0, |d| d.len() as u64));
    if found.found != pairs {
        return Err(format!("{} pairs were found, {pairs} are there", found.found).into());
    }
    println!(
        "  every domain asked: p50 {:.1} us, p95 {:.1} us, {} pairs; then {:.0} MiB of memory (the cache among it), {:.0} MiB mapped",
        found.p50,
        found.p95,
        found.found,
        memory_mib("RssAnon") - before.min(memory_mib("RssAnon")) + anon,
        memory_mib("RssFile")
    );
    Ok(())
}

/// Many URLs in one domain.
fn wide(room: &Room, count: u64) -> Result<()> {
    struct Wide(u64);
    impl UrlSource for Wide {
        fn identity(&self) -> SourceIdentity {
            SourceIdentity { uri: "wide".into(), size: self.0 * 40, tag: String::new() }
        }
        fn splits(&self, _: u64) -> std::result::Result<Vec<Split>, DoorError> {
            Ok(vec![Split { start: 0, end: self.0 }])
        }
        fn read(&self, split: Split, each: &mut Items<'_>) -> std::result::Result<(), DoorError> {
            (split.start..split.end)
                .try_for_each(|n| each(n, Ok(UrlRecord::bare(format!("https://wide.example/{}/{n:09}.html", n % 97)))))
        }
    }
    let (store, lake) = room.lake("lake")?;
    room.take(&lake, "wide", Wide(count))?;
    room.publish(&lake, "wide")?;
    let pinned = trawl_query::Lake::open(store, Options::default())?.pin()?;
    let who = Principal::anyone();
    let offsets: Vec<u64> = (0..1000).map(|n| n * count / 1000).collect();
    let pages = each(&offsets, |offset| {
        let page = Page::at(*offset, 1000);
        pinned.urls("wide.example", 1, &page, &Filter::default(), &who).map_or(0, |a| a.items.len() as u64)
    });
    let total = pinned.domain("wide.example", &who)?.datasets[0].url_count_est;
    if (total, pages.found) != (count, count / 1000 * 1000) {
        return Err(format!("{total} URLs counted and {} read instead of {count}", pages.found).into());
    }
    println!(
        "one domain of {total} URLs: any page of 1000 in p50 {:.0} us, p95 {:.0} us; {} URLs read",
        pages.p50, pages.p95, pages.found
    );
    Ok(())
}
