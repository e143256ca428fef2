//! `trawl testweb`: the synthetic web.

use crate::exit::Status;
use crate::interrupt::Interrupt;
use crate::output::Output;
use anyhow::Context;
use std::net::SocketAddr;
use std::path::PathBuf;
use trawl_testweb::{Config, TestWeb};

/// Serves a deterministic synthetic web on loopback
///
/// Hundreds of hosts with real-looking names, links and robots.txt, all behind one address: a crawler reaches them
/// with --connect-to. The same --seed gives the same web. Runs until ctrl-c.
///
/// Examples:
///   trawl testweb --seeds-file seeds.txt --log requests.log
///   trawl crawl seeds.txt --out crawl --depth 3 --connect-to ::127.0.0.1:PORT
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Everything about the web follows from this number
    #[arg(long, default_value_t = Config::default().seed)]
    seed: u64,

    /// Registrable domains
    #[arg(long, default_value_t = Config::default().domains)]
    domains: u32,

    /// Pages over all hosts, about
    #[arg(long, default_value_t = Config::default().pages)]
    pages: u32,

    /// Wait this long before each response, in milliseconds
    #[arg(long, default_value_t = 0, value_name = "MS")]
    latency: u64,

    /// Loopback address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDR")]
    listen: SocketAddr,

    /// Log every connection and request to this file
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Write the URLs to start a crawl from into this file
    #[arg(long, value_name = "FILE")]
    seeds_file: Option<PathBuf>,

    /// Write every URL that a crawl of this depth must fetch exactly once into this file
    #[arg(long, value_name = "FILE", requires = "depth")]
    expected_file: Option<PathBuf>,

    /// The depth that --expected-file is about
    #[arg(long)]
    depth: Option<u32>,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let interrupt = Interrupt::install()?;
    let web = TestWeb::start(Config {
        seed: args.seed,
        domains: args.domains,
        pages: args.pages,
        seeds: Config::default().seeds.min(args.domains.max(1)),
        latency_ms: args.latency,
        listen: args.listen,
        log: args.log,
        ..Config::default()
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
        "address": address, "seed": args.seed, "hosts": world.hosts().len(), "pages": world.page_count(),
        "connect_to": format!("::{address}"), "seeds": world.seeds(),
    });
    out.fact(&facts, |w| {
        writeln!(w, "{} hosts, {} pages on http://{address}/", world.hosts().len(), world.page_count())?;
        writeln!(w, "crawl it with --connect-to ::{address}")
    })?;
    out.flush()?;
    interrupt.wait();
    web.stop()?;
    Ok(Status::Done)
}

fn write_lines(path: &PathBuf, lines: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
    let text: String = lines.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect();
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
