//! `trawl seqdb add`, `list`, `get`, `delete`, `group`: entries of files.

use super::text::Text;
use super::{input, reporter};
use crate::exit::Status;
use crate::output::Output;
use anyhow::bail;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use trawl_seqdb::{Access, Bundle, BundleFiles, Hindex, Keys, Kind, Kvseq, Perm, Settings, inspect};

/// Adds entries to a kvseq, and their keys to indexes and a perm
///
/// With --index a key that is there already gets the new value, and its old entry is marked deleted. Without, keys may
/// repeat.
///
/// Examples:
///   trawl seqdb add words.kvseq --index words.hindex apple red
///   sort words.tsv | trawl seqdb add words.kvseq --index words.hindex --tsv -
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
    let files = BundleFiles { kvseq: args.kvseq, indexes: args.index, perm: args.perm };
    let mut bundle = Bundle::open(&files, Access::Write, settings)?;
    let mut added = 0u64;
    if let [key, value] = &args.pair[..] {
        bundle.add(key.as_bytes(), value.as_bytes())?;
        added = 1;
    }
    if let Some(path) = &args.tsv {
        let (mut source, mut line) = (input::open(path)?, Vec::new());
        while let Some(tab) = input::tab_line(&mut *source, &mut line, added + 1)? {
            bundle.add(&line[..tab], &line[tab + 1..])?;
            added += 1;
        }
    }
    if let Some(path) = &args.netstrings {
        let (mut source, mut key, mut value) = (input::open(path)?, Vec::new(), Vec::new());
        while input::netstring(&mut *source, &mut key, 2 * added + 1)?.is_some() {
            if input::netstring(&mut *source, &mut value, 2 * added + 2)?.is_none() {
                bail!("netstring {}: a key without a value", 2 * added + 1);
            }
            bundle.add(&key, &value)?;
            added += 1;
        }
    }
    bundle.close()?;
    out.fact(&serde_json::json!({"type": "added", "entries": added}), |w| writeln!(w, "{added} added"))?;
    Ok(Status::Done)
}

/// Lists the entries of a kvseq, the cells of a hindex or the pairs of a perm
///
/// Text has one entry a line, key and value separated by a tab, with \t \n \\ and \xNN for what is no text.
///
/// Examples:
///   trawl seqdb list words.kvseq --pointers --deleted
///   trawl seqdb list words.perm --container words.kvseq --keys
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ListArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Deleted entries too
    #[arg(long)]
    deleted: bool,
    /// Keys only
    #[arg(long)]
    keys: bool,
    /// Where each entry is
    #[arg(long)]
    pointers: bool,
    /// The kvseq that a hindex or perm points into; without it only pointers are listed
    #[arg(long, value_name = "KVSEQ")]
    container: Option<PathBuf>,
}

#[derive(Serialize)]
struct Row<'a> {
    pointer: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_bytes: Option<u64>,
}

impl Row<'_> {
    fn write(&self, w: &mut dyn Write, pointers: bool) -> std::io::Result<()> {
        let mut columns = Vec::new();
        if pointers {
            columns.push(self.pointer.to_string());
            columns.extend(self.deleted.then(|| "deleted".to_owned()));
        }
        columns.extend(self.hash.clone());
        columns.extend(self.key.map(|key| key.to_string()));
        match (self.value, self.value_bytes) {
            (Some(value), _) => columns.push(value.to_string()),
            (None, Some(n)) => columns.push(format!("({n} bytes)")),
            (None, None) => {}
        }
        writeln!(w, "{}", columns.join("\t"))
    }
}

/// Lists entries.
pub fn list(args: ListArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let container = args.container.as_ref().map(|path| Kvseq::open(path, Access::Read, settings)).transpose()?;
    match inspect(&args.file, settings)?.kind {
        Kind::Kvseq => {
            let kv = Kvseq::open(&args.file, Access::Read, settings)?;
            let mut scan = kv.scan();
            if args.deleted {
                scan = scan.with_deleted();
            }
            if args.keys {
                scan = scan.keys_only();
            }
            while let Some(item) = scan.next_entry()? {
                let value = item.value.filter(|_| !args.keys).map(Text);
                let too_large = !args.keys && item.value.is_none();
                let row = Row {
                    pointer: item.ptr,
                    deleted: item.deleted,
                    hash: None,
                    key: Some(Text(item.key)),
                    value,
                    value_bytes: too_large.then_some(item.value_len),
                };
                out.fact(&row, |w| row.write(w, args.pointers))?;
            }
        }
        Kind::Hindex => {
            let index = Hindex::open(&args.file, Access::Read, settings)?;
            let mut failed = None;
            index.for_each(&mut |ptr, hash| {
                if failed.is_none() {
                    let hash = (index.cellsz() == 2).then(|| format!("{hash:016x}"));
                    failed = element(out, &container, ptr, hash, &args)?.err();
                }
                Ok(())
            })?;
            failed.map_or(Ok(()), Err)?;
        }
        Kind::Perm => {
            let perm = Perm::open(&args.file, Access::Read, settings)?;
            let mut failed = None;
            perm.for_each(0, &mut |_, pair| {
                failed = element(out, &container, pair.ptr, Some(format!("{:016x}", pair.hash)), &args)?.err();
                Ok(failed.is_none())
            })?;
            failed.map_or(Ok(()), Err)?;
        }
    }
    Ok(Status::Done)
}

/// One cell or pair, with its key and value if the container is there.
fn element(
    out: &mut Output,
    container: &Option<Kvseq>,
    pointer: u64,
    hash: Option<String>,
    args: &ListArgs,
) -> trawl_seqdb::Result<std::io::Result<()>> {
    let (mut deleted, mut key, mut value) = (false, None, None);
    if let Some(kv) = container {
        deleted = kv.is_deleted(pointer)?;
        key = Some(kv.key_at(pointer)?);
        value = if args.keys { None } else { Some(kv.get(pointer)?.value) };
    }
    let (key, value) = (key.as_deref().map(Text), value.as_deref().map(Text));
    let row = Row { pointer, deleted, hash, key, value, value_bytes: None };
    Ok(out.fact(&row, |w| row.write(w, true)))
}

/// Prints the value of a key, or the entry at a pointer
///
/// The value is written as it is, without a line end. Exit code 1 when there is no such key.
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
    let bundle = Bundle::open(&files, Access::Read, settings)?;
    let entry = match (&args.key, args.pointer) {
        (_, Some(ptr)) => Some(bundle.kvseq().get(ptr)?),
        (Some(key), None) => bundle.get(key.as_bytes())?,
        (None, None) => None,
    };
    let Some(entry) = entry else { return Ok(Status::Findings) };
    let row = Row {
        pointer: entry.ptr,
        deleted: entry.deleted,
        hash: None,
        key: Some(Text(&entry.key)),
        value: Some(Text(&entry.value)),
        value_bytes: None,
    };
    out.fact(&row, |w| w.write_all(&entry.value))?;
    Ok(Status::Done)
}

/// Deletes the entry of a key
///
/// Exit code 1 when there is no such key.
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
    let mut bundle = Bundle::open(&files, Access::Write, settings)?;
    let found = bundle.remove(args.key.as_bytes())?;
    bundle.close()?;
    let text = if found { "deleted" } else { "not found" };
    out.fact(&serde_json::json!({"type": "deleted", "found": found}), |w| writeln!(w, "{text}"))?;
    Ok(Status::from_findings(!found))
}

/// Sorts a perm file so that equal keys become neighbours
///
/// The order is that of hashes, then keys, then places. More than --memory goes to temporary files.
///
/// Example:
///   trawl seqdb group words.perm --container words.kvseq --memory 64MiB --scratch /var/tmp
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
