//! `trawl serve`: the lake over HTTP.

use crate::exit::Status;
use crate::interrupt::Interrupt;
use crate::lake_dir;
use crate::output::{self, Output};
use crate::units::{address, duration};
use anyhow::bail;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use trawl_query::{Archives, Lake};
use trawl_serve::{Config, Event, Running, Server, TlsFiles};

/// Serves the HTTP API and the explorer page of a lake
///
/// It only reads, so any number of servers may share one lake. New data is served from the next request on. Runs until ctrl-c.
///
/// Examples:
///   trawl serve --lake lake
///   curl http://127.0.0.1:8080/v1/domain/example.com
///   trawl serve --access tokens.toml --tls-cert cert.pem --tls-key key.pem
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Directory of the lake, or s3://bucket/prefix
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,

    /// Address to listen on. A port alone listens on 127.0.0.1; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDR", value_parser = address)]
    listen: SocketAddr,

    /// Another address for metrics and admin calls; without it, metrics are on the main address
    #[arg(long, value_name = "ADDR", value_parser = address)]
    admin_listen: Option<SocketAddr>,

    /// Queries answered at once; more wait
    #[arg(long, default_value_t = 64, value_name = "N", help_heading = "Limits")]
    max_concurrent: usize,

    /// Queries that may wait; more are refused with 503
    #[arg(long, default_value_t = 256, value_name = "N", help_heading = "Limits")]
    max_waiting: usize,

    /// Longest time that a query waits before it is refused with 503
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = duration, help_heading = "Limits")]
    max_wait: Duration,

    /// Exports sent at once, and as many captures and CDX answers; more wait
    #[arg(long, default_value_t = 8, value_name = "N", help_heading = "Limits")]
    max_streams: usize,

    /// Requests of one client (a token, or an address) at once; more are refused with 429. 0 means no limit
    #[arg(long, default_value_t = 0, value_name = "N", help_heading = "Limits")]
    max_per_client: usize,

    /// Connections at once, and never more than the process may have open files; beyond that, the longest idle one is
    /// closed
    #[arg(long, default_value_t = 4096, value_name = "N", help_heading = "Limits")]
    max_connections: usize,

    /// Longest time for an answer
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration, help_heading = "Limits")]
    timeout: Duration,

    /// How long a search among rows may take before it answers with what it has found
    #[arg(long, default_value = "2s", value_name = "DURATION", value_parser = duration, help_heading = "Limits")]
    budget: Duration,

    /// Longest time for an export or a capture
    #[arg(long, default_value = "1h", value_name = "DURATION", value_parser = duration, help_heading = "Limits")]
    stream_timeout: Duration,

    /// Longest time for the head of a request
    #[arg(long, default_value = "15s", value_name = "DURATION", value_parser = duration, help_heading = "Limits")]
    head_timeout: Duration,

    /// Close a connection that is idle for this long
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration, help_heading = "Limits")]
    idle_timeout: Duration,

    /// How often to check the lake, tokens and certificates for changes
    #[arg(long, default_value = "1s", value_name = "DURATION", value_parser = duration)]
    poll: Duration,

    /// File of tokens and their principals; without it, everyone sees the public datasets
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    access: Option<PathBuf>,

    /// Certificate chain in PEM; read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Access")]
    tls_cert: Option<PathBuf>,

    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Access")]
    tls_key: Option<PathBuf>,

    /// Origin whose pages may use the API from a browser, or *; may be repeated
    #[arg(long, value_name = "ORIGIN", value_parser = origin, help_heading = "Access")]
    cors: Vec<String>,

    /// Log requests to stderr: off, text, or json (one JSON object per line)
    #[arg(long, default_value = "off", value_name = "HOW")]
    log: Log,
}

/// What is logged of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Log {
    Off,
    Text,
    Json,
}

/// Descriptors left for files of the lake and the archives.
const SPARE_DESCRIPTORS: usize = 256;

/// An origin as browsers send it, with nothing behind the host and port: others would never match.
fn origin(text: &str) -> Result<String, String> {
    let host = text.split_once("://").map_or("", |(_, host)| host);
    let is_origin = !host.is_empty() && !host.contains(['/', '?', '#', ' ']);
    if is_origin || matches!(text, "*" | "null") {
        return Ok(text.to_owned());
    }
    Err(format!("expected an origin such as https://example.com, or *, found {text:?}"))
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let interrupt = Interrupt::install()?;
    let tls = match (args.tls_cert, args.tls_key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
        (None, None) => None,
        _ => bail!("--tls-cert and --tls-key go together"),
    };
    if args.idle_timeout.is_zero() {
        bail!("--idle-timeout: expected more than 0s, found 0s, in which no request can arrive");
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    let log = args.log;
    let config = Config {
        listen: args.listen,
        admin: args.admin_listen,
        max_concurrent: args.max_concurrent,
        max_waiting: args.max_waiting,
        max_wait: args.max_wait,
        max_streams: args.max_streams,
        max_per_client: args.max_per_client,
        max_connections: args.max_connections.min(descriptors()),
        timeout: args.timeout,
        budget: args.budget,
        stream_timeout: args.stream_timeout,
        head_timeout: args.head_timeout,
        idle_timeout: args.idle_timeout,
        poll: args.poll,
        access: args.access,
        tls,
        cors: args.cors,
        on_event: Box::new(move |event| tell(event, log)),
        ..Config::default()
    };
    let running = start(&args.lake, config)?;
    let address = running.address();
    let admin = running.admin_address();
    let facts = serde_json::json!({ "address": address, "url": format!("{scheme}://{address}/"), "admin": admin });
    out.fact(&facts, |w| {
        writeln!(w, "serving {} on {scheme}://{address}/", args.lake.display())?;
        admin.map_or(Ok(()), |admin| writeln!(w, "metrics and admin calls on http://{admin}/"))
    })?;
    out.flush()?;
    interrupt.wait();
    running.stop()?;
    Ok(Status::Done)
}

/// Serves the lake in `dir`, and captures from the archives of its datasets.
pub fn start(dir: &Path, config: Config) -> anyhow::Result<Running> {
    let store = lake_dir::served_store(dir)?;
    lake_dir::must_be_lake(dir)?;
    lake_dir::open_in(dir, store.clone())?;
    let lake = Lake::open(store, trawl_query::Options::default())?;
    let archives = Some(Archives::new(lake_dir::files()?));
    Ok(Server::start(Arc::new(lake), Config { archives, ..config })?)
}

/// Connections that the descriptors of this process allow.
fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    limit.saturating_sub(SPARE_DESCRIPTORS).max(16)
}

/// Tells what happens, on stderr.
pub fn tell(event: &Event<'_>, log: Log) {
    match event {
        Event::Request(request) => match log {
            Log::Off => {}
            Log::Text => {
                let who = request.principal.unwrap_or("-");
                let ms = request.micros as f64 / 1000.0;
                complain_line(&format!("{} {} {} {who} {ms:.1} ms", request.status, request.method, request.route));
            }
            Log::Json => {
                let time = crate::system::now().to_string();
                let mut line = serde_json::json!({ "time": time, "event": "request" });
                if let (Some(line), Ok(serde_json::Value::Object(more))) =
                    (line.as_object_mut(), serde_json::to_value(request))
                {
                    line.extend(more);
                }
                complain_line(&line.to_string());
            }
        },
        Event::LakeError(error) => note(log, "lake_error", &error.to_string()),
        Event::LakeChanged(text) => note(log, "lake_changed", text),
        Event::Reloaded { what, error: None } => note(log, "reloaded", &format!("{what} were read again")),
        Event::Reloaded { what, error: Some(error) } => {
            note(log, "not_reloaded", &format!("{what} could not be read again, the old ones stay in use: {error}"));
        }
        _ => {}
    }
}

fn note(log: Log, event: &str, text: &str) {
    if log == Log::Json {
        let time = crate::system::now().to_string();
        complain_line(&serde_json::json!({ "time": time, "event": event, "message": text }).to_string());
    } else {
        output::complain(text);
    }
}

fn complain_line(line: &str) {
    // A log that cannot be written must not end the server.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
