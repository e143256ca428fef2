//! A frontier that is far larger than its memory setting, on real files: what the process takes stays within the setting, 400
//! bytes a host, and what an empty program and the allocator take.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "the figure is of interest when it is within the setting, too")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use trawl_frontier::*;
use trawl_io::{Fs, RealFs};
use trawl_model::UnixMillis;
use trawl_url::WebUrl;

const MIB: u64 = 1 << 20;
/// The program, its public suffix list, zstd's tables, and what the allocator keeps of what it got back: up to 28 MiB on a quiet
/// machine, up to 36 where threads wait for each other (three runs at a load of 6).
const APART: u64 = 40 * MIB;

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The n-th URL, on a host by Zipf's law: most hosts have few.
fn candidate(n: u64, hosts: f64) -> Candidate {
    let u = (mix(n) >> 11) as f64 / (1u64 << 53) as f64;
    let host = hosts.powf(u) as u64;
    let url = format!("http://host-{host}.example.org/section-{}/page-{n:x}.html", mix(n) % 40);
    Candidate::seed(Identity::Key, WebUrl::parse(&url).unwrap(), None)
}

/// Memory of this process that no file backs, in bytes.
fn anonymous() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

fn run(dir: &Path, urls: u64, hosts: u64, setting: u64) -> u64 {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let config = Config {
        robots: RobotsPolicy::Ignore,
        per_ip: None,
        delay: Duration::from_secs(1),
        memory_bytes: setting as usize,
        ..Config::default()
    };
    let mut f = Frontier::open(&fs, dir, config, UnixMillis(0), "test").unwrap();
    let mut most = 0;
    for n in (0..urls).step_by(1000) {
        let batch: Vec<_> = (n..n + 1000).map(|n| candidate(n, hosts as f64)).collect();
        f.offer(UnixMillis(0), &batch).unwrap();
        f.commit().unwrap();
        most = most.max(anonymous());
    }
    let (mut now, mut work) = (10_000, Vec::new());
    for round in 0..urls / 30 {
        let known = (0..9).map(|n| mix(round * 16 + n) % urls);
        let batch: Vec<_> = known.chain([urls + round]).map(|n| candidate(n, hosts as f64)).collect();
        f.offer(UnixMillis(now), &batch).unwrap();
        while let Next::WaitUntil(at) = f.lease(UnixMillis(now), 1, &mut work).unwrap()
            && work.is_empty()
        {
            now = now.max(at.0);
            std::thread::sleep(Duration::from_micros(200));
        }
        let Some(Work::Fetch(lease)) = work.pop() else { panic!("nothing to do in round {round}") };
        let LeaseId::Page(id) = lease.id else { panic!("a page") };
        f.settle(UnixMillis(now), &[Outcome { id, answer: Answer::status(200), note: None }]).unwrap();
        if round % 64 == 63 {
            f.commit().unwrap();
            most = most.max(anonymous());
        }
        now += 1;
    }
    f.compact().unwrap();
    most = most.max(anonymous());
    f.close().unwrap();
    most
}

#[test]
fn all_that_is_held_is_within_the_setting() {
    // Measured before the setting covered all of it: 98 MiB, of 70.
    let (urls, hosts, setting) = (600_000, 20_000, 32 * MIB);
    let dir = tempfile::tempdir().unwrap();
    let allowed = anonymous() + setting + hosts * 400 + APART;
    let most = run(dir.path(), urls, hosts, setting);
    println!("{urls} URLs of {hosts} hosts: {} of {} KiB", most >> 10, allowed >> 10);
    assert!(most <= allowed, "{} MiB where {} are allowed", most / MIB, allowed / MIB);
}
