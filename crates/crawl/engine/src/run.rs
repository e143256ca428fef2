//! A run from start to finish.

use crate::config::{Config, Start};
use crate::crawl::{Ended, Parts, capacity, crawl};
use crate::derived::{list_files, read_report, write_index, write_rejects, write_report};
use crate::descriptors;
use crate::error::Error;
use crate::hashed::HashedFs;
use crate::layout::Layout;
use crate::open::{Opened, open, read_run};
use crate::page::Worker;
use crate::report::{Progress, Report, UrlSums};
use crate::seeds::SeedInput;
use crate::state::State;
use crate::stop::Stop;
use crate::writer::{Rhythm, failed, start};
use std::collections::BTreeMap;
use std::path::Path;
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
    for seed in &config.seeds {
        // Before anything is written: a run whose list cannot be read could never be continued.
        seed.check(&config.registry, &config.lists)?;
    }
    let layout = Layout::new(&config.out);
    if config.start == Start::Overwrite {
        layout.check_overwrite(&*fs, &config)?;
    }
    let hashed = Arc::new(HashedFs::new(fs, &layout.out, &layout.inner));
    let fs: Arc<dyn Fs> = hashed.clone();
    let _lock = layout.lock(&*fs, &config.software, clock.now())?;
    config.fetch.spool_dir = layout.spool.clone();
    // Whatever is there goes with --overwrite, readable or not.
    let run = if config.start == Start::Overwrite { None } else { read_run(&*fs, &layout)? };
    let legs = run.as_ref().map_or(0, |run| run.legs.len());
    if config.start == Start::Resume && legs == 0 && config.seeds.is_empty() {
        let expected = format!("the URLs or lists to start from, because no run was begun in {}", config.out.display());
        return Err(Error::Setting { setting: "seeds", expected, found: "none".into() });
    }
    let old = read_report(&*fs, &layout);
    // A start that was killed before it wrote its report is in the log alone.
    let told = old.as_ref().filter(|old| old.legs.len() == legs);
    if let Some(done) = complete_run(&*fs, &config, &layout, told)? {
        return Ok(done);
    }
    descriptors::bound(&mut config)?;
    config.fetch.pool.per_origin = config.fetch.pool.per_origin.max(config.frontier.per_host as usize);
    config.fetch.per_address = config.frontier.per_ip.map(|limit| limit as usize);
    config.fetch.exempt.clone_from(&config.frontier.exempt);
    if config.frontier.per_ip.is_some() {
        // Twice as many as really are looked up, so that the fetcher never waits for the next one. What waits here has no order:
        // new names would stand behind those that failed before.
        config.frontier.lookups = config.fetch.dns.concurrent.saturating_mul(2);
    }
    let fetcher = Fetcher::new(config.fetch.clone(), fs.clone())?;
    let Opened { state, committer, preparer, carries, digests } = open(&fs, &config, &layout, &clock, &ids, legs > 0)?;
    let mut report = report(&config, &state);
    write_report(&fs, &layout, &report)?;
    let worker = Worker {
        preparer,
        carries,
        digests,
        identity: config.frontier.identity,
        queue: config.frontier.queue,
        scope: config.scope,
        rules: config.rules.clone(),
        store_unchanged: config.store_unchanged,
        follow: config.frontier.max_depth > 0,
        sitemaps: config.sitemaps,
        embeds: config.embeds,
        obey: config.frontier.robots == RobotsPolicy::Honour,
        agent: product_token(&config.fetch.user_agent).to_owned(),
        run_id: state.run.run.clone(),
        decode_bytes: config.decode_bytes,
        max_links: config.max_links,
    };
    let format = config.registry.format(&config.format)?;
    let rhythm = Rhythm { interval: config.commit_interval, bytes: config.commit_bytes };
    let mut writer = start(fs.clone(), layout.clone(), format.clone(), committer, rhythm, capacity(&config))?;
    let runtime = runtime(&config)?;
    let parts = Parts { state, fetcher, worker, items: writer.items.clone() };
    let ended = runtime.block_on(crawl(&config, &clock, parts, &mut writer, stop, progress));
    // Lookups that were given up may still sit on their threads.
    runtime.shutdown_background();
    drop(writer.items);
    let written = writer.thread.join().map_err(|_| failed("writer"))?;
    // If the writer failed, that is why the crawl did.
    written?;
    if let Err(Error::TooManyRejects { .. }) = &ended {
        // The error sends its reader there.
        write_rejects(&fs, &layout, fs.metadata(&layout.reject_spool())?.len)?;
    }
    let Ended { mut state, complete } = ended?;
    report.complete = complete;
    report.ended_at = Some(clock.now());
    if let Some(leg) = state.run.legs.last_mut() {
        leg.ended_at = report.ended_at;
    }
    if complete {
        // What is left is what a limit holds back.
        state.progress.counts.over_limit = state.frontier.pending();
    }
    finish(&fs, &layout, &mut state, &*format, &mut report)?;
    report.files = list_files(&hashed, &layout, &config.registry, &old.map(|old| old.files).unwrap_or_default())?;
    write_report(&fs, &layout, &report)?;
    if complete {
        // As a file, so that it can be read without a log: only what changed since the last one is written.
        state.frontier.flush()?;
    }
    state.frontier.close()?;
    Ok(report)
}

/// The settings that a run in `out` was last started with, if there is one: see [`Config::settings`]. They are in its log from
/// the moment it starts; `run.json` is written later.
pub fn settings_of(out: &Path) -> Result<Option<BTreeMap<String, Vec<String>>>, Error> {
    let run = read_run(&RealFs, &Layout::new(out))?;
    Ok(run.and_then(|run| run.legs.into_iter().next_back()).map(|leg| leg.settings))
}

/// The report of a run that is complete and asked to go on, with nothing new to do.
fn complete_run(fs: &dyn Fs, config: &Config, layout: &Layout, old: Option<&Report>) -> Result<Option<Report>, Error> {
    let Some(old) = old.filter(|old| old.complete) else { return Ok(None) };
    let limits = ["max_pages", "max_pages_per_host", "max_bytes", "max_bytes_per_host", "max_time_per_host"];
    let before = old.legs.last().map(|leg| &leg.settings);
    let differs =
        |id: &str, now: &Vec<String>| before.and_then(|before| before.get(id)).is_some_and(|before| before != now);
    // What a limit held back goes on with another one.
    let lets_go = config.settings.iter().any(|(id, now)| {
        let held_back = match id.as_str() {
            // Links that were too deep are among these.
            "depth" => old.counts.outside,
            id if limits.contains(&id) => old.counts.over_limit,
            _ => 0,
        };
        held_back > 0 && differs(id, now)
    });
    if config.start != Start::Resume || lets_go || !trawl_frontier::Frontier::exists(fs, &layout.frontier)? {
        return Ok(None);
    }
    let refuse = |setting, found| {
        let expected = "those of the run, which is complete (start another one with a new --out)".into();
        Err(Error::Setting { setting, expected, found })
    };
    for seed in config.seeds.iter().map(|seed| seed.clone().for_keeps()) {
        let name = seed.name();
        let mut read = old.seeds.iter().filter(|known| known.name == name).peekable();
        // Seeds that are new are added: the frontier knows what was fetched.
        if read.peek().is_none() || seed.is_always_new() {
            return Ok(None);
        }
        // A list may have grown, and so may an archive, of which no digest is noted: it is read again.
        if let SeedInput::File(_) = &seed {
            let found = seed.sha256()?;
            if read.all(|known| known.sha256 != found) {
                return Ok(None);
            }
        }
    }
    if let Some((id, now)) = config.settings.iter().find(|(id, now)| differs(id, now)) {
        return refuse("settings", format!("--{} {}", id.replace('_', "-"), now.join(" ")));
    }
    Ok(Some(old.clone()))
}

/// Brings everything that is made at the end up to date.
fn finish(
    fs: &Arc<dyn Fs>,
    layout: &Layout,
    state: &mut State,
    format: &dyn Format,
    report: &mut Report,
) -> Result<(), Error> {
    state.note_end();
    state.commit()?;
    state.frontier.sync()?;
    write_index(fs, layout, &state.spools(), format, report.complete)?;
    state.hosts.write(fs, layout, &state.frontier)?;
    if state.counts().rejects > 0 {
        write_rejects(fs, layout, state.progress.rejects)?;
    }
    report.legs = state.run.legs.clone();
    report.counts = state.counts().clone();
    report.left = state.frontier.pending() - report.counts.over_limit;
    report.seeds_unread = !state.seeds_ended();
    report.urls = UrlSums::new(&report.counts, report.left);
    report.seeds = state.run.seeds.clone();
    Ok(())
}

fn report(config: &Config, state: &State) -> Report {
    let left = state.frontier.pending();
    Report {
        tool: config.software.clone(),
        run_id: state.run.run.clone(),
        legs: state.run.legs.clone(),
        seeds: state.run.seeds.clone(),
        started_at: state.run.started,
        ended_at: None,
        complete: false,
        left,
        seeds_unread: !state.seeds_ended(),
        urls: UrlSums::new(state.counts(), left),
        counts: state.counts().clone(),
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
