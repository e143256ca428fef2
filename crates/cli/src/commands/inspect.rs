//! `trawl inspect`: what is in a file, whatever its format.

use super::kinds::{Input, Kind, inspect_list, inspect_rows};
use super::lake;
use crate::exit::{self, Status};
use crate::lists::ListArgs;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::system;
use crate::units::{show_bytes, show_count};
use anyhow::bail;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use trawl_archive::inspect;
use trawl_model::{Inspection, Tally};

/// Rows of a breakdown that people are shown; JSON has all of them.
const TOP: usize = 8;

/// Says what is in a file or directory, whatever the format
///
/// Prints counts, sizes, breakdowns by status, type and host, and a sample. Takes archives, captures.parquet, lists of URLs,
/// CDXJ and ZipNum indexes, frontiers, lakes and their Parquet files. The format is found by the first bytes.
///
/// Examples:
///   trawl inspect crawl/
///   trawl inspect captures.parquet -n 20
///   trawl inspect urls.txt.gz lake/
///   zcat crawl.warc.gz | trawl inspect -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files, directories, lakes, or - for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Entries of the sample
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N")]
    limit: usize,

    #[command(flatten)]
    lists: ListArgs,
}

/// What is said of one file.
#[derive(Debug, Serialize)]
struct Facts {
    file: String,
    #[serde(flatten)]
    seen: Inspection,
}

/// Runs the command. One bad path does not stop the rest.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let (mut damaged, mut failed) = (false, 0u64);
    for path in &args.paths {
        match inspect_path(path, &args, out) {
            Ok(found) => damaged |= found,
            // The only path, or a closed pipe: that is the result of the command.
            Err(error) if args.paths.len() == 1 || exit::is_closed_pipe(&error) => return Err(error),
            Err(error) => {
                failed += 1;
                output::complain(&exit::in_one_line(&error));
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {} paths could not be inspected", args.paths.len());
    }
    Ok(Status::from_findings(damaged))
}

/// Says what is at one path; `true` if something there is damaged.
fn inspect_path(path: &Path, args: &Args, out: &mut Output) -> anyhow::Result<bool> {
    let (fs, registry) = system::archives();
    let input = Input::open(path)?;
    let kind = input.kind(&fs, &registry).map_err(|error| input.named(error))?;
    let files: Vec<(PathBuf, Kind)> = match kind {
        Kind::Lake => {
            lake::describe(&input.path, out)?;
            return Ok(false);
        }
        Kind::Archives(found) => {
            found.into_iter().map(|found| (found.path.clone(), Kind::Archives(vec![found]))).collect()
        }
        Kind::Lists(lists) => {
            lists.into_iter().map(|(path, format)| (path.clone(), Kind::Lists(vec![(path, format)]))).collect()
        }
        kind => vec![(input.path.clone(), kind)],
    };
    let mut damaged = false;
    for (path, kind) in files {
        let path = &path;
        let shown = input.shown(&path.display().to_string()).into_owned();
        let bar = Progress::start(&format!("inspect {shown}"), None, out.quiet());
        let mut progress = |p: trawl_model::Progress| {
            bar.report(p.records, || format!("{} records, {}", show_count(p.records), show_bytes(p.bytes)));
        };
        let all = match &kind {
            Kind::Lists(lists) => {
                let each = lists
                    .iter()
                    .map(|(path, format)| inspect_list(&fs, path, *format, &args.lists, args.limit, &mut progress));
                each.collect::<Result<Vec<_>, _>>()?
            }
            Kind::Rows => vec![inspect_rows(path, args.limit, &mut progress)?],
            Kind::Archives(found) => {
                let each = found.iter().map(|found| inspect(found, &fs, args.limit, &mut progress));
                each.collect::<Result<Vec<_>, _>>()?.concat()
            }
            Kind::Lake => Vec::new(),
        };
        drop(bar);
        for seen in all {
            damaged |= !seen.damage.is_empty();
            let file = seen.inside.as_ref().map_or_else(|| shown.clone(), |inside| format!("{shown}!{inside}"));
            let facts = Facts { file, seen };
            out.fact(&facts, |w| facts.write(w))?;
        }
    }
    Ok(damaged)
}

impl Facts {
    fn write(&self, w: &mut dyn Write) -> io::Result<()> {
        let Inspection { format, format_note, facts, remarks, breakdowns, sample, damage, .. } = &self.seen;
        let mut words = vec![format_note.as_ref().map_or_else(|| format.clone(), |note| format!("{format} ({note})"))];
        facts.iter().for_each(|(name, value)| show_fact(name, value, &mut words));
        words.extend_from_slice(remarks);
        writeln!(w, "{}: {}", self.file, words.join(", "))?;
        for (name, map) in breakdowns {
            breakdown(w, &name.replace('_', " "), map)?;
        }
        for entry in sample {
            writeln!(w, "  {}", show_entry(entry))?;
        }
        damage.iter().try_for_each(|damage| writeln!(w, "  damaged: {damage}"))
    }
}

/// `25 records`, `3.1 KiB stored`, `compression gzip`; lists and what is absent are for JSON.
fn show_fact(name: &str, value: &Value, words: &mut Vec<String>) {
    let spaced = name.replace('_', " ");
    match value {
        Value::Number(n) => match (name.strip_suffix("_bytes"), n.as_u64()) {
            (Some(what), Some(n)) => words.push(format!("{} {}", show_bytes(n), what.replace('_', " "))),
            (None, Some(n)) => words.push(format!("{} {spaced}", show_count(n))),
            _ => words.push(format!("{n} {spaced}")),
        },
        Value::String(text) if !text.is_empty() => words.push(format!("{spaced} {text}")),
        Value::Object(inside) => inside.iter().for_each(|(name, value)| show_fact(name, value, words)),
        _ => {}
    }
}

/// An entry of the sample: numbers in columns, then texts.
fn show_entry(entry: &Map<String, Value>) -> String {
    let shown = entry.iter().map(|(name, value)| match value {
        Value::Number(n) if name.ends_with("bytes") => format!("{:>10}", show_bytes(n.as_u64().unwrap_or(0))),
        Value::Number(n) => format!("{n:>8}"),
        Value::String(text) => text.clone(),
        _ => "-".to_owned(),
    });
    shown.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("  ")
}

fn breakdown(w: &mut dyn Write, name: &str, map: &BTreeMap<String, Tally>) -> io::Result<()> {
    let mut rows: Vec<_> = map.iter().collect();
    rows.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(b.0)));
    let has_bytes = rows.iter().any(|(_, tally)| tally.bytes > 0);
    let show = |(key, tally): &(&String, &Tally)| {
        let key = if key.is_empty() { "(none)" } else { key };
        // A list knows no sizes.
        let bytes = if has_bytes { format!(" ({})", show_bytes(tally.bytes)) } else { String::new() };
        format!("{key} {}{bytes}", show_count(tally.count))
    };
    let shown: Vec<_> = rows.iter().take(TOP).map(show).collect();
    let more = if rows.len() > TOP { format!(", and {} more", rows.len() - TOP) } else { String::new() };
    if shown.is_empty() { Ok(()) } else { writeln!(w, "  {name}: {}{more}", shown.join(", ")) }
}
