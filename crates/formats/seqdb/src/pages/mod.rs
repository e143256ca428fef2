//! Captures in an append-only filesys.
//!
//! A file is one capture: its name is the URL, a tab and the time in 17 digits, its contents are the event's WARC records
//! as they are (plain, gzip or zstd members), so that nothing is lost between WARC and here. A second index, `NAME.urls`,
//! leads from a URL to its newest capture. Inode and contents lie side by side: a capture costs one read of an index and
//! one of the data file. In disk order the events are a WARC file.
//!
//! Events are opaque here: callers that write and read WARC records pass bytes. An event without a URL (a
//! warcinfo record) has an empty one, and is in no index by URL.

mod name;
mod read;
mod repair;
mod scan;
#[cfg(test)]
mod tests;

pub use crate::filesys::{repair, verify};
pub use name::{Form, nameable};
pub use read::{EventReader, Page};
pub use repair::{compact, cut, edit};
pub(crate) use repair::{rebuild_urls, verify_urls};
pub use scan::{PageRef, PageScan};

use crate::design::{PAGE_READ_START, PAGES_ISZ, PURPOSE_URLS};
use crate::error::shown;
use crate::file::superblock_of;
use crate::filesys::inode::{name_at, next_inode};
use crate::filesys::{Contents, CreateFilesys, Filesys, FsPaths, open_index};
use crate::hindex::{CreateHindex, Found, Keyed, roomy};
use crate::lock::{self, Locks};
use crate::num::signed;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Hindex, Keys, Kvseq, Result, Settings, aside, h64};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
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
        let htsize = roomy(self.expected);
        let create = CreateFilesys {
            isz: self.isz,
            htsize,
            append_only: Some(self.timemp),
            // The first spares looking for the last file when the container is opened again.
            extra: vec![(Name::LASTMT, i64::MIN), (Name::PGREAD, signed(PAGE_READ_START))],
            ..CreateFilesys::new(self.fsgen)
        };
        let locks = Locks::take(settings, [paths.lock()])?;
        create.publish(paths, settings)?;
        aside::remove_all(settings, &[paths.urls()])?;
        CreateHindex { htsize, ..url_index(Some(self.fsgen)) }.publish(&paths.urls(), settings)?;
        Ok(Pages { _locks: locks, ..Pages::open_as(paths, Access::Write, settings, false)? })
    }
}

/// The parameters of the index by URL. A data file without FSGEN has indexes without it.
fn url_index(fsgen: Option<i64>) -> CreateHindex {
    let extra = fsgen.map(|fsgen| (Name::FSGEN, fsgen)).into_iter().collect();
    CreateHindex { purpose: Purpose::fixed(PURPOSE_URLS), extra, ..CreateHindex::default() }
}

/// Where the index by URL is.
pub fn url_index_path(paths: &FsPaths) -> PathBuf {
    paths.urls()
}

/// Whether a filesys is a container of captures: there is an index by URL, or the data file says that there should be.
pub(crate) fn has_urls(paths: &FsPaths, settings: &Settings) -> Result<bool> {
    let says_so = || superblock_of(&paths.data(), settings).is_ok_and(|sb| sb.value(Name::PGREAD).is_some());
    Ok(settings.fs.exists(&paths.urls())? || says_so())
}

/// An open container of captures.
#[derive(Debug)]
pub struct Pages {
    fs: Filesys,
    urls: Hindex,
    file: Arc<str>,
    _locks: Locks,
}

/// The captures of a data file as what the index by URL points to: the newest of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Urls<'a>(pub &'a Kvseq);

impl Keys for Urls<'_> {
    fn container(&self) -> &Kvseq {
        self.0
    }

    fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        Ok(name_at(self.0, ptr)?.is_some_and(|name| name::split(&name).is_some_and(|parts| parts.url == key)))
    }

    fn key_at(&self, ptr: u64) -> Result<Vec<u8>> {
        let name = name_at(self.0, ptr)?;
        let parts = name.as_deref().and_then(name::split);
        let parts = parts.ok_or_else(|| Error::corrupt(self.0.path(), ptr, "the inode of a capture", "another"))?;
        Ok(parts.url.to_vec())
    }

    fn each(&self, take: &mut dyn FnMut(Keyed<'_>) -> Result<()>) -> Result<()> {
        let mut scan = self.0.scan().with_deleted().keys_only();
        while let Some((ptr, deleted, inode)) = next_inode(self.0, &mut scan)? {
            let Ok(inode) = inode else { continue };
            if let Some(parts) = name::split(&inode.name).filter(|parts| !parts.url.is_empty()) {
                take(Keyed { ptr, deleted, key: parts.url, rank: rank(parts.time) })?;
            }
        }
        Ok(())
    }

    /// Captures that a newer one replaces are in no index, as are those that were deleted by hand.
    fn are_all_found(&self) -> bool {
        false
    }
}

/// A time as an unsigned number, in the same order.
fn rank(time: UnixMillis) -> u64 {
    time.0.wrapping_sub(i64::MIN).cast_unsigned()
}

impl Pages {
    /// Opens a container of captures; see [`Filesys::open`].
    pub fn open(paths: &FsPaths, access: Access, settings: &Settings) -> Result<Self> {
        paths.expect_data(settings)?;
        let open = |writer_lives| Self::open_as(paths, access, settings, writer_lives);
        let (pages, locks) = lock::open(settings, access, &paths.lock(), &[], open)?;
        Ok(Pages { _locks: locks, ..pages })
    }

    /// The same for a caller that takes care of the lock, and knows whether another process writes.
    fn open_as(paths: &FsPaths, access: Access, settings: &Settings, writer_lives: bool) -> Result<Self> {
        let fs = Filesys::open_as(paths, access, settings, writer_lives)?;
        if !fs.is_append_only() {
            let found = "a filesys that is not append-only";
            return Err(Error::corrupt(&paths.data(), 0, "a container of captures", found));
        }
        let why = "it is missing: no container of captures, or one that lost its index by URL";
        let urls = open_index(fs.data(), &paths.urls(), writer_lives, why)?;
        let file = paths.data().file_name().unwrap_or_default().to_string_lossy().into();
        Ok(Pages { fs, urls, file, _locks: Locks::default() })
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
        self.store(url, time, form, Contents::Bytes(event))
    }

    /// The same for an event of any size, of which memory holds a part. If reading it fails nothing is kept.
    pub fn append_from(&mut self, url: &[u8], time: UnixMillis, form: Form, event: &mut dyn Read) -> Result<Place> {
        self.store(url, time, form, Contents::Reader(event, &format!("event of {}", shown(url))))
    }

    fn store(&mut self, url: &[u8], time: UnixMillis, form: Form, event: Contents<'_>) -> Result<Place> {
        let (place, name) = self.begin(url, time)?;
        // Times of files never go back, those of captures may: the name has the capture's own.
        let wanted = time.0.div_euclid(1000);
        let mtime = self.fs.find_last_mtime()?.map_or(wanted, |last| wanted.max(last));
        let inode = self.fs.put_at(place, &name, form.to_type(), Some(mtime), event)?;
        self.learn(self.fs.data().end() - inode.ptr);
        self.enter(url, time, inode.ptr)?;
        if self.fs.settle_data()? {
            self.sync()?;
        }
        Ok(self.event_place(&inode))
    }

    /// Finds a free name, and the cell for it.
    fn begin(&mut self, url: &[u8], time: UnixMillis) -> Result<(Found<()>, Vec<u8>)> {
        if !name::can_write(time) {
            let why = format!("a time outside the years 0 to 9999: {}", time.0);
            return Err(Error::refused(&self.fs.paths().data(), why));
        }
        self.fs.prepare()?;
        if self.urls.wants_resize().is_some() {
            // Cells must not reach the file before the captures they lead to: older ones would be lost to readers.
            self.fs.data.flush()?;
            self.urls.make_room(&Urls(self.fs.data()))?;
        }
        // Many captures of one moment are numbered without a gap: the last number is found by halving.
        let (mut taken, mut free) = (None, 0);
        while self.fs.contains(&name::join(url, time, free))? {
            taken = Some(free);
            free = free * 2 + 1;
        }
        while let Some(last) = taken.filter(|last| last + 1 < free) {
            let middle = last + (free - last) / 2;
            if self.fs.contains(&name::join(url, time, middle))? {
                taken = Some(middle);
            } else {
                free = middle;
            }
        }
        let name = name::join(url, time, free);
        Ok(match self.fs.find(&name)? {
            Found::Absent { cell, free } => (Found::Absent { cell, free }, name),
            Found::Here { .. } | Found::Full => (Found::Full, name),
        })
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
            self.fs.data.flush()?;
        }
        match found {
            Found::Here { what: other, .. } if other > time => Ok(()),
            Found::Here { cell, .. } => self.urls.redirect(cell, hash, ptr),
            absent => self.urls.occupy(absent, hash, ptr),
        }
    }

    /// Hands everything to the system: readers see it, a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.fs.together(Some(&mut self.urls)).flush()
    }

    /// Makes everything durable, as far as the settings want it. Returns where the data file ends.
    pub fn sync(&mut self) -> Result<u64> {
        self.fs.together(Some(&mut self.urls)).sync()?;
        Ok(self.fs.data().end())
    }

    /// Syncs and closes.
    pub fn close(mut self) -> Result<()> {
        self.fs.together(Some(&mut self.urls)).close()
    }

    /// For a reader: looks how far the writer is by now.
    pub fn refresh(&mut self) -> Result<()> {
        self.fs.refresh()?;
        self.urls.refresh()?;
        // Asked last: a compaction puts another data file in its place first, then the rest.
        if !self.fs.is_current_with(&self.urls)? {
            *self = Self::open(self.fs.paths(), Access::Read, &self.fs.settings)?;
        }
        Ok(())
    }
}
