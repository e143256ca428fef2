//! Questions: how many offers, and how many pairs of lease and settle, does a CPU second make; in how much memory; what do flush, resume
//! and pack cost? And against a general store (`fjall`), and against the reference's own figures?
//!
//! `cargo run --release --features frontier --bin frontier -- [part] [URLs] [hosts] [MiB] [rounds]`
//!
//! | part | question |
//! | --- | --- |
//! | `small` | 10,000 URLs in memory, durability off: beside the reference's 0.82 us a URL, 2.8 us canonicalisation, 0.84 us a selection |
//! | `scale` | 30 million URLs of a million hosts in 2 GiB, durable; rounds of 50 offers (45 known), one lease, one settle |
//! | `peer` | the same at a thirtieth, with the rows in `fjall`: key spaces rows, host + bucket + due, due |

#[path = "../frontier/peer.rs"]
mod peer;
#[path = "../frontier/workload.rs"]
mod workload;

use rustix::time::{ClockId, clock_gettime};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trawl_frontier::{Answer, Candidate, Config, Frontier, LeaseId, Next, Outcome, RobotsPolicy, Work};
use trawl_io::{Fs, RealFs};
use trawl_model::UnixMillis;
use workload::{Workload, mix};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| args.get(at).map_or(Ok(default), |a| a.parse());
    match args.first().map(String::as_str) {
        Some("small") => small(),
        Some("scale") => {
            // Hosts, memory and rounds in proportion to 30 million URLs of a million hosts in 2 GiB.
            let urls = number(1, 30_000_000)?;
            scale(urls, number(2, urls / 30)?, number(3, (urls * 2048).div_ceil(30_000_000))?, number(4, urls / 30)?)
        }
        Some("peer") => {
            let urls = number(1, 1_000_000)?;
            peer::run(urls, number(2, urls / 30)?, number(3, 69)?, number(4, urls / 30)?)
        }
        Some(other) => Err(format!("no part {other:?}; there are small, scale and peer").into()),
        None => {
            small()?;
            scale(1_000_000, 33_333, 69, 33_333)?;
            peer::run(1_000_000, 33_333, 69, 33_333)
        }
    }
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

pub fn process_seconds() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn thread_seconds() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// A line of `/proc/self/status`, in MiB.
pub fn memory_mib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// The most RssAnon since it was last asked, sampled all the time: flushes and merges run on threads of their own.
#[derive(Clone, Default)]
struct Peak(Arc<AtomicU64>);

impl Peak {
    fn start() -> Self {
        let peak = Peak::default();
        let sampled = peak.clone();
        std::thread::spawn(move || {
            loop {
                sampled.0.fetch_max(memory_mib("RssAnon"), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        peak
    }

    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed).max(memory_mib("RssAnon"))
    }
}

fn small() -> Result<()> {
    const URLS: u64 = 10_000;
    let work = Workload::new(URLS, 200);
    let texts: Vec<String> = (0..URLS).map(|n| work.url(n)).collect();
    let config =
        Config { robots: RobotsPolicy::Ignore, delay: Duration::ZERO, per_ip: None, max_depth: 0, ..Config::default() };
    let (mut intake, mut select, mut drain) = (f64::MAX, f64::MAX, f64::MAX);
    for _ in 0..20 {
        let begun = thread_seconds();
        let mut frontier = Frontier::in_memory(config.clone());
        for batch in texts.chunks(500) {
            let candidates =
                batch.iter().map(|text| Ok(Candidate::seed(config.identity, trawl_url::WebUrl::parse(text)?, None)));
            let candidates = candidates.collect::<std::result::Result<Vec<_>, trawl_url::Reject>>()?;
            frontier.offer(UnixMillis(0), &candidates)?;
        }
        intake = intake.min(thread_seconds() - begun);
        let begun = thread_seconds();
        let (mut now, mut left, mut leased, mut outcomes) = (1, URLS, Vec::new(), Vec::new());
        let mut selecting = 0.0;
        while left > 0 {
            let asked = thread_seconds();
            frontier.lease(UnixMillis(now), 200, &mut leased)?;
            selecting += thread_seconds() - asked;
            outcomes.clear();
            for work in leased.drain(..) {
                let Work::Fetch(lease) = work else { continue };
                let LeaseId::Page(id) = lease.id else { continue };
                outcomes.push(Outcome { id, answer: Answer::status(200), note: None });
            }
            left -= outcomes.len() as u64;
            frontier.settle(UnixMillis(now), &outcomes)?;
            now += 1;
        }
        drain = drain.min(thread_seconds() - begun);
        select = select.min(selecting);
    }
    let us = |seconds: f64| seconds * 1e6 / URLS as f64;
    println!("10,000 URLs in memory, best of 20");
    println!(
        "  intake with canonicalisation {:.2} us a URL; the reference 3.62 us: {:.1}x",
        us(intake),
        3.62 / us(intake)
    );
    // The reference's figure is for draining: it selects, and reports nothing back.
    println!("  lease {:.2} us; the reference 0.84 us: {:.1}x", us(select), 0.84 / us(select));
    println!("  lease and settle {:.2} us: {:.1}x", us(drain), 0.84 / us(drain));
    Ok(())
}

fn directory() -> Result<PathBuf> {
    let base = std::env::var_os("FRONTIER_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = base.join(format!("trawl-bench-frontier-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn config(mib: u64) -> Config {
    Config {
        robots: RobotsPolicy::Ignore,
        per_ip: None,
        delay: Duration::from_secs(1),
        // What hosts and the allocator take comes on top of the setting.
        memory_bytes: (mib << 20) as usize * 5 / 8,
        ..Config::default()
    }
}

fn bytes_of(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(dir)? {
        sum += entry?.metadata()?.len();
    }
    Ok(sum)
}

fn scale(urls: u64, hosts: u64, mib: u64, rounds: u64) -> Result<()> {
    let dir = directory()?;
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let work = Workload::new(urls, hosts);
    let peak = Peak::start();
    let mut frontier = Frontier::open(&fs, &dir, config(mib), UnixMillis(0), "bench")?;
    println!("{urls} URLs, {hosts} hosts by Zipf's law, {mib} MiB, {rounds} rounds of 50 offers, a lease and a settle");
    let (begun, cpu) = (Instant::now(), process_seconds());
    let mut making = 0.0;
    let mut n = 0;
    while n < work.urls {
        let made = thread_seconds();
        let batch: Vec<Candidate> = (n..(n + 1000).min(urls)).map(|n| work.candidate(n)).collect();
        making += thread_seconds() - made;
        n += batch.len() as u64;
        frontier.offer(UnixMillis(0), &batch)?;
        frontier.commit()?;
    }
    frontier.sync()?;
    let spent = process_seconds() - cpu - making;
    let stats = frontier.store_stats();
    println!(
        "  load: {:.0} s, {spent:.0} CPU s ({:.0} new URLs a CPU second), RssAnon at most {} MiB, {} flushes {} MiB, {} merges {} MiB",
        begun.elapsed().as_secs_f64(),
        urls as f64 / spent,
        peak.take(),
        stats.flushes,
        stats.flushed_bytes >> 20,
        stats.merges,
        stats.merged_bytes >> 20,
    );
    let (mut offers, mut pairs, mut making, mut leased) = (0.0, 0.0, 0.0, 0u64);
    let (begun, cpu) = (Instant::now(), process_seconds());
    let main = thread_seconds();
    let (mut fresh, mut works, mut now) = (urls, Vec::new(), 10_000);
    let mut tickets = Vec::new();
    for round in 0..rounds {
        let at = thread_seconds();
        let known = (0..45).map(|n| mix(round * 64 + n) % urls);
        let batch: Vec<Candidate> = known.chain(fresh..fresh + 5).map(|n| work.candidate(n)).collect();
        fresh += 5;
        making += thread_seconds() - at;
        let at = thread_seconds();
        frontier.offer(UnixMillis(now), &batch)?;
        offers += thread_seconds() - at;
        let at = thread_seconds();
        // While files are read for hosts that ran dry there may be nothing: time goes on, CPU time does not.
        while let Next::WaitUntil(at) = frontier.lease(UnixMillis(now), 1, &mut works)?
            && works.is_empty()
        {
            now = now.max(at.0);
            std::thread::sleep(Duration::from_micros(200));
        }
        if let Some(Work::Fetch(lease)) = works.pop()
            && let LeaseId::Page(id) = lease.id
        {
            leased += 1;
            frontier.settle(UnixMillis(now), &[Outcome { id, answer: Answer::status(200), note: None }])?;
        }
        pairs += thread_seconds() - at;
        if round % 64 == 63 {
            tickets.extend(frontier.commit()?);
        }
        if let Some(ticket) = tickets.pop().filter(|_| round % 1024 == 1023) {
            ticket.wait()?;
        }
        now += 1;
    }
    frontier.sync()?;
    let main = thread_seconds() - main;
    let background = (process_seconds() - cpu - main).max(0.0);
    // What both lines ask for together: 150,000 offers and 20,000 pairs a CPU second.
    let asked = 50.0 / 150_000.0 + 1.0 / 20_000.0;
    let round = (offers + pairs + background) / rounds as f64;
    println!(
        "  rounds: {:.0} s; {leased} leases; offers {offers:.1} CPU s, pairs {pairs:.1}, flush, merge and refill aside {background:.1}, making URLs {making:.1}",
        begun.elapsed().as_secs_f64()
    );
    println!(
        "  a round {:.0} us of CPU, where 150,000 offers and 20,000 pairs a CPU second allow {:.0} us: {:.1}x; RssAnon at most {} MiB",
        round * 1e6,
        asked * 1e6,
        asked / round,
        peak.take(),
    );
    println!(
        "  {:.0} offers a CPU second if all work aside were for them, {:.0} if none",
        (rounds * 50) as f64 / (offers + background),
        (rounds * 50) as f64 / offers
    );
    let (begun, cpu, mut leased) = (Instant::now(), process_seconds(), 0u64);
    for round in 0..rounds {
        while let Next::WaitUntil(at) = frontier.lease(UnixMillis(now), 1, &mut works)?
            && works.is_empty()
        {
            now = now.max(at.0);
            std::thread::sleep(Duration::from_micros(200));
        }
        if let Some(Work::Fetch(lease)) = works.pop()
            && let LeaseId::Page(id) = lease.id
        {
            leased += 1;
            frontier.settle(UnixMillis(now), &[Outcome { id, answer: Answer::status(200), note: None }])?;
        }
        if round % 64 == 63 {
            frontier.commit()?;
        }
        now += 1;
    }
    frontier.sync()?;
    let spent = process_seconds() - cpu;
    println!(
        "  pairs alone: {:.0} s; {leased} pairs in {spent:.1} CPU s, all work aside counted: {:.0} a CPU second",
        begun.elapsed().as_secs_f64(),
        leased as f64 / spent
    );
    let stats = frontier.store_stats();
    println!(
        "  in all {} flushes {} MiB, {} merges {} MiB, log {} MiB",
        stats.flushes,
        stats.flushed_bytes >> 20,
        stats.merges,
        stats.merged_bytes >> 20,
        stats.logged_bytes >> 20,
    );
    let (at, cpu, (read, written)) = (Instant::now(), process_seconds(), io_bytes());
    frontier.flush()?;
    frontier.close()?;
    let (read, written) = (io_bytes().0 - read, io_bytes().1 - written);
    println!(
        "  last flush, and a merge if one was under way: {:.1} s, {:.1} CPU s, {} MiB read, {} MiB written; {} MiB on disk; RssAnon at most {} MiB",
        at.elapsed().as_secs_f64(),
        process_seconds() - cpu,
        read >> 20,
        written >> 20,
        bytes_of(&dir)? >> 20,
        peak.take(),
    );
    let (at, cpu, (read, _)) = (Instant::now(), process_seconds(), io_bytes());
    let mut frontier = Frontier::open(&fs, &dir, config(mib), UnixMillis(now), "bench")?;
    println!(
        "  resume: {:.1} s, {:.1} CPU s, {} MiB read; {} URLs known, {} pending; RssAnon at most {} MiB",
        at.elapsed().as_secs_f64(),
        process_seconds() - cpu,
        (io_bytes().0 - read) >> 20,
        frontier.known(),
        frontier.pending(),
        peak.take(),
    );
    let (at, cpu, (read, _)) = (Instant::now(), process_seconds(), io_bytes());
    let (_, written) = frontier.pack(&dir.join("pack.meguri"), false, &mut |_| ())?;
    println!(
        "  pack: {:.1} s, {:.1} CPU s, {} MiB read, {} MiB written; RssAnon at most {} MiB",
        at.elapsed().as_secs_f64(),
        process_seconds() - cpu,
        (io_bytes().0 - read) >> 20,
        written.bytes >> 20,
        peak.take(),
    );
    drop(frontier);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Bytes that read and write calls moved, whether to disk or cache.
fn io_bytes() -> (u64, u64) {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name: &str| io.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok()).unwrap_or(0);
    (field("rchar:"), field("wchar:"))
}
