//! `trawl seqdb check`, `checkpoint`, `rollback`, `index-rebuild`, `compact`.

use super::{expect_no_filesys, expect_no_filesys_among, reporter};
use crate::exit::{self, Status};
use crate::output::{self, Output};
use crate::units::show_bytes;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use trawl_seqdb::filesys::FsRepair;
use trawl_seqdb::kvseq::KvRepair;
use trawl_seqdb::{
    Access, BundleFiles, Counted, Finding, Findings, FsPaths, Hindex, Kind, Kvseq, Perm, Repaired, Settings, Severity,
    Whole, hindex, inspect, map,
};

/// Checks files, all their neighbours, and that they belong together
///
/// A file of a filesys stands for the whole filesys; NAME.kvseq for NAME.hindex too. With --repair whatever was not
/// closed properly goes back to its last sync, indexes are rebuilt, and everything is checked again. Exit code 1 when
/// there are faults.
///
/// Examples:
///   trawl seqdb check docs.data words.kvseq
///   trawl seqdb check docs --repair
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CheckArgs {
    /// Files, or filesys as BASE/NAME
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The kvseq that a hindex or perm points into, if it does not lie beside it
    #[arg(long, value_name = "KVSEQ")]
    container: Option<PathBuf>,
    /// Repair what has faults
    #[arg(long)]
    repair: bool,
    /// Repair, keeping entries as far as they are whole instead of going back to the last sync
    #[arg(long)]
    salvage: bool,
    /// The files are filesys, whatever they say of themselves.
    #[arg(skip)]
    filesys: bool,
}

impl CheckArgs {
    /// For one filesys.
    pub fn of(fs: PathBuf, repair: bool, salvage: bool) -> Self {
        CheckArgs { files: vec![fs], container: None, repair, salvage, filesys: true }
    }
}

#[derive(Serialize)]
struct FindingRow<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    file: String,
    offset: u64,
    expected: &'a str,
    found: &'a str,
}

/// Checks files. One that cannot be read does not stop the rest.
pub fn check(args: CheckArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let (mut faulty, mut failed) = (false, false);
    for file in &args.files {
        match check_one(file, &args, settings, out) {
            Ok(sound) => faulty |= !sound,
            Err(error) => {
                failed = true;
                output::complain(&exit::in_one_line(&error));
            }
        }
    }
    if failed {
        anyhow::bail!("not everything could be checked");
    }
    Ok(Status::from_findings(faulty))
}

fn check_one(file: &Path, args: &CheckArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<bool> {
    let mut findings = Findings::new();
    let found = match args.filesys {
        true => FsPaths::of(file).and_then(|paths| Whole::filesys(paths, settings)),
        false => Whole::of(file, settings),
    };
    let mut whole = match found {
        Ok(whole) => whole,
        // Nothing further can be read of it, or repaired.
        Err(error) => {
            findings.take(error)?;
            return conclude(file, &findings, Counted::Superblock, out);
        }
    };
    if let (Whole::Hindex(_, container) | Whole::Perm(_, container), Some(given)) = (&mut whole, &args.container) {
        *container = Some(given.clone());
    }
    let mut counted = whole.verify(settings, &mut findings, &reporter("check", out))?;
    if (args.repair || args.salvage) && (!findings.is_sound() || findings.warnings() > 0) {
        for finding in findings.list() {
            tell(finding, out)?;
        }
        let done = whole.repair(settings, args.salvage, &reporter("repair", out))?;
        let facts = repaired(&done);
        let json = json!({"type": "repaired", "file": file.display().to_string(), "done": facts});
        out.fact(&json, |w| writeln!(w, "{}: repaired: {}", file.display(), in_words(&facts)))?;
        findings = Findings::new();
        counted = whole.verify(settings, &mut findings, &reporter("check", out))?;
    }
    conclude(file, &findings, counted, out)
}

/// Tells what was found, and what it comes to.
fn conclude(file: &Path, findings: &Findings, counted: Counted, out: &mut Output) -> anyhow::Result<bool> {
    for finding in findings.list() {
        tell(finding, out)?;
    }
    let (faults, warnings) = (findings.faults(), findings.warnings());
    let counts = match counted {
        Counted::Filesys(f) => json!({"files": f.files, "bytes": f.bytes, "foreign": f.foreign, "orphans": f.orphans}),
        Counted::Kvseq(k) => json!({"entries": k.entries, "live": k.live}),
        Counted::Hindex(i) => json!({"keys": i.keys, "deleted": i.deleted, "unreferenced": i.unreferenced}),
        Counted::Perm(p) => json!({"pairs": p.pairs, "grouped": p.grouped}),
        _ => json!({}),
    };
    let json = json!({
        "type": "checked", "file": file.display().to_string(), "faults": faults, "warnings": warnings,
        "counted": counts,
    });
    out.fact(&json, |w| {
        let what = match counted {
            Counted::Filesys(f) => format!("{} files, {}", f.files, show_bytes(f.bytes)),
            Counted::Kvseq(k) => format!("{} entries, {} of them live", k.entries, k.live),
            Counted::Hindex(i) => format!("{} keys", i.keys),
            Counted::Perm(p) => format!("{} pairs, {}", p.pairs, if p.grouped { "grouped" } else { "not grouped" }),
            _ => "superblock only".to_owned(),
        };
        writeln!(w, "{}: {what}; {faults} faults, {warnings} warnings", file.display())
    })?;
    Ok(findings.is_sound())
}

fn tell(finding: &Finding, out: &mut Output) -> anyhow::Result<()> {
    let kind = match finding.severity {
        Severity::Fault => "fault",
        Severity::Warning => "warning",
    };
    let file = finding.path.display().to_string();
    let row = FindingRow { kind, file, offset: finding.offset, expected: &finding.expected, found: &finding.found };
    out.fact(&row, |w| writeln!(w, "{kind}: {finding}"))?;
    Ok(())
}

/// What a repair did, in numbers.
fn repaired(done: &Repaired) -> serde_json::Value {
    let kvseq = |k: &KvRepair| json!({"old_bytes": k.old_end, "new_bytes": k.new_end, "entries": k.entries});
    let filesys = |f: &FsRepair| {
        json!({
            "old_bytes": f.data.old_end, "new_bytes": f.data.new_end, "files": f.files,
            "broken_inodes": f.broken_inodes, "cut_files": f.cut_files, "orphans": f.orphans,
            "resurrected": f.resurrected,
        })
    };
    match done {
        Repaired::Filesys(f) => filesys(f),
        Repaired::Kvseq(k) => kvseq(k),
        Repaired::Hindex(h) => json!({"keys": h.keys, "cells": h.htsize}),
        Repaired::Perm(pairs) => json!({"pairs": pairs}),
        _ => json!({}),
    }
}

/// The same for a person: `old_bytes 300, new_bytes 288`.
fn in_words(facts: &serde_json::Value) -> String {
    let fact = |(name, value): (&String, &serde_json::Value)| format!("{} {value}", name.replace('_', " "));
    facts.as_object().map(|o| o.iter().map(fact).collect::<Vec<_>>().join(", ")).unwrap_or_default()
}

/// Declares the current length of a file valid
///
/// Every command here ends with a checkpoint; this one is for files that others wrote without.
///
/// Example:
///   trawl seqdb checkpoint words.kvseq
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CheckpointArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Syncs a file.
pub fn checkpoint(args: CheckpointArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    expect_no_filesys(&args.file, settings)?;
    match inspect(&args.file, settings)?.kind {
        Kind::Kvseq => Kvseq::open(&args.file, Access::Write, settings)?.close()?,
        Kind::Hindex => Hindex::open(&args.file, Access::Write, settings)?.close()?,
        Kind::Perm => Perm::open(&args.file, Access::Write, settings)?.close()?,
    }
    let seen = inspect(&args.file, settings)?;
    let name = args.file.display().to_string();
    let json = json!({"type": "checkpoint", "file": name, "bytes": seen.bytes});
    out.fact(&json, |w| writeln!(w, "{name}: {} bytes", seen.bytes))?;
    Ok(Status::Done)
}

/// Takes a file back to its length at the last sync
///
/// What was added since is gone; what was changed in place stays. Indexes and a perm that are named are rebuilt; others
/// must be before the file is appended to again.
///
/// Example:
///   trawl seqdb rollback words.kvseq --index words.hindex
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct RollbackArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// An index over its keys; may be given several times
    #[arg(long, value_name = "HINDEX")]
    index: Vec<PathBuf>,
    /// A perm over it
    #[arg(long, value_name = "PERM")]
    perm: Option<PathBuf>,
}

/// Rolls a file back.
pub fn rollback(args: RollbackArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    expect_no_filesys(&args.file, settings)?;
    let name = args.file.display().to_string();
    let seen = inspect(&args.file, settings)?;
    let (old, new) = match seen.kind {
        Kind::Perm => {
            trawl_seqdb::perm::repair(&args.file, settings)?;
            (seen.bytes, inspect(&args.file, settings)?.bytes)
        }
        Kind::Hindex => anyhow::bail!("{name}: an index is not rolled back but rebuilt: see index-rebuild"),
        Kind::Kvseq => {
            let files = BundleFiles { kvseq: args.file, indexes: args.index, perm: args.perm };
            expect_no_filesys_among(&files, settings)?;
            let done = map::rollback(&files, settings, false, &reporter("rollback", out))?;
            (done.old_end, done.new_end)
        }
    };
    let json = json!({"type": "rollback", "file": name, "old_bytes": old, "new_bytes": new});
    out.fact(&json, |w| writeln!(w, "{name}: {old} -> {new} bytes"))?;
    Ok(Status::Done)
}

/// Rebuilds an index from its kvseq
///
/// Of equal keys the last entry that is not deleted counts. Sizes are kept unless given.
///
/// Example:
///   trawl seqdb index-rebuild words.hindex --container words.kvseq --htsize 4000037
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct IndexRebuildArgs {
    /// The index
    #[arg(value_name = "HINDEX")]
    hindex: PathBuf,
    /// The kvseq it is about
    #[arg(long, value_name = "KVSEQ")]
    container: PathBuf,
    /// Cells
    #[arg(long, value_name = "N")]
    htsize: Option<u64>,
    /// Words of a cell: 1, or 2 with stored hashes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2))]
    cellsz: Option<u64>,
}

/// Rebuilds an index.
pub fn index_rebuild(args: IndexRebuildArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    if args.hindex.exists() {
        expect_no_filesys(&args.hindex, settings)?;
    }
    let kv = Kvseq::open(&args.container, Access::Read, settings)?;
    let bar = reporter("index-rebuild", out);
    let done = hindex::rebuild(&args.hindex, &kv, args.htsize, args.cellsz, settings, &bar)?;
    drop(bar);
    let json = json!({
        "type": "rebuilt", "file": args.hindex.display().to_string(), "keys": done.keys, "cells": done.htsize,
        "superseded": done.superseded,
    });
    out.fact(&json, |w| writeln!(w, "{}: {} keys in {} cells", args.hindex.display(), done.keys, done.htsize))?;
    Ok(Status::Done)
}

/// Copies a kvseq without deleted entries
///
/// The new file takes the old one's place in one step; indexes and a perm that are named are rebuilt.
///
/// Example:
///   trawl seqdb compact words.kvseq --index words.hindex
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CompactArgs {
    /// The kvseq
    #[arg(value_name = "KVSEQ")]
    kvseq: PathBuf,
    /// An index over its keys; may be given several times
    #[arg(long, value_name = "HINDEX")]
    index: Vec<PathBuf>,
    /// A perm over it
    #[arg(long, value_name = "PERM")]
    perm: Option<PathBuf>,
}

/// Compacts a kvseq.
pub fn compact(args: CompactArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let files = BundleFiles { kvseq: args.kvseq, indexes: args.index, perm: args.perm };
    expect_no_filesys_among(&files, settings)?;
    let (old, new) = map::compact(&files, settings, &reporter("compact", out))?;
    let json = json!({"type": "compacted", "old_bytes": old, "new_bytes": new});
    out.fact(&json, |w| writeln!(w, "{} -> {}", show_bytes(old), show_bytes(new)))?;
    Ok(Status::Done)
}
