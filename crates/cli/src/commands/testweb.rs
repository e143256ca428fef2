//! `trawl testweb`: the synthetic web.

use crate::exit::Status;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::units::{address, duration};
use anyhow::Context;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use trawl_testweb::{Addresses, Config, CrawlSettings, Profile, TestWeb, World, judge};

/// Serves a synthetic web on this machine for tests, or checks what a crawler did there
///
/// Hundreds of hosts with real-looking names, links and robots.txt, all behind one address: a crawler reaches them
/// with --connect-to. The same --seed gives the same web. Runs until ctrl-c.
///
/// Examples:
///   trawl testweb --seeds-file seeds.txt --log requests.log
///   trawl crawl seeds.txt --depth 3 --scope any --connect-to ::127.0.0.1:PORT
///   trawl testweb judge requests.log --depth 3
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,

    #[command(flatten)]
    web: WebArgs,

    /// Wait this long before each response, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    latency: u64,

    /// Loopback address to listen on; a port alone listens on 127.0.0.1, port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR", value_parser = address)]
    listen: SocketAddr,

    /// Give each domain an address of its own in 127.0.0.0/8
    #[arg(long)]
    many_addresses: bool,

    /// Log every connection and request to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Write the URLs to start a crawl from into this file
    #[arg(long, value_name = "FILE")]
    seeds_file: Option<PathBuf>,

    /// Write every URL that a crawl of this depth must fetch exactly once into this file
    #[arg(long, value_name = "FILE", requires = "depth")]
    expected_file: Option<PathBuf>,

    /// Depth of the crawl for --expected-file
    #[arg(long)]
    depth: Option<u32>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Judge(JudgeArgs),
}

/// Which web: the same words give the same web.
#[derive(Debug, clap::Args)]
struct WebArgs {
    /// Number from which the web is generated
    #[arg(long, default_value_t = Config::default().seed)]
    seed: u64,

    /// Registrable domains
    #[arg(long, default_value_t = Config::default().domains)]
    domains: u32,

    /// Pages on all hosts together, approximately
    #[arg(long, default_value_t = Config::default().pages)]
    pages: u32,

    /// How much trouble the web makes
    #[arg(long, value_enum, default_value_t = ProfileName::Demo)]
    profile: ProfileName,

    /// The whole description of the web as JSON (see docs/testweb.md), instead of the flags above
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "domains", "pages", "profile"])]
    web: Option<PathBuf>,
}

/// Lists every rule that a crawler broke, from the web's own log
///
/// Checks politeness per host and address, crawl-delay and Retry-After, robots.txt, pages fetched twice or never, and more. Give
/// the same web and the settings of the crawl, which must have run with --scope any. Exit code 1 when a rule was broken.
///
/// Example: trawl testweb judge requests.log --depth 3 --delay 5ms
#[derive(Debug, clap::Args)]
struct JudgeArgs {
    /// The log that `trawl testweb --log` wrote
    log: PathBuf,

    #[command(flatten)]
    web: WebArgs,

    /// Depth of the crawl; unlimited by default
    #[arg(long)]
    depth: Option<u32>,

    /// The crawl's delay between requests to a host
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = duration)]
    delay: Duration,

    /// Product token of the crawler's user agent
    #[arg(long, default_value = "trawl")]
    agent: String,

    /// Further settings of the crawl as JSON (see docs/testweb.md)
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ProfileName {
    /// Small and well-behaved
    Demo,
    /// What a crawler meets on an ordinary day
    Standard,
    /// Mostly trouble
    Hostile,
    /// Ordinary trouble that passes
    Trouble,
}

impl WebArgs {
    fn config(&self) -> anyhow::Result<Config> {
        if let Some(path) = &self.web {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            return serde_json::from_str(&text).with_context(|| format!("{} does not describe a web", path.display()));
        }
        let profile = match self.profile {
            ProfileName::Demo => Profile::Demo,
            ProfileName::Standard => Profile::Standard,
            ProfileName::Hostile => Profile::Hostile,
            ProfileName::Trouble => Profile::Trouble,
        };
        let seeds = Config::default().seeds.min(self.domains.max(1));
        Ok(Config { seed: self.seed, domains: self.domains, pages: self.pages, seeds, ..Config::profile(profile) })
    }
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    if let Some(Verb::Judge(args)) = &args.verb {
        return judge_log(args, out);
    }
    let interrupt = Interrupt::install()?;
    let web = TestWeb::start(Config {
        latency_ms: args.latency,
        listen: args.listen,
        addresses: if args.many_addresses { Addresses::Many } else { Addresses::One },
        log: args.log,
        ..args.web.config()?
    })?;
    let world = web.world();
    if let Some(path) = &args.seeds_file {
        write_lines(path, world.seeds())?;
    }
    if let (Some(path), Some(depth)) = (&args.expected_file, args.depth) {
        write_lines(path, world.expected_pages(depth))?;
    }
    let address = web.addr();
    let facts = serde_json::json!({
        "address": address, "names": web.names_addr(), "seed": world.config().seed, "hosts": world.hosts().len(), "pages": world.page_count(),
        "connect_to": format!("::{address}"), "seeds": world.seeds(),
    });
    out.fact(&facts, |w| {
        writeln!(w, "{} hosts, {} pages on http://{address}/", world.hosts().len(), world.page_count())?;
        writeln!(
            w,
            "crawl it with --connect-to ::{address}, or by its own name server with --resolver {}",
            web.names_addr()
        )
    })?;
    out.flush()?;
    interrupt.wait();
    web.stop()?;
    Ok(Status::Done)
}

fn judge_log(args: &JudgeArgs, out: &mut Output) -> anyhow::Result<Status> {
    let mut settings = match &args.settings {
        Some(path) => {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            serde_json::from_str(&text).with_context(|| format!("{} does not hold settings", path.display()))?
        }
        None => CrawlSettings::default(),
    };
    settings.agent.clone_from(&args.agent);
    settings.depth = args.depth.unwrap_or(settings.depth);
    settings.host_interval_ms = u64::try_from(args.delay.as_millis()).context("--delay")?;
    let verdict = judge(&args.log, &World::new(&args.web.config()?)?, &settings)?;
    out.fact(&verdict, |w| write!(w, "{verdict}"))?;
    Ok(Status::from_findings(!verdict.clean))
}

fn write_lines(path: &PathBuf, lines: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
    let text: String = lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect();
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
