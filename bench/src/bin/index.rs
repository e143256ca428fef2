//! Questions: how long does a lookup take, and how many bytes does a domain cost?
//!
//! `cargo run --release --features index --bin index -- [names] [rows] [datasets] [directory]`
//!
//! First part: the dictionary and its perfect hash over generated names, beside `sux`'s signed monotone hash (in memory,
//! the whole of it; ours over mapped files, with the name compared). Second part: a lake of Zipf-distributed rows, built
//! and asked through the query crate as a server would. Printed: bits and bytes, nanoseconds, p50 and p95.

#[path = "../lake/measure.rs"]
mod measure;
#[path = "../lake/rows.rs"]
mod rows;

use rows::{Dice, Rows, name};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use sux::func::{LcpMmphfStr, SignedFunc};
use trawl_index::lines::{Keys, Lines, LinesWriter};
use trawl_index::mphf::{Candidate, DictionaryHashes, Mphf, MphfWriter};
use trawl_index::{BuildOptions, Caches};
use trawl_io::read_at::MapReader;
use trawl_model::UnixMillis;
use trawl_query::{Filter, Lake, Options, Page, Principal};
use trawl_store::{DatasetInfo, DirStore, Store};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default: u64| args.get(n).map_or(Ok(default), |a| a.parse());
    let (names, rows, datasets) = (number(0, 1_000_000)?, number(1, 2_000_000)?, number(2, 8)?);
    let dir = args.get(3).map_or_else(std::env::temp_dir, PathBuf::from).join("trawl-bench-index");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(dir.join("tmp"))?;
    dictionary(&dir, names)?;
    lake(&dir, rows, datasets)?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn dictionary(dir: &Path, count: u64) -> Result<()> {
    let mut names: Vec<String> = (0..count).map(name).collect();
    names.sort_unstable();
    names.dedup();
    let text: usize = names.iter().map(|n| n.len() + 1).sum();
    println!("dictionary: {} names, {:.1} bytes each", names.len(), text as f64 / names.len() as f64);
    let strangers: Vec<String> = (0..1_000_000).map(|n| name(n) + "x").collect();
    let mut dice = Dice(1);
    let known: Vec<usize> = (0..1_000_000).map(|_| (dice.next() >> 8) as usize % names.len()).collect();
    for block in [4096usize, 8192, 16_384, 65_536] {
        let began = Instant::now();
        let (txt, mph) = (dir.join("domains.txt.zst"), dir.join("domains.mphf"));
        let file = |path: &Path| std::fs::File::create(path).map(std::io::BufWriter::new);
        let mut lines = LinesWriter::new(file(&txt)?, "domains.txt.zst", Keys::Sorted, 9, block)?;
        let mut mphf = MphfWriter::new(file(&mph)?)?;
        for name in &names {
            let begins = lines.push(name)?;
            mphf.push(name, begins)?;
        }
        let (out, table) = lines.finish()?;
        drop(out);
        drop(mphf.finish(DictionaryHashes { file: 0, table })?);
        let built = began.elapsed();
        let lines = Lines::open(Arc::new(MapReader::open(&txt)?), Arc::new(Caches::new(1 << 30)))?;
        let mphf = Mphf::open(Arc::new(MapReader::open(&mph)?))?;
        let bits =
            |path: &Path| -> Result<f64> { Ok(std::fs::metadata(path)?.len() as f64 * 8.0 / names.len() as f64) };
        println!(
            "  blocks of {block:5}: text {:.1} bits, hash {:.1} bits a name, built in {:.2} s",
            bits(&txt)?,
            bits(&mph)?,
            built.as_secs_f64()
        );
        let hash = each(&known, |i| {
            let block = lines.block_of(&names[*i]).unwrap_or(0);
            matches!(mphf.get(&names[*i], block), Ok(Candidate::Line(_)))
        });
        let checked = |i: &usize| {
            let block = lines.block_of(&names[*i]).unwrap_or(0);
            match mphf.get(&names[*i], block) {
                Ok(Candidate::Line(line)) => {
                    lines.block(block).is_ok_and(|b| b.line(line as usize) == Some(names[*i].as_str()))
                }
                _ => false,
            }
        };
        let cold = each(&known[..50_000], checked);
        let warm = each(&known, checked);
        let mut passed = 0;
        let stranger = each(&strangers, |name| {
            let stranger = lines.block_of(name).is_none_or(|b| matches!(mphf.get(name, b), Ok(Candidate::Stranger)));
            passed += u32::from(!stranger);
            true
        });
        println!(
            "    candidate {hash:.0} ns, with the name compared {warm:.0} ns (first touch {cold:.0} ns), stranger {stranger:.0} ns, {passed} of 1 M pass"
        );
    }
    sux(&names, &known, &strangers)
}

fn sux(names: &[String], known: &[usize], strangers: &[String]) -> Result<()> {
    let began = Instant::now();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    type Func = SignedFunc<LcpMmphfStr, Box<[u16]>>;
    let func = Func::try_par_new(&keys, dsi_progress_logger::no_logging![])?;
    let built = began.elapsed();
    let bits = mem_dbg::MemSize::mem_size(&func, mem_dbg::SizeFlags::default()) as f64 * 8.0 / names.len() as f64;
    let hash = each(known, |i| func.get(names[*i].as_str()) == Some(*i));
    let mut passed = 0;
    let stranger = each(strangers, |name| {
        passed += u32::from(func.get(name.as_str()).is_some());
        true
    });
    println!(
        "  sux SignedFunc(LcpMmphf, u16): {bits:.1} bits a name, built in {:.2} s, {hash:.0} ns, stranger {stranger:.0} ns, {passed} of 1 M pass",
        built.as_secs_f64()
    );
    Ok(())
}

/// Nanoseconds a call; every call must say yes.
fn each<T>(items: &[T], mut call: impl FnMut(&T) -> bool) -> f64 {
    let began = Instant::now();
    let right = items.iter().filter(|item| call(item)).count();
    let spent = began.elapsed();
    assert_eq!(right, items.len(), "a lookup went wrong");
    spent.as_nanos() as f64 / items.len() as f64
}

fn lake(dir: &Path, rows: u64, datasets: u64) -> Result<()> {
    let store: Arc<dyn Store> = Arc::new(DirStore::new(dir.join("lake")));
    let psl = trawl_url::SuffixList::builtin();
    let lake = trawl_store::Lake::init(store.clone(), UnixMillis(0), "bench", psl.text().as_bytes())?;
    let began = Instant::now();
    let clock = || UnixMillis(1 + began.elapsed().as_millis() as i64);
    for dataset in 0..datasets {
        let id = lake.register_dataset(clock(), "test", &DatasetInfo::named(format!("d{dataset}")))?;
        let settings = trawl_ingest::IngestSettings::new(format!("ingest{dataset}"), dir.join("tmp"));
        let source = Rows { seed: dataset, count: rows / datasets, domains: rows / datasets / 50 };
        trawl_ingest::ingest(&lake, id, &[trawl_ingest::source::Source::new(source)], &settings, &clock, &|_| ())?;
    }
    println!("lake: {rows} rows in {datasets} datasets, ingested in {:.1} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    let published = trawl_index::publish(&lake, &clock, "bench", &BuildOptions::new(dir.join("tmp")), &|_| ())?;
    let built = began.elapsed();
    let meta = published.segment.ok_or("nothing was published")?;
    println!(
        "  segment: {} domains, {} pairs, built in {:.2} s ({:.0} ns a row)",
        meta.domains,
        meta.pairs,
        built.as_secs_f64(),
        built.as_nanos() as f64 / meta.rows as f64
    );
    let total: u64 = meta.files.values().map(|f| f.bytes).sum();
    for (name, file) in &meta.files {
        println!("    {:>10} bytes {:6.2} a domain  {name}", file.bytes, file.bytes as f64 / meta.domains as f64);
    }
    let of = |name: &str| meta.files.get(name).map_or(0, |f| f.bytes);
    let share = (of("domain_to_datasets.roar") + of("counts.bin")) as f64 / meta.pairs as f64;
    let lookup = of("domains.txt.zst") + of("domains.mphf") + of("domain_to_datasets.roar") + of("counts.bin");
    println!(
        "    {total:>10} bytes {:6.2} a domain  in all; {:.2} for domain → datasets and counts; membership and counts {share:.2} a pair; Parquet {:.2} a row",
        total as f64 / meta.domains as f64,
        lookup as f64 / meta.domains as f64,
        meta.parquet_bytes as f64 / meta.rows as f64
    );
    questions(store, rows / datasets / 50)
}

fn questions(store: Arc<dyn Store>, domains: u64) -> Result<()> {
    let began = Instant::now();
    let lake = Lake::open(store, Options::default())?;
    let pinned = lake.pin()?;
    println!("  opened in {:.2} ms", began.elapsed().as_secs_f64() * 1e3);
    let (who, mut dice) = (Principal::anyone(), Dice(5));
    let mut asked = Vec::new();
    for _ in 0..20_000 {
        asked.push(name(dice.zipf(domains)));
    }
    let time = |what: &str, ask: &dyn Fn(&str) -> u64, count: usize| {
        let times = measure::each(&asked[..count.min(asked.len())], |domain| ask(domain));
        println!(
            "  {what}: p50 {:.1} us, p95 {:.1} us, p99 {:.1} us, {} items",
            times.p50, times.p95, times.p99, times.found
        );
    };
    let domain = |name: &str| pinned.domain(name, &who).map_or(0, |a| a.datasets.len() as u64);
    let counts = |name: &str| pinned.domain_counts(name, &who).map_or(0, |a| a.len() as u64);
    time("domain → datasets, first time", &domain, asked.len());
    time("domain → datasets, again", &domain, asked.len());
    time("domain → datasets, without names and paths", &counts, asked.len());
    let urls = |name: &str| {
        pinned.urls(name, 1, &Page::at(0, 1000), &Filter::default(), &who).map_or(0, |a| a.items.len() as u64)
    };
    time("first 1000 urls", &urls, 3000);
    let stranger = |name: &str| u64::from(pinned.domain(&format!("x{name}"), &who).is_err());
    time("stranger", &stranger, asked.len());
    Ok(())
}
