//! Clocks, memory and percentiles.
#![allow(dead_code)] // each benchmark uses a part

use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::time::{Duration, Instant};

/// Seconds of processor time of all threads of this process: what a busy machine does not change much.
pub fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// What a piece of work cost.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    pub wall: f64,
    pub cpu: f64,
}

/// Runs `work` and tells what it cost.
pub fn spent<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let value = work();
    (value, Spent { wall: began.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu })
}

/// A field of `/proc/self/status` in MiB: `VmRSS`, `VmHWM`, `RssAnon`, `RssFile`.
pub fn memory_mib(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

/// Forgets the peak so far, so that `VmHWM` is that of what follows.
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Bytes of all files below a directory.
pub fn bytes_below(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(meta) if meta.is_dir() => bytes_below(&entry.path()),
            Ok(meta) => meta.len(),
            Err(_) => 0,
        })
        .sum()
}

/// Percentiles of many calls, in microseconds.
#[derive(Debug, Clone, Copy)]
pub struct Percentiles {
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    /// Processor time a call, on average.
    pub cpu: f64,
    /// What the calls returned, added up.
    pub found: u64,
}

impl Percentiles {
    /// The round that is in the middle by its p50.
    pub fn median(mut rounds: Vec<Self>) -> Self {
        rounds.sort_by(|a, b| a.p50.total_cmp(&b.p50));
        rounds[rounds.len() / 2]
    }
}

/// Calls `ask` for every item.
pub fn each<T>(items: &[T], mut ask: impl FnMut(&T) -> u64) -> Percentiles {
    let mut times: Vec<Duration> = Vec::with_capacity(items.len());
    let mut found = 0;
    let cpu = cpu_seconds();
    for item in items {
        let began = Instant::now();
        found += ask(item);
        times.push(began.elapsed());
    }
    let cpu = (cpu_seconds() - cpu) * 1e6 / items.len().max(1) as f64;
    times.sort_unstable();
    let at = |share: f64| {
        let index = ((times.len().max(1) - 1) as f64 * share) as usize;
        times.get(index).map_or(0.0, |t| t.as_secs_f64() * 1e6)
    };
    Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99), cpu, found }
}
