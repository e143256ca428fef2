//! `trawl seqdb fs`: single files.

use super::fs::{Open, change, look_up, missing_is_a_finding, open};
use crate::containers;
use crate::exit::Status;
use crate::output::Output;
use anyhow::{Context, bail};
use flate2::read::{GzEncoder, MultiGzDecoder};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use trawl_seqdb::{Access, Error, FileHandle, Filesys, Settings, WriteFlags, design};

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
    fn name(&self) -> &[u8] {
        self.file.as_bytes()
    }
}

/// Prints a file, or a part of it
///
/// As it is stored; --json has name, type and time too. Exit code 1 when there is no such file.
///
/// Examples:
///   trawl seqdb fs cat base/docs a.txt --range 100 50
///   trawl seqdb fs cat base/docs page.html --gunzip > page.html
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CatArgs {
    #[command(flatten)]
    target: Target,
    /// Only LEN bytes from OFFSET on
    #[arg(long, num_args = 2, value_names = ["OFFSET", "LEN"])]
    range: Vec<u64>,
    /// Unpack a file of type c (gzip)
    #[arg(long, conflicts_with = "range")]
    gunzip: bool,
}

/// Prints a file.
pub fn cat(args: CatArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = &open(&args.target.fs, Access::Read, settings)?;
    let info = match look_up(fs, args.target.name()) {
        Ok(info) => info,
        Err(error) => return missing_is_a_finding(error, out),
    };
    if out.json() {
        if args.gunzip || !args.range.is_empty() {
            bail!("--json has whole files, as they are stored");
        }
        containers::cat_file(fs, &info, false, out)?;
        return Ok(Status::Done);
    }
    let file = fs.open_listed(&info)?;
    let (at, left) = match args.range[..] {
        [offset, len] => (offset, len),
        _ => (0, u64::MAX),
    };
    let mut contents = FileReader { fs, file: &file, at, left };
    if args.gunzip {
        if info.kind != design::TYPE_GZIP {
            bail!("the file is of type {:?}, not {:?}: it is not packed", info.kind, design::TYPE_GZIP);
        }
        io::copy(&mut MultiGzDecoder::new(io::BufReader::with_capacity(CHUNK, contents)), out)?;
    } else {
        let mut buf = vec![0; CHUNK];
        loop {
            let n = contents.read(&mut buf)?;
            if n == 0 {
                break;
            }
            out.write_all(&buf[..n])?;
        }
    }
    Ok(Status::Done)
}

/// Reads a stored file.
struct FileReader<'a> {
    fs: &'a Filesys,
    file: &'a FileHandle,
    at: u64,
    left: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = buf.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let n = self.fs.read_file(self.file, self.at, &mut buf[..n]).map_err(io::Error::other)?;
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

/// Stores stdin as a file
///
/// A file that is there is replaced from its start and cut, except in an append-only filesys, where it must be new. A new
/// file is stored in one step: readers beside see all of it or nothing.
///
/// Examples:
///   trawl seqdb fs put base/docs a.txt < a.txt
///   trawl seqdb fs put base/docs page.html --gzip --excl < page.html
///   trawl seqdb fs put base/docs packed --type c < packed.gz
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PutArgs {
    #[command(flatten)]
    target: Target,
    /// Type of the file: one character (f plain, c gzip, a archive, x unknown)
    #[arg(long = "type", default_value_t = design::TYPE_PLAIN, value_name = "C", conflicts_with = "gzip")]
    kind: char,
    /// Pack it with gzip: type c
    #[arg(long)]
    gzip: bool,
    /// Fail if there is such a file
    #[arg(long)]
    excl: bool,
    /// Time of the file: seconds since 1970
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    mtime: Option<i64>,
}

/// Stores a file.
pub fn put(args: PutArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut stdin = io::stdin().lock();
    let (kind, source): (char, Box<dyn Read + '_>) = match args.gzip {
        true => (design::TYPE_GZIP, Box::new(GzEncoder::new(stdin, flate2::Compression::default()))),
        false => (args.kind, Box::new(&mut stdin)),
    };
    let flags = WriteFlags { excl: args.excl, mtime: args.mtime };
    let size = change(&args.target.fs, settings, |fs| store(fs, args.target.name(), kind, flags, source))?;
    told(size, out)
}

/// Stores a file from a reader, and returns its size. Of a new one nothing stays if reading or writing fails.
pub fn store(
    fs: &mut Filesys,
    name: &[u8],
    kind: char,
    flags: WriteFlags,
    mut source: Box<dyn Read + '_>,
) -> anyhow::Result<u64> {
    if !fs.contains(name)? {
        return Ok(fs.put_file_from(name, kind, flags.mtime, &mut source)?);
    }
    let mut file = fs.open_file_wr(name, kind, flags)?;
    let end = copy_in(fs, &mut file, 0, &mut source)?;
    if file.size() > end {
        fs.truncate(&mut file, end)?;
    }
    Ok(file.size())
}

/// Appends stdin to a file, which is created if it is not there
///
/// Example:
///   date | trawl seqdb fs append base/docs log.txt
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct AppendArgs {
    #[command(flatten)]
    target: Target,
}

/// Appends to a file.
pub fn append(args: AppendArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let size = change(&args.target.fs, settings, |fs| {
        let name = args.target.name();
        let kind = match fs.stat(name) {
            Ok(info) => info.kind,
            Err(Error::FileNotFound { .. }) => {
                return Ok(fs.put_file_from(name, design::TYPE_PLAIN, None, &mut io::stdin().lock())?);
            }
            Err(other) => return Err(other.into()),
        };
        let mut file = fs.open_file_wr(name, kind, WriteFlags::default())?;
        let at = file.size();
        copy_in(fs, &mut file, at, &mut io::stdin().lock())?;
        Ok(file.size())
    })?;
    told(size, out)
}

/// Copies into a file from `at` on; returns where it ended.
fn copy_in(fs: &mut Filesys, file: &mut FileHandle, mut at: u64, source: &mut dyn Read) -> anyhow::Result<u64> {
    let mut part = Vec::with_capacity(CHUNK);
    loop {
        // A pipe gives little at a time: readers beside should not see each of it.
        part.clear();
        (&mut *source).take(CHUNK as u64).read_to_end(&mut part).context("cannot read the contents")?;
        if part.is_empty() {
            return Ok(at);
        }
        fs.write_file(file, at, &part)?;
        at += part.len() as u64;
    }
}

fn told(size: u64, out: &mut Output) -> anyhow::Result<Status> {
    out.fact(&serde_json::json!({"type": "stored", "bytes": size}), |w| writeln!(w, "{size} bytes"))?;
    Ok(Status::Done)
}

/// Deletes files
///
/// Exit code 1 when one is not there.
///
/// Example:
///   trawl seqdb fs rm base/docs a.txt b.txt
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
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
    let (mut deleted, mut missing) = (0u64, 0u64);
    change(&args.fs, settings, |fs| {
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
        Ok(())
    })?;
    let json = serde_json::json!({"type": "deleted", "files": deleted, "missing": missing});
    out.fact(&json, |w| writeln!(w, "{deleted} deleted, {missing} not found"))?;
    Ok(Status::from_findings(missing > 0))
}

/// Gives a file another name
///
/// Exit code 1 when there is no such file.
///
/// Example:
///   trawl seqdb fs mv base/docs a.txt b.txt
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
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
    let renamed = change(&args.fs, settings, |fs| Ok(fs.rename_file(args.old.as_bytes(), args.new.as_bytes())))?;
    if let Err(error) = renamed {
        return missing_is_a_finding(error, out);
    }
    out.fact(&serde_json::json!({"type": "renamed"}), |w| writeln!(w, "renamed"))?;
    Ok(Status::Done)
}

/// Makes a file a given number of bytes long
///
/// Exit code 1 when there is no such file.
///
/// Example:
///   trawl seqdb fs truncate base/docs a.txt 100
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct TruncateArgs {
    #[command(flatten)]
    target: Target,
    /// Bytes; a longer file is cut, a shorter one filled with zeros
    #[arg(value_name = "N")]
    size: u64,
}

/// Changes the size of a file.
pub fn truncate(args: TruncateArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    edit(&args.target, settings, out, |fs, file| fs.truncate(file, args.size))
}

/// Reserves room for a file, so that it stays in one piece
///
/// Nothing happens in an append-only filesys. Exit code 1 when there is no such file.
///
/// Example:
///   trawl seqdb fs reserve base/docs log.txt 1000000
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ReserveArgs {
    #[command(flatten)]
    target: Target,
    /// Bytes
    #[arg(value_name = "N")]
    size: u64,
}

/// Reserves room.
pub fn reserve(args: ReserveArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = open(&args.target.fs, Access::Read, settings)?;
    if fs.is_append_only() {
        // It cannot be opened for writing, and there would be nothing to do.
        return match fs.stat(args.target.name()) {
            Ok(info) => told(info.size, out),
            Err(error) => missing_is_a_finding(error, out),
        };
    }
    drop(fs);
    edit(&args.target, settings, out, |fs, file| fs.reserve(file, args.size))
}

/// Changes a file that is there.
fn edit(
    target: &Target,
    settings: &Settings,
    out: &mut Output,
    act: impl FnOnce(&mut Filesys, &mut FileHandle) -> trawl_seqdb::Result<()>,
) -> anyhow::Result<Status> {
    let size = change(&target.fs, settings, |fs| {
        let info = match fs.stat(target.name()) {
            Ok(info) => info,
            Err(error @ Error::FileNotFound { .. }) => return Ok(Err(error)),
            Err(other) => return Err(other.into()),
        };
        let mut file = fs.open_file_wr(target.name(), info.kind, WriteFlags::default())?;
        act(fs, &mut file)?;
        Ok(Ok(file.size()))
    })?;
    match size {
        Ok(size) => told(size, out),
        Err(error) => missing_is_a_finding(error, out),
    }
}
