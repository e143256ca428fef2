//! Sorts a CrawlDb of many URLs and merges another into it, within a memory budget: says how long that took and how much
//! memory the process had at most, and fails if that was over the limit.
//!
//! Usage: large_crawldb DIR [URLS [LIMIT_MIB]]
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;
use trawl_hadoop::class;
use trawl_hadoop::seq::OpenOptions;
use trawl_hadoop::{Any, Encode};
use trawl_nutch::db::{Compress, CrawlDb, WriteSettings, merge_crawldbs};
use trawl_nutch::types::{CrawlDatum, Status, encoded};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(args.next().ok_or("large_crawldb DIR [URLS [LIMIT_MIB]]")?);
    let urls: u64 = args.next().map_or(Ok(20_000_000), |n| n.parse())?;
    let limit_mib: u64 = args.next().map_or(Ok(512), |n| n.parse())?;
    std::fs::create_dir_all(&dir)?;
    // A quarter of the limit stays for what is not the sorter's: buffers of files, codecs, the allocator.
    let memory_bytes = usize::try_from(limit_mib << 20)? / 4 * 3;
    let settings = WriteSettings { parts: 4, memory_bytes, ..WriteSettings::new(&dir, *b"large crawldb ok") };
    let (first, second, merged) = (dir.join("first"), dir.join("second"), dir.join("merged"));
    let all = urls;
    write(&first, all, 0, all, &settings)?;
    // A tenth of the URLs again, later, and a tenth of new ones.
    write(&second, all, all - all / 10, all / 5, &settings)?;
    let start = Instant::now();
    let written =
        merge_crawldbs(&[first.clone(), second], &OpenOptions::default(), &merged, Compress::Nutch, &settings)?;
    report("merged", written.records, written.bytes, start);
    if written.records != all + all / 10 {
        return Err(format!("expected {} URLs, found {}", all + all / 10, written.records).into());
    }
    let peak = peak_mib()?;
    println!("peak memory {peak} MiB, limit {limit_mib} MiB");
    std::fs::remove_dir_all(&dir)?;
    if peak > limit_mib { Err("over the limit".into()) } else { Ok(()) }
}

/// Writes `count` URLs from number `from` on, in an order that is far from sorted.
fn write(db: &std::path::Path, modulus: u64, from: u64, count: u64, settings: &WriteSettings) -> Result<()> {
    let start = Instant::now();
    let mut writer = CrawlDb::writer(Compress::Nutch, settings)?;
    // Every number below `count` once, scattered: the factor is a prime above any count.
    for n in 0..count {
        let number = from + (n.wrapping_mul(2_147_483_647) % count);
        let mut datum = CrawlDatum::new(Status::DB_FETCHED, 1_700_000_000_000 + (from + n).cast_signed(), 0.5);
        datum.signature = number.to_be_bytes().repeat(2).into();
        datum.metadata.insert("_rs_", Any::new(class::INT, |out| out.put_i32(number as i32)));
        let url =
            format!("https://host{}.example/section/{}/page-{number}.html", number % (modulus / 100 + 1), number % 7);
        writer.push(url.as_bytes(), &encoded(|out| datum.encode(out)))?;
    }
    let written = CrawlDb::install(writer, db, settings)?;
    report("sorted", written.records, written.bytes, start);
    Ok(())
}

fn report(what: &str, records: u64, bytes: u64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!("{what} {records} URLs, {} MB, in {seconds:.1} s", bytes / 1_000_000);
}

/// The most memory this process had.
fn peak_mib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? / 1024)
}
