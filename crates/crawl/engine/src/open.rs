//! Opening a run: a new one, or one that goes on after a stop or a crash.

use crate::config::Config;
use crate::derived::{Range, extend};
use crate::error::Error;
use crate::layout::Layout;
use crate::record::{Record, Tag, VERSION, decode, identity_name};
use crate::state::State;
use std::sync::Arc;
use trawl_archive::{About, Creation, DigestStore, Digests, Target, check_compression};
use trawl_frontier::RobotsPolicy;
use trawl_io::{Fs, Journal, journal};
use trawl_model::{CaptureSink, Clock, Durable, IdSource};
use trawl_parse::robots::product_token;

/// A run ready to go.
pub(crate) struct Opened {
    pub tag: Tag,
    pub state: State,
    pub sink: Box<dyn CaptureSink>,
    pub digests: Option<Arc<dyn Digests>>,
    pub journal: Journal,
    pub durable: Durable,
    pub ranges: Vec<Range>,
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
    let resume = layout.begin(&**fs, &config.registry, config.start)?;
    let agent = product_token(&config.fetch.user_agent).to_owned();
    let mut state = State::new(config, agent, fs.clone(), layout.journal.clone());
    let options = journal::Options::default();
    let digests = match &config.digests {
        Some(stem) => Some(Arc::new(DigestStore::open(fs, stem, &config.software, clock)?) as Arc<dyn Digests>),
        None => None,
    };
    let creation = |tag: &Tag| creation(fs, config, layout, tag, clock, ids);
    if !resume {
        let now = clock.now();
        let run = if config.run_id.is_empty() { now.digits14() } else { config.run_id.clone() };
        let identity = identity_name(config.frontier.identity).to_owned();
        let tag = Tag { crawl: VERSION, run, started: now, identity, format: config.format.clone() };
        let bytes = serde_json::to_vec(&tag).unwrap_or_default();
        let journal = Journal::create(fs, &layout.journal, &bytes, options)?;
        let sink = format.create(creation(&tag))?;
        return Ok(Opened { tag, state, sink, digests, journal, durable: Durable::default(), ranges: Vec::new() });
    }
    let header = journal::JournalReader::open(&**fs, &layout.journal, &options)?.header().clone();
    let tag = check_tag(&header.tag, config, layout)?;
    let (mut committed, mut ranges, mut failed) = (None, Vec::new(), None);
    let (journal, _) = Journal::recover(fs, &layout.journal, options, &mut |position, batch| {
        // The visitor cannot carry this crate's error: the first one is kept, and the rest of the journal passed over.
        if failed.is_none() {
            let digests = digests.as_deref();
            failed = replay(&mut state, digests, layout, position.offset, batch, &mut committed, &mut ranges).err();
        }
        Ok(())
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let sink = format.resume(creation(&tag), committed.as_ref())?;
    let durable = committed.unwrap_or_default();
    state.frontier.recovered(clock.now());
    Ok(Opened { tag, state, sink, digests, journal, durable, ranges })
}

/// Does again what a batch says was done.
fn replay(
    state: &mut State,
    digests: Option<&dyn Digests>,
    layout: &Layout,
    offset: u64,
    batch: &journal::Batch,
    committed: &mut Option<Durable>,
    ranges: &mut Vec<Range>,
) -> Result<(), Error> {
    for record in batch.records() {
        match decode(&layout.journal, offset, record)? {
            Record::Seeds(seeds) => state.seeds(seeds),
            Record::Leg(leg) => state.leg(leg),
            Record::Event(event) => {
                if let Some(digests) = digests {
                    digests.remember_row(&event.row)?;
                }
                state.event(*event, None, offset)?;
            }
            Record::Commit(commit) => {
                extend(ranges, &commit.file, offset);
                *committed = Some(commit.durable());
            }
        }
    }
    Ok(())
}

fn check_tag(bytes: &[u8], config: &Config, layout: &Layout) -> Result<Tag, Error> {
    let tag: Tag = serde_json::from_slice(bytes).map_err(|e| Error::Journal {
        path: layout.journal.clone(),
        offset: 0,
        expected: "the tag of a crawl's journal",
        found: e.to_string(),
    })?;
    let differs = |setting, expected: &str, found: &str| {
        Err(Error::Setting { setting, expected: format!("{expected}, as when the run began"), found: found.to_owned() })
    };
    let identity = identity_name(config.frontier.identity);
    if tag.crawl != VERSION {
        return differs("journal version", &VERSION.to_string(), &tag.crawl.to_string());
    }
    if tag.identity != identity {
        return differs("identity of URLs", &tag.identity, identity);
    }
    if tag.format != config.format {
        return differs("format", &tag.format, &config.format);
    }
    if !config.run_id.is_empty() && config.run_id != tag.run {
        return differs("run id", &tag.run, &config.run_id);
    }
    Ok(tag)
}

fn creation(
    fs: &Arc<dyn Fs>,
    config: &Config,
    layout: &Layout,
    tag: &Tag,
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
        is_part_of: Some(tag.run.clone()),
        ..About::default()
    };
    let (dir, prefix, run) = (layout.out.clone(), config.prefix.clone(), tag.run.clone());
    let target = Target::Run { dir, prefix, run, roll_bytes: config.roll_bytes };
    Creation {
        about,
        compress: config.compress.clone(),
        level: config.level,
        ..Creation::new(fs.clone(), target, ids.clone(), clock.clone())
    }
}
