//! WARC beside FastWARC and warcio: same file, same records, one thread.
//!
//! Questions: how fast are records iterated and their digests verified, how fast are events written and how large do they
//! get, and does memory stay flat when the archive grows? The peers are Python packages (FastWARC is a compiled extension);
//! `PEERS_PYTHON` names an interpreter that has them, `python3` otherwise. Each side counts its own
//! seconds of processor time, start-up excluded, so that a busy machine does not decide.
//!
//! `cargo run --release --features warc --bin warc [-- --pages 20000] [--large]`

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trawl_io::RealFs;
use trawl_io::format::{About, Creation, Target};
use trawl_io::read_at::FileReader;
use trawl_model::{Body, Capture, CaptureFacts, CaptureSink, Check, Clock, Message, Outcome, UnixMillis};
use trawl_warc::{Compression, Limits, Verifier, WarcSink, WarcSource};

const WORDS: &[&str] = &[
    "the",
    "of",
    "and",
    "page",
    "<p>",
    "</p>\n",
    "<a href=\"/item/",
    "\">",
    "</a>",
    "<div class=\"row\">",
    "</div>\n",
    "archive",
    "crawler",
    "frontier",
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consectetur",
    "price",
    "1999",
    "2026",
    "<li>",
    "</li>\n",
    "<span style=\"color:#334455\">",
    "</span>",
    "information",
    "contact",
    "privacy",
    "cookies",
    "search",
    "results",
    "view",
];

/// A page of about 25 KB on average: words, numbers, and a fifth of it markup.
fn page(n: u64) -> Vec<u8> {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let len = 2000 + usize::try_from(next() % 46_000).unwrap();
    let mut out = format!("<!doctype html><html><head><title>page {n}</title></head><body>").into_bytes();
    while out.len() < len {
        let r = next();
        out.extend_from_slice(WORDS[usize::try_from(r >> 20).unwrap() % WORDS.len()].as_bytes());
        if r % 7 == 0 {
            out.extend_from_slice(format!(" {:x}", r >> 40).as_bytes());
        }
        out.push(b' ');
    }
    out
}

fn capture(n: u64) -> Capture<'static> {
    let body = page(n);
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    Capture {
        url: format!("http://www.host{}.example/section/{n}.html", n % 97),
        started_at: UnixMillis(1_782_262_923_000 + i64::try_from(n).unwrap()),
        request: Some(Message {
            head: format!(
                "GET /section/{n}.html HTTP/1.1\r\nHost: www.host{}.example\r\nUser-Agent: bench\r\n\r\n",
                n % 97
            )
            .into(),
            body: Body::empty(),
        }),
        outcome: Outcome::Response {
            message: Message { head: head.into(), body: Body::Memory(body.into()) },
            payload_digest: None,
            truncated: None,
        },
        facts: CaptureFacts { attempt: 1, ip: Some("192.0.2.1".parse().unwrap()), ..CaptureFacts::default() },
    }
}

fn sink(dir: &Path) -> Box<dyn CaptureSink> {
    let ids = AtomicU64::new(0);
    let ids = Arc::new(move || u128::from(ids.fetch_add(1, Ordering::Relaxed)).to_be_bytes());
    let target = Target::Run { dir: dir.into(), prefix: "bench".into(), run: "run".into(), roll_bytes: u64::MAX };
    let mut creation = Creation::new(Arc::new(RealFs), target, ids, Clock::fixed(UnixMillis(0)));
    creation.about = About { software: "bench".into(), ..About::default() };
    Box::new(WarcSink::create(&creation, Compression::Gzip).unwrap())
}

/// Writes `pages` events; says which file and how long it took (making the pages not counted).
fn write(dir: &Path, pages: u64) -> (PathBuf, f64, u64) {
    let mut sink = sink(dir);
    let mut spent = 0.0;
    let mut bytes = 0;
    for n in 0..pages {
        let capture = capture(n);
        if let Outcome::Response { message, .. } = &capture.outcome {
            bytes += message.body.len_bytes();
        }
        let start = cpu_seconds();
        let prepared = sink.preparer().prepare(capture).unwrap();
        sink.commit(prepared).unwrap();
        spent += cpu_seconds() - start;
    }
    let start = cpu_seconds();
    let summary = sink.finish().unwrap();
    (dir.join(&summary.files[0].0), spent + (cpu_seconds() - start), bytes)
}

fn verify(path: &Path) -> (f64, u64) {
    let start = cpu_seconds();
    let dir = path.parent().unwrap();
    // A small budget for sorting, so that what grows with the archive, if anything does, is seen.
    let mut check = Check {
        temp_dir: dir,
        memory_bytes: 8 << 20,
        on_finding: &mut |found| panic!("{found:?}"),
        progress: &mut |_| {},
    };
    let mut verifier = Verifier::new(&mut check).unwrap();
    verifier.file(Arc::new(FileReader::open(path).unwrap())).unwrap();
    let report = verifier.finish().unwrap();
    ((cpu_seconds() - start), report.digests)
}

/// A body that is made as it is read, any number of times.
struct Made(u64);

impl trawl_model::Reopen for Made {
    fn open(&self) -> std::io::Result<Box<dyn Read + Send>> {
        let line = b"A long body that nobody holds in memory, line after line after line.\n";
        let lines = std::iter::repeat_n(&line[..], usize::try_from(self.0).unwrap() / line.len() + 1);
        Ok(Box::new(Lines(lines, &[]).take(self.0)))
    }

    fn len_bytes(&self) -> u64 {
        self.0
    }
}

/// Lines one after another.
struct Lines<I>(I, &'static [u8]);

impl<I: Iterator<Item = &'static [u8]>> Read for Lines<I> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            if self.1.is_empty() {
                match self.0.next() {
                    Some(line) => self.1 = line,
                    None => break,
                }
            }
            let n = self.1.len().min(buf.len() - done);
            buf[done..done + n].copy_from_slice(&self.1[..n]);
            self.1 = &self.1[n..];
            done += n;
        }
        Ok(done)
    }
}

/// Writes one capture with a body of `len` bytes and reads it back through the door.
fn long_body(dir: &Path, len: u64) {
    let mut capture = capture(0);
    if let Outcome::Response { message, .. } = &mut capture.outcome {
        message.body = Body::Spooled(Arc::new(Made(len)));
    }
    let mut sink = sink(dir);
    let prepared = sink.preparer().prepare(capture).unwrap();
    sink.commit(prepared).unwrap();
    let path = dir.join(&sink.finish().unwrap().files[0].0);
    verify(&path);
    let mut source = WarcSource::open(&path, Limits::default(), false).unwrap();
    while let Some((entry, _)) = source.next_owned().unwrap() {
        if let trawl_model::Entry::Capture(mut capture) = entry
            && let Outcome::Response { message, .. } = &mut capture.outcome
        {
            assert_eq!(std::io::copy(&mut message.body.reader().unwrap(), &mut std::io::sink()).unwrap(), len);
            return;
        }
    }
    panic!("the capture is gone");
}

const FASTWARC: &str = "
import sys, time
from fastwarc.warc import ArchiveIterator
from fastwarc.stream_io import FileStream
start = time.process_time()
n = 0
for record in ArchiveIterator(FileStream(sys.argv[1]), parse_http=False):
    if record.headers.get('WARC-Block-Digest'):
        assert record.verify_block_digest()
        n += 1
    if record.headers.get('WARC-Payload-Digest'):
        record.parse_http()
        assert record.verify_payload_digest()
        n += 1
print(time.process_time() - start, n)
";

const WARCIO: &str = "
import sys, time
from warcio.archiveiterator import ArchiveIterator
start = time.process_time()
n = 0
with open(sys.argv[1], 'rb') as stream:
    for record in ArchiveIterator(stream, check_digests='raise'):
        while record.raw_stream.read(65536):
            pass
        n += ('WARC-Block-Digest' in record.rec_headers) + ('WARC-Payload-Digest' in record.rec_headers)
print(time.process_time() - start, n)
";

const WARCIO_WRITE: &str = "
import io, sys, time
from warcio.archiveiterator import ArchiveIterator
from warcio.warcwriter import WARCWriter
from warcio.statusandheaders import StatusAndHeaders
spent, out = 0.0, open(sys.argv[2], 'wb')
writer = WARCWriter(out, gzip=True, warc_version='1.1')
with open(sys.argv[1], 'rb') as stream:
    for record in ArchiveIterator(stream):
        body = record.raw_stream.read()
        headers = {k: v for k, v in record.rec_headers.headers if k.startswith('WARC-') and not k.endswith('-Digest') and k != 'WARC-Type'}
        http = record.http_headers
        kind, content_type = record.rec_type, record.rec_headers.get_header('Content-Type')
        start = time.process_time()
        writer.write_record(writer.create_warc_record(record.rec_headers.get_header('WARC-Target-URI') or '', kind, payload=io.BytesIO(body),
                            http_headers=http, warc_content_type=content_type, warc_headers_dict=headers))
        spent += time.process_time() - start
start = time.process_time()
out.close()
print(spent + time.process_time() - start, out.name and __import__('os').path.getsize(sys.argv[2]))
";

/// Runs a peer; two numbers come back.
fn peer(script: &str, args: &[&Path]) -> (f64, f64) {
    let python = std::env::var("PEERS_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(python).arg("-c").arg(script).args(args).output().expect("a Python with the peers in it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut numbers = text.split_whitespace().map(|n| n.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

fn best<T: Copy>(times: usize, mut run: impl FnMut() -> (f64, T)) -> (f64, T) {
    (0..times).map(|_| run()).min_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

/// Processor time of this process so far, all threads.
fn cpu_seconds() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// Peak resident memory of this process, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let flag = |name: &str| args.iter().position(|a| a == name);
    if let Some(at) = flag("--verify-child") {
        let (seconds, digests) = verify(Path::new(&args[at + 1]));
        println!("{seconds} {digests} {}", peak_kib());
        return;
    }
    if let Some(at) = flag("--body-child") {
        let dir = tempfile::tempdir().unwrap();
        long_body(dir.path(), args[at + 1].parse().unwrap());
        println!("0 0 {}", peak_kib());
        return;
    }
    let pages: u64 = flag("--pages").map_or(12_000, |at| args[at + 1].parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let (path, seconds, body_bytes) = write(dir.path(), pages);
    let megabytes = body_bytes as f64 / 1e6;
    let size = std::fs::metadata(&path).unwrap().len();
    println!("{pages} events, {megabytes:.0} MB of bodies, {:.1} MB stored", size as f64 / 1e6);

    let out = dir.path().join("warcio.warc.gz");
    let (warcio_write, warcio_size) = peer(WARCIO_WRITE, &[&path, &out]);
    println!(
        "write   trawl {seconds:.2} s ({:.0} MB/s)   warcio {warcio_write:.2} s   {:.2} times as fast, {:.1} % of its size",
        megabytes / seconds,
        warcio_write / seconds,
        100.0 * size as f64 / warcio_size
    );

    let (ours, digests) = best(3, || verify(&path));
    let (fastwarc, fast_digests) = best(3, || peer(FASTWARC, &[&path]));
    let (warcio, warcio_digests) = best(1, || peer(WARCIO, &[&path]));
    assert_eq!([fast_digests, warcio_digests], [digests as f64; 2], "all verify the same digests");
    println!(
        "verify  trawl {ours:.2} s ({:.0} MB/s)   FastWARC {fastwarc:.2} s   warcio {warcio:.2} s   {:.2} and {:.2} times as fast",
        megabytes / ours,
        fastwarc / ours,
        warcio / ours
    );

    if flag("--large").is_some() {
        std::fs::remove_file(&path).unwrap();
        for target in [1_400, 67_000, 670_000] {
            let dir = tempfile::tempdir().unwrap();
            let (path, ..) = write(dir.path(), target);
            let output = Command::new(&args[0]).arg("--verify-child").arg(&path).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let peak: f64 = text.split_whitespace().nth(2).unwrap().parse().unwrap();
            let size = std::fs::metadata(&path).unwrap().len();
            println!("memory  {:.0} MB archive: peak {:.1} MB", size as f64 / 1e6, peak / 1024.0);
        }
        let output = Command::new(&args[0]).arg("--body-child").arg("5000000000").output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let peak: f64 = text.split_whitespace().nth(2).unwrap().parse().unwrap();
        println!("memory  one body of 5000 MB, written, verified and read back: peak {:.1} MB", peak / 1024.0);
    }
}
