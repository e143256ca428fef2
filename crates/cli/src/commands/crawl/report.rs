//! What a crawl came to, for people, and its exit code.

use crate::exit::Status;
use crate::units::{show_bytes, show_count};
use std::io::{self, Write};
use std::path::Path;
use trawl_engine::Report;

/// A crawl that was stopped, had bad seeds, gave something up, or got no answer from anybody is done with findings.
pub fn status(report: &Report) -> Status {
    let silence = report.counts.captures > 0 && report.counts.responses() == 0;
    Status::from_findings(!report.complete || report.counts.rejects > 0 || report.counts.given_up > 0 || silence)
}

/// Prints the report of the crawl in `dir`; `interrupted` if somebody stopped it.
pub fn write_report(report: &Report, dir: &Path, interrupted: bool, w: &mut dyn Write) -> io::Result<()> {
    let counts = &report.counts;
    let failed = counts.failures.values().sum::<u64>();
    let verb = if report.complete { "done" } else { "stopped" };
    writeln!(
        w,
        "{verb}: {} captures ({} of robots.txt), {} in bodies, {} without a response",
        show_count(counts.captures),
        show_count(counts.robots_files),
        show_bytes(counts.body_bytes),
        show_count(failed),
    )?;
    for (status, n) in &counts.statuses {
        writeln!(w, "  status {status}  {}", show_count(*n))?;
    }
    for (class, n) in &counts.failures {
        writeln!(w, "  {class}  {}", show_count(*n))?;
    }
    if counts.rejects > 0 {
        writeln!(w, "  {} items of the seeds are not URLs: see rejects.jsonl", show_count(counts.rejects))?;
    }
    for (why, n) in &counts.truncated {
        writeln!(w, "  cut by {why}  {}", show_count(*n))?;
    }
    for file in &report.files {
        writeln!(w, "  {}  {}", file.name, show_bytes(file.bytes))?;
    }
    let sums = &report.urls;
    writeln!(
        w,
        "{} URLs offered: {} fetched, {} failed, {} excluded, {} rejected, {} waiting; {} links out of scope, {} known",
        show_count(sums.offered),
        show_count(sums.fetched),
        show_count(sums.failed),
        show_count(sums.excluded),
        show_count(sums.rejected),
        show_count(sums.waiting),
        show_count(counts.outside),
        show_count(counts.known_links),
    )?;
    for (rule, n) in &counts.refused {
        writeln!(w, "{} links refused by {rule}", show_count(*n))?;
    }
    if counts.cut_links > 0 {
        writeln!(
            w,
            "{} links were not followed because their page has more than --max-links, or 16 MiB of them, or they are too long",
            show_count(counts.cut_links)
        )?;
    }
    if counts.sitemap_rejects > 0 {
        writeln!(w, "{} entries of sitemaps are not URLs", show_count(counts.sitemap_rejects))?;
    }
    for (why, n) in &counts.sitemaps_unread {
        let how = if why == "damaged" { "read only in part" } else { "not read" };
        writeln!(w, "{} sitemaps were {how}: {why}", show_count(*n))?;
    }
    if let Some(n) = counts.failures.get("private_address") {
        writeln!(
            w,
            "{} captures failed because a host has only private addresses; --allow-private HOST allows it",
            show_count(*n)
        )?;
    }
    if counts.parked > 0 {
        writeln!(
            w,
            "{} links look endless (calendars, sessions, filters) and were not followed; to list them: trawl frontier pack \
             {} --out all.meguri && trawl cat all.meguri --status trapped",
            show_count(counts.parked),
            dir.join(".crawl/frontier").display(),
        )?;
    }
    if counts.over_limit > 0 {
        writeln!(
            w,
            "a limit was reached: {} URLs were not fetched because of --max-pages, --max-bytes or another limit; --resume \
             --change with a larger limit continues",
            show_count(counts.over_limit),
        )?;
    }
    if !report.complete {
        let why = if interrupted { "" } else { "--max-time was reached: " };
        let left = show_count(report.left);
        match report.seeds_unread {
            true => writeln!(
                w,
                "{why}at least {left} URLs are left, as the seeds were not read to their end; --resume continues"
            )?,
            false => writeln!(w, "{why}{left} URLs are left; --resume continues")?,
        }
    }
    for (host, n) in counts.given_up_hosts.iter().take(20) {
        writeln!(w, "  gave up {host}: {} URLs", show_count(*n))?;
    }
    if counts.given_up > 0 {
        writeln!(
            w,
            "{} URLs were given up: trawl crawl --retry-from {} --out AGAIN tries them again (with --retry-class only \
             some of them)",
            show_count(counts.given_up),
            dir.join("captures.parquet").display(),
        )?;
    }
    Ok(())
}
