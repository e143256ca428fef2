//! `trawl lake verify`.

use super::tell::keep;
use super::{LakeArg, MEMORY_BYTES};
use crate::exit::Status;
use crate::lake_dir;
use crate::output::Output;
use crate::units::bytes;
use std::collections::BTreeSet;
use std::path::Path;
use trawl_maintain::{Event, Keeper, Part};
use trawl_store::{Error, Lake, Manifest};

/// Checks a lake: every checksum, every row, every pointer of the index
///
/// Checks manifests and dataset commits (checksums, numbers, their suffix lists, the deny list); the Parquet files of each
/// dataset's newest and published commit (hashes, order, domains, counts) and those of older kept versions (hashes); and the
/// index segments of all kept versions (checksums, order, counts, postings that point at existing rows).
///
/// Lists all faults; exit code 1 when there are any. `trawl lake rebuild` repairs a damaged index. The damaged version before it
/// is kept, and reported, until `trawl lake gc` deletes it. Others may write to the lake meanwhile.
///
/// Example: trawl lake verify --lake lake
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Check the index alone, not the Parquet files: faster
    #[arg(long)]
    index_only: bool,

    /// Read at most this much of index and Parquet files; of the rest only check the lengths. By default everything of a lake in
    /// a directory, 10GiB of one in a bucket
    #[arg(long, value_parser = bytes, value_name = "SIZE")]
    max_read: Option<u64>,
}

impl VerifyArgs {
    /// A whole lake, by default settings.
    pub(super) fn of(dir: &Path) -> Self {
        Self { lake: LakeArg { lake: dir.to_owned() }, index_only: false, max_read: None }
    }
}

/// Bytes fetched from a bucket unless told otherwise: about a dollar where providers charge most.
const MAX_REMOTE_BYTES: u64 = 10 << 30;

pub(super) fn run(args: &VerifyArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let lake = match lake_dir::open(dir) {
        Ok(lake) => lake,
        // The newest manifest is damaged: nothing else can be looked at, but that much was found.
        Err(error) => match error.downcast_ref::<Error>() {
            Some(fault @ Error::Corrupt { .. }) => {
                let of = Part::Lake(dir.display().to_string());
                let fault = Event::Fault { of, fault: fault.to_string() };
                return keep(dir, MEMORY_BYTES, out, |keeper| {
                    (keeper.tell)(fault);
                    Ok(Status::Findings)
                });
            }
            _ => return Err(error),
        },
    };
    let manifest = lake.current()?;
    verify(&lake, &manifest, args, out)
}

/// Looks at the lake as `manifest` has it, which need not be the newest one any more.
fn verify(lake: &Lake, manifest: &Manifest, args: &VerifyArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    let remote = trawl_store::is_remote(&dir.display().to_string());
    let max_read_bytes = args.max_read.or(remote.then_some(MAX_REMOTE_BYTES));
    let verified = keep(dir, MEMORY_BYTES, out, |keeper| {
        Keeper { max_read_bytes, ..keeper.clone() }.verify(lake, manifest, args.index_only)
    })?;
    tell_damaged(dir, manifest, &verified.damaged, out)?;
    Ok(Status::from_findings(verified.faults > 0))
}

/// Tells which kept versions are damaged while the one that is served is not, and how to be rid of them.
fn tell_damaged(dir: &Path, manifest: &Manifest, damaged: &BTreeSet<String>, out: &mut Output) -> anyhow::Result<()> {
    let current = &manifest.current_version;
    if damaged.is_empty() || damaged.contains(current) {
        return Ok(());
    }
    // Versions after the last damaged one may stay.
    let sound = manifest.versions.iter().rev().take_while(|version| !damaged.contains(&version.version)).count();
    let command = format!("trawl lake gc --lake {} --keep-versions {sound} --grace 0s --yes", dir.display());
    let names = damaged.iter().map(String::as_str).collect::<Vec<_>>();
    let json = serde_json::json!({ "type": "damaged", "versions": names, "served": current, "command": command });
    out.fact(&json, |w| {
        let (what, they) = if names.len() == 1 { ("version", "it") } else { ("versions", "them") };
        writeln!(w, "damaged: {what} {}, kept for readers that began with {they}", names.join(", "))?;
        writeln!(w, "no fault was found in version {current}, which is served; while nothing else writes,")?;
        writeln!(w, "`{command}` deletes the damaged one")
    })?;
    Ok(())
}

#[cfg(test)]
mod tests;
