//! `trawl frontier bench`.

use super::engine::open;
use crate::exit::Status;
use crate::output::Output;
use crate::units::{bytes, show_bytes, show_count};
use anyhow::Context;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use trawl_frontier::{Answer, Candidate, Config, Frontier, Identity, LeaseId, Outcome, RobotsPolicy, Work};
use trawl_model::UnixMillis;
use trawl_url::WebUrl;

/// Measures a frontier on this machine
///
/// Offers made-up URLs, leases and settles all of them on a made-up clock, and prints how long each step took. With
/// --dir it writes, flushes and merges files there; without, it stays in memory.
///
/// Example:
///   trawl frontier bench --urls 1000000 --hosts 30000 --dir /tmp/frontier
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct BenchArgs {
    /// URLs
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    urls: u64,

    /// Hosts
    #[arg(long, default_value_t = 1_000, value_name = "N")]
    hosts: u64,

    /// An empty directory for the files
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Memory for URLs
    #[arg(long, default_value = "512MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

/// Runs the command.
pub fn run(args: &BenchArgs, out: &mut Output) -> anyhow::Result<Status> {
    let config = Config {
        identity: Identity::Key,
        robots: RobotsPolicy::Ignore,
        delay: Duration::from_secs(1),
        memory_bytes: usize::try_from(args.memory).unwrap_or(usize::MAX),
        ..Config::default()
    };
    let mut frontier = match &args.dir {
        Some(dir) if Frontier::exists(&trawl_io::RealFs, dir)? => {
            anyhow::bail!("{}: expected an empty directory, found a frontier", dir.display())
        }
        Some(dir) => open(dir, config)?,
        None => Frontier::in_memory(config),
    };
    let begun = Instant::now();
    let hosts = args.hosts.max(1);
    let mut offered = 0_u64;
    while offered < args.urls {
        let batch = offered..args.urls.min(offered.saturating_add(1000));
        offered = batch.end;
        let candidate = |n: u64| -> anyhow::Result<Candidate> {
            let url = WebUrl::parse(&format!("http://host-{}.example/page/{n}?id={n}", n % hosts))?;
            Ok(Candidate::seed(Identity::Key, url, None))
        };
        let candidates = batch.map(candidate).collect::<anyhow::Result<Vec<_>>>()?;
        frontier.offer(UnixMillis(0), &candidates)?;
        frontier.commit()?;
    }
    frontier.sync()?;
    let offered = begun.elapsed();
    let begun = Instant::now();
    let (mut now, mut settled, mut work) = (0, 0u64, Vec::new());
    while settled < args.urls {
        now += 1000;
        frontier.lease(UnixMillis(now), 1000, &mut work)?;
        let outcome = |work: Work| match work {
            Work::Fetch(lease) => match lease.id {
                LeaseId::Page(id) => Some(Outcome { id, answer: Answer::status(200), note: None }),
                LeaseId::Robots(_) => None,
            },
            Work::Refuse(..) => None,
        };
        let outcomes: Vec<Outcome> = work.drain(..).filter_map(outcome).collect();
        settled += outcomes.len() as u64;
        frontier.settle(UnixMillis(now), &outcomes)?;
        frontier.commit()?;
    }
    frontier.sync()?;
    let drained = begun.elapsed();
    let stats = frontier.store_stats();
    frontier.close().context("closing the frontier")?;
    let rate = |n: u64, time: Duration| n as f64 / time.as_secs_f64().max(1e-9);
    let fact = serde_json::json!({
        "urls": args.urls, "hosts": hosts,
        "offers_per_second": rate(args.urls, offered), "pairs_per_second": rate(args.urls, drained),
        "flushes": stats.flushes, "flushed_bytes": stats.flushed_bytes,
        "merges": stats.merges, "merged_bytes": stats.merged_bytes, "logged_bytes": stats.logged_bytes,
    });
    out.fact(&fact, |w| {
        writeln!(w, "{} URLs of {} hosts", show_count(args.urls), show_count(hosts))?;
        writeln!(w, "offers, URLs parsed: {:.0}/s", rate(args.urls, offered))?;
        writeln!(w, "leases and outcomes: {:.0}/s", rate(args.urls, drained))?;
        writeln!(
            w,
            "{} flushes, {}; {} merges, {}; log {}",
            stats.flushes,
            show_bytes(stats.flushed_bytes),
            stats.merges,
            show_bytes(stats.merged_bytes),
            show_bytes(stats.logged_bytes)
        )
    })?;
    Ok(Status::Done)
}
