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
use crate::units::{bytes, duration};
use anyhow::bail;
use bar::crawl_with;
use kept::Settings;
use metrics::Metrics;
use network::NetworkArgs;
use report::{status, write_report};
use scope::ScopeArgs;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trawl_archive::Registry;
use trawl_engine::{Config, Retry, SeedInput, Start};
use trawl_frontier::{Identity, RobotsPolicy};
use trawl_model::ErrorClass;

/// Crawls URLs into WARC files (or another format) and captures.parquet
///
/// With --depth 0 (the default) it fetches exactly the list; deeper, it follows links within --scope. robots.txt is
/// honoured, each host is asked one thing at a time, and every exchange is archived. Ctrl-c stops in order; --resume
/// goes on after that, after a crash, or after a power cut: nothing lost, nothing recorded twice. A resume keeps the
/// settings of the run; one that differs needs --change.
///
/// A host that does not answer is waited for, up to --give-up-after, and up to --wait once nothing else is left. What was
/// given up is taken up again by --retry-from.
///
/// Seeds are URLs, or lists of any kind that `trawl lake ingest` takes: one URL a line, JSONL with a `url` (other fields
/// are kept as metadata), CSV, CDXJ, Parquet, sitemaps, feeds, .meguri files, archives and their captures.parquet; `-` is
/// stdin; gzip and zstd are unpacked; patterns such as 'lists/*.gz' are expanded. Seeds that are named with --resume are
/// added, after a complete run too. A captures.parquet as seeds is a recrawl: pages are asked for conditionally.
///
/// Examples:
///   trawl crawl https://example.org/ seeds.txt --out crawl --user-agent 'mybot/1.0 (+https://example.org/bot)'
///   trawl crawl seeds.txt --out crawl --depth 3 --scope domain --max-pages 10000
///   trawl crawl --resume --out crawl
///   trawl crawl --resume more.txt --out crawl
///   trawl crawl --retry-from crawl/captures.parquet --out again
///   trawl crawl crawl/captures.parquet --out later
///   trawl crawl seeds.txt --out again --format seqdb --digests bodies
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// URLs, or files of URLs, or patterns of those; `-` is stdin
    #[arg(value_name = "SEEDS", required_unless_present_any = ["resume", "retry_from"])]
    seeds: Vec<String>,

    /// Take up again what an earlier run gave up, by its captures.parquet
    #[arg(long, value_name = "FILE")]
    retry_from: Vec<PathBuf>,

    /// With --retry-from: only this class of failure, this status, or `truncated`; all that asking again may help with when
    /// not given
    #[arg(long, value_name = "CLASS", requires = "retry_from", value_parser = retry_class)]
    retry_class: Vec<String>,

    #[command(flatten)]
    lists: ListArgs,

    /// Directory for everything the crawl writes
    #[arg(long, short, default_value = "trawl-out", value_name = "DIR")]
    out: PathBuf,

    /// Go on with the crawl in --out, with its own settings; seeds that are named are added
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,

    /// With --resume: let settings that are given differ from those of the run
    #[arg(long, requires = "resume")]
    change: bool,

    /// Remove the crawl in --out first
    #[arg(long)]
    overwrite: bool,

    /// What captures are archived in: warc files, or one seqdb container with the same records, found by URL
    #[arg(long, default_value = "warc", value_parser = format_name, value_name = "FORMAT")]
    format: String,

    /// How a Nutch segment is compressed: nutch, as Nutch does without configuration, or block
    #[arg(long, value_name = "NAME")]
    compress: Option<String>,

    /// How hard the archive is compressed: for WARC from 1, fast, to 12, small; the format's own when not given (WARC: 1)
    #[arg(long, value_name = "N")]
    compression_level: Option<i32>,

    /// Remember bodies by digest in STORE.kvseq and STORE.hindex: one that is archived already, by this crawl or an
    /// earlier one with the same store, becomes a revisit
    #[arg(long, value_name = "STORE")]
    digests: Option<PathBuf>,

    /// Ask for and archive pages whole that did not change since the capture their seed tells of (etag, last_modified or digest, from
    /// a line, a captures.parquet or CDXJ); without it they are asked for conditionally, and archived as revisits
    #[arg(long)]
    store_unchanged: bool,

    /// Name of the run: everything is written to DIR/NAME, and its files are named after it; without a name straight to DIR,
    /// named after the start time
    #[arg(long, default_value = "", value_name = "NAME")]
    run_id: String,

    #[command(flatten)]
    queues: QueueArgs,

    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    network: NetworkArgs,

    /// Memory for URLs; further ones are on disk. Hosts take about 400 bytes each on top
    #[arg(long, default_value = "512MiB", value_parser = bytes, value_name = "SIZE")]
    frontier_memory: u64,

    /// Links of one page at most; further ones are counted
    #[arg(long, default_value_t = 200_000, value_name = "N")]
    max_links: usize,

    /// Redirects to follow in a row
    #[arg(long, default_value_t = 10, value_name = "N")]
    max_redirects: u32,

    /// Fetch images, scripts and styles of pages too
    #[arg(long)]
    embeds: bool,

    /// Neither fetch nor honour robots.txt: only for sites whose owner said so
    #[arg(long)]
    ignore_robots: bool,

    /// Longest crawl-delay of a robots.txt that is honoured
    #[arg(long, default_value = "60s", value_parser = duration)]
    max_crawl_delay: Duration,

    /// How long a robots.txt is believed; at most 24 hours by RFC 9309
    #[arg(long, default_value = "24h", value_parser = duration)]
    robots_ttl: Duration,

    /// Longest wait, also when a server asks for more
    #[arg(long, default_value = "1d", value_parser = duration)]
    max_backoff: Duration,

    /// How long a host may refuse or not answer before it is given up
    #[arg(long, default_value = "1h", value_parser = duration)]
    give_up_after: Duration,

    /// How long to wait once all that is left is in backoff; then it is given up
    #[arg(long, default_value = "15m", value_parser = duration)]
    wait: Duration,

    /// How long fetches may go on after ctrl-c
    #[arg(long, default_value = "15s", value_parser = duration)]
    grace: Duration,

    /// Fetches at once over all hosts; more is faster and takes more memory
    #[arg(long, default_value_t = 256, value_name = "N")]
    workers: usize,

    /// Close a WARC file once it has this size
    #[arg(long, default_value = "1GiB", value_parser = bytes, value_name = "SIZE")]
    warc_size: u64,

    /// Bad items in the seeds before the crawl fails; any number when not given
    #[arg(long, value_name = "N")]
    max_bad: Option<u64>,

    /// Who runs this, written into the archive
    #[arg(long, value_name = "NAME")]
    operator: Option<String>,

    /// Serve the state of the crawl to Prometheus on this address, under /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,

    /// All settings by name: filled in by [`note_settings`].
    #[arg(skip)]
    settings: Settings,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let interrupt = Interrupt::install()?;
    let metrics = args.metrics.map(Metrics::serve).transpose()?;
    let config = args.config()?;
    let lost: Vec<_> = config.registry.format(&config.format)?.carries().missing().map(|lost| lost.as_str()).collect();
    if !lost.is_empty() {
        out.remark(&format!("{} cannot carry: {}", config.format, lost.join(", ")));
    }
    let report = crawl_with(config, &interrupt, out, &mut |progress| {
        if let Some(metrics) = &metrics {
            metrics.update(progress);
        }
    })?;
    out.fact(&report, |w| write_report(&report, w))?;
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

/// The seeds of an argument: those of all files that a pattern matches.
fn seeds_of(text: &str) -> anyhow::Result<Vec<SeedInput>> {
    let seed = SeedInput::from_argument(text);
    match &seed {
        SeedInput::File(path) if globs::is_pattern(path) && !path.exists() => {
            let found = globs::expand(path)?;
            if found.is_empty() {
                bail!("no file matches {}", path.display());
            }
            Ok(found.into_iter().map(SeedInput::File).collect())
        }
        _ => Ok(vec![seed]),
    }
}

/// Where a run is.
fn run_dir(out: &Path, run_id: &str) -> PathBuf {
    if run_id.is_empty() { out.to_owned() } else { out.join(run_id) }
}

impl Args {
    fn config(self) -> anyhow::Result<Config> {
        let mut seeds = Vec::new();
        for text in &self.seeds {
            seeds.extend(seeds_of(text)?);
        }
        let classes: BTreeSet<String> = self.retry_class.into_iter().collect();
        let retry = |path| SeedInput::Retry(Retry { path, classes: classes.clone() });
        seeds.extend(self.retry_from.into_iter().map(retry));
        let mut config = Config::new(run_dir(&self.out, &self.run_id), seeds);
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
        config.max_unacked = self.workers.saturating_mul(2);
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
        Ok(config)
    }
}
