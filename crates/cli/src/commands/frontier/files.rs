//! What `split`, `merge`, `compact` and `seed` share: how files are written.

use crate::exit::Status;
use crate::output::Output;
use crate::units::{bytes, show_bytes, show_count};
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::{Path, PathBuf};
use trawl_meguri::keys::parse_host;
use trawl_meguri::merge::{extensions_of, split as split_file};
use trawl_meguri::schema::Table;
use trawl_meguri::settings::{SETTINGS_KEY, Settings};
use trawl_meguri::{Identity, MeguriFile, Merged, Writer, WriterOptions, Written};

/// How files are written.
#[derive(Debug, clap::Args)]
pub struct WriteArgs {
    /// Write the smallest possible file; takes about twenty times as long
    #[arg(long, help_heading = "Output file")]
    pack: bool,

    /// Memory for rows, filter and index; less spills to temporary files beside the output
    #[arg(long, default_value = "256MiB", value_parser = bytes, value_name = "SIZE", help_heading = "Output file")]
    memory: u64,

    /// Replace the output if it exists; an input is never replaced
    #[arg(long, help_heading = "Output file")]
    overwrite: bool,
}

/// Refuses a target that is one of the inputs, or that exists and may not be replaced.
pub fn check_target(target: &Path, inputs: &[&Path], overwrite: bool) -> anyhow::Result<()> {
    let real = std::fs::canonicalize(target).ok();
    let is_target = |input: &&&Path| real.is_some() && std::fs::canonicalize(input).ok() == real;
    if let Some(input) = inputs.iter().find(is_target) {
        bail!("{} is an input ({}): choose another name for the output", target.display(), input.display());
    }
    if target.symlink_metadata().is_ok() && !overwrite {
        bail!("{} exists already: choose another name, or replace it with --overwrite", target.display());
    }
    Ok(())
}

impl WriteArgs {
    /// Refuses a target that is one of the inputs, or that exists without `--overwrite`.
    pub fn check_target(&self, target: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
        check_target(target, inputs, self.overwrite)
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        usize::try_from(self.memory).unwrap_or(usize::MAX)
    }

    /// A writer for a file that will be `path`.
    pub fn writer(&self, path: &Path, options: WriterOptions) -> anyhow::Result<Writer> {
        let settings = if self.pack { Settings::pack() } else { Settings::default() };
        let (temp, memory_bytes) = (directory(path), self.memory_bytes());
        Ok(Writer::new(WriterOptions { settings, temp, memory_bytes, ..options })?)
    }

    /// A writer for a file made of others: their extension columns, the first one's identity with another range.
    pub fn writer_of(&self, path: &Path, inputs: &[MeguriFile], range: Option<(u64, u64)>) -> anyhow::Result<Writer> {
        let mut identity = Identity { range, ..Identity::default() };
        if let Some(first) = inputs.first() {
            (identity.partition_id, identity.created) = (first.header().partition_id, first.header().created);
            identity.metadata = first.footer().metadata.clone();
            identity.metadata.remove(SETTINGS_KEY);
        }
        let url_extensions = extensions_of(inputs, Table::Urls);
        let host_extensions = extensions_of(inputs, Table::Hosts);
        self.writer(path, WriterOptions { identity, url_extensions, host_extensions, ..WriterOptions::default() })
    }
}

/// The directory of a path.
pub fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A file that was written, and what became of its inputs.
#[derive(Serialize)]
pub struct Output1<'a> {
    file: String,
    #[serde(flatten)]
    written: Written,
    #[serde(flatten)]
    merged: &'a Merged,
}

/// Reports a file that was written.
pub fn tell(path: &Path, written: Written, merged: &Merged, out: &mut Output) -> anyhow::Result<()> {
    let fact = Output1 { file: path.display().to_string(), written, merged };
    out.fact(&fact, |w| {
        let Merged { rows_in, superseded, gone, outside, wrong_keys, dangling, .. } = *merged;
        writeln!(
            w,
            "{}: {} URLs, {} hosts, {}",
            fact.file,
            show_count(written.urls),
            show_count(written.hosts),
            show_bytes(written.bytes)
        )?;
        let counts = [
            (superseded, "superseded"),
            (gone, "gone"),
            (outside, "outside the range"),
            (wrong_keys, "left out, with a key that is not the one of their URL"),
            (dangling, "references to no text"),
        ];
        let told: Vec<_> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", show_count(*n))).collect();
        if told.is_empty() {
            Ok(())
        } else {
            writeln!(w, "  of {} rows read: {}", show_count(rows_in), told.join(", "))
        }
    })?;
    Ok(())
}

/// Splits a file at a host key
///
/// Hosts with smaller keys go to --low, all others to --high. Together, the two files own the range of the old one.
///
/// Example:
///   trawl frontier split base.meguri --at a.example --low a.meguri --high b.meguri
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct SplitArgs {
    /// The file
    file: PathBuf,

    /// The first key of the upper half: a number, 0x…, or the name of a host
    #[arg(long, value_parser = parse_host, value_name = "KEY")]
    at: u64,

    /// Write the lower half to this file
    #[arg(long, value_name = "FILE")]
    low: PathBuf,

    /// Write the upper half to this file
    #[arg(long, value_name = "FILE")]
    high: PathBuf,

    #[command(flatten)]
    write: WriteArgs,
}

pub fn split(args: &SplitArgs, out: &mut Output) -> anyhow::Result<Status> {
    args.write.check_target(&args.low, &[&args.file])?;
    args.write.check_target(&args.high, &[&args.file])?;
    if is_same(&args.low, &args.high)? {
        bail!("--low and --high are the same file: {}", args.low.display());
    }
    if args.at == 0 {
        bail!("--at 0: no key is below it, so that the lower half would own nothing; choose a key above 0");
    }
    let file = super::open(&args.file)?;
    let (lo, hi) = (file.header().hostkey_lo, file.header().hostkey_hi);
    let inputs = std::slice::from_ref(&file);
    let mut low = args.write.writer_of(&args.low, inputs, Some((lo.min(args.at - 1), args.at - 1)))?;
    let mut high = args.write.writer_of(&args.high, inputs, Some((args.at, hi.max(args.at))))?;
    let (below, above) = split_file(&file, args.at, &mut low, &mut high)?;
    tell(&args.low, low.finish_file(&args.low)?, &below, out)?;
    // A file system may spell one name in many ways: the half that is there now must not give way to the other.
    check_target(&args.high, &[&args.file, &args.low], args.write.overwrite)?;
    tell(&args.high, high.finish_file(&args.high)?, &above, out)?;
    Ok(Status::from_findings(below.wrong_keys + above.wrong_keys > 0))
}

/// Whether two names, of files that need not exist, are those of one file: the directory is compared as it really is.
fn is_same(a: &Path, b: &Path) -> anyhow::Result<bool> {
    let real = |path: &Path| -> anyhow::Result<PathBuf> {
        if let Ok(found) = path.canonicalize() {
            return Ok(found);
        }
        let dir = directory(path);
        let dir = dir.canonicalize().with_context(|| format!("cannot write into {}", dir.display()))?;
        let name = path.file_name().with_context(|| format!("{} is not the name of a file", path.display()))?;
        Ok(dir.join(name))
    };
    Ok(real(a)? == real(b)?)
}
