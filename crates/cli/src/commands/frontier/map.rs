//! `trawl frontier map`: the catalogue of a fleet's partitions.

use crate::exit::Status;
use crate::output::{Output, harmless};
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{Fs, RealFs, publish};
use trawl_meguri::keys::parse_host;
use trawl_meguri::manifest::{Entry, Gap, Manifest};

/// Shows a manifest of partitions, checks that each key belongs to one of them, finds the partition of a host
///
/// If you name files, it writes the manifest from them instead. Exit code 1 if some keys belong to no partition or to
/// two, or if no partition owns the host.
///
/// Examples:
///   trawl frontier map --manifest meguri.manifest --host example.com
///   trawl frontier map --manifest meguri.manifest low.meguri high.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct MapArgs {
    /// The manifest
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,

    /// Show which partition owns this host: its name, or its key as a number or 0x…
    #[arg(long, value_parser = parse_host, value_name = "HOST")]
    host: Option<u64>,

    /// Generation of the fleet
    #[arg(long, default_value_t = 0, value_name = "N")]
    epoch: u32,

    /// Replace the manifest if it exists; a named file is never replaced
    #[arg(long, requires = "files")]
    overwrite: bool,

    /// Write the manifest from these files
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Coverage {
    #[serde(rename = "type")]
    kind: &'static str,
    epoch: u32,
    gaps: Vec<Gap>,
}

pub fn run(args: &MapArgs, out: &mut Output) -> anyhow::Result<Status> {
    if !args.files.is_empty() {
        write(args)?;
    }
    let bytes = std::fs::read(&args.manifest).with_context(|| format!("cannot read {}", args.manifest.display()))?;
    let manifest = Manifest::decode(&bytes, &args.manifest)?;
    if let Some(host) = args.host {
        let Some(entry) = manifest.route(host, args.epoch) else {
            out.remark(&format!("no partition of epoch {} owns host key {host:#018x}", args.epoch));
            return Ok(Status::Findings);
        };
        show(entry, out)?;
        return Ok(Status::Done);
    }
    manifest.entries().iter().try_for_each(|entry| show(entry, out))?;
    let mut any = false;
    for epoch in manifest.epochs() {
        let coverage = Coverage { kind: "coverage", epoch, gaps: manifest.gaps(epoch) };
        any |= !coverage.gaps.is_empty();
        let told = |gap: &Gap| match gap {
            Gap::Uncovered { lo, hi } => format!("epoch {epoch}: no partition owns {lo:016x} to {hi:016x}"),
            Gap::Overlap { lo, hi } => format!("epoch {epoch}: owned twice: {lo:016x} to {hi:016x}"),
        };
        if out.csv() {
            // The listing is that of the partitions.
            coverage.gaps.iter().for_each(|gap| out.remark(&told(gap)));
            continue;
        }
        out.fact(&coverage, |w| {
            if coverage.gaps.is_empty() {
                return writeln!(w, "epoch {epoch}: every host key is owned once");
            }
            coverage.gaps.iter().try_for_each(|gap| writeln!(w, "{}", told(gap)))
        })?;
    }
    Ok(Status::from_findings(any))
}

fn show(entry: &Entry, out: &mut Output) -> anyhow::Result<()> {
    const COLUMNS: &[&str] = &[
        "partition_id",
        "file_ref",
        "hostkey_lo",
        "hostkey_hi",
        "url_count",
        "host_count",
        "due_min",
        "bytes_per_url",
        "file_crc",
        "created",
        "epoch",
    ];
    out.row(COLUMNS, entry, |w| {
        let Entry { partition_id, hostkey_lo, hostkey_hi, url_count, host_count, due_min, .. } = entry;
        writeln!(
            w,
            "{partition_id:>6}  {hostkey_lo:016x} to {hostkey_hi:016x}  {url_count:>12} URLs {host_count:>10} hosts  due {due_min}  {}",
            harmless(&entry.file_ref)
        )
    })?;
    Ok(())
}

fn write(args: &MapArgs) -> anyhow::Result<()> {
    let files: Vec<_> = args.files.iter().map(PathBuf::as_path).collect();
    super::files::check_target(&args.manifest, &files, args.overwrite)?;
    let mut entries = Vec::new();
    for path in &args.files {
        let Some(name) = path.to_str() else { bail!("{} is not UTF-8: a manifest cannot name it", path.display()) };
        entries.push(Entry::of(&super::open(path)?, name, args.epoch)?);
    }
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    publish(&fs, &args.manifest, &Manifest::new(entries).encode())?;
    Ok(())
}
