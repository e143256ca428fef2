//! `trawl frontier diff`: what changed between two files.

use crate::exit::Status;
use crate::output::{Output, harmless};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use trawl_meguri::diff::{Change, Counts, Differences, diff};

/// Shows what changed between two files
///
/// Prints the rows that were added, removed or changed, in key order, and how many of each; then the same for hosts. It
/// compares texts, not their places in the files. Exit code 1 if there is any difference, or a row with the key of
/// another URL.
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

    /// Print at most this many rows; the counts are always complete
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
        for (what, counts) in [("", &found.urls), ("hosts: ", &found.hosts)] {
            let Counts { added, removed, changed, same, fields } = counts;
            writeln!(w, "{what}{added} added, {removed} removed, {changed} changed, {same} the same")?;
            fields.iter().try_for_each(|(name, n)| writeln!(w, "  {name}: {n}"))?;
        }
        if found.wrong_keys > 0 {
            writeln!(w, "{} rows have a key that is not the one of their URL", found.wrong_keys)?;
        }
        Ok(())
    })?;
    Ok(Status::from_findings(!found.is_empty()))
}

fn write_change(change: &Change, w: &mut dyn Write) -> std::io::Result<()> {
    let text = |row: &serde_json::Value, name: &str| harmless(row[name].as_str().unwrap_or_default()).into_owned();
    let shown = |fields: &BTreeMap<String, (serde_json::Value, serde_json::Value)>| {
        let fields: Vec<_> = fields.iter().map(|(name, (old, new))| format!("{name} {old} -> {new}")).collect();
        harmless(&fields.join(", ")).into_owned()
    };
    match change {
        Change::Added { row } => writeln!(w, "+ {}", text(row, "url")),
        Change::Removed { row } => writeln!(w, "- {}", text(row, "url")),
        Change::Changed { url, fields, .. } => writeln!(w, "~ {}  {}", harmless(url), shown(fields)),
        Change::HostAdded { host } => writeln!(w, "+ host {}", text(host, "host")),
        Change::HostRemoved { host } => writeln!(w, "- host {}", text(host, "host")),
        Change::HostChanged { host, fields } => writeln!(w, "~ host {}  {}", harmless(host), shown(fields)),
    }
}
