//! What the tests share: a synthetic web, a crawl of it, and looks into what came of it.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trawl_captures::{CaptureRow, CapturesReader};
use trawl_engine::{Config, Scope, SeedInput};
use trawl_model::{CaptureSource, Clock, Entry, IdSource, UnixMillis};
use trawl_seqdb::{Access, Findings, FsPaths, Pages, Settings};
use trawl_warc::{Limits, WarcSource};

/// The time of day, going on evenly from now: who judges politeness by a steady clock must not see the other one set.
pub fn clock() -> Clock {
    let (wall, begun) = (SystemTime::now().duration_since(UNIX_EPOCH).unwrap(), Instant::now());
    Clock::new(move || UnixMillis(i64::try_from((wall + begun.elapsed()).as_millis()).unwrap()))
}

/// Ids that differ within a process and between processes.
pub fn ids() -> Arc<dyn IdSource> {
    let next = AtomicU64::new(0);
    let pid = u64::from(std::process::id());
    let begun = u64::try_from(clock().now().0).unwrap();
    Arc::new(move || {
        let n = next.fetch_add(1, Ordering::Relaxed);
        ((u128::from(begun << 20 | pid) << 64) | u128::from(n)).to_be_bytes()
    })
}

/// A crawl of the synthetic web at `addr`.
pub fn config(out: &Path, addr: SocketAddr, seeds: Vec<String>, depth: u32) -> Config {
    let mut config = Config::new(out, seeds.into_iter().map(SeedInput::Url).collect());
    config.fetch.user_agent = "trawl/0.1 (+https://trawl.example/)".into();
    config.fetch.connect_to = vec![format!("::{}:{}", addr.ip(), addr.port()).parse().unwrap()];
    config.frontier.max_depth = depth;
    config.scope = Scope::Any;
    config.frontier.delay = Duration::ZERO;
    config.frontier.backoff = Duration::from_millis(50);
    config.progress_interval = Duration::from_millis(50);
    config.commit_interval = Duration::from_millis(20);
    config.threads = 2;
    config
}

/// All rows of the index, in order.
pub fn rows(out: &Path) -> Vec<CaptureRow> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(out)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect();
    files.sort();
    files.iter().flat_map(|path| CapturesReader::open(path).unwrap().map(Result::unwrap)).collect()
}

/// Captures in the archive: where each lies, and its URL. Failed fetches are not placed in the index.
pub fn archived(out: &Path) -> BTreeMap<(String, u64), String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(!name.ends_with(".open"), "{name} was left open");
        let mut take = |mut source: WarcSource, start: u64| {
            while let Some((entry, place)) = source.next_entry().unwrap() {
                if let Entry::Capture(capture) = entry {
                    assert!(found.insert((name.clone(), start + place.offset), capture.url).is_none());
                }
            }
        };
        if name.ends_with(".warc.gz") {
            take(WarcSource::open(&path, Limits::default(), false).unwrap(), 0);
        } else if name.ends_with(".data") {
            let pages = container(&path);
            let mut scan = pages.scan();
            while let Some(page) = scan.next_page().unwrap() {
                let event = bytes::Bytes::copy_from_slice(page.event.unwrap());
                take(WarcSource::over(Arc::new(event), Limits::default(), false), page.place.offset);
            }
        }
    }
    found
}

/// The container at `path`, checked and opened.
pub fn container(path: &Path) -> Pages {
    let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test");
    let paths = FsPaths::of(path).unwrap();
    let mut findings = Findings::new();
    trawl_seqdb::pages::verify(&paths, &settings, &mut findings, &trawl_seqdb::silent).unwrap();
    assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
    Pages::open(&paths, Access::Read, &settings).unwrap()
}

/// Checks that archive and index say the same, each capture once, and returns the rows.
pub fn check(out: &Path) -> Vec<CaptureRow> {
    let (rows, mut archived) = (rows(out), archived(out));
    let mut ids = std::collections::HashSet::new();
    for row in rows.iter().filter(|row| !row.is_failure()) {
        let at = (row.warc_file.clone(), u64::try_from(row.warc_offset).unwrap());
        assert_eq!(archived.remove(&at).as_ref(), Some(&row.url), "{at:?}");
        assert!(ids.insert(row.record_id.clone().unwrap()), "{} twice", row.url);
    }
    // What is left in the archive are the failures: as many as the index has.
    let failures = rows.iter().filter(|row| row.is_failure()).count();
    assert_eq!(archived.len(), failures, "{archived:?}");
    rows
}

/// A request in the log of the synthetic web.
#[derive(Debug, Clone)]
pub struct Request {
    pub start: u64,
    pub end: u64,
    pub host: String,
    pub target: String,
    pub status: u16,
}

pub fn requests(log: &Path) -> Vec<Request> {
    let text = std::fs::read_to_string(log).unwrap();
    let lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>()).filter(|f| f[0] == "R");
    lines
        .map(|f| Request {
            start: f[1].parse().unwrap(),
            end: f[1].parse::<u64>().unwrap() + f[2].parse::<u64>().unwrap(),
            host: f[6].to_owned(),
            target: f[8].to_owned(),
            status: f[9].parse().unwrap(),
        })
        .collect()
}

/// How many requests of one host overlapped, at most.
pub fn most_at_once(requests: &[Request]) -> usize {
    let mut by_host: BTreeMap<&str, Vec<(u64, i32)>> = BTreeMap::new();
    for r in requests {
        // Ends sort before starts of the same microsecond.
        by_host.entry(&r.host).or_default().extend([(2 * r.start + 1, 1), (2 * r.end, -1)]);
    }
    let most = by_host.into_values().map(|mut edges| {
        edges.sort_unstable();
        let mut open = 0;
        edges
            .into_iter()
            .map(|(_, d)| {
                open += d;
                open
            })
            .max()
            .unwrap_or(0)
    });
    usize::try_from(most.max().unwrap_or(0)).unwrap()
}

/// Serves what `answer` makes of a path and the whole request, one request a connection.
pub fn serve(addr: SocketAddr, answer: impl Fn(&str, &str) -> String + Send + Sync + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind(addr).unwrap();
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let (mut request, mut byte) = (Vec::new(), [0]);
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    request.push(byte[0]);
                }
                let request = String::from_utf8(request).unwrap();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let _ = stream.write_all(answer(path, &request).as_bytes());
            });
        }
    });
    addr
}

pub fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

pub fn page(fields: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
    )
}
