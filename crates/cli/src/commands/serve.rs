//! `trawl serve`: the lake over HTTP.

use crate::exit::Status;
use crate::interrupt::Interrupt;
use crate::lake_dir;
use crate::output::{self, Output};
use crate::units::duration;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trawl_query::Lake;
use trawl_serve::{Config, Running, Server};

/// Serves the HTTP API and the explorer page of a lake
///
/// Reads only: any number of servers may run over one lake, and what is published while they run is served from the
/// next request on. Runs until ctrl-c.
///
/// Examples:
///   trawl serve --lake lake
///   curl http://127.0.0.1:8080/v1/domain/example.com
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Directory of the lake
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,

    /// Address to listen on; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR")]
    listen: SocketAddr,

    /// Questions answered at once; more are refused with 503
    #[arg(long, default_value_t = 64, value_name = "N")]
    max_concurrent: usize,

    /// Longest time for an answer
    #[arg(long, default_value = "30s", value_parser = duration)]
    timeout: Duration,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let interrupt = Interrupt::install()?;
    let config =
        Config { listen: args.listen, max_concurrent: args.max_concurrent, timeout: args.timeout, ..Config::default() };
    let running = start(&args.lake, config)?;
    let address = running.address();
    let facts = serde_json::json!({ "address": address, "url": format!("http://{address}/") });
    out.fact(&facts, |w| writeln!(w, "serving {} on http://{address}/", args.lake.display()))?;
    out.flush()?;
    interrupt.wait();
    running.stop()?;
    Ok(Status::Done)
}

/// Serves the lake in `dir`; trouble inside it goes to stderr.
pub fn start(dir: &Path, config: Config) -> anyhow::Result<Running> {
    lake_dir::open(dir)?;
    let lake = Lake::open(lake_dir::store(dir), trawl_query::Options::default())?;
    let on_error = Box::new(|error: &trawl_query::QueryError| output::complain(&error.to_string()));
    Ok(Server::start(Arc::new(lake), Config { on_error, ..config })?)
}
