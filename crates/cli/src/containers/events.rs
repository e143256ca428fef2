//! The captures of a container: its events as archives of a few records, at the places they have in its data file.

use super::contents::event;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_model::{CaptureSource, Carries, DoorError, Entry, Place};
use trawl_seqdb::pages::{PageRef, PageScan};
use trawl_seqdb::{Access, Pages, Settings, Whole};
use trawl_warc::{Limits, WarcSource};

/// Opens the container that a file is part of, if it holds captures.
pub fn captures(path: &Path, settings: &Settings) -> anyhow::Result<Option<Pages>> {
    Ok(match Whole::of(path, settings)? {
        Whole::Pages(paths) => Some(Pages::open(&paths, Access::Read, settings)?),
        _ => None,
    })
}

/// An event and where it begins.
pub struct PlacedEvent {
    /// Ends where the event does.
    pub file: Arc<dyn ReadAt>,
    /// Offset of its first record.
    pub offset: u64,
}

impl PlacedEvent {
    /// The event of a page; the name is that of the data file.
    pub fn of(page: &PageRef<'_>, data: &Path, settings: &Settings) -> anyhow::Result<Self> {
        let (name, offset) = (data.to_owned(), page.place.offset);
        Ok(PlacedEvent { file: Arc::new(Shifted { name, offset, inner: event(page, settings)? }), offset })
    }
}

/// Bytes that begin at an offset.
struct Shifted {
    name: PathBuf,
    offset: u64,
    inner: Arc<dyn ReadAt>,
}

impl ReadAt for Shifted {
    fn name(&self) -> &Path {
        &self.name
    }

    fn len(&self) -> u64 {
        self.offset + self.inner.len()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> trawl_io::Result<()> {
        match offset.checked_sub(self.offset) {
            Some(inside) => self.inner.read_at(inside, buf),
            None => {
                let (path, wanted) = (self.name.clone(), buf.len() as u64);
                Err(trawl_io::Error::Short { path, offset, wanted, found: 0 })
            }
        }
    }
}

/// Hands every event of a container to `each`.
pub fn each_event(
    pages: &Pages,
    settings: &Settings,
    each: &mut dyn FnMut(PlacedEvent) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut scan = pages.scan();
    while let Some(page) = scan.next_page()? {
        each(PlacedEvent::of(&page, pages.filesys().data().path(), settings)?)?;
    }
    Ok(())
}

/// Captures out of a container: the door out.
pub struct PagesSource<'a> {
    pages: &'a Pages,
    settings: &'a Settings,
    scan: PageScan<'a>,
    current: Option<WarcSource>,
}

impl<'a> PagesSource<'a> {
    /// All captures, in the order they were stored.
    pub fn new(pages: &'a Pages, settings: &'a Settings) -> Self {
        PagesSource { pages, settings, scan: pages.scan(), current: None }
    }
}

impl CaptureSource for PagesSource<'_> {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        loop {
            if let Some(source) = &mut self.current
                && let Some(entry) = source.next_owned()?
            {
                return Ok(Some(entry));
            }
            self.current = None;
            let Some(page) = self.scan.next_page()? else { return Ok(None) };
            let placed = PlacedEvent::of(&page, self.pages.filesys().data().path(), self.settings)
                .map_err(|e| DoorError::new(trawl_model::Advice::Stop, std::io::Error::other(e)))?;
            self.current = Some(WarcSource::over_from(placed.file, placed.offset, Limits::default(), true));
        }
    }

    fn carries(&self) -> Carries {
        Carries::all()
    }
}
