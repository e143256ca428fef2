//! `trawl lake rebuild`: the index anew, from the Parquet files alone.

use super::{LakeArg, MemoryArg, build_options, datasets, rewrite_settings, show_index, show_ingest, unless_dropped};
use crate::exit::Status;
use crate::output::Output;
use crate::progress::Progress;
use crate::units::{show_bytes, show_count};
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use trawl_index::Published;
use trawl_ingest::{Files, Rewrite, rewrite};
use trawl_store::manifest::SuffixListRef;
use trawl_store::{Error, Heartbeat, Lake, LostCommits, Manifest, Remains, Store, layout, lost_commits};
use trawl_url::SuffixList;

/// Times a dataset is rewritten again because somebody added to it meanwhile, or all because the list was changed.
const MAX_ATTEMPTS: u32 = 5;

/// Builds the index anew from the Parquet files and commits alone
///
/// For an index that is damaged or lost: answers are the same as before. If the whole of index/ is lost, datasets come back
/// with their ids, and with names and access lists as of their last commit, and the deny list as it was. Rows cut by
/// another suffix list than the one compiled in then need --psl: with the same list they stay as they are. With --psl FILE
/// every row is cut into domains by another public suffix list: the Parquet files are written again, and one commit brings
/// the new files, their index and the list, so that no reader sees one without the others. An interrupted change of lists
/// goes on when repeated, and is taken back by `trawl lake rebuild` without --psl.
///
/// If a dataset has lost its newest commits, nobody can tell any more which files it had. That is refused: put them back from
/// a copy, or go on with the newest that is left by --accept-loss, and bring the sources in again that came later.
///
/// Examples:
///   trawl lake rebuild --lake lake
///   trawl lake rebuild --lake lake --psl public_suffix_list.dat
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct RebuildArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Public suffix list that becomes the lake's
    #[arg(long, value_name = "FILE")]
    psl: Option<PathBuf>,

    /// Go on without commits that are served and gone: what they brought is lost (exit code 1)
    #[arg(long)]
    accept_loss: bool,

    #[command(flatten)]
    memory: MemoryArg,
}

pub(super) fn run(args: &RebuildArgs, out: &mut Output) -> anyhow::Result<Status> {
    let dir = &args.lake.lake;
    // A wrong size is told before anything is done.
    args.memory.bytes()?;
    let lost = lake_dir::index_is_lost(dir) || lake_dir::manifest_is_damaged(dir);
    let (lake, lost) = if lost {
        restore(args, out)?
    } else {
        let lake = lake_dir::open(dir)?;
        recover_deny(&lake, out)?;
        let lost = losses(args, &**lake.store(), &*lake.current()?)?;
        (lake, lost)
    };
    for lost in &lost {
        go_on(&lake, lost, out)?;
    }
    let writer = system::nonce()?;
    let mut attempts = 0;
    let (list, built) = loop {
        let list = match &args.psl {
            Some(file) => new_list(&lake, file, &writer)?,
            None => own_list(&lake, out)?,
        };
        attempts += 1;
        match build(args, &lake, &list, &writer, out) {
            // Somebody brought in rows cut by another list, or changed the lake's own.
            Err(error) if attempts < MAX_ATTEMPTS && is_overtaken(&error) => {}
            built => break (list, built?),
        }
    };
    lake.end_beat(&writer)?;
    let meta = built.segment.as_ref();
    let json = serde_json::json!({
        "type": "index", "version": built.version, "suffix_list": list.hash, "commits": built.commits,
        "segment": meta.map(|m| &m.id), "domains": meta.map_or(0, |m| m.domains), "rows": meta.map_or(0, |m| m.rows),
    });
    out.fact(&json, |w| {
        match meta {
            Some(m) => writeln!(w, "index: {} domains, {} rows", show_count(m.domains), show_count(m.rows))?,
            None => writeln!(w, "index: no rows")?,
        }
        writeln!(w, "suffix list {}", list.hash)?;
        match &built.version {
            Some(version) => writeln!(w, "published version {version}"),
            None => writeln!(w, "nothing to publish"),
        }
    })?;
    Ok(Status::from_findings(!lost.is_empty()))
}

/// Takes the deny list from its record, where the manifest that had it is gone.
fn recover_deny(lake: &Lake, out: &mut Output) -> anyhow::Result<()> {
    if let Some(entries) = lake.recover_deny(system::now(), &system::nonce()?)? {
        let json = serde_json::json!({ "type": "deny_recovered", "deny": entries });
        out.fact(&json, |w| {
            writeln!(w, "took the deny list from its record, as its manifest is gone: {entries} entries")
        })?;
    }
    Ok(())
}

/// Datasets that have lost commits which `manifest` serves, if that is to be accepted.
fn losses(args: &RebuildArgs, store: &dyn Store, manifest: &Manifest) -> anyhow::Result<Vec<LostCommits>> {
    let lost = lost_commits(store, manifest)?;
    match lost.first().filter(|_| !args.accept_loss) {
        Some(first) => Err(first.error().into()),
        None => Ok(lost),
    }
}

/// Goes on without commits that are lost, and tells what is left.
fn go_on(lake: &Lake, lost: &LostCommits, out: &mut Output) -> anyhow::Result<()> {
    let went_on = lake.accept_loss(system::now(), &system::nonce()?, lost)?;
    let (id, served, commit) = (lost.dataset_id, lost.served, &went_on.commit);
    let name = lake.current()?.dataset(id).map(|dataset| dataset.info.name.clone()).unwrap_or_default();
    let json = serde_json::json!({
        "type": "lost", "dataset": name, "dataset_id": id, "served": served, "left": lost.newest, "commit": commit.sequence,
        "rows": commit.rows, "files_gone": went_on.files_gone,
    });
    out.fact(&json, |w| {
        writeln!(w, "{name}: lost what commits {} to {served} brought", lost.newest.saturating_add(1))?;
        writeln!(w, "{name}: goes on with {} rows of commit {}", show_count(commit.rows), lost.newest)?;
        if went_on.files_gone > 0 {
            let gone = show_count(went_on.files_gone);
            writeln!(
                w,
                "{name}: {gone} files of it are gone too, so its sources are forgotten: ingest with --replace"
            )?;
        }
        Ok(())
    })?;
    Ok(())
}

fn is_overtaken(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(trawl_index::Error::Store(Error::Refused { .. })))
}

/// Writes what is cut by another list than `list`, and makes the index of all.
fn build(
    args: &RebuildArgs,
    lake: &Lake,
    list: &SuffixListRef,
    writer: &str,
    out: &mut Output,
) -> anyhow::Result<Published> {
    let (dir, memory) = (&args.lake.lake, args.memory.bytes()?);
    // Datasets that were cut by another list: all of them with a new list, else those an interrupted change left.
    for (id, name) in datasets(&*lake.current()?, None)? {
        recut(lake, dir, memory, (id, &name), list, out)?;
        if args.psl.is_some() {
            spare(lake, &list.path, writer)?;
        }
    }
    let options = build_options(dir, memory)?;
    let bar = Progress::start("index", None, out.quiet());
    let (now, builder, progress) = (&system::now, system::nonce()?, |p| show_index(&bar, p));
    Ok(match args.psl {
        Some(_) => trawl_index::rebuild_under(lake, list, now, &builder, &options, &progress)?,
        None => trawl_index::rebuild(lake, now, &builder, &options, &progress)?,
    })
}

/// Makes the manifest of a lake anew whose `index/` is lost, or whose newest manifest is damaged.
fn restore(args: &RebuildArgs, out: &mut Output) -> anyhow::Result<(Lake, Vec<LostCommits>)> {
    let store = lake_dir::store(&args.lake.lake);
    let remains = trawl_store::remains(&*store)?;
    let lost_commits = match &remains.manifest {
        Some(manifest) => losses(args, &*store, manifest)?,
        None => Vec::new(),
    };
    let list = match &args.psl {
        Some(file) => read_list(file)?,
        None => list_of(&*store, &remains)?,
    };
    let lake = Lake::restore(store, system::now(), &system::nonce()?, &list, &remains)?;
    let denied = lake.current()?.deny.len();
    let live: Vec<_> = remains.datasets.iter().filter(|d| !d.dropped).collect();
    let (from, lost): (_, &[&str]) = match &remains.manifest {
        Some(_) => ("manifest", &[]),
        None => ("commits", &["versions"]),
    };
    let json = serde_json::json!({
        "type": "restored", "from": from, "datasets": live.iter().map(|d| &d.info.name).collect::<Vec<_>>(),
        "nameless": remains.nameless, "younger": remains.younger, "deny": denied, "lost": lost,
    });
    out.fact(&json, |w| {
        for dataset in &live {
            writeln!(w, "restored dataset {} as {}", dataset.id, dataset.info.name)?;
        }
        writeln!(w, "restored the deny list: {denied} {}", if denied == 1 { "entry" } else { "entries" })?;
        match &remains.manifest {
            Some(manifest) => writeln!(w, "took the registry from the manifest of {}", manifest.written),
            None => writeln!(w, "lost with index/: older versions, access lists changed since a dataset's last commit"),
        }
    })?;
    Ok((lake, lost_commits))
}

/// The suffix list the rows were cut by: as it still lies in the lake, or the one compiled in.
fn list_of(store: &dyn Store, remains: &Remains) -> anyhow::Result<Vec<u8>> {
    let builtin = SuffixList::builtin().text().as_bytes();
    let (wanted, own) = (remains.wanted_lists(), trawl_store::suffix_list_hash(builtin));
    for hash in &wanted {
        if let Some(bytes) = trawl_store::stored_list(store, hash)? {
            return Ok(bytes);
        }
    }
    if !wanted.is_empty() && !wanted.contains(&own.as_str()) {
        bail!(
            "the rows were cut into domains by suffix list {}, which was lost with index/ and is not the one compiled in \
             ({own}): name it with --psl FILE (with another list the rows are written again)",
            wanted.join(", ")
        );
    }
    Ok(builtin.to_vec())
}

/// Keeps a collector from taking a list that is not the lake's yet.
fn spare(lake: &Lake, path: &str, writer: &str) -> anyhow::Result<()> {
    let (writer, act) = (writer.to_owned(), "rebuild".to_owned());
    Ok(lake.beat(&Heartbeat { writer, act, beat: system::now(), prefixes: vec![path.to_owned()] })?)
}

/// The lake's list, written anew if it is lost or damaged and the one compiled in.
fn own_list(lake: &Lake, out: &Output) -> anyhow::Result<SuffixListRef> {
    let list = lake.current()?.suffix_list.clone().context("the lake has no suffix list: name one with --psl")?;
    let error = match lake.stored_suffix_list(&list) {
        Ok(_) => return Ok(list),
        Err(error) if error.is_not_found() || matches!(error, Error::Corrupt { .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let builtin = SuffixList::builtin().text().as_bytes();
    if trawl_store::suffix_list_hash(builtin) != list.hash {
        bail!(
            "{error}; it is not the one compiled in: name it with --psl FILE (with another the rows are written again)"
        );
    }
    out.remark(&format!("{error}: it is the one compiled in, and written anew"));
    Ok(lake.put_suffix_list(builtin)?)
}

/// Stores a list in the lake.
fn new_list(lake: &Lake, file: &Path, writer: &str) -> anyhow::Result<SuffixListRef> {
    let bytes = read_list(file)?;
    spare(lake, layout::SUFFIX_LISTS, writer)?;
    Ok(lake.put_suffix_list(&bytes)?)
}

/// The bytes of a list, once it proved to be one.
fn read_list(file: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = std::str::from_utf8(&bytes).with_context(|| format!("{} is no text", file.display()))?;
    SuffixList::parse(text).with_context(|| format!("{} is no public suffix list", file.display()))?;
    Ok(bytes)
}

/// Writes a dataset again under `list`, unless it is already.
fn recut(
    lake: &Lake,
    dir: &Path,
    memory: u64,
    (id, name): (u32, &str),
    list: &SuffixListRef,
    out: &mut Output,
) -> anyhow::Result<()> {
    let mut refused = None;
    for _ in 0..MAX_ATTEMPTS {
        let Some(commit) = lake.dataset_newest(id)? else { return Ok(()) };
        if commit.suffix_list == list.hash || commit.files.is_empty() {
            return Ok(());
        }
        let bar = Progress::start(&format!("rewrite {name}"), None, out.quiet());
        let what = Rewrite { keep: &|_| true, files: Files::All, suffix_list: Some(list) };
        let done = unless_dropped(rewrite(lake, id, &what, &rewrite_settings(dir, memory)?, &system::now, &|p| {
            show_ingest(&bar, p)
        }));
        drop(bar);
        let report = match done {
            // Somebody added to the dataset meanwhile: their rows too.
            Err(error @ trawl_ingest::Error::Store(Error::Refused { .. })) => {
                refused = Some(error);
                continue;
            }
            done => done?,
        };
        let json = serde_json::json!({ "type": "files", "dataset": name, "dataset_id": id, "dry_run": false, "report": report });
        out.fact(&json, |w| {
            let (rows, size) = (show_count(report.rows_after), show_bytes(report.bytes_after));
            writeln!(w, "{name}: {rows} rows written again, {size}")
        })?;
        return Ok(());
    }
    match refused {
        Some(error) => Err(error).with_context(|| format!("dataset {name}")),
        None => Ok(()),
    }
}
