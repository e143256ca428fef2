//! `trawl crawl`: frontier, fetch and archive.

use crate::exit::Status;
use crate::interrupt::Interrupt;
use crate::lists::ListArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::{bytes, duration, show_bytes, show_count};
use anyhow::bail;
use clap::ValueEnum;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use trawl_archive::Registry;
use trawl_engine::{Config, Report, Scope, SeedInput, Start, Stop};
use trawl_fetch::{ConnectTo, TlsMode};
use trawl_frontier::{Identity, RobotsPolicy};

/// Crawls URLs into WARC files (or another format) and captures.parquet
///
/// With --depth 0 (the default) it fetches exactly the list; deeper, it follows links within --scope. robots.txt is
/// honoured, each host is asked one thing at a time, and every exchange is archived. Ctrl-c stops in order; --resume
/// goes on after that, after a crash, or after a power cut: nothing lost, nothing recorded twice.
///
/// Seeds are URLs, or lists of any kind that `trawl lake ingest` takes: one URL a line, JSONL with a `url` (other fields
/// are kept as metadata), CSV, CDXJ, Parquet; `-` is stdin; gzip and zstd are unpacked.
///
/// Examples:
///   trawl crawl https://example.org/ seeds.txt --out crawl --user-agent 'mybot/1.0 (+https://example.org/bot)'
///   trawl crawl seeds.txt --out crawl --depth 3 --scope domain --max-pages 10000
///   trawl crawl seeds.txt --out crawl --resume
///   trawl crawl seeds.txt --out again --format seqdb --digests bodies
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// URLs, or files of URLs; `-` is stdin
    #[arg(value_name = "SEEDS", required = true)]
    seeds: Vec<String>,

    #[command(flatten)]
    lists: ListArgs,

    /// Directory for everything the crawl writes
    #[arg(long, short, default_value = "trawl-out", value_name = "DIR")]
    out: PathBuf,

    /// Go on with the crawl in --out
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,

    /// Remove the crawl in --out first
    #[arg(long)]
    overwrite: bool,

    /// What captures are archived in: warc files, or one seqdb container with the same records, found by URL
    #[arg(long, default_value = "warc", value_parser = format_name, value_name = "FORMAT")]
    format: String,

    /// How a Nutch segment is compressed: nutch, as Nutch does without configuration, or block
    #[arg(long, value_name = "NAME")]
    compress: Option<String>,

    /// Remember bodies by digest in STORE.kvseq and STORE.hindex: one that is archived already, by this crawl or an
    /// earlier one with the same store, becomes a revisit
    #[arg(long, value_name = "STORE")]
    digests: Option<PathBuf>,

    /// Name of the run, part of its file names; the start time when not given
    #[arg(long, default_value = "", value_name = "NAME")]
    run_id: String,

    /// Links to follow from a seed
    #[arg(long, default_value_t = 0, value_name = "N")]
    depth: u32,

    /// Which links to follow
    #[arg(long, value_enum, default_value_t = ScopeName::Domain)]
    scope: ScopeName,

    /// Pages at most
    #[arg(long, value_name = "N")]
    max_pages: Option<u64>,

    /// Pages of one host at most
    #[arg(long, value_name = "N")]
    max_pages_per_host: Option<u64>,

    /// Fetch images, scripts and styles of pages too
    #[arg(long)]
    embeds: bool,

    /// How the crawler introduces itself; say who you are and where to complain
    #[arg(long, default_value = concat!("trawl/", env!("CARGO_PKG_VERSION")), value_name = "TEXT")]
    user_agent: String,

    /// E-mail address sent as From
    #[arg(long, default_value = "", value_name = "ADDRESS")]
    contact: String,

    /// Wait between two requests to a host; a longer crawl-delay of its robots.txt wins
    #[arg(long, default_value = "1s", value_parser = duration)]
    delay: Duration,

    /// Requests to a host at once; more than 1 is impolite unless the host is yours
    #[arg(long, default_value_t = 1, value_name = "N")]
    per_host: u32,

    /// Requests to an address at once; 0 for no limit
    #[arg(long, default_value_t = 8, value_name = "N")]
    per_ip: u32,

    /// Neither fetch nor honour robots.txt: only for sites whose owner said so
    #[arg(long)]
    ignore_robots: bool,

    /// Tries of a URL at most
    #[arg(long, default_value_t = 3, value_name = "N")]
    max_attempts: u32,

    /// Longest time for one fetch
    #[arg(long, default_value = "5m", value_parser = duration)]
    timeout: Duration,

    /// Bytes of a body kept at most; the rest is cut and marked
    #[arg(long, default_value = "32MiB", value_parser = bytes, value_name = "SIZE")]
    max_body: u64,

    /// What to do about certificates: accept any and record the verdict, or enforce
    #[arg(long, value_enum, default_value_t = TlsName::Record)]
    tls: TlsName,

    /// Connect to ADDR:PORT instead of HOST:PORT, as in curl; empty parts match anything
    #[arg(long, value_name = "HOST:PORT:ADDR:PORT")]
    connect_to: Vec<ConnectTo>,

    /// Host whose private addresses may be used; `*` for all
    #[arg(long, value_name = "HOST")]
    allow_private: Vec<String>,

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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeName {
    /// Links to the same host
    Host,
    /// Links to the same registrable domain
    Domain,
    /// All links
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TlsName {
    /// Accept any certificate and record the verdict
    Record,
    /// Refuse a certificate that does not verify
    Verify,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let interrupt = Interrupt::install()?;
    let config = args.config()?;
    let lost: Vec<_> = config.registry.format(&config.format)?.carries().missing().map(|lost| lost.as_str()).collect();
    if !lost.is_empty() {
        out.remark(&format!("{} cannot carry: {}", config.format, lost.join(", ")));
    }
    let report = crawl(config, &interrupt, out)?;
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

/// Crawls with a bar, stopping in order when interrupted.
pub fn crawl(config: Config, interrupt: &Interrupt, out: &Output) -> anyhow::Result<Report> {
    let stop = Stop::new();
    let asked = stop.clone();
    interrupt.on_stop(move || asked.ask())?;
    let bar = Progress::start("crawl", None, out.quiet());
    let report = trawl_engine::run(config, system::clock(), system::ids()?, &stop, &mut |p| {
        bar.report(p.counts.captures, || {
            let stopping = if p.stopping { ", stopping" } else { "" };
            format!(
                "{} captures, {:.0}/s, {} in flight, {} queued, {} hosts, {}{stopping}",
                show_count(p.counts.captures),
                p.rate,
                p.in_flight,
                show_count(p.queued as u64),
                show_count(p.hosts as u64),
                show_bytes(p.counts.body_bytes),
            )
        });
    })?;
    Ok(report)
}

/// A crawl that was stopped, had bad seeds, or got no answer from anybody is done with findings.
fn status(report: &Report) -> Status {
    let silence = report.counts.captures > 0 && report.counts.responses() == 0;
    Status::from_findings(!report.complete || report.counts.rejects > 0 || silence)
}

fn write_report(report: &Report, w: &mut dyn Write) -> io::Result<()> {
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
    for file in &report.files {
        writeln!(w, "  {}  {}", file.name, show_bytes(file.bytes))?;
    }
    if report.complete {
        return Ok(());
    }
    writeln!(w, "{} URLs are left: go on with --resume", show_count(report.left))
}

impl Args {
    fn config(self) -> anyhow::Result<Config> {
        let seeds = self.seeds.iter().map(|text| SeedInput::from_argument(text)).collect();
        let mut config = Config::new(self.out, seeds);
        config.lists = self.lists.apply(config.lists);
        config.start = match (self.resume, self.overwrite) {
            (true, _) => Start::Resume,
            (_, true) => Start::Overwrite,
            _ => Start::New,
        };
        config.run_id = self.run_id;
        config.format = self.format;
        config.compress = self.compress;
        config.digests = self.digests;
        config.max_rejects = self.max_bad;
        config.embeds = self.embeds;
        config.workers = self.workers;
        config.max_unacked = self.workers.saturating_mul(2);
        config.roll_bytes = self.warc_size;
        config.operator = self.operator;
        config.arguments = std::env::args().skip(1).collect();
        config.scope = match self.scope {
            ScopeName::Host => Scope::Host,
            ScopeName::Domain => Scope::Domain,
            ScopeName::Any => Scope::Any,
        };
        let frontier = &mut config.frontier;
        // A plain list is fetched as it is written; only discovery asks whether two links are one page.
        frontier.identity = if self.depth == 0 { Identity::Exact } else { Identity::Key };
        frontier.max_depth = self.depth;
        frontier.max_pages = self.max_pages;
        frontier.max_pages_per_host = self.max_pages_per_host;
        frontier.delay = self.delay;
        frontier.per_host = self.per_host;
        frontier.per_ip = (self.per_ip > 0).then_some(self.per_ip);
        frontier.max_attempts = self.max_attempts;
        frontier.robots = if self.ignore_robots { RobotsPolicy::Ignore } else { RobotsPolicy::Honour };
        let fetch = &mut config.fetch;
        fetch.user_agent = self.user_agent;
        fetch.contact = self.contact;
        fetch.limits.total = self.timeout;
        fetch.limits.body_bytes = self.max_body;
        fetch.connect_to = self.connect_to;
        fetch.allow_private = self.allow_private;
        fetch.tls = match self.tls {
            TlsName::Record => TlsMode::Record,
            TlsName::Verify => TlsMode::Verify,
        };
        if config.fetch.user_agent.trim().is_empty() {
            bail!("--user-agent is empty: say who crawls, servers want to know");
        }
        Ok(config)
    }
}
