//! `trawl seqdb fs`: whole file systems; and `trawl seqdb page`.

use super::{check as files, fsgen, reporter};
use crate::exit::Status;
use crate::output::Output;
use crate::units::show_bytes;
use anyhow::Context;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use trawl_model::UnixMillis;
use trawl_seqdb::{Access, Filesys, FsPaths, Pages, Settings, Whole, WriteFlags, filesys, pages};

/// Bytes moved at once.
const CHUNK: usize = 1 << 20;

/// Copies the files of a directory, and of those in it, into a filesys
///
/// Names are paths inside the directory. A file that is there already is left alone and counted; exit code 1 then.
///
/// Example:
///   trawl seqdb fs import base/docs ./html
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ImportArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// The directory
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Imports a directory.
pub fn import(args: ImportArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let mut target = Filesys::open(&FsPaths::of(&args.fs)?, Access::Write, settings)?;
    let (mut stored, mut bytes, mut present) = (0u64, 0u64, 0u64);
    let mut todo = vec![args.dir.clone()];
    while let Some(dir) = todo.pop() {
        let entries = fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
        let mut paths = entries.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            let name = path.strip_prefix(&args.dir).unwrap_or(&path).as_os_str().as_bytes();
            if target.contains(name)? {
                present += 1;
                continue;
            }
            bytes += import_file(&mut target, name, &path)?;
            stored += 1;
        }
    }
    target.close()?;
    let json = serde_json::json!({"type": "imported", "files": stored, "bytes": bytes, "present": present});
    out.fact(&json, |w| writeln!(w, "{stored} files, {}; {present} were there already", show_bytes(bytes)))?;
    Ok(Status::from_findings(present > 0))
}

fn import_file(target: &mut Filesys, name: &[u8], path: &Path) -> anyhow::Result<u64> {
    let open = || fs::File::open(path).with_context(|| format!("cannot open {}", path.display()));
    let mut source = open()?;
    let mut first = Vec::new();
    (&mut source).take(CHUNK as u64).read_to_end(&mut first)?;
    if first.len() < CHUNK {
        target.put_file(name, 'f', None, &first)?;
        return Ok(first.len() as u64);
    }
    let mut file = target.open_file_wr(name, 'f', WriteFlags { excl: true, mtime: None })?;
    let mut buf = first;
    loop {
        target.append_file(&mut file, &buf)?;
        buf.clear();
        if (&mut source).take(CHUNK as u64).read_to_end(&mut buf)? == 0 {
            return Ok(file.size());
        }
    }
}

/// Copies the files of a filesys into a directory
///
/// A name with slashes makes directories; one that would leave the directory is refused and counted, with exit code 1.
///
/// Example:
///   trawl seqdb fs export base/docs ./html
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct ExportArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// The directory, which is created
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Exports to a directory.
pub fn export(args: ExportArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let source = Filesys::open(&FsPaths::of(&args.fs)?, Access::Read, settings)?;
    fs::create_dir_all(&args.dir).with_context(|| format!("cannot create {}", args.dir.display()))?;
    let (mut stored, mut bytes, mut refused) = (0u64, 0u64, 0u64);
    let mut files = source.files();
    let mut buf = vec![0; CHUNK];
    while let Some(info) = files.next_file()? {
        let relative = PathBuf::from(std::ffi::OsString::from_vec(info.name.clone()));
        let plain = relative.components().all(|c| matches!(c, std::path::Component::Normal(_)));
        if !plain || info.name.contains(&0) || info.name.split(|b| *b == b'/').any(|part| part.len() > 255) {
            refused += 1;
            out.remark(&format!("refused: {}", super::text::Text(&info.name)));
            continue;
        }
        let path = args.dir.join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        let mut file = fs::File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let handle = source.open_file(&info.name, "")?;
        let mut at = 0;
        loop {
            let n = source.read_file(&handle, at, &mut buf)?;
            if n == 0 {
                break;
            }
            file.write_all(&buf[..n]).with_context(|| format!("cannot write {}", path.display()))?;
            at += n as u64;
        }
        stored += 1;
        bytes += at;
    }
    let json = serde_json::json!({"type": "exported", "files": stored, "bytes": bytes, "refused": refused});
    out.fact(&json, |w| writeln!(w, "{stored} files, {}; {refused} refused", show_bytes(bytes)))?;
    Ok(Status::from_findings(refused > 0))
}

/// Checks a filesys: every file, pointer and counter; and repairs it
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// Repair what has faults: back to the last sync
    #[arg(long)]
    repair: bool,
    /// Repair, keeping entries as far as they are whole
    #[arg(long)]
    salvage: bool,
}

/// Checks a filesys.
pub fn check(args: CheckArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let data = FsPaths::of(&args.fs)?.data();
    files::check(files::CheckArgs::of(data, args.repair, args.salvage), settings, out)
}

/// Copies a filesys without what is deleted
#[derive(Debug, clap::Args)]
pub struct CompactArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// Cells of the new index
    #[arg(long, value_name = "N")]
    htsize: Option<u64>,
}

/// Compacts a filesys.
pub fn compact(args: CompactArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let paths = FsPaths::of(&args.fs)?;
    let bar = reporter("compact", out);
    let done = match Whole::of(&paths.data(), settings)? {
        Whole::Pages(paths) => pages::compact(&paths, settings, fsgen()?, &bar)?,
        _ => filesys::compact(&paths, settings, args.htsize, fsgen()?, &bar)?,
    };
    drop(bar);
    let json = serde_json::json!({
        "type": "compacted", "files": done.files, "old_bytes": done.old_bytes, "new_bytes": done.new_bytes,
    });
    let [old, new] = [done.old_bytes, done.new_bytes].map(show_bytes);
    out.fact(&json, |w| writeln!(w, "{} files, {old} -> {new}", done.files))?;
    Ok(Status::Done)
}

/// Rebuilds the index of a filesys from its data file
#[derive(Debug, clap::Args)]
pub struct RebuildArgs {
    /// The filesys, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// Cells
    #[arg(long, value_name = "N")]
    htsize: Option<u64>,
    /// Words of a cell: 1, or 2 with stored hashes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2))]
    cellsz: Option<u64>,
}

/// Rebuilds an index.
pub fn rebuild_index(args: RebuildArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let bar = reporter("rebuild-index", out);
    let done = filesys::rebuild_index(&FsPaths::of(&args.fs)?, settings, args.htsize, args.cellsz, &bar)?;
    drop(bar);
    let json = serde_json::json!({"type": "rebuilt", "files": done.files, "resurrected": done.resurrected});
    out.fact(&json, |w| writeln!(w, "{} files", done.files))?;
    if done.resurrected {
        out.remark("deletions were recorded in the old index only: deleted files are back");
    }
    Ok(Status::Done)
}

/// Prints the event of a capture: its WARC records as they are stored
///
/// The newest capture of the URL, or the one of the time given. Exit code 1 when there is none.
///
/// Examples:
///   trawl seqdb page crawl/pages https://example.com/ > event.warc.gz
///   trawl seqdb page crawl/pages https://example.com/ --time 20260624010203456
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct PageArgs {
    /// The container of captures, as BASE/NAME
    #[arg(value_name = "FS")]
    fs: PathBuf,
    /// The URL, as it was stored
    #[arg(value_name = "URL")]
    url: String,
    /// Its time: 17 digits, or RFC 3339
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
}

/// Prints a capture.
pub fn page(args: PageArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let pages = Pages::open(&FsPaths::of(&args.fs)?, Access::Read, settings)?;
    let page = match &args.time {
        Some(time) => pages.get(args.url.as_bytes(), UnixMillis::parse(time)?)?,
        None => pages.newest(args.url.as_bytes())?,
    };
    let Some(page) = page else { return Ok(Status::Findings) };
    let json = serde_json::json!({
        "url": args.url, "time": page.time.to_string(), "type": page.form.to_type(), "bytes": page.event.len(),
        "file": page.place.file.as_ref(), "offset": page.place.offset,
    });
    out.fact(&json, |w| w.write_all(&page.event))?;
    Ok(Status::Done)
}
