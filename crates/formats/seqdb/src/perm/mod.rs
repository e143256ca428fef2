//! perm: an array of pointers into a kvseq, which can be sorted so that equal keys become neighbours.
//!
//! ```text
//! superblock | pair 0 | pair 1 | ... | pair PERMSIZE-1 | room reserved
//! pair:  pointer (8 bytes) | hash of the key mod HTSIZE (8 bytes)          pair i at SBSIZE + 16*i
//! ```
//! Grouped means: ordered by hash, then by key, then by pointer. Grouping writes a new file that takes the old one's
//! place, so that a crash never leaves half of an order.

mod create;
mod group;
#[cfg(test)]
mod tests;
mod verify;

pub use create::CreatePerm;
pub use verify::{PermFindings, verify};

use crate::kvseq::lock_path;
use crate::open;
use crate::store::Store;
use crate::superblock::Name;
use crate::{Access, Error, Keys, Kind, Kvseq, Result, Settings, Superblock, SyncPolicy, design, h64, sorting};
use std::path::Path;
use trawl_io::LockFile;

/// Bytes of a pair.
const PAIR: u64 = 16;
/// What is wrong with a file that says so.
const ASTRAY: &str = "its kvseq was exchanged, and the perm not rebuilt yet";

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
    settings: Settings,
    access: Access,
    store: Store,
    sb: Superblock,
    htsize: u64,
    len: u64,
    stale: bool,
    added: u64,
    lock: Option<LockFile>,
}

impl Perm {
    /// Opens a perm file. A writer takes the lock beside it and refuses a file that was not closed properly.
    pub fn open(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        let at = lock_path(path);
        let (lock, writer_lives) = open::Guard::Own(&at).enter(settings, access)?;
        let mut perm = Self::open_anyway(path, access, settings)?;
        perm.lock = lock;
        let synced = perm.sb.length(Name::SYNCSIZE)?;
        if synced == Some(design::SYNC_ASTRAY) {
            return Err(Error::NeedsCheck { path: path.into(), why: ASTRAY });
        }
        if let Some(synced) = synced.filter(|synced| *synced != perm.end()) {
            if access == Access::Write {
                let why = "SYNCSIZE is not FILESIZE: it was not closed properly";
                return Err(Error::NeedsCheck { path: path.into(), why });
            }
            if !writer_lives {
                perm.len = perm.pairs_before(synced)?;
            }
        }
        Ok(perm)
    }

    fn open_anyway(path: &Path, access: Access, settings: &Settings) -> Result<Self> {
        let open::Opened { file, sb, room } = open::open(settings, path, access, Kind::Perm)?;
        if sb.required(Name::HTALGO, "the variable HTALGO")? != design::HTALGO_MD5 {
            return Err(sb.fault(Name::HTALGO, "HTALGO 1 (MD5)"));
        }
        let htsize = sb.required(Name::HTSIZE, "the variable HTSIZE")?;
        let htsize = u64::try_from(htsize).ok().filter(|n| *n > 0);
        let htsize = htsize.ok_or_else(|| sb.fault(Name::HTSIZE, "a positive HTSIZE"))?;
        sb.required(Name::PERMSIZE, "the variable PERMSIZE")?;
        let len = sb.length(Name::PERMSIZE)?.unwrap_or(0);
        let end = open::logical_end(&sb, path, room)?;
        let fits = len.checked_mul(PAIR).and_then(|n| n.checked_add(sb.sbsize())).is_some_and(|n| n == end);
        if !fits && (sb.value(Name::FILESIZE).is_some() || len > (end - sb.sbsize()) / PAIR) {
            return Err(sb.fault(Name::PERMSIZE, "FILESIZE = SBSIZE + 16 * PERMSIZE"));
        }
        let end = sb.sbsize() + len * PAIR;
        let step = match (sb.value(Name::FILESIZE), sb.value(Name::FILEINCR)) {
            (Some(_), Some(step)) => u64::try_from(step).unwrap_or(0),
            _ => 0,
        };
        let store = Store::new(file, room, end, step, settings);
        let settings = settings.clone();
        Ok(Perm { access, store, htsize, len, stale: false, added: 0, lock: None, settings, sb })
    }

    /// Pairs that lie before `end`.
    fn pairs_before(&self, end: u64) -> Result<u64> {
        match end.checked_sub(self.sb.sbsize()) {
            Some(bytes) if bytes.is_multiple_of(PAIR) && bytes / PAIR <= self.len => Ok(bytes / PAIR),
            _ => Err(self.sb.fault(Name::SYNCSIZE, "a SYNCSIZE after a whole pair, up to FILESIZE")),
        }
    }

    fn end(&self) -> u64 {
        self.sb.sbsize() + self.len * PAIR
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// The variables as they are now.
    pub fn superblock(&self) -> &Superblock {
        &self.sb
    }

    /// Pairs.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The hash of a key as this file stores it.
    pub fn hash(&self, key: &[u8]) -> u64 {
        h64(key) % self.htsize
    }

    /// The pair at `index`.
    pub fn lookup(&self, index: u64) -> Result<Option<Pair>> {
        if index >= self.len {
            return Ok(None);
        }
        let mut bytes = [0; 16];
        self.store.read(self.sb.sbsize() + index * PAIR, &mut bytes)?;
        Ok(Some(pair(&bytes)))
    }

    /// The position of the pair of the entry at `ptr`: a search from front to back.
    pub fn index_of(&self, ptr: u64) -> Result<Option<u64>> {
        let mut found = None;
        self.for_each(0, &mut |index, pair| {
            if found.is_none() && pair.ptr == ptr {
                found = Some(index);
            }
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// Hands every pair from `index` on to `each`, until it says `false`.
    pub fn for_each(&self, index: u64, each: &mut dyn FnMut(u64, Pair) -> Result<bool>) -> Result<()> {
        let mut buf = vec![0; (self.settings.scan_bytes() / 16).max(1) * 16];
        let mut index = index;
        while index < self.len {
            let left = usize::try_from((self.len - index) * PAIR).unwrap_or(usize::MAX);
            let n = left.min(buf.len());
            let part = buf.get_mut(..n).unwrap_or_default();
            self.store.read(self.sb.sbsize() + index * PAIR, part)?;
            for bytes in part.chunks_exact(16) {
                if !each(index, pair(bytes))? {
                    return Ok(());
                }
                index += 1;
            }
        }
        Ok(())
    }

    fn writable(&self) -> Result<()> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => Err(Error::ReadOnly { path: self.path().into() }),
        }
    }

    /// Appends the entry at `ptr` of `container`. Nothing is asked about entries that are there already.
    pub fn add(&mut self, container: &impl Keys, ptr: u64) -> Result<()> {
        let key = container.key_at(ptr)?;
        self.add_key(&key, ptr)
    }

    /// The same for a caller who knows the key.
    pub fn add_key(&mut self, key: &[u8], ptr: u64) -> Result<()> {
        self.writable()?;
        self.store.append(&sorting::pair(ptr, self.hash(key)))?;
        self.len += 1;
        self.stale = true;
        self.added += 1;
        if self.settings.flush_every > 0 && self.added >= self.settings.flush_every { self.flush() } else { Ok(()) }
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
        self.writable()?;
        self.sb.set(name, value)?;
        self.stale = true;
        Ok(())
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> Result<()> {
        self.writable()?;
        self.added = 0;
        self.store.flush()?;
        if self.stale { self.write_superblock() } else { Ok(()) }
    }

    fn write_superblock(&mut self) -> Result<()> {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.sb.update(Name::FILESIZE, number(self.store.written()));
        self.sb.update(Name::PERMSIZE, number(self.len));
        self.store.write_head(&self.sb.encode())?;
        self.stale = false;
        Ok(())
    }

    /// Makes everything durable and declares the current length valid.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.writable()?;
        let synced = self.sb.length(Name::SYNCSIZE)?;
        if !self.stale && !self.store.touched() && synced.is_none_or(|n| n == self.end()) {
            return Ok(());
        }
        self.store.flush()?;
        self.write_superblock()?;
        self.barrier()?;
        if self.sb.update(Name::SYNCSIZE, i64::try_from(self.end()).unwrap_or(i64::MAX)) {
            self.sb.update(Name::SYNCTIME, self.settings.clock.seconds());
            self.write_superblock()?;
            self.barrier()?;
        }
        self.store.drop_synced()
    }

    fn barrier(&mut self) -> Result<()> {
        if self.settings.sync == SyncPolicy::Off {
            self.store.skip_sync();
            return Ok(());
        }
        self.store.sync()
    }

    /// Returns to the length at the last sync.
    pub fn rollback(&mut self) -> Result<()> {
        self.writable()?;
        if let Some(synced) = self.sb.length(Name::SYNCSIZE)? {
            self.len = self.pairs_before(synced)?;
            self.store.abandon(self.end());
            self.stale = true;
        }
        self.checkpoint()
    }

    /// Syncs and closes; the lock file goes too.
    pub fn close(mut self) -> Result<()> {
        if self.access == Access::Write {
            self.checkpoint()?;
        }
        if let Some(lock) = self.lock.take() {
            lock.release_and_remove(&*self.settings.fs)?;
        }
        Ok(())
    }
}

/// After a crash: returns to the length at the last sync. Says how many pairs there are now.
pub fn repair(path: &Path, settings: &Settings) -> Result<u64> {
    let lock = open::lock(settings, &lock_path(path))?;
    let probe = open::open(settings, path, Access::Read, Kind::Perm)?;
    let (sbsize, synced) = (probe.sb.sbsize(), probe.sb.length(Name::SYNCSIZE)?);
    if synced == Some(design::SYNC_ASTRAY) {
        let why = format!("{ASTRAY}: `trawl seqdb compact KVSEQ --perm {}` does that", path.display());
        return Err(Error::refused(path, why));
    }
    if let Some(synced) = synced {
        // FILESIZE may count what never arrived: the superblock is set right before anything else looks at it.
        let pairs = synced.checked_sub(sbsize).filter(|n| n.is_multiple_of(PAIR) && synced <= probe.room);
        let pairs = pairs.ok_or_else(|| probe.sb.fault(Name::SYNCSIZE, "a SYNCSIZE after a whole pair"))? / PAIR;
        let mut sb = probe.sb;
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        sb.update(Name::FILESIZE, number(synced));
        sb.update(Name::PERMSIZE, number(pairs));
        let file = settings.fs.open(path, trawl_io::Mode::Write)?;
        file.write_at(0, &sb.encode())?;
        file.sync_data()?;
    }
    let len = Perm::open_anyway(path, Access::Write, settings)?.len;
    lock.release_and_remove(&*settings.fs)?;
    Ok(len)
}

/// Lets a perm say, durably, that its pointers must not be followed any more: its kvseq is about to be exchanged.
pub(crate) fn lead_astray(path: &Path, settings: &Settings) -> Result<()> {
    let mut perm = Perm::open_anyway(path, Access::Write, settings)?;
    perm.sb.put(Name::SYNCSIZE, i64::try_from(design::SYNC_ASTRAY).unwrap_or(i64::MAX))?;
    perm.write_superblock()?;
    perm.barrier()
}

fn pair(bytes: &[u8]) -> Pair {
    Pair { ptr: sorting::number(bytes, 0), hash: sorting::number(bytes, 1) }
}
