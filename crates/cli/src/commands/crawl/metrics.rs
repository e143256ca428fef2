//! The state of a crawl for Prometheus: one text, served by a thread.

use anyhow::Context;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use trawl_engine::Progress;

/// How long one who asks may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of a request that are read.
const REQUEST_BYTES: usize = 4096;

/// The text that is served.
#[derive(Clone, Default)]
pub struct Metrics(Arc<Mutex<String>>);

impl Metrics {
    /// Listens on an address until the process ends.
    pub fn serve(address: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on --metrics {address}"))?;
        let metrics = Self::default();
        let served = metrics.clone();
        std::thread::Builder::new().name("metrics".into()).spawn(move || {
            // One at a time: there is one Prometheus, and it asks every few seconds.
            for stream in listener.incoming().flatten() {
                let _ = served.answer(stream);
            }
        })?;
        Ok(metrics)
    }

    /// What is served from now on.
    pub fn update(&self, progress: &Progress) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text(progress);
    }

    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (mut request, mut buf) = (Vec::new(), [0; 1024]);
        while request.len() < REQUEST_BYTES && !request.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut buf)? {
                0 => break,
                n => request.extend_from_slice(buf.get(..n).unwrap_or_default()),
            }
        }
        let (status, body) = match request.starts_with(b"GET /metrics") {
            true => ("200 OK", self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            false => ("404 Not Found", "the state of the crawl is at /metrics\n".to_owned()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    }
}

fn text(p: &Progress) -> String {
    let mut out = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# HELP trawl_crawl_{name} {help}\n# TYPE trawl_crawl_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(out, "trawl_crawl_{name}{labels} {value}");
        }
    };
    let one = |value: f64| vec![(String::new(), value)];
    let counts = &p.counts;
    metric("captures_total", "counter", "Captures made durable.", &one(counts.captures as f64));
    let by = |label: &str, key: &dyn std::fmt::Display, n: u64| (format!("{{{label}=\"{key}\"}}"), n as f64);
    let statuses: Vec<_> = counts.statuses.iter().map(|(status, n)| by("status", status, *n)).collect();
    metric("responses_total", "counter", "Responses by status.", &statuses);
    let failures: Vec<_> = counts.failures.iter().map(|(class, n)| by("class", class, *n)).collect();
    metric("failures_total", "counter", "Captures without a response by class.", &failures);
    let refused: Vec<_> = counts.refused.iter().map(|(rule, n)| by("rule", rule, *n)).collect();
    metric("links_refused_total", "counter", "Links refused by a rule.", &refused);
    metric("links_outside_total", "counter", "Links out of scope or too deep.", &one(counts.outside as f64));
    metric("body_bytes_total", "counter", "Body bytes stored.", &one(counts.body_bytes as f64));
    metric("retries_total", "counter", "Attempts that were not the last of their URL.", &one(counts.retries as f64));
    metric("given_up_total", "counter", "URLs that were given up.", &one(counts.given_up as f64));
    metric("seeds_total", "counter", "Seeds read.", &one(counts.seeds as f64));
    metric("rejects_total", "counter", "Items of the seeds that are not URLs.", &one(counts.rejects as f64));
    metric("rate", "gauge", "Captures per second since the last report.", &one(p.rate));
    metric("in_flight", "gauge", "Fetches under way.", &one(p.in_flight as f64));
    metric("in_flight_limit", "gauge", "Fetches that may be under way.", &one(p.limit as f64));
    metric("unacknowledged", "gauge", "Captures not yet durable.", &one(p.unacked as f64));
    metric("queued", "gauge", "URLs waiting.", &one(p.queued as f64));
    metric("known_urls", "gauge", "URLs known.", &one(p.known as f64));
    metric("hosts", "gauge", "Hosts known.", &one(p.hosts as f64));
    metric("uptime_seconds", "gauge", "Since this process began to crawl.", &one(p.elapsed_ms as f64 / 1000.0));
    metric("local_trouble", "gauge", "Whether this machine cannot fetch.", &one(f64::from(p.trouble.is_some())));
    if let Some(seconds) = p.eta_s {
        metric("eta_seconds", "gauge", "What waits, at the present rate.", &one(seconds as f64));
    }
    if let Some(next) = &p.next {
        metric("next_host_seconds", "gauge", "Until the next host may be asked.", &one(next.wait_ms as f64 / 1000.0));
    }
    out
}
