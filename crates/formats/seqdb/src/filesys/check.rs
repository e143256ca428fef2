//! Checking a filesys: every file, every pointer, every counter. Memory is bounded; what must be matched is sorted.

use super::handle::extent_at;
use super::inode::{FsKey, Inode, Names, next_inode};
use super::time::Timefile;
use super::{FsPaths, check_data, expect_generation};
use crate::aside::{self, dir_of};
use crate::findings::Findings;
use crate::hindex::{self, Hindex};
use crate::progress::telling;
use crate::sorting::{InOrder, Sort};
use crate::superblock::Name;
use crate::{Access, Keys, Kind, Kvseq, OnProgress, Result, Settings, kvseq, lock, pages};
use std::path::Path;

/// What a check counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FsFindings {
    /// Existing files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Entries of the data file that no filesys wrote.
    pub foreign: u64,
    /// Data entries that no file uses.
    pub orphans: u64,
}

/// Checks the files of a filesys and that they belong together; faults go to `findings`. Refused while somebody writes.
pub fn verify(
    paths: &FsPaths,
    settings: &Settings,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<FsFindings> {
    let _alone = super::create::lock_alone(paths, settings)?;
    paths.expect_data(settings)?;
    lock::refuse_written(settings, &paths.lock())?;
    aside::note_copies(settings, &paths.copies(), findings)?;
    let (_, data) = kvseq::verify_kind(&paths.data(), Kind::Kvseq, settings, findings)?;
    let Some(data) = data else { return Ok(FsFindings::default()) };
    if let Err(e) = check_data(&data) {
        return findings.take(e).map(|()| FsFindings::default());
    }
    let have_dups = data.superblock().value(Name::HAVEDUPS) == Some(1);
    let index = verify_index(&paths.index(), &Names(&data), settings, findings, progress)?;
    let time = if data.superblock().value(Name::HAVEAO) == Some(1) {
        open_time(paths, settings, &data, findings)?
    } else {
        None
    };
    let mut check = Check {
        data: &data,
        index: index.as_ref(),
        time,
        have_dups,
        findings,
        counted: FsFindings::default(),
        mark: 0,
    };
    let references = check.inodes(settings, progress)?;
    check.orphans(references)?;
    let counted = check.counted;
    if pages::has_urls(paths, settings)? {
        pages::verify_urls(paths, &data, settings, findings, progress)?;
    }
    Ok(counted)
}

/// Checks an index over the inodes of a data file, and returns it if it can be searched.
pub(crate) fn verify_index(
    path: &Path,
    keys: &dyn Keys,
    settings: &Settings,
    findings: &mut Findings,
    progress: OnProgress<'_>,
) -> Result<Option<Hindex>> {
    if !settings.fs.exists(path)? {
        findings.fault(path, 0, "an index", "no file");
        return Ok(None);
    }
    let searchable = hindex::verify(path, keys, settings, findings, progress)?.is_searchable();
    // The check has told why it cannot be opened.
    let Ok(index) = Hindex::open_anyway(path, Access::Read, settings) else { return Ok(None) };
    same_generation(keys.container(), index.superblock(), findings)?;
    Ok(Some(index).filter(|_| searchable))
}

fn same_generation(data: &Kvseq, sb: &crate::Superblock, findings: &mut Findings) -> Result<()> {
    match expect_generation(data.superblock(), sb) {
        Ok(()) => Ok(()),
        Err(e) => findings.take(e),
    }
}

fn open_time(paths: &FsPaths, settings: &Settings, data: &Kvseq, findings: &mut Findings) -> Result<Option<Timefile>> {
    if !settings.fs.exists(&paths.time())? {
        findings.fault(&paths.time(), 0, "a timefile", "no file");
        return Ok(None);
    }
    kvseq::verify(&paths.time(), settings, findings)?;
    match Timefile::open(&paths.time(), Access::Read, settings, true) {
        Ok(time) => {
            same_generation(data, time.kv.superblock(), findings)?;
            Ok(Some(time))
        }
        Err(e) => findings.take(e).map(|()| None),
    }
}

struct Check<'a> {
    data: &'a Kvseq,
    index: Option<&'a Hindex>,
    time: Option<Timefile>,
    have_dups: bool,
    findings: &'a mut Findings,
    counted: FsFindings,
    /// The next time mark to be met.
    mark: u64,
}

impl Check<'_> {
    /// Goes through all inodes. Returns the pointers to data entries, sorted.
    fn inodes(&mut self, settings: &Settings, progress: OnProgress<'_>) -> Result<InOrder> {
        let path = self.data.path();
        let mut sort = Sort::new(settings, dir_of(path), 1);
        let (mut itot, mut dtot) = (0u64, 0u64);
        let mut last_mtime = None;
        let mut tell = telling(progress, "checking files", self.data.end());
        let mut scan = self.data.scan().with_deleted().keys_only();
        // The walk of the kvseq has told why a scan fails.
        while let Ok(Some((ptr, deleted, inode))) = next_inode(self.data, &mut scan) {
            tell(ptr);
            let inode = match inode {
                Ok(inode) => inode,
                Err(_) if deleted => continue,
                Err(e) => {
                    self.findings.take(e)?;
                    continue;
                }
            };
            self.times(&inode, &mut last_mtime)?;
            if deleted {
                continue;
            }
            if !inode.is_one_piece() {
                let found = format!("{:016x}", inode.hash);
                self.findings.fault(path, ptr, "the hash of the name in the key of an inode", found);
            }
            let capacity = self.pointers(&inode, &mut sort)?;
            if self.is_alive(&inode)? {
                itot = itot.saturating_add(inode.entry_bytes());
                dtot = dtot.saturating_add(capacity);
                self.counted.files += 1;
                self.counted.bytes += inode.size;
            }
        }
        for (name, total) in [(Name::ITOTSZ, itot), (Name::DTOTSZ, dtot)] {
            if self.data.superblock().value(name).is_some_and(|stored| u64::try_from(stored) != Ok(total)) {
                self.findings.take(self.data.superblock().fault(name, "the sum over existing files"))?;
            }
        }
        if let Some(time) = &self.time
            && self.mark < time.marks()
        {
            let found = format!("{} of {} that do not", time.marks() - self.mark, time.marks());
            self.findings.fault(time.kv.path(), 0, "marks that point to inodes, in order", found);
        }
        sort.finish()
    }

    fn is_alive(&self, inode: &Inode) -> Result<bool> {
        match (self.have_dups, self.index) {
            (false, _) => Ok(true),
            (true, Some(index)) => Ok(index.find(&Names(self.data), &inode.name)? == Some(inode.ptr)),
            (true, None) => Ok(false),
        }
    }

    /// Checks the data entries of an inode and returns its capacity.
    fn pointers(&mut self, inode: &Inode, sort: &mut Sort<'_>) -> Result<u64> {
        let mut capacity = 0u64;
        for ptr in &inode.pointers {
            match extent_at(self.data, inode, *ptr, capacity) {
                Ok(span) => {
                    if span.deleted {
                        let found = "one that is marked deleted";
                        self.findings.fault(self.data.path(), *ptr, "the data of an existing file", found);
                    }
                    sort.push(&ptr.to_be_bytes(), b"")?;
                    capacity = capacity.saturating_add(span.value_len);
                }
                Err(e) => {
                    self.findings.take(e)?;
                    break;
                }
            }
        }
        if inode.size > capacity {
            let found = format!("{} in {capacity} bytes", inode.size);
            self.findings.fault(self.data.path(), inode.ptr, "a file size within its data", found);
        }
        Ok(capacity)
    }

    /// Times of an append-only filesys never go back, and marks say where they begin.
    fn times(&mut self, inode: &Inode, last: &mut Option<i64>) -> Result<()> {
        let Some(time) = &self.time else { return Ok(()) };
        if last.is_some_and(|last| inode.mtime < last) {
            let found = inode.mtime.to_string();
            self.findings.fault(self.data.path(), inode.ptr, "an mtime not before that of the file before", found);
        }
        if self.mark < time.marks() {
            let (mark, ptr) = time.mark(self.mark)?;
            if ptr == inode.ptr {
                self.mark += 1;
                let first = inode.mtime >= mark && last.is_none_or(|last| last < mark);
                let follows = self.mark < 2 || time.mark(self.mark - 2)?.0 < mark;
                if !first || !follows {
                    let found = format!("mark {mark} at a file of time {}", inode.mtime);
                    self.findings.fault(time.kv.path(), 0, "a mark at the first file of its time", found);
                }
            }
        }
        *last = Some(inode.mtime);
        Ok(())
    }

    /// Compares the pointers of inodes with the data entries there are.
    fn orphans(&mut self, mut references: InOrder) -> Result<()> {
        let mut next = references.next_number()?;
        let mut scan = self.data.scan().keys_only();
        while let Ok(Some(item)) = scan.next_entry() {
            let key = FsKey::decode(item.key);
            self.counted.foreign += u64::from(key.is_none());
            let mut uses = 0;
            while let Some(ptr) = next.filter(|n| *n <= item.ptr) {
                uses += u64::from(ptr == item.ptr);
                next = references.next_number()?;
            }
            // Without flags an inode that was replaced still names the data it shares with its successor.
            if uses > 1 && !self.have_dups {
                self.findings.fault(self.data.path(), item.ptr, "data of one file", format!("data of {uses} files"));
            }
            self.counted.orphans += u64::from(uses == 0 && matches!(key, Some(FsKey::Data { .. })));
        }
        if self.counted.orphans > 0 {
            let found = format!("{} that no file uses", self.counted.orphans);
            self.findings.warning(self.data.path(), 0, "data entries of files", found);
        }
        Ok(())
    }
}
