//! Files made from the journal: the capture index, the rejects, `run.json`. Each can be made again.

use crate::error::Error;
use crate::layout::Layout;
use crate::record::{Record, decode};
use crate::report::{FileEntry, Report};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use trawl_archive::{CaptureRow, CapturesWriter, Covered, Format, Opening, Registry, Role};
use trawl_io::journal::{JournalReader, Options};
use trawl_io::{AtomicFile, Fs, Mode, publish};
use trawl_model::{Archive, Entry, Pick};

/// Batches that were committed while one archive file was being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Range {
    pub file: String,
    /// Where the first of them begins in the journal.
    pub start: u64,
    /// Where the last one begins.
    pub last: u64,
}

/// Adds a batch to the ranges: a new one whenever the archive file changes. Tells whether it did.
pub(crate) fn extend(ranges: &mut Vec<Range>, file: &str, offset: u64) -> bool {
    match ranges.last_mut() {
        // A batch that came before the archive had a file belongs to the first one.
        Some(range) if range.file == file || range.file.is_empty() => {
            file.clone_into(&mut range.file);
            range.last = offset;
            false
        }
        _ => {
            ranges.push(Range { file: file.to_owned(), start: offset, last: offset });
            true
        }
    }
}

/// Shows every record of some batches to `each`.
fn records(
    fs: &dyn Fs,
    journal: &Path,
    range: Option<&Range>,
    each: &mut dyn FnMut(Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut reader = JournalReader::open(fs, journal, &Options::default())?;
    if let Some(range) = range {
        reader.skip_to(range.start);
    }
    while let Some(batch) = reader.next_batch()? {
        if range.is_some_and(|range| batch.offset() > range.last) {
            break;
        }
        for record in batch.records() {
            each(decode(journal, batch.offset(), record)?)?;
        }
    }
    Ok(())
}

/// Writes the index of one archive file. Places that were not known when captures were made are looked up in `late`, the
/// finished archive.
pub(crate) fn write_captures(
    fs: &Arc<dyn Fs>,
    journal: &Path,
    range: Option<&Range>,
    path: &Path,
    late: Option<&dyn Archive>,
) -> Result<(), Error> {
    let mut writer = CapturesWriter::create(fs, path).map_err(captures)?;
    push_captures(fs, journal, range, &mut writer, late)?;
    if let (Some(range), Some(dir)) = (range, path.parent()) {
        covers(&**fs, dir, range, &mut writer);
    }
    writer.finish().map_err(captures)?;
    Ok(())
}

/// Lists the archive of a range in its index: who takes the index need not read it.
fn covers(fs: &dyn Fs, dir: &Path, range: &Range, writer: &mut CapturesWriter) {
    // Before an archive is complete it has another name.
    if let Ok(metadata) = fs.metadata(&dir.join(&range.file))
        && !range.file.is_empty()
    {
        let bytes = (!metadata.is_dir).then_some(metadata.len);
        writer.covers(Covered { name: range.file.clone(), bytes });
    }
}

fn push_captures(
    fs: &Arc<dyn Fs>,
    journal: &Path,
    range: Option<&Range>,
    writer: &mut CapturesWriter,
    late: Option<&dyn Archive>,
) -> Result<(), Error> {
    records(&**fs, journal, range, &mut |record| {
        if let Record::Event(mut event) = record {
            if let Some(archive) = late {
                find_place(archive, &mut event.row)?;
            }
            writer.push(event.row).map_err(captures)?;
        }
        Ok(())
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

/// The finished archive that a range was written to, if places are known only by now.
pub(crate) fn late_archive(
    fs: &Arc<dyn Fs>,
    layout: &Layout,
    range: &Range,
    format: &dyn Format,
) -> Result<Option<Box<dyn Archive>>, Error> {
    let path = layout.out.join(&range.file);
    Ok(format.knows_places_late().then(|| format.open(&Opening::new(fs, &path))).transpose()?)
}

/// Brings the index up to date with the whole journal: one file when the run is complete or has one archive file, else one
/// for each.
pub(crate) fn write_index(
    fs: &Arc<dyn Fs>,
    layout: &Layout,
    ranges: &[Range],
    format: &dyn Format,
    complete: bool,
) -> Result<(), Error> {
    if complete || ranges.len() <= 1 {
        let mut writer = CapturesWriter::create(fs, &layout.captures(None)).map_err(captures)?;
        if ranges.is_empty() {
            push_captures(fs, &layout.journal, None, &mut writer, None)?;
        }
        for range in ranges {
            let late = late_archive(fs, layout, range, format)?;
            push_captures(fs, &layout.journal, Some(range), &mut writer, late.as_deref())?;
            covers(&**fs, &layout.out, range, &mut writer);
        }
        writer.finish().map_err(captures)?;
        for n in 0..ranges.len() {
            let path = layout.captures(Some(n));
            if fs.exists(&path)? {
                fs.remove_file(&path)?;
            }
        }
        return Ok(fs.sync_dir(&layout.out)?);
    }
    for (n, range) in ranges.iter().enumerate() {
        let path = layout.captures(Some(n));
        // Those of closed files do not change.
        if n + 1 == ranges.len() || !fs.exists(&path)? {
            write_captures(
                fs,
                &layout.journal,
                Some(range),
                &path,
                late_archive(fs, layout, range, format)?.as_deref(),
            )?;
        }
    }
    let only = layout.captures(None);
    if fs.exists(&only)? {
        fs.remove_file(&only)?;
        fs.sync_dir(&layout.out)?;
    }
    Ok(())
}

/// Writes the lines that were no URLs, one JSON object each.
pub(crate) fn write_rejects(fs: &Arc<dyn Fs>, layout: &Layout) -> Result<(), Error> {
    let mut file = AtomicFile::create(fs, &layout.rejects())?;
    records(&**fs, &layout.journal, None, &mut |record| {
        if let Record::Seeds(seeds) = record {
            for reject in seeds.rejects {
                let mut line = serde_json::to_vec(&reject).unwrap_or_default();
                line.push(b'\n');
                file.write_all(&line).map_err(|e| trawl_io::Error::io(trawl_io::Op::Write, layout.rejects(), e))?;
            }
        }
        Ok(())
    })?;
    Ok(file.publish()?)
}

/// Lists archive and index files with their digests. Those that `old` knows by name and length are not read again.
pub(crate) fn list_files(
    fs: &dyn Fs,
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
                None => sha256(fs, &path)?,
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
    let (mut hasher, mut buf, mut at) = (Sha256::new(), vec![0; 1 << 18], 0);
    loop {
        let n = file.read_at(at, &mut buf)?;
        if n == 0 {
            return Ok(data_encoding::HEXLOWER.encode(&hasher.finalize()));
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
