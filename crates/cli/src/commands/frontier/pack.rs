//! `trawl frontier pack`.

use super::engine::open;
use super::files::{check_target, directory};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use anyhow::{Context, bail};
use std::path::PathBuf;
use trawl_frontier::{Config, Frontier};

/// Writes a frontier as one .meguri file
///
/// The file contains every URL and host; you can inspect, move and merge it. The same content gives the same bytes. The
/// frontier itself stays unchanged.
///
/// Example:
///   trawl frontier pack crawl/.crawl/frontier --out all.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PackArgs {
    /// Directory of the frontier
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Drop rows whose state is gone
    #[arg(long)]
    drop_gone: bool,

    /// Replace the output if it exists; a file of the frontier is never replaced
    #[arg(long)]
    overwrite: bool,
}

/// Runs the command.
pub fn run(args: &PackArgs, out: &mut Output) -> anyhow::Result<Status> {
    let frontier = args.dir.canonicalize().with_context(|| format!("cannot read {}", args.dir.display()))?;
    if directory(&args.out).canonicalize().is_ok_and(|dir| dir == frontier) {
        bail!("{} would be a file of the frontier: choose another directory for the output", args.out.display());
    }
    if !Frontier::exists(&trawl_io::RealFs, &args.dir)? {
        bail!("{} holds no frontier; that of a crawl is in DIR/.crawl/frontier", args.dir.display());
    }
    check_target(&args.out, &[], args.overwrite)?;
    let (identity, queue) = Frontier::made_with(&trawl_io::RealFs, &args.dir)?;
    let mut frontier = open(&args.dir, Config { identity, queue, ..Config::default() })?;
    let bar = Progress::start("pack", None, out.quiet());
    let (merged, written) = frontier.pack(&args.out, args.drop_gone, &mut |rows| {
        bar.report(rows, || format!("{} rows", show_count(rows)));
    })?;
    frontier.close()?;
    let fact = serde_json::json!({
        "file": args.out, "urls": written.urls, "hosts": written.hosts, "bytes": written.bytes, "gone": merged.gone,
    });
    out.fact(&fact, |w| {
        let (urls, hosts) = (show_count(written.urls), show_count(written.hosts));
        writeln!(w, "{}: {urls} URLs of {hosts} hosts, {}", args.out.display(), show_bytes(written.bytes))
    })?;
    Ok(Status::Done)
}
