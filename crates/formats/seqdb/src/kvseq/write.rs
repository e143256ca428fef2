//! Appending, changing in place, flushing and syncing.

use super::layout::Span;
use super::{Kvseq, Repr};
use crate::superblock::Name;
use crate::{Access, Error, Result, SyncPolicy};
use std::io::Read;

/// Bytes of a value moved at once.
const STREAM_BYTES: usize = 256 << 10;

impl Kvseq {
    fn writable(&self) -> Result<()> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => Err(Error::ReadOnly { path: self.path().into() }),
        }
    }

    /// Appends an entry and returns its pointer. Keys may repeat.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<u64> {
        let ptr = self.append(key, value)?;
        self.settle()?;
        if self.sync_is_due() {
            self.checkpoint()?;
        }
        Ok(ptr)
    }

    /// Appends an entry that readers need not see yet: call [`Kvseq::settle`] when what belongs together is there.
    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<u64> {
        let ptr = self.begin(key, value.len() as u64)?;
        let end = self.store.end();
        let result = self.put_entry(ptr, key, value);
        if result.is_err() {
            self.store.cut(end);
        }
        result?;
        // A count that the file claims may be anything.
        self.entries = self.entries.saturating_add(1);
        self.live = self.live.saturating_add(1);
        self.stale = true;
        self.added += 1;
        Ok(ptr)
    }

    /// The same with a value from a reader, of any size: memory holds a part of it. `what` is read, for the error.
    pub(crate) fn append_from(&mut self, key: &[u8], value: &mut dyn Read, what: &str) -> Result<(u64, u64)> {
        let before = self.store.end();
        let ptr = self.append(key, &[])?;
        let streamed = self.stream(value, what).and_then(|len| {
            self.begin(key, len)?;
            // Nobody has seen the entry: its length can be written at once.
            let (prefix, width) = self.layout.value.write_len(len);
            self.store.overwrite(self.span(ptr)?.value_head, prefix.get(..width).unwrap_or_default())?;
            Ok((ptr, len))
        });
        if streamed.is_err() {
            self.uncount(before, 1);
        }
        streamed
    }

    fn stream(&mut self, value: &mut dyn Read, what: &str) -> Result<u64> {
        let mut buf = vec![0; STREAM_BYTES];
        let mut len = 0;
        loop {
            match value.read(&mut buf) {
                Ok(0) => return Ok(len),
                Ok(n) => {
                    self.store.append(buf.get(..n).unwrap_or_default())?;
                    len += n as u64;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(trawl_io::Error::io(trawl_io::Op::Read, what, e).into()),
            }
        }
    }

    /// Where the entry will start, if it may be added.
    fn begin(&self, key: &[u8], value_len: u64) -> Result<u64> {
        self.writable()?;
        let check = |what, repr: Repr, len: u64| {
            if repr.holds(len) {
                return Ok(());
            }
            let (path, limit) = (self.path().into(), repr.max_len());
            Err(if len < limit {
                Error::TooShort { path, what, len, least: limit }
            } else {
                Error::TooLong { path, what, len, limit }
            })
        };
        check("key", self.layout.key, key.len() as u64)?;
        let (len, limit) = (key.len() as u64, self.settings.max_key_bytes);
        if len > limit {
            // Nobody would read the entry again, or any behind it.
            return Err(Error::TooLong { path: self.path().into(), what: "key", len, limit });
        }
        check("value", self.layout.value, value_len)?;
        let end = self.store.end();
        let ptr = self.layout.aligned(end).unwrap_or(u64::MAX);
        let size = key.len() as u64 + value_len;
        match ptr.checked_add(size).and_then(|n| n.checked_add(self.layout.overhead() + 512)) {
            Some(n) if i64::try_from(n).is_ok() => Ok(ptr),
            _ => {
                Err(Error::TooLong { path: self.path().into(), what: "file", len: ptr, limit: i64::MAX.unsigned_abs() })
            }
        }
    }

    #[inline]
    fn put_entry(&mut self, ptr: u64, key: &[u8], value: &[u8]) -> Result<()> {
        let gap = ptr - self.store.end();
        if gap > 0 {
            self.store.append_zeros(gap)?;
        }
        if self.layout.delflag {
            self.store.append(&[0])?;
        }
        self.put_string(self.layout.key, key)?;
        self.put_string(self.layout.value, value)
    }

    #[inline]
    fn put_string(&mut self, repr: Repr, string: &[u8]) -> Result<()> {
        let (prefix, width) = repr.write_len(string.len() as u64);
        self.store.append(prefix.get(..width).unwrap_or_default())?;
        self.store.append(string)?;
        let padding = repr.room_for(string.len() as u64) - string.len() as u64;
        if padding > 0 {
            self.store.append_zeros(padding)?;
        }
        Ok(())
    }

    /// Lets readers see what was written because the buffer was full, and flushes if the settings say so.
    #[inline]
    pub(crate) fn settle(&mut self) -> Result<()> {
        let due = self.settings.flush_every > 0 && self.added >= self.settings.flush_every || self.store.late_is_full();
        if due || self.store.written() > self.announced { self.flush() } else { Ok(()) }
    }

    /// Whether the interval between syncs has passed.
    #[inline]
    pub(crate) fn sync_is_due(&self) -> bool {
        // Asking the clock for every small entry would cost more than the entry.
        self.settings.sync_every >= 0
            && self.entries.unsigned_abs().is_multiple_of(64)
            && self.settings.clock.seconds().saturating_sub(self.last_sync) >= self.settings.sync_every
    }

    /// Overwrites a part of the value at `ptr`; its length stays.
    pub fn write_value(&mut self, ptr: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = self.inside_value(ptr, offset, bytes)?;
        self.store.overwrite(at, bytes)
    }

    /// The same with bytes that lead to what was appended: a reader beside gets them after that, and not before it can
    /// follow them.
    pub(crate) fn write_value_late(&mut self, ptr: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = self.inside_value(ptr, offset, bytes)?;
        if !self.is_announced(ptr) {
            return self.store.overwrite(at, bytes);
        }
        self.store.overwrite_late(at, bytes);
        Ok(())
    }

    /// Whether readers may have seen the entry at `ptr`.
    pub(crate) fn is_announced(&self, ptr: u64) -> bool {
        ptr < self.announced
    }

    /// Where bytes of the value at `ptr` lie, which must be within it.
    fn inside_value(&self, ptr: u64, offset: u64, bytes: &[u8]) -> Result<u64> {
        self.writable()?;
        let span = self.span(ptr)?;
        let ends = offset.saturating_add(bytes.len() as u64);
        if ends > span.value_len {
            let (old, new) = (span.value_len, ends);
            return Err(Error::LengthChange { path: self.path().into(), ptr, what: "value", old, new });
        }
        Ok(span.value_at + offset)
    }

    /// Overwrites bytes of a value whose place the caller knows.
    pub(crate) fn overwrite_raw(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.writable()?;
        self.store.overwrite(at, bytes)
    }

    /// Replaces the value at `ptr` by one of the same length, or by any that fits where room was reserved.
    pub fn set_value(&mut self, ptr: u64, value: &[u8]) -> Result<()> {
        self.writable()?;
        let span = self.span(ptr)?;
        self.replace(ptr, "value", self.layout.value, span.value_at, span.value_len, value)
    }

    /// Replaces the key at `ptr` likewise. An index over this file does not notice.
    pub fn set_key(&mut self, ptr: u64, key: &[u8]) -> Result<()> {
        self.writable()?;
        let span = self.span(ptr)?;
        self.replace(ptr, "key", self.layout.key, span.key_at, span.key_len, key)
    }

    fn replace(&mut self, ptr: u64, what: &'static str, repr: Repr, at: u64, old: u64, string: &[u8]) -> Result<()> {
        let new = string.len() as u64;
        match repr {
            _ if new == old => self.store.overwrite(at, string),
            Repr::Lim8(room) if new <= u64::from(room) => {
                let mut bytes = vec![u8::try_from(new).unwrap_or(room)];
                bytes.extend_from_slice(string);
                bytes.resize(1 + usize::from(room), 0);
                self.store.overwrite(at - 1, &bytes)
            }
            _ => Err(Error::LengthChange { path: self.path().into(), ptr, what, old, new }),
        }
    }

    /// Marks the entry at `ptr` deleted; nothing happens if it is.
    pub fn delete(&mut self, ptr: u64) -> Result<()> {
        self.flag(ptr, true)
    }

    /// Takes the mark away again: for repair.
    pub(crate) fn undelete(&mut self, ptr: u64) -> Result<()> {
        self.flag(ptr, false)
    }

    fn flag(&mut self, ptr: u64, deleted: bool) -> Result<()> {
        self.writable()?;
        if !self.layout.delflag {
            return Err(Error::NoDelflag { path: self.path().into() });
        }
        let span = self.span(ptr)?;
        if span.deleted != deleted {
            self.store.overwrite(ptr, &[u8::from(deleted)])?;
            self.live = self.live.saturating_add(if deleted { -1 } else { 1 });
            self.stale = true;
        }
        Ok(())
    }

    /// Makes the value at `ptr` longer, which must be the last: appends `bytes` to it.
    pub fn extend_last_value(&mut self, ptr: u64, bytes: &[u8]) -> Result<()> {
        self.writable()?;
        let span = self.span(ptr)?;
        self.extend(&span, bytes, bytes.len() as u64)
    }

    /// Appends `bytes` and zeros, `more` bytes in all, to the last value.
    pub(crate) fn extend(&mut self, span: &Span, bytes: &[u8], more: u64) -> Result<()> {
        self.writable()?;
        let (ptr, old) = (span.ptr, span.value_len);
        let new = old.saturating_add(more);
        if span.end != self.store.end() || !self.layout.value.can_grow() {
            return Err(Error::LengthChange { path: self.path().into(), ptr, what: "value", old, new });
        }
        if !self.layout.value.holds(new) || i64::try_from(span.end.saturating_add(more)).is_err() {
            let limit = self.layout.value.max_len();
            return Err(Error::TooLong { path: self.path().into(), what: "value", len: new, limit });
        }
        let appended =
            self.store.append(bytes).and_then(|()| self.store.append_zeros(more.saturating_sub(bytes.len() as u64)));
        let (prefix, width) = self.layout.value.write_len(new);
        let grown = appended
            .and_then(|()| self.store.overwrite_after_tail(span.value_head, prefix.get(..width).unwrap_or_default()));
        if grown.is_err() {
            self.store.cut(span.end);
        }
        self.stale = true;
        grown
    }

    /// Sets a variable of the superblock; it is written with the next flush.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<()> {
        self.writable()?;
        self.sb.set(name, value)?;
        self.stale = true;
        Ok(())
    }

    /// Sets a variable only if it exists.
    pub(crate) fn update_variable(&mut self, name: Name, value: i64) {
        self.stale |= self.sb.update(name, value);
    }

    /// Hands everything to the system: other processes see it, a crash of this one does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.writable()?;
        self.added = 0;
        if self.store.touched() || self.stale {
            self.store.flush()?;
            self.write_superblock()?;
            self.store.flush_late()?;
        }
        Ok(())
    }

    fn write_superblock(&mut self) -> Result<()> {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        self.sb.update(Name::FILESIZE, number(self.store.written()));
        self.sb.update(Name::ENTRIES, self.entries);
        self.sb.update(Name::AENTRIES, self.live);
        self.store.write_head(&self.sb.encode())?;
        self.announced = self.store.written();
        self.stale = false;
        Ok(())
    }

    /// Whether anything is not yet durable.
    pub(crate) fn needs_sync(&self) -> bool {
        self.stale || self.store.touched() || self.synced_end().is_some_and(|synced| synced != self.store.end())
    }

    /// Makes everything durable and declares the current length valid. Also called a sync.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.writable()?;
        self.last_sync = self.settings.clock.seconds();
        if !self.needs_sync() {
            return Ok(());
        }
        self.store.flush()?;
        self.write_superblock()?;
        self.store.flush_late()?;
        self.barrier()?;
        if self.synced_end().is_some() {
            self.sb.update(Name::SYNCSIZE, i64::try_from(self.store.written()).unwrap_or(i64::MAX));
            self.sb.update(Name::SYNCTIME, self.last_sync);
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

    /// Syncs and closes; the lock file goes too. Dropped without this, what was not flushed is lost.
    pub fn close(mut self) -> Result<()> {
        if self.access == Access::Write {
            self.checkpoint()?;
        }
        if let Some(lock) = self.lock.take() {
            lock.release_and_remove(&*self.settings.fs)?;
        }
        Ok(())
    }

    /// Takes back what was appended after `end`: nothing of it was flushed as part of the file yet.
    pub(crate) fn uncount(&mut self, end: u64, entries: i64) {
        self.store.cut(end);
        self.entries = self.entries.saturating_sub(entries);
        self.live = self.live.saturating_sub(entries);
    }

    pub(crate) fn set_counts(&mut self, entries: i64, live: i64) {
        (self.entries, self.live, self.stale) = (entries, live, true);
    }
}
