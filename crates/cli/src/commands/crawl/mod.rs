//! `trawl crawl`: frontier, fetch and archive.

mod bar;
mod kept;
mod metrics;
mod network;
mod report;
mod scope;

pub use bar::crawl;
pub use kept::{note_settings, settings_of_run};

use crate::exit::Status;
use crate::globs;
use crate::interrupt::Interrupt;
use crate::lists::ListArgs;
use crate::output::Output;
use crate::queues::QueueArgs;
use crate::system;
use crate::units::{address, bytes, duration};
use anyhow::bail;
use bar::crawl_with;
use kept::Settings;
use metrics::Metrics;
use network::NetworkArgs;
use report::{status, write_report};
use scope::ScopeArgs;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use trawl_archive::Registry;
use trawl_engine::{Config, Retry, SeedIdentity, SeedInput, Start};
use trawl_fetch::FetchConfig;
use trawl_frontier::{Identity, RobotsPolicy};
use trawl_model::ErrorClass;
use trawl_url::{Reject, SuffixList, WebUrl};

/// Captures that may wait to be durable, however few workers there are: fewer than this, and the workers wait for the disk.
const LEAST_UNACKED: usize = 256;

/// Crawls URLs into WARC files (or another format) and captures.parquet
///
/// With --depth 0 (the default) it fetches exactly the seeds; with a higher depth it follows links within --scope. It honours
/// robots.txt, sends one request at a time to each host, and archives every exchange. Ctrl-c stops it cleanly. --resume
/// continues after that, after a crash, or after a power cut: no capture is lost or recorded twice. A resumed crawl keeps the
/// settings of the run; to change one, add --change.
///
/// If a host does not answer, the crawl retries it for up to --give-up-after, or for up to --wait once nothing else is left.
/// --retry-from fetches again what an earlier crawl gave up.
///
/// Seeds are URLs, host names (https is tried first, then http), or lists of any kind that `trawl lake ingest` reads: one URL per
/// line, JSONL with a `url` (other fields are kept as metadata), CSV, CDXJ, Parquet, sitemaps, feeds, .meguri files, archives and
/// their captures.parquet; `-` is standard input. Lists may be compressed with gzip or zstd; patterns such as 'lists/*.gz' are
/// expanded. Seeds given with --resume are added, even after a complete run. Seeds from a captures.parquet are a recrawl: pages
/// are requested conditionally.
///
/// Exit code 1 if anything was given up, rejected or left.
///
/// Examples:
///   trawl crawl example.org --depth 2
///   trawl crawl https://example.org/ seeds.txt --user-agent 'mybot (me@a.example)'
///   trawl crawl seeds.txt --out crawl --depth 3 --scope domain --max-pages 10000
///   trawl crawl --resume --out crawl
///   trawl crawl --resume more.txt --out crawl
///   trawl crawl --retry-from crawl/captures.parquet --out again
///   trawl crawl crawl/captures.parquet --out later
///   trawl crawl seeds.txt --out again --format seqdb --digests bodies
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// URLs, host names, files of URLs, or patterns of files; `-` is standard input
    #[arg(value_name = "SEEDS", required_unless_present_any = ["resume", "retry_from"])]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    seeds: Vec<String>,

    /// Fetch again what an earlier crawl gave up: its captures.parquet
    #[arg(long, value_name = "FILE", help_heading = "Seeds")]
    retry_from: Vec<PathBuf>,

    /// With --retry-from: only this class of failure, this status, or `truncated`. Default: all failures that may be
    /// temporary
    #[arg(long, value_name = "CLASS", requires = "retry_from", value_parser = retry_class, help_heading = "Seeds")]
    retry_class: Vec<String>,

    #[command(flatten)]
    lists: ListArgs,

    /// Directory for everything the crawl writes
    #[arg(long, short, default_value = "trawl-out", value_name = "DIR", help_heading = "Run")]
    out: PathBuf,

    /// Continue the crawl in --out with its own settings; seeds are added to it
    #[arg(long, conflicts_with = "overwrite", help_heading = "Run")]
    resume: bool,

    /// With --resume: allow settings that differ from those of the run
    #[arg(long, requires = "resume", help_heading = "Run")]
    change: bool,

    /// Remove the crawl in --out first
    #[arg(long, help_heading = "Run")]
    overwrite: bool,

    /// Format of the archive: warc files, one seqdb container with the same records that finds them by URL, or a nutch segment
    #[arg(long, default_value = "warc", value_parser = format_name, value_name = "FORMAT", help_heading = "Archive")]
    format: String,

    /// Compression of a Nutch segment: nutch (what Nutch does by default) or block
    #[arg(long, value_name = "NAME", help_heading = "Archive")]
    compress: Option<String>,

    /// Compression level of the archive; for WARC from 1 (fast, the default) to 12 (small)
    #[arg(long, value_name = "N", help_heading = "Archive", value_parser = clap::value_parser!(i32).range(1..=12))]
    compression_level: Option<i32>,

    /// Remember the digests of bodies in STORE.kvseq and STORE.hindex: a body that this crawl, or an earlier one with the same
    /// store, has archived already becomes a revisit record
    #[arg(long, value_name = "STORE", help_heading = "Archive")]
    digests: Option<PathBuf>,

    /// Fetch and archive pages in full even if they did not change since the capture that their seed describes (by etag,
    /// last_modified or digest). Without this flag they are requested conditionally, and archived as revisits
    #[arg(long, help_heading = "Archive")]
    store_unchanged: bool,

    /// Name of the run: everything is written to DIR/NAME, and files are named after it. Without it, files go directly to DIR and
    /// are named after the start time
    #[arg(long, default_value = "", hide_default_value = true, value_name = "NAME", help_heading = "Run")]
    run_id: String,

    #[command(flatten)]
    queues: QueueArgs,

    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    network: NetworkArgs,

    /// Memory for URLs; the rest are on disk. Each host takes about 400 bytes more
    #[arg(long, default_value = "512MiB", value_parser = bytes, value_name = "SIZE", help_heading = "Machine")]
    frontier_memory: u64,

    /// Follow at most this many links of one page; more are only counted
    #[arg(long, default_value_t = 200_000, value_name = "N", help_heading = "Links")]
    max_links: usize,

    /// Follow at most this many redirects in a row
    #[arg(long, default_value_t = 10, value_name = "N", help_heading = "Links")]
    max_redirects: u32,

    /// Also fetch images, scripts and styles of pages
    #[arg(long, help_heading = "Links")]
    embeds: bool,

    /// Neither fetch nor honour robots.txt: only for sites whose owner allows it
    #[arg(long, help_heading = "Robots.txt and backoff")]
    ignore_robots: bool,

    /// Honour a crawl-delay in robots.txt up to this length
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration, help_heading = "Robots.txt and backoff")]
    max_crawl_delay: Duration,

    /// How long to use a robots.txt before it is fetched again; RFC 9309 allows at most 24 hours
    #[arg(long, default_value = "24h", value_name = "DURATION", value_parser = duration, help_heading = "Robots.txt and backoff")]
    robots_ttl: Duration,

    /// Longest backoff, even if a server asks for more
    #[arg(long, default_value = "1d", value_name = "DURATION", value_parser = duration, help_heading = "Robots.txt and backoff")]
    max_backoff: Duration,

    /// Give up a host that has refused or not answered for this long
    #[arg(long, default_value = "1h", value_name = "DURATION", value_parser = duration, help_heading = "Robots.txt and backoff")]
    give_up_after: Duration,

    /// How long to wait when only hosts in backoff are left; then they are given up
    #[arg(long, default_value = "15m", value_name = "DURATION", value_parser = duration, help_heading = "Robots.txt and backoff")]
    wait: Duration,

    /// How long to let fetches finish after ctrl-c
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = duration, help_heading = "Run")]
    grace: Duration,

    /// Fetches at once over all hosts; more is faster and needs more memory
    #[arg(long, default_value_t = 256, value_name = "N", help_heading = "Machine")]
    workers: usize,

    /// Start a new WARC file when one reaches this size
    #[arg(long, default_value = "1GiB", value_parser = bytes, value_name = "SIZE", help_heading = "Archive")]
    warc_size: u64,

    /// Fail if more than this many items of the seeds are not URLs; no limit by default
    #[arg(long, value_name = "N", help_heading = "Seeds")]
    max_bad: Option<u64>,

    /// Who runs this crawl, noted in the archive
    #[arg(long, value_name = "NAME", help_heading = "Archive")]
    operator: Option<String>,

    /// Serve the state of the crawl to Prometheus on this address, under /metrics; a port alone listens on 127.0.0.1
    #[arg(long, value_name = "ADDR", value_parser = address, help_heading = "Run")]
    metrics: Option<SocketAddr>,

    /// All settings by name: filled in by [`note_settings`].
    #[arg(skip)]
    settings: Settings,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let interrupt = Interrupt::install()?;
    let metrics = args.metrics.map(Metrics::serve).transpose()?;
    let retries = !args.retry_from.is_empty();
    let config = args.config()?;
    let carries = config.registry.format(&config.format)?.carries();
    let lost: Vec<_> = carries.missing().map(|lost| lost.in_words()).collect();
    if !lost.is_empty() {
        out.remark(&format!("the format {} cannot carry: {}", config.format, lost.join("; ")));
    }
    let dir = config.out.clone();
    let report = crawl_with(config, &interrupt, out, &mut |progress| {
        if let Some(metrics) = &metrics {
            metrics.update(progress);
        }
    })?;
    out.fact(&report, |w| write_report(&report, &dir, interrupt.is_set(), w))?;
    if retries && report.complete && report.urls.offered == 0 {
        out.remark("the earlier crawl gave up nothing that --retry-from tries again: nothing was fetched");
    }
    let is_empty = |seed: &SeedIdentity| seed.rows + seed.rejects + seed.other_shards == 0;
    if report.complete && !retries && report.counts.captures == 0 && report.seeds.iter().all(is_empty) {
        bail!("the seeds hold no URLs: nothing was crawled");
    }
    Ok(status(&report))
}

/// The name of a format that a crawl can write.
fn format_name(text: &str) -> Result<String, String> {
    let registry = Registry::default();
    let names: Vec<_> = registry.crawlable().map(|format| format.name()).collect();
    let known = names.contains(&text);
    if known { Ok(text.to_owned()) } else { Err(format!("expected one of {}, found {text:?}", names.join(", "))) }
}

/// Reads a class of failure, a status, or `truncated`.
fn retry_class(text: &str) -> Result<String, String> {
    let is_status = text.len() == 3 && text.parse().is_ok_and(|status: u16| (100..1000).contains(&status));
    if is_status || text == "truncated" || text.parse::<ErrorClass>().is_ok() {
        return Ok(text.to_owned());
    }
    let known: Vec<_> = ErrorClass::ALL.iter().map(|class| class.as_str()).collect();
    Err(format!("expected a status like 503, truncated, or one of {}", known.join(", ")))
}

/// The seeds of an argument: those of all files that a pattern matches, or the URL of a host that is named without a scheme.
fn seeds_of(text: &str, fetch: &FetchConfig) -> anyhow::Result<Vec<SeedInput>> {
    let seed = SeedInput::from_argument(text);
    match &seed {
        SeedInput::File(path) if globs::is_pattern(path) && !path.exists() => {
            let found = globs::expand(path)?;
            if found.is_empty() {
                bail!("no file matches {}", path.display());
            }
            Ok(found.into_iter().map(SeedInput::File).collect())
        }
        SeedInput::File(path) if !path.exists() => match bare_host(text) {
            Some(url) => {
                let scheme = if trawl_engine::speaks_https(&url, fetch, system::now())? { "https" } else { "http" };
                Ok(vec![SeedInput::Url(format!("{scheme}://{text}"))])
            }
            None if path.try_exists().is_ok_and(|is_there| !is_there) => bail!(
                "cannot open {}: No such file or directory \
                 (a seed is a file, a host name, or a URL that begins with http:// or https://)",
                path.display()
            ),
            None => Ok(vec![seed]),
        },
        SeedInput::Url(url) => match WebUrl::parse(url) {
            Err(Reject::Scheme { .. }) => {
                bail!("{}: only http and https URLs can be crawled", trawl_url::without_userinfo(url))
            }
            Err(reject) => bail!("{} is not a URL: {reject}", trawl_url::without_userinfo(url)),
            Ok(_) => Ok(vec![seed]),
        },
        _ => Ok(vec![seed]),
    }
}

/// The `https` URL of a host with or without port and path, if a text looks like one rather than like a file's name: an
/// address, `localhost`, or a name under a top-level domain that exists.
fn bare_host(text: &str) -> Option<WebUrl> {
    let url = WebUrl::parse(&format!("https://{text}")).ok()?;
    let name = text.split(['/', '?', '#']).next().unwrap_or_default();
    let name = name.rsplit_once(':').map_or(name, |(name, _)| name).trim_end_matches('.');
    let top = url.host().rsplit('.').next().unwrap_or_default();
    let is_top = |line: &str| line == top || name.rsplit('.').next().is_some_and(|typed| line == typed.to_lowercase());
    let is_name = || name.contains('.') && SuffixList::builtin().text().lines().any(is_top);
    let is_address = || url.host().trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (name == "localhost" || is_address() || is_name()).then_some(url)
}

/// Refuses seeds in which there is nothing, before anything is written. What comes through a pipe is not known yet.
fn refuse_empty(seeds: &[SeedInput]) -> anyhow::Result<()> {
    let (fs, registry) = system::archives();
    let is_empty = |seed: &SeedInput| match seed {
        SeedInput::File(path) if path.is_file() => {
            let looks = || trawl_lists::look(&fs, path).is_ok_and(|looks| looks.head.is_empty());
            std::fs::metadata(path).is_ok_and(|found| found.len() == 0)
                || registry.detect(&fs, path).is_ok_and(|found| found.is_none()) && looks()
        }
        _ => false,
    };
    if let Some(SeedInput::File(first)) = seeds.first()
        && seeds.iter().all(is_empty)
    {
        bail!("{} holds no URLs: there is nothing to crawl", first.display());
    }
    Ok(())
}

/// Refuses a directory that holds something else than a crawl: its files would lie among those of the crawl, and --overwrite would
/// remove archives that no crawl made here.
fn refuse_foreign(dir: &Path) -> anyhow::Result<()> {
    if dir.is_file() {
        bail!("{} is a file: --out names a directory", dir.display());
    }
    let Ok(entries) = std::fs::read_dir(dir) else { return Ok(()) };
    let names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    // Every crawl leaves these; an archive may be anyone's.
    let of_crawl = |name: &String| matches!(name.as_str(), ".crawl" | "run.json");
    match names.iter().find(|name| !name.starts_with('.')) {
        Some(other) if !names.iter().any(of_crawl) => bail!(
            "{} is not empty and holds no crawl (it holds {other}): choose a new or empty directory with --out",
            dir.display()
        ),
        _ => Ok(()),
    }
}

/// Refuses to retry what a run gave up in that run, and to crawl its pages again in it: it knows these URLs, and would fetch none of
/// them.
fn refuse_own_index(seeds: &[SeedInput], out: &Path) -> anyhow::Result<()> {
    let own = std::fs::canonicalize(out).ok();
    let is_own = |path: &Path| {
        let index = std::fs::canonicalize(path).ok();
        own.is_some() && index.as_deref().and_then(Path::parent) == own.as_deref()
    };
    for seed in seeds {
        match seed {
            SeedInput::Retry(retry) if is_own(&retry.path) => bail!(
                "--retry-from {} is the index of the run to resume: retry in a new crawl, with another --out",
                retry.path.display()
            ),
            SeedInput::File(path) if is_own(path) && path.is_file() && trawl_lists::is_captures(path) => bail!(
                "{} is the index of the run to resume: crawl its pages again in a new crawl, with another --out",
                path.display()
            ),
            _ => {}
        }
    }
    Ok(())
}

/// Where a run is.
fn run_dir(out: &Path, run_id: &str) -> PathBuf {
    if run_id.is_empty() { out.to_owned() } else { out.join(run_id) }
}

impl Args {
    fn config(self) -> anyhow::Result<Config> {
        let classes: BTreeSet<String> = self.retry_class.into_iter().collect();
        let retry = |path| SeedInput::Retry(Retry { path, classes: classes.clone() });
        let retries: Vec<_> = self.retry_from.into_iter().map(retry).collect();
        let mut config = Config::new(run_dir(&self.out, &self.run_id), Vec::new());
        config.lists = self.lists.apply(config.lists);
        config.start = match (self.resume, self.overwrite) {
            (true, _) => Start::Resume,
            (_, true) => Start::Overwrite,
            _ => Start::New,
        };
        config.run_id = self.run_id;
        config.format = self.format;
        config.compress = self.compress;
        config.level = self.compression_level;
        config.digests = self.digests;
        config.store_unchanged = self.store_unchanged;
        config.max_rejects = self.max_bad;
        config.embeds = self.embeds;
        config.workers = self.workers;
        config.max_unacked = self.workers.saturating_mul(2).max(LEAST_UNACKED);
        config.roll_bytes = self.warc_size;
        config.operator = self.operator;
        config.arguments = std::env::args().skip(1).collect();
        config.settings = self.settings;
        (config.wait, config.grace, config.max_links) = (self.wait, self.grace, self.max_links);
        let frontier = &mut config.frontier;
        self.queues.apply(frontier);
        // A plain list is fetched as it is written; only discovery asks whether two links are one page.
        frontier.identity = if self.queues.depth == 0 { Identity::Exact } else { Identity::Key };
        frontier.max_hops = self.max_redirects;
        frontier.memory_bytes = usize::try_from(self.frontier_memory).unwrap_or(usize::MAX);
        frontier.backoff_cap = self.max_backoff;
        frontier.give_up_after = self.give_up_after;
        (frontier.crawl_delay_cap, frontier.robots_ttl) = (self.max_crawl_delay, self.robots_ttl);
        frontier.robots = if self.ignore_robots { RobotsPolicy::Ignore } else { RobotsPolicy::Honour };
        self.scope.apply(&mut config)?;
        self.network.apply(&mut config.fetch)?;
        if config.start != Start::Resume {
            refuse_foreign(&config.out)?;
        }
        for text in &self.seeds {
            config.seeds.extend(seeds_of(text, &config.fetch)?);
        }
        config.seeds.extend(retries);
        if config.start == Start::Resume {
            refuse_own_index(&config.seeds, &config.out)?;
        }
        if config.start == Start::Resume && config.seeds.is_empty() && !config.out.join(".crawl").exists() {
            bail!("no crawl was begun in {}: name the URLs or lists to start from", config.out.display());
        }
        refuse_empty(&config.seeds)?;
        Ok(config)
    }
}
