//! `trawl query domains`: names of domains.

use super::{UNKNOWN_DATASET, dataset_id, finding, open, unanswered};
use crate::exit::Status;
use crate::output::Output;
use std::path::PathBuf;
use trawl_query::{NamesQuery, Principal};

/// Lists domains: all of them, those of a dataset, or those under a suffix
///
/// Each line has the domain, the number of datasets that hold it, and their rows, separated by tabs; with --dataset only the
/// rows of that dataset. Exit code 1 when no domain matches.
///
/// Examples:
///   trawl query domains --dataset news --lake lake
///   trawl query domains --suffix .ac.uk --limit 100000 --lake lake --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct DomainsArgs {
    /// Only domains that begin with this
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,

    /// Only domains that end with this, such as .co.uk
    #[arg(long, value_name = "TEXT", default_value = "")]
    suffix: String,

    /// Only domains of this dataset: its name or number
    #[arg(long, value_name = "DATASET")]
    dataset: Option<String>,

    /// Continue after this domain
    #[arg(long, value_name = "DOMAIN")]
    after: Option<String>,

    /// Print at most this many domains
    #[arg(long, default_value_t = 1000, value_name = "N")]
    limit: usize,

    /// Directory of the lake, or s3://bucket/prefix
    #[arg(long, value_name = "DIR", default_value = "lake")]
    lake: PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &DomainsArgs, out: &mut Output) -> anyhow::Result<Status> {
    let lake = open(&args.lake)?;
    let found = lake.ask(|pinned| {
        let dataset = match args.dataset.as_deref().map(|text| dataset_id(pinned, text)).transpose()? {
            Some(Err(message)) => return Ok(Err(message)),
            Some(Ok(id)) => Some(id),
            None => None,
        };
        let (prefix, suffix, after) = (args.prefix.as_str(), args.suffix.as_str(), args.after.as_deref());
        pinned.names(&NamesQuery { prefix, suffix, after, dataset, limit: args.limit }, &Principal::operator()).map(Ok)
    });
    let answer = match found {
        Ok(Ok(answer)) => answer,
        Ok(Err(message)) => return finding(UNKNOWN_DATASET, &message, out),
        Err(error) => return unanswered(error, out),
    };
    if out.csv() {
        answer.domains.iter().try_for_each(|one| out.csv_row(&["domain", "datasets", "rows"], one))?;
    } else {
        out.fact(&answer, |w| {
            let line = |one: &trawl_query::DomainSummary| (one.domain.clone(), one.datasets, one.rows);
            answer
                .domains
                .iter()
                .map(line)
                .try_for_each(|(name, datasets, rows)| writeln!(w, "{name}\t{datasets}\t{rows}"))
        })?;
    }
    match &answer.next_after {
        Some(next) => out.remark(&format!("more with --after {next}")),
        None if answer.domains.is_empty() => out.remark("no domain matches"),
        None => {}
    }
    Ok(Status::from_findings(answer.domains.is_empty()))
}
