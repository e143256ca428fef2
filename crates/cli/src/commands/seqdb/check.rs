//! `trawl seqdb check`, `checkpoint`, `rollback`, `index-rebuild`, `compact`.

use super::{Files, Table, expect_no_filesys, reporter, told};
use crate::exit::{self, Status};
use crate::output::{self, Output};
use crate::units::show_bytes;
use serde_json::json;
use std::path::{Path, PathBuf};
use trawl_seqdb::hindex::{self, Rebuilt};
use trawl_seqdb::{
    Access, Counted, Finding, Findings, FsPaths, Hindex, Kind, Kvseq, Perm, Repaired, Settings, Severity, Whole,
    inspect, map,
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
    /// Repair faults
    #[arg(long)]
    repair: bool,
    /// Repair, and keep every complete entry instead of going back to the last sync
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
        findings.list().iter().try_for_each(|finding| tell(finding, out))?;
        let facts = repaired(&whole.repair(settings, args.salvage, &reporter("repair", out))?);
        let (name, words) = (file.display().to_string(), in_words(&facts));
        let json = json!({"type": "repaired", "file": name, "done": facts});
        told(out, &json, &format!("{name}: repaired: {words}"))?;
        findings = Findings::new();
        counted = whole.verify(settings, &mut findings, &reporter("check", out))?;
    }
    conclude(file, &findings, counted, out)
}

/// Tells what was found, and what it comes to.
fn conclude(file: &Path, findings: &Findings, counted: Counted, out: &mut Output) -> anyhow::Result<bool> {
    findings.list().iter().try_for_each(|finding| tell(finding, out))?;
    let (name, faults, warnings) = (file.display().to_string(), findings.faults(), findings.warnings());
    let (what, counts) = match counted {
        Counted::Filesys(f) => (
            format!("{} files, {}", f.files, show_bytes(f.bytes)),
            json!({"files": f.files, "bytes": f.bytes, "foreign": f.foreign, "orphans": f.orphans}),
        ),
        Counted::Kvseq(k) => {
            (format!("{} entries, {} of them live", k.entries, k.live), json!({"entries": k.entries, "live": k.live}))
        }
        Counted::Hindex(i) => {
            (format!("{} keys", i.keys), json!({"keys": i.keys, "deleted": i.deleted, "unreferenced": i.unreferenced}))
        }
        Counted::Perm(p) => {
            let grouped = if p.grouped { "grouped" } else { "not grouped" };
            (format!("{} pairs, {grouped}", p.pairs), json!({"pairs": p.pairs, "grouped": p.grouped}))
        }
        _ => ("superblock only".to_owned(), json!({})),
    };
    let json = json!({"type": "checked", "file": name, "faults": faults, "warnings": warnings, "counted": counts});
    told(out, &json, &format!("{name}: {what}; {faults} faults, {warnings} warnings"))?;
    Ok(findings.is_sound())
}

fn tell(finding: &Finding, out: &mut Output) -> anyhow::Result<()> {
    let kind = match finding.severity {
        Severity::Fault => "fault",
        Severity::Warning => "warning",
    };
    let Finding { path, offset, expected, found, .. } = finding;
    let file = path.display().to_string();
    let json = json!({"type": kind, "file": file, "offset": offset, "expected": expected, "found": found});
    told(out, &json, &format!("{kind}: {finding}")).map(|_| ())
}

/// What a repair did, in numbers.
fn repaired(done: &Repaired) -> serde_json::Value {
    match done {
        Repaired::Filesys(f) => json!({
            "old_bytes": f.data.old_end, "new_bytes": f.data.new_end, "files": f.files,
            "broken_inodes": f.broken_inodes, "cut_files": f.cut_files, "orphans": f.orphans,
            "resurrected": f.resurrected,
        }),
        Repaired::Kvseq(k) => json!({"old_bytes": k.old_end, "new_bytes": k.new_end, "entries": k.entries}),
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

/// Syncs a file.
pub fn checkpoint(file: &Path, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    expect_no_filesys(file, settings)?;
    match inspect(file, settings)?.kind {
        Kind::Kvseq => Kvseq::open(file, Access::Write, settings)?.close()?,
        Kind::Hindex => Hindex::open(file, Access::Write, settings)?.close()?,
        Kind::Perm => Perm::open(file, Access::Write, settings)?.close()?,
    }
    let (name, bytes) = (file.display().to_string(), inspect(file, settings)?.bytes);
    told(out, &json!({"type": "checkpoint", "file": name, "bytes": bytes}), &format!("{name}: {bytes} bytes"))
}

/// Rolls a file back.
pub fn rollback(files: Files, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let file = files.kvseq.clone();
    let name = file.display().to_string();
    let files = files.own(settings)?;
    let seen = inspect(&file, settings)?;
    let (old, new) = match seen.kind {
        Kind::Perm => {
            trawl_seqdb::perm::repair(&file, settings)?;
            (seen.bytes, inspect(&file, settings)?.bytes)
        }
        Kind::Hindex => anyhow::bail!("{name}: an index is not rolled back but rebuilt: see index-rebuild"),
        Kind::Kvseq => {
            let done = map::rollback(files, settings, false, &reporter("rollback", out))?;
            (done.old_end, done.new_end)
        }
    };
    let json = json!({"type": "rollback", "file": name, "old_bytes": old, "new_bytes": new});
    told(out, &json, &format!("{name}: {old} -> {new} bytes"))
}

/// Rebuilds an index.
pub fn index_rebuild(
    hindex: &Path,
    container: &Path,
    table: &Table,
    settings: &Settings,
    out: &mut Output,
) -> anyhow::Result<Status> {
    if hindex.exists() {
        expect_no_filesys(hindex, settings)?;
    }
    let kv = Kvseq::open(container, Access::Read, settings)?;
    let bar = reporter("index-rebuild", out);
    let Rebuilt { keys, superseded, htsize: cells } =
        hindex::rebuild(hindex, &kv, table.htsize, table.cellsz, settings, &bar)?;
    drop(bar);
    let name = hindex.display().to_string();
    let json = json!({"type": "rebuilt", "file": name, "keys": keys, "cells": cells, "superseded": superseded});
    told(out, &json, &format!("{name}: {keys} keys in {cells} cells"))
}

/// Compacts a kvseq.
pub fn compact(files: Files, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let (old, new) = map::compact(files.own(settings)?, settings, &reporter("compact", out))?;
    let json = json!({"type": "compacted", "old_bytes": old, "new_bytes": new});
    told(out, &json, &format!("{} -> {}", show_bytes(old), show_bytes(new)))
}
