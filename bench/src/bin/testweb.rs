//! How many pages a second the synthetic web serves from one core, and what a large web costs to compute and judge.
//!
//! Run: cargo run --release --features testweb --bin testweb [SECONDS]
//!
//! The server has one thread; the client has another, with 64 connections, each asking for the next page when the last
//! has come. Because both share the machine with whatever else runs, the server's own CPU time is measured too: pages
//! per second of it is what one core serves when nothing is in its way.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use trawl_testweb::{Character, Config, CrawlSettings, Profile, TestWeb, World, judge};

const CONNECTIONS: usize = 64;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(5);
    let small = |max| Config {
        domains: 2_000,
        pages: 100_000,
        min_page_bytes: 1_000,
        max_page_bytes: max,
        ..Config::default()
    };
    println!("{:<34}{:>12}{:>14}{:>16}{:>12}", "one server thread", "pages/s", "MB/s", "pages/cpu-s", "bytes/page");
    serve("small pages, 1-4 KB", small(4_000), false, seconds);
    serve("small pages, 1-4 KB, logged", small(4_000), true, seconds);
    serve("demo sizes, 1-60 KB", small(60_000), false, seconds);
    let mut gzip = small(60_000);
    gzip.shares.set(Character::Gzip, 1000);
    serve("demo sizes, gzip", gzip, false, seconds);

    let begun = Instant::now();
    let config =
        Config { domains: 50_000, pages: 5_000_000, max_pages_per_host: 50_000, ..Config::profile(Profile::Standard) };
    let world = World::new(&config).expect("a valid web");
    println!(
        "\n50,000 domains, {} hosts, {} pages: computed in {:.2?}",
        world.hosts().len(),
        world.page_count(),
        begun.elapsed()
    );
    let begun = Instant::now();
    let settings = CrawlSettings::default();
    let expected = world.expect(&settings).wanted().count();
    println!("expectation of all {expected} URLs: {:.2?}, peak memory {} MB", begun.elapsed(), peak_mb());
}

/// Serves a web for some seconds and prints one row.
fn serve(name: &str, config: Config, logged: bool, seconds: u64) {
    let dir = std::env::temp_dir().join(format!("testweb-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for the log");
    let log = dir.join("requests.log");
    let accept = if config.shares.get(Character::Gzip) > 0 { "Accept-Encoding: gzip\r\n" } else { "" };
    let web = TestWeb::start(Config { threads: 1, log: logged.then(|| log.clone()), ..config }).expect("a web");
    let world = web.world();
    let requests: Vec<String> = world
        .host_ids()
        .flat_map(|id| world.pages(id))
        .step_by(7)
        .take(5_000)
        .map(|page| {
            let url = world.url(page);
            let rest = url.strip_prefix("http://").expect("plain http");
            let (host, target) = rest.split_at(rest.find('/').expect("a path"));
            format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: trawl/bench\r\n{accept}\r\n")
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (before, begun) = (server_cpu_s(), Instant::now());
    let (pages, bytes) = runtime.block_on(load(web.addr(), &requests, Duration::from_secs(seconds)));
    let (cpu, elapsed) = (server_cpu_s() - before, begun.elapsed().as_secs_f64());
    println!(
        "{name:<34}{:>12.0}{:>14.0}{:>16.0}{:>12}",
        pages as f64 / elapsed,
        bytes as f64 / elapsed / 1e6,
        pages as f64 / cpu,
        bytes / pages.max(1)
    );
    let world = World::new(web.world().config()).expect("a valid web");
    web.stop().expect("an orderly stop");
    if logged {
        let begun = Instant::now();
        let settings = CrawlSettings { complete: false, ..CrawlSettings::default() };
        let verdict = judge(&log, &world, &settings).expect("a log that can be read");
        let rate = verdict.requests as f64 / begun.elapsed().as_secs_f64();
        println!("  its log, {} requests, judged at {rate:.0} requests/s", verdict.requests);
    }
    std::fs::remove_dir_all(&dir).expect("the directory can go");
}

async fn load(addr: std::net::SocketAddr, requests: &[String], time: Duration) -> (u64, u64) {
    let until = Instant::now() + time;
    let local = tokio::task::LocalSet::new();
    let requests: std::rc::Rc<[String]> = requests.into();
    local
        .run_until(async {
            let one = |n: usize| tokio::task::spawn_local(client(addr, std::rc::Rc::clone(&requests), n, until));
            let clients: Vec<_> = (0..CONNECTIONS).map(one).collect();
            let mut sum = (0, 0);
            for client in clients {
                let (pages, bytes) = client.await.expect("a client that ends");
                sum = (sum.0 + pages, sum.1 + bytes);
            }
            sum
        })
        .await
}

/// One connection: asks, reads to the end of the body, asks again.
async fn client(
    addr: std::net::SocketAddr,
    requests: std::rc::Rc<[String]>,
    first: usize,
    until: Instant,
) -> (u64, u64) {
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    let mut buffer = vec![0; 128 << 10];
    let (mut pages, mut bytes) = (0, 0);
    for request in requests.iter().cycle().skip(first * 37) {
        if Instant::now() >= until {
            break;
        }
        stream.write_all(request.as_bytes()).await.expect("a request sent");
        let (mut have, mut whole) = (0, usize::MAX);
        while have < whole {
            have += stream.read(&mut buffer[have..]).await.expect("an answer");
            if whole == usize::MAX {
                whole = length(&buffer[..have]).unwrap_or(usize::MAX);
            }
        }
        (pages, bytes) = (pages + 1, bytes + whole as u64);
    }
    (pages, bytes)
}

/// Length of head and body, once the head is there.
fn length(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&answer[..end]).expect("an ASCII head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let value = head.split("Content-Length: ").nth(1)?.split('\r').next()?;
    Some(end + value.parse::<usize>().expect("a length"))
}

/// CPU seconds of the server's threads; the main thread, which is the client, has the same name.
fn server_cpu_s() -> f64 {
    let mut ticks = 0;
    let client = std::process::id().to_string();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for task in tasks.filter(|task| task.file_name() != client.as_str()) {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        if let Some((name, rest)) = stat.rsplit_once(')')
            && name.contains("testweb")
        {
            let times = rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok());
            ticks += times.sum::<u64>();
        }
    }
    ticks as f64 / 100.0
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
