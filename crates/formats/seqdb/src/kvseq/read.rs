//! Reading single entries.

use super::layout::{KeySpan, MAX_PREFIX, Span};
use super::{Kvseq, bounds};
use crate::num::index;
use crate::sorting::number;
use crate::{Error, Result};

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

/// The places of an entry, and as many of its first bytes as were read to find them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub span: Span,
    bytes: &'a [u8],
}

impl<'a> Head<'a> {
    /// Bytes that were read.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// `len` bytes at `at` in the file, if all of them were read.
    pub fn slice(&self, at: u64, len: u64) -> Option<&'a [u8]> {
        self.bytes.get(index(at.checked_sub(self.span.ptr)?)..)?.get(..index(len))
    }

    /// The key, if all of it was read.
    pub fn key(&self) -> Option<&'a [u8]> {
        self.slice(self.span.key_at, self.span.key_len)
    }

    /// The value, if all of it was read.
    pub fn value(&self) -> Option<&'a [u8]> {
        self.slice(self.span.value_at, self.span.value_len)
    }
}

impl Kvseq {
    /// The entry at `ptr`. Keys and values above the limits of the settings are refused.
    pub fn get(&self, ptr: u64) -> Result<KvEntry> {
        let mut buf = [0; FIRST_READ];
        let head = self.head(ptr, &mut buf)?;
        Ok(KvEntry { ptr, deleted: head.span.deleted, key: self.key_of(&head)?, value: self.value_of(&head)? })
    }

    /// The key of the entry at `ptr`.
    pub fn key(&self, ptr: u64) -> Result<Vec<u8>> {
        self.key_of(&self.head(ptr, &mut [0; FIRST_READ])?)
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
        let n = index(span.value_len.saturating_sub(offset)).min(buf.len());
        if n > 0 {
            self.file.store.read(span.value_at + offset, buf.split_at_mut(n).0)?;
        }
        Ok(n)
    }

    /// How many entries there are in a file whose entries are pairs of numbers.
    pub(crate) fn pairs(&self) -> u64 {
        self.end().saturating_sub(self.first()) / 16
    }

    /// The `i`-th of them.
    pub(crate) fn pair(&self, i: u64) -> Result<Option<(u64, u64)>> {
        if i >= self.pairs() {
            return Ok(None);
        }
        let mut bytes = [0; 16];
        self.file.store.read(self.first() + 16 * i, &mut bytes)?;
        Ok(Some((number(&bytes, 0), number(&bytes, 1))))
    }

    /// Bytes of the file as they are; the caller keeps within the end.
    pub(crate) fn read_raw(&self, at: u64, buf: &mut [u8]) -> Result<()> {
        self.file.store.read(at, buf)
    }

    /// The value at `ptr` if its key is `key`; nothing if it is another. A pointer that cannot be right has no key.
    pub(crate) fn value_if(&self, ptr: u64, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut buf = [0; FIRST_READ];
        let head = self.head_if(ptr, key, &mut buf)?;
        head.map(|head| self.value_of(&head)).transpose()
    }

    /// Whether the entry at `ptr` has the key `key`.
    pub(crate) fn has_key(&self, ptr: u64, key: &[u8]) -> Result<bool> {
        Ok(self.head_if(ptr, key, &mut [0; FIRST_READ])?.is_some())
    }

    fn head_if<'b>(&self, ptr: u64, key: &[u8], buf: &'b mut [u8]) -> Result<Option<Head<'b>>> {
        if !self.reaches(ptr)? {
            return Ok(None);
        }
        let head = match self.head(ptr, buf) {
            Err(e) if self.is_taken_back(ptr, &e)? => return Ok(None),
            found => found?,
        };
        let equal = head.span.key_len == key.len() as u64
            && match head.key() {
                Some(found) => found == key,
                None => self.part(&head, head.span.key_at, head.span.key_len)? == key,
            };
        Ok(equal.then_some(head))
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
        Ok(self.head(ptr, &mut [0; 64])?.span)
    }

    /// The entry at `ptr`, of which the first bytes are read into `buf`.
    pub(crate) fn head<'b>(&self, ptr: u64, buf: &'b mut [u8]) -> Result<Head<'b>> {
        let (mut span, mut have) = self.claimed_span(ptr, buf)?;
        span = match self.whole(span) {
            // A repair may have cut it since.
            Err(Error::TornEntry { .. }) if self.is_beside() => {
                (span, have) = self.claimed_span(ptr, buf)?;
                self.whole(span)?
            }
            span => span?,
        };
        Ok(Head { span, bytes: buf.split_at(have).0 })
    }

    /// The places of an entry as it has them itself, even if it passes the end, and how many bytes were read into `buf`.
    pub(crate) fn claimed_span(&self, ptr: u64, buf: &mut [u8]) -> Result<(Span, usize)> {
        // A pointer may have been written, and read, after the end was looked at.
        if !self.reaches(ptr)? {
            return Err(Error::BadPointer { path: self.path().into(), ptr });
        }
        let have = index(self.end() - ptr).min(buf.len());
        let (head, _) = buf.split_at_mut(have);
        self.file.store.read(ptr, head)?;
        let key = match self.layout.key_span(ptr, head) {
            Ok(Some(key)) => key,
            Ok(None) => return Err(self.torn(ptr, ptr + MAX_PREFIX as u64)),
            Err(broken) => return Err(broken.at(self.path(), ptr)),
        };
        if let Some(rest) = head.get(index(key.value_head - ptr)..) {
            match self.layout.value_span(ptr, key, rest) {
                Ok(Some(span)) => return Ok((span, have)),
                Ok(None) => {}
                Err(broken) => return Err(broken.at(self.path(), ptr)),
            }
        }
        Ok((self.far_value(ptr, key)?, have))
    }

    /// The places of an entry whose key is so long that the length of its value was not among the bytes read.
    #[cold]
    fn far_value(&self, ptr: u64, key: KeySpan) -> Result<Span> {
        let width = self.layout.value.prefix_bytes();
        let starts = key.value_head.saturating_add(width as u64);
        if starts > self.end() {
            return Err(self.torn(ptr, starts));
        }
        let mut prefix = [0; 8];
        let (prefix, _) = prefix.split_at_mut(width);
        self.file.store.read(key.value_head, prefix)?;
        let span = self.layout.value_span(ptr, key, prefix).map_err(|broken| broken.at(self.path(), ptr))?;
        span.ok_or_else(|| self.torn(ptr, starts))
    }

    /// Refuses an entry that passes the end. Only the last value may seem to, while its writer makes it longer or after
    /// a crash during that: a reader then sees as much of it as the end allows.
    pub(crate) fn whole(&self, mut span: Span) -> Result<Span> {
        let end = self.end();
        if span.end <= end {
            return Ok(span);
        }
        if self.is_beside() && self.layout.value.can_grow() && span.value_at <= end && self.is_growing()? {
            span.value_len = end - span.value_at;
            span.end = end;
            return Ok(span);
        }
        Err(self.torn(span.ptr, span.end))
    }

    /// Whether the file is being written, was not closed properly, or has changed since it was opened.
    fn is_growing(&self) -> Result<bool> {
        // Asked first: a writer that goes has changed the superblock by then.
        if self.writer_lives()? {
            return Ok(true);
        }
        let (end, synced) = bounds(&self.file.reread()?, u64::MAX)?;
        Ok(end != synced || end != self.end())
    }

    pub(super) fn torn(&self, ptr: u64, ends: u64) -> Error {
        Error::TornEntry { path: self.path().into(), ptr, ends, end: self.end() }
    }

    fn key_of(&self, head: &Head<'_>) -> Result<Vec<u8>> {
        let (len, limit) = (head.span.key_len, self.file.settings.max_key_bytes);
        if len > limit {
            return Err(Error::TooLong { path: self.path().into(), what: "key", len, limit });
        }
        self.part(head, head.span.key_at, len)
    }

    #[inline]
    fn value_of(&self, head: &Head<'_>) -> Result<Vec<u8>> {
        let (len, limit) = (head.span.value_len, self.file.settings.max_value_bytes);
        if len > limit {
            return Err(Error::TooLong { path: self.path().into(), what: "value", len, limit });
        }
        self.part(head, head.span.value_at, len)
    }

    /// `len` bytes at `at`, from those read already or the file.
    pub(crate) fn part(&self, head: &Head<'_>, at: u64, len: u64) -> Result<Vec<u8>> {
        if let Some(found) = head.slice(at, len) {
            return Ok(found.to_vec());
        }
        let mut bytes = vec![0; index(len)];
        self.file.store.read(at, &mut bytes)?;
        Ok(bytes)
    }
}
