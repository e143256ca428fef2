//! Checking a table against its container, within a memory budget and in time proportional to both.
//!
//! ```text
//! cells, in order ──(pointer, cell, hash)──► sort by pointer ──┐
//! container, in order ─────────────────────────────────────────┴─► on a boundary? deleted? hash right?
//!        ├──(cell, hash)──► sort by cell ──► beside the cells again: no free cell between home and cell
//!        └──(hash, key)───► sort ──► equal neighbours: a key with two cells, or none
//! ```

use super::{Hindex, Keyed, Keys};
use crate::design::{DELETED_CELL, FREE_CELL};
use crate::findings::Findings;
use crate::num::signed;
use crate::sorting::{InOrder, Sort, number, pair};
use crate::superblock::Name;
use crate::{Access, Error, OnProgress, Progress, Result, Settings, aside, h64};
use std::path::Path;

/// Bytes of a key that take part in the search for keys that are there twice.
const KEY_PART: usize = 1024;

/// What the verification of an index counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexFindings {
    /// Keys.
    pub keys: u64,
    /// Deleted cells.
    pub deleted: u64,
    /// Entries of the container, not deleted, that no cell points to.
    pub unreferenced: u64,
    /// Most cells in a row of which none is free: what a search may cost.
    pub longest_run: u64,
}

/// A table with more cells in a row of which none is free is not searched again and again: a malicious one would cost the
/// square of its size. At the load where tables are made larger, runs have some hundred cells at most.
const MAX_RUN: u64 = 1 << 16;

impl IndexFindings {
    /// Whether many searches can be afforded.
    pub(crate) fn is_searchable(&self) -> bool {
        self.longest_run <= MAX_RUN
    }
}

/// Finds the longest run of cells that are not free, around the end of the table.
#[derive(Default)]
struct Runs {
    /// The run that begins the table, once it has ended.
    first: Option<u64>,
    current: u64,
    longest: u64,
}

impl Runs {
    fn see(&mut self, free: bool) {
        if free {
            self.first.get_or_insert(self.current);
            self.current = 0;
        } else {
            self.current += 1;
            self.longest = self.longest.max(self.current);
        }
    }

    fn longest(&self) -> u64 {
        self.longest.max(self.current + self.first.unwrap_or(0))
    }
}

impl Hindex {
    /// Whether many searches can be afforded; reads the whole table.
    pub(crate) fn is_searchable(&self) -> Result<bool> {
        let mut runs = Runs::default();
        self.for_each_cell(&mut |_, first, _| {
            runs.see(first == FREE_CELL);
            Ok(())
        })?;
        Ok(runs.longest() <= MAX_RUN)
    }
}

/// Checks the index at `path` against what its cells should point to; faults go to `findings`.
pub fn verify(
    path: &Path,
    keys: &dyn Keys,
    settings: &Settings,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<IndexFindings> {
    let settings = Settings { buffer_index: false, ..settings.clone() };
    let index = match Hindex::open_anyway(path, Access::Read, &settings) {
        Ok(index) => index,
        Err(e) => return findings.take(e).map(|()| IndexFindings::default()),
    };
    if index.in_use {
        let found = match index.is_astray() {
            false => "SYNCSIZE 0: it was in use",
            true => "SYNCSIZE 1: its container was exchanged, and it was not rebuilt",
        };
        findings.fault(path, 0, "an index closed properly", found);
    }
    let mut check = Check { index: &index, settings: &settings, findings, counted: IndexFindings::default() };
    let by_pointer = check.cells()?;
    progress(Progress { stage: "checking index", done: 1, total: 3 });
    let (by_cell, by_key) = check.container(keys, by_pointer)?;
    progress(Progress { stage: "checking index", done: 2, total: 3 });
    check.paths(by_cell)?;
    check.keys(by_key)?;
    Ok(check.counted)
}

/// In place of the cell of an entry that has none.
const NO_CELL: u64 = u64::MAX;

struct Check<'a> {
    index: &'a Hindex,
    settings: &'a Settings,
    findings: &'a mut Findings,
    counted: IndexFindings,
}

impl<'a> Check<'a> {
    fn sort(&self) -> Sort<'a> {
        Sort::new(self.settings, aside::dir_of(self.index.path()), 3)
    }

    /// Looks at the cells themselves and sorts those in use by pointer.
    fn cells(&mut self) -> Result<InOrder> {
        let mut sort = self.sort();
        let (mut free, mut live, mut deleted) = (0u64, 0u64, 0u64);
        let mut bad = Vec::new();
        let mut runs = Runs::default();
        self.index.for_each_cell(&mut |cell, first, second| {
            runs.see(first == FREE_CELL);
            match first {
                FREE_CELL => free += 1,
                DELETED_CELL => deleted += 1,
                _ => live += 1,
            }
            if first == FREE_CELL || first == DELETED_CELL {
                if second != 0 && bad.len() < 1000 {
                    bad.push((cell, second));
                }
                return Ok(());
            }
            sort.push(&first.to_be_bytes(), &pair(cell, second))
        })?;
        let (path, sb) = (self.index.path(), self.index.superblock());
        for (cell, second) in bad {
            let found = format!("{second:016x}");
            self.findings.fault(path, self.index.offset(cell), "no hash in a cell without a key", found);
        }
        for (name, count) in [(Name::ENTRIES, live + deleted), (Name::AENTRIES, live)] {
            if sb.value(name).is_some_and(|stored| stored != signed(count)) {
                self.findings.take(sb.fault(name, "the number of cells there are"))?;
            }
        }
        if free == 0 {
            self.findings.fault(path, sb.sbsize(), "a free cell", "none");
        }
        (self.counted.keys, self.counted.deleted) = (live, deleted);
        self.counted.longest_run = runs.longest();
        if free > 0 && !self.counted.is_searchable() {
            let found = format!("{} cells in a row without one", self.counted.longest_run);
            self.findings.warning(path, sb.sbsize(), "free cells within reach", found);
        }
        sort.finish()
    }

    /// Goes through container and pointers side by side. Returns (cell, hash) of good cells, and (hash, key part) with the
    /// cell of each entry that has or needs one.
    fn container(&mut self, keys: &dyn Keys, cells: InOrder) -> Result<(InOrder, InOrder)> {
        let (mut by_cell, mut by_key) = (self.sort(), self.sort());
        let (index, counted) = (self.index, &mut self.counted);
        let (path, cellsz) = (index.path(), index.cellsz());
        let mut referenced = false;
        let offset = |cell| index.offset(cell);
        side_by_side(keys, cells, path, &offset, self.findings, &mut |entry, pointer, findings| {
            let Some(Pointer { to, from: cell, hash: stored }) = pointer else {
                if !std::mem::take(&mut referenced) && !entry.deleted {
                    counted.unreferenced += 1;
                    if keys.are_all_found() {
                        by_key.push(&part_of(h64(entry.key), entry.key), &NO_CELL.to_be_bytes())?;
                    }
                }
                return Ok(());
            };
            if std::mem::replace(&mut referenced, true) {
                findings.fault(path, offset(cell), "one cell for an entry", format!("another for {to}"));
                return Ok(());
            }
            if entry.deleted {
                findings.fault(path, offset(cell), "a pointer to an entry not deleted", to.to_string());
            }
            let hash = h64(entry.key);
            if cellsz == 2 && stored != hash {
                findings.fault(path, offset(cell), format!("hash {hash:016x}"), format!("{stored:016x}"));
                return Ok(());
            }
            by_cell.push(&cell.to_be_bytes(), &hash.to_be_bytes())?;
            by_key.push(&part_of(hash, entry.key), &cell.to_be_bytes())
        })?;
        if keys.are_all_found() && self.counted.unreferenced > 0 {
            let found = format!("{} that have none", self.counted.unreferenced);
            self.findings.warning(path, offset(0), "a cell for every entry not deleted", found);
        }
        Ok((by_cell.finish()?, by_key.finish()?))
    }

    /// No free cell may lie between a key's home and its cell, or a search would end there.
    fn paths(&mut self, mut by_cell: InOrder) -> Result<()> {
        // A search that wraps around passes every free cell from its home to the end of the table.
        let mut last_free_of_all = None;
        self.index.for_each_cell(&mut |cell, first, _| {
            if first == FREE_CELL {
                last_free_of_all = Some(cell);
            }
            Ok(())
        })?;
        let mut next = read_pair(&mut by_cell)?;
        let mut last_free: Option<u64> = None;
        let (index, findings) = (self.index, &mut *self.findings);
        index.for_each_cell(&mut |cell, first, _| {
            if first == FREE_CELL {
                last_free = Some(cell);
            }
            let Some((_, hash)) = next.filter(|n| n.0 == cell) else { return Ok(()) };
            next = read_pair(&mut by_cell)?;
            let home = hash % index.htsize();
            let interrupted = if home <= cell {
                last_free.is_some_and(|free| free >= home)
            } else {
                last_free.is_some() || last_free_of_all.is_some_and(|free| free >= home)
            };
            if interrupted {
                let expected = format!("no free cell after the home {home}");
                findings.fault(index.path(), index.offset(cell), expected, "one");
            }
            Ok(())
        })
    }

    /// No key may be there twice, and none of an entry without a cell may be missing.
    fn keys(&mut self, mut by_key: InOrder) -> Result<()> {
        let (mut last, mut lost) = (Vec::new(), 0u64);
        let (mut cells, mut without_cell) = (0, 0);
        loop {
            let next = by_key.next_record()?;
            if next.is_none_or(|(key, _)| key != last) {
                lost += if cells == 0 { without_cell } else { 0 };
                (cells, without_cell) = (0, 0);
            }
            let Some((key, cell)) = next else { break };
            match number(cell, 0) {
                NO_CELL => without_cell += 1,
                // Longer keys are compared by their first bytes and their length only: then nothing is claimed.
                cell if cells > 0 && key.len() < 16 + KEY_PART => {
                    let (path, at) = (self.index.path(), self.index.offset(cell));
                    self.findings.fault(path, at, "each key once", "a key that has another cell");
                }
                _ => cells += 1,
            }
            last.clear();
            last.extend_from_slice(key);
        }
        if lost > 0 {
            let (path, found) = (self.index.path(), format!("{lost} without a cell"));
            self.findings.fault(path, self.index.offset(0), "to find the key of every entry not deleted", found);
        }
        Ok(())
    }
}

/// What keys are sorted by: hash, length, first bytes.
fn part_of(hash: u64, key: &[u8]) -> Vec<u8> {
    let mut part = hash.to_be_bytes().to_vec();
    part.extend_from_slice(&(key.len() as u64).to_be_bytes());
    part.extend_from_slice(key.get(..KEY_PART).unwrap_or(key));
    part
}

/// A pointer into a container.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pointer {
    pub to: u64,
    /// The cell, or the position of the pair, that holds it.
    pub from: u64,
    /// The hash stored beside it.
    pub hash: u64,
}

/// Called with each pointer that leads to an entry, and after these with the entry alone.
pub(crate) type Met<'a> = &'a mut dyn FnMut(Keyed<'_>, Option<Pointer>, &mut Findings) -> Result<()>;

/// Goes through the entries of a container and the pointers of the file at `path`, which are sorted, side by side. One
/// that does not lead to an entry is a fault at its `offset`.
pub(crate) fn side_by_side(
    keys: &dyn Keys,
    mut pointers: InOrder,
    path: &Path,
    offset: &dyn Fn(u64) -> u64,
    findings: &mut Findings,
    met: Met<'_>,
) -> Result<()> {
    let mut read = || -> Result<Option<Pointer>> {
        let record = pointers.next_record()?;
        Ok(record.map(|(key, value)| Pointer { to: number(key, 0), from: number(value, 0), hash: number(value, 1) }))
    };
    let mut next = read()?;
    let walked = keys.each(&mut |entry| {
        while let Some(pointer) = next.filter(|pointer| pointer.to <= entry.ptr) {
            next = read()?;
            if pointer.to == entry.ptr {
                met(entry, Some(pointer), findings)?;
            } else {
                let at = offset(pointer.from);
                findings.fault(path, at, "a pointer to the start of an entry", pointer.to.to_string());
            }
        }
        met(entry, None, findings)
    });
    match walked {
        Err(e @ (Error::TornEntry { .. } | Error::CorruptEntry { .. })) => findings.take(e)?,
        other => other?,
    }
    while let Some(pointer) = next {
        next = read()?;
        findings.fault(path, offset(pointer.from), "a pointer to an entry", pointer.to.to_string());
    }
    Ok(())
}

/// Cell, hash.
fn read_pair(sorted: &mut InOrder) -> Result<Option<(u64, u64)>> {
    Ok(sorted.next_record()?.map(|(k, v)| (number(k, 0), number(v, 0))))
}
