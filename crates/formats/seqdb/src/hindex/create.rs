//! Creating a hash table.

use super::{Hindex, Shape};
use crate::file::SbFile;
use crate::num::signed;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Kind, Result, Settings, Superblock, aside, design};
use std::path::Path;

/// A table up to this size is built anew as large as it was, however few its keys are.
const PLAUSIBLE_BYTES: u64 = 64 << 20;

/// What a new index is like.
#[derive(Debug, Clone)]
#[must_use]
pub struct CreateHindex {
    /// Size of the superblock.
    pub sbsize: u64,
    /// What the file is for.
    pub purpose: Purpose,
    /// Cells; it grows by itself when used through a map or a filesys.
    pub htsize: u64,
    /// 64-bit words of a cell: 1, or 2 with stored hashes.
    pub cellsz: u64,
    /// Further variables, appended in this order.
    pub extra: Vec<(Name, i64)>,
}

impl Default for CreateHindex {
    fn default() -> Self {
        CreateHindex {
            sbsize: design::DEFAULT_SBSIZE,
            purpose: Purpose::default(),
            htsize: 1021,
            cellsz: 2,
            extra: Vec::new(),
        }
    }
}

impl CreateHindex {
    /// Creates an empty table, which appears complete and durable or not at all, and opens it for writing.
    pub fn create(&self, path: &Path, settings: &Settings) -> Result<Hindex> {
        self.publish(path, settings)?;
        Hindex::open(path, Access::Write, settings)
    }

    /// Only the file, unless there is one.
    pub(crate) fn publish(&self, path: &Path, settings: &Settings) -> Result<()> {
        let (sb, end) = self.superblock(path, settings, true, 0)?;
        aside::publish_new(&sb, end, settings)
    }

    /// An empty table that is in use, in place of the one there is.
    pub(super) fn replace_in_use(&self, path: &Path, settings: &Settings) -> Result<()> {
        let (sb, end) = self.superblock(path, settings, false, 0)?;
        Ok(aside::empty(&sb, end, settings)?.publish()?)
    }

    /// The superblock of a table with `keys` keys, and where the file ends. One that is not `whole` is in use.
    pub(super) fn superblock(
        &self,
        path: &Path,
        settings: &Settings,
        whole: bool,
        keys: u64,
    ) -> Result<(Superblock, u64)> {
        let mut sb = Superblock::new(path, self.sbsize, Kind::Hindex, self.purpose)?;
        if !(1..=2).contains(&self.cellsz) {
            return Err(Error::refused(path, format!("CELLSZ of {}; it is 1 or 2", self.cellsz)));
        }
        let end = Shape::end(self.sbsize, self.htsize, self.cellsz).filter(|_| self.htsize >= design::MIN_HTSIZE);
        let end = end.ok_or_else(|| Error::refused(path, format!("HTSIZE of {}", self.htsize)))?;
        sb.put_sizes(None, settings)?;
        sb.put(Name::FILESIZE, signed(end))?;
        sb.put(Name::SYNCSIZE, signed(if whole { end } else { design::SYNC_IN_USE }))?;
        sb.put(Name::HTSIZE, signed(self.htsize))?;
        sb.put(Name::CELLSZ, signed(self.cellsz))?;
        sb.put(Name::HTALGO, design::HTALGO_MD5)?;
        sb.put(Name::ENTRIES, signed(keys))?;
        sb.put(Name::AENTRIES, signed(keys))?;
        sb.put_all(&self.extra)?;
        Ok((sb, end))
    }

    /// The parameters of an existing table, for one of another size. What users noted in it stays.
    pub(crate) fn like(sb: &Superblock, htsize: u64, cellsz: u64) -> Self {
        let kept = |(name, _): &(Name, i64)| !name.is_known() || *name == Name::FSGEN;
        let (sbsize, purpose) = (sb.sbsize(), sb.purpose());
        CreateHindex { sbsize, purpose, htsize, cellsz, extra: sb.variables().filter(kept).collect() }
    }

    /// The parameters of a table of `keys` keys in place of the one at `path`. What that one says of its size is believed
    /// only if the file is so large, and not absurdly large: it may be what is broken. Without one, `self` counts.
    pub(crate) fn in_place_of(self, path: &Path, keys: u64, settings: &Settings) -> Self {
        let needed = roomy(keys);
        let Ok(old) = SbFile::open(path, Kind::Hindex, Access::Read, settings) else {
            return CreateHindex { htsize: needed, ..self };
        };
        let shape = Shape::of(&old.sb, old.store.room()).ok();
        let plausible = |shape: &Shape| shape.end <= PLAUSIBLE_BYTES || shape.htsize / 1024 <= needed;
        let htsize = shape.filter(plausible).map_or(needed, |shape| shape.htsize.max(needed));
        let mut like = Self::like(&old.sb, htsize, shape.map_or(self.cellsz, |shape| shape.cellsz));
        if !self.purpose.is_none() {
            // What the file must say, whatever it said.
            like.purpose = self.purpose;
            like.extra.retain(|(name, _)| *name != Name::FSGEN);
            like.extra.splice(0..0, self.extra);
        }
        like
    }
}

/// Cells for `keys` keys with room to grow.
pub(crate) fn roomy(keys: u64) -> u64 {
    (keys.saturating_mul(3) / 2 + 3).max(design::MIN_HTSIZE + 1) | 1
}
