//! `trawl seqdb list`.

use super::{missing, printed};
use crate::exit::Status;
use crate::output::Output;
use std::path::PathBuf;
use trawl_archive::seqdb::{Contents, Row, Text, value};
use trawl_seqdb::{Access, Hindex, Kind, Kvseq, Perm, Settings, inspect, map};

/// Lists the entries of a kvseq, the cells of a hindex or the pairs of a perm
///
/// Prints one entry per line, with a tab between key and value; bytes that are not text are printed as \t \n \\ and
/// \xNN, with --json as {"base64": …}. Exit code 1 when a cell or pair points to no entry.
///
/// Examples:
///   trawl seqdb list words.kvseq --pointers --deleted
///   trawl seqdb list words.perm --container words.kvseq --keys
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ListArgs {
    /// The file
    file: PathBuf,
    /// Also list deleted entries, marked as deleted
    #[arg(long)]
    deleted: bool,
    /// Keys only
    #[arg(long)]
    keys: bool,
    /// Print where each entry is
    #[arg(long)]
    pointers: bool,
    /// The kvseq that a hindex or perm points into; without it only pointers are listed
    #[arg(long, value_name = "KVSEQ")]
    container: Option<PathBuf>,
}

/// Columns of `--csv`.
const COLUMNS: &[&str] = &["pointer", "deleted", "hash", "key", "value"];

/// Lists entries.
pub fn list(args: ListArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut pointers = Pointers { args: &args, container: None, astray: 0 };
    match inspect(&args.file, settings)?.kind {
        Kind::Kvseq => entries(&args, settings, out)?,
        Kind::Hindex => {
            let index = pointers.open(settings, || Hindex::open(&args.file, Access::Read, settings))?;
            let hashed = index.cellsz() == 2;
            index.for_each(&mut |ptr, hash| pointers.show(ptr, hashed.then_some(hash), out))?;
        }
        Kind::Perm => {
            let perm = pointers.open(settings, || Perm::open(&args.file, Access::Read, settings))?;
            perm.for_each(0, &mut |_, pair| pointers.show(pair.ptr, Some(pair.hash), out).map(|()| true))?;
        }
    }
    if pointers.astray > 0 {
        return missing(out, &format!("{} pointers lead to no entry", pointers.astray));
    }
    Ok(Status::Done)
}

fn entries(args: &ListArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<()> {
    let kv = Kvseq::open(&args.file, Access::Read, settings)?;
    let mut scan = kv.scan();
    if args.deleted {
        scan = scan.with_deleted();
    }
    if args.keys {
        scan = scan.keys_only();
    }
    while let Some(item) = scan.next_entry()? {
        let value = if args.keys { None } else { Some(value(&kv, item.ptr, item.value_len, item.value, false)?) };
        let row = Row { pointer: item.ptr, deleted: item.deleted, hash: None, key: Some(Text(item.key)), value };
        out.row(COLUMNS, &row, |w| row.write(w, args.pointers))?;
    }
    Ok(())
}

/// Cells and pairs, with their keys and values if the container is there.
struct Pointers<'a> {
    args: &'a ListArgs,
    container: Option<Kvseq>,
    astray: u64,
}

impl Pointers<'_> {
    /// Opens the file with the pointers, and the container they lead into.
    fn open<T>(&mut self, settings: &Settings, open: impl Fn() -> trawl_seqdb::Result<T>) -> trawl_seqdb::Result<T> {
        let Some(container) = &self.args.container else { return open() };
        let (container, opened) = map::read_with(container, settings, open)?;
        self.container = Some(container);
        Ok(opened)
    }

    fn show(&mut self, pointer: u64, hash: Option<u64>, out: &mut Output) -> trawl_seqdb::Result<()> {
        let entry = self.container.as_ref().map(|kv| match self.args.keys {
            true => Ok((kv.key(pointer)?, kv.is_deleted(pointer)?, None)),
            false => kv.get(pointer).map(|entry| (entry.key, entry.deleted, Some(entry.value))),
        });
        self.astray += u64::from(matches!(entry, Some(Err(_))));
        let entry = entry.and_then(|entry: trawl_seqdb::Result<_>| entry.ok());
        let row = Row {
            pointer,
            deleted: entry.as_ref().is_some_and(|(_, deleted, _)| *deleted),
            hash: hash.map(|hash| format!("{hash:016x}")),
            key: entry.as_ref().map(|(key, ..)| Text(key)),
            value: entry.as_ref().and_then(|(.., value)| Some(Contents::Whole(Text(value.as_ref()?)))),
        };
        printed(out.row(COLUMNS, &row, |w| row.write(w, true)))
    }
}
