//! `trawl query`: the API's answers, without a server.

use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use crate::units::show_count;
use anyhow::bail;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_model::UnixMillis;
use trawl_query::{DomainAnswer, Filter, Lake, Page, Pinned, Principal, QueryError, UrlsAnswer};

/// Asks a lake: which datasets hold a domain, and which URLs
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Domain(DomainArgs),
    Urls(UrlsArgs),
}

/// Lists the datasets that hold a domain, with exact counts
///
/// A host name stands for its registrable domain. Exit code 1 when no dataset holds it.
///
/// Example: trawl query domain www.example.co.uk --lake lake --json
#[derive(Debug, clap::Args)]
pub struct DomainArgs {
    /// The domain
    domain: String,

    /// Directory of the lake
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,
}

/// Lists the URLs of a domain in a dataset, page by page
///
/// Example: trawl query urls example.com news --lake lake --limit 100 --offset 200
#[derive(Debug, clap::Args)]
pub struct UrlsArgs {
    /// The domain
    domain: String,

    /// Name or number of the dataset
    dataset: String,

    /// Directory of the lake
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,

    /// Rows to skip
    #[arg(long, default_value_t = 0, value_name = "N")]
    offset: u64,

    /// Rows at most
    #[arg(long, default_value_t = trawl_query::DEFAULT_LIMIT, value_name = "N")]
    limit: u32,

    /// Go on where an earlier answer ended: its next_cursor
    #[arg(long, value_name = "CURSOR", conflicts_with = "offset")]
    cursor: Option<String>,

    /// Only this host
    #[arg(long)]
    host: Option<String>,

    /// Only paths that start so
    #[arg(long, value_name = "PATH")]
    path_prefix: Option<String>,

    /// Not before this time
    #[arg(long, value_name = "TIME", value_parser = UnixMillis::parse)]
    from: Option<UnixMillis>,

    /// Before this time
    #[arg(long, value_name = "TIME", value_parser = UnixMillis::parse)]
    until: Option<UnixMillis>,

    /// Only this HTTP status
    #[arg(long)]
    status: Option<u16>,
}

/// The newest version of the lake in `dir`.
pub fn pin(dir: &Path) -> anyhow::Result<Arc<Pinned>> {
    // Says what is wrong in the words of the command line before the library does in its own.
    lake_dir::open(dir)?;
    Ok(Lake::open(lake_dir::store(dir), trawl_query::Options::default())?.pin()?)
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let answered = match args.command {
        Verb::Domain(args) => domain(&args, out)?,
        Verb::Urls(args) => urls(args, out)?,
    };
    match answered {
        Ok(()) => Ok(Status::Done),
        Err(error) if error.status() == 404 => {
            let json = serde_json::json!({ "error": error.code(), "message": error.to_string() });
            if out.json() {
                out.json_line(&json)?;
            } else {
                out.remark(&error.to_string());
            }
            Ok(Status::Findings)
        }
        Err(error) => Err(error.into()),
    }
}

fn domain(args: &DomainArgs, out: &mut Output) -> anyhow::Result<Result<(), QueryError>> {
    let answer = match pin(&args.lake)?.domain(&args.domain, &Principal::operator()) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error)),
    };
    out.fact(&answer, |w| write_domain(&answer, w))?;
    Ok(Ok(()))
}

fn urls(args: UrlsArgs, out: &mut Output) -> anyhow::Result<Result<(), QueryError>> {
    let pinned = pin(&args.lake)?;
    let dataset = dataset_id(&pinned, &args.dataset)?;
    let page = Page { offset: args.offset, limit: args.limit, cursor: args.cursor };
    let filter = Filter {
        host: args.host,
        path_prefix: args.path_prefix,
        from: args.from,
        until: args.until,
        status: args.status,
    };
    let answer = match pinned.urls(&args.domain, dataset, &page, &filter, &Principal::operator()) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error)),
    };
    out.fact(&answer, |w| write_urls(&answer, w))?;
    if !out.json()
        && let Some(next) = answer.next_offset
    {
        out.remark(&format!("more with --offset {next}"));
    }
    Ok(Ok(()))
}

fn dataset_id(pinned: &Pinned, text: &str) -> anyhow::Result<u32> {
    let datasets = pinned.datasets(&Principal::operator())?;
    if let Some(named) = datasets.iter().find(|d| d.name == text) {
        return Ok(named.dataset_id);
    }
    match text.parse() {
        Ok(id) => Ok(id),
        Err(_) => {
            let names: Vec<_> = datasets.iter().map(|d| d.name.as_str()).collect();
            bail!("there is no dataset {text:?}; there are: {}", names.join(", "))
        }
    }
}

fn write_domain(answer: &DomainAnswer, w: &mut dyn Write) -> io::Result<()> {
    writeln!(w, "{}  ({} dataset(s), version {})", answer.domain, answer.datasets.len(), answer.version)?;
    for d in &answer.datasets {
        let bound = if d.distinct_exact { "" } else { "at most " };
        let (rows, urls) = (show_count(d.url_count_est), show_count(d.distinct_urls));
        writeln!(w, "{:>5}  {:<24} {rows:>12} rows  {bound}{urls} URLs", d.dataset_id, d.name)?;
    }
    Ok(())
}

fn write_urls(answer: &UrlsAnswer, w: &mut dyn Write) -> io::Result<()> {
    for item in &answer.items {
        match item.ts {
            Some(ts) => writeln!(w, "{}\t{ts}", item.url)?,
            None => writeln!(w, "{}", item.url)?,
        }
    }
    Ok(())
}
