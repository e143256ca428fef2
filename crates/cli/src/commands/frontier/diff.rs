//! `trawl frontier diff`: what changed between two files.

use crate::exit::Status;
use crate::output::{Output, harmless};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;
use trawl_meguri::diff::{Change, Differences, diff};

/// Shows what changed between two files
///
/// Rows that were added, removed or changed, in key order, and how many of each; texts are compared, not where they lie.
/// Exit code 1 if there is any difference.
///
/// Example:
///   trawl frontier diff yesterday.meguri today.meguri --limit 20
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct DiffArgs {
    /// The older file
    old: PathBuf,

    /// The newer file
    new: PathBuf,

    /// Rows shown; the counts are always of all
    #[arg(long, default_value_t = 50, value_name = "N")]
    limit: u64,
}

#[derive(Serialize)]
struct Total<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    found: &'a Differences,
}

pub fn run(args: &DiffArgs, out: &mut Output) -> anyhow::Result<Status> {
    let (old, new) = (super::open(&args.old)?, super::open(&args.new)?);
    let mut shown = 0;
    let mut failed = None;
    let found = diff(&old, &new, &mut |change| {
        if shown < args.limit && failed.is_none() {
            shown += 1;
            failed = out.fact(&change, |w| write_change(&change, w)).err();
        }
        Ok(())
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    out.fact(&Total { kind: "total", found: &found }, |w| {
        writeln!(
            w,
            "{} added, {} removed, {} changed, {} the same",
            found.added, found.removed, found.changed, found.same
        )?;
        found.fields.iter().try_for_each(|(name, n)| writeln!(w, "  {name}: {n}"))
    })?;
    Ok(Status::from_findings(found.added + found.removed + found.changed > 0))
}

fn write_change(change: &Change, w: &mut dyn Write) -> std::io::Result<()> {
    let url = |row: &serde_json::Value| harmless(row["url"].as_str().unwrap_or_default()).into_owned();
    match change {
        Change::Added { row } => writeln!(w, "+ {}", url(row)),
        Change::Removed { row } => writeln!(w, "- {}", url(row)),
        Change::Changed { url, fields, .. } => {
            let fields: Vec<_> = fields.iter().map(|(name, (old, new))| format!("{name} {old} -> {new}")).collect();
            writeln!(w, "~ {}  {}", harmless(url), harmless(&fields.join(", ")))
        }
    }
}
