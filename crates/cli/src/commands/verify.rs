//! `trawl verify`: every checksum and invariant.

use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{bytes, show_bytes, show_count};
use crate::{exit, output, system};
use anyhow::Context;
use std::path::PathBuf;
use trawl_archive::{Verified, verify};
use trawl_model::{Check, Finding, Severity};

/// Checks every digest, length, id and pointer, and lists all faults
///
/// In archives: record framing, block and payload digests, unique ids, Concurrent-To and Refers-To targets. With a
/// captures.parquet beside them: that every capture has exactly one row, and that every row says what its record says.
/// In seqdb containers: every entry, pointer, hash and counter, and that the files of a filesys belong together.
/// Exit code 1 when there are faults.
///
/// Examples:
///   trawl verify crawl/
///   trawl verify *.warc.gz --json
///   trawl verify base/docs
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// Files or directories; what lies in one directory is checked together
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Memory for comparing records with each other; less spills to disk
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,

    /// Directory for what does not fit into memory; the system's when not given
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
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
        let checked = registry.files(&fs, path).and_then(|files| {
            let mut on_finding = |found: Finding| {
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
            verify(&fs, &files, path.is_dir(), &mut Check { temp_dir: &temp_dir, memory_bytes, on_finding, progress })
        });
        drop(bar);
        written?;
        match checked {
            Ok(checked) => {
                let summary = serde_json::json!({ "type": "summary", "path": path, "checked": checked });
                out.fact(&summary, |w| writeln!(w, "{}: {}", path.display(), summed_up(&checked)))?;
            }
            Err(error) => {
                failed += 1;
                output::complain(&exit::in_one_line(&error.into()));
            }
        }
    }
    if failed > 0 {
        anyhow::bail!("{failed} of {} paths could not be checked", args.paths.len());
    }
    Ok(Status::from_findings(faults > 0))
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
    let verdict = if all == 0 { "sound".to_owned() } else { format!("{} fault(s)", show_count(all)) };
    format!("{}: {verdict}", parts.join(", "))
}
