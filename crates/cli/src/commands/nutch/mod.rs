//! `trawl nutch`: what Nutch's own readers print, without a JVM.

mod readdb;
mod readlinkdb;
mod readseg;

use crate::exit::Status;
use crate::output::Output;
use anyhow::bail;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use trawl_io::{AtomicFile, Fs, RealFs};

/// Reads Nutch's databases and segments as Nutch's own tools do
///
/// Flags can be written as Nutch writes them, with one dash. Times are in UTC. Exit code 1 when nothing was found.
///
/// Examples:
///   trawl nutch readdb crawldb -stats
///   trawl nutch readdb crawldb -url https://example.com/
///   trawl nutch readseg -list -dir segments
///   trawl nutch readlinkdb linkdb -dump links
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Readdb(readdb::ReaddbArgs),
    Readlinkdb(readlinkdb::ReadlinkdbArgs),
    Readseg(readseg::ReadsegArgs),
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        Verb::Readdb(args) => readdb::run(args, out),
        Verb::Readlinkdb(args) => readlinkdb::run(args, out),
        Verb::Readseg(args) => readseg::run(args, out),
    }
}

/// The arguments with `-stats` as `--stats`, if they are for `trawl nutch`: so calls of Nutch's own scripts can be copied.
pub fn double_dashes(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut nutch = false;
    let mut doubled = Vec::new();
    for (n, arg) in args.into_iter().enumerate() {
        let long =
            matches!(arg.as_encoded_bytes(), [b'-', a, b, ..] if a.is_ascii_alphabetic() && b.is_ascii_alphabetic());
        if nutch && long {
            let mut with = OsString::from("-");
            with.push(&arg);
            doubled.push(with);
        } else {
            // The first word behind the program and its flags is the command.
            nutch |= n > 0
                && arg == "nutch"
                && doubled.iter().skip(1).all(|a: &OsString| a.as_encoded_bytes().starts_with(b"-"));
            doubled.push(arg);
        }
    }
    doubled
}

/// Creates the directory of an output; as Hadoop does, one that exists is refused.
fn new_directory(dir: &Path) -> anyhow::Result<Arc<dyn Fs>> {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    if fs.exists(dir)? {
        bail!("{} exists already", dir.display());
    }
    trawl_io::create_dir_all_synced(&*fs, dir)?;
    Ok(fs)
}

/// Writes a file of an output aside and puts it in place.
fn write_file(
    fs: &Arc<dyn Fs>,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut file = AtomicFile::create(fs, path)?;
    write(&mut file)?;
    Ok(file.publish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dash_becomes_two_for_nutch_only() {
        let doubled = |args: &[&str]| -> Vec<String> {
            let args = double_dashes(args.iter().map(OsString::from));
            args.into_iter().map(|a| a.into_string().unwrap()).collect()
        };
        assert_eq!(
            doubled(&["trawl", "-q", "nutch", "readdb", "db", "-stats", "-sort", "--json", "-q", "-5"])[4..],
            ["db", "--stats", "--sort", "--json", "-q", "-5"]
        );
        assert_eq!(doubled(&["trawl", "cat", "nutch", "-stats"]), ["trawl", "cat", "nutch", "-stats"]);
    }
}
