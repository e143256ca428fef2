//! Archives as sources, beside lists.

use crate::Result;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use trawl_archive::Registry;
use trawl_io::Fs;
use trawl_lists::{ListFile, Options, uri_of};
use trawl_model::{DoorError, Pick, SourceIdentity, UrlSource};

/// The formats of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A list of URLs.
    List(trawl_lists::Format),
    /// An archive, by the name of its format in the registry.
    Archive(&'static str),
}

/// The usual formats, by name.
impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let registry = Registry::default();
        match registry.format(text) {
            Ok(format) if !format.is_index() => Ok(Format::Archive(format.name())),
            _ => text.parse().map(Format::List).map_err(|e: String| {
                let archives: Vec<_> = registry.crawlable().map(|format| format.name()).collect();
                e.replacen(", found", &format!(", {}, found", archives.join(", ")), 1)
            }),
        }
    }
}

impl Format {
    /// Whether a plain file of it can be read from the beginning of any item on.
    pub(super) fn has_byte_splits(self) -> bool {
        matches!(self, Format::List(format) if format.is_lines())
    }

    /// Its name, which [`str::parse`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Format::List(format) => format.name(),
            Format::Archive(name) => name,
        }
    }

    /// Whether it is one file with archives inside, so that rows name those.
    pub fn holds_files(self) -> bool {
        matches!(self, Format::Archive("wacz"))
    }

    /// Whether it holds captures, so that places lead into it.
    pub fn is_archive(self) -> bool {
        matches!(self, Format::Archive(_))
    }
}

/// The format of a file, if it can be recognised: that of an archive by its first bytes or name, else that of a list. An index of
/// captures is a list.
pub fn detect(fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<Format>> {
    detect_in(&Registry::default(), fs, path)
}

fn detect_in(registry: &Registry, fs: &Arc<dyn Fs>, path: &Path) -> Result<Option<Format>> {
    let archive = registry.detect(fs, path)?;
    if let Some(format) = archive.filter(|format| !format.is_index()) {
        let opening = trawl_archive::Opening::new(fs, path);
        let unknown = SourceIdentity { uri: uri_of(path).into_owned(), size: 0, tag: String::new() };
        let holds = |archive: Box<dyn trawl_model::Archive>| {
            Ok(archive.captures(Pick::All)?.is_some() || archive.urls(&unknown)?.is_some())
        };
        // The other files of a container hold nothing of their own. What cannot be opened is reported when it is read.
        let is_source = !format.is_part(&**fs, path) && format.open(&opening).and_then(holds).unwrap_or(true);
        return Ok(is_source.then(|| Format::Archive(format.name())));
    }
    if fs.metadata(path)?.is_dir {
        return Ok(None);
    }
    Ok(trawl_lists::look(fs, path)?.format.map(Format::List))
}

/// The format of a file that is a source by name: a text that says nothing is an empty list.
pub(super) fn format_of(registry: &Registry, fs: &Arc<dyn Fs>, path: &Path, name: Option<&str>) -> Result<Format> {
    if let Some(format) = detect_in(registry, fs, path)? {
        return Ok(format);
    }
    let name = name.map_or_else(|| path.to_string_lossy(), Into::into);
    Ok(Format::List(trawl_lists::look(fs, path)?.format_of(&name)?))
}

/// A file as a source of what its format says.
pub(super) fn open_file(
    registry: &Registry,
    file: ListFile,
    format: Format,
    options: &Options,
) -> Result<Box<dyn UrlSource>, DoorError> {
    let name = match format {
        Format::List(format) => return trawl_lists::over(file, format, options),
        Format::Archive(name) => name,
    };
    let opening = trawl_archive::Opening { fs: &file.fs, path: &file.path, up_to: Some(file.identity.size) };
    let archive = registry.format(name)?.open(&opening)?;
    trawl_archive::urls(archive, &file.path, file.identity)
}

/// A container that says itself which one it is need not be read whole to be recognised.
pub(super) fn container(
    registry: &Registry,
    fs: &Arc<dyn Fs>,
    path: &Path,
    format: Format,
) -> Result<Option<Box<dyn UrlSource>>, DoorError> {
    let Format::Archive(name) = format else { return Ok(None) };
    let archive = registry.format(name)?.open(&trawl_archive::Opening::new(fs, path))?;
    match archive.identity() {
        Some(identity) => Ok(Some(trawl_archive::urls(archive, path, identity)?)),
        None => Ok(None),
    }
}
