//! Creating a filesys.

use super::{Filesys, FsPaths, time};
use crate::hindex::CreateHindex;
use crate::kvseq::CreateKvseq;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Repr, Result, Settings, design, open};

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
    /// Further variables of the index.
    pub index_extra: Vec<(Name, i64)>,
    /// Further variables of the timefile.
    pub time_extra: Vec<(Name, i64)>,
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
            index_extra: Vec::new(),
            time_extra: Vec::new(),
        }
    }

    /// Creates lock, data, index (and timefile), in this order, and opens the filesys for writing.
    pub fn create(&self, paths: &FsPaths, settings: &Settings) -> Result<Filesys> {
        let lock = open::lock(settings, &paths.lock())?;
        self.publish(paths, settings)?;
        let guard = open::Guard::Owner { writer_lives: false };
        let mut fs = Filesys::open_guarded(paths, Access::Write, settings, guard)?;
        fs.lock = Some(lock);
        Ok(fs)
    }

    /// Only the files.
    pub(crate) fn publish(&self, paths: &FsPaths, settings: &Settings) -> Result<()> {
        if self.isz < design::MIN_ISZ || !self.isz.is_multiple_of(8) || self.isz > super::inode::MAX_AREA {
            return Err(Error::refused(&paths.data(), format!("ISZ of {}; it is a multiple of 8 from 16", self.isz)));
        }
        if self.fsgen < 1 {
            return Err(Error::refused(&paths.data(), "FSGEN must be positive"));
        }
        if settings.fs.exists(&paths.data())? {
            return Err(Error::FilesysExists { path: paths.data() });
        }
        // Leftovers of a creation or compaction that never came to its data file.
        open::remove_all(settings, &[paths.index(), paths.time()])?;
        self.data().publish(&paths.data(), settings)?;
        self.index().publish(&paths.index(), settings)?;
        if let Some(timemp) = self.append_only {
            let mut time = time::create(self.small_sbsize, self.fileincr.min(4096), timemp, Some(self.fsgen));
            time.extra.extend_from_slice(&self.time_extra);
            time.publish(&paths.time(), settings)?;
        }
        Ok(())
    }

    fn data(&self) -> CreateKvseq {
        let mut extra = vec![
            (Name::ISZ, i64::try_from(self.isz).unwrap_or(0)),
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
            key: Repr::Int8,
            value: Repr::Int64,
            delflag: true,
            align: 0,
            hash_hint: true,
            extra,
        }
    }

    pub(crate) fn index(&self) -> CreateHindex {
        CreateHindex {
            sbsize: self.small_sbsize,
            purpose: Purpose::fixed(design::PURPOSE_INDEX),
            htsize: self.htsize,
            cellsz: self.cellsz,
            extra: [(Name::FSGEN, self.fsgen)].into_iter().chain(self.index_extra.iter().copied()).collect(),
        }
    }
}
