//! What a crawl costs beside a loop that does nothing but fetch, digest, compress and write.
//!
//! Run: cargo run --release --features crawl --bin crawl [PAGES] [BYTES]
//!
//! ```text
//! server    one process, two threads: pages of BYTES bytes of HTML-like text, kept ready in memory, from 127.0.0.0/8
//! loop      one process: N tasks, each fetches the next URL with trawl-fetch; then SHA-1 twice and SHA-256, gzip level 1, append
//! trawl     one process: `trawl crawl` of the same URLs, no delay, robots off; the binary is named by TRAWL (a release build)
//! ```
//! Wall time and CPU are those of the loop's and of the crawl's process, at 32, 256 and 1024 workers, in turn, so that whatever else the
//! machine does meets both. `CRAWL_ARGS` is given to the crawl beside what the benchmark gives it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use trawl_fetch::{Ask, FetchConfig, Fetcher};
use trawl_io::Hasher;
use trawl_model::{Body, Outcome, UnixMillis};
use trawl_url::WebUrl;

const HOSTS: usize = 500;
const WORKERS: [usize; 3] = [32, 256, 1024];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text: Vec<&str> = args.iter().map(String::as_str).collect();
    match text.as_slice() {
        ["serve", bytes] => serve(bytes.parse().expect("bytes")),
        ["loop", list, port, workers, out] => reference(list, port, workers.parse().expect("workers"), Path::new(out)),
        _ => compare(&args),
    }
}

fn compare(args: &[String]) {
    let number = |n: usize, default: usize| args.get(n).map_or(default, |text| text.parse().expect("a number"));
    let (pages, bytes) = (number(0, 20_000), number(1, 84_000));
    let me = std::env::current_exe().expect("this program");
    let dir = std::env::temp_dir().join(format!("crawl-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let list = dir.join("urls.txt");
    let urls: String = (0..pages).map(|n| format!("http://h{}.test/{n}.html\n", n % HOSTS)).collect();
    std::fs::write(&list, urls).expect("the list");
    let mut server =
        Command::new(&me).args(["serve", &bytes.to_string()]).stdout(Stdio::piped()).spawn().expect("server");
    let mut port = String::new();
    BufReader::new(server.stdout.as_mut().expect("a pipe")).read_line(&mut port).expect("a port");
    let port = port.trim().to_owned();
    println!("{pages} pages of {bytes} bytes, {HOSTS} hosts; pages/s, CPU s per 1000 pages, peak RSS");
    let trawl = std::env::var("TRAWL").ok();
    for workers in WORKERS {
        let out = dir.join("loop");
        let mut command = Command::new(&me);
        command.arg("loop").arg(&list).args([&port, &workers.to_string()]).arg(&out);
        let base = measure(command, pages, &format!("loop   {workers:>5} workers"), None);
        let _ = std::fs::remove_file(&out);
        let Some(trawl) = &trawl else { continue };
        let out = dir.join("crawl");
        let mut command = Command::new(trawl);
        command.args(["crawl", "-q", "--delay", "0s", "--ignore-robots", "--per-host", "8", "--per-ip", "0"]);
        command.arg("--connect-to").arg(format!("::127.0.0.1:{port}")).arg("--workers").arg(workers.to_string());
        command.args(std::env::var("CRAWL_ARGS").unwrap_or_default().split_whitespace());
        command.arg("--out").arg(&out).arg(&list);
        measure(command, pages, &format!("trawl  {workers:>5} workers"), Some(base));
        let _ = std::fs::remove_dir_all(&out);
    }
    let _ = server.kill();
    let _ = server.wait();
    let _ = std::fs::remove_dir_all(&dir);
}

/// Runs a process to its end and prints what it cost. Its CPU time is read while it is a zombie: `/proc` still has it then.
fn measure(mut command: Command, pages: usize, name: &str, base: Option<(f64, f64)>) -> (f64, f64) {
    let begun = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("a process");
    let (stat, status) = (format!("/proc/{}/stat", child.id()), format!("/proc/{}/status", child.id()));
    let (mut peak_kib, mut cpu);
    peak_kib = 0;
    loop {
        if let Ok(text) = std::fs::read_to_string(&status) {
            let peak =
                text.lines().find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
            peak_kib = peak_kib.max(peak.unwrap_or(0u64));
        }
        let text = std::fs::read_to_string(&stat).expect("a child is there until it is waited for");
        let fields: Vec<&str> = text.rsplit(')').next().expect("a state").split_whitespace().collect();
        let ticks = |n: usize| fields[n].parse::<f64>().expect("ticks");
        cpu = (ticks(11) + ticks(12)) / 100.0;
        if fields[0] == "Z" {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let wall = begun.elapsed().as_secs_f64();
    let ended = child.wait().expect("its end");
    let (rate, per_1000) = (pages as f64 / wall, cpu / pages as f64 * 1000.0);
    let beside = base.map_or_else(String::new, |(rate0, cpu0)| {
        format!("   {:>5.0} % of its rate, {:.2}x of its CPU", rate / rate0 * 100.0, per_1000 / cpu0)
    });
    let ok = if ended.success() { "" } else { "   FAILED" };
    println!("{name}  {rate:>8.0} pages/s  {per_1000:>6.3} s  {:>5} MiB{beside}{ok}", peak_kib / 1024);
    (rate, per_1000)
}

/// The loop: no frontier, no robots, no journal; everything a page needs all the same.
fn reference(list: &str, port: &str, workers: usize, out: &Path) {
    let urls: Vec<WebUrl> = std::fs::read_to_string(list)
        .expect("the list")
        .lines()
        .map(|line| WebUrl::parse(line).expect("a URL"))
        .collect();
    let config = FetchConfig {
        user_agent: "trawl-bench/1".into(),
        connect_to: vec![format!("::127.0.0.1:{port}").parse().expect("a rule")],
        pool: trawl_fetch::PoolLimits { per_origin: 8, total: 4096, ..Default::default() },
        ..FetchConfig::default()
    };
    let fetcher = Fetcher::new(config, Arc::new(trawl_io::RealFs)).expect("a client");
    let file = Arc::new(Mutex::new(std::fs::File::create(out).expect("a file")));
    let (urls, next) = (Arc::new(urls), Arc::new(AtomicUsize::new(0)));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..workers {
            let (fetcher, urls, next, file) = (fetcher.clone(), urls.clone(), next.clone(), file.clone());
            tasks.spawn(async move {
                while let Some(url) = urls.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let capture = fetcher.fetch(Ask::new(url.clone(), UnixMillis(0))).await;
                    let Outcome::Response { message, .. } = capture.outcome else { panic!("{:?}", capture.outcome) };
                    let Body::Memory(body) = message.body else { panic!("a body in a file") };
                    let file = file.clone();
                    let work = move || archive(&message.head, &body, &file);
                    tokio::task::spawn_blocking(work).await.expect("a page");
                }
            });
        }
        while tasks.join_next().await.is_some() {}
    });
    file.lock().expect("the file").sync_data().expect("a disk");
}

/// Not `CompressionLvl::fastest()`: that is level 0, which stores.
fn level_1() -> libdeflater::CompressionLvl {
    libdeflater::CompressionLvl::new(1).expect("a level of libdeflate")
}

fn archive(head: &[u8], body: &[u8], file: &Mutex<std::fs::File>) {
    let digest = |mut hasher: Hasher, parts: &[&[u8]]| {
        parts.iter().for_each(|part| hasher.update(part));
        hasher.finish()
    };
    let payload = digest(Hasher::sha1(), &[body]);
    let block = digest(Hasher::sha1(), &[head, body]);
    let decoded = digest(Hasher::sha256(), &[body]);
    let mut plain = Vec::with_capacity(head.len() + body.len() + 600);
    plain.resize(500, b'h');
    plain.extend_from_slice(payload.as_bytes());
    plain.extend_from_slice(block.as_bytes());
    plain.extend_from_slice(decoded.as_bytes());
    plain.extend_from_slice(head);
    plain.extend_from_slice(body);
    thread_local! {
        static GZIP: std::cell::RefCell<libdeflater::Compressor> =
            libdeflater::Compressor::new(level_1()).into();
    }
    let packed = GZIP.with_borrow_mut(|gzip| {
        let mut packed = vec![0; gzip.gzip_compress_bound(plain.len())];
        let n = gzip.gzip_compress(&plain, &mut packed).expect("room");
        packed.truncate(n);
        packed
    });
    file.lock().expect("the file").write_all(&packed).expect("a disk");
}

/// Pages that compress as HTML does, to a quarter or so: words of Zipf's law between tags.
fn page(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut text = b"<!doctype html><html><head><title>page</title></head><body>".to_vec();
    while text.len() < bytes {
        let rank = (1.0 / ((random() % 1_000_000) as f64 / 1e6 + 0.0005)) as u64;
        match random() % 12 {
            0 => text.extend_from_slice(format!("</p><p class=\"c{}\">", random() % 30).as_bytes()),
            1 => text.extend_from_slice(format!("<a href=\"/{}.html\">", random() % 100_000).as_bytes()),
            _ => text.extend_from_slice(format!("{:x} ", rank.wrapping_mul(2_654_435_761) % 0xff_ffff).as_bytes()),
        }
    }
    text.truncate(bytes);
    text
}

fn serve(bytes: usize) {
    let answers: Arc<Vec<Vec<u8>>> = Arc::new(
        (1..=64)
            .map(|seed| {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {bytes}\r\n\r\n");
                [head.into_bytes(), page(bytes, seed)].concat()
            })
            .collect(),
    );
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("{}", listener.local_addr().expect("a port").port());
        let _ = std::io::stdout().flush();
        let count = Arc::new(AtomicUsize::new(0));
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answers, count) = (answers.clone(), count.clone());
            tokio::spawn(async move {
                let _ = stream.set_nodelay(true);
                let mut request = Vec::new();
                loop {
                    if stream.read_buf(&mut request).await.is_ok_and(|n| n > 0) {
                        while let Some(end) = request.windows(4).position(|w| w == b"\r\n\r\n") {
                            request.drain(..end + 4);
                            let answer = &answers[count.fetch_add(1, Ordering::Relaxed) % answers.len()];
                            if stream.write_all(answer).await.is_err() {
                                return;
                            }
                        }
                        continue;
                    }
                    return;
                }
            });
        }
    });
}
