//! Creating a filesys.

use super::{Filesys, FsPaths, is_inode_area, time};
use crate::hindex::CreateHindex;
use crate::kvseq::CreateKvseq;
use crate::lock::Locks;
use crate::num::signed;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Result, Settings, aside, design};

/// What a new filesys is like.
#[derive(Debug, Clone)]
#[must_use]
pub struct CreateFilesys {
    /// Size of the data file's superblock.
    pub sbsize: u64,
    /// Size of the superblocks of index and timefile.
    pub small_sbsize: u64,
    /// Step in which data file and timefile grow; 0: exactly.
    pub fileincr: i64,
    /// Inode area of a new file: a multiple of 8 from 16. Names longer than that get twice as much, and so on.
    pub isz: u64,
    /// Cells of the index; it grows by itself.
    pub htsize: u64,
    /// 64-bit words of a cell: 1, or 2 with stored hashes.
    pub cellsz: u64,
    /// Deletions are recorded in the index only, so that deleted files stay in the data file as they were.
    pub have_dups: bool,
    /// Append-only, with a time mark every so many seconds.
    pub append_only: Option<i64>,
    /// A random positive number that ties the files together.
    pub fsgen: i64,
    /// Further variables of the data file.
    pub extra: Vec<(Name, i64)>,
}

impl CreateFilesys {
    /// The defaults; `fsgen` is a random positive number.
    pub fn new(fsgen: i64) -> Self {
        CreateFilesys {
            sbsize: design::DEFAULT_SBSIZE,
            small_sbsize: design::DEFAULT_SBSIZE,
            fileincr: design::DEFAULT_FILEINCR,
            isz: design::DEFAULT_ISZ,
            htsize: 1021,
            cellsz: 2,
            have_dups: false,
            append_only: None,
            fsgen,
            extra: Vec::new(),
        }
    }

    /// Creates lock, data, index (and timefile), in this order, and opens the filesys for writing.
    pub fn create(&self, paths: &FsPaths, settings: &Settings) -> Result<Filesys> {
        let locks = Locks::take(settings, [paths.lock()])?;
        self.publish(paths, settings)?;
        Ok(Filesys { _locks: locks, ..Filesys::open_as(paths, Access::Write, settings, false)? })
    }

    /// Only the files.
    pub(crate) fn publish(&self, paths: &FsPaths, settings: &Settings) -> Result<()> {
        if !is_inode_area(self.isz) {
            return Err(Error::refused(&paths.data(), format!("ISZ of {}; it is a multiple of 8 from 16", self.isz)));
        }
        if self.fsgen < 1 {
            return Err(Error::refused(&paths.data(), "FSGEN must be positive"));
        }
        if settings.fs.exists(&paths.data())? {
            return Err(Error::FilesysExists { path: paths.data() });
        }
        // Leftovers of a creation or compaction that never came to its data file.
        aside::remove_all(settings, &[paths.index(), paths.time()])?;
        self.data().publish(&paths.data(), settings)?;
        self.index().publish(&paths.index(), settings)?;
        self.append_only.map_or(Ok(()), |timemp| {
            let time = time::create(self.small_sbsize, self.fileincr.min(4096), timemp, Some(self.fsgen));
            time.publish(&paths.time(), settings)
        })
    }

    fn data(&self) -> CreateKvseq {
        let mut extra = vec![
            (Name::ISZ, signed(self.isz)),
            (Name::HAVEDUPS, i64::from(self.have_dups)),
            (Name::HAVEAO, i64::from(self.append_only.is_some())),
            (Name::DTOTSZ, 0),
            (Name::ITOTSZ, 0),
            (Name::FSGEN, self.fsgen),
        ];
        extra.extend_from_slice(&self.extra);
        CreateKvseq {
            sbsize: self.sbsize,
            fileincr: self.fileincr,
            purpose: Purpose::fixed(design::PURPOSE_DATA),
            extra,
            ..CreateKvseq::default()
        }
    }

    fn index(&self) -> CreateHindex {
        CreateHindex {
            sbsize: self.small_sbsize,
            purpose: Purpose::fixed(design::PURPOSE_INDEX),
            htsize: self.htsize,
            cellsz: self.cellsz,
            extra: vec![(Name::FSGEN, self.fsgen)],
        }
    }
}
