//! Creating a hash table.

use super::Hindex;
use crate::kvseq::publish_new;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Kind, Result, Settings, Superblock, design};
use std::path::Path;
use trawl_io::AtomicFile;

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
        // Small tables in one go; the cells of large ones are a hole.
        match usize::try_from(end) {
            Ok(len) if len <= 1 << 20 => {
                let mut bytes = sb.encode_full();
                bytes.resize(len, 0);
                publish_new(path, settings, &bytes)
            }
            _ => match self.aside(&sb, end, path, settings)?.publish_new()? {
                trawl_io::Outcome::Won => Ok(()),
                trawl_io::Outcome::Lost => Err(Error::refused(path, "a file of that name exists")),
            },
        }
    }

    /// An empty table that is in use, in place of the one there is.
    pub(super) fn replace_in_use(&self, path: &Path, settings: &Settings) -> Result<()> {
        let (sb, end) = self.superblock(path, settings, false, 0)?;
        Ok(self.aside(&sb, end, path, settings)?.publish()?)
    }

    fn aside(&self, sb: &Superblock, end: u64, path: &Path, settings: &Settings) -> Result<AtomicFile> {
        let mut file = AtomicFile::create(&settings.fs, path)?;
        file.put(&sb.encode_full())?;
        file.flushed()?.set_len(end)?;
        Ok(file)
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
        let end = self.htsize.checked_mul(8 * self.cellsz).and_then(|n| n.checked_add(self.sbsize));
        let end = end.filter(|_| self.htsize >= design::MIN_HTSIZE).filter(|n| i64::try_from(*n).is_ok());
        let end = end.ok_or_else(|| Error::refused(path, format!("HTSIZE of {}", self.htsize)))?;
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        sb.put(Name::FILESIZE, number(end))?;
        sb.put(Name::SYNCSIZE, number(if whole { end } else { design::SYNC_IN_USE }))?;
        sb.put(Name::SYNCTIME, settings.clock.seconds())?;
        sb.put(Name::HTSIZE, number(self.htsize))?;
        sb.put(Name::CELLSZ, number(self.cellsz))?;
        sb.put(Name::HTALGO, design::HTALGO_MD5)?;
        sb.put(Name::ENTRIES, number(keys))?;
        sb.put(Name::AENTRIES, number(keys))?;
        for (name, value) in &self.extra {
            sb.put(*name, *value)?;
        }
        Ok((sb, end))
    }

    /// The parameters of an existing table, for one of another size.
    pub(crate) fn like(sb: &Superblock, htsize: u64, cellsz: u64) -> Self {
        let known = [
            Name::SBSIZE,
            Name::FORMAT,
            Name::PURPOSE,
            Name::FILESIZE,
            Name::SYNCSIZE,
            Name::SYNCTIME,
            Name::HTSIZE,
            Name::CELLSZ,
            Name::HTALGO,
            Name::ENTRIES,
            Name::AENTRIES,
        ];
        CreateHindex {
            sbsize: sb.sbsize(),
            purpose: sb.purpose(),
            htsize,
            cellsz,
            extra: sb.variables().filter(|(name, _)| !known.contains(name)).collect(),
        }
    }
}
