//! `trawl nutch`: what Nutch's own readers print, without a JVM.

mod readdb;
mod readlinkdb;
mod readseg;

use crate::exit::Status;
use crate::output::{Output, complain};
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{AtomicFile, Fs, RealFs, TEMP_PREFIX};
use trawl_nutch::Error;

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

/// How a command ended, with what is missing of its input told.
fn ended(status: Status, missing: &[Error]) -> Status {
    missing.iter().for_each(|fault| complain(&format!("left out: {fault}")));
    if missing.is_empty() { status } else { Status::Findings }
}

/// The directory of an output, put together aside: what failed half-way must not pass for a whole dump.
struct NewDirectory {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    aside: PathBuf,
}

impl NewDirectory {
    /// As Hadoop does, one that exists is refused.
    fn create(path: &Path) -> anyhow::Result<Self> {
        let fs: Arc<dyn Fs> = Arc::new(RealFs);
        if fs.exists(path)? {
            bail!("{} exists already", path.display());
        }
        let name = path.file_name().with_context(|| format!("{} is not the name of a directory", path.display()))?;
        let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let aside = parent.join(format!("{TEMP_PREFIX}{}-{}", std::process::id(), name.to_string_lossy()));
        trawl_io::create_dir_all_synced(&*fs, &aside)?;
        Ok(NewDirectory { fs, path: path.into(), aside })
    }

    /// Writes the file `name`.
    fn write_file(&self, name: &str, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut file = AtomicFile::create(&self.fs, &self.aside.join(name))?;
        write(&mut file)?;
        Ok(file.publish()?)
    }

    /// Gives the directory its name.
    fn finish(self) -> anyhow::Result<()> {
        self.fs.rename(&self.aside, &self.path)?;
        Ok(self.fs.sync_dir(self.aside.parent().unwrap_or(Path::new(".")))?)
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        // Renamed by now, or of no use; a leftover has the name of one.
        let _ = trawl_io::remove_tree(&*self.fs, &self.aside);
    }
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
