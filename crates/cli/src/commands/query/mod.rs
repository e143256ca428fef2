//! `trawl query`: the API's answers, without a server.

mod diff;
mod domains;

use crate::exit::Status;
use crate::lake_dir;
use crate::output::{Output, harmless};
use crate::units::show_count;
use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use trawl_model::UnixMillis;
use trawl_query::{DomainAnswer, Filter, Lake, Page, Pinned, Principal, QueryError, UrlItem, dataset_number};
use trawl_url::{LakeUrl, SuffixList, shown_host};

/// Asks a lake: which datasets hold a domain, and which URLs
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Domain(DomainArgs),
    Domains(domains::DomainsArgs),
    Urls(UrlsArgs),
    Url(UrlArgs),
    Diff(diff::DiffArgs),
}

/// Lists the datasets that hold a domain, with exact counts
///
/// Takes domains, host names or URLs, and looks up their registrable domains. Exit code 1 when no dataset holds one of them,
/// or one is not a domain name; the others are still answered.
///
/// Examples:
///   trawl query domain www.example.co.uk --lake lake --json
///   trawl query domain - --lake lake --json < domains.txt
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct DomainArgs {
    /// Domains, hosts or URLs; - reads them from standard input, one per line
    #[arg(required = true, value_name = "DOMAIN")]
    domains: Vec<String>,

    /// Directory of the lake, or s3://bucket/prefix
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,
}

/// Lists the URLs of a domain in a dataset, page by page
///
/// With a filter (--host, --path-prefix, --from, --until, --status) a page may be short although more rows follow: continue
/// with --cursor until no cursor is printed. A cursor stays on the version it began with; an offset counts in the newest one.
///
/// Exit code 1 when the dataset does not hold the domain, when there is no such dataset, or when the version of the cursor is no
/// longer kept: then start again without a cursor. With --json such an answer, and an invalid cursor (exit code 2), is an object
/// with `error` (unknown_domain, unknown_dataset, gone, bad_cursor, …) and `message`.
///
/// Control characters in a URL are printed as escapes; --json prints the URL unchanged.
///
/// Examples:
///   trawl query urls example.com news --lake lake --limit 100 --offset 200
///   trawl query urls example.com news --path-prefix /docs/ --status 404
///   trawl query urls example.com news --from 2026-01-01 --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct UrlsArgs {
    /// The domain
    domain: String,

    /// Name or number of the dataset
    dataset: String,

    /// Directory of the lake, or s3://bucket/prefix
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,

    /// Rows to skip
    #[arg(long, default_value_t = 0, value_name = "N")]
    offset: u64,

    /// Print at most this many rows; never more than 10000
    #[arg(long, default_value_t = trawl_query::DEFAULT_LIMIT, value_name = "N")]
    limit: u32,

    /// Continue where an earlier answer ended: its next_cursor
    #[arg(long, value_name = "CURSOR", conflicts_with = "offset")]
    cursor: Option<String>,

    /// Only this host
    #[arg(long)]
    host: Option<String>,

    /// Only URLs whose path starts with this, in any spelling
    #[arg(long, value_name = "PATH")]
    path_prefix: Option<String>,

    /// Only rows of this time or later
    #[arg(long, value_name = "TIME", value_parser = trawl_model::date::parse)]
    from: Option<UnixMillis>,

    /// Only rows before this time
    #[arg(long, value_name = "TIME", value_parser = trawl_model::date::parse)]
    until: Option<UnixMillis>,

    /// Only this HTTP status
    #[arg(long)]
    status: Option<u16>,

    /// Only failed fetches of this class, such as dns_nxdomain
    #[arg(long, value_name = "CLASS")]
    error_class: Option<String>,
}

/// Lists every row with a URL, across all datasets
///
/// URLs are compared by their normalised form, in any spelling. Control characters in a URL are printed as escapes; --json prints
/// the URL unchanged. Exit code 1 when there is no such row.
///
/// Example: trawl query url http://www.example.com/ --lake lake
#[derive(Debug, clap::Args)]
pub struct UrlArgs {
    /// The URL
    url: String,

    /// Directory of the lake, or s3://bucket/prefix
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,

    /// Print at most this many rows; never more than 10000
    #[arg(long, default_value_t = trawl_query::DEFAULT_LIMIT, value_name = "N")]
    limit: u32,
}

/// The lake in `dir`, to ask it.
pub fn open(dir: &Path) -> anyhow::Result<Lake> {
    // Says what is wrong in the words of the command line before the library does in its own.
    let store = lake_dir::cached_store(dir)?;
    lake_dir::must_be_lake(dir)?;
    lake_dir::open_in(dir, store.clone())?;
    Ok(Lake::open(store, trawl_query::Options::default())?)
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        Verb::Domain(args) => domain_answers(&args, out),
        Verb::Domains(args) => domains::run(&args, out),
        Verb::Urls(args) => urls(args, out),
        Verb::Url(args) => url(&args, out),
        Verb::Diff(args) => diff::run(&args, out),
    }
}

/// What is not there, or no longer, is a finding; everything else that has no answer is a failure. With `--json` a script
/// learns which one it was, unless the lake itself is at fault.
fn unanswered(error: QueryError, out: &mut Output) -> anyhow::Result<Status> {
    match error.status() {
        404 | 410 => finding(error.code(), &error.to_string(), out),
        status => {
            if status < 500 && out.json() {
                finding(error.code(), &error.to_string(), out)?;
                out.flush()?;
            }
            Err(error.into())
        }
    }
}

fn finding(code: &str, message: &str, out: &mut Output) -> anyhow::Result<Status> {
    if out.json() {
        out.json_line(&serde_json::json!({ "error": code, "message": message }))?;
    } else {
        out.remark(message);
    }
    Ok(Status::Findings)
}

fn domain_answers(args: &DomainArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = open(&args.lake)?;
    let mut missing = false;
    for name in &args.domains {
        if name != "-" {
            missing |= domain(&lake, name, out)? == Status::Findings;
            continue;
        }
        for line in io::stdin().lock().split(b'\n') {
            let line = line?;
            let line = trawl_url::text_of(&line);
            if !line.trim().is_empty() {
                missing |= domain(&lake, &line, out)? == Status::Findings;
            }
        }
    }
    Ok(Status::from_findings(missing))
}

/// A URL, or a host with its port, stands for its host.
fn host_of(name: &str) -> Cow<'_, str> {
    if !name.contains(['/', ':']) {
        return name.into();
    }
    // What is no URL is refused by name where domains are read.
    LakeUrl::parse(name, SuffixList::builtin()).map_or(name.into(), |url| url.host().to_owned().into())
}

fn domain(lake: &Lake, name: &str, out: &mut Output) -> anyhow::Result<Status> {
    let name = &host_of(name);
    match lake.ask(|pinned| pinned.domain(name, &Principal::operator())) {
        Ok(answer) if out.csv() => {
            for dataset in &answer.datasets {
                let mut row = serde_json::to_value(dataset)?;
                (row["domain"], row["rows"]) = (answer.domain.clone().into(), dataset.url_count_est.into());
                out.csv_row(DOMAIN_COLUMNS, &row)?;
            }
        }
        Ok(answer) => out.fact(&answer, |w| write_domain(&answer, w))?,
        // One bad name among many must not end the others.
        Err(error @ QueryError::BadDomain { .. }) => return finding(error.code(), &error.to_string(), out),
        Err(error) => return unanswered(error, out),
    }
    Ok(Status::Done)
}

fn url(args: &UrlArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = open(&args.lake)?;
    let who = Principal::operator().with_credentials(out.credentials());
    let answer = match lake.ask(|pinned| pinned.url(&args.url, args.limit, &who)) {
        Ok(answer) => answer,
        Err(error) => return unanswered(error, out),
    };
    if out.csv() {
        answer.items.iter().try_for_each(|hit| out.csv_row(HIT_COLUMNS, hit))?;
    } else {
        out.fact(&answer, |w| {
            for hit in &answer.items {
                write!(w, "{}\t", harmless(&hit.dataset))?;
                write_item(&hit.item, w)?;
            }
            Ok(())
        })?;
    }
    if answer.more {
        out.remark(&format!("more than {} rows: see --limit", answer.items.len()));
    } else if answer.items.is_empty() {
        out.remark(&format!("no dataset holds {}", answer.normalised));
    }
    Ok(Status::from_findings(answer.items.is_empty()))
}

fn urls(args: UrlsArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = open(&args.lake)?;
    let by_cursor = args.cursor.is_some();
    let page = Page { offset: args.offset, limit: args.limit, cursor: args.cursor };
    let filter = Filter {
        host: args.host,
        path_prefix: args.path_prefix,
        from: args.from,
        until: args.until,
        status: args.status,
        error_class: args.error_class,
    };
    let who = Principal::operator().with_credentials(out.credentials());
    let found = lake.ask(|pinned| {
        let dataset = match dataset_id(pinned, &args.dataset)? {
            Ok(id) => id,
            Err(message) => return Ok(Err(message)),
        };
        pinned.urls(&host_of(&args.domain), dataset, &page, &filter, &who).map(Ok)
    });
    let answer = match found {
        Ok(Ok(answer)) => answer,
        Ok(Err(message)) => return finding(UNKNOWN_DATASET, &message, out),
        Err(error) => return unanswered(error, out),
    };
    if out.csv() {
        answer.items.iter().try_for_each(|item| out.csv_row(URL_COLUMNS, item))?;
    } else {
        out.fact(&answer, |w| answer.items.iter().try_for_each(|item| write_item(item, w)))?;
    }
    match (answer.next_offset, &answer.next_cursor) {
        _ if out.json() => {}
        (Some(next), _) if !by_cursor => out.remark(&format!("more with --offset {next}")),
        (_, Some(cursor)) => out.remark(&format!("more with --cursor {cursor}")),
        (_, None) if answer.items.is_empty() => out.remark("no row fits these filters and this offset"),
        (_, None) => {}
    }
    Ok(Status::Done)
}

const UNKNOWN_DATASET: &str = "unknown_dataset";

/// Columns of `--csv`.
const DOMAIN_COLUMNS: &[&str] =
    &["domain", "dataset_id", "name", "rows", "distinct_urls", "distinct_exact", "first_ts", "last_ts"];
const URL_COLUMNS: &[&str] = &[
    "url",
    "ts",
    "status",
    "content_type",
    "digest",
    "body_length",
    "warc_file",
    "warc_offset",
    "warc_length",
    "extras",
];
const HIT_COLUMNS: &[&str] = &[
    "dataset_id",
    "dataset",
    "url",
    "ts",
    "status",
    "content_type",
    "digest",
    "body_length",
    "warc_file",
    "warc_offset",
    "warc_length",
    "extras",
];

/// The number of a dataset, or the message if no dataset has that name.
fn dataset_id(pinned: &Pinned, text: &str) -> Result<Result<u32, String>, QueryError> {
    let datasets = pinned.datasets(&Principal::operator())?;
    if let Some(named) = datasets.iter().find(|d| d.name == text) {
        return Ok(Ok(named.dataset_id));
    }
    Ok(dataset_number(text).ok_or_else(|| {
        let names: Vec<_> = datasets.iter().map(|d| d.name.as_str()).collect();
        format!("there is no dataset {text:?}; there are: {}", names.join(", "))
    }))
}

fn write_domain(answer: &DomainAnswer, w: &mut dyn Write) -> io::Result<()> {
    let shown = match shown_host(&answer.domain) {
        Cow::Owned(shown) => format!("{} = {shown}", answer.domain),
        Cow::Borrowed(same) => same.to_owned(),
    };
    writeln!(w, "{shown}  ({} dataset(s), version {})", answer.datasets.len(), answer.version)?;
    for d in &answer.datasets {
        let bound = if d.distinct_exact { "" } else { "at most " };
        let (rows, urls) = (show_count(d.url_count_est), show_count(d.distinct_urls));
        writeln!(w, "{:>5}  {:<24} {rows:>12} rows  {bound}{urls} URLs", d.dataset_id, harmless(&d.name))?;
    }
    Ok(())
}

fn write_item(item: &UrlItem, w: &mut dyn Write) -> io::Result<()> {
    let url = harmless(&item.url);
    match item.ts {
        Some(ts) => writeln!(w, "{url}\t{ts}"),
        None => writeln!(w, "{url}"),
    }
}
