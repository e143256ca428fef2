//! A run from start to finish.

use crate::commit::Committer;
use crate::config::Config;
use crate::crawl::{Ended, Parts, capacity, crawl};
use crate::derived::{Range, list_files, read_report, write_index, write_rejects, write_report};
use crate::error::Error;
use crate::layout::Layout;
use crate::open::{Opened, open};
use crate::page::Worker;
use crate::record::Tag;
use crate::report::{Progress, Report};
use crate::state::State;
use crate::stop::Stop;
use crate::writer::{Rhythm, failed, start};
use std::sync::Arc;
use trawl_archive::Format;
use trawl_fetch::Fetcher;
use trawl_frontier::RobotsPolicy;
use trawl_io::{Fs, RealFs};
use trawl_model::{Clock, IdSource};
use trawl_parse::robots::product_token;

/// Crawls. Returns when nothing is left, or some time after `stop` was asked; what was done is in the report and in
/// `run.json`. On an error, everything acknowledged before is safe, and the run can be resumed.
///
/// `ids` are 16 random bytes each, for record ids. `progress` is called every [`Config::progress_interval`].
pub fn run(
    config: Config,
    clock: Clock,
    ids: Arc<dyn IdSource>,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, Error> {
    run_in(Arc::new(RealFs), config, clock, ids, stop, progress)
}

/// [`run`] on any file system.
pub fn run_in(
    fs: Arc<dyn Fs>,
    mut config: Config,
    clock: Clock,
    ids: Arc<dyn IdSource>,
    stop: &Stop,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report, Error> {
    check(&config)?;
    let layout = Layout::new(&config.out);
    let _lock = layout.lock(&*fs, &config.software, clock.now())?;
    config.fetch.spool_dir = layout.spool.clone();
    let fetcher = Fetcher::new(config.fetch.clone(), fs.clone())?;
    let Opened { tag, state, sink, digests, journal, durable, ranges } = open(&fs, &config, &layout, &clock, &ids)?;
    let old = read_report(&*fs, &layout);
    let mut report = report(&config, &tag, &state);
    write_report(&fs, &layout, &report)?;
    let worker = Worker {
        preparer: sink.preparer(),
        carries: sink.carries(),
        digests: digests.clone(),
        identity: config.frontier.identity,
        scope: config.scope,
        follow: config.frontier.max_depth > 0,
        embeds: config.embeds,
        obey: config.frontier.robots == RobotsPolicy::Honour,
        agent: product_token(&config.fetch.user_agent).to_owned(),
        run_id: tag.run.clone(),
        decode_bytes: config.decode_bytes,
    };
    let format = config.registry.format(&config.format)?;
    let rhythm = Rhythm { interval: config.commit_interval, bytes: config.commit_bytes };
    let committer = Committer::new(sink, digests, journal, durable);
    let mut writer = start(fs.clone(), layout.clone(), format.clone(), committer, ranges, rhythm, capacity(&config))?;
    let runtime = runtime(&config)?;
    let parts = Parts { state, fetcher, worker, items: writer.items.clone() };
    let ended = runtime.block_on(crawl(&config, &clock, parts, &mut writer, stop, progress));
    // Lookups that were given up may still sit on their threads.
    runtime.shutdown_background();
    drop(writer.items);
    let written = writer.thread.join().map_err(|_| failed("writer"))?;
    // If the writer failed, that is why the crawl did.
    let (ranges, Ended { state, complete }) = (written?, ended?);
    finish(&fs, &layout, &ranges, &state, &*format, &mut report)?;
    report.complete = complete;
    report.ended_at = Some(clock.now());
    report.files = list_files(&*fs, &layout, &config.registry, &old.map(|old| old.files).unwrap_or_default())?;
    write_report(&fs, &layout, &report)?;
    Ok(report)
}

/// Brings everything that is made from the journal up to date.
fn finish(
    fs: &Arc<dyn Fs>,
    layout: &Layout,
    ranges: &[Range],
    state: &State,
    format: &dyn Format,
    report: &mut Report,
) -> Result<(), Error> {
    write_index(fs, layout, ranges, format)?;
    if state.counts.rejects > 0 {
        write_rejects(fs, layout)?;
    }
    report.counts = state.counts.clone();
    report.left = state.frontier.pending() as u64;
    report.seeds = state.seeds.clone().unwrap_or_default();
    Ok(())
}

fn report(config: &Config, tag: &Tag, state: &State) -> Report {
    Report {
        tool: config.software.clone(),
        run_id: tag.run.clone(),
        arguments: config.arguments.clone(),
        seeds: state.seeds.clone().unwrap_or_default(),
        started_at: tag.started,
        ended_at: None,
        complete: false,
        left: state.frontier.pending() as u64,
        counts: state.counts.clone(),
        files: Vec::new(),
    }
}

fn check(config: &Config) -> Result<(), Error> {
    let at_least_one = |setting, value: usize| {
        let expected = "at least 1".to_owned();
        if value > 0 { Ok(()) } else { Err(Error::Setting { setting, expected, found: value.to_string() }) }
    };
    for (setting, part) in [("run-id", &config.run_id), ("prefix", &config.prefix)] {
        // Before anything is created: these become names of files, whatever the format.
        let fits = part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if !fits || part.len() > 100 || part.starts_with('.') || setting == "prefix" && part.is_empty() {
            let expected = "at most 100 letters, digits, '.', '_' or '-'".to_owned();
            return Err(Error::Setting { setting, expected, found: format!("{part:?}") });
        }
    }
    at_least_one("workers", config.workers)?;
    at_least_one("max-unacked", config.max_unacked)?;
    at_least_one("queue-high", config.queue_high)?;
    at_least_one("per-host", usize::try_from(config.frontier.per_host).unwrap_or(usize::MAX))?;
    at_least_one("max-attempts", usize::try_from(config.frontier.max_attempts).unwrap_or(usize::MAX))
}

fn runtime(config: &Config) -> Result<tokio::runtime::Runtime, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if config.threads > 0 {
        builder.worker_threads(config.threads);
    }
    builder.thread_name("trawl-net").enable_all().build().map_err(|source| Error::Thread { what: "network", source })
}
