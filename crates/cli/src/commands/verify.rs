//! `trawl verify`: every checksum and invariant.

use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{bytes, show_bytes, show_count};
use crate::verify::verify;
use crate::{exit, formats, output};
use anyhow::Context;
use std::path::PathBuf;
use trawl_warc::Severity;

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
    let temp = args.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
    let memory = usize::try_from(args.memory).context("--memory")?;
    let (mut faults, mut failed) = (0u64, 0u64);
    for path in &args.paths {
        let bar = Progress::start(&format!("verify {}", path.display()), None, out.quiet());
        let mut written = Ok(());
        let checked = formats::files(path).and_then(|files| {
            verify(
                &files,
                path.is_dir(),
                &temp,
                memory,
                &mut |fault| {
                    faults += u64::from(fault.severity == Severity::Fault);
                    let told = out.fact(&fault, |w| {
                        let offset = fault.offset.map_or_else(String::new, |n| format!("@{n}"));
                        let severity = if fault.severity == Severity::Fault { "fault" } else { "note" };
                        writeln!(w, "{severity}: {}{offset}: {}: {}", fault.file, fault.kind, fault.detail)
                    });
                    if written.is_ok() {
                        written = told;
                    }
                },
                &mut |records, bytes| {
                    bar.report(records, || format!("{} records, {}", show_count(records), show_bytes(bytes)));
                },
            )
        });
        drop(bar);
        written?;
        match checked {
            Ok(checked) => {
                let summary = serde_json::json!({ "type": "summary", "path": path, "checked": checked });
                out.fact(&summary, |w| {
                    let a = &checked.archives;
                    let mut parts = Vec::new();
                    if let Some(c) = &checked.containers {
                        parts.push(format!(
                            "{} container(s), {} entries",
                            show_count(c.containers),
                            show_count(c.entries)
                        ));
                    }
                    if a.records > 0 || checked.containers.is_none() {
                        parts.push(format!("{} records, {} digests", show_count(a.records), show_count(a.digests)));
                    }
                    if let Some(index) = &checked.index {
                        parts.push(format!("{} index rows", show_count(index.rows)));
                    }
                    write!(w, "{}: {}", path.display(), parts.join(", "))?;
                    let all = a.faults
                        + checked.index.map_or(0, |index| index.findings)
                        + checked.containers.map_or(0, |containers| containers.faults);
                    if all == 0 { writeln!(w, ": sound") } else { writeln!(w, ": {} fault(s)", show_count(all)) }
                })?;
            }
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
