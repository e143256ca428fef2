//! New files: empty, or a copy of another without its deleted entries.

use super::layout::Layout;
use super::{Kvseq, MAX_ALIGN, Repr};
use crate::num::signed;
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Kind, OnProgress, Progress, Result, Settings, Superblock, aside, design};
use std::path::{Path, PathBuf};

/// What a new kvseq is like.
#[derive(Debug, Clone)]
#[must_use]
pub struct CreateKvseq {
    /// Size of the superblock.
    pub sbsize: u64,
    /// Step in which the file grows; 0: exactly.
    pub fileincr: i64,
    /// What the file is for.
    pub purpose: Purpose,
    /// Representation of keys.
    pub key: Repr,
    /// Representation of values.
    pub value: Repr,
    /// Whether entries can be deleted.
    pub delflag: bool,
    /// Entries start at multiples of this; 0 or 1: anywhere.
    pub align: u64,
    /// Whether HTALGO hints at the hash algorithm for these keys.
    pub hash_hint: bool,
    /// Further variables, appended in this order.
    pub extra: Vec<(Name, i64)>,
}

impl Default for CreateKvseq {
    fn default() -> Self {
        CreateKvseq {
            sbsize: design::DEFAULT_SBSIZE,
            fileincr: design::DEFAULT_FILEINCR,
            purpose: Purpose::default(),
            key: Repr::Int8,
            value: Repr::Int64,
            delflag: true,
            align: 0,
            hash_hint: true,
            extra: Vec::new(),
        }
    }
}

impl CreateKvseq {
    /// Creates an empty kvseq, which appears complete and durable or not at all, and opens it for writing.
    pub fn create(&self, path: &Path, settings: &Settings) -> Result<Kvseq> {
        self.publish(path, settings)?;
        Kvseq::open(path, Access::Write, settings)
    }

    /// Only the file.
    pub(crate) fn publish(&self, path: &Path, settings: &Settings) -> Result<()> {
        aside::publish_new(&self.superblock(path, settings)?, self.sbsize, settings)
    }

    fn superblock(&self, path: &Path, settings: &Settings) -> Result<Superblock> {
        let (key, value, delflag) = (self.key, self.value, self.delflag);
        if (Layout { key, value, delflag, align: 1 }).is_void() {
            return Err(Error::refused(path, "entries without a key, a value and a delete flag have no bytes"));
        }
        if self.align > MAX_ALIGN {
            return Err(Error::refused(path, format!("ALIGN of {} is over the limit of {MAX_ALIGN}", self.align)));
        }
        if self.fileincr > i64::MAX / 2 {
            return Err(Error::refused(path, "FILEINCR is too large"));
        }
        let mut sb = Superblock::new(path, self.sbsize, Kind::Kvseq, self.purpose)?;
        sb.put_sizes(Some(self.fileincr), settings)?;
        sb.put(Name::KEYREPR, key.to_value())?;
        sb.put(Name::VALREPR, value.to_value())?;
        if delflag {
            sb.put(Name::KVDELFL, 1)?;
        }
        sb.put(Name::ALIGN, signed(self.align))?;
        sb.put(Name::ENTRIES, 0)?;
        sb.put(Name::AENTRIES, 0)?;
        if self.hash_hint {
            sb.put(Name::HTALGO, design::HTALGO_MD5)?;
        }
        sb.put_all(&self.extra)?;
        Ok(sb)
    }
}

/// The lock file beside a container that is no part of a filesys.
pub(crate) fn lock_path(path: &Path) -> PathBuf {
    aside::with_suffix(path, design::LOCK_SUFFIX)
}

/// Bytes of a large value copied at once.
const PART: usize = 1 << 20;

/// Copies the entries not deleted to a new file like the old one. Returns where that ends.
pub(crate) fn copy_live(old: &Kvseq, to: &Path, progress: OnProgress<'_>) -> Result<u64> {
    let settings = &old.file.settings;
    let sb = old.file.sb.emptied(to, settings);
    aside::publish_new(&sb, sb.sbsize(), settings)?;
    let mut new = Kvseq::open_as(to, Access::Write, settings, false)?;
    let mut scan = old.scan();
    while let Some(item) = scan.next_entry()? {
        progress(Progress { stage: "copying", done: item.ptr, total: old.end() });
        match item.value {
            Some(value) => new.append(item.key, value)?,
            None => copy_large(old, item.ptr, item.key, &mut new)?,
        };
        new.settle()?;
    }
    new.checkpoint()?;
    Ok(new.end())
}

/// Copies an entry whose value is too large for memory.
fn copy_large(old: &Kvseq, ptr: u64, key: &[u8], new: &mut Kvseq) -> Result<u64> {
    let to = new.append(key, b"")?;
    let (mut buf, mut offset) = (vec![0; PART], 0);
    loop {
        let n = old.read_value(ptr, offset, &mut buf)?;
        if n == 0 {
            return Ok(to);
        }
        new.extend_last_value(to, buf.split_at(n).0)?;
        offset += n as u64;
    }
}
