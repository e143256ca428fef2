//! `trawl seqdb fs`: file systems in containers; creating, looking, and what is done to a whole one.

use super::{Table, check, closing, fs_copy, fs_edit, fsgen, missing, printed, reporter, told};
use crate::exit::Status;
use crate::output::Output;
use crate::units::show_bytes;
use serde::Serialize;
use serde_json::json;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trawl_archive::seqdb::Text;
use trawl_model::UnixMillis;
use trawl_seqdb::{
    Access, Base, CreateFilesys, Error, FileInfo, Filesys, FsPaths, Settings, design, filesys, pages, silent,
};

/// A file of a filesys.
#[derive(Debug, clap::Args)]
pub struct FileTarget {
    /// The filesys, as BASE/NAME
    pub fs: PathBuf,
    /// The file
    pub file: OsString,
}

impl FileTarget {
    /// The name of the file.
    pub fn name(&self) -> &[u8] {
        self.file.as_bytes()
    }
}

/// What is done with a filesys.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Creates an empty filesys
    ///
    /// An append-only filesys never changes what it has written: only its last file can be appended to, and files can be listed
    /// from a given time on.
    ///
    /// Examples:
    ///   trawl seqdb fs create base/docs
    ///   trawl seqdb fs create base/log --ao 60 --htsize 1000003
    #[command(verbatim_doc_comment)]
    Create {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// Size of the inode area of new files: a multiple of 8, at least 16
        #[arg(long, default_value_t = design::DEFAULT_ISZ, value_name = "N")]
        isz: u64,
        /// Cells of the index; it grows by itself
        #[arg(long, default_value_t = 1021, value_name = "N")]
        htsize: u64,
        /// Make an index without stored hashes: half as large, but slower
        #[arg(long)]
        plain: bool,
        /// Record deletions in the index only
        #[arg(long)]
        dups: bool,
        /// Make it append-only, with a time mark every N seconds
        #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
        ao: Option<i64>,
    },
    /// Lists the filesys of a directory
    ///
    /// Example:
    ///   trawl seqdb fs names base
    #[command(verbatim_doc_comment)]
    Names {
        /// The directory
        base: PathBuf,
    },
    /// Lists the files of a filesys, in the order they lie on disk
    ///
    /// Examples:
    ///   trawl seqdb fs ls base/docs
    ///   trawl seqdb fs ls base/log --since 1200913506 --json
    #[command(verbatim_doc_comment)]
    Ls {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// List in the order of the index instead
        #[arg(long, conflicts_with = "since")]
        index_order: bool,
        /// Only files of this time or later, in seconds since 1970
        #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
        since: Option<i64>,
    },
    /// Says what is known of a file, or of the filesys
    ///
    /// Exit code 1 when there is no such file.
    ///
    /// Example:
    ///   trawl seqdb fs stat base/docs a.txt
    #[command(verbatim_doc_comment)]
    Stat {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// The file
        file: Option<OsString>,
    },
    /// Counts files, cells and bytes of a filesys
    ///
    /// Dead bytes are regained by `trawl seqdb fs compact`.
    ///
    /// Example:
    ///   trawl seqdb fs stats base/docs
    #[command(verbatim_doc_comment)]
    Stats {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
    },
    Cat(fs_edit::CatArgs),
    Put(fs_edit::PutArgs),
    /// Appends stdin to a file, which is created if it is not there
    ///
    /// Example:
    ///   date | trawl seqdb fs append base/docs log.txt
    #[command(verbatim_doc_comment)]
    Append(FileTarget),
    /// Deletes files
    ///
    /// Exit code 1 when one is not there.
    ///
    /// Example:
    ///   trawl seqdb fs rm base/docs a.txt b.txt
    #[command(verbatim_doc_comment)]
    Rm {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<OsString>,
        /// Remove only the names; a rebuild of the index brings the files back
        #[arg(long)]
        index_only: bool,
    },
    /// Gives a file another name
    ///
    /// Exit code 1 when there is no such file.
    ///
    /// Example:
    ///   trawl seqdb fs mv base/docs a.txt b.txt
    #[command(verbatim_doc_comment)]
    Mv {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// Its name
        old: OsString,
        /// The name it gets, which must be free
        new: OsString,
    },
    /// Makes a file a given number of bytes long
    ///
    /// Exit code 1 when there is no such file.
    ///
    /// Example:
    ///   trawl seqdb fs truncate base/docs a.txt 100
    #[command(verbatim_doc_comment)]
    Truncate {
        #[command(flatten)]
        target: FileTarget,
        /// Bytes; a longer file is cut, a shorter one filled with zeros
        #[arg(value_name = "N")]
        size: u64,
    },
    /// Reserves room for a file, so that it stays in one piece
    ///
    /// Nothing happens in an append-only filesys. Exit code 1 when there is no such file.
    ///
    /// Example:
    ///   trawl seqdb fs reserve base/docs log.txt 1000000
    #[command(verbatim_doc_comment)]
    Reserve {
        #[command(flatten)]
        target: FileTarget,
        /// Bytes
        #[arg(value_name = "N")]
        size: u64,
    },
    /// Copies a directory tree into a filesys
    ///
    /// Names are paths inside the directory. Files keep their times, except in an append-only filesys, which uses the
    /// time of the import. Files that exist already, links and devices are left alone and counted; the exit code is
    /// then 1.
    ///
    /// Example:
    ///   trawl seqdb fs import base/docs ./html
    #[command(verbatim_doc_comment)]
    Import {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// The directory
        dir: PathBuf,
    },
    /// Copies the files of a filesys into a directory
    ///
    /// Creates directories for names with slashes. Refuses and counts a file whose name leads out of the directory, is
    /// not a valid file name, or leads through a link, and a file that exists already or cannot be read; the exit code
    /// is then 1.
    ///
    /// Example:
    ///   trawl seqdb fs export base/docs ./html
    #[command(verbatim_doc_comment)]
    Export {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// The directory, which is created
        dir: PathBuf,
    },
    /// Checks a filesys: every file, pointer and counter; and repairs it
    ///
    /// Exit code 1 when there are faults left.
    ///
    /// Examples:
    ///   trawl seqdb fs check base/docs
    ///   trawl seqdb fs check base/docs --repair
    #[command(verbatim_doc_comment)]
    Check {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// Repair faults by going back to the last sync
        #[arg(long)]
        repair: bool,
        /// Repair, and keep every complete entry
        #[arg(long)]
        salvage: bool,
    },
    /// Copies a filesys without its deleted files
    ///
    /// The complete copy replaces the old files; afterwards each stored file is in one piece.
    ///
    /// Example:
    ///   trawl seqdb fs compact base/docs
    #[command(verbatim_doc_comment)]
    Compact {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        /// Cells of the new index
        #[arg(long, value_name = "N")]
        htsize: Option<u64>,
    },
    /// Rebuilds the index of a filesys from its data file
    ///
    /// If deletions are recorded only in the index (--dups), deleted files come back.
    ///
    /// Example:
    ///   trawl seqdb fs rebuild-index base/docs --htsize 1000003
    #[command(verbatim_doc_comment)]
    RebuildIndex {
        /// The filesys, as BASE/NAME
        fs: PathBuf,
        #[command(flatten)]
        table: Table,
    },
}

impl Verb {
    /// Runs the command.
    pub fn run(self, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
        match self {
            Verb::Create { fs, isz, htsize, plain, dups, ao } => {
                let cellsz = if plain { 1 } else { 2 };
                let new = CreateFilesys::new(fsgen()?);
                let create = CreateFilesys { isz, htsize, cellsz, have_dups: dups, append_only: ao, ..new };
                create_filesys(&fs, &create, settings, out)
            }
            Verb::Names { base } => names(&base, settings, out),
            Verb::Ls { fs, index_order, since } => ls(&fs, index_order, since, settings, out),
            Verb::Stat { fs, file: Some(file) } => stat(&fs, file.as_bytes(), settings, out),
            Verb::Stat { fs, file: None } | Verb::Stats { fs } => stats(&fs, settings, out),
            Verb::Cat(args) => fs_edit::cat(args, settings, out),
            Verb::Put(args) => fs_edit::put(args, settings, out),
            Verb::Append(target) => fs_edit::append(&target, settings, out),
            Verb::Rm { fs, files, index_only } => fs_edit::rm(&fs, &files, index_only, settings, out),
            Verb::Mv { fs, old, new } => fs_edit::mv(&fs, &old, &new, settings, out),
            Verb::Truncate { target, size } => {
                fs_edit::edit(&target, settings, out, |fs, file| fs.truncate(file, size))
            }
            Verb::Reserve { target, size } => fs_edit::reserve(&target, size, settings, out),
            Verb::Import { fs, dir } => fs_copy::import(&fs, &dir, settings, out),
            Verb::Export { fs, dir } => fs_copy::export(&fs, &dir, settings, out),
            Verb::Check { fs, repair, salvage } => {
                let data = FsPaths::of(&fs)?.data();
                check::check(check::CheckArgs::of(data, repair, salvage), settings, out)
            }
            Verb::Compact { fs, htsize } => compact(&fs, htsize, settings, out),
            Verb::RebuildIndex { fs, table } => rebuild_index(&fs, &table, settings, out),
        }
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
    closing(done, fs.close())
}

/// A file that is not there is a finding, not a failure.
pub fn missing_is_a_finding(error: Error, out: &Output) -> anyhow::Result<Status> {
    match error {
        Error::FileNotFound { .. } => missing(out, &error.to_string()),
        other => Err(other.into()),
    }
}

fn create_filesys(fs: &Path, create: &CreateFilesys, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let paths = FsPaths::of(fs)?;
    create.create(&paths, settings)?.close()?;
    let name = paths.data().display().to_string();
    told(out, &json!({"type": "created", "file": name, "format": "filesys"}), &format!("{name}: filesys"))
}

fn names(base: &Path, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    for name in Base::open(base, settings)?.names()? {
        told(out, &json!({ "name": name }), &name)?;
    }
    Ok(Status::Done)
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
    out.row(&["name", "type", "bytes", "mtime"], &row, |w| {
        let time = UnixMillis(row.mtime.saturating_mul(1000)).rfc3339_seconds();
        writeln!(w, "{} {:>12} {time} {}", row.kind, row.bytes, row.name)
    })
}

fn ls(
    fs: &Path,
    index_order: bool,
    since: Option<i64>,
    settings: &Settings,
    out: &mut Output,
) -> anyhow::Result<Status> {
    let Open { fs, .. } = &open(fs, Access::Read, settings)?;
    if index_order {
        fs.for_each_indexed(&mut |info| printed(show(&info, out)))?;
        return Ok(Status::Done);
    }
    let mut files = match since {
        Some(time) => fs.files_since(time)?,
        None => fs.files(),
    };
    while let Some(info) = files.next_file()? {
        show(&info, out)?;
    }
    Ok(Status::Done)
}

fn stat(fs: &Path, file: &[u8], settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = &open(fs, Access::Read, settings)?;
    match fs.stat(file) {
        Ok(info) => show(&info, out)?,
        Err(error) => return missing_is_a_finding(error, out),
    }
    Ok(Status::Done)
}

fn stats(fs: &Path, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = &open(fs, Access::Read, settings)?;
    let s = fs.stats();
    let json = json!({
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

fn compact(fs: &Path, htsize: Option<u64>, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let bar = reporter("compact", out);
    let done = filesys::compact(&FsPaths::of(fs)?, settings, htsize, fsgen()?, &bar)?;
    drop(bar);
    let (files, old, new) = (done.files, done.old_bytes, done.new_bytes);
    let json = json!({"type": "compacted", "files": files, "old_bytes": old, "new_bytes": new});
    told(out, &json, &format!("{files} files, {} -> {}", show_bytes(old), show_bytes(new)))
}

fn rebuild_index(fs: &Path, table: &Table, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let bar = reporter("rebuild-index", out);
    let done = filesys::rebuild_index(&FsPaths::of(fs)?, settings, table.htsize, table.cellsz, &bar)?;
    drop(bar);
    let json = json!({"type": "rebuilt", "files": done.files, "resurrected": done.resurrected});
    told(out, &json, &format!("{} files", done.files))?;
    if done.resurrected {
        out.remark("deletions were recorded in the old index only: deleted files are back");
    }
    Ok(Status::Done)
}
