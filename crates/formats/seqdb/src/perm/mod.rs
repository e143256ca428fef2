//! perm: an array of pointers into a kvseq, which can be sorted so that equal keys become neighbours.
//!
//! ```text
//! superblock | pair 0 | pair 1 | ... | pair PERMSIZE-1 | room reserved
//! pair:  pointer (8 bytes) | hash of the key mod HTSIZE (8 bytes)          pair i at SBSIZE + 16*i
//! ```
//! Grouped means: ordered by hash, then by key, then by pointer. Grouping writes a new file that takes the old one's
//! place, so that a crash never leaves half of an order.

mod group;
#[cfg(test)]
mod tests;

use crate::aside::dir_of;
use crate::findings::Findings;
use crate::hindex::side_by_side;
use crate::kvseq::{Keep, lock_path};
use crate::lock::Locks;
use crate::num::index;
use crate::sorting::{Sort, number, pair};
use crate::superblock::{Name, Purpose};
use crate::{Access, Error, Keys, Kind, Kvseq, Result, Settings, Superblock, aside, design, h64, kvseq};
use std::path::Path;

/// Bytes of a pair.
const PAIR: u64 = 16;
/// What is wrong with a file that says so.
pub(crate) const ASTRAY: &str = "its kvseq was exchanged, and the perm not rebuilt yet";

/// One element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Pointer to the entry.
    pub ptr: u64,
    /// Hash of its key.
    pub hash: u64,
}

/// An open perm file.
#[derive(Debug)]
pub struct Perm {
    /// The pairs: keys are pointers, values are hashes.
    pub(crate) kv: Kvseq,
    htsize: u64,
}

impl Perm {
    /// Opens a perm file. A writer takes the lock beside it and refuses a file that was not closed properly.
    pub fn open(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        Self::over(Kvseq::open_kind(path, Kind::Perm, access, settings)?)
    }

    fn over(kv: Kvseq) -> Result<Self> {
        let sb = kv.superblock();
        sb.expect_md5()?;
        let htsize = u64::try_from(sb.required(Name::HTSIZE, "the variable HTSIZE")?).ok().filter(|n| *n > 0);
        let htsize = htsize.ok_or_else(|| sb.fault(Name::HTSIZE, "a positive HTSIZE"))?;
        sb.required(Name::PERMSIZE, "the variable PERMSIZE")?;
        let end = sb.length(Name::FILESIZE)?.unwrap_or(kv.end());
        let pairs = end.checked_sub(sb.sbsize()).filter(|bytes| bytes.is_multiple_of(PAIR)).map(|bytes| bytes / PAIR);
        if pairs != sb.length(Name::PERMSIZE)? {
            return Err(sb.fault(Name::PERMSIZE, "FILESIZE = SBSIZE + 16 * PERMSIZE"));
        }
        Ok(Perm { htsize, kv })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.kv.path()
    }

    /// The variables as they are now.
    pub fn superblock(&self) -> &Superblock {
        self.kv.superblock()
    }

    /// Pairs.
    pub fn len(&self) -> u64 {
        self.kv.pairs()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hash of a key as this file stores it.
    pub fn hash(&self, key: &[u8]) -> u64 {
        h64(key) % self.htsize
    }

    /// The pair at `index`.
    pub fn lookup(&self, index: u64) -> Result<Option<Pair>> {
        Ok(self.kv.pair(index)?.map(|(ptr, hash)| Pair { ptr, hash }))
    }

    /// The position of the pair of the entry at `ptr`: a search from front to back.
    pub fn index_of(&self, ptr: u64) -> Result<Option<u64>> {
        let mut found = None;
        self.for_each(0, &mut |index, pair| {
            found = (pair.ptr == ptr).then_some(index);
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// Hands every pair from `index` on to `each`, until it says `false`.
    pub fn for_each(&self, start: u64, each: &mut dyn FnMut(u64, Pair) -> Result<bool>) -> Result<()> {
        let mut buf = vec![0; (self.kv.file.settings.scan_bytes() / 16).max(1) * 16];
        let mut next = start;
        while let Some(left) = self.len().checked_sub(next).filter(|left| *left > 0) {
            let n = index(left * PAIR).min(buf.len());
            let (part, _) = buf.split_at_mut(n);
            self.kv.read_raw(self.kv.first() + next * PAIR, part)?;
            for bytes in part.chunks_exact(16) {
                if !each(next, Pair { ptr: number(bytes, 0), hash: number(bytes, 1) })? {
                    return Ok(());
                }
                next += 1;
            }
        }
        Ok(())
    }

    /// Appends the entry at `ptr` of `container`. Nothing is asked about entries that are there already.
    pub fn add(&mut self, container: &impl Keys, ptr: u64) -> Result<()> {
        let key = container.key_at(ptr)?;
        self.add_key(&key, ptr)
    }

    /// The same for a caller who knows the key.
    pub fn add_key(&mut self, key: &[u8], ptr: u64) -> Result<()> {
        self.append(key, ptr)?;
        self.kv.settle()
    }

    /// The same; readers see the pair with the next flush.
    pub(crate) fn append(&mut self, key: &[u8], ptr: u64) -> Result<()> {
        let hash = self.hash(key);
        self.kv.append(&ptr.to_be_bytes(), &hash.to_be_bytes()).map(|_| ())
    }

    /// Appends every entry of `container` that is not deleted.
    pub fn build(&mut self, container: &Kvseq) -> Result<()> {
        let mut scan = container.scan().keys_only();
        while let Some(item) = scan.next_entry()? {
            self.add_key(item.key, item.ptr)?;
        }
        Ok(())
    }

    /// Sets a variable of the superblock; it is written with the next flush.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<()> {
        self.kv.set_variable(name, value)
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.kv.flush()
    }

    /// Makes everything durable and declares the current length valid.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.kv.checkpoint()
    }

    /// Returns to the length at the last sync.
    pub fn rollback(&mut self) -> Result<()> {
        self.kv.rollback().map(|_| ())
    }

    /// Syncs and closes; the lock file goes too.
    pub fn close(self) -> Result<()> {
        self.kv.close()
    }
}

/// After a crash: returns to the length at the last sync. Says how many pairs there are now.
pub fn repair(path: &Path, settings: &Settings) -> Result<u64> {
    let mut locks = Locks::take(settings, [lock_path(path)])?;
    let mut kv = Kvseq::open_anyway(path, Kind::Perm, Access::Write, settings)?;
    if kv.synced_end() == Some(design::SYNC_ASTRAY) {
        let why = format!("{ASTRAY}: `trawl seqdb compact KVSEQ --perm {}` does that", path.display());
        return Err(Error::refused(path, why));
    }
    let pairs = kv.shorten(Keep::Synced)?.entries;
    Perm::over(kv)?;
    locks.release(settings)?;
    Ok(pairs)
}

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

/// What the verification of a perm file found besides faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermFindings {
    /// Pairs.
    pub pairs: u64,
    /// Whether they are in order.
    pub grouped: bool,
}

/// Checks the perm file at `path` against `container`; faults go to `findings`.
pub fn verify(path: &Path, container: &Kvseq, settings: &Settings, findings: &mut Findings) -> Result<PermFindings> {
    let (_, kv) = kvseq::verify_kind(path, Kind::Perm, settings, findings)?;
    let Some(kv) = kv else { return Ok(PermFindings::default()) };
    let perm = match Perm::over(kv) {
        Ok(perm) => perm,
        Err(e) => return findings.take(e).map(|()| PermFindings::default()),
    };
    let mut sort = Sort::new(settings, dir_of(path), 1);
    let mut grouped = true;
    let mut last: Option<Pair> = None;
    perm.for_each(0, &mut |index, element| {
        sort.push(&element.ptr.to_be_bytes(), &pair(index, element.hash))?;
        if let Some(last) = last.replace(element).filter(|_| grouped) {
            grouped = in_order(container, last, element);
        }
        Ok(true)
    })?;
    let offset = |index| perm.kv.first() + PAIR * index;
    side_by_side(container, sort.finish()?, path, &offset, findings, &mut |entry, pointer, findings| {
        if let Some(pointer) = pointer.filter(|pointer| pointer.hash != perm.hash(entry.key)) {
            let (expected, found) = (perm.hash(entry.key), format!("{:016x}", pointer.hash));
            findings.fault(path, offset(pointer.from) + 8, format!("hash {expected:016x}"), found);
        }
        Ok(())
    })?;
    Ok(PermFindings { pairs: perm.len(), grouped })
}

/// Whether two neighbours are in the order of a grouped file. Pointers that lead nowhere are in no order.
fn in_order(container: &Kvseq, a: Pair, b: Pair) -> bool {
    if a.hash != b.hash {
        return a.hash < b.hash;
    }
    match (container.key_at(a.ptr), container.key_at(b.ptr)) {
        (Ok(first), Ok(second)) => (first, a.ptr) <= (second, b.ptr),
        _ => false,
    }
}
