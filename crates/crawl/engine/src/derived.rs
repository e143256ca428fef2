//! Files made at the end of a run: the capture index, the rejects, `run.json`.

use crate::error::Error;
use crate::hashed::HashedFs;
use crate::layout::Layout;
use crate::record::SpoolEnd;
use crate::report::{FileEntry, Report};
use crate::spool::read_all;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{CaptureRow, CapturesWriter, Covered, Format, Opening, Registry, Role, concat_captures};
use trawl_io::{AtomicFile, Fs, Hasher, Mode, publish};
use trawl_model::{Archive, Entry, Pick};

/// Writes the index of the rows of one spool.
pub(crate) fn write_captures(
    fs: &Arc<dyn Fs>,
    layout: &Layout,
    spool: &SpoolEnd,
    format: &dyn Format,
) -> Result<(), Error> {
    let path = layout.captures(Some(spool.number));
    let mut writer = CapturesWriter::create(fs, &path).map_err(captures)?;
    push_captures(fs, layout, spool, format, &mut writer)?;
    if let Some(archive) = covered(&**fs, layout, spool) {
        writer.covers(archive);
    }
    writer.finish().map_err(captures)?;
    Ok(())
}

/// The archive of a spool, to be listed in its index: who takes the index need not read it.
fn covered(fs: &dyn Fs, layout: &Layout, spool: &SpoolEnd) -> Option<Covered> {
    // Before an archive is complete it has another name.
    let metadata = fs.metadata(&layout.out.join(&spool.file)).ok().filter(|_| !spool.file.is_empty())?;
    Some(Covered { name: spool.file.clone(), bytes: (!metadata.is_dir).then_some(metadata.len) })
}

/// Adds the rows of a spool. Places that were not known when captures were made are looked up in the finished archive.
fn push_captures(
    fs: &Arc<dyn Fs>,
    layout: &Layout,
    spool: &SpoolEnd,
    format: &dyn Format,
    writer: &mut CapturesWriter,
) -> Result<(), Error> {
    let late = match format.knows_places_late() && !spool.file.is_empty() {
        true => Some(format.open(&Opening::new(fs, &layout.out.join(&spool.file)))?),
        false => None,
    };
    read_all(fs, &layout.rows(spool.number), spool.end, &mut |record| {
        let mut row = record.row;
        if let Some(archive) = &late {
            find_place(&**archive, &mut row)?;
        }
        writer.push(row).map_err(captures)
    })
}

/// Gives a row the place of its capture, if the archive kept that one and not another of the same URL.
fn find_place(archive: &dyn Archive, row: &mut CaptureRow) -> Result<(), Error> {
    let Some(mut source) = archive.captures(Pick::Newest(&row.url))? else { return Ok(()) };
    if let Some((Entry::Capture(capture), place)) = source.next_entry()?
        && row.started_at == Some(capture.started_at.0)
    {
        row.set_place(&place);
    }
    Ok(())
}

fn captures(error: impl Into<trawl_model::DoorError>) -> Error {
    Error::Captures(error.into())
}

/// Brings the index up to date: one file when the run is complete or has one archive file, else one for each.
pub(crate) fn write_index(
    fs: &Arc<dyn Fs>,
    layout: &Layout,
    spools: &[SpoolEnd],
    format: &dyn Format,
    complete: bool,
) -> Result<(), Error> {
    if spools.len() <= 1 {
        let mut writer = CapturesWriter::create(fs, &layout.captures(None)).map_err(captures)?;
        for spool in spools {
            push_captures(fs, layout, spool, format, &mut writer)?;
            if let Some(archive) = covered(&**fs, layout, spool) {
                writer.covers(archive);
            }
        }
        writer.finish().map_err(captures)?;
        return Ok(());
    }
    for (n, spool) in spools.iter().enumerate() {
        // Those of closed files do not change.
        if n + 1 == spools.len() || !fs.exists(&layout.captures(Some(spool.number)))? {
            write_captures(fs, layout, spool, format)?;
        }
    }
    let parts: Vec<PathBuf> = spools.iter().map(|spool| layout.captures(Some(spool.number))).collect();
    if complete {
        // Their row groups are copied as they are: the end of a large run reads no row again.
        let archives: Vec<Covered> = spools.iter().filter_map(|spool| covered(&**fs, layout, spool)).collect();
        concat_captures(fs, &parts, archives, &layout.captures(None)).map_err(captures)?;
        parts.iter().try_for_each(|part| remove_if_there(&**fs, part))?;
    } else {
        remove_if_there(&**fs, &layout.captures(None))?;
    }
    Ok(fs.sync_dir(&layout.out)?)
}

fn remove_if_there(fs: &dyn Fs, path: &Path) -> Result<(), Error> {
    if fs.exists(path)? { Ok(fs.remove_file(path)?) } else { Ok(()) }
}

/// Publishes the first `end` bytes of the rejects.
pub(crate) fn write_rejects(fs: &Arc<dyn Fs>, layout: &Layout, end: u64) -> Result<(), Error> {
    let source = fs.open(&layout.reject_spool(), Mode::Read)?;
    let mut file = AtomicFile::create(fs, &layout.rejects())?;
    let (mut at, mut buf) = (0, vec![0; 1 << 18]);
    while at < end {
        let n = source.read_at(at, &mut buf)?.min(usize::try_from(end - at).unwrap_or(usize::MAX));
        if n == 0 {
            let (expected, found) = ("rejects that were synced", format!("{at} bytes where the log has {end}"));
            return Err(Error::Spool { path: layout.reject_spool(), offset: at, expected, found });
        }
        file.put(buf.get(..n).unwrap_or_default())?;
        at += n as u64;
    }
    Ok(file.publish()?)
}

/// Lists archive and index files with their digests. Those that were hashed while they were written, and those that `old` knows
/// by name and length, are not read again.
pub(crate) fn list_files(
    fs: &HashedFs,
    layout: &Layout,
    registry: &Registry,
    old: &[FileEntry],
) -> Result<Vec<FileEntry>, Error> {
    let old: HashMap<_, _> = old.iter().map(|entry| ((entry.name.as_str(), entry.bytes), &entry.sha256)).collect();
    let mut files = Vec::new();
    let entries = fs.list(&layout.out)?.into_iter();
    let names: Vec<String> = entries.filter_map(|entry| entry.name.into_string().ok()).collect();
    for name in &names {
        let Some(role) = registry.role(name, &names).filter(|role| *role != Role::Working) else { continue };
        let mut inside = Vec::new();
        files_in(fs, &layout.out, name, &mut inside)?;
        for name in inside {
            let path = layout.out.join(&name);
            let bytes = fs.metadata(&path)?.len;
            // An index may be written anew, a container goes on.
            let sha256 = match old.get(&(name.as_str(), bytes)).filter(|_| role == Role::Complete) {
                Some(known) => (*known).clone(),
                None => match fs.digest(&path, bytes) {
                    Some(taken) => taken,
                    None => sha256(fs, &path)?,
                },
            };
            files.push(FileEntry { name, bytes, sha256 });
        }
    }
    Ok(files)
}

/// A file, or all files of a directory that is a container.
fn files_in(fs: &dyn Fs, out: &Path, name: &str, files: &mut Vec<String>) -> Result<(), Error> {
    if !fs.metadata(&out.join(name))?.is_dir {
        files.push(name.to_owned());
        return Ok(());
    }
    for entry in fs.list(&out.join(name))? {
        if let Ok(inner) = entry.name.into_string() {
            files_in(fs, out, &format!("{name}/{inner}"), files)?;
        }
    }
    Ok(())
}

fn sha256(fs: &dyn Fs, path: &Path) -> Result<String, Error> {
    let file = fs.open(path, Mode::Read)?;
    let (mut hasher, mut buf, mut at) = (Hasher::sha256(), vec![0; 1 << 18], 0);
    loop {
        let n = file.read_at(at, &mut buf)?;
        if n == 0 {
            return Ok(hasher.finish().hex());
        }
        hasher.update(buf.get(..n).unwrap_or_default());
        at += n as u64;
    }
}

/// Reads `run.json`; `None` if there is none that can be read, for it can be made again.
pub(crate) fn read_report(fs: &dyn Fs, layout: &Layout) -> Option<Report> {
    serde_json::from_slice(&fs.read(&layout.run_json(), 64 << 20).ok()?).ok()
}

pub(crate) fn write_report(fs: &Arc<dyn Fs>, layout: &Layout, report: &Report) -> Result<(), Error> {
    let mut bytes = serde_json::to_vec_pretty(report).unwrap_or_default();
    bytes.push(b'\n');
    Ok(publish(fs, &layout.run_json(), &bytes)?)
}
