//! Building a table anew: from its container, or in another size.

use super::{Builder, CreateHindex, Hindex, Keys, Shape};

use crate::sorting::{Sort, number};
use crate::{Access, Error, Kvseq, OnProgress, Progress, Result, Settings, design, h64, open};
use std::path::Path;

/// What a rebuild found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rebuilt {
    /// Keys in the new table.
    pub keys: u64,
    /// Entries not deleted whose key appears again later in the container.
    pub superseded: u64,
    /// Cells of the new table.
    pub htsize: u64,
}

/// How a table is rebuilt.
#[derive(Debug, Clone)]
pub(crate) struct RebuildPlan {
    pub create: CreateHindex,
    /// Leave the table in use: its container is being changed.
    pub whole: bool,
}

/// Lets an index say that it is in use, so that a crash before it is rebuilt does not go unnoticed. One that cannot even
/// be opened says so by itself.
pub(crate) fn distrust(path: &Path, settings: &Settings) -> Result<()> {
    match Hindex::open_anyway(path, Access::Write, settings) {
        Ok(mut index) => index.begin(),
        Err(_) => Ok(()),
    }
}

/// The same where its container is about to be cut: its pointers must not be followed any more.
pub(crate) fn lead_astray(path: &Path, settings: &Settings) -> Result<()> {
    match Hindex::open_anyway(path, Access::Write, settings) {
        Ok(mut index) => index.lead_astray(),
        Err(_) => Ok(()),
    }
}

/// Cells for `keys` keys with room to grow.
pub(crate) fn roomy(keys: u64) -> u64 {
    (keys.saturating_mul(3) / 2 + 3).max(design::MIN_HTSIZE + 1) | 1
}

/// Rebuilds the index at `path` from `container`: of equal keys the last entry not deleted counts. The parameters of an
/// index that is there are kept, unless `htsize` or `cellsz` say otherwise. Takes the locks of both files.
pub fn rebuild(
    path: &Path,
    container: &Kvseq,
    htsize: Option<u64>,
    cellsz: Option<u64>,
    settings: &Settings,
    progress: OnProgress<'_>,
) -> Result<Rebuilt> {
    // A handle that writes has its lock.
    let others = (container.access() == Access::Read).then(|| container.path());
    let locks = open::lock_all(settings, others.into_iter().chain([path]))?;
    let done = match others {
        // Opened again: somebody may have changed it before the lock was ours.
        Some(file) => {
            let guard = open::Guard::Owner { writer_lives: false };
            let container = Kvseq::open_guarded(file, Access::Read, settings, guard)?;
            rebuild_as(path, path, &container, htsize, cellsz, settings, progress)?
        }
        None => rebuild_as(path, path, container, htsize, cellsz, settings, progress)?,
    };
    locks.release(settings)?;
    Ok(done)
}

/// The same for a caller that holds the locks of both. The index at `path` is rebuilt as `to`.
pub(crate) fn rebuild_as(
    path: &Path,
    to: &Path,
    container: &Kvseq,
    htsize: Option<u64>,
    cellsz: Option<u64>,
    settings: &Settings,
    progress: OnProgress<'_>,
) -> Result<Rebuilt> {
    let old = match open::open(settings, path, Access::Read, crate::Kind::Hindex) {
        Ok(opened) => Some(opened),
        Err(Error::Io(e)) if e.is_not_found() => None,
        Err(e) => return Err(e),
    };
    // Numbers that a file claims are believed only if it is large enough for them: a table is written as large as said.
    let keys = match container.live_entries().filter(|n| *n <= (container.end() - container.first()) / 2) {
        Some(n) => n,
        None => crate::kvseq::walk(container, &mut |_| Ok(()))?.live.unsigned_abs(),
    };
    let kept = old.as_ref().and_then(|old| Shape::of(&old.sb, path, old.room).ok()).map_or(0, |shape| shape.htsize);
    let htsize = htsize.unwrap_or_else(|| kept.max(roomy(keys)));
    let create = match old.as_ref().map(|old| &old.sb) {
        Some(sb) => {
            let was = sb.value(crate::Name::CELLSZ).and_then(|n| u64::try_from(n).ok());
            CreateHindex::like(sb, htsize, cellsz.or(was).unwrap_or(2))
        }
        None => CreateHindex { htsize, cellsz: cellsz.unwrap_or(2), ..CreateHindex::default() },
    };
    let plan = RebuildPlan { create, whole: true };
    rebuild_with(to, container, plan, settings, progress, &mut |_| Ok(()))
}

/// Builds the table as planned; `superseded` is told of entries that a later one replaces.
pub(crate) fn rebuild_with(
    path: &Path,
    container: &Kvseq,
    plan: RebuildPlan,
    settings: &Settings,
    progress: OnProgress<'_>,
    superseded: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Rebuilt> {
    let htsize = plan.create.htsize;
    let mut builder = Builder::new(plan.create, path, settings, progress);
    let mut scan = container.scan().keys_only();
    let mut seen = 0u64;
    while let Some(item) = scan.next_entry()? {
        builder.push(h64(item.key), item.ptr)?;
        seen += 1;
        if seen.is_multiple_of(1 << 16) {
            progress(Progress { stage: "reading keys", done: item.ptr, total: container.end() });
        }
    }
    let mut lost = 0;
    let mut count = |ptr| {
        lost += 1;
        superseded(ptr)
    };
    let built = builder.finish(Some(container), &mut count, plan.whole)?;
    Ok(Rebuilt { keys: built.keys, superseded: lost, htsize })
}

impl Hindex {
    /// Changes the number of cells, and whether hashes are stored. Deleted cells go. The new table takes the old one's
    /// place in one step.
    pub fn resize(&mut self, htsize: u64, cellsz: u64, keys: &impl Keys) -> Result<()> {
        self.writable()?;
        if self.live + 1 >= htsize {
            return Err(Error::TableFull { path: self.path().into(), htsize });
        }
        let create = CreateHindex::like(&self.sb, htsize, cellsz);
        let path = self.path().to_owned();
        let fits = self.cellsz == 2 && htsize.saturating_mul(8 * cellsz) <= self.settings.index_memory_bytes;
        // Keys that were flushed are there for readers, and must not go away even for a moment.
        let seen = self.sb.value(crate::Name::AENTRIES).is_none_or(|keys| keys > 0);
        if fits && !seen {
            // The file is only made larger here; cells reach it with the next flush. It is in use until then.
            create.replace_in_use(&path, &self.settings)?;
            let mut new = Self::open_anyway(&path, Access::Write, &self.settings)?;
            self.for_each(&mut |ptr, hash| {
                let place = new.search(hash, |_| Ok(None::<()>))?;
                new.occupy(place, hash, ptr)
            })?;
            return self.become_other(new);
        }
        let settings = self.settings.clone();
        let mut builder = Builder::new(create, &path, &settings, &crate::progress::silent);
        if self.cellsz == 2 {
            self.for_each(&mut |ptr, hash| builder.push(hash, ptr))?;
        } else {
            self.push_by_pointer(keys, &mut builder)?;
        }
        builder.finish(None, &mut |_| Ok(()), !self.in_use)?;
        let new = Self::open_anyway(&path, Access::Write, &self.settings)?;
        self.become_other(new)
    }

    /// Without stored hashes every key is read: in the order of the container, so that its pages are read once.
    fn push_by_pointer(&self, keys: &impl Keys, builder: &mut Builder<'_>) -> Result<()> {
        let mut sort = Sort::new(&self.settings, open::dir_of(self.path()), 2);
        self.for_each(&mut |ptr, _| sort.push(&ptr.to_be_bytes(), b""))?;
        let mut sorted = sort.finish()?;
        while let Some((key, _)) = sorted.next_record()? {
            let ptr = number(key, 0);
            builder.push(h64(&keys.key_at(ptr)?), ptr)?;
        }
        Ok(())
    }

    fn become_other(&mut self, mut new: Hindex) -> Result<()> {
        new.lock = self.lock.take();
        *self = new;
        Ok(())
    }

    /// Resizes if another key would fill it too much.
    #[inline]
    pub(crate) fn make_room(&mut self, keys: &impl Keys) -> Result<()> {
        match self.wants_resize() {
            None => Ok(()),
            Some(htsize) => self.resize(htsize, self.cellsz, keys),
        }
    }
}
