//! `trawl frontier merge` and `compact`.

use super::files::{WriteArgs, directory, tell};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::show_count;
use anyhow::bail;
use std::path::{Path, PathBuf};
use trawl_meguri::keys::parse_host;
use trawl_meguri::{Keep, MeguriFile};

/// Merges files into one
///
/// Name the oldest file first: of rows with the same key, the row of the newest file replaces the others completely.
/// Files whose keys were made by different policies are refused.
///
/// Example:
///   trawl frontier merge base.meguri run-1.meguri run-2.meguri --out merged.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct MergeArgs {
    /// Files, oldest first
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,

    /// Drop rows whose state is gone
    #[arg(long)]
    drop_gone: bool,

    /// Drop hosts below this key: a number, 0x…, or the name of a host
    #[arg(long, value_parser = parse_host, value_name = "KEY")]
    from: Option<u64>,

    /// Drop hosts above this key
    #[arg(long, value_parser = parse_host, value_name = "KEY")]
    to: Option<u64>,

    #[command(flatten)]
    write: WriteArgs,
}

/// Merges files and writes the result beside the first
///
/// Does what `merge` does, with the flags and names of the original tool.
///
/// Example:
///   trawl frontier compact base.meguri run-1.meguri --gc
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CompactArgs {
    /// Files, oldest first
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write to this file; compact.meguri beside the first file by default
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Drop rows whose state is gone
    #[arg(long)]
    gc: bool,

    #[command(flatten)]
    write: WriteArgs,
}

pub fn merge(args: &MergeArgs, out: &mut Output) -> anyhow::Result<Status> {
    let range = match (args.from, args.to) {
        (None, None) => None,
        (from, to) => Some((from.unwrap_or(0), to.unwrap_or(u64::MAX))),
    };
    merge_files(&args.files, &args.out, Keep { drop_gone: args.drop_gone, range, sound_keys: true }, &args.write, out)
}

pub fn compact(args: &CompactArgs, out: &mut Output) -> anyhow::Result<Status> {
    let beside = args.files.first().map(|first| directory(first)).unwrap_or_default().join("compact.meguri");
    let target = args.out.as_deref().unwrap_or(&beside);
    merge_files(&args.files, target, Keep { drop_gone: args.gc, range: None, sound_keys: true }, &args.write, out)
}

/// The first keys between ranges, which ascend by their beginnings, that none of them has.
fn first_gap(ranges: &[(u64, u64)]) -> Option<(u64, u64)> {
    let mut end = ranges.first()?.1;
    for (lo, hi) in ranges {
        let next = end.checked_add(1)?;
        if *lo > next {
            return Some((next, lo - 1));
        }
        end = end.max(*hi);
    }
    None
}

fn merge_files(
    paths: &[PathBuf],
    target: &Path,
    keep: Keep,
    write: &WriteArgs,
    out: &mut Output,
) -> anyhow::Result<Status> {
    write.check_target(target, &paths.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let files = paths.iter().map(|path| super::open(path)).collect::<anyhow::Result<Vec<MeguriFile>>>()?;
    if keep.range.is_some_and(|(lo, hi)| lo > hi) {
        bail!("--from is above --to: no host is between them");
    }
    // All keys that any of them owned.
    let mut ranges: Vec<_> = files.iter().map(|f| (f.header().hostkey_lo, f.header().hostkey_hi)).collect();
    ranges.sort_unstable();
    let owned = ranges.iter().copied().reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    if let (Some((lo, hi)), None) = (first_gap(&ranges), keep.range) {
        out.remark(&format!(
            "no input owns the host keys {lo:#018x} to {hi:#018x}, and the output claims them: add the file that does, or --from and --to"
        ));
    }
    let mut writer = write.writer_of(target, &files, keep.range.or(owned))?;
    let total = files.iter().map(|f| f.header().url_count).sum();
    let bar = Progress::start("merge", Some(total), out.quiet());
    let merged = trawl_meguri::merge(&files, &keep, &mut writer, &mut |rows| {
        bar.report(rows, || format!("{} of {} rows", show_count(rows), show_count(total)));
    })?;
    drop(bar);
    tell(target, writer.finish_file(target)?, &merged, out)?;
    Ok(Status::from_findings(merged.wrong_keys > 0))
}

#[cfg(test)]
mod tests {
    use super::first_gap;

    #[test]
    fn gaps_between_ranges() {
        assert_eq!(first_gap(&[]), None);
        assert_eq!(first_gap(&[(0, u64::MAX), (5, 6)]), None);
        assert_eq!(first_gap(&[(0, 9), (10, 20), (12, 14), (21, 22)]), None);
        assert_eq!(first_gap(&[(0, 9), (12, 20), (30, 40)]), Some((10, 11)));
    }
}
