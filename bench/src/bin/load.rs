//! How long does a server under load take? Requests come when they come (Pareto gaps, Zipf domains), whether or not earlier
//! ones are answered, and times are counted from the moment they should have been sent: a server that falls behind shows.
//!
//! ```text
//! load ADDRESS NAMES RATE SECONDS              open loop, RATE a second; NAMES has a line `domain<TAB>dataset` for each domain
//! load ADDRESS NAMES 0 SECONDS KIND [uniform]  closed loop, 8 clients; KIND is domain, page100 or page1000
//! ```
//! Prints a JSON object for each kind of request: times of answers with status 200 from the moment they were due, and as
//! `served` from the moment they were sent, which is what the server can do something about when there are more requests than
//! clients to send them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Connections of the open loop; more for rates that are meant to be too much.
const WORKERS: usize = 128;
const MANY_WORKERS: usize = 800;
const TOO_MUCH: f64 = 5000.0;
const CLIENTS: usize = 8;

/// A small generator: the same requests in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Zipf with exponent 1 over `n` ranks, by inverting its integral.
    fn rank(&mut self, n: usize) -> usize {
        let rank = ((n as f64 + 1.0).ln() * self.next()).exp() - 1.0;
        (rank as usize).min(n - 1)
    }

    /// A gap with mean 1 and a heavy tail: Pareto with exponent 1.5.
    fn gap(&mut self) -> f64 {
        (1.0 / 3.0) / (1.0 - self.next()).powf(1.0 / 1.5)
    }
}

/// A keep-alive connection.
struct Client {
    address: String,
    stream: Option<BufReader<TcpStream>>,
    body: Vec<u8>,
}

impl Client {
    fn new(address: &str) -> Self {
        Self { address: address.to_owned(), stream: None, body: Vec::new() }
    }

    fn get(&mut self, path: &str) -> std::io::Result<u16> {
        let answer = self.try_get(path);
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    fn try_get(&mut self, path: &str) -> std::io::Result<u16> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(&self.address)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(Duration::from_secs(30)))?;
            self.stream = Some(BufReader::with_capacity(1 << 16, stream));
        }
        let Some(reader) = &mut self.stream else { return Err(std::io::ErrorKind::NotConnected.into()) };
        write!(reader.get_mut(), "GET {path} HTTP/1.1\r\nHost: lake\r\n\r\n")?;
        let (mut status, mut length, mut close) = (0, 0usize, false);
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let text = line.trim_end().to_ascii_lowercase();
            if text.is_empty() {
                break;
            } else if let Some(rest) = text.strip_prefix("http/1.1 ") {
                status = rest.get(..3).and_then(|s| s.parse().ok()).unwrap_or(0);
            } else if let Some(rest) = text.strip_prefix("content-length: ") {
                length = rest.parse().unwrap_or(0);
            } else if text == "connection: close" {
                close = true;
            }
        }
        self.body.resize(length, 0);
        reader.read_exact(&mut self.body)?;
        if close {
            self.stream = None;
        }
        Ok(status)
    }
}

#[derive(Default)]
struct Seen {
    micros: Vec<u64>,
    served: Vec<u64>,
    bytes: u64,
    statuses: BTreeMap<String, u64>,
    errors: BTreeMap<String, u64>,
}

type All = Arc<Mutex<BTreeMap<&'static str, Seen>>>;

/// The name that an answer gives its failure.
fn error_in(body: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    Some(text.strip_prefix("{\"error\":\"")?.split('"').next()?.to_owned())
}

fn count(all: &All, kind: &'static str, status: std::io::Result<u16>, body: &[u8], took: Duration, served: Duration) {
    let (error, bytes) =
        (status.as_ref().ok().filter(|status| **status != 200).and_then(|_| error_in(body)), body.len());
    let mut all = all.lock().unwrap();
    let seen = all.entry(kind).or_default();
    let status = status.map_or_else(|error| error.kind().to_string(), |status| status.to_string());
    if let Some(error) = error {
        *seen.errors.entry(error).or_default() += 1;
    }
    if status == "200" {
        seen.micros.push(took.as_micros() as u64);
        seen.served.push(served.as_micros() as u64);
        seen.bytes += bytes as u64;
    }
    *seen.statuses.entry(status).or_default() += 1;
}

fn path(kind: &str, (domain, dataset): &(String, String)) -> String {
    match kind {
        "domain" => format!("/v1/domain/{domain}"),
        "page100" => format!("/v1/domain/{domain}/datasets/{dataset}/urls?limit=100"),
        "page1000" => format!("/v1/domain/{domain}/datasets/{dataset}/urls?limit=1000"),
        _ => "/healthz".to_owned(),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [address, names, rate, seconds, rest @ ..] = &args[..] else {
        panic!("load ADDRESS NAMES RATE SECONDS [KIND]");
    };
    let names: Arc<Vec<(String, String)>> = Arc::new(
        std::fs::read_to_string(names)
            .unwrap()
            .lines()
            .filter_map(|line| line.split_once('\t').map(|(a, b)| (a.to_owned(), b.to_owned())))
            .collect(),
    );
    let (rate, seconds): (f64, f64) = (rate.parse().unwrap(), seconds.parse().unwrap());
    let all: All = Arc::default();
    let begun = Instant::now();
    let workers: Vec<_> = if rate > 0.0 {
        // The next request of all: when, which.
        let next = Arc::new(Mutex::new((0.0f64, Random(0x9e37_79b9_7f4a_7c15))));
        (0..if rate > TOO_MUCH { MANY_WORKERS } else { WORKERS })
            .map(|_| {
                let (next, all, names, address) = (next.clone(), all.clone(), names.clone(), address.clone());
                std::thread::spawn(move || {
                    let mut client = Client::new(&address);
                    loop {
                        let (at, kind, name) = {
                            let mut next = next.lock().unwrap();
                            let gap = next.1.gap() / rate;
                            next.0 += gap;
                            let chance = next.1.next();
                            let kind = if chance < 0.8 {
                                "domain"
                            } else if chance < 0.95 {
                                "page100"
                            } else {
                                "healthz"
                            };
                            let rank = next.1.rank(names.len());
                            (next.0, kind, rank)
                        };
                        if at > seconds {
                            return;
                        }
                        let due = begun + Duration::from_secs_f64(at);
                        std::thread::sleep(due.saturating_duration_since(Instant::now()));
                        let sent = Instant::now();
                        let status = client.get(&path(kind, &names[name]));
                        count(&all, kind, status, &client.body, due.elapsed(), sent.elapsed());
                    }
                })
            })
            .collect()
    } else {
        let kind: &'static str = match rest.first().map(String::as_str) {
            Some("page100") => "page100",
            Some("page1000") => "page1000",
            _ => "domain",
        };
        let uniform = rest.get(1).is_some_and(|how| how == "uniform");
        (0..CLIENTS)
            .map(|seed| {
                let (all, names, address) = (all.clone(), names.clone(), address.clone());
                std::thread::spawn(move || {
                    let mut random = Random(0x1234_5678_9abc_def1 + seed as u64);
                    let mut client = Client::new(&address);
                    while begun.elapsed().as_secs_f64() < seconds {
                        let rank = if uniform {
                            ((random.next() * names.len() as f64) as usize).min(names.len() - 1)
                        } else {
                            random.rank(names.len())
                        };
                        let name = &names[rank];
                        let sent = Instant::now();
                        let status = client.get(&path(kind, name));
                        count(&all, kind, status, &client.body, sent.elapsed(), sent.elapsed());
                    }
                })
            })
            .collect()
    };
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    let passed = begun.elapsed().as_secs_f64();
    for (kind, seen) in all.lock().unwrap().iter_mut() {
        seen.micros.sort_unstable();
        seen.served.sort_unstable();
        let ms = |micros: &[u64], part: f64| {
            let at = ((micros.len() as f64 * part) as usize).min(micros.len().saturating_sub(1));
            micros.get(at).copied().unwrap_or(0) as f64 / 1000.0
        };
        let of = |micros: &[u64]| {
            let [p50, p95, p99, max] = [0.5, 0.95, 0.99, 1.0].map(|part| ms(micros, part));
            format!("{{\"p50\":{p50:.3},\"p95\":{p95:.3},\"p99\":{p99:.3},\"max\":{max:.3}}}")
        };
        let table = |counts: &BTreeMap<String, u64>| {
            let members: Vec<String> = counts.iter().map(|(name, n)| format!("\"{name}\":{n}")).collect();
            members.join(",")
        };
        println!(
            "{{\"kind\":\"{kind}\",\"per_second\":{:.1},\"bytes\":{},\"ms\":{},\"served\":{},\"statuses\":{{{}}},\"errors\":{{{}}}}}",
            seen.micros.len() as f64 / passed,
            seen.bytes / (seen.micros.len() as u64).max(1),
            of(&seen.micros),
            of(&seen.served),
            table(&seen.statuses),
            table(&seen.errors)
        );
    }
}
