//! `trawl seqdb add`, `get`, `delete`, `group`: entries of files.

use super::{expect_no_filesys, expect_no_filesys_among, input, reporter};
use crate::containers::{Contents, Row, Text};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::show_count;
use anyhow::{Context, bail};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use trawl_seqdb::{Access, BundleFiles, Kvseq, Map, Perm, Settings};

/// Adds entries to a kvseq, and their keys to indexes and a perm
///
/// With --index a key that is there already gets the new value, and its old entry is marked deleted. Without, keys may
/// repeat. At a bad line or pair the work stops; what came before it is kept.
///
/// Examples:
///   trawl seqdb add words.kvseq --index words.hindex apple red
///   sort words.tsv | trawl seqdb add words.kvseq --index words.hindex --tsv -
///   printf '3:key,5:value,' | trawl seqdb add words.kvseq --netstrings -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct AddArgs {
    /// The kvseq
    #[arg(value_name = "KVSEQ")]
    kvseq: PathBuf,
    /// An index over its keys; may be given several times
    #[arg(long, value_name = "HINDEX")]
    index: Vec<PathBuf>,
    /// A perm over it
    #[arg(long, value_name = "PERM")]
    perm: Option<PathBuf>,
    /// Key and value of one entry
    #[arg(num_args = 2, value_names = ["KEY", "VALUE"], required_unless_present_any = ["tsv", "netstrings"])]
    pair: Vec<OsString>,
    /// Lines of key, tab, value; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pair", "netstrings"])]
    tsv: Option<PathBuf>,
    /// Netstrings, key and value in turn: for any bytes; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "pair")]
    netstrings: Option<PathBuf>,
}

/// Adds entries.
pub fn add(args: AddArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let files = BundleFiles { kvseq: args.kvseq.clone(), indexes: args.index.clone(), perm: args.perm.clone() };
    expect_no_filesys_among(&files, settings)?;
    let mut map = Map::open(&files, Access::Write, settings)?;
    let bar = Progress::start("add", None, out.quiet());
    let mut added = 0u64;
    let outcome = fill(&args, &mut map, &mut |n| {
        added = n;
        bar.report(n, || format!("{} entries", show_count(n)));
    });
    drop(bar);
    // Closed whatever came: a bad line must not leave files that ask for a repair.
    let closed = map.close();
    outcome.map_err(|error| match (added, &closed) {
        (0, Ok(())) => error,
        (_, Ok(())) => error.context(format!("stopped after {added} entries, which were added")),
        (_, Err(_)) => error.context(format!("stopped after {added} entries, which may not all be stored")),
    })?;
    closed?;
    out.fact(&serde_json::json!({"type": "added", "entries": added}), |w| writeln!(w, "{added} added"))?;
    Ok(Status::Done)
}

/// Adds all pairs; `told` hears how many there are so far.
fn fill(args: &AddArgs, map: &mut Map, told: &mut dyn FnMut(u64)) -> anyhow::Result<()> {
    let mut added = 0u64;
    if let [key, value] = &args.pair[..] {
        map.add(key.as_bytes(), value.as_bytes())?;
        told(1);
    }
    if let Some(path) = &args.tsv {
        let (mut source, mut line) = (input::open(path)?, Vec::new());
        while let Some(tab) = input::tab_line(&mut *source, &mut line, added + 1)? {
            let (key, value) = (&line[..tab], &line[tab + 1..]);
            map.add(key, value).with_context(|| format!("line {}", added + 1))?;
            added += 1;
            told(added);
        }
    }
    if let Some(path) = &args.netstrings {
        let (mut source, mut key, mut value) = (input::open(path)?, Vec::new(), Vec::new());
        while input::netstring(&mut *source, &mut key, 2 * added + 1)?.is_some() {
            if input::netstring(&mut *source, &mut value, 2 * added + 2)?.is_none() {
                bail!("netstring {}: a key without a value", 2 * added + 1);
            }
            map.add(&key, &value).with_context(|| format!("netstring {}", 2 * added + 1))?;
            added += 1;
            told(added);
        }
    }
    Ok(())
}

/// Prints the value of a key, or the entry at a pointer
///
/// The value is written as it is, without a line end; --json has key and pointer too. Exit code 1 when there is no such
/// key.
///
/// Examples:
///   trawl seqdb get words.kvseq --index words.hindex apple
///   trawl seqdb get words.kvseq --pointer 4096 --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct GetArgs {
    /// The kvseq
    #[arg(value_name = "KVSEQ")]
    kvseq: PathBuf,
    /// The index to search; without one all entries are read
    #[arg(long, value_name = "HINDEX")]
    index: Option<PathBuf>,
    /// The key
    #[arg(value_name = "KEY", required_unless_present = "pointer")]
    key: Option<OsString>,
    /// The entry at this place instead
    #[arg(long, value_name = "P", conflicts_with = "key")]
    pointer: Option<u64>,
}

/// Prints an entry.
pub fn get(args: GetArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let files = BundleFiles { kvseq: args.kvseq, indexes: args.index.into_iter().collect(), perm: None };
    let map = Map::open(&files, Access::Read, settings)?;
    let entry = match (&args.key, args.pointer) {
        (_, Some(ptr)) => Some(map.kvseq().get(ptr)?),
        (Some(key), None) => map.entry(key.as_bytes())?,
        (None, None) => None,
    };
    let Some(entry) = entry else {
        out.remark("no such key");
        return Ok(Status::Findings);
    };
    let row = Row {
        pointer: entry.ptr,
        deleted: entry.deleted,
        hash: None,
        key: Some(Text(&entry.key)),
        value: Some(Contents::Whole(Text(&entry.value))),
    };
    out.fact(&row, |w| w.write_all(&entry.value))?;
    Ok(Status::Done)
}

/// Deletes the entry of a key
///
/// The entry is marked deleted, and the key leaves the indexes; the space is regained by `trawl seqdb compact`. Exit
/// code 1 when there is no such key.
///
/// Example:
///   trawl seqdb delete words.kvseq --index words.hindex apple
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct DeleteArgs {
    /// The kvseq
    #[arg(value_name = "KVSEQ")]
    kvseq: PathBuf,
    /// An index over its keys; may be given several times
    #[arg(long, value_name = "HINDEX")]
    index: Vec<PathBuf>,
    /// The key
    #[arg(value_name = "KEY")]
    key: OsString,
}

/// Deletes an entry.
pub fn delete(args: DeleteArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let files = BundleFiles { kvseq: args.kvseq, indexes: args.index, perm: None };
    expect_no_filesys_among(&files, settings)?;
    let mut map = Map::open(&files, Access::Write, settings)?;
    let outcome = map.remove(args.key.as_bytes());
    let closed = map.close();
    let found = outcome?;
    closed?;
    let text = if found { "deleted" } else { "no such key" };
    out.fact(&serde_json::json!({"type": "deleted", "found": found}), |w| writeln!(w, "{text}"))?;
    Ok(Status::from_findings(!found))
}

/// Sorts a perm file so that equal keys become neighbours
///
/// The order is that of hashes, then keys, then places. More than --memory goes to temporary files.
///
/// Example:
///   trawl seqdb group words.perm --container words.kvseq --fill --memory 64MiB --scratch /var/tmp
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct GroupArgs {
    /// The perm file
    #[arg(value_name = "PERM")]
    perm: PathBuf,
    /// The kvseq it points into
    #[arg(long, value_name = "KVSEQ")]
    container: PathBuf,
    /// Add every entry of the container that is not deleted first
    #[arg(long)]
    fill: bool,
    /// Directory for temporary files; that of the perm file when not given
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

/// Groups a perm file.
pub fn group(args: GroupArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    expect_no_filesys(&args.perm, settings)?;
    let kv = Kvseq::open(&args.container, Access::Read, settings)?;
    let mut perm = Perm::open(&args.perm, Access::Write, settings)?;
    if args.fill {
        perm.build(&kv)?;
    }
    perm.group(&kv, args.scratch.as_deref(), &reporter("group", out))?;
    let pairs = perm.len();
    perm.close()?;
    out.fact(&serde_json::json!({"type": "grouped", "pairs": pairs}), |w| writeln!(w, "{pairs} pairs grouped"))?;
    Ok(Status::Done)
}
