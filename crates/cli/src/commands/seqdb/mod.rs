//! `trawl seqdb`: containers and their file systems.

mod check;
mod create;
mod entries;
mod fs;
mod fs_copy;
mod fs_edit;
mod input;
mod list;
mod superblock;

use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::system;
use crate::units::bytes;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use trawl_io::describe_holder;
use trawl_model::Clock;
use trawl_seqdb::{BundleFiles, Error, Settings, SyncPolicy, filesys_of};

/// Works with seqdb containers: kvseq, hindex and perm files, and filesys
///
/// A kvseq is a sequence of keys and values, a hindex finds keys in it, a perm groups them. A filesys keeps many files
/// in a few large ones, without crowding the page cache. Exit code 1 when a key or file is not there, or a check found
/// faults.
///
/// Examples:
///   trawl seqdb create kvseq words.kvseq
///   trawl seqdb create hindex words.hindex --container words.kvseq
///   trawl seqdb add words.kvseq --index words.hindex apple red
///   trawl seqdb get words.kvseq --index words.hindex apple
///   trawl seqdb fs create base/docs && trawl seqdb fs import base/docs ./html
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    #[command(flatten)]
    common: Common,

    #[command(subcommand)]
    command: Verb,
}

impl Args {
    /// Whether it prints a listing.
    pub fn is_listing(&self) -> bool {
        matches!(self.command, Verb::List(_) | Verb::Fs(fs::Verb::Ls { .. }))
    }
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Drop data from the page cache after reading or writing it
    #[arg(long, global = true, help_heading = "Reading and writing")]
    no_cache: bool,

    /// What is made durable: everything, data only (indexes when closed), or nothing
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "full",
        value_name = "WHAT",
        help_heading = "Reading and writing"
    )]
    sync: Sync,

    /// Make added entries visible to readers after every N entries; 0: whenever a buffer of 1 MiB is full
    #[arg(long, global = true, default_value_t = 0, value_name = "N", help_heading = "Reading and writing")]
    flush_every: u64,

    /// Memory for sorting and for cells of an index
    #[arg(
        long,
        global = true,
        default_value = "256MiB",
        value_parser = bytes,
        value_name = "SIZE",
        help_heading = "Reading and writing"
    )]
    memory: u64,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Sync {
    Full,
    Data,
    Off,
}

/// A kvseq, and what leads to its entries.
#[derive(Debug, clap::Args)]
struct Files {
    /// The kvseq
    kvseq: PathBuf,
    /// An index over the keys of the kvseq; may be repeated
    #[arg(long, value_name = "HINDEX")]
    index: Vec<PathBuf>,
    /// A perm over the kvseq
    #[arg(long)]
    perm: Option<PathBuf>,
}

impl Files {
    /// To be changed: no file of a filesys is among them.
    fn own(self, settings: &Settings) -> anyhow::Result<BundleFiles> {
        for path in [&self.kvseq].into_iter().chain(&self.index).chain(&self.perm) {
            expect_no_filesys(path, settings)?;
        }
        Ok(BundleFiles { kvseq: self.kvseq, indexes: self.index, perm: self.perm })
    }
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Shows the variables of a container file, or changes them
    ///
    /// Changing them is rarely wise; a smaller ISZ for future files is an exception. SBSIZE and FORMAT cannot be
    /// changed.
    ///
    /// Examples:
    ///   trawl seqdb superblock docs.data
    ///   trawl seqdb superblock docs.data --set ISZ 128
    #[command(verbatim_doc_comment)]
    Superblock {
        /// The file
        file: PathBuf,
        /// Set a variable: a number, 0x and hex digits, or for PURPOSE a text of up to 8 bytes
        #[arg(long, num_args = 2, value_names = ["NAME", "VALUE"], action = clap::ArgAction::Append, allow_negative_numbers = true)]
        set: Vec<String>,
    },
    /// Creates an empty kvseq, hindex or perm file
    ///
    /// A map from keys to values is a kvseq and a hindex over it:
    ///   trawl seqdb create kvseq words.kvseq
    ///   trawl seqdb create hindex words.hindex --container words.kvseq
    #[command(verbatim_doc_comment, subcommand)]
    Create(create::What),
    Add(entries::AddArgs),
    List(list::ListArgs),
    /// Prints the value of a key, or the entry at a pointer
    ///
    /// Prints the value as it is, without a line end; with --json also key and pointer. Exit code 1 when there is no
    /// such key.
    ///
    /// Examples:
    ///   trawl seqdb get words.kvseq --index words.hindex apple
    ///   trawl seqdb get words.kvseq --pointer 4096 --json
    #[command(verbatim_doc_comment)]
    Get {
        /// The kvseq
        kvseq: PathBuf,
        /// Search this index; without one, all entries are read
        #[arg(long, value_name = "HINDEX")]
        index: Option<PathBuf>,
        /// The key
        #[arg(required_unless_present = "pointer")]
        key: Option<OsString>,
        /// Print the entry at this place instead
        #[arg(long, value_name = "P", conflicts_with = "key")]
        pointer: Option<u64>,
    },
    /// Deletes the entry of a key
    ///
    /// Marks the entry as deleted and removes the key from the indexes; `trawl seqdb compact` frees the space. Exit
    /// code 1 when there is no such key.
    ///
    /// Example:
    ///   trawl seqdb delete words.kvseq --index words.hindex apple
    #[command(verbatim_doc_comment)]
    Delete {
        /// The kvseq
        kvseq: PathBuf,
        /// An index over the keys of the kvseq; may be repeated
        #[arg(long, value_name = "HINDEX")]
        index: Vec<PathBuf>,
        /// The key
        key: OsString,
    },
    /// Sorts a perm file so that equal keys become neighbours
    ///
    /// Sorts by hash, then key, then place. What does not fit into --memory is sorted in temporary files.
    ///
    /// Example:
    ///   trawl seqdb group words.perm --container words.kvseq --fill --memory 64MiB
    #[command(verbatim_doc_comment)]
    Group {
        /// The perm file
        perm: PathBuf,
        /// The kvseq it points into
        #[arg(long, value_name = "KVSEQ")]
        container: PathBuf,
        /// First add every entry of the container that is not deleted
        #[arg(long)]
        fill: bool,
        /// Directory for temporary files; the directory of the perm file by default
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
    },
    /// Declares the current length of a file valid
    ///
    /// Every command here ends with a checkpoint. Use this one for files that another program wrote without a
    /// checkpoint.
    ///
    /// Example:
    ///   trawl seqdb checkpoint words.kvseq
    #[command(verbatim_doc_comment)]
    Checkpoint {
        /// The file
        file: PathBuf,
    },
    /// Takes a file back to its length at the last sync
    ///
    /// Removes what was added since; what was changed in place stays. Rebuilds the named indexes and perm; rebuild any
    /// others before you add to the file again.
    ///
    /// Example:
    ///   trawl seqdb rollback words.kvseq --index words.hindex
    #[command(verbatim_doc_comment)]
    Rollback(Files),
    /// Rebuilds an index from its kvseq
    ///
    /// Of equal keys, the last entry that is not deleted counts. Sizes stay as they are unless you give others.
    ///
    /// Example:
    ///   trawl seqdb index-rebuild words.hindex --container words.kvseq --htsize 40009
    #[command(verbatim_doc_comment)]
    IndexRebuild {
        /// The index
        hindex: PathBuf,
        /// The kvseq that it points into
        #[arg(long, value_name = "KVSEQ")]
        container: PathBuf,
        #[command(flatten)]
        table: Table,
    },
    Check(check::CheckArgs),
    /// Copies a kvseq without deleted entries
    ///
    /// The new file takes the old one's place in one step; indexes and a perm that are named are rebuilt.
    ///
    /// Example:
    ///   trawl seqdb compact words.kvseq --index words.hindex
    #[command(verbatim_doc_comment)]
    Compact(Files),
    /// Works with a filesys: many files in a few large ones
    ///
    /// A filesys is named as BASE/NAME: its files are NAME.data, NAME.idx, NAME.lock and, if append-only, NAME.time in the
    /// directory BASE. File names are any bytes; there are no directories, though a name may have slashes.
    ///
    /// Examples:
    ///   trawl seqdb fs create base/docs
    ///   trawl seqdb fs put base/docs a.txt < a.txt
    ///   trawl seqdb fs ls base/docs
    #[command(verbatim_doc_comment, subcommand)]
    Fs(fs::Verb),
    /// Prints the event of a capture: its WARC records as they are stored
    ///
    /// Prints the newest capture of the URL, or the one at --time. Exit code 1 when there is none.
    ///
    /// Examples:
    ///   trawl seqdb page crawl/pages https://example.com/ > event.warc.gz
    ///   trawl seqdb page crawl/pages https://example.com/ --time 20260624010203456
    #[command(verbatim_doc_comment)]
    Page {
        /// The container of captures, as BASE/NAME
        fs: PathBuf,
        /// The URL, as it was stored
        url: String,
        /// Time of the capture: 17 digits, or RFC 3339
        #[arg(long)]
        time: Option<String>,
    },
}

/// How large the table of a rebuilt index is, if not as large as before.
#[derive(Debug, clap::Args)]
struct Table {
    /// Cells
    #[arg(long, value_name = "N")]
    htsize: Option<u64>,
    /// Words of a cell: 1, or 2 with stored hashes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2))]
    cellsz: Option<u64>,
}

/// Runs the command.
pub fn run(args: Args, out: &mut Output) -> anyhow::Result<Status> {
    let settings = args.common.settings()?;
    let done = args.command.run(&settings, out);
    // What is wrong is said by the library, what to do about it here.
    done.map_err(|error| match error.downcast_ref() {
        Some(Error::NeedsCheck { path, .. }) => {
            anyhow::anyhow!("{error}: `trawl seqdb check {} --repair`", path.display())
        }
        _ => error,
    })
}

impl Verb {
    fn run(self, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
        match self {
            Verb::Superblock { file, set } => superblock::run(&file, &set, settings, out),
            Verb::Create(what) => create::run(what, settings, out),
            Verb::Add(args) => entries::add(args, settings, out),
            Verb::List(args) => list::list(args, settings, out),
            Verb::Get { kvseq, index, key, pointer } => entries::get(kvseq, index, key, pointer, settings, out),
            Verb::Delete { kvseq, index, key } => {
                entries::delete(Files { kvseq, index, perm: None }, &key, settings, out)
            }
            Verb::Group { perm, container, fill, scratch } => {
                entries::group(&perm, &container, fill, scratch.as_deref(), settings, out)
            }
            Verb::Checkpoint { file } => check::checkpoint(&file, settings, out),
            Verb::Rollback(files) => check::rollback(files, settings, out),
            Verb::IndexRebuild { hindex, container, table } => {
                check::index_rebuild(&hindex, &container, &table, settings, out)
            }
            Verb::Check(args) => check::check(args, settings, out),
            Verb::Compact(files) => check::compact(files, settings, out),
            Verb::Fs(verb) => verb.run(settings, out),
            Verb::Page { fs, url, time } => entries::page(&fs, &url, time.as_deref(), settings, out),
        }
    }
}

impl Common {
    fn settings(&self) -> anyhow::Result<Settings> {
        let memory = usize::try_from(self.memory).context("--memory")?;
        Ok(Settings {
            data_caching: !self.no_cache,
            index_caching: !self.no_cache,
            big_readahead: self.no_cache,
            flush_every: self.flush_every,
            index_memory_bytes: self.memory,
            sort_memory_bytes: memory,
            sync: match self.sync {
                Sync::Full => SyncPolicy::Full,
                Sync::Data => SyncPolicy::Data,
                Sync::Off => SyncPolicy::Off,
            },
            ..Settings::new(Clock::new(system::now), describe_holder("trawl seqdb", &system::now().rfc3339_seconds()))
        })
    }
}

/// Refuses to change a single file of a filesys: the others would no longer fit.
fn expect_no_filesys(path: &Path, settings: &Settings) -> anyhow::Result<()> {
    match filesys_of(path, settings)? {
        Some(paths) => {
            let fs = paths.base().join(paths.name());
            bail!("{} belongs to the filesys {}: see `trawl seqdb fs`", path.display(), fs.display())
        }
        None => Ok(()),
    }
}

/// A random positive number that ties the files of a filesys together.
fn fsgen() -> anyhow::Result<i64> {
    let [a, b, c, d, e, f, g, h, ..] = system::random_bytes()?;
    Ok((i64::from_be_bytes([a, b, c, d, e, f, g, h]) & i64::MAX).max(1))
}

/// Shows the library's progress on one line.
fn reporter(label: &str, out: &Output) -> impl Fn(trawl_seqdb::Progress) + use<> {
    let bar = Progress::start(label, None, out.quiet());
    move |p| bar.report(p.done, || format!("{} {} of {}", p.stage, p.done, p.total))
}

/// Says what was done: one line, or one JSON value.
fn told(out: &mut Output, json: &serde_json::Value, text: &str) -> anyhow::Result<Status> {
    out.fact(json, |w| writeln!(w, "{text}"))?;
    Ok(Status::Done)
}

/// An error of printing as one of the library, for what is printed while that goes through entries.
fn printed(done: std::io::Result<()>) -> trawl_seqdb::Result<()> {
    Ok(done.map_err(|error| trawl_io::Error::io(trawl_io::Op::Write, "stdout", error))?)
}

/// Says that what was asked for is not there.
fn missing(out: &Output, what: &str) -> anyhow::Result<Status> {
    out.remark(what);
    Ok(Status::Findings)
}

/// Closes what was changed, whatever came of the change: a refusal must not leave files that ask for a repair.
fn closing<T>(done: anyhow::Result<T>, closed: trawl_seqdb::Result<()>) -> anyhow::Result<T> {
    let done = done?;
    closed?;
    Ok(done)
}
