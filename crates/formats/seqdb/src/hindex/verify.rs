//! Checking a table against its container, within a memory budget and in time proportional to both.
//!
//! ```text
//! cells, in order ──(pointer, cell, hash)──► sort by pointer ──┐
//! container, in order ─────────────────────────────────────────┴─► on a boundary? deleted? hash right?
//!        ├──(cell, hash)──► sort by cell ──► beside the cells again: no free cell between home and cell
//!        ├──(hash, key)───► sort ──► equal neighbours: a key twice
//!        └──(hash, key) of entries without a cell ──► sort ──► beside those: a key that is not found
//! ```

use super::Hindex;
use crate::design::{DELETED_CELL, FREE_CELL};
use crate::findings::Findings;
use crate::open::dir_of;
use crate::sorting::{InOrder, Sort, number, pair};
use crate::superblock::Name;
use crate::{Access, Error, Kvseq, OnProgress, Progress, Result, Settings, h64};
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

/// Takes an indexed entry: pointer, whether it is deleted, its key.
pub(crate) type Take<'a> = &'a mut dyn FnMut(u64, bool, &[u8]) -> Result<()>;

/// The entries an index is about: a kvseq's own, or the inodes of a filesys.
pub(crate) trait Subject {
    /// Hands over every indexed entry in the order of the container.
    fn each(&self, take: Take<'_>) -> Result<()>;

    /// Whether the key of every entry not deleted must be found. (An entry that a later one of the same key replaces needs
    /// no cell, but is worth a warning.)
    fn expects_all(&self) -> bool;
}

impl Subject for Kvseq {
    fn each(&self, take: Take<'_>) -> Result<()> {
        let mut scan = self.scan().with_deleted().keys_only();
        while let Some(item) = scan.next_entry()? {
            take(item.ptr, item.deleted, item.key)?;
        }
        Ok(())
    }

    fn expects_all(&self) -> bool {
        true
    }
}

/// Checks the index at `path` against `container`; faults go to `findings`.
pub fn verify(
    path: &Path,
    container: &Kvseq,
    settings: &Settings,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<IndexFindings> {
    verify_over(path, container, settings, findings, progress)
}

/// The same over any container.
pub(crate) fn verify_over(
    path: &Path,
    subject: &dyn Subject,
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
    let Sorted { by_cell, by_key, without_cell } = check.container(subject, by_pointer)?;
    progress(Progress { stage: "checking index", done: 2, total: 3 });
    check.paths(by_cell)?;
    check.keys(by_key, without_cell)?;
    Ok(check.counted)
}

/// What the container says of cells: (cell, hash) and (hash, key part, cell) of good ones, and (hash, key part) of the
/// entries not deleted that have none.
struct Sorted {
    by_cell: InOrder,
    by_key: InOrder,
    without_cell: InOrder,
}

struct Check<'a> {
    index: &'a Hindex,
    settings: &'a Settings,
    findings: &'a mut Findings,
    counted: IndexFindings,
}

impl<'a> Check<'a> {
    fn sort(&self) -> Sort<'a> {
        Sort::new(self.settings, dir_of(self.index.path()), 3)
    }

    fn offset(&self, cell: u64) -> u64 {
        self.index.sb.sbsize() + 8 * self.index.cellsz * cell
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
        let path = self.index.path();
        for (cell, second) in bad {
            let at = self.offset(cell);
            self.findings.fault(path, at, "no hash in a cell without a key", format!("{second:016x}"));
        }
        for (name, count) in [(Name::ENTRIES, live + deleted), (Name::AENTRIES, live)] {
            if self.index.sb.value(name).is_some_and(|stored| i64::try_from(count) != Ok(stored)) {
                self.findings.take(self.index.sb.fault(name, "the number of cells there are"))?;
            }
        }
        if free == 0 {
            self.findings.fault(path, self.index.sb.sbsize(), "a free cell", "none");
        }
        (self.counted.keys, self.counted.deleted) = (live, deleted);
        self.counted.longest_run = runs.longest();
        if free > 0 && !self.counted.is_searchable() {
            let found = format!("{} cells in a row without one", self.counted.longest_run);
            self.findings.warning(path, self.index.sb.sbsize(), "free cells within reach", found);
        }
        sort.finish()
    }

    /// Goes through container and pointers side by side.
    fn container(&mut self, subject: &dyn Subject, mut cells: InOrder) -> Result<Sorted> {
        let (mut by_cell, mut by_key, mut without_cell) = (self.sort(), self.sort(), self.sort());
        let path = self.index.path();
        let cellsz = self.index.cellsz;
        let mut next = read(&mut cells)?;
        let (findings, counted) = (&mut *self.findings, &mut self.counted);
        let offset = |cell: u64| self.index.sb.sbsize() + 8 * cellsz * cell;
        let mut take = |ptr: u64, deleted: bool, key: &[u8]| {
            let mut referenced = false;
            while let Some((to, cell, stored)) = next.filter(|n| n.0 <= ptr) {
                next = read(&mut cells)?;
                if to < ptr {
                    findings.fault(path, offset(cell), "a pointer to the start of an entry", to.to_string());
                    continue;
                }
                if referenced {
                    findings.fault(path, offset(cell), "one cell for an entry", format!("another for {to}"));
                    continue;
                }
                referenced = true;
                if deleted {
                    findings.fault(path, offset(cell), "a pointer to an entry not deleted", to.to_string());
                }
                let hash = h64(key);
                if cellsz == 2 && stored != hash {
                    findings.fault(path, offset(cell), format!("hash {hash:016x}"), format!("{stored:016x}"));
                    continue;
                }
                by_cell.push(&cell.to_be_bytes(), &hash.to_be_bytes())?;
                by_key.push(&part_of(hash, key), &cell.to_be_bytes())?;
            }
            if !referenced && !deleted {
                counted.unreferenced += 1;
                if subject.expects_all() {
                    without_cell.push(&part_of(h64(key), key), b"")?;
                }
            }
            Ok(())
        };
        let walked = subject.each(&mut take);
        match walked {
            Err(e @ (Error::TornEntry { .. } | Error::CorruptEntry { .. })) => self.findings.take(e)?,
            other => other?,
        }
        while let Some((to, cell, _)) = next {
            next = read(&mut cells)?;
            self.findings.fault(path, offset(cell), "a pointer to an entry", to.to_string());
        }
        if subject.expects_all() && self.counted.unreferenced > 0 {
            let found = format!("{} that have none", self.counted.unreferenced);
            self.findings.warning(path, self.index.sb.sbsize(), "a cell for every entry not deleted", found);
        }
        let (by_cell, by_key, without_cell) = (by_cell.finish()?, by_key.finish()?, without_cell.finish()?);
        Ok(Sorted { by_cell, by_key, without_cell })
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
        let offset = |cell: u64| index.sb.sbsize() + 8 * index.cellsz * cell;
        index.for_each_cell(&mut |cell, first, _| {
            if first == FREE_CELL {
                last_free = Some(cell);
            }
            let Some((_, hash)) = next.filter(|n| n.0 == cell) else { return Ok(()) };
            next = read_pair(&mut by_cell)?;
            let home = hash % index.htsize;
            let interrupted = if home <= cell {
                last_free.is_some_and(|free| free >= home)
            } else {
                last_free.is_some() || last_free_of_all.is_some_and(|free| free >= home)
            };
            if interrupted {
                findings.fault(index.path(), offset(cell), format!("no free cell after the home {home}"), "one");
            }
            Ok(())
        })
    }

    /// No key may be there twice, and none of an entry without a cell may be missing.
    fn keys(&mut self, mut by_key: InOrder, mut without_cell: InOrder) -> Result<()> {
        let mut last: Vec<u8> = Vec::new();
        let mut lost = 0u64;
        let mut next = without_cell.next_record()?.map(|(key, _)| key.to_vec());
        while let Some((key, cell)) = by_key.next_record()? {
            while let Some(wanted) = next.take_if(|wanted| wanted.as_slice() <= key) {
                lost += u64::from(wanted != key);
                next = without_cell.next_record()?.map(|(key, _)| key.to_vec());
            }
            // Longer keys are told apart by their first bytes and their length only: then nothing is claimed.
            if key == last && key.len() < 16 + KEY_PART {
                let at = self.index.sb.sbsize() + 8 * self.index.cellsz * number(cell, 0);
                self.findings.fault(self.index.path(), at, "each key once", "a key that has another cell");
            }
            last.clear();
            last.extend_from_slice(key);
        }
        while next.is_some() {
            lost += 1;
            next = without_cell.next_record()?.map(|(key, _)| key.to_vec());
        }
        if lost > 0 {
            let (path, at) = (self.index.path(), self.index.sb.sbsize());
            self.findings.fault(
                path,
                at,
                "to find the key of every entry not deleted",
                format!("{lost} without a cell"),
            );
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

/// Pointer, cell, stored hash.
fn read(sorted: &mut InOrder) -> Result<Option<(u64, u64, u64)>> {
    Ok(sorted.next_record()?.map(|(k, v)| (number(k, 0), number(v, 0), number(v, 1))))
}

/// Cell, hash.
fn read_pair(sorted: &mut InOrder) -> Result<Option<(u64, u64)>> {
    Ok(sorted.next_record()?.map(|(k, v)| (number(k, 0), number(v, 0))))
}
