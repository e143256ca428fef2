//! `trawl convert`: one container into another.

use super::copies;
use super::kinds::refuse_stdin;
use crate::exit::Status;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::system;
use crate::units::{bytes, show_bytes, show_count};
use anyhow::{Context, bail};
use std::path::PathBuf;
use trawl_archive::{About, Creation, Target, convert};

/// Converts archives: any container into WARC, WACZ, seqdb or a Nutch segment
///
/// The name of the target decides its format: .warc, .warc.gz, .warc.zst, .wacz, .data (a seqdb container) or .segment
/// (a Nutch segment). Between WARC, WACZ and seqdb, it copies records and loses nothing, unknown record types included.
/// It counts what another target cannot carry; with --strict it refuses. Several sources become one target; a WACZ file whose
/// archives lie beside it is left out, and captures that may be copied twice are exit code 1. An existing target is replaced
/// only with --overwrite.
///
/// In a seqdb container, each capture is a file: its name is URL and time, its contents are the capture's records. A
/// record without a URL (warcinfo) is a file named by its time.
///
/// Examples:
///   trawl convert old.arc.gz new.warc.gz
///   trawl convert crawl/ crawl.wacz
///   trawl convert a.warc.gz b.warc.gz both.warc.zst
///   trawl convert segments/20261115074402 crawl/ all.warc.gz
///   trawl convert crawl/ 20261116100000.segment --compress block
///   trawl convert crawl/ pages.data
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, override_usage = "trawl convert [OPTIONS] <SRC>... <DST>")]
pub struct Args {
    /// Files or directories, then the target
    #[arg(required = true, num_args = 2.., value_name = "SRC… DST")]
    paths: Vec<PathBuf>,

    /// Replace the target if it is there already, once the new one is complete
    #[arg(long)]
    overwrite: bool,

    /// Fail at the first damaged record, or at the first thing the target cannot carry, instead of leaving it out
    #[arg(long)]
    strict: bool,

    /// Compression level, from 1 (fast) to 12 (gzip) or 19 (zstd); the format's own by default
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(i32).range(1..=19))]
    level: Option<i32>,

    /// Compression of a Nutch segment: nutch (what Nutch does by default) or block
    #[arg(long, value_name = "NAME")]
    compress: Option<String>,

    /// Title of a WACZ file
    #[arg(long)]
    title: Option<String>,

    /// Memory for sorting the index of a WACZ file
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE")]
    memory: u64,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let Some((target, sources)) = args.paths.split_last() else { bail!("no target") };
    if target.exists() && !args.overwrite {
        bail!("{} exists already: choose another name, or replace it with --overwrite", target.display());
    }
    let (fs, registry) = system::archives();
    let mut files = Vec::new();
    for source in sources {
        refuse_stdin(source, "convert")?;
        files.extend(registry.files(&fs, source)?);
    }
    let some_twice = copies::leave_out(&fs, &mut files, out);
    crate::target::refuse_inputs(target, files.iter().map(|found| &*found.path))?;
    let software = concat!("trawl/", env!("CARGO_PKG_VERSION")).to_owned();
    let creation = Creation {
        about: About { software, title: args.title.clone(), ..About::default() },
        level: args.level,
        compress: args.compress,
        temp_dir: std::env::temp_dir(),
        memory_bytes: usize::try_from(args.memory).context("--memory")?,
        ..Creation::new(fs, Target::File(target.clone()), system::ids()?, system::clock())
    };
    let bar = Progress::start("convert", None, out.quiet());
    let mut on_skip = |error: trawl_model::DoorError| output::complain(&format!("left out: {error}"));
    let done = convert(&registry, &files, creation, args.strict, &mut on_skip, &mut |p| {
        bar.report(p.records, || format!("{} records, {}", show_count(p.records), show_bytes(p.bytes)));
    })?;
    drop(bar);
    done.examples.iter().for_each(|why| output::complain(&format!("not in the index: {why}")));
    out.fact(&done, |w| {
        writeln!(w, "{}: {} records, {}", done.target, show_count(done.records), show_bytes(done.bytes))?;
        if done.damaged > 0 {
            writeln!(w, "  {} damaged places were left out", show_count(done.damaged))?;
        }
        if done.unlisted > 0 {
            writeln!(w, "  {} records are in it, but not in its index", show_count(done.unlisted))?;
        }
        for (what, count) in &done.left_out {
            writeln!(w, "  left out, because it is not part of a capture: {what}, {} records", show_count(*count))?;
        }
        for (what, count) in &done.dropped {
            let times = if *count == 1 { "once".to_owned() } else { format!("{} times", show_count(*count)) };
            writeln!(w, "  dropped, because the target cannot carry it: {}, {times}", what.in_words())?;
        }
        Ok(())
    })?;
    Ok(Status::from_findings(
        some_twice || done.damaged > 0 || done.unlisted > 0 || !done.dropped.is_empty() || !done.left_out.is_empty(),
    ))
}
