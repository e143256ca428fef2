//! `trawl seqdb fs`: file systems in containers; creating and looking.

use super::{fs_copy, fs_edit, fs_whole, fsgen};
use crate::containers::Text;
use crate::exit::Status;
use crate::output::Output;
use crate::units::show_bytes;
use serde::Serialize;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trawl_model::UnixMillis;
use trawl_seqdb::{Access, Base, CreateFilesys, Error, FileInfo, Filesys, FsPaths, Settings, design, pages, silent};

/// Works with a filesys: many files in a few large ones
///
/// A filesys is named as BASE/NAME: its files are NAME.data, NAME.idx, NAME.lock and, if append-only, NAME.time in the
/// directory BASE. File names are any bytes; there are no directories, though a name may have slashes.
///
/// Examples:
///   trawl seqdb fs create base/docs
///   trawl seqdb fs put base/docs a.txt < a.txt
///   trawl seqdb fs ls base/docs
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct FsArgs {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Create(CreateArgs),
    Names(NamesArgs),
    Ls(LsArgs),
    Stat(StatArgs),
    Stats(StatsArgs),
    Cat(fs_edit::CatArgs),
    Put(fs_edit::PutArgs),
    Append(fs_edit::AppendArgs),
    Rm(fs_edit::RmArgs),
    Mv(fs_edit::MvArgs),
    Truncate(fs_edit::TruncateArgs),
    Reserve(fs_edit::ReserveArgs),
    Import(fs_copy::ImportArgs),
    Export(fs_copy::ExportArgs),
    Check(fs_whole::CheckArgs),
    Compact(fs_whole::CompactArgs),
    RebuildIndex(fs_whole::RebuildArgs),
}

/// Runs the command.
pub fn run(args: FsArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    match args.command {
        Verb::Create(args) => create(args, settings, out),
        Verb::Names(args) => names(args, settings, out),
        Verb::Ls(args) => ls(args, settings, out),
        Verb::Stat(args) => stat(args, settings, out),
        Verb::Stats(args) => stats(&args.fs, settings, out),
        Verb::Cat(args) => fs_edit::cat(args, settings, out),
        Verb::Put(args) => fs_edit::put(args, settings, out),
        Verb::Append(args) => fs_edit::append(args, settings, out),
        Verb::Rm(args) => fs_edit::rm(args, settings, out),
        Verb::Mv(args) => fs_edit::mv(args, settings, out),
        Verb::Truncate(args) => fs_edit::truncate(args, settings, out),
        Verb::Reserve(args) => fs_edit::reserve(args, settings, out),
        Verb::Import(args) => fs_copy::import(args, settings, out),
        Verb::Export(args) => fs_copy::export(args, settings, out),
        Verb::Check(args) => fs_whole::check(args, settings, out),
        Verb::Compact(args) => fs_whole::compact(args, settings, out),
        Verb::RebuildIndex(args) => fs_whole::rebuild_index(args, settings, out),
    }
}

/// An open filesys, with a share of the lock of its base if there is one.
pub struct Open {
    /// The filesys.
    pub fs: Filesys,
    _base: Base,
}

/// Opens a filesys.
pub fn open(path: &Path, access: Access, settings: &Settings) -> anyhow::Result<Open> {
    let paths = FsPaths::of(path)?;
    let mut base = Base::open(paths.base(), settings)?;
    if paths.global_lock().exists() {
        base.lock()?;
    }
    Ok(Open { fs: Filesys::open(&paths, access, settings)?, _base: base })
}

/// Changes a filesys, and closes it whatever came of it: a refusal must not leave one that asks for a repair.
pub fn change<T>(
    path: &Path,
    settings: &Settings,
    act: impl FnOnce(&mut Filesys) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let paths = FsPaths::of(path)?;
    // A container of captures has a second index, by URL, which will no longer fit.
    if pages::url_index_path(&paths).exists() && paths.data().exists() {
        return pages::edit(&paths, settings, act, &silent);
    }
    let Open { mut fs, _base } = open(path, Access::Write, settings)?;
    let done = act(&mut fs);
    let closed = fs.close();
    let done = done?;
    closed?;
    Ok(done)
}

/// What is known of a file. The index may be behind the data of a filesys that is being written: then a file that it
/// does not have is looked for in the data.
pub fn look_up(fs: &Filesys, name: &[u8]) -> trawl_seqdb::Result<FileInfo> {
    match fs.stat(name) {
        Err(missing @ Error::FileNotFound { .. }) if fs.is_being_written() => {
            let mut files = fs.files();
            let mut found = None;
            while let Some(info) = files.next_file()? {
                if info.name == name {
                    found = Some(info);
                }
            }
            found.ok_or(missing)
        }
        other => other,
    }
}

/// A file that is not there is a finding, not a failure.
pub fn missing_is_a_finding(error: Error, out: &Output) -> anyhow::Result<Status> {
    match error {
        Error::FileNotFound { .. } => {
            out.remark(&error.to_string());
            Ok(Status::Findings)
        }
        other => Err(other.into()),
    }
}

/// Creates an empty filesys
///
/// An append-only one never changes what it has written: files are created and appended to while they are the last one,
/// and can be listed from any time on.
///
/// Examples:
///   trawl seqdb fs create base/docs
///   trawl seqdb fs create base/log --ao 60 --htsize 1000003
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct CreateArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// Inode area of new files: a multiple of 8 from 16
    #[arg(long, default_value_t = design::DEFAULT_ISZ, value_name = "N")]
    isz: u64,
    /// Cells of the index; it grows by itself
    #[arg(long, default_value_t = 1021, value_name = "N")]
    htsize: u64,
    /// An index without stored hashes: half as large, slower
    #[arg(long)]
    plain: bool,
    /// Record deletions in the index only
    #[arg(long)]
    dups: bool,
    /// Append-only, with a time mark every so many seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    ao: Option<i64>,
}

fn create(args: CreateArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let paths = FsPaths::of(&args.fs)?;
    let create = CreateFilesys {
        isz: args.isz,
        htsize: args.htsize,
        cellsz: if args.plain { 1 } else { 2 },
        have_dups: args.dups,
        append_only: args.ao,
        ..CreateFilesys::new(fsgen()?)
    };
    create.create(&paths, settings)?.close()?;
    let name = paths.data().display().to_string();
    out.fact(&serde_json::json!({"type": "created", "file": name, "format": "filesys"}), |w| {
        writeln!(w, "{name}: filesys")
    })?;
    Ok(Status::Done)
}

/// Lists the filesys of a directory
///
/// Example:
///   trawl seqdb fs names base
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct NamesArgs {
    /// The directory
    #[arg(value_name = "BASE")]
    base: PathBuf,
}

fn names(args: NamesArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    for name in Base::open(&args.base, settings)?.names()? {
        out.fact(&serde_json::json!({ "name": name }), |w| writeln!(w, "{name}"))?;
    }
    Ok(Status::Done)
}

/// Lists the files of a filesys, in the order they lie on disk
///
/// Examples:
///   trawl seqdb fs ls base/docs
///   trawl seqdb fs ls base/log --since 1200913506 --json
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct LsArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// In the order of the index instead
    #[arg(long, conflicts_with = "since")]
    index_order: bool,
    /// Only files of this time and later: seconds since 1970
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    since: Option<i64>,
}

#[derive(Serialize)]
struct FileRow<'a> {
    name: Text<'a>,
    #[serde(rename = "type")]
    kind: char,
    bytes: u64,
    mtime: i64,
}

fn show(info: &FileInfo, out: &mut Output) -> std::io::Result<()> {
    let row = FileRow { name: Text(&info.name), kind: info.kind, bytes: info.size, mtime: info.mtime };
    out.fact(&row, |w| {
        let time = UnixMillis(row.mtime.saturating_mul(1000)).rfc3339_seconds();
        writeln!(w, "{} {:>12} {time} {}", row.kind, row.bytes, row.name)
    })
}

fn ls(args: LsArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = &open(&args.fs, Access::Read, settings)?;
    if args.index_order {
        let mut written = Ok(());
        fs.for_each_indexed(&mut |info| {
            if written.is_ok() {
                written = show(&info, out);
            }
            Ok(())
        })?;
        written?;
        return Ok(Status::Done);
    }
    let mut files = match args.since {
        Some(time) => fs.files_since(time)?,
        None => fs.files(),
    };
    while let Some(info) = files.next_file()? {
        show(&info, out)?;
    }
    Ok(Status::Done)
}

/// Says what is known of a file, or of the filesys
///
/// Exit code 1 when there is no such file.
///
/// Example:
///   trawl seqdb fs stat base/docs a.txt
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct StatArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// The file
    #[arg(value_name = "FILE")]
    file: Option<OsString>,
}

fn stat(args: StatArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Some(file) = args.file else { return stats(&args.fs, settings, out) };
    let Open { fs, .. } = &open(&args.fs, Access::Read, settings)?;
    match look_up(fs, file.as_bytes()) {
        Ok(info) => show(&info, out)?,
        Err(error) => return missing_is_a_finding(error, out),
    }
    Ok(Status::Done)
}

/// Counts files, cells and bytes of a filesys
///
/// Dead bytes are regained by `trawl seqdb fs compact`.
///
/// Example:
///   trawl seqdb fs stats base/docs
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct StatsArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
}

fn stats(fs: &Path, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = &open(fs, Access::Read, settings)?;
    let s = fs.stats();
    let json = serde_json::json!({
        "files": s.files, "cells": s.cells, "used_cells": s.used_cells, "deleted_cells": s.deleted_cells,
        "total_bytes": s.total_bytes, "used_bytes": s.used_bytes, "dead_bytes": s.dead_bytes,
        "append_only": fs.is_append_only(),
    });
    out.fact(&json, |w: &mut dyn Write| {
        let kind = if fs.is_append_only() { "append-only" } else { "read-write" };
        writeln!(w, "{}: {kind}, {} files", fs.paths().data().display(), s.files)?;
        writeln!(w, "  index {} cells, {} used, {} of them deleted", s.cells, s.used_cells, s.deleted_cells)?;
        let [total, used, dead] = [s.total_bytes, s.used_bytes, s.dead_bytes].map(show_bytes);
        writeln!(w, "  data  {total}, {used} used, {dead} dead")
    })?;
    Ok(Status::Done)
}
