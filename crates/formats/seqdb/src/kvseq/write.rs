//! Appending, changing in place, flushing and syncing.

use super::layout::Span;
use super::{Kvseq, Repr};
use crate::superblock::Name;
use crate::{Access, Error, Result, Settings};
use std::io::Read;

/// Bytes of a value moved at once.
const STREAM_BYTES: usize = 256 << 10;
/// Replaced entries that may wait for their delete flag; then a sync is made.
const MAX_RETIRED: usize = 1 << 18;

impl Kvseq {
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
        let end = self.file.store.end();
        let result = self.put_entry(ptr, key, value);
        if result.is_err() {
            self.file.store.cut(end);
        }
        result?;
        // A count that the file claims may be anything.
        self.entries = self.entries.saturating_add(1);
        self.live = self.live.saturating_add(1);
        self.file.stale = true;
        self.added += 1;
        Ok(ptr)
    }

    /// The same with a value from a reader, of any size: memory holds a part of it. `what` is read, for the error.
    pub(crate) fn append_from(&mut self, key: &[u8], value: &mut dyn Read, what: &str) -> Result<(u64, u64)> {
        let before = self.file.store.end();
        let ptr = self.append(key, &[])?;
        let streamed = self.stream(value, what).and_then(|len| {
            self.begin(key, len)?;
            // No reader has seen the entry: its length can be written at once.
            self.file.store.overwrite(self.span(ptr)?.value_head, &self.layout.value.prefix(len))?;
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
                    self.file.store.append(buf.split_at(n).0)?;
                    len += n as u64;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(trawl_io::Error::io(trawl_io::Op::Read, what, e).into()),
            }
        }
    }

    /// Where the entry will start, if it may be added.
    fn begin(&self, key: &[u8], value_len: u64) -> Result<u64> {
        self.file.writable()?;
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
        let (len, limit) = (key.len() as u64, self.file.settings.max_key_bytes);
        if len > limit {
            // The entry could not be read again, nor any behind it.
            return Err(Error::TooLong { path: self.path().into(), what: "key", len, limit });
        }
        check("value", self.layout.value, value_len)?;
        let ptr = self.layout.aligned(self.file.store.end());
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
        let gap = ptr - self.file.store.end();
        if gap > 0 {
            self.file.store.append_zeros(gap)?;
        }
        if self.layout.delflag {
            self.file.store.append(&[0])?;
        }
        self.put_string(self.layout.key, key)?;
        self.put_string(self.layout.value, value)
    }

    #[inline]
    fn put_string(&mut self, repr: Repr, string: &[u8]) -> Result<()> {
        self.file.store.append(&repr.prefix(string.len() as u64))?;
        self.file.store.append(string)?;
        let padding = repr.room_for(string.len() as u64) - string.len() as u64;
        if padding > 0 { self.file.store.append_zeros(padding) } else { Ok(()) }
    }

    /// Lets readers see what was written because the buffer was full, and flushes if the settings say so.
    #[inline]
    pub(crate) fn settle(&mut self) -> Result<()> {
        if self.flush_is_due() || self.is_ahead() { self.flush() } else { Ok(()) }
    }

    /// Whether the buffer was full, so that the file has entries that it does not announce, or too much is held back.
    #[inline]
    pub(crate) fn is_ahead(&self) -> bool {
        self.file.store.written() > self.file.announced || self.file.store.late_is_full()
    }

    /// Whether so many entries were added that the settings want a flush.
    #[inline]
    pub(crate) fn flush_is_due(&self) -> bool {
        self.file.settings.flush_every > 0 && self.added >= self.file.settings.flush_every
    }

    /// Whether the interval between syncs has passed. Asking the clock for every small entry would cost more than the
    /// entry.
    #[inline]
    pub(crate) fn sync_is_due(&self) -> bool {
        self.file.settings.sync_every >= 0 && self.entries.unsigned_abs().is_multiple_of(64) && self.interval_is_over()
    }

    /// The same, asked less often.
    pub(crate) fn interval_is_over(&self) -> bool {
        let Settings { sync_every, clock, .. } = &self.file.settings;
        *sync_every >= 0 && clock.seconds().saturating_sub(self.last_sync) >= *sync_every
    }

    /// Overwrites a part of the value at `ptr`; its length stays.
    pub fn write_value(&mut self, ptr: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = self.inside_value(ptr, offset, bytes)?;
        self.file.store.overwrite(at, bytes)
    }

    /// The same with bytes that lead to what was appended: a reader beside gets them after that, and not before it can
    /// follow them.
    pub(crate) fn write_value_late(&mut self, ptr: u64, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = self.inside_value(ptr, offset, bytes)?;
        if !self.is_announced(ptr) {
            return self.file.store.overwrite(at, bytes);
        }
        self.file.store.overwrite_late(at, bytes);
        Ok(())
    }

    /// Whether readers may have seen the entry at `ptr`.
    pub(crate) fn is_announced(&self, ptr: u64) -> bool {
        ptr < self.file.announced
    }

    /// Where bytes of the value at `ptr` lie, which must be within it.
    fn inside_value(&self, ptr: u64, offset: u64, bytes: &[u8]) -> Result<u64> {
        self.file.writable()?;
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
        self.file.writable()?;
        self.file.store.overwrite(at, bytes)
    }

    /// Replaces the value at `ptr` by one of the same length, or by any that fits where room was reserved.
    pub fn set_value(&mut self, ptr: u64, value: &[u8]) -> Result<()> {
        self.file.writable()?;
        let span = self.span(ptr)?;
        self.replace(ptr, "value", self.layout.value, span.value_at, span.value_len, value)
    }

    /// Replaces the key at `ptr` likewise. An index over this file does not notice.
    pub fn set_key(&mut self, ptr: u64, key: &[u8]) -> Result<()> {
        self.file.writable()?;
        let span = self.span(ptr)?;
        self.replace(ptr, "key", self.layout.key, span.key_at, span.key_len, key)
    }

    fn replace(&mut self, ptr: u64, what: &'static str, repr: Repr, at: u64, old: u64, string: &[u8]) -> Result<()> {
        let new = string.len() as u64;
        match repr {
            _ if new == old => self.file.store.overwrite(at, string),
            Repr::Lim8(room) if new <= u64::from(room) => {
                let mut bytes = repr.prefix(new).to_vec();
                bytes.extend_from_slice(string);
                bytes.resize(1 + usize::from(room), 0);
                self.file.store.overwrite(at - 1, &bytes)
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
        self.file.writable()?;
        if !self.layout.delflag {
            return Err(Error::NoDelflag(self.path().into()));
        }
        let span = self.span(ptr)?;
        if span.deleted != deleted {
            self.file.store.overwrite(ptr, &[u8::from(deleted)])?;
            self.live = self.live.saturating_add(if deleted { -1 } else { 1 });
            self.file.stale = true;
        }
        Ok(())
    }

    /// Makes the value at `ptr` longer, which must be the last: appends `bytes` to it.
    pub fn extend_last_value(&mut self, ptr: u64, bytes: &[u8]) -> Result<()> {
        self.file.writable()?;
        let span = self.span(ptr)?;
        self.extend(&span, bytes, bytes.len() as u64)
    }

    /// Appends `bytes` and zeros, `more` bytes in all, to the last value.
    pub(crate) fn extend(&mut self, span: &Span, bytes: &[u8], more: u64) -> Result<()> {
        self.file.writable()?;
        let (ptr, old) = (span.ptr, span.value_len);
        let new = old.saturating_add(more);
        if span.end != self.file.store.end() || !self.layout.value.can_grow() {
            return Err(Error::LengthChange { path: self.path().into(), ptr, what: "value", old, new });
        }
        if !self.layout.value.holds(new) || i64::try_from(span.end.saturating_add(more)).is_err() {
            let limit = self.layout.value.max_len();
            return Err(Error::TooLong { path: self.path().into(), what: "value", len: new, limit });
        }
        let (store, prefix) = (&mut self.file.store, self.layout.value.prefix(new));
        let grown = store
            .append(bytes)
            .and_then(|()| store.append_zeros(more.saturating_sub(bytes.len() as u64)))
            .and_then(|()| store.overwrite_after_tail(span.value_head, &prefix));
        if grown.is_err() {
            store.cut(span.end);
        }
        self.file.stale = true;
        grown
    }

    /// Marks an entry deleted that another one replaces: now if readers have not seen it, else once the other is durable,
    /// so that a power cut leaves one of the two. Nothing happens where entries have no delete flags.
    pub(crate) fn retire(&mut self, ptr: u64) -> Result<()> {
        if !self.layout.delflag {
            return Ok(());
        }
        if !self.is_announced(ptr) {
            return self.delete(ptr);
        }
        self.retired.push(ptr);
        if self.retired.len() >= MAX_RETIRED { self.checkpoint() } else { Ok(()) }
    }

    /// Entries that wait to be marked deleted.
    pub(crate) fn retired(&self) -> &[u64] {
        &self.retired
    }

    /// Sets a variable of the superblock; it is written with the next flush.
    pub fn set_variable(&mut self, name: &str, value: i64) -> Result<()> {
        self.file.set_variable(name, value)
    }

    /// Sets a variable only if it exists.
    pub(crate) fn update_variable(&mut self, name: Name, value: i64) {
        self.file.stale |= self.file.sb.update(name, value);
    }

    /// Hands everything to the system: other processes see it, a crash of this one does not lose it.
    pub fn flush(&mut self) -> Result<()> {
        self.file.writable()?;
        self.added = 0;
        if self.file.store.touched() || self.file.stale {
            self.write_counts();
            self.file.flush()?;
        }
        Ok(())
    }

    fn write_counts(&mut self) {
        let counter = self.counter();
        self.file.sb.update(counter, self.entries);
        self.file.sb.update(Name::AENTRIES, self.live);
    }

    /// Makes everything durable and declares the current length valid. Also called a sync.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.file.writable()?;
        self.last_sync = self.file.settings.clock.seconds();
        self.checkpoint_once()?;
        if !self.retired.is_empty() {
            std::mem::take(&mut self.retired).into_iter().try_for_each(|ptr| self.delete(ptr))?;
            self.checkpoint_once()?;
        }
        Ok(())
    }

    fn checkpoint_once(&mut self) -> Result<()> {
        let (store, synced) = (&self.file.store, self.synced_end());
        if !self.file.stale && !store.touched() && synced.is_none_or(|synced| synced == store.end()) {
            return Ok(());
        }
        self.write_counts();
        self.file.checkpoint()
    }

    /// Syncs and closes; the lock file goes too. Dropped without this, what was not flushed is lost.
    pub fn close(mut self) -> Result<()> {
        if self.file.access == Access::Write {
            self.checkpoint()?;
        }
        self.file.close()
    }

    /// Takes back what was appended after `end`: nothing of it was flushed as part of the file yet.
    pub(crate) fn uncount(&mut self, end: u64, entries: i64) {
        self.file.store.cut(end);
        self.entries = self.entries.saturating_sub(entries);
        self.live = self.live.saturating_sub(entries);
    }
}
