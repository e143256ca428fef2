//! A crawl with a bar: what an operator sees while it runs.

use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::Progress as Bar;
use crate::system;
use crate::units::{show_bytes, show_count};
use trawl_engine::{Config, Progress, Report, Stop};

/// Seconds without any answer after which the bar says so: longer than one slow host takes, shorter than people wait.
const SILENCE_TOLD: u64 = 10;
/// Milliseconds of waiting for a host that are worth a word.
const WAIT_TOLD: u64 = 2_000;
/// Classes of failures that are shown, the most frequent first.
const CLASSES_TOLD: usize = 3;

/// Crawls with a bar, stopping in order when interrupted.
pub fn crawl(config: Config, interrupt: &Interrupt, out: &Output) -> anyhow::Result<Report> {
    crawl_with(config, interrupt, out, &mut |_| {})
}

/// The same, showing every state of the crawl to `watch` too.
pub fn crawl_with(
    config: Config,
    interrupt: &Interrupt,
    out: &Output,
    watch: &mut dyn FnMut(&Progress),
) -> anyhow::Result<Report> {
    let stop = Stop::new();
    let asked = stop.clone();
    interrupt.on_stop(move || asked.ask())?;
    let bar = Bar::start("crawl", None, out.quiet());
    let report = trawl_engine::run(config, system::clock(), system::ids()?, &stop, &mut |progress| {
        bar.report(progress.counts.captures, || line(progress));
        watch(progress);
    })?;
    Ok(report)
}

/// One line: how fast, how much is left, what it waits for, what goes wrong.
fn line(p: &Progress) -> String {
    let mut line = format!(
        "{} captures, {:.0}/s, {} in flight, {} queued, {} hosts, {}",
        show_count(p.counts.captures),
        p.rate,
        p.in_flight,
        show_count(p.queued),
        show_count(p.hosts as u64),
        show_bytes(p.counts.body_bytes),
    );
    if let Some(seconds) = p.eta_s.filter(|_| p.queued > 0) {
        line += &format!(", {} left at this rate", show_seconds(seconds));
    }
    let mut classes: Vec<_> = p.counts.failures.iter().collect();
    classes.sort_by_key(|(class, n)| (std::cmp::Reverse(**n), class.as_str()));
    for (class, n) in classes.into_iter().take(CLASSES_TOLD) {
        line += &format!(", {class} {}", show_count(*n));
    }
    if p.stopping {
        line += ", stopping";
    }
    if let Some(next) = p.next.as_ref().filter(|next| p.in_flight == 0 && next.wait_ms >= WAIT_TOLD) {
        let why = if next.backoff { "which is in backoff" } else { "whose turn comes" };
        line += &format!(", waiting for {}, {why} in {}", next.host, show_seconds(next.wait_ms / 1000));
    }
    if p.limit < p.most {
        line += &format!(", only {} fetches at once: many hosts fell silent together", p.limit);
    }
    if let Some(trouble) = &p.trouble {
        line += &format!(", this machine is in trouble: {trouble}");
    }
    if let Some(seconds) = p.silence.filter(|&seconds| seconds >= SILENCE_TOLD) {
        line += &format!(", no server has answered for {seconds} s");
    }
    if let Some(seconds) = p.waiting {
        line += &format!(", only hosts in backoff are left: waiting {seconds} s more");
    }
    line
}

fn show_seconds(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trawl_engine::{Counts, Waiting};

    #[test]
    fn an_operator_sees_what_it_waits_for_and_what_goes_wrong() {
        let failures = [("dns_timeout", 7), ("reset", 9), ("connect_refused", 1), ("too_large", 1)];
        let failures = failures.map(|(class, n)| (class.to_owned(), n)).into();
        let progress = Progress {
            elapsed_ms: 1000,
            counts: Counts { captures: 1200, failures, ..Counts::default() },
            rate: 12.4,
            in_flight: 0,
            limit: 64,
            most: 256,
            eta_s: Some(7300),
            next: Some(Waiting { host: "a.example".into(), wait_ms: 90_000, backoff: true }),
            unacked: 0,
            queued: 9,
            known: 9,
            hosts: 3,
            trouble: None,
            silence: None,
            waiting: None,
            stopping: false,
        };
        let shown = line(&progress);
        for part in [
            "12/s",
            "2 h 1 min left at this rate",
            "reset 9, dns_timeout 7, connect_refused 1",
            "waiting for a.example, which is in backoff in 90 s",
            "only 64 fetches at once",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("too_large"));
    }
}
