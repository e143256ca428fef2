//! `trawl query diff`: two datasets side by side.

use super::{UNKNOWN_DATASET, dataset_id, finding, open, unanswered};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::show_count;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use trawl_query::{Comparison, DiffEvent, DiffSummary, DomainDiff, Principal, QueryError, Side, Tally};

/// Compares two datasets: domains and URLs in one of them only, and in both
///
/// URLs are compared by their normalised form. Lines begin with `<` for what only the first dataset holds, `>` for what only the
/// second holds, and `=` for what both hold (with --both); the counts come last. With --json each line is an object of type
/// url, domain or summary. Memory does not grow with the size of the datasets.
///
/// Exit code 1 when the datasets differ, or when there is no such dataset.
///
/// Examples:
///   trawl query diff monday tuesday --lake lake --list urls
///   trawl query diff monday tuesday --domain example.com --list urls --both
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct DiffArgs {
    /// Name or number of the first dataset
    a: String,

    /// Name or number of the second
    b: String,

    /// Directory of the lake, or s3://bucket/prefix
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,

    /// Only this domain
    #[arg(long)]
    domain: Option<String>,

    /// What to list besides the counts
    #[arg(long, value_name = "WHAT", default_value = "domains")]
    list: List,

    /// Also list what both hold
    #[arg(long)]
    both: bool,

    /// Compare domains only, without reading rows
    #[arg(long, conflicts_with = "list")]
    domains_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum List {
    /// The counts alone
    None,
    /// Domains that differ
    Domains,
    /// URLs that differ
    Urls,
}

/// Columns of `--csv`.
const DOMAIN_COLUMNS: &[&str] = &["in", "domain", "rows_a", "rows_b", "urls_only_a", "urls_only_b", "urls_both"];

#[derive(Serialize)]
struct Line<'a, T: Serialize> {
    r#type: &'static str,
    #[serde(flatten)]
    value: &'a T,
}

#[derive(Serialize)]
struct UrlLine<'a> {
    domain: &'a str,
    r#in: Side,
    url: &'a str,
}

pub(super) fn run(args: &DiffArgs, out: &mut Output) -> anyhow::Result<Status> {
    let pinned = open(&args.lake)?.pin()?;
    let mut ids = [0; 2];
    for (id, name) in ids.iter_mut().zip([&args.a, &args.b]) {
        match dataset_id(&pinned, name).map_err(|error| pinned.explain(error))? {
            Ok(found) => *id = found,
            Err(message) => return finding(UNKNOWN_DATASET, &message, out),
        }
    }
    let [a, b] = ids;
    let what = Comparison { a, b, domain: args.domain.as_deref(), urls: !args.domains_only };
    let bar = Progress::start("diff", None, out.quiet());
    let (mut seen, mut failed) = (0u64, None);
    let summary = pinned.diff(&what, &Principal::operator(), &mut |event| {
        if let DiffEvent::Domain(domain) = &event {
            seen += 1;
            bar.report(seen, || format!("{} domains, at {}", show_count(seen), domain.domain));
        }
        match tell(args, &event, out) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    drop(bar);
    if let Some(error) = failed {
        return Err(error.into());
    }
    let summary = match summary {
        Ok(summary) => summary,
        Err(error) => match pinned.explain(error) {
            // Half of the differences are no answer: with 1 it would look like one.
            gone @ QueryError::Gone { .. } => return Err(gone.into()),
            error => return unanswered(error, out),
        },
    };
    if !out.csv() {
        out.fact(&Line { r#type: "summary", value: &summary }, |w| write_summary(args, &summary, w))?;
    }
    let equal = summary.domains.is_equal() && summary.urls.is_none_or(|urls| urls.is_equal());
    Ok(Status::from_findings(!equal))
}

fn tell(args: &DiffArgs, event: &DiffEvent<'_>, out: &mut Output) -> io::Result<()> {
    match *event {
        DiffEvent::Url { domain, side, url } if args.list == List::Urls && wanted(args, side, None) => {
            let line = UrlLine { domain, r#in: side, url };
            if out.csv() {
                return out.csv_row(&["in", "domain", "url"], &line);
            }
            out.fact(&Line { r#type: "url", value: &line }, |w| writeln!(w, "{} {url}", mark(side)))
        }
        DiffEvent::Domain(diff) if args.list == List::Domains && wanted(args, diff.side, diff.urls.as_ref()) => {
            if out.csv() {
                let urls = diff.urls.as_ref();
                let row = serde_json::json!({
                    "in": diff.side, "domain": diff.domain, "rows_a": diff.rows_a, "rows_b": diff.rows_b,
                    "urls_only_a": urls.map(|urls| urls.only_a), "urls_only_b": urls.map(|urls| urls.only_b),
                    "urls_both": urls.map(|urls| urls.both),
                });
                return out.csv_row(DOMAIN_COLUMNS, &row);
            }
            out.fact(&Line { r#type: "domain", value: diff }, |w| write_domain(diff, w))
        }
        _ => Ok(()),
    }
}

/// Whether it differs, or all is wanted.
fn wanted(args: &DiffArgs, side: Side, urls: Option<&Tally>) -> bool {
    args.both || side != Side::Both || urls.is_some_and(|urls| !urls.is_equal())
}

fn mark(side: Side) -> char {
    match side {
        Side::A => '<',
        Side::B => '>',
        Side::Both => '=',
    }
}

fn write_domain(diff: &DomainDiff, w: &mut dyn Write) -> io::Result<()> {
    let DomainDiff { domain, side, rows_a, rows_b, urls } = diff;
    write!(w, "{} {domain}  {} and {} rows", mark(*side), show_count(*rows_a), show_count(*rows_b))?;
    match urls {
        Some(urls) => writeln!(w, ", URLs: {} <, {} >, {} =", urls.only_a, urls.only_b, urls.both),
        None => writeln!(w),
    }
}

fn write_summary(args: &DiffArgs, summary: &DiffSummary, w: &mut dyn Write) -> io::Result<()> {
    let tally = |t: &Tally| {
        let (a, b, both) = (show_count(t.only_a), show_count(t.only_b), show_count(t.both));
        format!("{a} only in {}, {b} only in {}, {both} in both", args.a, args.b)
    };
    writeln!(w, "domains: {}", tally(&summary.domains))?;
    summary.urls.iter().try_for_each(|urls| writeln!(w, "URLs:    {}", tally(urls)))
}
