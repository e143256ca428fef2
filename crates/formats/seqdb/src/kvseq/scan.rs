//! Reading entries in disk order, many at a time.

use super::Kvseq;
use super::layout::{Broken, Span};
use crate::num::index;
use crate::{Error, Result};
use trawl_io::Hint;

/// A value up to this size is handed out as a slice; larger ones are read by the caller, in parts.
const INLINE_LIMIT: u64 = 16 << 20;

/// One entry of an iteration.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Where it starts.
    pub ptr: u64,
    /// Whether it is marked deleted.
    pub deleted: bool,
    /// Its key.
    pub key: &'a [u8],
    /// Bytes of its value.
    pub value_len: u64,
    /// Its value, unless it is very large, or values were not asked for and it was not read anyway: see
    /// [`Kvseq::read_value`].
    pub value: Option<&'a [u8]>,
    pub(crate) span: Span,
}

/// Reads begin at multiples of this, in the file and in memory: copying from page to page is a third faster.
const BLOCK: u64 = 4096;

/// An iteration over a [`Kvseq`].
///
/// ```text
/// buf   | unused | rest of the last read | what is read next ... | not read
///                 ^at                     ^a multiple of BLOCK     ^have
/// ```
#[derive(Debug)]
pub struct Scan<'a> {
    kv: &'a Kvseq,
    /// Bytes up to `have` mean something, from `at` on: the rest is kept so that it need not be zeroed again.
    buf: Vec<u8>,
    have: usize,
    /// Offset in the file of `buf[0]`.
    start: u64,
    /// The next entry.
    at: u64,
    end: u64,
    chunk: usize,
    values: bool,
    deleted: bool,
    /// The last entry that was looked at, and whether one was passed over.
    last: u64,
    passed_over: bool,
    dropped: u64,
}

impl Kvseq {
    /// All entries not deleted, in disk order.
    pub fn scan(&self) -> Scan<'_> {
        self.scan_from(self.first())
    }

    /// The same from an entry on.
    pub fn scan_from(&self, ptr: u64) -> Scan<'_> {
        let end = self.end();
        if self.file.settings.big_readahead {
            // A hint: without it the system reads ahead as it sees fit.
            let _ = self.file.store.file().advise(ptr..end, Hint::Sequential);
        }
        let chunk = self.file.settings.scan_bytes();
        Scan {
            kv: self,
            buf: Vec::new(),
            have: 0,
            start: ptr,
            at: ptr,
            end,
            chunk,
            values: true,
            deleted: false,
            last: ptr,
            passed_over: false,
            dropped: ptr,
        }
    }
}

impl Kvseq {
    /// The last entry of `key` that is not deleted: without an index all entries are read.
    pub fn lookup(&self, key: &[u8]) -> Result<Option<u64>> {
        let mut scan = self.scan().keys_only();
        let mut found = None;
        while let Some(item) = scan.next_entry()? {
            if item.key == key {
                found = Some(item.ptr);
            }
        }
        Ok(found)
    }
}

impl<'a> Scan<'a> {
    /// Deleted entries too.
    #[must_use]
    pub fn with_deleted(mut self) -> Self {
        self.deleted = true;
        self
    }

    /// Leaves out values, which spares reading large ones.
    #[must_use]
    pub fn keys_only(mut self) -> Self {
        self.values = false;
        self
    }

    /// Where the next entry starts, or would.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next entry, valid until the next call; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<Item<'_>>> {
        self.advance(self.deleted)?.map(|span| self.item(span)).transpose()
    }

    /// The same even if it is marked deleted: what belongs to an entry that was just read is not passed over.
    pub(crate) fn next_entry_at_all(&mut self) -> Result<Option<Item<'_>>> {
        self.advance(true)?.map(|span| self.item(span)).transpose()
    }

    #[inline]
    fn advance(&mut self, deleted: bool) -> Result<Option<Span>> {
        loop {
            if self.at >= self.end && !self.go_on()? {
                return Ok(None);
            }
            let span = match self.parse() {
                Ok(Some(span)) => span,
                Ok(None) => match self.refill_and_parse() {
                    Err(e) if self.kv.is_taken_back(self.at, &e)? => return Ok(None),
                    span => span?,
                },
                Err(e) if self.kv.is_taken_back(self.at, &e)? => return Ok(None),
                Err(e) => return Err(e),
            };
            self.at = self.kv.layout.aligned(span.end);
            self.last = span.ptr;
            if !span.deleted || deleted {
                return Ok(Some(span));
            }
            self.passed_over = true;
        }
    }

    #[inline]
    fn item(&self, span: Span) -> Result<Item<'_>> {
        let slice = |at: u64, len: u64| self.filled().get(index(at.checked_sub(self.start)?)..)?.get(..index(len));
        let key = slice(span.key_at, span.key_len).ok_or_else(|| self.kv.torn(span.ptr, span.end))?;
        let value = slice(span.value_at, span.value_len);
        Ok(Item { ptr: span.ptr, deleted: span.deleted, key, value_len: span.value_len, value, span })
    }

    /// At the end: a live writer may have replaced entries that were passed over as deleted by others behind it.
    #[cold]
    fn go_on(&mut self) -> Result<bool> {
        if !std::mem::take(&mut self.passed_over) || !self.kv.catch_up()? || self.kv.end() <= self.end {
            return Ok(false);
        }
        // The last one may be longer by now.
        self.at = self.kv.layout.aligned(self.kv.span(self.last)?.end);
        (self.end, self.start, self.have) = (self.kv.end(), self.at, 0);
        Ok(self.at < self.end)
    }

    #[inline]
    fn filled(&self) -> &[u8] {
        self.buf.split_at(self.have).0
    }

    /// The entry at `at` if enough of it is in the buffer.
    #[inline]
    fn parse(&self) -> Result<Option<Span>> {
        let Some(bytes) = self.filled().get(index(self.at - self.start)..) else { return Ok(None) };
        let broken = |broken: Broken| broken.at(self.kv.path(), self.at);
        let Some(key) = self.kv.layout.key_span(self.at, bytes).map_err(broken)? else { return Ok(None) };
        let Some(rest) = bytes.get(index(key.value_head - self.at)..) else { return Ok(None) };
        let Some(span) = self.kv.layout.value_span(self.at, key, rest).map_err(broken)? else { return Ok(None) };
        let needed = if self.values && span.value_len <= INLINE_LIMIT { span.end } else { span.value_head };
        let enough = needed - self.at <= bytes.len() as u64;
        Ok((enough && span.end <= self.end).then_some(span))
    }

    /// Fetches more, at least as much of the next entry as is needed.
    #[cold]
    fn refill_and_parse(&mut self) -> Result<Span> {
        self.drop_read();
        self.fetch(self.at)?;
        if let Some(span) = self.parse()? {
            return Ok(span);
        }
        // A long one, or the last. Its places first, so that the buffer grows only for an entry that really is there.
        let span = self.kv.span(self.at)?;
        if span.key_len > self.kv.file.settings.max_key_bytes {
            let (len, limit) = (span.key_len, self.kv.file.settings.max_key_bytes);
            return Err(Error::TooLong { path: self.kv.path().into(), what: "key", len, limit });
        }
        let inline = self.values && span.value_len <= INLINE_LIMIT;
        let needed = if inline { span.end } else { span.value_head + 8 }.min(self.end);
        if needed > self.start + self.have as u64 {
            self.fetch(needed)?;
        }
        Ok(span)
    }

    /// Reads another chunk, and at least up to `until`; what is left from `at` on stays before it.
    fn fetch(&mut self, until: u64) -> Result<()> {
        let front = (self.start + self.have as u64).max(self.at - self.at % BLOCK);
        let rest = front.saturating_sub(self.at);
        let base = rest.next_multiple_of(BLOCK);
        let base = if base <= front { base } else { rest };
        let to = (front + self.chunk as u64).max(until).next_multiple_of(BLOCK).min(self.end);
        let (from, rest, base) = (index(self.at.saturating_sub(self.start)), index(rest), index(base));
        let wanted = base + index(to.saturating_sub(front));
        if wanted > self.buf.len() {
            self.buf.resize(wanted, 0);
        }
        if rest > 0 {
            self.buf.copy_within(from..from + rest, base - rest);
        }
        (self.start, self.have) = (front - base as u64, base);
        self.kv.file.store.read(front, self.buf.split_at_mut(wanted).0.split_at_mut(base).1)?;
        self.have = wanted;
        Ok(())
    }

    /// Lets go of pages that were read, if they are not to stay.
    fn drop_read(&mut self) {
        if !self.kv.file.settings.data_caching && self.at > self.dropped {
            // Failing to tidy the cache is no reason to stop reading.
            let _ = self.kv.file.store.file().advise(self.dropped - self.dropped % BLOCK..self.at, Hint::Done);
            self.dropped = self.at;
        }
    }
}
