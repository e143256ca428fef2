//! `trawl verify`: every checksum and invariant.

use super::kinds::{self, Input, Kind, inspect_rows, verify_list};
use super::lake;
use crate::exit::Status;
use crate::lists::ListArgs;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{bytes, show_bytes, show_count};
use crate::{exit, output, system};
use anyhow::Context;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{Registry, Verified, verify};
use trawl_io::Fs;
use trawl_model::{Check, Finding, Severity};

/// Checks every digest, length, id and pointer, and lists all faults
///
/// In archives: record framing, block and payload digests, unique ids, Concurrent-To and Refers-To targets. With a
/// captures.parquet beside them: that every capture has exactly one row, and that every row says what its record says.
/// In seqdb containers: every entry, pointer, hash and counter, and that the files of a filesys belong together.
/// In files of Hadoop and Nutch and in `.meguri` files: every checksum, value and key, and the order of keys.
/// In lists: that every item is a URL; in CDXJ also that lines are sorted. In lakes: what `trawl lake verify` checks.
/// Exit code 1 when there are faults.
///
/// Examples:
///   trawl verify crawl/
///   trawl verify lake/
///   trawl verify *.warc.gz --json
///   trawl verify base/docs
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files, directories, lakes, or - for standard input; archives in one directory are checked together
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Memory for comparing records with each other; less spills to disk
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,

    /// Directory for what does not fit into memory; the system's by default
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,

    #[command(flatten)]
    lists: ListArgs,
}

/// Runs the command. One bad path does not stop the rest.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let temp_dir = args.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
    let memory_bytes = usize::try_from(args.memory).context("--memory")?;
    let (fs, registry) = system::archives();
    let (mut faults, mut failed) = (0u64, 0u64);
    for path in &args.paths {
        let bar = Progress::start(&format!("verify {}", path.display()), None, out.quiet());
        let mut written = Ok(());
        let checked = check(path, &fs, &registry, |input, kind| {
            let mut on_finding = |found: Finding| {
                let found = Finding { file: input.shown(&found.file).into_owned(), ..found };
                faults += u64::from(found.severity == Severity::Fault);
                let told = out.fact(&found, |w| {
                    let offset = found.offset.map_or_else(String::new, |n| format!("@{n}"));
                    let severity = if found.severity == Severity::Fault { "fault" } else { "note" };
                    writeln!(w, "{severity}: {}{offset}: {}: {}", found.file, found.kind, found.detail)
                });
                if written.is_ok() {
                    written = told;
                }
            };
            let mut progress = |p: trawl_model::Progress| {
                bar.report(p.records, || format!("{} records, {}", show_count(p.records), show_bytes(p.bytes)));
            };
            let (on_finding, progress) = (&mut on_finding, &mut progress);
            Ok(match kind {
                Kind::Lake => return Ok(None),
                Kind::Lists(lists) => {
                    let mut checked = kinds::Checked::default();
                    for (path, format) in &lists {
                        let one = verify_list(&fs, path, *format, &args.lists, &mut *on_finding, &mut *progress)?;
                        checked.items += one.items;
                        checked.faults += one.faults;
                    }
                    Some((summed_items(&checked), serde_json::to_value(&checked)?))
                }
                Kind::Rows => {
                    let seen = inspect_rows(&input.path, 0, progress)?;
                    let rows = seen.facts.get("rows").and_then(serde_json::Value::as_u64).unwrap_or_default();
                    let checked = kinds::Checked { items: rows, faults: 0 };
                    Some((summed_items(&checked), serde_json::to_value(&checked)?))
                }
                Kind::Archives(files) => {
                    let mut check = Check { temp_dir: &temp_dir, memory_bytes, on_finding, progress };
                    let checked = verify(&fs, &files, input.path.is_dir(), &mut check)?;
                    Some((summed_up(&checked), serde_json::to_value(&checked)?))
                }
            })
        });
        drop(bar);
        written?;
        match checked {
            Ok(Some((text, checked))) => {
                let summary = serde_json::json!({ "type": "summary", "path": path, "checked": checked });
                out.fact(&summary, |w| writeln!(w, "{}: {text}", path.display()))?;
            }
            Ok(None) => match lake::verify_in(path, out) {
                Ok(status) => faults += u64::from(status == Status::Findings),
                Err(error) => {
                    failed += 1;
                    output::complain(&exit::in_one_line(&error));
                }
            },
            Err(error) => {
                failed += 1;
                output::complain(&exit::in_one_line(&error));
            }
        }
    }
    if failed > 0 {
        anyhow::bail!("{failed} of {} paths could not be checked", args.paths.len());
    }
    Ok(Status::from_findings(faults > 0))
}

/// Finds out what a path is and has it checked.
fn check<T>(
    path: &Path,
    fs: &Arc<dyn Fs>,
    registry: &Registry,
    each: impl FnOnce(&Input, Kind) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let input = Input::open(path)?;
    let kind = input.kind(fs, registry).map_err(|error| input.named(error))?;
    each(&input, kind).map_err(|error| input.named(error))
}

fn summed_items(checked: &kinds::Checked) -> String {
    format!("{} items: {}", show_count(checked.items), verdict(checked.faults))
}

fn verdict(faults: u64) -> String {
    if faults == 0 { "sound".to_owned() } else { format!("{} fault(s)", show_count(faults)) }
}

fn summed_up(checked: &Verified) -> String {
    let mut parts = Vec::new();
    if let Some(c) = &checked.containers {
        parts.push(format!("{} container(s), {} entries", show_count(c.containers), show_count(c.entries)));
    }
    if checked.records > 0 || checked.containers.is_none() {
        parts.push(format!("{} records, {} digests", show_count(checked.records), show_count(checked.digests)));
    }
    if let Some(index) = &checked.index {
        parts.push(format!("{} index rows", show_count(index.rows)));
    }
    let all = checked.faults + checked.index.map_or(0, |index| index.findings);
    format!("{}: {}", parts.join(", "), verdict(all))
}
