//! `trawl seqdb fs`: checks and copies of a whole filesys; and `trawl seqdb page`.

use super::{check as files, fsgen, reporter};
use crate::exit::Status;
use crate::output::Output;
use crate::units::show_bytes;
use std::path::PathBuf;
use trawl_model::UnixMillis;
use trawl_seqdb::{Access, FsPaths, Pages, Settings, Whole, filesys, pages};

/// Checks a filesys: every file, pointer and counter; and repairs it
///
/// Exit code 1 when there are faults left.
///
/// Examples:
///   trawl seqdb fs check base/docs
///   trawl seqdb fs check base/docs --repair
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
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
///
/// The copy takes the place of the old files when it is complete; each stored file is one piece afterwards.
///
/// Example:
///   trawl seqdb fs compact base/docs
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
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
    let done = match Whole::filesys(paths.clone(), settings)? {
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
///
/// Where deletions are recorded in the index only (--dups), deleted files come back.
///
/// Example:
///   trawl seqdb fs rebuild-index base/docs --htsize 1000003
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
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
    let Some(page) = page else {
        out.remark("no such capture");
        return Ok(Status::Findings);
    };
    let json = serde_json::json!({
        "url": args.url, "time": page.time.to_string(), "type": page.form.to_type(), "bytes": page.event.len(),
        "file": page.place.file.as_ref(), "offset": page.place.offset,
    });
    out.fact(&json, |w| w.write_all(&page.event))?;
    Ok(Status::Done)
}
