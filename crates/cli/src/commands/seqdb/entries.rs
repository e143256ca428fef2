//! `trawl seqdb add`, `get`, `delete`, `group`, `page`: entries of files.

use super::{Files, closing, expect_no_filesys, input, missing, reporter, told};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::show_count;
use anyhow::{Context, bail};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trawl_archive::seqdb::{Contents, Row, Text};
use trawl_model::UnixMillis;
use trawl_seqdb::{Access, BundleFiles, FsPaths, Kvseq, Map, Pages, Perm, Settings};

/// Adds entries to a kvseq, and their keys to indexes and a perm
///
/// With --index, a key that exists gets the new value, and its old entry is marked as deleted. Without --index, keys
/// may repeat. The command stops at the first bad line or pair, and keeps the entries before it.
///
/// Examples:
///   trawl seqdb add words.kvseq --index words.hindex apple red
///   sort words.tsv | trawl seqdb add words.kvseq --index words.hindex --tsv -
///   printf '3:key,5:value,' | trawl seqdb add words.kvseq --netstrings -
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct AddArgs {
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    source: Source,
}

/// Where the entries come from.
#[derive(Debug, clap::Args)]
struct Source {
    /// Key and value of one entry
    #[arg(num_args = 2, value_names = ["KEY", "VALUE"], required_unless_present_any = ["tsv", "netstrings"])]
    pair: Vec<OsString>,
    /// Read lines of key, tab and value; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pair", "netstrings"])]
    tsv: Option<PathBuf>,
    /// Read netstrings, key and value in turn, which may hold any bytes; `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "pair")]
    netstrings: Option<PathBuf>,
}

/// Adds entries.
pub fn add(args: AddArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let AddArgs { files, source } = args;
    let mut map = Map::open(files.own(settings)?, Access::Write, settings)?;
    let bar = Progress::start("add", None, out.quiet());
    let mut added = 0u64;
    let outcome = fill(&source, &mut map, &mut |n| {
        added = n;
        bar.report(n, || format!("{} entries", show_count(n)));
    });
    drop(bar);
    let closed = map.close();
    let outcome = outcome.map_err(|error| match (added, &closed) {
        (0, Ok(())) => error,
        (_, Ok(())) => error.context(format!("stopped after {added} entries, which were added")),
        (_, Err(_)) => error.context(format!("stopped after {added} entries, which may not all be stored")),
    });
    closing(outcome, closed)?;
    told(out, &json!({"type": "added", "entries": added}), &format!("{added} added"))
}

/// Adds all pairs; `told` hears how many there are so far.
fn fill(source: &Source, map: &mut Map, told: &mut dyn FnMut(u64)) -> anyhow::Result<()> {
    let mut added = 0u64;
    if let [key, value] = &source.pair[..] {
        map.add(key.as_bytes(), value.as_bytes())?;
        told(1);
    }
    if let Some(path) = &source.tsv {
        let (mut input, mut line) = (input::open(path)?, Vec::new());
        while let Some(tab) = input::tab_line(&mut *input, &mut line, added + 1)? {
            let (key, value) = (&line[..tab], &line[tab + 1..]);
            map.add(key, value).with_context(|| format!("line {}", added + 1))?;
            added += 1;
            told(added);
        }
    }
    if let Some(path) = &source.netstrings {
        let (mut input, mut key, mut value) = (input::open(path)?, Vec::new(), Vec::new());
        while input::netstring(&mut *input, &mut key, 2 * added + 1)?.is_some() {
            if input::netstring(&mut *input, &mut value, 2 * added + 2)?.is_none() {
                bail!("netstring {}: a key without a value", 2 * added + 1);
            }
            map.add(&key, &value).with_context(|| format!("netstring {}", 2 * added + 1))?;
            added += 1;
            told(added);
        }
    }
    Ok(())
}

/// Prints an entry.
pub fn get(
    kvseq: PathBuf,
    index: Option<PathBuf>,
    key: Option<OsString>,
    pointer: Option<u64>,
    settings: &Settings,
    out: &mut Output,
) -> anyhow::Result<Status> {
    let files = BundleFiles { kvseq, indexes: index.into_iter().collect(), perm: None };
    let map = Map::open(files, Access::Read, settings)?;
    let entry = match (&key, pointer) {
        (_, Some(ptr)) => Some(map.kvseq().get(ptr)?),
        (Some(key), None) => map.entry(key.as_bytes())?,
        (None, None) => None,
    };
    let Some(entry) = entry else { return missing(out, "no such key") };
    let (key, value) = (Some(Text(&entry.key)), Some(Contents::Whole(Text(&entry.value))));
    let row = Row { pointer: entry.ptr, deleted: entry.deleted, hash: None, key, value };
    if out.json() {
        out.json_line(&row)?
    } else {
        out.contents()?.write_all(&entry.value)?
    }
    Ok(Status::Done)
}

/// Deletes an entry.
pub fn delete(files: Files, key: &OsStr, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut map = Map::open(files.own(settings)?, Access::Write, settings)?;
    let outcome = map.remove(key.as_bytes());
    let found = closing(outcome.map_err(Into::into), map.close())?;
    let text = if found { "deleted" } else { "no such key" };
    told(out, &json!({"type": "deleted", "found": found}), text)?;
    Ok(Status::from_findings(!found))
}

/// Groups a perm file.
pub fn group(
    perm: &Path,
    container: &Path,
    fill: bool,
    scratch: Option<&Path>,
    settings: &Settings,
    out: &mut Output,
) -> anyhow::Result<Status> {
    expect_no_filesys(perm, settings)?;
    let kv = Kvseq::open(container, Access::Read, settings)?;
    let mut perm = Perm::open(perm, Access::Write, settings)?;
    if fill {
        perm.build(&kv)?;
    }
    perm.group(&kv, scratch, &reporter("group", out))?;
    let pairs = perm.len();
    perm.close()?;
    told(out, &json!({"type": "grouped", "pairs": pairs}), &format!("{pairs} pairs grouped"))
}

/// Prints the event of a capture.
pub fn page(fs: &Path, url: &str, time: Option<&str>, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let pages = Pages::open(&FsPaths::of(fs)?, Access::Read, settings)?;
    let page = match time {
        Some(time) => pages.get(url.as_bytes(), UnixMillis::parse(time)?)?,
        None => pages.newest(url.as_bytes())?,
    };
    let Some(page) = page else { return missing(out, "no such capture") };
    let json = json!({
        "url": url, "time": page.time.to_string(), "type": page.form.to_type(), "bytes": page.event.len(),
        "file": page.place.file.as_ref(), "offset": page.place.offset,
    });
    if out.json() {
        out.json_line(&json)?
    } else {
        out.contents()?.write_all(&page.event)?
    }
    Ok(Status::Done)
}
