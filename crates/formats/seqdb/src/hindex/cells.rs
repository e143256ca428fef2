//! The cells of a hash table: in the file, and in memory as far as they were touched.

use super::Found;
use crate::design::{DELETED_CELL, FREE_CELL};
use crate::num::index;
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
/// Dirty pages written by one call, and pages read by one where the whole table is.
const MAX_RUN: usize = 256;

#[derive(Debug)]
struct Page {
    dirty: bool,
    bytes: [u8; PAGE],
}

#[derive(Debug)]
pub(super) struct Cells {
    /// Offset of the first cell in the file.
    body: u64,
    /// Bytes of all cells, and of one: 8 or 16.
    size: u64,
    width: usize,
    pages: Vec<Option<Box<Page>>>,
    /// Pages to be written.
    dirty: Vec<usize>,
    resident: usize,
    max_resident: usize,
}

/// Both words of a cell; the second is 0 where there is none.
#[inline]
fn words(cell: &[u8]) -> (u64, u64) {
    (number(cell, 0), number(cell, 1))
}

impl Cells {
    /// A table that keeps at most `memory` bytes of cells.
    pub fn new(body: u64, htsize: u64, width: usize, memory: u64) -> Self {
        let max_resident = index(memory / PAGE as u64).max(16);
        let size = htsize * width as u64;
        Cells { body, size, width, pages: Vec::new(), dirty: Vec::new(), resident: 0, max_resident }
    }

    /// The page and the offset in it of a cell.
    #[inline]
    fn locate(&self, cell: u64) -> (usize, usize) {
        let at = index(cell * self.width as u64);
        (at / PAGE, at % PAGE)
    }

    /// A page in memory, as far as it belongs to the table: the last may be short.
    #[inline]
    fn resident(&self, page: usize) -> Option<&[u8]> {
        let resident = self.pages.get(page)?.as_ref()?;
        Some(resident.bytes.split_at(self.used(page)).0)
    }

    #[inline]
    fn used(&self, page: usize) -> usize {
        index(self.size - page as u64 * PAGE as u64).min(PAGE)
    }

    fn offset(&self, page: usize) -> u64 {
        self.body + page as u64 * PAGE as u64
    }

    /// Cells from `cell` on: up to the end of its page if that is in memory, else as many as one read gives.
    #[inline]
    fn run<'a>(&'a self, file: &dyn File, cell: u64, window: &'a mut [u8]) -> Result<&'a [u8]> {
        let (page, at) = self.locate(cell);
        if let Some(bytes) = self.resident(page) {
            return Ok(bytes.split_at(at).1);
        }
        // Bytes of the file count only where no page lies over them.
        let limit = if self.resident == 0 { usize::MAX } else { PAGE - at };
        let start = cell * self.width as u64;
        let n = index(self.size - start).min(limit).min(window.len());
        let (buf, _) = window.split_at_mut(n);
        file.read_exact_at(self.body + start, buf)?;
        Ok(buf)
    }

    /// Searches for a key with this hash, from its home on and around the table: see [`super::Hindex::search`].
    #[inline]
    pub fn search<T>(
        &self,
        file: &dyn File,
        hash: u64,
        mut is_it: impl FnMut(u64) -> Result<Option<T>>,
    ) -> Result<Found<T>> {
        let htsize = self.size / self.width as u64;
        let (mut cell, mut left) = (hash % htsize, htsize);
        let mut reusable = None;
        let mut window = [0; WINDOW];
        while left > 0 {
            for bytes in self.run(file, cell, &mut window)?.chunks_exact(self.width).take(index(left)) {
                let (first, second) = words(bytes);
                match first {
                    FREE_CELL => {
                        return Ok(Found::Absent { cell: reusable.unwrap_or(cell), free: reusable.is_none() });
                    }
                    DELETED_CELL => reusable = reusable.or(Some(cell)),
                    ptr if self.width == 8 || second == hash => {
                        if let Some(what) = is_it(ptr)? {
                            return Ok(Found::Here { cell, ptr, what });
                        }
                    }
                    _ => {}
                }
                cell += 1;
                left -= 1;
            }
            if cell >= htsize {
                cell = 0;
            }
        }
        Ok(reusable.map_or(Found::Full, |cell| Found::Absent { cell, free: false }))
    }

    /// Loads the page of a cell, making room by writing and forgetting all pages if memory is full.
    fn load(&mut self, file: &dyn File, cell: u64) -> Result<()> {
        if self.pages.is_empty() {
            let count = self.size.div_ceil(PAGE as u64);
            if count > MAX_PAGES {
                let (path, len) = (file.path().into(), self.size);
                return Err(Error::TooLong { path, what: "hash table", len, limit: MAX_PAGES * PAGE as u64 });
            }
            self.pages.resize_with(index(count), || None);
        }
        let (page, _) = self.locate(cell);
        if self.resident(page).is_some() {
            return Ok(());
        }
        if self.resident >= self.max_resident {
            self.write_back(file)?;
            self.pages.iter_mut().for_each(|p| *p = None);
            self.resident = 0;
        }
        let mut new = Box::new(Page { dirty: false, bytes: [0; PAGE] });
        file.read_exact_at(self.offset(page), new.bytes.split_at_mut(self.used(page)).0)?;
        if let Some(slot) = self.pages.get_mut(page) {
            *slot = Some(new);
            self.resident += 1;
        }
        Ok(())
    }

    /// Whether loading the page of a cell would write others out.
    pub fn is_crowded_out(&self, cell: u64) -> bool {
        self.resident >= self.max_resident && self.resident(self.locate(cell).0).is_none()
    }

    /// Loads all pages, however many.
    pub fn load_all(&mut self, file: &dyn File) -> Result<()> {
        self.max_resident = usize::MAX;
        let cells = (0..self.size / self.width as u64).step_by(PAGE / self.width);
        cells.into_iter().try_for_each(|cell| self.load(file, cell))
    }

    /// Changes a cell in memory.
    #[inline]
    pub fn set(&mut self, file: &dyn File, cell: u64, first: u64, second: u64) -> Result<()> {
        self.load(file, cell)?;
        let (number, at) = self.locate(cell);
        let Some(Some(page)) = self.pages.get_mut(number) else {
            return Err(Error::BadPointer { path: file.path().into(), ptr: self.body + cell * self.width as u64 });
        };
        let target = page.bytes.split_at_mut(at).1.split_at_mut(self.width).0;
        target.copy_from_slice(pair(first, second).split_at(self.width).0);
        if !std::mem::replace(&mut page.dirty, true) {
            self.dirty.push(number);
        }
        Ok(())
    }

    /// Whether a page waits to be written.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Writes dirty pages, neighbours together.
    pub fn write_back(&mut self, file: &dyn File) -> Result<()> {
        self.dirty.sort_unstable();
        let mut buf = Vec::new();
        for run in self.dirty.chunk_by(|a, b| a + 1 == *b).flat_map(|run| run.chunks(MAX_RUN)) {
            buf.clear();
            run.iter().filter_map(|page| self.resident(*page)).for_each(|bytes| buf.extend_from_slice(bytes));
            if let Some(first) = run.first() {
                file.write_at(self.offset(*first), &buf)?;
            }
        }
        for number in self.dirty.drain(..) {
            if let Some(Some(page)) = self.pages.get_mut(number) {
                page.dirty = false;
            }
        }
        Ok(())
    }

    /// The whole table, cell by cell in order, as it is in memory and file together.
    pub fn for_each(&self, file: &dyn File, each: &mut dyn FnMut(u64, u64, u64) -> Result<()>) -> Result<()> {
        let (mut cell, mut window) = (0, vec![0; MAX_RUN * PAGE]);
        while cell * (self.width as u64) < self.size {
            for bytes in self.run(file, cell, &mut window)?.chunks_exact(self.width) {
                let (first, second) = words(bytes);
                each(cell, first, second)?;
                cell += 1;
            }
        }
        Ok(())
    }
}
