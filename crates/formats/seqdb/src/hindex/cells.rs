//! The cells of a hash table: in the file, and in memory as far as they were touched.

use crate::open::read_up_to;
use crate::sorting::{number, pair};
use crate::{Error, Result};
use trawl_io::File;

/// Cells are kept, and written back, in pages of this many bytes.
const PAGE: usize = 4096;
/// Bytes read at once when the table is not in memory: 64 cells with hashes, which at the highest load is as far as 9995
/// of 10000 searches for keys go.
const WINDOW: usize = 1024;
/// More pages than this are not managed: a table of 1 TiB.
const MAX_PAGES: u64 = 1 << 28;
/// Dirty pages written by one call.
const MAX_RUN: usize = 256;

type Page = Box<[u8; PAGE]>;

#[derive(Debug)]
pub(super) struct Cells {
    /// Offset of the first cell in the file.
    body: u64,
    htsize: u64,
    /// Bytes of a cell: 8 or 16.
    width: usize,
    pages: Vec<Option<Page>>,
    /// Pages to be written, one bit each.
    dirty: Vec<u64>,
    resident: usize,
    max_resident: usize,
}

/// Both words of a cell; the second is 0 where there is none.
#[inline]
pub(super) fn words(cell: &[u8]) -> (u64, u64) {
    (number(cell, 0), number(cell, 1))
}

impl Cells {
    /// A table that keeps at most `memory` bytes of cells.
    pub fn new(body: u64, htsize: u64, width: usize, memory: u64) -> Self {
        let max_resident = usize::try_from(memory / PAGE as u64).unwrap_or(usize::MAX).max(16);
        Cells { body, htsize, width, pages: Vec::new(), dirty: Vec::new(), resident: 0, max_resident }
    }

    fn page_count(&self) -> u64 {
        (self.htsize * self.width as u64).div_ceil(PAGE as u64)
    }

    /// The page and the offset in it of a cell.
    #[inline]
    fn locate(&self, cell: u64) -> (usize, usize) {
        let at = cell * self.width as u64;
        let page = usize::try_from(at / PAGE as u64).unwrap_or(usize::MAX);
        (page, usize::try_from(at % PAGE as u64).unwrap_or(0))
    }

    /// Bytes of a page that belong to the table: the last may be short.
    fn used(&self, page: usize) -> usize {
        let end = self.htsize * self.width as u64;
        usize::try_from(end.saturating_sub(page as u64 * PAGE as u64)).unwrap_or(PAGE).min(PAGE)
    }

    fn offset(&self, page: usize) -> u64 {
        self.body + page as u64 * PAGE as u64
    }

    /// Cells from `cell` on: up to the end of its page if that is in memory, else as many as one read gives.
    #[inline]
    pub fn run<'a>(&'a self, file: &dyn File, cell: u64, window: &'a mut Window) -> Result<&'a [u8]> {
        let (page, at) = self.locate(cell);
        if let Some(Some(bytes)) = self.pages.get(page) {
            return Ok(bytes.get(at..self.used(page)).unwrap_or_default());
        }
        // Bytes of the file count only where no page lies over them.
        let limit = if self.resident == 0 { u64::MAX } else { (PAGE - at) as u64 };
        let left = (self.htsize - cell) * self.width as u64;
        let n = usize::try_from(limit.min(left)).unwrap_or(WINDOW).min(WINDOW);
        let buf = window.0.get_mut(..n).unwrap_or_default();
        file.read_exact_at(self.body + cell * self.width as u64, buf)?;
        Ok(buf)
    }

    /// Loads the page of a cell, making room by writing and forgetting all pages if memory is full.
    pub fn load(&mut self, file: &dyn File, cell: u64) -> Result<()> {
        if self.pages.is_empty() {
            let count = self.page_count();
            if count > MAX_PAGES {
                let (path, len) = (file.path().into(), count * PAGE as u64);
                return Err(Error::TooLong { path, what: "hash table", len, limit: MAX_PAGES * PAGE as u64 });
            }
            let count = usize::try_from(count).unwrap_or(0);
            self.pages.resize_with(count, || None);
            self.dirty = vec![0; count.div_ceil(64)];
        }
        let (page, _) = self.locate(cell);
        if matches!(self.pages.get(page), Some(Some(_))) {
            return Ok(());
        }
        if self.resident >= self.max_resident {
            self.write_back(file)?;
            self.pages.iter_mut().for_each(|p| *p = None);
            self.resident = 0;
        }
        let mut bytes: Page = Box::new([0; PAGE]);
        let used = self.used(page);
        file.read_exact_at(self.offset(page), bytes.get_mut(..used).unwrap_or_default())?;
        if let Some(slot) = self.pages.get_mut(page) {
            *slot = Some(bytes);
            self.resident += 1;
        }
        Ok(())
    }

    /// Whether loading the page of a cell would write others out.
    pub fn is_crowded_out(&self, cell: u64) -> bool {
        let (page, _) = self.locate(cell);
        self.resident >= self.max_resident && !matches!(self.pages.get(page), Some(Some(_)))
    }

    /// Loads all pages, however many.
    pub fn load_all(&mut self, file: &dyn File) -> Result<()> {
        self.max_resident = usize::MAX;
        let per_page = (PAGE / self.width) as u64;
        for page in 0..self.page_count() {
            self.load(file, page * per_page)?;
        }
        Ok(())
    }

    /// Changes a cell whose page was loaded.
    #[inline]
    pub fn set(&mut self, cell: u64, first: u64, second: u64) {
        let (page, at) = self.locate(cell);
        let Some(Some(bytes)) = self.pages.get_mut(page) else { return };
        let both = pair(first, second);
        if let (Some(target), Some(source)) = (bytes.get_mut(at..at + self.width), both.get(..self.width)) {
            target.copy_from_slice(source);
        }
        if let Some(bits) = self.dirty.get_mut(page / 64) {
            *bits |= 1 << (page % 64);
        }
    }

    /// Whether a page waits to be written.
    pub fn is_dirty(&self) -> bool {
        self.dirty.iter().any(|bits| *bits != 0)
    }

    /// Writes dirty pages, neighbours together.
    pub fn write_back(&mut self, file: &dyn File) -> Result<()> {
        let mut buf = Vec::new();
        let mut page = 0;
        while page < self.pages.len() {
            match self.dirty.get(page / 64) {
                Some(0) => page = (page / 64 + 1) * 64,
                Some(bits) if bits & (1 << (page % 64)) == 0 => page += 1,
                _ => {
                    let end = self.dirty_run(page);
                    buf.clear();
                    for p in page..end {
                        if let Some(Some(bytes)) = self.pages.get(p) {
                            buf.extend_from_slice(bytes.get(..self.used(p)).unwrap_or_default());
                        }
                    }
                    file.write_at(self.offset(page), &buf)?;
                    for p in page..end {
                        if let Some(bits) = self.dirty.get_mut(p / 64) {
                            *bits &= !(1 << (p % 64));
                        }
                    }
                    page = end;
                }
            }
        }
        Ok(())
    }

    /// One past the last dirty page of the run that starts at `page`.
    fn dirty_run(&self, page: usize) -> usize {
        let is_dirty = |p: usize| self.dirty.get(p / 64).is_some_and(|bits| bits & (1 << (p % 64)) != 0);
        (page..self.pages.len().min(page + MAX_RUN))
            .find(|p| !is_dirty(*p))
            .unwrap_or(self.pages.len().min(page + MAX_RUN))
    }

    /// The whole table, cell by cell in order, as it is in memory and file together.
    pub fn for_each(&self, file: &dyn File, each: &mut dyn FnMut(u64, u64, u64) -> Result<()>) -> Result<()> {
        let mut cell = 0;
        let mut big = vec![0; 64 * PAGE];
        let mut window = Window::default();
        while cell < self.htsize {
            let run = if self.resident == 0 {
                let left = (self.htsize - cell) * self.width as u64;
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(big.len());
                let buf = big.get_mut(..n).unwrap_or_default();
                let at = self.body + cell * self.width as u64;
                let got = read_up_to(file, at, buf)?;
                if got < n {
                    let (wanted, found) = (n as u64, got as u64);
                    return Err(trawl_io::Error::Short { path: file.path().into(), offset: at, wanted, found }.into());
                }
                &*buf
            } else {
                self.run(file, cell, &mut window)?
            };
            for bytes in run.chunks_exact(self.width) {
                let (first, second) = words(bytes);
                each(cell, first, second)?;
                cell += 1;
            }
        }
        Ok(())
    }
}

/// Room for one read of cells.
#[derive(Debug)]
pub(super) struct Window([u8; WINDOW]);

impl Default for Window {
    fn default() -> Self {
        Window([0; WINDOW])
    }
}
