//! The index of archives, made anew from them.

use crate::error::Result;
use crate::registry::Found;
use crate::urls::others;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_captures::{CapturesWriter, Covered, RebuildReport, rebuild};
use trawl_io::format::Format;
use trawl_io::read_at::FileReader;
use trawl_io::{Fs, ReadAt};
use trawl_model::{DoorError, Pick};
use trawl_warc::WaczFormat;
use trawl_warc::wacz::{Wacz, ZipEntry};

/// Bytes that are compared at a time.
const COMPARED: usize = 256 << 10;

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

/// What lies beside a package under the name of an archive in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beside {
    /// Nothing that is read.
    Nothing,
    /// The archive.
    Same(PathBuf),
    /// One that begins with all its bytes: it has grown since it was packed, and has all its captures.
    Grown(PathBuf),
    /// Another one, or what has become of it: some captures may be in both.
    Other(PathBuf),
}

impl Beside {
    /// Whether what lies there has all captures of the archive.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Same(_) | Self::Grown(_))
    }
}

/// The archives in a package, and what of them lies beside it, or in a directory beside it that is called as inside it: crawlers pack
/// their `archive/` and leave it there. If all of them are whole there, the package is a copy. `is_read` says whether a file of that path
/// is read by itself. None if it is not a package.
pub fn packed(fs: &Arc<dyn Fs>, found: &Found, is_read: &dyn Fn(&Path) -> bool) -> Vec<Beside> {
    if found.format.name() != WaczFormat.name() {
        return Vec::new();
    }
    let wacz = FileReader::open_in(&**fs, &found.path).map_err(DoorError::from);
    // One that cannot be opened is reported when it is read.
    let Ok(wacz) = wacz.and_then(|file| Ok(Wacz::open(Arc::new(file))?)) else { return Vec::new() };
    let beside = wacz.warc_entries().map(|entry| {
        let name = entry.name.rsplit('/').next().unwrap_or_default();
        let mut best = Beside::Nothing;
        for path in [name, &entry.name].map(|name| found.path.with_file_name(name)) {
            let len = fs.metadata(&path).ok().filter(|seen| seen.is_file && is_read(&path)).map(|seen| seen.len);
            match len {
                Some(len) if len == entry.size => return Beside::Same(path),
                Some(len) if len > entry.size && has_grown(fs, &path, &wacz, entry) => best = Beside::Grown(path),
                Some(_) if best == Beside::Nothing => best = Beside::Other(path),
                _ => {}
            }
        }
        best
    });
    beside.collect()
}

/// Whether a file begins with all bytes of an archive that is in a package. What cannot be read is reported when it is read.
fn has_grown(fs: &Arc<dyn Fs>, path: &Path, wacz: &Wacz, entry: &ZipEntry) -> bool {
    let (Ok(file), Ok(packed)) = (FileReader::open_in(&**fs, path), wacz.archive(entry)) else { return false };
    let (mut at, mut one, mut other) = (0, vec![0; COMPARED], vec![0; COMPARED]);
    while at < packed.len() {
        let room = usize::try_from(packed.len() - at).unwrap_or(COMPARED).min(COMPARED);
        let (Some(one), Some(other)) = (one.get_mut(..room), other.get_mut(..room)) else { return false };
        if file.read_at(at, one).is_err() || packed.read_at(at, other).is_err() || one != other {
            return false;
        }
        at += room as u64;
    }
    true
}
