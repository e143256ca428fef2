//! After a crash: the data file goes back to its last sync, everything else follows from it.
//!
//! The index stays marked as in use until all is done, so that a crash during a repair asks for another.

use super::create::LockedFs;
use super::handle::extent_at;
use super::inode::{FsKey, Inode, Names};
use super::{FsPaths, check_data, time};
use crate::aside::{self, dir_of};
use crate::design::{DEFAULT_TIMEMP, PURPOSE_DATA, PURPOSE_INDEX};
use crate::file::superblock_of;
use crate::hindex::{self, CreateHindex, Hindex};
use crate::kvseq::{Keep, KvRepair};
use crate::num::signed;
use crate::progress::telling;
use crate::sorting::{Sort, number, pair};
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Kind, Kvseq, OnProgress, Result, Settings, Superblock, h64, pages};

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
    /// URLs in the rebuilt index of a container of captures.
    pub urls: u64,
}

/// Repairs a filesys: back to the last sync, or with `salvage` as far as entries are whole.
pub fn repair(paths: &FsPaths, settings: &Settings, salvage: bool, progress: OnProgress<'_>) -> Result<FsRepair> {
    let _locked = LockedFs::take(paths, settings)?;
    restore(paths, settings, Keep::repair(salvage), progress)
}

/// Takes a filesys back to where its data file ended at `end`: see [`Keep::UpTo`].
pub(crate) fn cut(paths: &FsPaths, settings: &Settings, end: u64, progress: OnProgress<'_>) -> Result<FsRepair> {
    let _locked = LockedFs::take(paths, settings)?;
    restore(paths, settings, Keep::UpTo(end), progress)
}

fn restore(paths: &FsPaths, settings: &Settings, keep: Keep, progress: OnProgress<'_>) -> Result<FsRepair> {
    aside::remove_all(settings, &paths.copies())?;
    trawl_io::remove_leftovers(&*settings.fs, paths.base())?;
    let urls = pages::has_urls(paths, settings)?;
    for index in [paths.index(), paths.urls()] {
        // What was in use may point to what is taken back. One that was closed properly is still asked later, unless the
        // data file is cut behind what was synced: from here on a crash must ask for another repair.
        let used = Hindex::open_anyway(&index, Access::Read, settings).is_ok_and(|index| index.is_in_use());
        if used || matches!(keep, Keep::UpTo(_)) {
            hindex::mark(&index, true, settings)?;
        }
    }
    let data = Kvseq::open_anyway(&paths.data(), Kind::Kvseq, Access::Write, settings)?.shorten(keep)?;
    let mut repair = Repair::new(paths, settings, progress)?;
    repair.report.data = data;
    repair.fix_inodes(true)?;
    repair.rebuild_index(None, None)?;
    repair.fix_data_entries()?;
    repair.rebuild_time()?;
    if urls {
        let (path, files) = (paths.urls(), repair.report.files);
        repair.report.urls = pages::rebuild_urls(&repair.data, &path, &path, files, progress)?;
    }
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
    let _locked = LockedFs::take(paths, settings)?;
    let mut repair = Repair::new(paths, settings, progress)?;
    repair.fix_inodes(false)?;
    repair.rebuild_index(htsize, cellsz)?;
    repair.fix_data_entries()?;
    repair.finish()
}

/// Lets a data file say again what it is, if the index knows it as its own.
fn restore_purpose(data: &mut Kvseq, paths: &FsPaths, settings: &Settings) -> Result<()> {
    let says = |sb: &Superblock, purpose| sb.purpose().to_string() == purpose;
    if says(data.superblock(), PURPOSE_DATA) {
        return Ok(());
    }
    let fsgen = data.superblock().value(Name::FSGEN);
    match superblock_of(&paths.index(), settings) {
        Ok(index) if says(&index, PURPOSE_INDEX) && fsgen.is_some() && index.value(Name::FSGEN) == fsgen => {
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
        let mut data = Kvseq::open_as(&paths.data(), Access::Write, settings, false)?;
        restore_purpose(&mut data, paths, settings)?;
        check_data(&data)?;
        let have_dups = data.superblock().value(Name::HAVEDUPS) == Some(1);
        let fsgen = data.superblock().value(Name::FSGEN);
        let old_index = Hindex::open_as(&paths.index(), Access::Read, settings, false).ok();
        let old_index = old_index.filter(|index| index.superblock().value(Name::FSGEN) == fsgen);
        // It is asked for every file where only it knows of deletions.
        let old_index = old_index.filter(|index| !have_dups || index.is_searchable().unwrap_or(false));
        Ok(Repair { paths, settings, progress, data, have_dups, old_index, report: FsRepair::default() })
    }

    /// Goes from entry to entry, changing them on the way.
    fn each_entry(
        &mut self,
        stage: &'static str,
        each: &mut dyn FnMut(&mut Self, u64, bool, FsKey) -> Result<()>,
    ) -> Result<()> {
        let mut tell = telling(self.progress, stage, self.data.end());
        let mut at = self.data.first();
        while at < self.data.end() {
            let mut buf = [0; 64];
            let head = self.data.head(at, &mut buf)?;
            if let Some(key) = head.key().and_then(FsKey::decode) {
                each(self, at, head.span.deleted, key)?;
            }
            at = head.span.end;
            tell(at);
        }
        Ok(())
    }

    /// The same from inode to inode, deleted or not; one that is not deleted and cannot be read is an error.
    fn each_inode(&mut self, stage: &'static str, each: &mut dyn FnMut(&mut Self, Inode) -> Result<()>) -> Result<()> {
        self.each_entry(stage, &mut |this, ptr, deleted, key| match key {
            FsKey::Data { .. } => Ok(()),
            FsKey::Inode { .. } => match Inode::load(&this.data, ptr) {
                Err(_) if deleted => Ok(()),
                inode => each(this, inode?),
            },
        })
    }

    /// Sets inodes right: pointers that lead nowhere go, sizes keep within the data, hashes are those of the names. Of the
    /// inodes of one file, by whatever names, the last counts, if `replaced` ones are to go: it was on its way to replace
    /// the others. With duplicates the index says which one counts.
    fn fix_inodes(&mut self, replaced: bool) -> Result<()> {
        let mut sort = Sort::new(self.settings, dir_of(&self.paths.data()), 1);
        self.each_entry("repairing files", &mut |this, ptr, deleted, key| {
            let FsKey::Inode { file_id, .. } = key else { return Ok(()) };
            if deleted {
                return Ok(());
            }
            match Inode::load(&this.data, ptr) {
                Ok(inode) => {
                    this.report.files += 1;
                    sort.push(&pair(file_id, ptr), b"")?;
                    this.fix_inode(inode)
                }
                Err(Error::CorruptEntry { .. } | Error::TornEntry { .. }) => {
                    this.report.broken_inodes += 1;
                    this.data.delete(ptr)
                }
                Err(e) => Err(e),
            }
        })?;
        if !replaced || self.have_dups {
            return Ok(());
        }
        let (mut inodes, mut last) = (sort.finish()?, None);
        while let Some((key, _)) = inodes.next_record()? {
            let (file, inode) = (number(key, 0), number(key, 1));
            if let Some((_, replaced)) = last.replace((file, inode)).filter(|(of, _)| *of == file) {
                self.report.superseded += 1;
                self.report.files -= 1;
                self.data.delete(replaced)?;
            }
        }
        Ok(())
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
        if !inode.is_one_piece() {
            inode.hash = h64(&inode.name);
            self.data.set_key(inode.ptr, &inode.key())?;
        }
        Ok(())
    }

    /// Builds the index anew from the inodes: of equal names the last counts.
    fn rebuild_index(&mut self, htsize: Option<u64>, cellsz: Option<u64>) -> Result<()> {
        let (path, data) = (self.paths.index(), self.data.superblock());
        let default = CreateHindex {
            sbsize: data.sbsize(),
            purpose: Purpose::fixed(PURPOSE_INDEX),
            extra: data.value(Name::FSGEN).map(|fsgen| (Name::FSGEN, fsgen)).into_iter().collect(),
            ..CreateHindex::default()
        };
        let mut create = default.in_place_of(&path, self.report.files, self.settings);
        create.htsize = htsize.unwrap_or(create.htsize);
        create.cellsz = cellsz.unwrap_or(create.cellsz);
        let old = if self.have_dups { self.old_index.take() } else { None };
        self.report.resurrected = self.have_dups && old.is_none();
        let names = Names(&self.data);
        // In use until all is done.
        let (built, superseded) =
            hindex::build(create, &path, &names, old.as_ref(), false, self.settings, self.progress)?;
        self.report.files = built.keys;
        self.report.superseded += built.superseded;
        if !self.have_dups {
            superseded.into_iter().try_for_each(|ptr| self.data.delete(ptr))?;
        }
        Ok(())
    }

    /// Marks data entries as the inodes that use them are, and sums up.
    fn fix_data_entries(&mut self) -> Result<()> {
        let mut sort = Sort::new(self.settings, dir_of(&self.paths.data()), 1);
        let index = Hindex::open_anyway(&self.paths.index(), Access::Read, self.settings)?;
        let (mut itot, mut dtot) = (0u64, 0u64);
        self.each_inode("checking data", &mut |this, inode| {
            if inode.deleted {
                return Ok(());
            }
            let alive = !this.have_dups || index.find(&Names(&this.data), &inode.name)? == Some(inode.ptr);
            itot += if alive { inode.entry_bytes() } else { 0 };
            for to in &inode.pointers {
                sort.push(&to.to_be_bytes(), b"")?;
                dtot = dtot.saturating_add(if alive { this.data.value_len(*to)? } else { 0 });
            }
            Ok(())
        })?;
        let mut used = sort.finish()?;
        let mut next = used.next_number()?;
        self.each_entry("checking data", &mut |this, ptr, deleted, key| {
            while next.is_some_and(|n| n < ptr) {
                next = used.next_number()?;
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
        self.data.update_variable(Name::ITOTSZ, signed(itot));
        self.data.update_variable(Name::DTOTSZ, signed(dtot));
        Ok(())
    }

    /// Writes the timefile of an append-only filesys anew.
    fn rebuild_time(&mut self) -> Result<()> {
        if self.data.superblock().value(Name::HAVEAO) != Some(1) {
            return Ok(());
        }
        let (path, data) = (self.paths.time(), self.data.superblock());
        let (data_sbsize, fsgen) = (data.sbsize(), data.value(Name::FSGEN));
        let old = superblock_of(&path, self.settings).ok().filter(|sb| sb.kind() == Kind::Kvseq);
        let number = |name| old.as_ref().and_then(|sb| sb.value(name));
        let (incr, timemp) = (number(Name::FILEINCR).unwrap_or(0), number(Name::TIMEMP).unwrap_or(DEFAULT_TIMEMP));
        let sbsize = old.as_ref().map_or(data_sbsize, Superblock::sbsize);
        let mut create = time::create(sbsize, incr.clamp(0, 1 << 20), timemp, fsgen);
        create.extra.extend(old.iter().flat_map(Superblock::user_variables));
        // Aside, so that there is one all the time.
        let aside = self.paths.aside().time();
        aside::remove_all(self.settings, std::slice::from_ref(&aside))?;
        create.publish(&aside, self.settings)?;
        let mut time = time::Timefile::open(&aside, Access::Write, self.settings, false)?;
        let mut last = None;
        self.each_inode("noting times", &mut |_, inode| {
            last = Some(inode.mtime);
            time.note(inode.mtime, inode.ptr)
        })?;
        if let Some(last) = last {
            self.data.update_variable(Name::LASTMT, last);
        }
        time.kv.close()?;
        aside::take_place(self.settings, &[(aside, path)])
    }

    /// Makes it all durable; the index is declared whole at the very end.
    fn finish(mut self) -> Result<FsRepair> {
        self.data.checkpoint()?;
        Hindex::open_anyway(&self.paths.index(), Access::Write, self.settings)?.close()?;
        Ok(self.report)
    }
}
