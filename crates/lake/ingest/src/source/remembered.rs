//! A source, and what its dataset remembers of it.

use super::grown::Start;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::{FileId, Fs, Metadata};
use trawl_lists::ListFile;
use trawl_model::{Aside, Asides, DoorError, Items, SourceIdentity, Split, UrlRecord, UrlSource};
use trawl_store::Stamp;

/// A source that was taken when it was shorter, and what has become of that.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// What it was.
    pub known: SourceIdentity,
    /// What its last item was taken for then, if it is something else now: the shorter source was cut inside it.
    pub stale: Option<UrlRecord>,
}

/// A source, and what its dataset remembers of it. One that is new to the dataset is made by `Source::from`.
#[derive(Clone)]
pub struct Source {
    pub(super) inner: Arc<dyn UrlSource>,
    /// What its file system says of it, if that is to be believed later on.
    pub(crate) stamp: Option<Stamp>,
    /// What it was when it was taken before, if it only goes on from there: then what is read is what came since.
    pub grown: Option<Grown>,
    /// What the dataset had of its name when it was opened, if another of that name may be the same one at another length:
    /// what it is to the dataset is then only known as long as the dataset has the same. `None` if that does not matter.
    pub(crate) known_by_name: Option<Vec<SourceIdentity>>,
    /// From where on it is read.
    pub(super) start: Start,
    /// How another process opens it, if one can.
    pub(crate) opened: Option<Opened>,
    /// What its file was before its bytes were hashed; `None` for what is no file of bytes.
    pub(super) seen: Option<Seen>,
    /// Which file it is, whatever its name; `None` for what has none of its own.
    pub(super) file: Option<FileId>,
}

/// What a file system said of a file before it was read.
#[derive(Clone)]
pub(super) struct Seen {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    was: Metadata,
}

impl Seen {
    pub fn new(fs: &Arc<dyn Fs>, path: &Path, was: Metadata) -> Self {
        Self { fs: fs.clone(), path: path.to_owned(), was }
    }
}

/// How a source is opened again, on any machine that sees its file under the same path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opened {
    pub path: String,
    /// The name of its format.
    pub format: String,
    /// How it is read, if it is a list.
    pub options: trawl_lists::Options,
    /// What its file system says of its bytes ([`Opened::state_of`]); `None` for a container, which tells itself.
    pub state: Option<i64>,
}

impl Opened {
    /// When a file's bytes were last changed; where that is not told, as for objects of a bucket, which of its states it is. A
    /// file of which this differs has changed.
    pub fn state_of(found: &Metadata) -> i64 {
        found.modified_ns.unwrap_or(found.id.inode.cast_signed())
    }
}

impl From<Box<dyn UrlSource>> for Source {
    fn from(inner: Box<dyn UrlSource>) -> Self {
        let inner = Arc::from(inner);
        let start = Start::default();
        Self { inner, stamp: None, grown: None, known_by_name: None, start, opened: None, seen: None, file: None }
    }
}

impl Source {
    /// A source that is new to its dataset.
    pub fn new(source: impl UrlSource + 'static) -> Self {
        Self::from(Box::new(source) as Box<dyn UrlSource>)
    }

    /// What another name of the same file has in common with it: hard links, and paths through which a directory is mounted twice. The
    /// bytes as well, because some file systems number their files badly.
    pub(crate) fn file(&self) -> Option<(FileId, u64, String)> {
        let SourceIdentity { size, tag, .. } = self.identity();
        self.file.map(|id| (id, size, tag))
    }

    /// Where its file is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.seen.as_ref().map(|seen| &*seen.path)
    }

    /// Refuses a file whose bytes are no longer those that were hashed: a file is opened anew for each part that is read of it, so
    /// that rows of another one, which took its place meanwhile, would count as its own. One that has only grown is what it was.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let Some(Seen { fs, path, was }) = &self.seen else { return Ok(()) };
        if fs.metadata(path)? == *was {
            return Ok(());
        }
        let SourceIdentity { uri, size, tag } = self.identity();
        let (_, tags) = ListFile::open_marked(fs, path, &[size])?;
        if tags.first() == Some(&tag) {
            return Ok(());
        }
        let reason = format!("{uri} changed while it was read, so nothing was taken: run again");
        Err(Error::Store(trawl_store::Error::Refused { reason }))
    }
}

impl UrlSource for Source {
    fn identity(&self) -> SourceIdentity {
        self.inner.identity()
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let mut splits = self.inner.splits(target_bytes)?;
        if self.start.skips_splits {
            splits.retain(|split| split.end > self.start.at);
            if let Some(first) = splits.first_mut() {
                first.start = first.start.max(self.start.at);
            }
        }
        Ok(splits)
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        self.read_all(split, each, &mut |_, _| {})
    }

    fn read_all(&self, split: Split, each: &mut Items<'_>, aside: &mut Asides<'_>) -> Result<(), DoorError> {
        let mut start = self.start;
        let from = start.at;
        let has_passed = Cell::new(false);
        let mut each = |at: u64, item: Result<_, _>| {
            has_passed.set(start.passes(at, item.is_ok()));
            if has_passed.get() { each(at, item) } else { Ok(()) }
        };
        let mut aside = |at: u64, what: Aside<'_>| {
            let is_new = match what {
                // What stands where the last capture did was told with it.
                Aside::Record(_) => at > from || from == 0,
                Aside::Oddity(..) => has_passed.get(),
            };
            if is_new {
                aside(at, what)
            }
        };
        self.inner.read_all(split, &mut each, &mut aside)
    }
}
