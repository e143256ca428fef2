//! Concurrency and spacing, by host and by address.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Fetch, Kind, Verdict};
use crate::character::Character;
use crate::settings::CrawlSettings;
use crate::world::{PageId, Resource, World};

/// The URL of a fetch, for the verdict.
pub(super) fn url(world: &World, fetch: &Fetch) -> String {
    match fetch.node {
        Some(node) => world.url_of(node),
        None => {
            let scheme = if fetch.secure { "https" } else { "http" };
            format!("{scheme}://{}/…", world.host(fetch.host).map_or("?", |h| &h.name))
        }
    }
}

/// Checks the fetches of one host, which are in order of time.
pub(super) fn host(fetches: &[Fetch], world: &World, settings: &CrawlSettings, verdict: &mut Verdict) {
    concurrency(fetches, settings.host_in_flight, Kind::HostConcurrency, world, settings, verdict);
    let Some(first) = fetches.first() else { return };
    let rules = world.robots(first.host).filter(|_| settings.obey_robots);
    let delay = rules.and_then(|r| r.crawl_delay_ms(&settings.agent)).unwrap_or(0).min(settings.max_crawl_delay_ms);
    // The crawler knows the delay from when it has the rules.
    let known_from = fetches.iter().find(|f| f.status == 200 && f.is_enough_robots()).map(|f| f.end_us);
    for (last, next) in fetches.iter().zip(fetches.iter().skip(1)) {
        let asked = if known_from.is_some_and(|known| last.start_us >= known) { delay } else { 0 };
        let (kind, wanted_ms) = if asked > settings.host_interval_ms {
            (Kind::CrawlDelay, asked)
        } else {
            (Kind::HostSpacing, settings.host_interval_ms)
        };
        spacing(last, next, kind, wanted_ms, world, settings, verdict);
    }
    retry_after(fetches, world, settings, verdict);
}

/// Checks the fetches at one address, which are in order of time.
pub(super) fn address(fetches: &[Fetch], world: &World, settings: &CrawlSettings, verdict: &mut Verdict) {
    if settings.ip_in_flight > 0 {
        concurrency(fetches, settings.ip_in_flight, Kind::IpConcurrency, world, settings, verdict);
    }
    for (last, next) in fetches.iter().zip(fetches.iter().skip(1)) {
        spacing(last, next, Kind::IpSpacing, settings.ip_interval_ms, world, settings, verdict);
    }
}

fn concurrency(
    fetches: &[Fetch],
    limit: u32,
    kind: Kind,
    world: &World,
    settings: &CrawlSettings,
    verdict: &mut Verdict,
) {
    let mut running = BinaryHeap::<Reverse<(u64, u64)>>::new();
    for fetch in fetches {
        while running.peek().is_some_and(|Reverse((end, _))| *end <= fetch.start_us) {
            running.pop();
        }
        if running.len() as u64 >= u64::from(limit) {
            let with = running.peek().map(|Reverse((_, line))| *line);
            let detail = format!("{} were in flight, {limit} may be", running.len());
            verdict.add(kind, Some(fetch.line), with, url(world, fetch), detail);
        }
        // The server notices late that a client has left: such a request may have ended a little earlier.
        let late = if fetch.whole { 0 } else { settings.notice_ms * 1000 };
        running.push(Reverse((fetch.end_us.saturating_sub(late), fetch.line)));
    }
}

fn spacing(
    last: &Fetch,
    next: &Fetch,
    kind: Kind,
    wanted_ms: u64,
    world: &World,
    settings: &CrawlSettings,
    verdict: &mut Verdict,
) {
    let found_us = next.start_us.saturating_sub(last.start_us);
    if found_us.saturating_add(settings.tolerance_ms * 1000) < wanted_ms.saturating_mul(1000) {
        let detail = format!("expected {wanted_ms} ms, found {}.{:03} ms", found_us / 1000, found_us % 1000);
        verdict.add(kind, Some(next.line), Some(last.line), url(world, next), detail);
    }
}

/// After a `Retry-After`, the host is left alone for as long as it says.
fn retry_after(fetches: &[Fetch], world: &World, settings: &CrawlSettings, verdict: &mut Verdict) {
    let mut waits: Option<(u64, u64, u64)> = None; // from, until, line
    // Answers take effect when they end, so they are taken in that order beside the starts.
    let mut answers: Vec<&Fetch> = fetches.iter().filter(|f| wait_of(f, world).is_some()).collect();
    answers.sort_by_key(|f| f.end_us);
    let mut answers = answers.into_iter().peekable();
    for fetch in fetches {
        while let Some(answer) = answers.next_if(|a| a.is_before(fetch)) {
            let until = answer.end_us.saturating_add(wait_of(answer, world).unwrap_or(0));
            if waits.is_none_or(|(_, last, _)| until > last) {
                waits = Some((answer.end_us, until, answer.line));
            }
        }
        if let Some((from, until, line)) = waits
            && fetch.start_us.saturating_add(settings.tolerance_ms * 1000) < until
        {
            let (wanted, found) = ((until - from) / 1000, fetch.start_us.saturating_sub(from) / 1000);
            let detail = format!("expected {wanted} ms after the answer, found {found} ms");
            verdict.add(Kind::RetryAfter, Some(fetch.line), Some(line), url(world, fetch), detail);
        }
    }
}

/// How long an answer asks to be left alone, microseconds.
fn wait_of(fetch: &Fetch, world: &World) -> Option<u64> {
    let asked = world.config().retry_after_s.saturating_mul(1_000_000);
    match (fetch.status, fetch.node.map(|n| n.what)) {
        (429, _) => Some(asked),
        (503, Some(Resource::Page(number))) => {
            let fate = world.fate(PageId { host: fetch.host, number });
            // Even hosts name a date: whole seconds, so up to one less.
            let cut = if fetch.host.0.is_multiple_of(2) { 1_000_000 } else { 0 };
            (fate == Some(Character::Unavailable)).then(|| asked.saturating_sub(cut))
        }
        _ => None,
    }
}
