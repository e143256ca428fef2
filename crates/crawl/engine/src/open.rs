//! Opening a run: a new one, or one that goes on after a stop or a crash.

use crate::commit::Committer;
use crate::config::Config;
use crate::error::Error;
use crate::layout::Layout;
use crate::page::rules_of;
use crate::record::{PROGRESS_SLOT, ProgressNote, RUN_SLOT, RunNote, VERSION};
use crate::state::State;
use std::sync::Arc;
use trawl_archive::{About, Creation, DigestStore, Digests, Target, check_compression};
use trawl_frontier::{Frontier, RobotsPolicy};
use trawl_io::{Fs, describe_holder};
use trawl_model::{Carries, Clock, IdSource, Preparer};
use trawl_parse::robots::product_token;

/// A run ready to go.
pub(crate) struct Opened {
    pub state: State,
    pub committer: Committer,
    pub preparer: Arc<dyn Preparer>,
    pub carries: Carries,
    pub digests: Option<Arc<dyn Digests>>,
}

/// Opens a run in a directory that is locked.
pub(crate) fn open(
    fs: &Arc<dyn Fs>,
    config: &Config,
    layout: &Layout,
    clock: &Clock,
    ids: &Arc<dyn IdSource>,
) -> Result<Opened, Error> {
    let format = config.registry.format(&config.format)?;
    check_compression(&*format, config.compress.as_deref())?;
    layout.begin(fs, &config.registry, config.start)?;
    let agent = product_token(&config.fetch.user_agent).to_owned();
    let mut settings = config.frontier.clone();
    settings.parse_robots = Arc::new(move |text| rules_of(text, &agent));
    let now = clock.now();
    let holder = describe_holder(&config.software, &now.rfc3339_seconds());
    let frontier = Frontier::open(fs, &layout.frontier, settings, now, &holder)?;
    let run = read_note::<RunNote>(&frontier, RUN_SLOT)?;
    let resume = run.is_some();
    let run = match run {
        Some(run) => check_run(run, config)?,
        None => {
            let run = if config.run_id.is_empty() { now.digits14() } else { config.run_id.clone() };
            let format = config.format.clone();
            let (legs, inputs, seeds, spools) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            RunNote { crawl: VERSION, run, started: now, format, legs, inputs, seeds, spools, directories: Vec::new() }
        }
    };
    let progress: ProgressNote = read_note(&frontier, PROGRESS_SLOT)?.unwrap_or_default();
    let creation = creation(fs, config, layout, &run.run, clock, ids);
    let digests = match &config.digests {
        Some(stem) => Some(Arc::new(DigestStore::open(fs, stem, &config.software, clock)?) as Arc<dyn Digests>),
        None => None,
    };
    let committed = progress.archive.clone().map(|archive| archive.durable());
    let (spool, rejects) = (progress.spool.clone(), progress.rejects);
    let mut state = State::new(config, fs, layout, frontier, run, progress);
    // The run is in the log before the archive has a file: whoever finds the file finds whose it is.
    state.commit()?;
    state.frontier.sync()?;
    let sink = match resume {
        true => format.resume(creation, committed.as_ref())?,
        false => format.create(creation)?,
    };
    let (preparer, carries) = (sink.preparer(), sink.carries());
    let max_depth = config.frontier.max_depth;
    let keep_links = max_depth > 0 && max_depth < u32::MAX;
    let committer = Committer::new(fs, layout, sink, digests.clone(), spool, rejects, keep_links)?;
    Ok(Opened { state, committer, preparer, carries, digests })
}

fn read_note<T: serde::de::DeserializeOwned>(frontier: &Frontier, slot: u8) -> Result<Option<T>, Error> {
    let read = |bytes| {
        serde_json::from_slice(bytes)
            .map_err(|e| Error::Note { what: "a note of a crawl in its frontier's log", found: e.to_string() })
    };
    frontier.kept_note(slot).map(read).transpose()
}

fn check_run(run: RunNote, config: &Config) -> Result<RunNote, Error> {
    let differs = |setting, expected: &str, found: &str| {
        Err(Error::Setting { setting, expected: format!("{expected}, as when the run began"), found: found.to_owned() })
    };
    if run.crawl != VERSION {
        return differs("version of the crawl", &VERSION.to_string(), &run.crawl.to_string());
    }
    if run.format != config.format {
        return differs("format", &run.format, &config.format);
    }
    if !config.run_id.is_empty() && config.run_id != run.run {
        return differs("run id", &run.run, &config.run_id);
    }
    Ok(run)
}

fn creation(
    fs: &Arc<dyn Fs>,
    config: &Config,
    layout: &Layout,
    run: &str,
    clock: &Clock,
    ids: &Arc<dyn IdSource>,
) -> Creation {
    let robots = match config.frontier.robots {
        RobotsPolicy::Honour => "obey",
        RobotsPolicy::Ignore => "ignore",
    };
    let about = About {
        software: config.software.clone(),
        operator: config.operator.clone(),
        robots: Some(robots.into()),
        user_agent: Some(config.fetch.user_agent.clone()),
        is_part_of: Some(run.to_owned()),
        ..About::default()
    };
    let (dir, prefix, run) = (layout.out.clone(), config.prefix.clone(), run.to_owned());
    let target = Target::Run { dir, prefix, run, roll_bytes: config.roll_bytes };
    Creation {
        about,
        compress: config.compress.clone(),
        level: config.level,
        ..Creation::new(fs.clone(), target, ids.clone(), clock.clone())
    }
}
