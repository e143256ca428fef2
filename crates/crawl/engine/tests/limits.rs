//! Little of everything: few descriptors, a full disk. The crawl keeps within them, or ends and goes on later.

mod common;

use common::{check, clock, config, ids};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use trawl_engine::{Config, Start, Stop, run, run_in};
use trawl_io::Fs;
use trawl_io::fault::FaultFs;
use trawl_testweb::{Config as WebConfig, Running, TestWeb};

const OUT: &str = "TRAWL_TEST_OUT";
const ADDR: &str = "TRAWL_TEST_ADDR";
const SEEDS: &str = "TRAWL_TEST_SEEDS";
const DEPTH: u32 = 3;

fn web() -> Running {
    let mut web = WebConfig { domains: 120, pages: 900, seeds: 20, ..WebConfig::default() };
    (web.min_crawl_delay_ms, web.max_crawl_delay_ms, web.latency_ms) = (5, 10, 5);
    TestWeb::start(web).unwrap()
}

fn crawl_of(out: &Path, addr: &str, seeds: &str) -> Config {
    let seeds = seeds.split(' ').map(str::to_owned).collect();
    let mut config = config(out, addr.parse().unwrap(), seeds, DEPTH);
    // Nearly every body goes to a file.
    config.fetch.limits.memory_body = 2 << 10;
    config.roll_bytes = 1 << 20;
    config
}

/// The crawl itself, in a process with few descriptors; does nothing unless it is the child.
#[test]
fn child() {
    let (Ok(out), Ok(addr), Ok(seeds)) = (std::env::var(OUT), std::env::var(ADDR), std::env::var(SEEDS)) else {
        return;
    };
    let mut troubles = Vec::new();
    let report = run(crawl_of(Path::new(&out), &addr, &seeds), clock(), ids(), &Stop::new(), &mut |p| {
        troubles.extend(p.trouble.clone());
    });
    let report = report.unwrap();
    assert!(report.complete && report.counts.given_up == 0, "{report:?}");
    assert!(troubles.is_empty(), "it keeps within its limit: {troubles:?}");
}

#[test]
fn few_descriptors_lose_no_page() {
    let web = web();
    let expected = web.world().expected_pages(DEPTH);
    assert!(expected.len() > 300, "{}", expected.len());
    for limit in [64, 256, 1024] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let status = Command::new("sh")
            .args(["-c", "ulimit -n \"$1\" && shift && exec \"$@\"", "sh", &limit.to_string()])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--quiet"])
            .env(OUT, &out)
            .env(ADDR, web.addr().to_string())
            .env(SEEDS, web.world().seeds().join(" "))
            .status()
            .unwrap();
        assert!(status.success(), "{limit}: {status}");
        let pages = check(&out).into_iter().filter(|r| r.status == 200 && r.robots.is_some()).map(|r| r.url);
        assert_eq!(pages.collect::<BTreeSet<_>>(), expected, "{limit}");
    }
}

#[test]
fn too_few_descriptors_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = config(&dir.path().join("out"), "127.0.0.1:9".parse().unwrap(), vec![], 0);
    config.descriptors = Some(20);
    let error = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("ulimit -n"), "{error}");
}

#[test]
fn a_full_disk_ends_the_run_and_a_resume_goes_on() {
    let web = web();
    let expected = web.world().expected_pages(DEPTH);
    let disk = FaultFs::new();
    let fs: Arc<dyn Fs> = disk.shared();
    let (addr, seeds) = (web.addr().to_string(), web.world().seeds().join(" "));
    let crawl = || {
        let mut config = crawl_of(Path::new("/out"), &addr, &seeds);
        config.start = Start::Resume;
        config.fetch.limits.memory_body = 1 << 20;
        run_in(fs.clone(), config, clock(), ids(), &Stop::new(), &mut |_| {})
    };
    disk.set_capacity(1 << 20);
    let error = crawl().unwrap_err().to_string();
    assert!(error.contains("/out"), "{error}");
    disk.set_capacity(3 << 20);
    crawl().unwrap_err();
    disk.set_capacity(u64::MAX);
    let report = crawl().unwrap();
    assert!(report.complete && report.legs.len() >= 2 && report.urls.add_up(), "{report:?}");
    let mut files = disk.files();
    // The digests of files that were cut and added to are those of their bytes.
    for file in &report.files {
        let bytes = &files[&Path::new("/out").join(&file.name)];
        assert_eq!(file.sha256, data_encoding::HEXLOWER.encode(&Sha256::digest(bytes)), "{}", file.name);
    }
    let index = files.remove(Path::new("/out/captures.parquet")).unwrap();
    let rows = trawl_captures::CapturesReader::over(Arc::new(bytes::Bytes::from(index))).unwrap().map(Result::unwrap);
    let mut pages: Vec<_> = rows.filter(|r| r.status == 200 && r.robots.is_some()).map(|r| r.url).collect();
    pages.sort();
    assert_eq!(pages, expected.into_iter().collect::<Vec<_>>(), "each once");
}

#[test]
fn the_end_of_a_crawl_reads_no_archive_again() {
    let web = web();
    let disk = FaultFs::new();
    let mut config = crawl_of(Path::new("/out"), &web.addr().to_string(), &web.world().seeds().join(" "));
    // Bodies on disk are read back, while the crawl runs.
    config.fetch.limits.memory_body = 16 << 20;
    let report = run_in(disk.shared(), config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    let archived: u64 = report.files.iter().filter(|f| f.name.contains(".warc")).map(|f| f.bytes).sum();
    let read = disk.counts().bytes_read;
    // Spools of rows and finished row groups are read once each; with the archive it would be more than the archive has.
    assert!(report.complete && archived > 1 << 20 && read < archived, "{read} bytes read, {archived} archived");
}
