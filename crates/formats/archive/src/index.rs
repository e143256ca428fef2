//! The index of archives, made anew from them.

use crate::error::Result;
use crate::registry::Found;
use crate::urls::others;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_captures::{CapturesWriter, Covered, RebuildReport, rebuild};
use trawl_io::Fs;
use trawl_io::format::Format;
use trawl_io::read_at::FileReader;
use trawl_model::{DoorError, Pick};
use trawl_warc::WaczFormat;
use trawl_warc::wacz::Wacz;

/// Adds a row to `writer` for every capture of the archives, and for everything else in them that an ingest makes a row of: what a
/// lake takes of an archive, it takes of the archive's index as well. Indexes, and what is a copy of others, are left out.
pub fn rebuild_index(
    fs: &Arc<dyn Fs>,
    archives: &[Found],
    writer: &mut CapturesWriter,
    on_skip: &mut dyn FnMut(DoorError),
    progress: &mut dyn FnMut(u64),
) -> Result<RebuildReport> {
    let mut all = RebuildReport::default();
    for found in archives.iter().filter(|found| !found.is_index()) {
        let before = all.rows;
        let archive = found.open(fs)?;
        let Some(mut source) = archive.captures(Pick::All)? else { continue };
        let mut tell = |rows| progress(before + rows);
        all.add(rebuild(&mut *source, writer, &mut others::row, on_skip, &mut tell)?);
        writer.covers(covered(fs, &found.path)?);
    }
    Ok(all)
}

/// An archive as the index beside it lists it.
fn covered(fs: &Arc<dyn Fs>, path: &Path) -> Result<Covered> {
    let metadata = fs.metadata(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Covered { name, bytes: (!metadata.is_dir).then_some(metadata.len) })
}

/// Whether an archive is a package of archives that lie beside it, or in a directory beside it that is called as inside it: crawlers
/// pack their `archive/` and leave it there. Then its captures are theirs. `is_there` says whether there is a file of that path and
/// length.
pub fn is_copy(fs: &Arc<dyn Fs>, found: &Found, is_there: &dyn Fn(&Path, u64) -> bool) -> bool {
    let packed = packed(fs, found, is_there);
    !packed.is_empty() && packed.iter().all(Option::is_some)
}

/// The archives in a package, and where each lies beside it, as [`is_copy`] looks for them. None if it is not a package.
pub fn packed(fs: &Arc<dyn Fs>, found: &Found, is_there: &dyn Fn(&Path, u64) -> bool) -> Vec<Option<PathBuf>> {
    if found.format.name() != WaczFormat.name() {
        return Vec::new();
    }
    let wacz = FileReader::open_in(&**fs, &found.path).map_err(DoorError::from);
    // One that cannot be opened is reported when it is read.
    let Ok(wacz) = wacz.and_then(|file| Ok(Wacz::open(Arc::new(file))?)) else { return Vec::new() };
    let places = wacz.warc_entries().map(|entry| {
        let name = entry.name.rsplit('/').next().unwrap_or_default();
        let places = [name, &entry.name].map(|name| found.path.with_file_name(name));
        places.into_iter().find(|path| is_there(path, entry.size))
    });
    places.collect()
}
