//! `trawl seqdb fs`: single files.

use super::fs::{FileTarget, Open, change, missing_is_a_finding, open};
use super::told;
use crate::exit::Status;
use crate::output::Output;
use anyhow::{Context, bail};
use flate2::read::{GzEncoder, MultiGzDecoder};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use trawl_model::Wanted;
use trawl_seqdb::{Access, Error, FileHandle, Filesys, Settings, WriteFlags, design};

/// Bytes moved at once.
const CHUNK: usize = 1 << 20;

/// Prints a file, or a part of it
///
/// Prints it as it is stored; --json also has name, type and time. Exit code 1 when there is no such file.
///
/// Examples:
///   trawl seqdb fs cat base/docs a.txt --range 100 50
///   trawl seqdb fs cat base/docs page.html --gunzip > page.html
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CatArgs {
    #[command(flatten)]
    target: FileTarget,
    /// Print only LEN bytes from OFFSET on
    #[arg(long, num_args = 2, value_names = ["OFFSET", "LEN"])]
    range: Vec<u64>,
    /// Decompress a file of type c (gzip)
    #[arg(long, conflicts_with = "range")]
    gunzip: bool,
}

/// Prints a file.
pub fn cat(args: CatArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = &open(&args.target.fs, Access::Read, settings)?;
    let info = match fs.stat(args.target.name()) {
        Ok(info) => info,
        Err(error) => return missing_is_a_finding(error, out),
    };
    if out.json() {
        if args.gunzip || !args.range.is_empty() {
            bail!("--json has whole files, as they are stored");
        }
        trawl_archive::seqdb::cat_file(fs, &info, &Wanted { json: true, ..Wanted::default() }, out)?;
        return Ok(Status::Done);
    }
    let contents = fs.reader(fs.open_listed(&info)?);
    let contents = match args.range[..] {
        [offset, len] => contents.range(offset, len),
        _ => contents,
    };
    // Not as little at a time as `io::copy` would.
    let mut contents = BufReader::with_capacity(CHUNK, contents);
    if !args.gunzip {
        io::copy(&mut contents, out.contents()?)?;
    } else if info.kind == design::TYPE_GZIP {
        io::copy(&mut MultiGzDecoder::new(contents), out.contents()?)?;
    } else {
        bail!("the file is of type {:?}, not {:?}: it is not packed", info.kind, design::TYPE_GZIP);
    }
    Ok(Status::Done)
}

/// Stores stdin as a file
///
/// Overwrites an existing file from its start and cuts off the rest; in an append-only filesys the file must be new. A new file
/// is stored in one step: other processes see all of it or nothing.
///
/// Examples:
///   trawl seqdb fs put base/docs a.txt < a.txt
///   trawl seqdb fs put base/docs page.html --gzip --excl < page.html
///   trawl seqdb fs put base/docs packed --type c < packed.gz
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PutArgs {
    #[command(flatten)]
    target: FileTarget,
    /// Type of the file: one character (f plain, c gzip, a archive, x unknown)
    #[arg(long = "type", default_value_t = design::TYPE_PLAIN, value_name = "C", conflicts_with = "gzip")]
    kind: char,
    /// Compress the file with gzip (type c)
    #[arg(long)]
    gzip: bool,
    /// Fail if a file of this name exists
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
    stored(size, out)
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

/// Appends to a file.
pub fn append(target: &FileTarget, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let size = change(&target.fs, settings, |fs| {
        let name = target.name();
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
    stored(size, out)
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

fn stored(size: u64, out: &mut Output) -> anyhow::Result<Status> {
    told(out, &json!({"type": "stored", "bytes": size}), &format!("{size} bytes"))
}

/// Deletes files.
pub fn rm(
    fs: &Path,
    files: &[OsString],
    index_only: bool,
    settings: &Settings,
    out: &mut Output,
) -> anyhow::Result<Status> {
    let (mut deleted, mut missing) = (0u64, 0u64);
    change(fs, settings, |fs| {
        for file in files {
            let done = match index_only {
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
    let json = json!({"type": "deleted", "files": deleted, "missing": missing});
    told(out, &json, &format!("{deleted} deleted, {missing} not found"))?;
    Ok(Status::from_findings(missing > 0))
}

/// Renames a file.
pub fn mv(fs: &Path, old: &OsStr, new: &OsStr, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    match change(fs, settings, |fs| Ok(fs.rename_file(old.as_bytes(), new.as_bytes())))? {
        Ok(()) => told(out, &json!({"type": "renamed"}), "renamed"),
        Err(error) => missing_is_a_finding(error, out),
    }
}

/// Reserves room.
pub fn reserve(target: &FileTarget, size: u64, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let Open { fs, .. } = open(&target.fs, Access::Read, settings)?;
    if fs.is_append_only() {
        // It cannot be opened for writing, and there would be nothing to do.
        return match fs.stat(target.name()) {
            Ok(info) => stored(info.size, out),
            Err(error) => missing_is_a_finding(error, out),
        };
    }
    drop(fs);
    edit(target, settings, out, |fs, file| fs.reserve(file, size))
}

/// Changes a file that is there.
pub fn edit(
    target: &FileTarget,
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
        Ok(size) => stored(size, out),
        Err(error) => missing_is_a_finding(error, out),
    }
}
