//! Questions: is a lookup faster than what people would use instead, is an ingest, and what does it take on disk?
//!
//! `cargo run --release --features peers --bin peers -- [rows] [datasets] [directory] [keep]`
//!
//! The peers are DuckDB (the Python package `duckdb`; `PEERS_PYTHON` names an interpreter that has it, `python3`
//! otherwise) and LMDB. All have identical rows and columns: DuckDB loads the lake's own Parquet files, in an order made
//! random, and writes, sorts and indexes them by itself. Wall-clock percentiles of warm questions, and processor time
//! where a busy machine would decide otherwise.

#[path = "../lake/measure.rs"]
mod measure;
#[path = "../lake/rows.rs"]
mod rows;

use heed::types::{Bytes, Str};
use measure::{Percentiles, Spent, each, spent};
use rows::{Dice, Rows, name};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_index::BuildOptions;
use trawl_model::{UnixMillis, UrlSource as _};
use trawl_query::{Filter, Lake, Options, Page, Pinned, Principal};
use trawl_store::{DatasetInfo, DirStore, Store};
use trawl_url::{LakeUrl, SuffixList};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const ZSTD_LEVEL: i32 = 6;
const ROUNDS: usize = 9;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: u64| args.get(n).map_or(Ok(default), |a| a.parse());
    let (rows, datasets) = (number(0, 4_000_000)?, number(1, 8)?);
    let dir = args.get(2).map_or_else(std::env::temp_dir, PathBuf::from).join("trawl-bench-peers");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("tmp"))?;
    let ours = Ours::build(&dir, rows, datasets)?;
    let (asked, pairs) = ours.questions(domains_of(rows, datasets), datasets)?;
    std::fs::write(dir.join("asked.txt"), asked.join("\n") + "\n")?;
    let lines: String = pairs.iter().map(|(domain, dataset)| format!("{domain}\t{dataset}\n")).collect();
    std::fs::write(dir.join("pairs.txt"), lines)?;
    let duck = duckdb(&dir, &ours.files)?;
    let lmdb = Lmdb::build(&dir, &ours.pinned)?;
    // In turn, since a machine is not equally fast at all times.
    let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        rounds[0].push(ours.time_counts(&asked));
        rounds[1].push(ours.time_domains(&asked));
        rounds[2].push(lmdb.time(&asked)?);
    }
    let [counts, full, theirs] = rounds.map(Percentiles::median);
    let urls_of = ours.time_urls(&pairs);
    report(&ours, &duck, [counts, full], urls_of, (theirs, lmdb.bytes_a_domain));
    if args.get(3).is_none() {
        std::fs::remove_dir_all(&dir)?;
    }
    Ok(())
}

/// Fifty rows a domain in each dataset; a month of Common Crawl has seventy.
fn domains_of(rows: u64, datasets: u64) -> u64 {
    rows / datasets / 50
}

/// The lake, and what making it cost.
struct Ours {
    pinned: Arc<Pinned>,
    files: Vec<String>,
    rows: u64,
    /// The whole ingest, one thread.
    ingest: Spent,
    /// Making and normalising the same URLs, and nothing else.
    normalise: Spent,
    parquet_bytes: u64,
    index_bytes: u64,
}

impl Ours {
    fn build(dir: &Path, rows: u64, datasets: u64) -> Result<Self> {
        let root = dir.join("lake");
        let store: Arc<dyn Store> = Arc::new(DirStore::new(&root));
        let psl = SuffixList::builtin();
        let lake = trawl_store::Lake::init(store.clone(), UnixMillis(0), "bench", psl.text().as_bytes())?;
        let clock = || UnixMillis(1);
        let source = |dataset| Rows { seed: dataset, count: rows / datasets, domains: domains_of(rows, datasets) };
        let (mut ingest, mut normalise) = (Spent { wall: 0.0, cpu: 0.0 }, Spent { wall: 0.0, cpu: 0.0 });
        let add = |sum: &mut Spent, more: Spent| (sum.wall, sum.cpu) = (sum.wall + more.wall, sum.cpu + more.cpu);
        let mut files = Vec::new();
        for dataset in 0..datasets {
            let id = lake.register_dataset(clock(), "test", &DatasetInfo::named(format!("d{dataset}")))?;
            let mut settings = trawl_ingest::IngestSettings::new(format!("ingest{dataset}"), dir.join("tmp"));
            (settings.threads, settings.zstd_level) = (1, ZSTD_LEVEL);
            let (done, cost) = spent(|| {
                let source = vec![trawl_ingest::source::Source::new(source(dataset))];
                trawl_ingest::ingest(&lake, id, &source, &settings, &clock, &|_| ())
            });
            done?;
            add(&mut ingest, cost);
            add(&mut normalise, spent(|| normalise_all(&source(dataset), psl)).1);
            let commit = lake.dataset_newest(id)?.ok_or("no commit")?;
            files.extend(commit.files.iter().map(|f| root.join(&f.path).display().to_string()));
        }
        let options = BuildOptions::new(dir.join("tmp"));
        let published = trawl_index::publish(&lake, &clock, "bench", &options, &|_| ())?;
        let meta = published.segment.ok_or("nothing was published")?;
        let pinned = Lake::open(store, Options::default())?.pin()?;
        let index_bytes = meta.files.values().map(|f| f.bytes).sum();
        Ok(Self { pinned, files, rows: meta.rows, ingest, normalise, parquet_bytes: meta.parquet_bytes, index_bytes })
    }

    /// Domains asked for, as often as they have rows; and (domain, dataset) pairs that exist.
    fn questions(&self, domains: u64, datasets: u64) -> Result<(Vec<String>, Vec<(String, u32)>)> {
        let (who, mut dice) = (Principal::anyone(), Dice(5));
        let mut asked = Vec::new();
        while asked.len() < 10_000 {
            let name = name(dice.zipf(domains));
            if self.pinned.domain(&name, &who).is_ok() {
                asked.push(name);
            }
        }
        let mut pairs = Vec::new();
        for name in asked.iter().cycle() {
            let dataset = 1 + dice.below(datasets) as u32;
            if self.pinned.domain(name, &who)?.datasets.iter().any(|d| d.dataset_id == dataset) {
                pairs.push((name.clone(), dataset));
            }
            if pairs.len() == 3000 {
                break;
            }
        }
        Ok((asked, pairs))
    }

    fn time_counts(&self, asked: &[String]) -> Percentiles {
        let who = Principal::anyone();
        let ask = |name: &String| self.pinned.domain_counts(name, &who).map_or(0, |a| black_box(a).len() as u64);
        each(asked, ask); // warm, as the peer is
        each(asked, ask)
    }

    fn time_domains(&self, asked: &[String]) -> Percentiles {
        let who = Principal::anyone();
        let ask = |name: &String| self.pinned.domain(name, &who).map_or(0, |a| black_box(a).datasets.len() as u64);
        each(asked, ask);
        each(asked, ask)
    }

    fn time_urls(&self, pairs: &[(String, u32)]) -> Percentiles {
        let (who, page, all) = (Principal::anyone(), Page::at(0, 1000), Filter::default());
        let ask = |(name, dataset): &(String, u32)| {
            self.pinned.urls(name, *dataset, &page, &all, &who).map_or(0, |a| black_box(a).items.len() as u64)
        };
        each(&pairs[..200], ask);
        each(pairs, ask)
    }
}

fn normalise_all(source: &Rows, psl: &SuffixList) {
    let mut url = LakeUrl::default();
    for split in source.splits(0).unwrap_or_default() {
        let _ = source.read(split, &mut |_, item| {
            if let Ok(record) = item {
                let _ = black_box(url.assign(&record.url, psl));
            }
            Ok(())
        });
    }
}

fn duckdb(dir: &Path, files: &[String]) -> Result<Value> {
    let python = std::env::var("PEERS_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lake/duck.py");
    let mut command = std::process::Command::new(&python);
    command.arg(script).arg(dir).arg(ZSTD_LEVEL.to_string()).args(files);
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{python} with the package duckdb: {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// An LMDB of domain → packed list of (dataset, rows, distinct, first, last).
struct Lmdb {
    env: heed::Env,
    db: heed::Database<Str, Bytes>,
    bytes_a_domain: f64,
}

impl Lmdb {
    fn build(dir: &Path, pinned: &Pinned) -> Result<Self> {
        let path = dir.join("lmdb");
        std::fs::create_dir_all(&path)?;
        // Sound: the directory is new and only this process knows it.
        let env = unsafe { heed::EnvOpenOptions::new().map_size(4 << 30).max_dbs(1).open(&path)? };
        let mut write = env.write_txn()?;
        let db: heed::Database<Str, Bytes> = env.create_database(&mut write, None)?;
        let (who, mut after, mut domains) = (Principal::anyone(), None::<String>, 0u64);
        loop {
            let names = pinned.domains("", after.as_deref(), 1000, &who)?;
            let Some(last) = names.last() else { break };
            after = Some(last.domain.clone());
            for summary in &names {
                let mut packed = Vec::new();
                for dataset in pinned.domain_counts(&summary.domain, &who)? {
                    let (first, last) = (dataset.first_ts.map_or(0, |t| t.0), dataset.last_ts.map_or(0, |t| t.0));
                    varint(&mut packed, u64::from(dataset.dataset_id));
                    varint(&mut packed, dataset.rows);
                    varint(&mut packed, dataset.distinct_urls);
                    varint(&mut packed, first.unsigned_abs());
                    varint(&mut packed, last.abs_diff(first));
                }
                db.put(&mut write, &summary.domain, &packed)?;
                domains += 1;
            }
        }
        write.commit()?;
        let bytes_a_domain = std::fs::metadata(path.join("data.mdb"))?.len() as f64 / domains as f64;
        Ok(Self { env, db, bytes_a_domain })
    }

    /// Asked what the lake is.
    fn time(&self, asked: &[String]) -> Result<Percentiles> {
        let read = self.env.read_txn()?;
        let ask = |name: &String| {
            let packed = self.db.get(&read, name).ok().flatten().unwrap_or_default();
            let mut list: Vec<[u64; 5]> = Vec::new();
            let mut numbers = Varints(packed);
            while let Some(dataset) = numbers.next() {
                let mut next = || numbers.next().unwrap_or(0);
                list.push([dataset, next(), next(), next(), next()]);
            }
            black_box(list).len() as u64
        };
        each(asked, ask);
        Ok(each(asked, ask))
    }
}

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

struct Varints<'a>(&'a [u8]);

impl Iterator for Varints<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            n |= u64::from(byte & 0x7f) << shift;
            if *byte < 0x80 {
                return Some(n);
            }
        }
        None
    }
}

fn report(ours: &Ours, duck: &Value, [domains, full]: [Percentiles; 2], urls: Percentiles, lmdb: (Percentiles, f64)) {
    let number = |path: &str| duck.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let of = |what: &str| Percentiles {
        p50: number(&format!("/{what}/p50")),
        p95: number(&format!("/{what}/p95")),
        p99: number(&format!("/{what}/p99")),
        cpu: number(&format!("/{what}/cpu")),
        found: number(&format!("/{what}/found")) as u64,
    };
    let settings: BTreeMap<String, Value> =
        duck.get("settings").and_then(|s| serde_json::from_value(s.clone()).ok()).unwrap_or_default();
    println!("peers: {} rows; DuckDB {} {settings:?}; zstd {ZSTD_LEVEL}", ours.rows, duck["version"]);
    let line = |who: &str, p: Percentiles, ratio: f64| {
        println!(
            "  {who:44} p50 {:9.2} us  p95 {:9.2}  p99 {:9.2}  cpu {:9.2}  {:8} rows  {ratio:8.2}x",
            p.p50, p.p95, p.p99, p.cpu, p.found
        );
    };
    println!("domain -> datasets with counts (x: theirs / ours, p50)");
    line("ours: datasets, counts, times", domains, 1.0);
    line("ours: with names and top paths", full, full.p50 / domains.p50);
    for threads in [1, 2] {
        let theirs = of(&format!("datasets_art_{threads}"));
        line(&format!("DuckDB native aggregate, ART, {threads} thread(s)"), theirs, theirs.p50 / domains.p50);
    }
    line("LMDB get of a packed list", lmdb.0, lmdb.0.p50 / domains.p50);
    println!("first 1000 urls of a (domain, dataset)");
    line("ours", urls, 1.0);
    for threads in [1, 2] {
        for (what, table) in [("native", "native table"), ("parquet", "one sorted Parquet file")] {
            let theirs = of(&format!("urls_{what}_{threads}"));
            line(&format!("DuckDB {table}, {threads} thread(s)"), theirs, theirs.p50 / urls.p50);
        }
    }
    println!("sort and write, processor seconds, one thread");
    let work = ours.ingest.cpu - ours.normalise.cpu;
    println!(
        "  ours {work:.2} s (ingest {:.2} s, of it making and normalising {:.2} s)",
        ours.ingest.cpu, ours.normalise.cpu
    );
    for version in ["V1", "V2"] {
        let theirs = number(&format!("/write_{version}/cpu"));
        println!("  DuckDB, Parquet {version} pages {theirs:.2} s: {:.2}x", theirs / work);
    }
    println!("bytes a URL");
    let rows = ours.rows as f64;
    let all = (ours.parquet_bytes + ours.index_bytes) as f64;
    println!(
        "  ours {:.2}: Parquet {:.2}, index {:.2}",
        all / rows,
        ours.parquet_bytes as f64 / rows,
        ours.index_bytes as f64 / rows
    );
    for (what, path) in [
        ("one sorted Parquet file", "/write_V1/bytes"),
        ("one sorted Parquet file, V2 pages", "/write_V2/bytes"),
        ("one sorted Parquet file a dataset", "/bytes_by_dataset"),
        ("database: table, aggregate, ART", "/database_bytes"),
    ] {
        println!("  DuckDB {what} {:.2}: ours is {:.2}x of it", number(path) / rows, all / number(path));
    }
    println!("  LMDB alone: {:.1} bytes a domain", lmdb.1);
}
