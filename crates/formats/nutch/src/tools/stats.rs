//! `readdb -stats`.

use crate::types::CrawlDatum;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use trawl_hadoop::Text;
use trawl_hadoop::java_text::double;
use trawl_model::UnixMillis;

/// Quantiles that are printed.
const QUANTILES: [f64; 15] = [0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99];

/// Different scores that are counted exactly; beyond, scores lose low bits. The table takes about 32 MB then.
const MAX_SCORES: usize = 1 << 20;

/// Numbers of a CrawlDb.
#[derive(Debug, Clone)]
pub struct Stats {
    total: u64,
    interval: Range,
    /// Minutes since 1970.
    fetch_time: Range,
    score_min: f32,
    score_max: f32,
    score_sum: f32,
    /// Scores by their bits, in order, without the lowest `score_shift` ones.
    scores: HashMap<u32, u64>,
    score_shift: u32,
    retries: BTreeMap<String, u64>,
    /// By status as text, and by host if asked for.
    statuses: BTreeMap<String, (String, u64, BTreeMap<String, u64>)>,
    by_host: bool,
}

#[derive(Debug, Clone, Copy)]
struct Range {
    min: i64,
    max: i64,
    sum: i128,
}

impl Range {
    const NONE: Range = Range { min: i64::MAX, max: i64::MIN, sum: 0 };

    fn add(&mut self, v: i64) {
        self.min = self.min.min(v);
        self.max = self.max.max(v);
        self.sum += i128::from(v);
    }

    fn average(&self, total: u64) -> i64 {
        // Between the smallest and the largest, so it fits.
        (self.sum / i128::from(total.max(1))) as i64
    }
}

impl Stats {
    /// Nothing counted; `by_host` also counts by status and host.
    pub fn new(by_host: bool) -> Self {
        Stats {
            total: 0,
            interval: Range::NONE,
            fetch_time: Range::NONE,
            score_min: f32::MAX,
            // The reference begins with the smallest positive float.
            score_max: f32::from_bits(1),
            score_sum: 0.0,
            scores: HashMap::new(),
            score_shift: 0,
            retries: BTreeMap::new(),
            statuses: BTreeMap::new(),
            by_host,
        }
    }

    /// Counts a URL.
    pub fn add(&mut self, url: &Text<'_>, c: &CrawlDatum<'_>) {
        self.total += 1;
        self.interval.add(i64::from(c.interval.seconds()));
        self.fetch_time.add(c.fetch_time / 60_000);
        if !c.score.is_nan() {
            self.score_min = self.score_min.min(c.score);
            self.score_max = self.score_max.max(c.score);
            self.score_sum += c.score;
            self.count_score(c.score);
        }
        *self.retries.entry(c.retries.to_string()).or_default() += 1;
        let status = c.status();
        let (_, count, hosts) =
            self.statuses.entry(status.0.to_string()).or_insert_with(|| (status.name().to_owned(), 0, BTreeMap::new()));
        *count += 1;
        if self.by_host {
            let url = url.to_str();
            if let Some(host) = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next()) {
                let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                let host = host.split(':').next().unwrap_or(host);
                *hosts.entry(host.to_owned()).or_default() += 1;
            }
        }
    }

    fn count_score(&mut self, score: f32) {
        let bits = score.to_bits();
        let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
        *self.scores.entry(ordered >> self.score_shift).or_default() += 1;
        while self.scores.len() > MAX_SCORES {
            self.score_shift += 1;
            for (key, count) in std::mem::take(&mut self.scores) {
                *self.scores.entry(key >> 1).or_default() += count;
            }
        }
    }

    /// URLs counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Score number `floor(q * n)` of the sorted ones. The reference estimates this by a t-digest.
    fn quantiles(&self) -> Vec<(f64, f32)> {
        let mut scores: Vec<_> = self.scores.iter().map(|(key, count)| (*key, *count)).collect();
        scores.sort_unstable();
        let total: u64 = scores.iter().map(|(_, count)| count).sum();
        let value = |key: u32| {
            let ordered = key << self.score_shift;
            f32::from_bits(if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered })
        };
        let at = |q: f64| {
            let rank = (q * total as f64) as u64;
            let mut seen = 0;
            scores.iter().find(|(_, count)| {
                seen += count;
                seen > rank
            })
        };
        QUANTILES.iter().filter_map(|q| Some((*q, value(at(*q)?.0)))).collect()
    }

    /// The lines of the reference.
    pub fn write(&self, db: &str, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "CrawlDb statistics start: {db}")?;
        writeln!(out, "Statistics for CrawlDb: {db}")?;
        writeln!(out, "TOTAL urls:\t{}", self.total)?;
        if self.total > 0 {
            let (i, t) = (&self.interval, &self.fetch_time);
            writeln!(out, "shortest fetch interval:\t{}", interval(i.min))?;
            writeln!(out, "avg fetch interval:\t{}", interval(i.average(self.total)))?;
            writeln!(out, "longest fetch interval:\t{}", interval(i.max))?;
            writeln!(out, "earliest fetch time:\t{}", minute(t.min))?;
            writeln!(out, "avg of fetch times:\t{}", minute(t.average(self.total)))?;
            writeln!(out, "latest fetch time:\t{}", minute(t.max))?;
            for (retries, count) in &self.retries {
                writeln!(out, "retry {retries}:\t{count}")?;
            }
            for (q, score) in self.quantiles() {
                writeln!(out, "score quantile {}:\t{}", double(q), double(f64::from(score)))?;
            }
            writeln!(out, "min score:\t{}", double(f64::from(self.score_min)))?;
            writeln!(out, "avg score:\t{}", double(self.average_score()))?;
            writeln!(out, "max score:\t{}", double(f64::from(self.score_max)))?;
            for (code, (name, count, hosts)) in &self.statuses {
                writeln!(out, "status {code} ({name}):\t{count}")?;
                for (host, count) in hosts {
                    writeln!(out, "   {host} :\t{count}")?;
                }
            }
        }
        writeln!(out, "CrawlDb statistics: done")
    }

    fn average_score(&self) -> f64 {
        f64::from(self.score_sum) / self.total.max(1) as f64
    }

    /// The same numbers.
    pub fn json(&self) -> Value {
        let status = |(code, (name, count, hosts)): (&String, &(String, u64, BTreeMap<String, u64>))| {
            let mut value = json!({ "code": code.parse::<u8>().ok(), "name": name, "count": count });
            if let (true, Some(object)) = (self.by_host, value.as_object_mut()) {
                object.insert("hosts".into(), json!(hosts));
            }
            value
        };
        let mut value = json!({ "total": self.total });
        if let (true, Some(object)) = (self.total > 0, value.as_object_mut()) {
            let range = |r: &Range, unit: i64| json!({ "min": r.min * unit, "avg": r.average(self.total) * unit, "max": r.max * unit });
            object.insert("intervalSeconds".into(), range(&self.interval, 1));
            object.insert("fetchTimeMs".into(), range(&self.fetch_time, 60_000));
            object.insert("retries".into(), json!(self.retries));
            let quantiles: serde_json::Map<_, _> =
                self.quantiles().into_iter().map(|(q, score)| (double(q), json!(score))).collect();
            object.insert(
                "score".into(),
                json!({
                    "min": self.score_min, "avg": self.average_score(), "max": self.score_max,
                    "quantiles": quantiles,
                }),
            );
            object.insert("statuses".into(), self.statuses.iter().map(status).collect());
        }
        value
    }
}

/// Seconds as `HH:MM:SS`, with days before if there are any.
fn interval(seconds: i64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60);
    if days > 0 { format!("{days} days, {clock}") } else { clock }
}

/// Minutes since 1970 as the reference's log prints a date.
fn minute(minutes: i64) -> String {
    let text = UnixMillis(minutes.saturating_mul(60_000)).to_string();
    format!("{}+0000", text.trim_end_matches('Z'))
}
