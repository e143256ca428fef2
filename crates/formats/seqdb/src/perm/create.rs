//! Creating a perm file.

use super::Perm;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Kind, Result, Settings, Superblock, aside, design};
use std::path::Path;

/// What a new perm file is like.
#[derive(Debug, Clone)]
#[must_use]
pub struct CreatePerm {
    /// Size of the superblock.
    pub sbsize: u64,
    /// Step in which the file grows; 0: exactly.
    pub fileincr: i64,
    /// What the file is for.
    pub purpose: Purpose,
    /// Hashes are taken modulo this.
    pub htsize: i64,
    /// Further variables, appended in this order.
    pub extra: Vec<(Name, i64)>,
}

impl Default for CreatePerm {
    fn default() -> Self {
        CreatePerm {
            sbsize: design::DEFAULT_SBSIZE,
            fileincr: 0,
            purpose: Purpose::default(),
            htsize: design::PERM_HTSIZE,
            extra: Vec::new(),
        }
    }
}

impl CreatePerm {
    /// Creates an empty file, which appears complete and durable or not at all, and opens it for writing.
    pub fn create(&self, path: &Path, settings: &Settings) -> Result<Perm> {
        if self.htsize < 1 {
            return Err(Error::refused(path, format!("HTSIZE of {}", self.htsize)));
        }
        let mut sb = Superblock::new(path, self.sbsize, Kind::Perm, self.purpose)?;
        sb.put_sizes(Some(self.fileincr), settings)?;
        sb.put(Name::HTALGO, design::HTALGO_MD5)?;
        sb.put(Name::HTSIZE, self.htsize)?;
        sb.put(Name::PERMSIZE, 0)?;
        sb.put_all(&self.extra)?;
        aside::publish_new(&sb, self.sbsize, settings)?;
        Perm::open(path, Access::Write, settings)
    }
}
