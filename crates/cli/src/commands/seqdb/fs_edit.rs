//! `trawl seqdb fs`: single files.

use crate::exit::Status;
use crate::output::Output;
use anyhow::Context;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use trawl_seqdb::{Access, Error, FileHandle, Filesys, FsPaths, Settings, WriteFlags};

/// Bytes moved at once.
const CHUNK: usize = 1 << 20;

#[derive(Debug, clap::Args)]
struct Target {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// The file
    #[arg(value_name = "FILE")]
    file: OsString,
}

impl Target {
    fn open(&self, access: Access, settings: &Settings) -> anyhow::Result<Filesys> {
        Ok(Filesys::open(&FsPaths::of(&self.fs)?, access, settings)?)
    }

    fn name(&self) -> &[u8] {
        self.file.as_bytes()
    }
}

/// A file that is not there is a finding, not a failure.
pub fn missing_is_a_finding(error: Error) -> anyhow::Result<Status> {
    match error {
        Error::FileNotFound { .. } => Ok(Status::Findings),
        other => Err(other.into()),
    }
}

/// Prints a file, or a part of it
///
/// Exit code 1 when there is no such file.
///
/// Example:
///   trawl seqdb fs cat base/docs a.txt --range 100 50
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CatArgs {
    #[command(flatten)]
    target: Target,
    /// Only LEN bytes from OFFSET on
    #[arg(long, num_args = 2, value_names = ["OFFSET", "LEN"])]
    range: Vec<u64>,
}

/// Prints a file.
pub fn cat(args: CatArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let fs = args.target.open(Access::Read, settings)?;
    let file = match fs.open_file(args.target.name(), "") {
        Ok(file) => file,
        Err(error) => return missing_is_a_finding(error),
    };
    let (mut at, mut left) = match args.range[..] {
        [offset, len] => (offset, len),
        _ => (0, u64::MAX),
    };
    let mut buf = vec![0; CHUNK];
    while left > 0 {
        let n = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let n = fs.read_file(&file, at, &mut buf[..n])?;
        if n == 0 {
            break;
        }
        out.write_all(&buf[..n])?;
        at += n as u64;
        left -= n as u64;
    }
    Ok(Status::Done)
}

/// Stores stdin as a file
///
/// A file that is there is replaced from its start and cut, except in an append-only filesys, where it must be new.
///
/// Examples:
///   trawl seqdb fs put base/docs a.txt < a.txt
///   trawl seqdb fs put base/docs page.gz --gzip --excl < page.gz
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PutArgs {
    #[command(flatten)]
    target: Target,
    /// Type of the file: one character (f plain, c gzip, a archive, x unknown)
    #[arg(long = "type", default_value_t = 'f', value_name = "C", conflicts_with = "gzip")]
    kind: char,
    /// What comes is gzip: type c
    #[arg(long)]
    gzip: bool,
    /// Fail if there is such a file
    #[arg(long)]
    excl: bool,
    /// Time of the file: seconds since 1970
    #[arg(long, value_name = "TIME")]
    mtime: Option<i64>,
}

/// Stores a file.
pub fn put(args: PutArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut fs = args.target.open(Access::Write, settings)?;
    let kind = if args.gzip { 'c' } else { args.kind };
    let flags = WriteFlags { excl: args.excl, mtime: args.mtime };
    let mut file = fs.open_file_wr(args.target.name(), kind, flags)?;
    let written = copy_in(&mut fs, &mut file, 0)?;
    if file.size() > written {
        fs.truncate(&mut file, written)?;
    }
    finish(fs, file, out)
}

/// Appends stdin to a file, which is created if it is not there
#[derive(Debug, clap::Args)]
pub struct AppendArgs {
    #[command(flatten)]
    target: Target,
}

/// Appends to a file.
pub fn append(args: AppendArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut fs = args.target.open(Access::Write, settings)?;
    let kind = match fs.stat(args.target.name()) {
        Ok(info) => info.kind,
        Err(Error::FileNotFound { .. }) => 'f',
        Err(other) => return Err(other.into()),
    };
    let mut file = fs.open_file_wr(args.target.name(), kind, WriteFlags::default())?;
    let at = file.size();
    copy_in(&mut fs, &mut file, at)?;
    finish(fs, file, out)
}

/// Copies stdin into a file from `at` on; returns where it ended.
fn copy_in(fs: &mut Filesys, file: &mut FileHandle, mut at: u64) -> anyhow::Result<u64> {
    let mut buf = vec![0; CHUNK];
    let mut stdin = io::stdin().lock();
    loop {
        let n = stdin.read(&mut buf).context("cannot read stdin")?;
        if n == 0 {
            return Ok(at);
        }
        fs.write_file(file, at, &buf[..n])?;
        at += n as u64;
    }
}

fn finish(fs: Filesys, file: FileHandle, out: &mut Output) -> anyhow::Result<Status> {
    let size = file.size();
    drop(file);
    fs.close()?;
    out.fact(&serde_json::json!({"type": "stored", "bytes": size}), |w| writeln!(w, "{size} bytes"))?;
    Ok(Status::Done)
}

/// Deletes files
///
/// Exit code 1 when one is not there.
#[derive(Debug, clap::Args)]
pub struct RmArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<OsString>,
    /// Take only the names away; a rebuild of the index brings the files back
    #[arg(long)]
    index_only: bool,
}

/// Deletes files.
pub fn rm(args: RmArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut fs = Filesys::open(&FsPaths::of(&args.fs)?, Access::Write, settings)?;
    let (mut deleted, mut missing) = (0u64, 0u64);
    for file in &args.files {
        let done = match args.index_only {
            true => fs.delete_name_from_index(file.as_bytes()),
            false => fs.delete_file(file.as_bytes()),
        };
        match done {
            Ok(()) => deleted += 1,
            Err(Error::FileNotFound { .. }) => missing += 1,
            Err(other) => return Err(other.into()),
        }
    }
    fs.close()?;
    let json = serde_json::json!({"type": "deleted", "files": deleted, "missing": missing});
    out.fact(&json, |w| writeln!(w, "{deleted} deleted, {missing} not found"))?;
    Ok(Status::from_findings(missing > 0))
}

/// Gives a file another name
#[derive(Debug, clap::Args)]
pub struct MvArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// Its name
    #[arg(value_name = "OLD")]
    old: OsString,
    /// The name it gets, which must be free
    #[arg(value_name = "NEW")]
    new: OsString,
}

/// Renames a file.
pub fn mv(args: MvArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut fs = Filesys::open(&FsPaths::of(&args.fs)?, Access::Write, settings)?;
    if let Err(error) = fs.rename_file(args.old.as_bytes(), args.new.as_bytes()) {
        return missing_is_a_finding(error);
    }
    fs.close()?;
    out.fact(&serde_json::json!({"type": "renamed"}), |w| writeln!(w, "renamed"))?;
    Ok(Status::Done)
}

/// Makes a file a given number of bytes long
#[derive(Debug, clap::Args)]
pub struct TruncateArgs {
    #[command(flatten)]
    target: Target,
    /// Bytes; a longer file is cut, a shorter one filled with zeros
    #[arg(value_name = "N")]
    size: u64,
}

/// Changes the size of a file.
pub fn truncate(args: TruncateArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    change(&args.target, settings, out, |fs, file| fs.truncate(file, args.size))
}

/// Reserves room for a file, so that it stays in one piece
#[derive(Debug, clap::Args)]
pub struct ReserveArgs {
    #[command(flatten)]
    target: Target,
    /// Bytes
    #[arg(value_name = "N")]
    size: u64,
}

/// Reserves room.
pub fn reserve(args: ReserveArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    change(&args.target, settings, out, |fs, file| fs.reserve(file, args.size))
}

/// Changes a file that is there, keeping its time.
fn change(
    target: &Target,
    settings: &Settings,
    out: &mut Output,
    act: impl FnOnce(&mut Filesys, &mut FileHandle) -> trawl_seqdb::Result<()>,
) -> anyhow::Result<Status> {
    let mut fs = target.open(Access::Write, settings)?;
    let kind = match fs.stat(target.name()) {
        Ok(info) => info.kind,
        Err(error) => return missing_is_a_finding(error),
    };
    let mut file = fs.open_file_wr(target.name(), kind, WriteFlags::default())?;
    act(&mut fs, &mut file)?;
    finish(fs, file, out)
}
