//! `trawl demo`: the whole way in one command, without a network.

mod check;
mod list;

use super::lake::{Added, Done, add};
use crate::exit::Status;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::units::{address, show_bytes, show_count};
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trawl_engine::{Report, Scope, SeedInput};
use trawl_ingest::IngestSettings;
use trawl_serve::Running;
use trawl_testweb::{TestWeb, World};

/// Links followed from the seeds: enough to reach every page of the demo's web.
const DEPTH: u32 = 12;
/// Marks a directory that this command made and may remove.
const MARK: &str = "trawl-demo.json";

/// Shows everything at once: a synthetic web, a crawl, a lake, the explorer page
///
/// Needs no network. Starts a web of a few hundred hosts on this machine, crawls it into WARC files, adds the crawl and a URL list
/// to a lake as two datasets, and serves the explorer page until ctrl-c. All files are in --dir.
///
/// With --check it checks that every page was archived exactly once and that every answer is right, and exits.
///
/// Example: trawl demo --listen 8080
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Directory for all files; one that an earlier demo made is replaced
    #[arg(long, default_value = "trawl-demo", value_name = "DIR")]
    dir: PathBuf,

    /// Check every answer and exit instead of serving
    #[arg(long)]
    check: bool,

    /// Address of the explorer page; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR", value_parser = address)]
    listen: SocketAddr,

    /// Number from which the web is generated
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What the demo made: what --check checks.
struct Made {
    world: World,
    crawl_dir: PathBuf,
    lake_dir: PathBuf,
    list: Vec<list::Listed>,
    report: Report,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let interrupt = Interrupt::install()?;
    if args.listen.port() != 0 {
        // A port that is taken is reported now, not after the crawl.
        let taken = |source| trawl_serve::Error::Listen { address: args.listen, source };
        std::net::TcpListener::bind(args.listen).map_err(taken)?;
    }
    clear(&args.dir)?;
    let made = make(&args, &interrupt, out)?;
    if !made.report.complete {
        bail!("interrupted");
    }
    let on_event = Box::new(|event: &trawl_serve::Event<'_>| super::serve::tell(event, super::serve::Log::Off));
    let config = trawl_serve::Config { listen: args.listen, on_event, ..trawl_serve::Config::default() };
    let running = super::serve::start(&made.lake_dir, config)?;
    if args.check {
        let checks = check::run(&made, running.address())?;
        running.stop()?;
        out.fact(&serde_json::json!({ "checks": checks }), |w| writeln!(w, "all {checks} checks passed"))?;
        // A check leaves nothing behind: its result is the exit code.
        clear(&args.dir)?;
        return Ok(Status::Done);
    }
    invite(&args, &made, &running, out)?;
    out.flush()?;
    interrupt.wait();
    running.stop()?;
    Ok(Status::Done)
}

fn make(args: &Args, interrupt: &Interrupt, out: &mut Output) -> anyhow::Result<Made> {
    let (crawl_dir, lake_dir) = (args.dir.join("crawl"), args.dir.join("lake"));
    let web = TestWeb::start(web_config(args.seed))?;
    let world = World::new(web.world().config())?;
    let hosts = world.hosts().len() as u64;
    say(out, "web", || format!("{} hosts on {}", show_count(hosts), web.addr()))?;

    let report = super::crawl::crawl(crawl_config(&crawl_dir, &web)?, interrupt, out)?;
    web.stop()?;
    say(out, "crawl", || {
        let counts = &report.counts;
        format!("{} captures, {}", show_count(counts.captures), show_bytes(counts.body_bytes))
    })?;

    let list = list::make(&world);
    let list_file = args.dir.join("list.jsonl");
    std::fs::write(&list_file, list::jsonl(&list)).with_context(|| format!("cannot write {}", list_file.display()))?;
    let lake = lake_dir::open_or_make(&lake_dir)?;
    for (name, source, path) in [
        ("crawl", "the crawl of the demo's web", &crawl_dir),
        ("list", "a list that somebody else made of the same web", &list_file),
    ] {
        let added = Added {
            name: name.into(),
            source: Some(source.into()),
            paths: vec![path.clone()],
            format: None,
            options: trawl_lists::Options::default(),
            rehash: false,
        };
        let temp = lake_dir.join("tmp");
        std::fs::create_dir_all(&temp)?;
        let done = add(&lake, &lake_dir, &added, &IngestSettings::new(system::nonce()?, temp), out)?;
        say(out, "lake", || summary(&done))?;
    }
    Ok(Made { world, crawl_dir, lake_dir, list, report })
}

/// The small, well-behaved web, whose hosts ask for delays that fit into a demo.
fn web_config(seed: u64) -> trawl_testweb::Config {
    let (min_crawl_delay_ms, max_crawl_delay_ms) = (20, 120);
    trawl_testweb::Config { seed, min_crawl_delay_ms, max_crawl_delay_ms, ..trawl_testweb::Config::default() }
}

fn crawl_config(dir: &Path, web: &trawl_testweb::Running) -> anyhow::Result<trawl_engine::Config> {
    let seeds = web.world().seeds().into_iter().map(SeedInput::Url).collect();
    let mut config = trawl_engine::Config::new(dir, seeds);
    config.frontier.max_depth = DEPTH;
    config.scope = Scope::Any;
    // Our own web, on our own machine: what would be rude elsewhere is only quick here.
    config.frontier.delay = Duration::from_millis(2);
    config.frontier.per_ip = None;
    config.fetch.user_agent = concat!("trawl/", env!("CARGO_PKG_VERSION"), " (demo)").into();
    config.fetch.connect_to = vec![format!("::{}", web.addr()).parse()?];
    Ok(config)
}

fn summary(done: &Done) -> String {
    let (rows, bytes) = (show_count(done.ingest.rows), show_bytes(done.ingest.bytes));
    format!("dataset {:?}: {rows} rows, {bytes} of Parquet", done.dataset)
}

fn say(out: &mut Output, part: &str, text: impl FnOnce() -> String) -> io::Result<()> {
    let text = text();
    out.fact(&serde_json::json!({ "step": part, "done": text }), |w| writeln!(w, "{part:<6} {text}"))?;
    out.flush()
}

fn invite(args: &Args, made: &Made, running: &Running, out: &mut Output) -> io::Result<()> {
    let address = running.address();
    let (dir, lake, crawl) = (args.dir.display(), made.lake_dir.display(), made.crawl_dir.display());
    let most = made.world.hosts().iter().max_by_key(|host| host.pages);
    let domain = most.map(|host| host.registrable()).unwrap_or_default();
    out.fact(&serde_json::json!({ "url": format!("http://{address}/"), "dir": args.dir }), |w| {
        writeln!(w, "\nEverything is in {dir}. Try, in another terminal:")?;
        writeln!(w, "  trawl inspect {crawl}")?;
        writeln!(w, "  trawl query domain {domain} --lake {lake}")?;
        writeln!(w, "  curl http://{address}/v1/domain/{domain}")?;
        writeln!(w, "\nThe explorer page: http://{address}/   (ctrl-c ends it)")
    })
}

/// Makes `dir` new and ours. What an earlier demo left there goes; anything else stays and is an error.
fn clear(dir: &Path) -> anyhow::Result<()> {
    if dir.is_file() {
        bail!("{} is a file: --dir names a directory", dir.display());
    }
    let mark = dir.join(MARK);
    let exists = std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    if exists && !mark.exists() {
        bail!("{} is not empty and no demo made it: choose another --dir", dir.display());
    }
    if exists {
        std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let facts = serde_json::json!({ "made_by": concat!("trawl/", env!("CARGO_PKG_VERSION")), "at": system::now() });
    std::fs::write(&mark, facts.to_string()).with_context(|| format!("cannot write {}", mark.display()))
}
