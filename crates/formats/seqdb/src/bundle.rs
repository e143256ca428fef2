//! A kvseq with any number of indexes over its keys, and at most one perm: what a command line edits.
//!
//! With one index this is a [`crate::Map`]; without any, keys may repeat and a search reads the file.

use crate::kvseq::{self, lock_path};
use crate::open::{self, Guard, Locks};
use crate::perm::CreatePerm;
use crate::{Access, Error, Hindex, KvEntry, Kvseq, OnProgress, Perm, Result, Settings, hindex, perm};
use std::path::{Path, PathBuf};

/// Which files belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BundleFiles {
    /// The entries.
    pub kvseq: PathBuf,
    /// Indexes over their keys.
    pub indexes: Vec<PathBuf>,
    /// Pointers to entries.
    pub perm: Option<PathBuf>,
}

impl BundleFiles {
    /// The kvseq and its indexes: what a writer locks, so that nobody changes one without the others. (A perm that is
    /// open has its own lock.)
    fn keyed(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.kvseq.as_path()).chain(self.indexes.iter().map(PathBuf::as_path))
    }

    /// All of them, for a rebuild.
    fn lock(&self, settings: &Settings) -> Result<Locks> {
        open::lock_all(settings, self.keyed().chain(self.perm.as_deref()))
    }
}

/// The files, open.
#[derive(Debug)]
pub struct Bundle {
    kv: Kvseq,
    indexes: Vec<Hindex>,
    perm: Option<Perm>,
    /// Replaced entries to be marked deleted once what replaces them is durable.
    deferred: Vec<u64>,
    /// Entries added since it was opened.
    added: u64,
    settings: Settings,
    access: Access,
    locks: Option<Locks>,
}

impl Bundle {
    /// Opens all files. A writer takes the locks of all.
    pub fn open(files: &BundleFiles, access: Access, settings: &Settings) -> Result<Self> {
        match access {
            Access::Read => open::beside(settings, &lock_path(&files.kvseq), |writer_lives| {
                let bundle = Self::open_locked(files, access, settings, writer_lives, None)?;
                bundle.kv.expect_current()?;
                Ok(bundle)
            }),
            Access::Write => {
                let locks = open::lock_all(settings, files.keyed())?;
                Self::open_locked(files, access, settings, false, Some(locks))
            }
        }
    }

    fn open_locked(
        files: &BundleFiles,
        access: Access,
        settings: &Settings,
        writer_lives: bool,
        locks: Option<Locks>,
    ) -> Result<Self> {
        let guard = Guard::Owner { writer_lives };
        let kv = Kvseq::open_guarded(&files.kvseq, access, settings, guard)?;
        let open = |path: &PathBuf| Hindex::open_guarded(path, access, settings, guard);
        let indexes = files.indexes.iter().map(open).collect::<Result<_>>()?;
        let perm = files.perm.as_ref().map(|path| Perm::open(path, access, settings)).transpose()?;
        let (deferred, settings) = (Vec::new(), settings.clone());
        Ok(Bundle { kv, indexes, perm, deferred, added: 0, settings, access, locks })
    }

    /// The entries.
    pub fn kvseq(&self) -> &Kvseq {
        &self.kv
    }

    /// The entry of `key`: by the first index, or by reading all entries. A reader beside a writer reads them too before
    /// it says that there is none.
    pub fn get(&self, key: &[u8]) -> Result<Option<KvEntry>> {
        let ptr = match self.indexes.first().filter(|index| !index.is_astray()) {
            Some(index) => match index.find(&self.kv, key)? {
                // The index of a live writer may be behind its entries: they tell.
                None if self.access == Access::Read && index.is_in_use() => self.kv.lookup(key)?,
                found => found,
            },
            None => self.kv.lookup(key)?,
        };
        ptr.map(|ptr| self.kv.get(ptr)).transpose()
    }

    /// Adds an entry. With an index it replaces the one the key had.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<u64> {
        if self.indexes.iter().any(|index| index.wants_resize().is_some()) {
            // Cells must not reach the file before the entries they lead to.
            self.kv.flush()?;
        }
        for index in &mut self.indexes {
            index.begin()?;
            index.make_room(&self.kv)?;
        }
        let ptr = self.kv.append(key, value)?;
        let mut old = None;
        for index in &mut self.indexes {
            old = index.replace(&self.kv, key, ptr)?.or(old);
        }
        if let Some(perm) = &mut self.perm {
            perm.add_key(key, ptr)?;
        }
        if let Some(old) = old.filter(|_| self.kv.layout().delflag) {
            self.deferred.push(old);
        }
        self.added += 1;
        // All files together, so that what readers see in one they find by the others.
        if self.settings.flush_every > 0 && self.added.is_multiple_of(self.settings.flush_every) {
            self.flush()?;
        } else {
            self.kv.settle()?;
        }
        Ok(ptr)
    }

    /// Deletes the entry of `key`; says whether there was one. Refused where entries have no delete flags: a rebuild of
    /// the indexes would bring it back.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        if !self.kv.layout().delflag {
            return Err(Error::NoDelflag { path: self.kv.path().into() });
        }
        let ptr = match self.indexes.first() {
            Some(index) => index.find(&self.kv, key)?,
            None => self.kv.lookup(key)?,
        };
        let Some(ptr) = ptr else { return Ok(false) };
        for index in &mut self.indexes {
            index.begin()?;
            index.remove(&self.kv, key)?;
        }
        self.kv.delete(ptr)?;
        Ok(true)
    }

    /// Hands everything to the system: readers see it, a crash of this process does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.kv.flush()?;
        self.indexes.iter_mut().try_for_each(Hindex::flush)?;
        self.perm.as_mut().map_or(Ok(()), Perm::flush)
    }

    /// Makes everything durable.
    pub fn sync(&mut self) -> Result<()> {
        self.kv.checkpoint()?;
        for old in std::mem::take(&mut self.deferred) {
            self.kv.delete(old)?;
        }
        self.kv.checkpoint()?;
        self.indexes.iter_mut().try_for_each(Hindex::checkpoint)?;
        self.perm.as_mut().map_or(Ok(()), Perm::checkpoint)
    }

    /// Syncs and closes.
    pub fn close(mut self) -> Result<()> {
        if self.access == Access::Write {
            self.sync()?;
        }
        if let Some(perm) = self.perm.take() {
            perm.close()?;
        }
        self.locks.take().map_or(Ok(()), |locks| locks.release(&self.settings))
    }
}

/// Opens a kvseq for reading, and by `open` a file that points into it: two that belong together, whatever a writer does
/// meanwhile.
pub fn read_with<T>(kvseq: &Path, settings: &Settings, open: impl Fn() -> Result<T>) -> Result<(Kvseq, T)> {
    open::beside(settings, &lock_path(kvseq), |writer_lives| {
        let kv = Kvseq::open_guarded(kvseq, Access::Read, settings, Guard::Owner { writer_lives })?;
        let other = open()?;
        kv.expect_current()?;
        Ok((kv, other))
    })
}

/// Lets indexes and perm say that their pointers must not be followed: the kvseq is about to be exchanged, or cut. A
/// crash before they are rebuilt does not go unnoticed.
fn lead_astray(files: &BundleFiles, settings: &Settings) -> Result<()> {
    let open = |path: &PathBuf| Hindex::open_anyway(path, Access::Write, settings);
    // All are opened before the first is marked.
    let mut indexes = files.indexes.iter().map(open).collect::<Result<Vec<_>>>()?;
    indexes.iter_mut().try_for_each(Hindex::lead_astray)?;
    // The perm for the shortest time: who has no index reads all entries instead, who has no perm has to wait.
    files.perm.as_ref().map_or(Ok(()), |perm| perm::lead_astray(perm, settings))
}

/// Rebuilds indexes and perm from the kvseq. The perm holds the entries not deleted, in the order of the kvseq.
pub fn rebuild(files: &BundleFiles, settings: &Settings, progress: OnProgress<'_>) -> Result<()> {
    let locks = files.lock(settings)?;
    rebuild_locked(files, settings, progress)?;
    locks.release(settings)
}

/// The same for a caller that holds the locks.
fn rebuild_locked(files: &BundleFiles, settings: &Settings, progress: OnProgress<'_>) -> Result<()> {
    let guard = Guard::Owner { writer_lives: false };
    let kv = Kvseq::open_guarded(&files.kvseq, Access::Read, settings, guard)?;
    rebuild_aside(files, &kv, settings, progress)?;
    take_place(files, settings)
}

/// Builds indexes and perm anew, beside the old ones.
fn rebuild_aside(files: &BundleFiles, kv: &Kvseq, settings: &Settings, progress: OnProgress<'_>) -> Result<()> {
    for path in &files.indexes {
        hindex::rebuild_as(path, &open::copy_of(path), kv, None, None, settings, progress)?;
    }
    files.perm.as_ref().map_or(Ok(()), |path| rebuild_perm(path, kv, settings))
}

fn rebuild_perm(path: &Path, kv: &Kvseq, settings: &Settings) -> Result<()> {
    let old = open::open(settings, path, Access::Read, crate::Kind::Perm)?.sb;
    let number = |name| old.value(name).unwrap_or(0);
    let create = CreatePerm {
        sbsize: old.sbsize(),
        fileincr: number(crate::Name::FILEINCR).max(0),
        purpose: old.purpose(),
        htsize: number(crate::Name::HTSIZE).max(1),
        extra: old.user_variables().collect(),
    };
    let aside = open::copy_of(path);
    let _ = settings.fs.remove_file(&aside);
    let mut perm = create.create(&aside, settings)?;
    perm.build(kv)?;
    perm.close()
}

/// Puts what was rebuilt in the place of the old.
fn take_place(files: &BundleFiles, settings: &Settings) -> Result<()> {
    let rebuilt = || files.perm.iter().chain(&files.indexes);
    rebuilt().try_for_each(|path| settings.fs.rename(&open::copy_of(path), path))?;
    rebuilt().try_for_each(|path| Ok(settings.fs.sync_dir(open::dir_of(path))?))
}

/// Copies the entries not deleted to a new kvseq in the old one's place, and rebuilds the rest. Returns the bytes before
/// and after.
pub fn compact(files: &BundleFiles, settings: &Settings, progress: OnProgress<'_>) -> Result<(u64, u64)> {
    let locks = files.lock(settings)?;
    let sizes = kvseq::compact_locked(&files.kvseq, settings, progress, &|new| {
        // First, so that readers do without them only while names are exchanged.
        let guard = Guard::Owner { writer_lives: false };
        let kv = Kvseq::open_guarded(new, Access::Read, settings, guard)?;
        rebuild_aside(files, &kv, settings, progress)?;
        lead_astray(files, settings)
    });
    if sizes.is_err() {
        let copies: Vec<_> = files.indexes.iter().chain(&files.perm).map(|path| open::copy_of(path)).collect();
        let _ = open::remove_all(settings, &copies);
    }
    let sizes = sizes?;
    take_place(files, settings)?;
    locks.release(settings)?;
    Ok(sizes)
}

/// Takes the kvseq back to its last sync (or with `salvage` as far as entries are whole), and rebuilds the rest.
pub fn rollback(
    files: &BundleFiles,
    settings: &Settings,
    salvage: bool,
    progress: OnProgress<'_>,
) -> Result<kvseq::KvRepair> {
    let locks = files.lock(settings)?;
    // A file that is no kvseq leaves the indexes as they are.
    Kvseq::open_anyway(&files.kvseq, None, Access::Write, settings)?;
    lead_astray(files, settings)?;
    let done = kvseq::repair_locked(&files.kvseq, settings, salvage)?;
    rebuild_locked(files, settings, progress)?;
    locks.release(settings)?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, CreateHindex, CreateKvseq, Findings, Map, MapFiles, silent};
    use trawl_io::fault::FaultFs;
    use trawl_model::UnixMillis;

    #[test]
    fn several_indexes_and_a_perm() {
        let disk = FaultFs::new();
        let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
        let files = BundleFiles {
            kvseq: "/b.kvseq".into(),
            indexes: vec!["/b.one".into(), "/b.two".into()],
            perm: Some("/b.perm".into()),
        };
        CreateKvseq { fileincr: 0, ..Default::default() }.create(&files.kvseq, &settings).unwrap().close().unwrap();
        for (path, cellsz) in files.indexes.iter().zip([1, 2]) {
            let create = CreateHindex { htsize: 3, cellsz, ..Default::default() };
            create.create(path, &settings).unwrap().close().unwrap();
        }
        CreatePerm::default().create(Path::new("/b.perm"), &settings).unwrap().close().unwrap();
        let mut bundle = Bundle::open(&files, Access::Write, &settings).unwrap();
        for n in 0..50u8 {
            bundle.add(&[n % 20], &[n]).unwrap();
        }
        assert!(bundle.remove(&[3]).unwrap() && !bundle.remove(&[3]).unwrap());
        assert_eq!(bundle.get(&[5]).unwrap().unwrap().value, [45]);
        bundle.close().unwrap();
        let check = || {
            let kv = Kvseq::open(&files.kvseq, Access::Read, &settings).unwrap();
            let mut findings = Findings::new();
            kvseq::verify(&files.kvseq, &settings, &mut findings).unwrap();
            for path in &files.indexes {
                hindex::verify(path, &kv, &settings, &mut findings, &silent).unwrap();
            }
            let pairs = crate::perm::verify(Path::new("/b.perm"), &kv, &settings, &mut findings).unwrap().pairs;
            assert!(findings.is_sound() && findings.warnings() == 0, "{:?}", findings.list());
            (kv.entries().unwrap(), kv.live_entries().unwrap(), pairs)
        };
        assert_eq!(check(), (50, 19, 50));
        let (old, new) = compact(&files, &settings, &silent).unwrap();
        assert!(new < old);
        assert_eq!(check(), (19, 19, 19));
        let mut bundle = Bundle::open(&files, Access::Write, &settings).unwrap();
        bundle.add(b"new", b"").unwrap();
        bundle.kv.flush().unwrap();
        drop(bundle);
        assert!(matches!(Bundle::open(&files, Access::Write, &settings), Err(Error::NeedsCheck { .. })));
        rollback(&files, &settings, false, &silent).unwrap();
        assert_eq!(check(), (19, 19, 19));
        // Without an index, all entries are read.
        let plain = BundleFiles { indexes: Vec::new(), perm: None, ..files };
        let bundle = Bundle::open(&plain, Access::Read, &settings).unwrap();
        assert_eq!(bundle.get(&[5]).unwrap().unwrap().value, [45]);
        assert_eq!(bundle.get(b"none").unwrap(), None);
    }
    /// A map of which half is deleted, whose values look like entries: an old pointer that leads into one would find a
    /// key there, with a wrong value.
    fn half_deleted(settings: &Settings) -> Result<BundleFiles> {
        let files = BundleFiles {
            kvseq: "/b.kvseq".into(),
            indexes: vec!["/b.one".into(), "/b.two".into()],
            perm: Some("/b.perm".into()),
        };
        let kvseq = CreateKvseq { fileincr: 0, value: crate::Repr::Int8, ..Default::default() };
        kvseq.create(&files.kvseq, settings)?.close()?;
        for (path, cellsz) in files.indexes.iter().zip([1, 2]) {
            CreateHindex { htsize: 101, cellsz, ..Default::default() }.create(path, settings)?.close()?;
        }
        CreatePerm::default().create(Path::new("/b.perm"), settings)?.close()?;
        let mut bundle = Bundle::open(&files, Access::Write, settings)?;
        for n in 0..30u8 {
            bundle.add(&[n], &value(n))?;
        }
        for n in (0..30).step_by(2) {
            bundle.remove(&[n])?;
        }
        bundle.close()?;
        Ok(files)
    }

    fn value(n: u8) -> Vec<u8> {
        // A flag, a key of one byte, a value of one byte.
        (0..n % 7 + 1).flat_map(|m| [0, 1, n ^ (2 * m), 1, b'?']).collect()
    }

    /// The disk as readers find it between any two writes of a compaction, or a way back, that lives.
    #[test]
    fn keys_are_there_between_any_two_writes() {
        type Change = fn(&BundleFiles, &Settings) -> Result<()>;
        let compacts: Change = |files, settings| compact(files, settings, &silent).map(|_| ());
        let rolls_back: Change = |files, settings| rollback(files, settings, false, &silent).map(|_| ());
        let rebuilds: Change = |files, settings| rebuild(files, settings, &silent);
        for change in [compacts, rolls_back, rebuilds] {
            for cut in 0.. {
                let disk = FaultFs::new();
                let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
                let files = half_deleted(&settings).unwrap();
                disk.cut_after(cut);
                let done = change(&files, &settings).is_ok();
                let disk = disk.reboot(trawl_io::fault::Loss::None);
                let settings = Settings::new(Clock::fixed(UnixMillis(0)), "test").on(disk.shared());
                for first in 0..2 {
                    let indexes = vec![files.indexes[first].clone()];
                    let keyed = BundleFiles { indexes, perm: None, ..files.clone() };
                    let bundle = Bundle::open_locked(&keyed, Access::Read, &settings, true, None).unwrap();
                    let pair = MapFiles { kvseq: files.kvseq.clone(), hindex: files.indexes[first].clone() };
                    let map = Map::open_locked(&pair, Access::Read, &settings, true, None).unwrap();
                    for n in 0..30 {
                        let wanted = (n % 2 == 1).then(|| value(n));
                        let found = bundle.get(&[n]).unwrap().map(|entry| entry.value);
                        assert_eq!(found, wanted, "key {n} after {cut} writes");
                        assert_eq!(map.get(&[n]).unwrap(), wanted, "key {n} after {cut} writes, as a map");
                    }
                }
                let whole = Bundle::open_locked(&files, Access::Read, &settings, true, None);
                match whole {
                    Ok(bundle) => {
                        let (kv, mut live) = (&bundle.kv, 0);
                        let look = &mut |_, pair: crate::perm::Pair| {
                            let entry = kv.get(pair.ptr)?;
                            assert_eq!(entry.value, value(entry.key[0]), "after {cut} writes");
                            live += usize::from(!entry.deleted);
                            Ok(true)
                        };
                        bundle.perm.as_ref().unwrap().for_each(0, look).unwrap();
                        assert_eq!(live, 15, "after {cut} writes");
                    }
                    Err(e) => assert!(matches!(e, Error::NeedsCheck { .. }), "{e}"),
                }
                if done {
                    assert!(cut > 10, "{cut}");
                    break;
                }
            }
        }
    }
}
