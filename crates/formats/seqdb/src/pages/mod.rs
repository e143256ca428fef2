//! Captures in an append-only filesys.
//!
//! A file is one capture: its name is the URL, a tab and the time in 17 digits, its contents are the event's WARC records
//! as they are (plain, gzip or zstd members), so that nothing is lost between WARC and here. A second index, `NAME.urls`,
//! leads from a URL to its newest capture. Inode and contents lie side by side: a capture costs one read of an index and
//! one of the data file. In disk order the events are a WARC file.
//!
//! Events are opaque here; whoever writes and reads WARC records gives and takes bytes. An event without a URL (a
//! warcinfo record) has an empty one, and is in no index by URL.

mod edit;
mod hint;
mod name;
mod read;
mod repair;
mod scan;
mod source;
#[cfg(test)]
mod tests;

pub use edit::edit;
pub use name::{Form, nameable};
pub use read::{EventReader, Page};
pub use repair::{PagesRepair, compact, cut, repair, verify};
pub use scan::{PageRef, PageScan};

use crate::design::{
    LAST_MTIME_VARIABLE, PAGE_READ_START, PAGE_READ_VARIABLE, PAGES_ISZ, PURPOSE_URLS, URL_INDEX_SUFFIX,
};
use crate::error::shown;
use crate::filesys::inode::name_at;
use crate::filesys::{CreateFilesys, Filesys, FsPaths};
use crate::hindex::{CreateHindex, Found, roomy};
use crate::open::{self, Guard};
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Hindex, Keys, Kind, Kvseq, Result, Settings, SyncPolicy, h64};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::LockFile;
use trawl_model::{Place, UnixMillis};

/// What a new container of captures is like.
#[derive(Debug, Clone)]
#[must_use]
pub struct CreatePages {
    /// Captures expected; the indexes grow by themselves, but need not if this is about right.
    pub expected: u64,
    /// Inode area: a multiple of 8 from 16. Longer URLs get twice as much, and so on.
    pub isz: u64,
    /// Seconds between two time marks.
    pub timemp: i64,
    /// A random positive number.
    pub fsgen: i64,
}

impl CreatePages {
    /// The defaults; `fsgen` is a random positive number.
    pub fn new(fsgen: i64) -> Self {
        CreatePages { expected: 1000, isz: PAGES_ISZ, timemp: crate::design::DEFAULT_TIMEMP, fsgen }
    }

    /// Creates the container and opens it for writing.
    pub fn create(&self, paths: &FsPaths, settings: &Settings) -> Result<Pages> {
        let mut create = CreateFilesys::new(self.fsgen);
        create.isz = self.isz;
        create.htsize = roomy(self.expected);
        create.append_only = Some(self.timemp);
        // The first spares looking for the last file when the container is opened again.
        let start = i64::try_from(PAGE_READ_START).unwrap_or(i64::MAX);
        let extra = [(LAST_MTIME_VARIABLE, i64::MIN), (PAGE_READ_VARIABLE, start)];
        create.extra = extra.iter().filter_map(|(name, value)| Some((Name::parse(name)?, *value))).collect();
        let lock = open::lock(settings, &paths.lock())?;
        create.publish(paths, settings)?;
        let urls = CreateHindex { htsize: create.htsize, ..url_index(self.fsgen) };
        let _ = settings.fs.remove_file(&url_index_path(paths));
        urls.publish(&url_index_path(paths), settings)?;
        Pages::open_locked(paths, Access::Write, settings, Some(lock), false)
    }
}

/// The parameters of the index by URL.
fn url_index(fsgen: i64) -> CreateHindex {
    let (purpose, extra) = (Purpose::fixed(PURPOSE_URLS), vec![(Name::FSGEN, fsgen)]);
    CreateHindex { purpose, extra, ..CreateHindex::default() }
}

/// Where the index by URL is.
pub fn url_index_path(paths: &FsPaths) -> PathBuf {
    paths.other(URL_INDEX_SUFFIX)
}

/// Whether a data file says that it is of a container of captures.
pub(crate) fn is_data_file(path: &Path, settings: &Settings) -> bool {
    let opened = open::open(settings, path, Access::Read, Kind::Kvseq).ok();
    Name::parse(PAGE_READ_VARIABLE).is_some_and(|name| opened.is_some_and(|opened| opened.sb.value(name).is_some()))
}

/// An open container of captures.
#[derive(Debug)]
pub struct Pages {
    fs: Filesys,
    urls: Hindex,
    settings: Settings,
    access: Access,
    file: Arc<str>,
    last_sync: i64,
    _lock: Option<LockFile>,
}

/// The captures of a data file as what the index by URL points to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Urls<'a>(pub &'a Kvseq);

impl Keys for Urls<'_> {
    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        Ok(name_at(self.0, ptr)?.is_some_and(|name| name::split(&name).is_some_and(|parts| parts.url == key)))
    }

    fn key_at(&self, ptr: u64) -> Result<Vec<u8>> {
        let name = name_at(self.0, ptr)?.unwrap_or_default();
        let parts = name::split(&name);
        let parts = parts.ok_or_else(|| Error::corrupt(self.0.path(), ptr, "the inode of a capture", "another"))?;
        Ok(parts.url.to_vec())
    }
}

impl Pages {
    /// Opens a container of captures; see [`Filesys::open`].
    pub fn open(paths: &FsPaths, access: Access, settings: &Settings) -> Result<Self> {
        if !settings.fs.exists(&paths.data())? {
            return Err(Error::FilesysNotFound { path: paths.data() });
        }
        match access {
            Access::Read => open::beside(settings, &paths.lock(), |writer_lives| {
                Self::open_locked(paths, access, settings, None, writer_lives)
            }),
            Access::Write => {
                let lock = open::lock(settings, &paths.lock())?;
                Self::open_locked(paths, access, settings, Some(lock), false)
            }
        }
    }

    fn open_locked(
        paths: &FsPaths,
        access: Access,
        settings: &Settings,
        lock: Option<LockFile>,
        writer_lives: bool,
    ) -> Result<Self> {
        let guard = Guard::Owner { writer_lives };
        // Syncs are made here, so that both indexes are part of them.
        let inner = Settings { sync_every: -1, ..settings.clone() };
        let fs = Filesys::open_guarded(paths, access, &inner, guard)?;
        if !fs.is_append_only() {
            let found = "a filesys that is not append-only";
            return Err(Error::corrupt(&paths.data(), 0, "a container of captures", found));
        }
        let urls = match Hindex::open_guarded(&url_index_path(paths), access, &inner, guard) {
            Err(Error::Io(e)) if e.is_not_found() => {
                let why = "it is missing: no container of captures, or one that lost its index by URL";
                return Err(Error::NeedsCheck { path: url_index_path(paths), why });
            }
            opened => opened?,
        };
        let (expected, found) = (fs.data().superblock().value(Name::FSGEN), urls.superblock().value(Name::FSGEN));
        if expected != found {
            let (expected, found) = (expected.unwrap_or(0), found.unwrap_or(0));
            return Err(Error::GenerationMismatch { path: url_index_path(paths), expected, found });
        }
        let file = paths.data().file_name().unwrap_or_default().to_string_lossy().into();
        let last_sync = settings.clock.seconds();
        Ok(Pages { fs, urls, settings: settings.clone(), access, file, last_sync, _lock: lock })
    }

    /// The filesys beneath: all files, in any order.
    pub fn filesys(&self) -> &Filesys {
        &self.fs
    }

    /// Captures.
    pub fn len(&self) -> u64 {
        self.fs.index().keys()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// URLs.
    pub fn url_count(&self) -> u64 {
        self.urls.keys()
    }

    /// Appends the event of a capture: its WARC records. A reader beside sees all of it or nothing. A further capture of
    /// the same URL and moment is kept too. Returns where the event's bytes lie.
    pub fn append(&mut self, url: &[u8], time: UnixMillis, form: Form, event: &[u8]) -> Result<Place> {
        let (place, name) = self.begin(url, time)?;
        let mtime = self.mtime(time)?;
        let ptr = self.fs.put_at(place, &name, form.to_type(), Some(mtime), event)?;
        self.entered(url, time, ptr)
    }

    /// The same for an event of any size, of which memory holds a part. If reading it fails nothing is kept.
    pub fn append_from(&mut self, url: &[u8], time: UnixMillis, form: Form, event: &mut dyn Read) -> Result<Place> {
        let (place, name) = self.begin(url, time)?;
        let (mtime, what) = (self.mtime(time)?, format!("event of {}", shown(url)));
        let (ptr, _) = self.fs.put_from_at(place, &name, form.to_type(), Some(mtime), event, &what)?;
        self.entered(url, time, ptr)
    }

    /// The capture whose inode is at `ptr` was stored, as the last one.
    fn entered(&mut self, url: &[u8], time: UnixMillis, ptr: u64) -> Result<Place> {
        self.learn(self.fs.data().end().saturating_sub(ptr));
        self.enter(url, time, ptr)?;
        self.settle()?;
        self.place_of(ptr)
    }

    /// Finds a free name, and the cell for it.
    fn begin(&mut self, url: &[u8], time: UnixMillis) -> Result<(Found<()>, Vec<u8>)> {
        if !name::can_write(time) {
            return Err(Error::refused(
                &self.fs.paths().data(),
                format!("a time outside the years 0 to 9999: {}", time.0),
            ));
        }
        self.fs.prepare()?;
        if self.urls.wants_resize().is_some() {
            // Cells must not reach the file before the captures they lead to: older ones would be lost to readers.
            self.fs.flush_data()?;
            self.urls.make_room(&Urls(self.fs.data()))?;
        }
        // Many captures of one moment are numbered without a gap: the last number is found by halving.
        let (mut taken, mut free) = (None, 0);
        while let Found::Here { .. } = self.fs.find(&name::join(url, time, free))? {
            taken = Some(free);
            free = free * 2 + 1;
        }
        while let Some(last) = taken.filter(|last| last + 1 < free) {
            let middle = last + (free - last) / 2;
            match self.fs.find(&name::join(url, time, middle))? {
                Found::Here { .. } => taken = Some(middle),
                Found::Absent { .. } | Found::Full => free = middle,
            }
        }
        let name = name::join(url, time, free);
        Ok(match self.fs.find(&name)? {
            Found::Absent { cell, free } => (Found::Absent { cell, free }, name),
            Found::Here { .. } | Found::Full => (Found::Full, name),
        })
    }

    /// Times of files never go back, those of captures may: the name has the capture's own.
    fn mtime(&mut self, time: UnixMillis) -> Result<i64> {
        let wanted = time.0.div_euclid(1000);
        Ok(self.fs.find_last_mtime()?.map_or(wanted, |last| wanted.max(last)))
    }

    /// Lets the URL lead to the capture, if none is newer.
    fn enter(&mut self, url: &[u8], time: UnixMillis, ptr: u64) -> Result<()> {
        if url.is_empty() {
            return Ok(());
        }
        let (hash, data) = (h64(url), self.fs.data());
        let found = self.urls.search(hash, |ptr| {
            let Some(name) = name_at(data, ptr)? else { return Ok(None) };
            Ok(name::split(&name).filter(|parts| parts.url == url).map(|parts| parts.time))
        })?;
        if self.urls.would_write(&found) {
            self.fs.flush_data()?;
        }
        match found {
            Found::Here { what: other, .. } if other > time => Ok(()),
            Found::Here { cell, .. } => self.urls.redirect(cell, hash, ptr),
            absent => self.urls.occupy(absent, hash, ptr),
        }
    }

    fn settle(&mut self) -> Result<()> {
        if self.settings.sync_every >= 0
            && self.settings.clock.seconds().saturating_sub(self.last_sync) >= self.settings.sync_every
        {
            self.sync()?;
        }
        Ok(())
    }

    /// Hands everything to the system: readers see it, a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.fs.flush()?;
        self.urls.flush()
    }

    /// Makes everything durable, as far as the settings want it. Returns where the data file ends.
    pub fn sync(&mut self) -> Result<u64> {
        self.last_sync = self.settings.clock.seconds();
        self.fs.sync_data()?;
        if self.settings.sync != SyncPolicy::Data {
            // The mark of the index by name goes last: as long as it is there, this one is rebuilt too.
            self.urls.checkpoint()?;
            self.fs.sync_rest()?;
        }
        Ok(self.fs.data().end())
    }

    /// Syncs and closes.
    pub fn close(mut self) -> Result<()> {
        if self.access == Access::Write {
            self.fs.sync_data()?;
            self.urls.checkpoint()?;
            self.fs.sync_rest()?;
        }
        Ok(())
    }

    /// For a reader: looks how far the writer is by now.
    pub fn refresh(&mut self) -> Result<()> {
        if self.access == Access::Write {
            return Ok(());
        }
        self.fs.refresh()?;
        self.urls.refresh()?;
        // Asked last: a compaction puts another data file in its place first, then the rest.
        let of_data = self.fs.data().superblock().value(Name::FSGEN);
        if self.urls.superblock().value(Name::FSGEN) != of_data || !self.fs.data().is_current()? {
            *self = Self::open(self.fs.paths(), Access::Read, &self.settings)?;
        }
        Ok(())
    }
}
