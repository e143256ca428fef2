//! Where records come from: a list or an archive, and what the dataset remembers of it.
//!
//! Lists are read by [`trawl_lists`]; here are the archives and the memory: which sources a dataset has taken ([`Opening`]),
//! and from where on one that has grown is read.

mod archive;
mod grown;
mod known;
mod lake;
mod remembered;

pub use archive::{Format, detect};
pub use known::Opening;
pub(crate) use known::{UNFINISHED, of_name};
pub(crate) use lake::LakeSource;
pub(crate) use remembered::Opened;
use remembered::Seen;
pub use remembered::{Grown, Source};
pub use trawl_lists::BadItem;

use crate::{Error, Result};
use archive::open_file;
use std::path::Path;
use std::sync::Arc;
use trawl_archive::Registry;
use trawl_io::Fs;
use trawl_lists::{ListFile, uri_of};
use trawl_model::{SourceIdentity, UrlSource};
use trawl_store::Stamp;

/// Opens a file as a source. Its format is found by first bytes and name unless `format` says it.
pub fn open(fs: &Arc<dyn Fs>, path: &Path, format: Option<Format>) -> Result<Source> {
    open_as(fs, path, &Opening { format, ..Opening::default() })
}

/// As [`open`], for a dataset that may have it: if it begins with all bytes of a source of its name, it is read from there
/// on. Parquet files, containers and what comes through pipes are only known whole.
pub fn open_as(fs: &Arc<dyn Fs>, path: &Path, opening: &Opening<'_>) -> Result<Source> {
    let usual = Registry::default();
    let registry = opening.registry.unwrap_or(&usual);
    let format = match opening.format {
        Some(format) => format,
        None => archive::format_of(registry, fs, path, opening.name)?,
    };
    let options = opening.options.cloned().unwrap_or_default();
    // What comes through pipes lies in a file of this process.
    let opened = |state| {
        let path = path.to_str().filter(|_| opening.name.is_none() || opening.is_shared)?.to_owned();
        Some(Opened { path, format: format.name().to_owned(), options: options.clone(), state })
    };
    let is_file = opening.name.is_none();
    if let Some(container) = archive::container(registry, fs, path, format)? {
        let file = if is_file { Some(fs.metadata(path)?.id) } else { None };
        return Ok(Source { opened: opened(None), file, ..Source::from(container) });
    }
    // Asked before its bytes are read.
    let found = fs.metadata(path)?;
    let file_id = is_file.then_some(found.id);
    let (opened, seen) = (opened(Some(Opened::state_of(&found))), Some(Seen::new(fs, path, found)));
    let grows = format != Format::List(trawl_lists::Format::Parquet);
    let uri = opening.name.map_or_else(|| uri_of(path), Into::into);
    // What comes through pipes has no name of its own.
    let by_name = opening.known.filter(|_| is_file && grows).map(|known| known::of_name(known, &uri));
    let known = match opening.known.filter(|_| by_name.is_some_and(<[_]>::is_empty) && format.is_archive()) {
        Some(all) => known::before_rename(&**fs, all, &uri),
        None => by_name.unwrap_or_default(),
    };
    let marks = grown::marks(known);
    let Identified { file, stamp, tags } = identified(fs, path, opening, &marks)?;
    let size = file.identity.size;
    let source = match grown::longest(known, &file.identity, &marks, &tags) {
        Some(known) => grown::resume(registry, &file, known, format, &options)?,
        None => Source::from(open_file(registry, file, format, &options)?),
    };
    let known_by_name = by_name.map(|known| known.iter().map(|known| known.identity.clone()).collect());
    // What the file system says is not true of a part of the file.
    let stamp = stamp.filter(|_| source.identity().size == size);
    Ok(Source { stamp, known_by_name, opened, seen, file: file_id, ..source })
}

/// Opens a source once more, elsewhere, without reading it. Refuses if it is not what it was, as far as itself or its file
/// system tells.
pub(crate) fn reopen(fs: &Arc<dyn Fs>, opened: &Opened, identity: &SourceIdentity) -> Result<Source> {
    let (registry, path) = (Registry::default(), Path::new(&opened.path));
    let unknown = |found| Error::Setting { what: "format of a source", expected: "one that this program knows", found };
    let format: Format = opened.format.parse().map_err(unknown)?;
    let changed = |found: String| {
        let SourceIdentity { size, tag, .. } = identity;
        let changed = "it has changed since the job was planned";
        let reason = format!("{}: expected {size} bytes, {tag}, found {found}: {changed}", opened.path);
        Err(Error::Store(trawl_store::Error::Refused { reason }))
    };
    let Some(state) = opened.state else {
        return match archive::container(&registry, fs, path, format)? {
            Some(container) if container.identity() == *identity => Ok(Source::from(container)),
            Some(other) => changed(format!("{} bytes, {}", other.identity().size, other.identity().tag)),
            None => changed("a file that does not say which it is".into()),
        };
    };
    let found = match fs.metadata(path) {
        Err(error) if error.is_not_found() => return changed("no file".into()),
        found => found?,
    };
    if found.len != identity.size {
        return changed(format!("{} bytes", found.len));
    }
    if Opened::state_of(&found) != state {
        return changed("another time of change".into());
    }
    let file = ListFile::known(fs, path, identity.clone())?;
    Ok(Source::from(open_file(&registry, file, format, &opened.options)?))
}

/// A file whose bytes are known.
struct Identified {
    file: ListFile,
    stamp: Option<Stamp>,
    /// The hashes of how it begins, unless it need not be read.
    tags: Vec<String>,
}

/// A file that is known by what its file system says, or has been read, and then the hashes of how it begins.
fn identified(fs: &Arc<dyn Fs>, path: &Path, opening: &Opening<'_>, marks: &[u64]) -> Result<Identified> {
    // What was read from a pipe lies in a new file each time.
    let stamped = || known::stamp_of(&**fs, path).filter(|_| opening.name.is_none());
    let before = stamped();
    if let Some((size, stamp)) = before.filter(|_| !opening.rehash) {
        let mut known = known::of_name(opening.known.unwrap_or_default(), &uri_of(path)).iter();
        if let Some(known) = known.find(|known| known.identity.size == size && known.stamp == Some(stamp)) {
            let file = ListFile::known(fs, path, known.identity.clone())?;
            return Ok(Identified { file, stamp: Some(stamp), tags: Vec::new() });
        }
    }
    let (mut file, tags) = ListFile::open_marked(fs, path, marks)?;
    if let Some(name) = opening.name {
        name.clone_into(&mut file.identity.uri);
    }
    let unchanged = before.filter(|(size, _)| *size == file.identity.size && before == stamped());
    let stamp = unchanged.map(|(_, stamp)| stamp).filter(|stamp| known::is_settled(*stamp, opening.now));
    Ok(Identified { file, stamp, tags })
}
