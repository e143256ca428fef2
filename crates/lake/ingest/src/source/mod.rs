//! Where records come from: files of many formats, all behind the door `UrlSource`.
//!
//! | format | a record is | splits |
//! | --- | --- | --- |
//! | lines | a line: `url`, or `url`, tab, time; blank lines and `#` lines are none | by bytes |
//! | jsonl | a line: a JSON object with `url` | by bytes |
//! | cdxj | a line: SURT key, 14 digits, JSON object | by bytes |
//! | csv, tsv | a row, under a header line with a column `url` | one |
//! | warc | a capture of a WARC or ARC file | one |
//! | seqdb | a capture of a container: URL and time, by its name | by bytes |
//! | parquet | a row, with a column `url`; captures.parquet and the Common Crawl index too | row groups |
//!
//! gzip and zstd are seen through; a compressed file is one split.

mod csv;
mod detect;
mod fields;
mod grown;
mod item;
mod json;
mod known;
mod lake;
mod lines;
mod parquet;
mod text;
mod time;
mod warc;

pub use detect::{Format, detect};
pub use item::BadItem;
pub use known::Opening;
pub(crate) use known::of_name;
pub(crate) use lake::LakeSource;
pub use text::Compression;

use crate::{Error, Result};
use csv::CsvSource;
use lines::{LineFormat, LineSource};
use parquet::ParquetSource;
use std::path::Path;
use std::sync::Arc;
use text::SourceFile;
use trawl_io::Fs;
use trawl_model::{UnixMillis, UrlSource};
use trawl_seqdb::{Access, Clock, FsPaths, Pages, Settings};
use warc::ArchiveSource;

/// Opens a file as a source. Its format is found by name and first bytes unless `format` says it.
pub fn open(fs: &Arc<dyn Fs>, path: &Path, format: Option<Format>) -> Result<Box<dyn UrlSource>> {
    open_as(fs, path, &Opening { format, ..Opening::default() })
}

/// As [`open`], for a dataset that may have it: if it begins with all bytes of a source of its name, it is read from there
/// on. Parquet files, containers and what comes through pipes are only known whole.
pub fn open_as(fs: &Arc<dyn Fs>, path: &Path, opening: &Opening<'_>) -> Result<Box<dyn UrlSource>> {
    let name = opening.name;
    let (found, compression) = detect(fs, path)?;
    let Some(format) = opening.format.or(found).or_else(|| detect::of_lines(fs, path, compression)) else {
        return Err(Error::UnknownFormat {
            path: name.map_or_else(|| path.display().to_string(), str::to_owned),
            known: Format::KNOWN,
            found: "another name and other first bytes".into(),
        });
    };
    let make = match format {
        Format::Lines => |file| boxed(LineSource { file, format: LineFormat::Urls }),
        Format::Jsonl => |file| boxed(LineSource { file, format: LineFormat::Json }),
        Format::Cdxj => |file| boxed(LineSource { file, format: LineFormat::Cdxj }),
        Format::Csv => |file| boxed(CsvSource { file, separator: b',' }),
        Format::Tsv => |file| boxed(CsvSource { file, separator: b'\t' }),
        Format::Warc => |file| boxed(ArchiveSource { file }),
        Format::Parquet => {
            let (file, _) = identified(fs, path, compression, opening, &[])?;
            return Ok(boxed(ParquetSource::open(file)?));
        }
        Format::Seqdb => return container(fs, path),
    };
    let uri = name.map_or_else(|| path.to_string_lossy(), Into::into);
    // What comes through pipes has no name of its own.
    let told = opening.known.filter(|_| name.is_none()).map(|known| known::of_name(known, &uri));
    let known = told.unwrap_or_default();
    let marks = grown::marks(known);
    let (mut file, tags) = identified(fs, path, compression, opening, &marks)?;
    file.known_by_name = told.map(|known| known.iter().map(|known| known.identity.clone()).collect());
    match grown::longest(known, &file.identity, &marks, &tags) {
        Some(known) => Ok(grown::resume(file, known, format == Format::Warc, &make)?),
        None => Ok(make(file)),
    }
}

fn boxed(source: impl UrlSource + 'static) -> Box<dyn UrlSource> {
    Box::new(source)
}

/// A file that is known by what its file system says, or has been read, and then the hashes of how it begins.
fn identified(
    fs: &Arc<dyn Fs>,
    path: &Path,
    compression: Compression,
    opening: &Opening<'_>,
    marks: &[u64],
) -> Result<(SourceFile, Vec<String>)> {
    // What was read from a pipe lies in a new file each time.
    let stamped = || known::stamp_of(&**fs, path).filter(|_| opening.name.is_none());
    let before = stamped();
    if let Some((size, stamp)) = before.filter(|_| !opening.rehash) {
        let mut known = known::of_name(opening.known.unwrap_or_default(), &path.to_string_lossy()).iter();
        if let Some(known) = known.find(|known| known.identity.size == size && known.stamp == Some(stamp)) {
            return Ok((
                SourceFile::new(fs.clone(), path, compression, known.identity.clone(), Some(stamp)),
                Vec::new(),
            ));
        }
    }
    let (mut file, tags) = SourceFile::open_marked(fs.clone(), path, compression, marks)?;
    if let Some(name) = opening.name {
        name.clone_into(&mut file.identity.uri);
    }
    let unchanged = before.filter(|(size, _)| *size == file.identity.size && before == stamped());
    file.stamp = unchanged.map(|(_, stamp)| stamp).filter(|stamp| known::is_settled(*stamp, opening.now));
    Ok((file, tags))
}

/// A container of captures is a source by itself. Reading it writes nothing, so nobody asks for the time.
fn container(fs: &Arc<dyn Fs>, path: &Path) -> Result<Box<dyn UrlSource>> {
    let settings = Settings::new(Clock::fixed(UnixMillis(0)), "ingest").on(fs.clone());
    let open = || Pages::open(&FsPaths::of(path)?, Access::Read, &settings);
    Ok(Box::new(open().map_err(trawl_model::DoorError::from)?))
}
