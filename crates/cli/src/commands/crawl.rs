//! `trawl crawl`: frontier, fetch and archive.

use crate::cli::{self, Cli};
use crate::exit::Status;
use crate::interrupt::Interrupt;
use crate::lists::ListArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::{bytes, duration, show_bytes, show_count};
use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, ValueEnum};
use regex_lite::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use trawl_archive::Registry;
use trawl_engine::{Config, Report, Retry, Scope, SeedInput, Shard, Start, Stop, Surts};
use trawl_fetch::{ConnectTo, TlsMode, TlsVersions, TypeLimit};
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
/// are kept as metadata), CSV, CDXJ, Parquet; `-` is stdin; gzip and zstd are unpacked.
///
/// Examples:
///   trawl crawl https://example.org/ seeds.txt --out crawl --user-agent 'mybot/1.0 (+https://example.org/bot)'
///   trawl crawl seeds.txt --out crawl --depth 3 --scope domain --max-pages 10000
///   trawl crawl --resume --out crawl
///   trawl crawl --retry-from crawl/captures.parquet --out again
///   trawl crawl seeds.txt --out again --format seqdb --digests bodies
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// URLs, or files of URLs; `-` is stdin
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

    /// Name of the run, part of its file names; the start time when not given
    #[arg(long, default_value = "", value_name = "NAME")]
    run_id: String,

    /// Links to follow from a seed
    #[arg(long, default_value_t = 0, value_name = "N")]
    depth: u32,

    /// Which links to follow
    #[arg(long, value_enum, default_value_t = ScopeName::Domain)]
    scope: ScopeName,

    /// Follow links only into the directories of the seeds and below, as wget -np
    #[arg(long)]
    no_parent: bool,

    /// Follow only links whose URL this regular expression matches; may be repeated
    #[arg(long, value_name = "REGEX")]
    include: Vec<Regex>,

    /// Follow no link whose URL this regular expression matches; may be repeated
    #[arg(long, value_name = "REGEX")]
    exclude: Vec<Regex>,

    /// Follow only links below the SURT prefixes of this file: one a line, - in front leaves out; also URLs and host names
    #[arg(long, value_name = "FILE")]
    surts: Option<PathBuf>,

    /// Fetch only domains of shard I of N, from 0: each domain is in one
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Pages at most
    #[arg(long, value_name = "N")]
    max_pages: Option<u64>,

    /// Pages of one host at most
    #[arg(long, value_name = "N")]
    max_pages_per_host: Option<u64>,

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

    /// Longest crawl-delay of a robots.txt that is honoured
    #[arg(long, default_value = "60s", value_parser = duration)]
    max_crawl_delay: Duration,

    /// How long a robots.txt is believed; at most 24 hours by RFC 9309
    #[arg(long, default_value = "24h", value_parser = duration)]
    robots_ttl: Duration,

    /// Tries of a URL, or of a robots.txt, at most; those that find nobody there do not count
    #[arg(long, default_value_t = 3, value_name = "N")]
    max_attempts: u32,

    /// First wait after 429, 503 or a failure; doubled each time
    #[arg(long, default_value = "60s", value_parser = duration)]
    backoff: Duration,

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

    /// Longest time for one fetch
    #[arg(long, default_value = "5m", value_parser = duration)]
    timeout: Duration,

    /// Longest time for a TCP connection
    #[arg(long, default_value = "10s", value_parser = duration)]
    connect_timeout: Duration,

    /// Longest time for a TLS handshake
    #[arg(long, default_value = "10s", value_parser = duration)]
    tls_timeout: Duration,

    /// Longest time from a request to the first byte of its response
    #[arg(long, default_value = "30s", value_parser = duration)]
    first_byte_timeout: Duration,

    /// Longest time between two reads of a response
    #[arg(long, default_value = "20s", value_parser = duration)]
    idle_timeout: Duration,

    /// Name server to ask, as ADDR or ADDR:PORT; those of the system when not given
    #[arg(long, value_name = "ADDR", value_parser = resolver)]
    resolver: Vec<SocketAddr>,

    /// Longest time for one lookup of a name, all attempts together
    #[arg(long, default_value = "10s", value_parser = duration)]
    dns_timeout: Duration,

    /// Attempts of one lookup
    #[arg(long, default_value_t = 3, value_name = "N")]
    dns_attempts: usize,

    /// Names looked up at once; further ones wait
    #[arg(long, default_value_t = 64, value_name = "N")]
    dns_lookups: usize,

    /// Shortest time an answer about a name is used, also when its time to live is shorter
    #[arg(long, default_value = "5s", value_parser = duration)]
    dns_min_ttl: Duration,

    /// Longest time an answer about a name is used
    #[arg(long, default_value = "1d", value_parser = duration)]
    dns_max_ttl: Duration,

    /// Bytes of a body kept at most; the rest is cut and marked
    #[arg(long, default_value = "32MiB", value_parser = bytes, value_name = "SIZE")]
    max_body: u64,

    /// Another limit for a media type, as video/*=1MiB or application/pdf=64MiB; the first that fits
    #[arg(long, value_name = "TYPE=SIZE", value_parser = type_limit)]
    max_body_of: Vec<TypeLimit>,

    /// Keep bodies of these media types only, as text/html or text/*; of others the head alone
    #[arg(long, value_name = "TYPE")]
    media_type: Vec<String>,

    /// Speak HTTP/1.1 only, also with servers that have HTTP/2
    #[arg(long)]
    no_http2: bool,

    /// What to do about certificates: accept any and record the verdict, or enforce
    #[arg(long, value_enum, default_value_t = TlsName::Record)]
    tls: TlsName,

    /// Versions of TLS to offer; suites older than TLS 1.2 with ephemeral keys and AES-GCM or ChaCha20 cannot be had
    #[arg(long, value_enum, default_value_t = TlsVersion::Any)]
    tls_version: TlsVersion,

    /// File of certificates (PEM) to believe besides Mozilla's
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,

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

    /// All settings by name: filled in by [`note_settings`].
    #[arg(skip)]
    settings: Settings,
}

/// Settings by name, as they are kept with a run.
type Settings = BTreeMap<String, Vec<String>>;

/// What is said anew with every command, and so belongs to no run.
const OF_THE_COMMAND: [&str; 9] =
    ["out", "resume", "overwrite", "change", "retry_from", "retry_class", "run_id", "json", "quiet"];

/// The flags of `trawl crawl` that are settings of a run, by id.
fn names(command: &Command) -> Vec<String> {
    let arguments = command.find_subcommand("crawl").into_iter().flat_map(Command::get_arguments);
    let flags = arguments.filter(|arg| arg.get_long().is_some() && !arg.is_hide_set() && !arg.is_global_set());
    let ids = flags.map(|arg| arg.get_id().as_str().to_owned());
    ids.filter(|id| id != "help" && !OF_THE_COMMAND.contains(&id.as_str())).collect()
}

/// Settings that name files: kept so that they are found from any directory.
const FILES: [&str; 2] = ["digests", "ca_file"];

fn value(matches: &ArgMatches, id: &str) -> Vec<String> {
    let whole = |text: &OsStr| match FILES.contains(&id) {
        true => std::path::absolute(text).unwrap_or_else(|_| text.into()).into_os_string(),
        false => text.to_owned(),
    };
    let values = matches.get_raw(id).into_iter().flatten().map(whole);
    values.map(|text| text.to_string_lossy().into_owned()).collect()
}

/// Gives a resumed crawl the settings of its run, where the command does not name others. Those that differ are named, and
/// need `--change`.
pub fn settings_of_run(command: Command, matches: &ArgMatches) -> anyhow::Result<Command> {
    let Some(("crawl", given)) = matches.subcommand() else { return Ok(command) };
    let Some(out) = given.get_one::<PathBuf>("out").filter(|_| given.get_flag("resume")) else { return Ok(command) };
    let Some(of_run) = trawl_engine::settings_of(out) else { return Ok(command) };
    let (mut kept, mut differs) = (Vec::new(), Vec::new());
    for id in names(&command) {
        let Some(before) = of_run.get(&id) else { continue };
        let said = matches!(given.value_source(&id), Some(ValueSource::CommandLine | ValueSource::EnvVariable));
        let now = value(given, &id);
        match said {
            true if now == *before => {}
            true => differs.push(format!("--{} {} (was {})", id.replace('_', "-"), now.join(" "), before.join(" "))),
            false => kept.push((id, before.clone())),
        }
    }
    if !differs.is_empty() && !given.get_flag("change") {
        bail!("the run in {} has other settings: {}. Say --change if that is meant", out.display(), differs.join(", "));
    }
    Ok(command.mut_subcommand("crawl", |crawl| {
        kept.into_iter().fold(crawl, |crawl, (id, values)| crawl.mut_arg(id, |arg| arg.default_values(values)))
    }))
}

/// Notes the settings in force, for the run to keep.
pub fn note_settings(cli: &mut Cli, command: &Command, matches: &ArgMatches) {
    if let (Some(cli::Command::Crawl(args)), Some((_, given))) = (&mut cli.command, matches.subcommand()) {
        args.settings = names(command).into_iter().map(|id| (id.clone(), value(given, &id))).collect();
    }
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

/// Reads the address of a name server; port 53 when it names none.
fn resolver(text: &str) -> Result<SocketAddr, String> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = text.parse().or_else(|_| bare.parse().map(|ip: IpAddr| SocketAddr::new(ip, 53)));
    address.map_err(|_| format!("expected an address like 192.0.2.1 or [2001:db8::1]:5353, found {text:?}"))
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TlsVersion {
    /// 1.3, and 1.2 where the server has no more
    Any,
    /// 1.2 alone, for servers that break off when 1.3 is offered
    #[value(name = "1.2")]
    Only12,
    /// 1.3 alone
    #[value(name = "1.3")]
    Only13,
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

/// Seconds without any answer after which the bar says so: longer than one slow host takes, shorter than people wait.
const SILENCE_TOLD: u64 = 10;

/// Crawls with a bar, stopping in order when interrupted.
pub fn crawl(config: Config, interrupt: &Interrupt, out: &Output) -> anyhow::Result<Report> {
    let stop = Stop::new();
    let asked = stop.clone();
    interrupt.on_stop(move || asked.ask())?;
    let bar = Progress::start("crawl", None, out.quiet());
    let report = trawl_engine::run(config, system::clock(), system::ids()?, &stop, &mut |p| {
        bar.report(p.counts.captures, || {
            let mut state = if p.stopping { ", stopping".to_owned() } else { String::new() };
            if let Some(trouble) = &p.trouble {
                state += &format!(", this machine is in trouble: {trouble}");
            }
            if let Some(seconds) = p.silence.filter(|&seconds| seconds >= SILENCE_TOLD) {
                state += &format!(", no server has answered for {seconds} s");
            }
            if let Some(seconds) = p.waiting {
                state += &format!(", only hosts in backoff are left: waiting {seconds} s more");
            }
            format!(
                "{} captures, {:.0}/s, {} in flight, {} queued, {} hosts, {}{state}",
                show_count(p.counts.captures),
                p.rate,
                p.in_flight,
                show_count(p.queued),
                show_count(p.hosts as u64),
                show_bytes(p.counts.body_bytes),
            )
        });
    })?;
    Ok(report)
}

/// A crawl that was stopped, had bad seeds, gave something up, or got no answer from anybody is done with findings.
fn status(report: &Report) -> Status {
    let silence = report.counts.captures > 0 && report.counts.responses() == 0;
    Status::from_findings(!report.complete || report.counts.rejects > 0 || report.counts.given_up > 0 || silence)
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
    for (why, n) in &counts.truncated {
        writeln!(w, "  cut by {why}  {}", show_count(*n))?;
    }
    for file in &report.files {
        writeln!(w, "  {}  {}", file.name, show_bytes(file.bytes))?;
    }
    let sums = &report.urls;
    writeln!(
        w,
        "{} URLs offered: {} fetched, {} failed, {} excluded, {} rejected, {} waiting; {} links out of scope, {} known",
        show_count(sums.offered),
        show_count(sums.fetched),
        show_count(sums.failed),
        show_count(sums.excluded),
        show_count(sums.rejected),
        show_count(sums.waiting),
        show_count(counts.outside),
        show_count(counts.known_links),
    )?;
    for (rule, n) in &counts.refused {
        writeln!(w, "{} links refused by {rule}", show_count(*n))?;
    }
    if counts.cut_links > 0 {
        writeln!(w, "{} links were over --max-links of their page", show_count(counts.cut_links))?;
    }
    if let Some(n) = counts.failures.get("private_address") {
        writeln!(
            w,
            "{} captures failed because a host has only private addresses: allow it by --allow-private HOST",
            show_count(*n)
        )?;
    }
    if counts.parked > 0 {
        writeln!(
            w,
            "{} links look endless (calendars, sessions, filters) and were parked: to list them, trawl frontier pack \
             DIR/.crawl/frontier --out all.meguri, then trawl cat all.meguri --status trapped",
            show_count(counts.parked),
        )?;
    }
    if counts.over_limit > 0 {
        writeln!(
            w,
            "{} URLs are over --max-pages or --max-pages-per-host: go on with --resume --change and a larger one",
            show_count(counts.over_limit),
        )?;
    }
    if !report.complete {
        writeln!(w, "{} URLs are left: go on with --resume", show_count(report.left))?;
    }
    for (host, n) in counts.given_up_hosts.iter().take(20) {
        writeln!(w, "  gave up {host}: {} URLs", show_count(*n))?;
    }
    if counts.given_up > 0 {
        writeln!(
            w,
            "{} URLs were given up: take them up again with --retry-from captures.parquet (--retry-class for some of them)",
            show_count(counts.given_up)
        )?;
    }
    Ok(())
}

/// `video/*=1MiB`.
fn type_limit(text: &str) -> Result<TypeLimit, String> {
    let (media_type, size) = text.split_once('=').ok_or("expected TYPE=SIZE, as video/*=1MiB")?;
    Ok(TypeLimit { media_type: media_type.trim().to_ascii_lowercase(), bytes: bytes(size)? })
}

/// Limits by media type: those that are given; where only some types are wanted, the usual one for them and none for others.
fn body_limits(usual: u64, mut limits: Vec<TypeLimit>, wanted: &[String]) -> Vec<TypeLimit> {
    let limit = |media_type: &str, bytes| TypeLimit { media_type: media_type.trim().to_ascii_lowercase(), bytes };
    if !wanted.is_empty() {
        limits.extend(wanted.iter().map(|media_type| limit(media_type, usual)));
        limits.push(limit("*", 0));
    }
    limits
}

impl Args {
    fn config(self) -> anyhow::Result<Config> {
        let mut seeds: Vec<SeedInput> = self.seeds.iter().map(|text| SeedInput::from_argument(text)).collect();
        let classes: BTreeSet<String> = self.retry_class.into_iter().collect();
        let retry = |path| SeedInput::Retry(Retry { path, classes: classes.clone() });
        seeds.extend(self.retry_from.into_iter().map(retry));
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
        config.scope = match self.scope {
            ScopeName::Host => Scope::Host,
            ScopeName::Domain => Scope::Domain,
            ScopeName::Any => Scope::Any,
        };
        config.rules.no_parent = self.no_parent;
        (config.rules.include, config.rules.exclude) = (self.include, self.exclude);
        config.rules.shard = self.shard;
        if let Some(path) = &self.surts {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read --surts {}", path.display()))?;
            let surts = Surts::parse(&text).map_err(|why| anyhow::anyhow!("--surts {}: {why}", path.display()))?;
            config.rules.surts = Some(surts);
        }
        let frontier = &mut config.frontier;
        // A plain list is fetched as it is written; only discovery asks whether two links are one page.
        frontier.identity = if self.depth == 0 { Identity::Exact } else { Identity::Key };
        frontier.max_depth = self.depth;
        frontier.max_pages = self.max_pages;
        frontier.max_pages_per_host = self.max_pages_per_host;
        frontier.delay = self.delay;
        frontier.per_host = self.per_host;
        frontier.per_ip = (self.per_ip > 0).then_some(self.per_ip);
        (frontier.max_attempts, frontier.robots_attempts) = (self.max_attempts, self.max_attempts);
        frontier.max_hops = self.max_redirects;
        frontier.memory_bytes = usize::try_from(self.frontier_memory).unwrap_or(usize::MAX);
        (frontier.backoff, frontier.backoff_cap) = (self.backoff, self.max_backoff);
        frontier.give_up_after = self.give_up_after;
        (frontier.crawl_delay_cap, frontier.robots_ttl) = (self.max_crawl_delay, self.robots_ttl);
        frontier.robots = if self.ignore_robots { RobotsPolicy::Ignore } else { RobotsPolicy::Honour };
        let fetch = &mut config.fetch;
        fetch.user_agent = self.user_agent;
        fetch.contact = self.contact;
        fetch.limits.total = self.timeout;
        (fetch.limits.connect, fetch.limits.tls) = (self.connect_timeout, self.tls_timeout);
        (fetch.limits.first_byte, fetch.limits.idle) = (self.first_byte_timeout, self.idle_timeout);
        (fetch.dns.servers, fetch.dns.timeout) = (self.resolver, self.dns_timeout);
        (fetch.dns.attempts, fetch.dns.concurrent) = (self.dns_attempts, self.dns_lookups);
        (fetch.dns.keep_least, fetch.dns.keep_most) = (self.dns_min_ttl, self.dns_max_ttl.max(self.dns_min_ttl));
        for path in &self.ca_file {
            let pem = std::fs::read(path).with_context(|| format!("cannot read --ca-file {}", path.display()))?;
            fetch.add_roots(&pem).with_context(|| format!("--ca-file {}", path.display()))?;
        }
        fetch.limits.body_bytes = self.max_body;
        fetch.limits.body_bytes_of = body_limits(self.max_body, self.max_body_of, &self.media_type);
        fetch.http2 = !self.no_http2;
        fetch.connect_to = self.connect_to;
        fetch.allow_private = self.allow_private;
        fetch.tls = match self.tls {
            TlsName::Record => TlsMode::Record,
            TlsName::Verify => TlsMode::Verify,
        };
        config.fetch.tls_versions = match self.tls_version {
            TlsVersion::Any => TlsVersions::Any,
            TlsVersion::Only12 => TlsVersions::Only12,
            TlsVersion::Only13 => TlsVersions::Only13,
        };
        if config.fetch.user_agent.trim().is_empty() {
            bail!("--user-agent is empty: say who crawls, servers want to know");
        }
        Ok(config)
    }
}
