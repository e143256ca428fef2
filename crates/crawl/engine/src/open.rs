//! Opening a run: a new one, or one that goes on after a stop or a crash.

use crate::commit::{Beside, Committer};
use crate::config::{Config, Start};
use crate::error::Error;
use crate::heritrix_log::LogFile;
use crate::layout::Layout;
use crate::page::rules_of;
use crate::record::{PROGRESS_SLOT, ProgressNote, RUN_SLOT, RunNote, VERSION};
use crate::report::Leg;
use crate::state::State;
use std::collections::BTreeMap;
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

/// Opens a run in a directory that is locked, and notes that it was started. `begun` if its log says that it was before.
pub(crate) fn open(
    fs: &Arc<dyn Fs>,
    config: &Config,
    layout: &Layout,
    clock: &Clock,
    ids: &Arc<dyn IdSource>,
    begun: bool,
) -> Result<Opened, Error> {
    let format = config.registry.format(&config.format)?;
    check_compression(&*format, config.compress.as_deref())?;
    let open_digests = || -> Result<Option<Arc<dyn Digests>>, Error> {
        let Some(stem) = &config.digests else { return Ok(None) };
        Ok(Some(Arc::new(DigestStore::open(fs, stem, &config.software, clock)?)))
    };
    // What cannot be opened must not cost the crawl that is to be replaced.
    let opened = if config.start == Start::Overwrite { open_digests()? } else { None };
    layout.begin(fs, &config.registry, config.start, begun)?;
    let agent = product_token(&config.fetch.user_agent).to_owned();
    let mut settings = config.frontier.clone();
    settings.parse_robots = Arc::new(move |text| rules_of(text, &agent));
    // The spool has the links of pages at an older limit.
    settings.reopens = true;
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
            let depth = config.frontier.max_depth;
            RunNote {
                crawl: VERSION,
                run,
                started: now,
                format,
                legs,
                inputs,
                seeds,
                spools,
                depth,
                directories: Vec::new(),
            }
        }
    };
    let progress: ProgressNote = read_note(&frontier, PROGRESS_SLOT)?.unwrap_or_default();
    let run = check_depth(run, config, &progress)?;
    check_no_parent(&run, config)?;
    let creation = creation(fs, config, layout, &run.run, clock, ids);
    let digests = if opened.is_some() { opened } else { open_digests()? };
    let committed = progress.archive.clone().map(|archive| archive.durable());
    let (spool, rejects) = (progress.spool.clone(), progress.rejects);
    let spools: Vec<_> = run.spools.iter().chain(&progress.spool).cloned().collect();
    let (log, closed) = (progress.log, run.spools.clone());
    let mut state = State::new(config, fs, layout, frontier, run, progress);
    state.read_hosts(&spools, digests.as_deref(), now)?;
    // The run, and with which settings it was started, is in the log before there is any other file: a resume that finds the file
    // finds whose it is, and a resume goes on as this start was meant.
    let leg = Leg {
        started_at: now,
        ended_at: None,
        arguments: config.arguments.iter().map(|text| trawl_url::without_userinfo(text).into_owned()).collect(),
        seeds: state.new_seeds(&config.seeds)?,
        settings: config.settings.clone(),
    };
    state.leg(leg);
    state.commit()?;
    state.reopen(now)?;
    state.frontier.sync()?;
    let log = LogFile::open(fs, layout, log, &closed, spool.as_ref())?;
    let sink = match resume {
        true => format.resume(creation, committed.as_ref())?,
        false => format.create(creation)?,
    };
    let (preparer, carries) = (sink.preparer(), sink.carries());
    let max_depth = config.frontier.max_depth;
    let keep_links = max_depth > 0 && max_depth < u32::MAX;
    let committer = Committer::new(fs, layout, sink, digests.clone(), Beside { spool, rejects, log }, keep_links)?;
    Ok(Opened { state, committer, preparer, carries, digests })
}

/// What the log says of the run in a directory; `None` if there is none.
pub(crate) fn read_run(fs: &dyn Fs, layout: &Layout) -> Result<Option<RunNote>, Error> {
    if !Frontier::exists(fs, &layout.frontier)? {
        return Ok(None);
    }
    Frontier::read_note(fs, &layout.frontier, RUN_SLOT)?.as_deref().map(parse_note).transpose()
}

fn read_note<T: serde::de::DeserializeOwned>(frontier: &Frontier, slot: u8) -> Result<Option<T>, Error> {
    frontier.kept_note(slot).map(parse_note).transpose()
}

fn parse_note<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes)
        .map_err(|e| Error::Note { what: "a note of a crawl in its frontier's log", found: e.to_string() })
}

/// A deeper run goes on from the pages at its old limit, whose links are in the spool. At depth 0 links are not looked for.
fn check_depth(mut run: RunNote, config: &Config, progress: &ProgressNote) -> Result<RunNote, Error> {
    let depth = config.frontier.max_depth;
    if depth > 0 && run.depth == 0 && progress.counts.captures > 0 {
        let expected = "0, as when the run began, because its pages were fetched without looking for links".to_owned();
        return Err(Error::Setting { setting: "depth", expected, found: depth.to_string() });
    }
    run.depth = depth;
    Ok(run)
}

/// The directories of seeds are noted while seeds are read, if `--no-parent` is on. Without them every link would be refused.
fn check_no_parent(run: &RunNote, config: &Config) -> Result<(), Error> {
    let of = |settings: &BTreeMap<String, Vec<String>>| settings.get("no_parent").cloned();
    let before = run.legs.last().and_then(|leg| of(&leg.settings));
    if config.rules.no_parent && before.is_some() && before != of(&config.settings) {
        let expected =
            "not given, as when the run began, because it did not note the directories of its seeds".to_owned();
        return Err(Error::Setting { setting: "no-parent", expected, found: "given".to_owned() });
    }
    Ok(())
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
