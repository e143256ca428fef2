//! Reading single entries.

use super::Kvseq;
use super::layout::{KeySpan, MAX_PREFIX, Span};
use crate::{Access, Error, Result, open};

/// Bytes read at once for a single entry: most small pairs are in them, few cross into a second page.
const FIRST_READ: usize = 256;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvEntry {
    /// Where it starts.
    pub ptr: u64,
    /// Whether it is marked deleted; `false` where there are no flags.
    pub deleted: bool,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
}

impl Kvseq {
    /// The entry at `ptr`. Keys and values above the limits of the settings are refused.
    pub fn get(&self, ptr: u64) -> Result<KvEntry> {
        let mut head = [0; FIRST_READ];
        let (span, have) = self.span_with(ptr, &mut head)?;
        let have = head.get(..have).unwrap_or_default();
        let key = self.part(span.ptr, have, span.key_at, self.limited("key", span.key_len)?)?;
        let value = self.part(span.ptr, have, span.value_at, self.limited("value", span.value_len)?)?;
        Ok(KvEntry { ptr, deleted: span.deleted, key, value })
    }

    /// The key of the entry at `ptr`.
    pub fn key(&self, ptr: u64) -> Result<Vec<u8>> {
        let mut head = [0; FIRST_READ];
        let (span, have) = self.span_with(ptr, &mut head)?;
        self.part(ptr, head.get(..have).unwrap_or_default(), span.key_at, self.limited("key", span.key_len)?)
    }

    /// The length of the value at `ptr`.
    pub fn value_len(&self, ptr: u64) -> Result<u64> {
        Ok(self.span(ptr)?.value_len)
    }

    /// Whether the entry at `ptr` is marked deleted.
    pub fn is_deleted(&self, ptr: u64) -> Result<bool> {
        Ok(self.span(ptr)?.deleted)
    }

    /// Reads from the value at `ptr`, `offset` bytes into it; fewer bytes than `buf` holds at its end.
    pub fn read_value(&self, ptr: u64, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let span = self.span(ptr)?;
        self.read_in(&span, offset, buf)
    }

    /// Bytes of the file as they are; the caller keeps within the end.
    pub(crate) fn read_raw(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        self.store.read(at, buf)
    }

    pub(crate) fn read_in(&self, span: &Span, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(span.value_len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let n = left.min(buf.len());
        if n > 0 {
            self.store.read(span.value_at + offset, buf.get_mut(..n).unwrap_or_default())?;
        }
        Ok(n)
    }

    /// The value at `ptr` if its key is `key`; nothing if it is another. A pointer that cannot be right has no key.
    pub(crate) fn value_if(&self, ptr: u64, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut head = [0; FIRST_READ];
        let Some((span, have)) = self.span_if(ptr, key, &mut head)? else { return Ok(None) };
        let len = self.limited("value", span.value_len)?;
        self.part(ptr, head.get(..have).unwrap_or_default(), span.value_at, len).map(Some)
    }

    /// Whether the entry at `ptr` has the key `key`.
    pub(crate) fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        let mut head = [0; FIRST_READ];
        Ok(self.span_if(ptr, key, &mut head)?.is_some())
    }

    fn span_if(&self, ptr: u64, key: &[u8], head: &mut [u8]) -> Result<Option<(Span, usize)>> {
        if !self.reaches(ptr)? {
            return Ok(None);
        }
        let (span, have) = match self.span_with(ptr, head) {
            Err(e) if self.is_taken_back(ptr, &e)? => return Ok(None),
            found => found?,
        };
        if span.key_len != key.len() as u64 {
            return Ok(None);
        }
        let start = usize::try_from(span.key_at - ptr).unwrap_or(usize::MAX);
        let inside = head.get(..have).and_then(|h| h.get(start..)).and_then(|h| h.get(..key.len()));
        let equal = match inside {
            Some(found) => found == key,
            None => self.part(ptr, &[], span.key_at, key.len())? == key,
        };
        Ok(equal.then_some((span, have)))
    }

    /// Whether an entry could start at `ptr`.
    pub(crate) fn is_pointer(&self, ptr: u64) -> bool {
        ptr >= self.first() && ptr < self.end() && ptr.is_multiple_of(self.layout.align)
    }

    /// The same, for a reader also if its writer has come that far since.
    pub(crate) fn reaches(&self, ptr: u64) -> Result<bool> {
        Ok(self.is_pointer(ptr) || (ptr >= self.end() && self.catch_up()? && self.is_pointer(ptr)))
    }

    /// The places of the entry at `ptr`.
    pub(crate) fn span(&self, ptr: u64) -> Result<Span> {
        Ok(self.span_with(ptr, &mut [0; 64])?.0)
    }

    /// The places of the entry at `ptr`, and how many of its first bytes were read into `head`.
    pub(crate) fn span_with(&self, ptr: u64, head: &mut [u8]) -> Result<(Span, usize)> {
        let (span, have) = self.claimed_span(ptr, head)?;
        match self.whole(span) {
            // A repair may have cut it since.
            Err(Error::TornEntry { .. }) if self.access == Access::Read && !self.strict => {
                let (span, have) = self.claimed_span(ptr, head)?;
                Ok((self.whole(span)?, have))
            }
            span => Ok((span?, have)),
        }
    }

    /// The same as the entry itself has it, even if it passes the end.
    pub(crate) fn claimed_span(&self, ptr: u64, head: &mut [u8]) -> Result<(Span, usize)> {
        // A pointer may have been written, and read, after the end was looked at.
        if !self.reaches(ptr)? {
            return Err(Error::BadPointer { path: self.path().into(), ptr });
        }
        let have = usize::try_from(self.end() - ptr).unwrap_or(usize::MAX).min(head.len());
        let head = head.get_mut(..have).unwrap_or_default();
        self.store.read(ptr, head)?;
        let key = match self.layout.key_span(ptr, head) {
            Ok(Some(key)) => key,
            Ok(None) => return Err(self.torn(ptr, ptr + MAX_PREFIX as u64)),
            Err(broken) => return Err(broken.at(self.path(), ptr)),
        };
        let inside = usize::try_from(key.value_head - ptr).ok().and_then(|start| head.get(start..));
        let span = match inside.map(|bytes| self.layout.value_span(ptr, key, bytes)) {
            Some(Ok(Some(span))) => span,
            Some(Err(broken)) => return Err(broken.at(self.path(), ptr)),
            Some(Ok(None)) | None => self.far_value(ptr, key)?,
        };
        Ok((span, have))
    }

    /// The entry's places when its value's length was not among the bytes read first.
    fn far_value(&self, ptr: u64, key: KeySpan) -> Result<Span> {
        let width = self.layout.value.prefix_bytes();
        if key.value_head.saturating_add(width as u64) > self.end() {
            return Err(self.torn(ptr, key.value_head.saturating_add(width as u64)));
        }
        let mut prefix = [0; 8];
        let prefix = prefix.get_mut(..width).unwrap_or_default();
        self.store.read(key.value_head, prefix)?;
        match self.layout.value_span(ptr, key, prefix) {
            Ok(Some(span)) => Ok(span),
            Ok(None) => Err(self.torn(ptr, key.value_head + width as u64)),
            Err(broken) => Err(broken.at(self.path(), ptr)),
        }
    }

    /// Refuses an entry that passes the end. Only the last value may seem to, while its writer makes it longer or after
    /// a crash during that: a reader then sees as much of it as the end allows.
    pub(crate) fn whole(&self, mut span: Span) -> Result<Span> {
        let end = self.end();
        if span.end <= end {
            return Ok(span);
        }
        if self.access == Access::Read
            && !self.strict
            && self.layout.value.can_grow()
            && span.value_at <= end
            && self.growing()?
        {
            span.value_len = end - span.value_at;
            span.end = end;
            return Ok(span);
        }
        Err(self.torn(span.ptr, span.end))
    }

    /// Whether the file is being written, was not closed properly, or has changed since it was opened.
    fn growing(&self) -> Result<bool> {
        // Asked first: a writer that goes has changed the superblock by then.
        if self.writer_lives()? {
            return Ok(true);
        }
        let sb = open::read_superblock(self.store.file(), Access::Read)?;
        let (end, synced) = Self::bounds(&sb, self.path(), u64::MAX)?;
        Ok(end != synced || end != self.end())
    }

    fn torn(&self, ptr: u64, ends: u64) -> Error {
        Error::TornEntry { path: self.path().into(), ptr, ends, end: self.end() }
    }

    fn limited(&self, what: &'static str, len: u64) -> Result<usize> {
        let limit = if what == "key" { self.settings.max_key_bytes } else { self.settings.max_value_bytes };
        match usize::try_from(len) {
            Ok(n) if len <= limit => Ok(n),
            _ => Err(Error::TooLong { path: self.path().into(), what, len, limit }),
        }
    }

    /// `len` bytes at `at`, from those read already (`have`, which start at `ptr`) or the file.
    fn part(&self, ptr: u64, have: &[u8], at: u64, len: usize) -> Result<Vec<u8>> {
        let start = usize::try_from(at - ptr).unwrap_or(usize::MAX);
        if let Some(found) = have.get(start..).and_then(|h| h.get(..len)) {
            return Ok(found.to_vec());
        }
        let mut bytes = vec![0; len];
        self.store.read(at, &mut bytes)?;
        Ok(bytes)
    }
}
