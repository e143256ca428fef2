//! Counts and times for Prometheus.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper ends of the buckets, microseconds.
const BUCKETS: [u64; 15] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000, 5_000_000,
    10_000_000, 30_000_000,
];
/// Statuses that are counted by themselves; others count as 0.
const STATUSES: [u16; 18] = [200, 204, 301, 302, 304, 400, 401, 403, 404, 405, 410, 413, 429, 500, 502, 503, 504, 0];

/// What happened on one route.
#[derive(Default)]
struct Route {
    statuses: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

/// What happened on all routes.
pub(crate) struct Metrics {
    routes: HashMap<&'static str, Route>,
    others: Route,
}

/// What is measured when somebody asks.
pub(crate) struct Gauges {
    pub(crate) connections: usize,
    pub(crate) questions: usize,
    pub(crate) waiting: usize,
    pub(crate) streams: usize,
    pub(crate) lake_changes: u64,
}

impl Metrics {
    pub(crate) fn new(routes: impl IntoIterator<Item = &'static str>) -> Self {
        Self { routes: routes.into_iter().map(|route| (route, Route::default())).collect(), others: Route::default() }
    }

    pub(crate) fn count(&self, route: &str, status: u16, took: Duration) {
        let route = self.routes.get(route).unwrap_or(&self.others);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        let bucket = BUCKETS.iter().position(|end| micros <= *end).unwrap_or(BUCKETS.len());
        for counter in [route.statuses.get(at), route.buckets.get(bucket)].into_iter().flatten() {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        route.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// The text format of Prometheus.
    pub(crate) fn text(&self, gauges: &Gauges) -> String {
        let mut out = String::with_capacity(16 << 10);
        let mut all: Vec<(&str, &Route)> = self.routes.iter().map(|(name, route)| (*name, route)).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.push(("other", &self.others));
        // Writing to a String cannot fail.
        let _ = self.write(&mut out, &all, gauges);
        out
    }

    fn write(&self, out: &mut String, all: &[(&str, &Route)], gauges: &Gauges) -> std::fmt::Result {
        writeln!(out, "# HELP trawl_requests_total Requests answered, by route and status.")?;
        writeln!(out, "# TYPE trawl_requests_total counter")?;
        for (name, route) in all {
            for (status, count) in STATUSES.iter().zip(&route.statuses) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    writeln!(out, "trawl_requests_total{{route=\"{name}\",status=\"{status}\"}} {count}")?;
                }
            }
        }
        writeln!(out, "# HELP trawl_request_seconds Time until an answer began.")?;
        writeln!(out, "# TYPE trawl_request_seconds histogram")?;
        for (name, route) in all {
            let counts: Vec<u64> = route.buckets.iter().map(|count| count.load(Ordering::Relaxed)).collect();
            let total: u64 = counts.iter().sum();
            if total == 0 {
                continue;
            }
            let mut sum = 0;
            for (end, count) in BUCKETS.iter().zip(&counts) {
                sum += count;
                let end = *end as f64 / 1e6;
                writeln!(out, "trawl_request_seconds_bucket{{route=\"{name}\",le=\"{end}\"}} {sum}")?;
            }
            writeln!(out, "trawl_request_seconds_bucket{{route=\"{name}\",le=\"+Inf\"}} {total}")?;
            let seconds = route.micros.load(Ordering::Relaxed) as f64 / 1e6;
            writeln!(out, "trawl_request_seconds_sum{{route=\"{name}\"}} {seconds}")?;
            writeln!(out, "trawl_request_seconds_count{{route=\"{name}\"}} {total}")?;
        }
        for (name, help, kind, value) in [
            ("trawl_connections", "Open connections.", "gauge", gauges.connections as u64),
            ("trawl_questions", "Questions asked of the lake at the moment.", "gauge", gauges.questions as u64),
            ("trawl_questions_waiting", "Questions that wait for their turn.", "gauge", gauges.waiting as u64),
            ("trawl_streams", "Streamed answers under way.", "gauge", gauges.streams as u64),
            (
                "trawl_lake_changes_total",
                "Times the lake was seen to go back or become another.",
                "counter",
                gauges.lake_changes,
            ),
        ] {
            writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_are_cumulative_and_end_with_all() {
        let metrics = Metrics::new(["/a"]);
        for micros in [100, 600, 99_000_000] {
            metrics.count("/a", 200, Duration::from_micros(micros));
        }
        metrics.count("/nowhere", 418, Duration::ZERO);
        let text = metrics.text(&Gauges { connections: 3, questions: 0, waiting: 0, streams: 0, lake_changes: 0 });
        for line in [
            "trawl_requests_total{route=\"/a\",status=\"200\"} 3",
            "trawl_requests_total{route=\"other\",status=\"0\"} 1",
            "trawl_request_seconds_bucket{route=\"/a\",le=\"0.0005\"} 1",
            "trawl_request_seconds_bucket{route=\"/a\",le=\"30\"} 2",
            "trawl_request_seconds_bucket{route=\"/a\",le=\"+Inf\"} 3",
            "trawl_connections 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
