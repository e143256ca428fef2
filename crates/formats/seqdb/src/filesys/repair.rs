//! After a crash: the data file goes back to its last sync, everything else follows from it.
//!
//! The index stays marked as in use until all is done, so that a crash during a repair asks for another.

use super::base::{lock_alone, lock_existing};
use super::handle::extent_at;
use super::inode::{FsKey, Inode, Names};
use super::{FsPaths, check_data, time};
use crate::design::{DEFAULT_TIMEMP, LAST_MTIME_VARIABLE, PURPOSE_DATA, PURPOSE_INDEX, URL_INDEX_SUFFIX};
use crate::hindex::{self, Builder, CreateHindex, Hindex, roomy};
use crate::kvseq::{self, KvRepair};
use crate::open::{self, Guard, dir_of};
use crate::sorting::{Sort, number, pair};
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Kind, Kvseq, OnProgress, Progress, Result, Settings, Superblock, h64};
use std::path::PathBuf;

/// What a repair did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FsRepair {
    /// To the data file.
    pub data: KvRepair,
    /// Files there are now.
    pub files: u64,
    /// Inodes that could not be read, and were marked deleted.
    pub broken_inodes: u64,
    /// Files whose data did not reach to their end, and were cut.
    pub cut_files: u64,
    /// Inodes replaced by a later one of the same name, or of the same file.
    pub superseded: u64,
    /// Data entries that no file used, and were marked deleted.
    pub orphans: u64,
    /// Deletions recorded in the index only were lost with it: deleted files are back.
    pub resurrected: bool,
}

/// Repairs a filesys: back to the last sync, or with `salvage` as far as entries are whole.
pub fn repair(paths: &FsPaths, settings: &Settings, salvage: bool, progress: OnProgress<'_>) -> Result<FsRepair> {
    let _alone = lock_alone(paths, settings)?;
    let _lock = lock_existing(paths, settings)?;
    repair_locked(paths, settings, salvage, progress)
}

/// The same for a caller that holds the locks.
pub(crate) fn repair_locked(
    paths: &FsPaths,
    settings: &Settings,
    salvage: bool,
    progress: OnProgress<'_>,
) -> Result<FsRepair> {
    repair_after(paths, settings, progress, &mut || {
        // What was in use may point to what is taken back. (One that was closed properly is still asked later.)
        if Hindex::open_anyway(&paths.index(), Access::Read, settings).is_ok_and(|index| index.is_in_use()) {
            hindex::lead_astray(&paths.index(), settings)?;
        }
        kvseq::repair_locked(&paths.data(), settings, salvage)
    })
}

/// Takes a filesys back to where its data file ended at `end`, for a caller that holds the locks: see
/// [`kvseq::cut_locked`].
pub(crate) fn cut_locked(paths: &FsPaths, settings: &Settings, end: u64, progress: OnProgress<'_>) -> Result<FsRepair> {
    repair_after(paths, settings, progress, &mut || {
        // From here on a crash asks for another repair, although the files may have been closed properly.
        hindex::lead_astray(&paths.index(), settings)?;
        kvseq::cut_locked(&paths.data(), settings, end)
    })
}

fn repair_after(
    paths: &FsPaths,
    settings: &Settings,
    progress: OnProgress<'_>,
    shorten: &mut dyn FnMut() -> Result<KvRepair>,
) -> Result<FsRepair> {
    remove_leftovers(paths, settings)?;
    let data = shorten()?;
    let mut repair = Repair::new(paths, settings, progress)?;
    repair.report.data = data;
    repair.fix_inodes()?;
    repair.drop_replaced()?;
    repair.rebuild_index(None, None)?;
    repair.fix_data_entries()?;
    repair.rebuild_time()?;
    repair.finish()
}

/// Rebuilds only the index, of a data file that was closed properly.
pub fn rebuild_index(
    paths: &FsPaths,
    settings: &Settings,
    htsize: Option<u64>,
    cellsz: Option<u64>,
    progress: OnProgress<'_>,
) -> Result<FsRepair> {
    let _alone = lock_alone(paths, settings)?;
    let _lock = lock_existing(paths, settings)?;
    let mut repair = Repair::new(paths, settings, progress)?;
    repair.fix_inodes()?;
    repair.rebuild_index(htsize, cellsz)?;
    repair.fix_data_entries()?;
    repair.finish()
}

/// Removes what a compaction that did not come to its end has left.
fn remove_leftovers(paths: &FsPaths, settings: &Settings) -> Result<()> {
    open::remove_all(settings, &copies(paths))?;
    trawl_io::remove_leftovers(&*settings.fs, paths.base())?;
    Ok(())
}

/// The files that a compaction makes beside those of a filesys.
pub(super) fn copies(paths: &FsPaths) -> [PathBuf; 5] {
    let aside = paths.aside();
    [aside.data(), aside.index(), aside.time(), aside.other(URL_INDEX_SUFFIX), aside.lock()]
}

/// Lets a data file say again what it is, if the index knows it as its own.
fn restore_purpose(data: &mut Kvseq, paths: &FsPaths, settings: &Settings) -> Result<()> {
    let says = |sb: &Superblock, purpose| sb.purpose().to_string() == purpose;
    if says(data.superblock(), PURPOSE_DATA) {
        return Ok(());
    }
    let fsgen = data.superblock().value(Name::FSGEN);
    match open::open(settings, &paths.index(), Access::Read, Kind::Hindex) {
        Ok(index) if says(&index.sb, PURPOSE_INDEX) && fsgen.is_some() && index.sb.value(Name::FSGEN) == fsgen => {
            data.set_variable("PURPOSE", Purpose::fixed(PURPOSE_DATA).to_value())
        }
        // The check of the data file says what is wrong with it.
        _ => Ok(()),
    }
}

struct Repair<'a> {
    paths: &'a FsPaths,
    settings: &'a Settings,
    progress: OnProgress<'a>,
    data: Kvseq,
    have_dups: bool,
    /// The index as it was, if it can be believed.
    old_index: Option<Hindex>,
    report: FsRepair,
}

impl<'a> Repair<'a> {
    fn new(paths: &'a FsPaths, settings: &'a Settings, progress: OnProgress<'a>) -> Result<Self> {
        let guard = Guard::Owner { writer_lives: false };
        let mut data = Kvseq::open_guarded(&paths.data(), Access::Write, settings, guard)?;
        restore_purpose(&mut data, paths, settings)?;
        check_data(&data)?;
        let have_dups = data.superblock().value(Name::HAVEDUPS) == Some(1);
        let fsgen = data.superblock().value(Name::FSGEN);
        let old_index = Hindex::open_guarded(&paths.index(), Access::Read, settings, guard).ok();
        let old_index = old_index.filter(|index| index.superblock().value(Name::FSGEN) == fsgen);
        // It is asked for every file where only it knows of deletions.
        let old_index = old_index.filter(|index| !have_dups || index.is_searchable().unwrap_or(false));
        Ok(Repair { paths, settings, progress, data, have_dups, old_index, report: FsRepair::default() })
    }

    fn tell(&self, stage: &'static str, done: u64) {
        (self.progress)(Progress { stage, done, total: self.data.end() });
    }

    /// Goes from entry to entry, changing them on the way.
    fn each_entry(
        &mut self,
        stage: &'static str,
        each: &mut dyn FnMut(&mut Self, u64, bool, FsKey) -> Result<()>,
    ) -> Result<()> {
        let (mut at, mut seen) = (self.data.first(), 0u64);
        while at < self.data.end() {
            let mut head = [0; 64];
            let (span, have) = self.data.span_with(at, &mut head)?;
            let skip = usize::try_from(span.key_at - at).unwrap_or(usize::MAX);
            let key = usize::try_from(span.key_len).ok().and_then(|len| head.get(..have)?.get(skip..)?.get(..len));
            if let Some(key) = key.and_then(FsKey::decode) {
                each(self, at, span.deleted, key)?;
            }
            at = span.end;
            seen += 1;
            if seen.is_multiple_of(1 << 14) {
                self.tell(stage, at);
            }
        }
        Ok(())
    }

    /// Sets inodes right: pointers that lead nowhere go, sizes keep within the data, hashes are those of the names.
    fn fix_inodes(&mut self) -> Result<()> {
        self.each_entry("repairing files", &mut |this, ptr, deleted, key| {
            if deleted || !matches!(key, FsKey::Inode { .. }) {
                return Ok(());
            }
            match Inode::load(&this.data, ptr) {
                Ok(inode) => this.fix_inode(inode),
                Err(Error::CorruptEntry { .. } | Error::TornEntry { .. }) => {
                    this.report.broken_inodes += 1;
                    this.data.delete(ptr)
                }
                Err(e) => Err(e),
            }
        })
    }

    fn fix_inode(&mut self, mut inode: Inode) -> Result<()> {
        let (mut capacity, mut good) = (0u64, 0);
        for ptr in &inode.pointers {
            match extent_at(&self.data, &inode, *ptr, capacity) {
                Ok(span) => {
                    capacity = capacity.saturating_add(span.value_len);
                    good += 1;
                }
                Err(Error::CorruptEntry { .. } | Error::TornEntry { .. } | Error::BadPointer { .. }) => break,
                Err(e) => return Err(e),
            }
        }
        if good < inode.pointers.len() || inode.size > capacity {
            self.report.cut_files += 1;
            inode.pointers.truncate(good);
            inode.size = inode.size.min(capacity);
            self.data.write_value(inode.ptr, 3, &inode.numbers())?;
        }
        if inode.hash != h64(&inode.name) {
            inode.hash = h64(&inode.name);
            self.data.set_key(inode.ptr, &inode.key())?;
        }
        Ok(())
    }

    /// Of the inodes of one file, by whatever names, the last counts: it was on its way to replace the others. With
    /// duplicates the index says which one counts.
    fn drop_replaced(&mut self) -> Result<()> {
        if self.have_dups {
            return Ok(());
        }
        let mut sort = Sort::new(self.settings, dir_of(&self.paths.data()), 1);
        self.each_entry("comparing files", &mut |_, ptr, deleted, key| match key {
            FsKey::Inode { file_id, .. } if !deleted => sort.push(&pair(file_id, ptr), b""),
            _ => Ok(()),
        })?;
        let mut inodes = sort.finish()?;
        let mut last = None;
        while let Some((key, _)) = inodes.next_record()? {
            let (file, inode) = (number(key, 0), number(key, 1));
            if let Some((of, replaced)) = last.replace((file, inode))
                && of == file
            {
                self.report.superseded += 1;
                self.data.delete(replaced)?;
            }
        }
        Ok(())
    }

    /// Builds the index anew from the inodes: of equal names the last counts.
    fn rebuild_index(&mut self, htsize: Option<u64>, cellsz: Option<u64>) -> Result<()> {
        let mut inodes = 0;
        self.each_entry("counting files", &mut |_, _, deleted, key| {
            inodes += u64::from(!deleted && matches!(key, FsKey::Inode { .. }));
            Ok(())
        })?;
        let create = self.index_like_before(inodes, htsize, cellsz);
        let path = self.paths.index();
        let settings = self.settings;
        let mut builder = Builder::new(create, &path, settings, self.progress);
        let old = if self.have_dups { self.old_index.take() } else { None };
        self.report.resurrected = self.have_dups && old.is_none();
        self.each_entry("reading names", &mut |this, ptr, deleted, key| {
            if deleted || !matches!(key, FsKey::Inode { .. }) {
                return Ok(());
            }
            let inode = Inode::load(&this.data, ptr)?;
            match &old {
                Some(old) if old.find(&Names(&this.data), &inode.name)? != Some(ptr) => Ok(()),
                _ => builder.push(inode.hash, ptr),
            }
        })?;
        let room = settings.sort_memory_bytes / 8;
        let mut superseded = Vec::new();
        let built = builder.finish(
            Some(&Names(&self.data)),
            &mut |ptr| {
                if superseded.len() < room {
                    superseded.push(ptr);
                }
                Ok(())
            },
            false,
        )?;
        self.report.files = built.keys;
        self.report.superseded += superseded.len() as u64;
        if !self.have_dups {
            superseded.into_iter().try_for_each(|ptr| self.data.delete(ptr))?;
        }
        Ok(())
    }

    fn index_like_before(&self, inodes: u64, htsize: Option<u64>, cellsz: Option<u64>) -> CreateHindex {
        let old = open::open(self.settings, &self.paths.index(), Access::Read, Kind::Hindex).ok();
        let sb: Option<&Superblock> = old.as_ref().map(|opened| &opened.sb);
        let number = |name| sb.and_then(|sb| sb.value(name)).and_then(|n| u64::try_from(n).ok());
        let needed = roomy(inodes);
        // The old size only if it is plausible: it may be what is broken.
        let kept = number(Name::HTSIZE).filter(|n| *n >= needed && *n / 1024 <= needed);
        let cellsz = cellsz.or(number(Name::CELLSZ).filter(|n| (1..=2).contains(n))).unwrap_or(2);
        let fsgen = self.data.superblock().value(Name::FSGEN);
        CreateHindex {
            sbsize: sb.map_or(self.data.superblock().sbsize(), Superblock::sbsize),
            purpose: Purpose::fixed(PURPOSE_INDEX),
            htsize: htsize.or(kept).unwrap_or(needed),
            cellsz,
            extra: fsgen
                .map(|n| (Name::FSGEN, n))
                .into_iter()
                .chain(sb.into_iter().flat_map(Superblock::user_variables))
                .collect(),
        }
    }

    /// Marks data entries as the inodes that use them are, and sums up.
    fn fix_data_entries(&mut self) -> Result<()> {
        let mut sort = Sort::new(self.settings, dir_of(&self.paths.data()), 1);
        let index = Hindex::open_anyway(&self.paths.index(), Access::Read, self.settings)?;
        let (mut itot, mut dtot) = (0i64, 0i64);
        self.each_entry("checking data", &mut |this, ptr, deleted, key| {
            if deleted || !matches!(key, FsKey::Inode { .. }) {
                return Ok(());
            }
            let inode = Inode::load(&this.data, ptr)?;
            let alive = !this.have_dups || index.find(&Names(&this.data), &inode.name)? == Some(ptr);
            itot += if alive { i64::try_from(inode.entry_bytes()).unwrap_or(0) } else { 0 };
            for to in &inode.pointers {
                sort.push(&to.to_be_bytes(), b"")?;
                dtot += if alive { i64::try_from(this.data.value_len(*to)?).unwrap_or(0) } else { 0 };
            }
            Ok(())
        })?;
        let mut used = sort.finish()?;
        let mut read = || -> Result<Option<u64>> { Ok(used.next_record()?.map(|(key, _)| number(key, 0))) };
        let mut next = read()?;
        self.each_entry("checking data", &mut |this, ptr, deleted, key| {
            while next.is_some_and(|n| n < ptr) {
                next = read()?;
            }
            match (key, next == Some(ptr)) {
                (FsKey::Data { .. }, true) if deleted => this.data.undelete(ptr),
                (FsKey::Data { .. }, false) if !deleted && !this.have_dups => {
                    this.report.orphans += 1;
                    this.data.delete(ptr)
                }
                _ => Ok(()),
            }
        })?;
        self.data.update_variable(Name::ITOTSZ, itot);
        self.data.update_variable(Name::DTOTSZ, dtot);
        Ok(())
    }

    /// Writes the timefile of an append-only filesys anew.
    fn rebuild_time(&mut self) -> Result<()> {
        if self.data.superblock().value(Name::HAVEAO) != Some(1) {
            return Ok(());
        }
        let path = self.paths.time();
        let old = open::open(self.settings, &path, Access::Read, Kind::Kvseq).ok().map(|opened| opened.sb);
        let number = |name| old.as_ref().and_then(|sb| sb.value(name));
        let sbsize = old.as_ref().map_or(self.data.superblock().sbsize(), Superblock::sbsize);
        let fsgen = self.data.superblock().value(Name::FSGEN);
        let (incr, timemp) = (number(Name::FILEINCR).unwrap_or(0), number(Name::TIMEMP).unwrap_or(DEFAULT_TIMEMP));
        // Aside, so that there is one all the time.
        let aside = self.paths.aside().time();
        open::remove_all(self.settings, std::slice::from_ref(&aside))?;
        let mut create = time::create(sbsize, incr.clamp(0, 1 << 20), timemp, fsgen);
        create.extra.extend(old.iter().flat_map(Superblock::user_variables));
        create.publish(&aside, self.settings)?;
        let guard = Guard::Owner { writer_lives: false };
        let mut time = time::Timefile::open(&aside, Access::Write, self.settings, guard)?;
        let mut last = None;
        self.each_entry("noting times", &mut |this, ptr, deleted, key| {
            if matches!(key, FsKey::Inode { .. }) {
                match Inode::load(&this.data, ptr) {
                    Ok(inode) => {
                        time.note(inode.mtime, ptr)?;
                        last = Some(inode.mtime);
                    }
                    Err(e) if !deleted => return Err(e),
                    Err(_) => {}
                }
            }
            Ok(())
        })?;
        if let (Some(name), Some(last)) = (Name::parse(LAST_MTIME_VARIABLE), last) {
            self.data.update_variable(name, last);
        }
        time.kv.checkpoint()?;
        self.settings.fs.rename(&aside, &path)?;
        Ok(self.settings.fs.sync_dir(self.paths.base())?)
    }

    /// Makes it all durable; the index is declared whole at the very end.
    fn finish(mut self) -> Result<FsRepair> {
        self.data.checkpoint()?;
        Hindex::open_anyway(&self.paths.index(), Access::Write, self.settings)?.close()?;
        Ok(self.report)
    }
}
