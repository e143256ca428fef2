//! Checking a filesys: every file, every pointer, every counter. Memory is bounded; what must be matched is sorted.

use super::handle::extent_at;
use super::inode::{FsKey, Inode, Names};
use super::repair::copies;
use super::time::Timefile;
use super::{FsPaths, check_data, expect_generation};
use crate::findings::Findings;
use crate::hindex::{self, Hindex, Subject, Take};
use crate::kvseq::{self, Scan};
use crate::open::{Guard, dir_of};
use crate::sorting::{InOrder, Sort, number};
use crate::superblock::Name;
use crate::{Access, Error, Kvseq, OnProgress, Progress, Result, Settings, h64, open};
use trawl_io::LockError;

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
    let _alone = super::base::lock_alone(paths, settings)?;
    if !settings.fs.exists(&paths.data())? {
        return Err(Error::FilesysNotFound { path: paths.data() });
    }
    if open::writer_lives(settings, &paths.lock())? {
        let holder = open::holder(settings, &paths.lock());
        return Err(LockError::Held { path: paths.lock(), holder }.into());
    }
    open::note_copies(settings, &copies(paths), findings)?;
    kvseq::verify(&paths.data(), settings, findings)?;
    let data = match Kvseq::open_anyway(&paths.data(), None, Access::Read, settings) {
        Ok(data) => data,
        // Told already.
        Err(_) => return Ok(FsFindings::default()),
    };
    if let Err(e) = check_data(&data) {
        return findings.take(e).map(|()| FsFindings::default());
    }
    let have_dups = data.superblock().value(Name::HAVEDUPS) == Some(1);
    let subject = Inodes { data: &data, have_dups };
    let mut searchable = true;
    if settings.fs.exists(&paths.index())? {
        let counted = hindex::verify_over(&paths.index(), &subject, settings, findings, progress)?;
        searchable = counted.is_searchable();
    } else {
        findings.fault(&paths.index(), 0, "an index", "no file");
    }
    let index = Hindex::open_anyway(&paths.index(), Access::Read, settings).ok();
    if let Some(index) = &index {
        same_generation(&data, index.superblock(), findings)?;
    }
    let time = if data.superblock().value(Name::HAVEAO) == Some(1) {
        open_time(paths, settings, &data, findings)?
    } else {
        None
    };
    let mut check = Check {
        data: &data,
        index: index.as_ref().filter(|_| searchable),
        time,
        have_dups,
        findings,
        counted: FsFindings::default(),
        mark: 0,
    };
    let references = check.inodes(settings, progress)?;
    check.orphans(references)?;
    Ok(check.counted)
}

fn same_generation(data: &Kvseq, sb: &crate::Superblock, findings: &mut Findings) -> Result<()> {
    match expect_generation(data.superblock().value(Name::FSGEN), sb) {
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
    match Timefile::open(&paths.time(), Access::Read, settings, Guard::Owner { writer_lives: true }) {
        Ok(time) => {
            same_generation(data, time.kv.superblock(), findings)?;
            Ok(Some(time))
        }
        Err(e) => findings.take(e).map(|()| None),
    }
}

/// The inodes as what the index is about.
struct Inodes<'a> {
    data: &'a Kvseq,
    have_dups: bool,
}

impl Subject for Inodes<'_> {
    fn each(&self, take: Take<'_>) -> Result<()> {
        let mut scan = self.data.scan().with_deleted().keys_only();
        while let Some((ptr, deleted, inode)) = next_inode(self.data, &mut scan)? {
            // An inode that cannot be read is told elsewhere; a cell that points to it leads nowhere.
            if let Ok(inode) = inode {
                take(ptr, deleted, &inode.name)?;
            }
        }
        Ok(())
    }

    fn expects_all(&self) -> bool {
        !self.have_dups
    }
}

/// An inode of a scan: its pointer, whether it is marked deleted, and what it holds or why not.
pub(super) type Scanned = (u64, bool, std::result::Result<Inode, Error>);

/// The next inode of a scan.
pub(super) fn next_inode(data: &Kvseq, scan: &mut Scan<'_>) -> Result<Option<Scanned>> {
    while let Some(item) = scan.next_entry()? {
        if !matches!(FsKey::decode(item.key), Some(FsKey::Inode { .. })) {
            continue;
        }
        let (ptr, deleted) = (item.ptr, item.deleted);
        let inode = match item.value {
            Some(value) => Inode::decode(ptr, deleted, item.key, value)
                .map_err(|found| Error::corrupt(data.path(), ptr, "an inode", found)),
            None => Inode::load(data, ptr),
        };
        return Ok(Some((ptr, deleted, inode)));
    }
    Ok(None)
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
        let (mut itot, mut dtot) = (0i64, 0i64);
        let mut last_mtime = None;
        let mut seen = 0u64;
        let mut scan = self.data.scan().with_deleted().keys_only();
        loop {
            let (ptr, deleted, inode) = match next_inode(self.data, &mut scan) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                // The walk of the kvseq has told of it.
                Err(_) => break,
            };
            seen += 1;
            if seen.is_multiple_of(1 << 14) {
                progress(Progress { stage: "checking files", done: ptr, total: self.data.end() });
            }
            let inode = match inode {
                Ok(inode) => inode,
                Err(e) if !deleted => {
                    self.findings.take(e)?;
                    continue;
                }
                Err(_) => continue,
            };
            self.times(&inode, &mut last_mtime)?;
            if deleted {
                continue;
            }
            if inode.hash != h64(&inode.name) {
                self.findings.fault(
                    path,
                    ptr,
                    "the hash of the name in the key of an inode",
                    format!("{:016x}", inode.hash),
                );
            }
            let capacity = self.pointers(&inode, &mut sort)?;
            if self.is_alive(&inode)? {
                itot += i64::try_from(inode.entry_bytes()).unwrap_or(0);
                dtot += i64::try_from(capacity).unwrap_or(0);
                self.counted.files += 1;
                self.counted.bytes += inode.size;
            }
        }
        for (name, total) in [(Name::ITOTSZ, itot), (Name::DTOTSZ, dtot)] {
            if self.data.superblock().value(name).is_some_and(|stored| stored != total) {
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
        let mut read = || -> Result<Option<u64>> { Ok(references.next_record()?.map(|(key, _)| number(key, 0))) };
        let mut next = read()?;
        let mut scan = self.data.scan().keys_only();
        while let Ok(Some(item)) = scan.next_entry() {
            let key = FsKey::decode(item.key);
            self.counted.foreign += u64::from(key.is_none());
            let mut uses = 0;
            while let Some(ptr) = next.filter(|n| *n <= item.ptr) {
                uses += u64::from(ptr == item.ptr);
                next = read()?;
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
