//! Question: how long does it take to sort a file of URL lines within a memory budget, beside GNU sort?
//!
//! `cargo run --release --features sort --bin sort -- [lines] [MiB] [rounds] [directory]`
//!
//! Both read the same generated file and write a sorted one with the same budget and two threads, each as a child
//! process; rounds alternate. The outputs are compared byte for byte. Printed: wall time, peak memory, ratio.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [mode, input, output, mib] = args.as_slice()
        && mode == "--ours"
    {
        return ours(Path::new(input), Path::new(output), mib.parse()?);
    }
    let number = |n: usize, default: usize| args.get(n).map_or(Ok(default), |a| a.parse());
    let (lines, mib, rounds) = (number(0, 20_000_000)?, number(1, 256)?, number(2, 3)?);
    let dir = args.get(3).map_or_else(std::env::temp_dir, PathBuf::from).join("trawl-bench-sort");
    std::fs::create_dir_all(&dir)?;
    let (input, theirs, our) = (dir.join("in.txt"), dir.join("gnu.txt"), dir.join("ours.txt"));
    generate(&input, lines)?;
    let bytes = std::fs::metadata(&input)?.len();
    println!("sort: {lines} lines, {:.2} GB, budget {mib} MiB, 2 threads", bytes as f64 / 1e9);
    let mut best = [Duration::MAX; 2];
    for round in 1..=rounds {
        let gnu = Command::new("sort")
            .env("LC_ALL", "C")
            .args(["--parallel=2", "-S", &format!("{mib}M"), "-T"])
            .args([&dir, Path::new("-o"), &theirs, &input])
            .spawn()?;
        let ours = |dir: &Path| {
            Command::new(std::env::current_exe()?)
                .env("TMPDIR", dir)
                .arg("--ours")
                .args([&input, &our])
                .arg(mib.to_string())
                .spawn()
        };
        for (who, name, child) in [(0, "gnu sort", Some(gnu)), (1, "trawl-sort", None)] {
            let child = match child {
                Some(child) => child,
                None => ours(&dir)?,
            };
            let (wall, peak) = watch(child)?;
            best[who] = best[who].min(wall);
            println!("round {round}: {name:<10} {:7.2} s  peak {:4} MiB", wall.as_secs_f64(), peak >> 20);
        }
        same(&theirs, &our)?;
    }
    let ratio = best[0].as_secs_f64() / best[1].as_secs_f64();
    println!("best of {rounds}: outputs identical, trawl-sort is {ratio:.2}x GNU sort");
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Sorts the lines of a file into another.
fn ours(input: &Path, output: &Path, mib: usize) -> Result<()> {
    let mut sorter = trawl_sort::Sorter::builder(std::env::temp_dir()).memory_bytes(mib << 20).threads(2).build()?;
    let mut reader = BufReader::with_capacity(256 << 10, File::open(input)?);
    let mut carry = Vec::new();
    loop {
        let chunk = reader.fill_buf()?;
        let mut at = 0;
        for end in memchr::memchr_iter(b'\n', chunk) {
            if carry.is_empty() {
                sorter.push(&chunk[at..end], b"")?;
            } else {
                carry.extend_from_slice(&chunk[at..end]);
                sorter.push(&carry, b"")?;
                carry.clear();
            }
            at = end + 1;
        }
        carry.extend_from_slice(&chunk[at..]);
        let n = chunk.len();
        if n == 0 {
            break;
        }
        reader.consume(n);
    }
    if !carry.is_empty() {
        sorter.push(&carry, b"")?;
    }
    let pushed = Instant::now();
    let sorted = sorter.finish()?;
    let stats = sorted.stats();
    let mut out = BufWriter::with_capacity(256 << 10, File::create(output)?);
    sorted.for_each(|record| -> Result<()> {
        out.write_all(record.key)?;
        out.write_all(b"\n")?;
        Ok(())
    })?;
    out.flush()?;
    eprintln!(
        "  {} runs, {:.2} GB spilled, merge {:.2} s",
        stats.runs,
        stats.spilled_bytes as f64 / 1e9,
        pushed.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Waits for a process; wall time and peak resident memory. The peak never falls, so the last look has it.
fn watch(mut child: Child) -> Result<(Duration, u64)> {
    let started = Instant::now();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        if let Some(exit) = child.try_wait()? {
            let wall = started.elapsed();
            return if exit.success() { Ok((wall, peak)) } else { Err(format!("child failed: {exit}").into()) };
        }
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        peak = peak.max(line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn same(a: &Path, b: &Path) -> Result<()> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    let (mut x, mut y) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let n = read_full(&mut a, &mut x)?;
        if read_full(&mut b, &mut y)? != n || x[..n] != y[..n] {
            return Err("the outputs differ".into());
        }
        if n == 0 {
            return Ok(());
        }
    }
}

fn read_full(file: &mut File, buf: &mut [u8]) -> Result<usize> {
    let mut n = 0;
    while n < buf.len() {
        match file.read(&mut buf[n..])? {
            0 => break,
            more => n += more,
        }
    }
    Ok(n)
}

/// URL lines: domains by a power law, half of them with `www.`, paths of one to four words, some queries, 2 % repeated.
fn generate(path: &Path, lines: usize) -> Result<()> {
    const WORDS: [&str; 24] = [
        "news",
        "article",
        "product",
        "category",
        "2024",
        "2025",
        "archive",
        "page",
        "user",
        "blog",
        "post",
        "image",
        "search",
        "about",
        "help",
        "forum",
        "thread",
        "item",
        "review",
        "video",
        "tag",
        "en",
        "de",
        "index.html",
    ];
    const SUFFIXES: [&str; 8] = ["com", "org", "net", "de", "co.uk", "fr", "info", "io"];
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut dice = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    };
    let mut line = Vec::new();
    for _ in 0..lines {
        if !line.is_empty() && dice() % 50 == 0 {
            out.write_all(&line)?;
            continue;
        }
        line.clear();
        // Cubing a uniform value gives few domains most of the lines.
        let u = (dice() % 1_000_000) as f64 / 1e6;
        let domain = (u * u * u * 2_000_000.0) as u64;
        let name = domain.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        write!(line, "http{}://", if dice() % 5 == 0 { "" } else { "s" })?;
        write!(
            line,
            "{}{}{:x}.{}",
            if domain % 2 == 0 { "www." } else { "" },
            WORDS[(name % 10) as usize],
            name,
            SUFFIXES[(name % 8) as usize]
        )?;
        for _ in 0..1 + dice() % 4 {
            write!(line, "/{}", WORDS[(dice() % 24) as usize])?;
        }
        match dice() % 4 {
            0 => write!(line, "?id={}", dice() % 1_000_000)?,
            1 => write!(line, "/{}-{}", dice() % 100_000, WORDS[(dice() % 24) as usize])?,
            2 => write!(line, "/{:08x}", dice() & 0xffff_ffff)?,
            _ => {}
        }
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.flush()?;
    Ok(())
}
