//! Lengths found in files are claims: check them against a limit, then let memory grow with the bytes that arrive.

use crate::{Error, Op, Result};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// First allocation for a claimed length; the rest grows as bytes arrive.
const FIRST_RESERVE: u64 = 64 * 1024;

/// Where a length stands, for the message when it is refused.
#[derive(Debug, Clone, Copy)]
pub struct Claim<'a> {
    /// The file.
    pub path: &'a Path,
    /// Byte offset of the claim.
    pub offset: u64,
    /// What has the length.
    pub what: &'static str,
}

impl Claim<'_> {
    /// `claimed` as a `usize` if it is within `limit`.
    pub fn check(&self, claimed: u64, limit: u64) -> Result<usize> {
        match usize::try_from(claimed) {
            Ok(n) if claimed <= limit => Ok(n),
            _ => Err(Error::OverLimit { path: self.path.into(), offset: self.offset, what: self.what, claimed, limit }),
        }
    }

    /// Reads exactly `claimed` bytes if that is within `limit`.
    pub fn read_exact_limited(&self, src: &mut dyn Read, claimed: u64, limit: u64) -> Result<Vec<u8>> {
        self.check(claimed, limit)?;
        let mut bytes = Vec::with_capacity(usize::try_from(claimed.min(FIRST_RESERVE)).unwrap_or(0));
        src.take(claimed).read_to_end(&mut bytes).map_err(|e| Error::io_at(Op::Read, self.path, self.offset, e))?;
        let found = bytes.len() as u64;
        if found < claimed {
            return Err(Error::Short { path: self.path.into(), offset: self.offset, wanted: claimed, found });
        }
        Ok(bytes)
    }
}

/// Passes bytes through and fails, rather than ends, once more than `limit` of them came: for decompressed data whose
/// size that nothing vouches for.
#[derive(Debug)]
pub struct CappedReader<R> {
    inner: R,
    left: u64,
    limit: u64,
    what: &'static str,
}

impl<R: Read> CappedReader<R> {
    /// Allows `limit` bytes of `what`.
    pub fn new(inner: R, limit: u64, what: &'static str) -> Self {
        CappedReader { inner, left: limit, limit, what }
    }

    /// Bytes read so far.
    pub fn used(&self) -> u64 {
        self.limit - self.left
    }

    /// The reader beneath.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Read> Read for CappedReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buf.is_empty() {
            // One byte past the limit decides between "just fits" and "too long".
            return match self.inner.read(&mut [0])? {
                0 => Ok(0),
                _ => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{} is longer than the limit of {} bytes", self.what, self.limit),
                )),
            };
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.inner.read(buf.get_mut(..room).unwrap_or_default())?;
        self.left = self.left.saturating_sub(n as u64);
        Ok(n)
    }
}

/// A reader for push parsers: shows what is buffered, fetches more when asked, and never holds more than its limit.
///
/// A parser that answers "need at least n bytes" is driven by `fill(n)`, and `consume` after it succeeded.
#[derive(Debug)]
pub struct BoundedBuf<R> {
    inner: R,
    path: PathBuf,
    buf: Vec<u8>,
    /// Consumed bytes at the front of `buf`.
    start: usize,
    /// Absolute offset of the first unconsumed byte.
    offset: u64,
    limit: usize,
}

impl<R: Read> BoundedBuf<R> {
    /// Reads `inner`, which is `path`, holding at most `limit` bytes.
    pub fn new(inner: R, path: &Path, limit: usize) -> Self {
        BoundedBuf { inner, path: path.into(), buf: Vec::new(), start: 0, offset: 0, limit }
    }

    /// What is buffered and not consumed.
    pub fn buffered(&self) -> &[u8] {
        self.buf.get(self.start..).unwrap_or_default()
    }

    /// The absolute offset of the first unconsumed byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads until at least `at_least` bytes are buffered or the input ends, and shows them all. Asking for more than
    /// the limit is [`Error::OverLimit`].
    pub fn fill(&mut self, at_least: usize, what: &'static str) -> Result<&[u8]> {
        if at_least > self.limit {
            let (claimed, limit) = (at_least as u64, self.limit as u64);
            return Err(Error::OverLimit { path: self.path.clone(), offset: self.offset, what, claimed, limit });
        }
        if self.buffered().len() < at_least {
            self.buf.drain(..self.start);
            self.start = 0;
        }
        while self.buf.len() - self.start < at_least {
            let have = self.buf.len();
            let room = have.max(8 * 1024).min(self.limit - have);
            self.buf.resize(have + room, 0);
            let read = loop {
                match self.inner.read(self.buf.get_mut(have..).unwrap_or_default()) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    result => break result,
                }
            };
            self.buf.truncate(have + read.as_ref().copied().unwrap_or(0));
            let at = self.offset.saturating_add(have as u64);
            if read.map_err(|e| Error::io_at(Op::Read, &self.path, at, e))? == 0 {
                break;
            }
        }
        Ok(self.buffered())
    }

    /// Marks up to `n` buffered bytes as done.
    pub fn consume(&mut self, n: usize) {
        let n = n.min(self.buf.len() - self.start);
        self.start += n;
        self.offset += n as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim<'static> {
        Claim { path: Path::new("f"), offset: 7, what: "body" }
    }

    #[test]
    fn a_claim_is_checked_before_a_byte_is_read() {
        let mut src: &[u8] = b"abcdef";
        let err = claim().read_exact_limited(&mut src, 1 << 60, 100).unwrap_err();
        assert_eq!(err.to_string(), "f@7: body claims 1152921504606846976 bytes, limit 100");
        assert_eq!(src.len(), 6);
        assert_eq!(claim().read_exact_limited(&mut src, 4, 4).unwrap(), b"abcd");
        let err = claim().read_exact_limited(&mut src, 4, 4).unwrap_err();
        assert_eq!(err.to_string(), "f@7: expected 4 bytes, found 2");
    }

    #[test]
    fn a_large_claim_reserves_little() {
        let bytes = claim().read_exact_limited(&mut &b""[..], 1 << 40, u64::MAX);
        assert!(matches!(bytes, Err(Error::Short { found: 0, .. })));
    }

    #[test]
    fn capped_just_fits_or_fails() {
        let mut out = Vec::new();
        CappedReader::new(&b"abcd"[..], 4, "page").read_to_end(&mut out).unwrap();
        assert_eq!(out, b"abcd");
        let err = CappedReader::new(&b"abcd"[..], 3, "page").read_to_end(&mut out).unwrap_err();
        assert_eq!(err.to_string(), "page is longer than the limit of 3 bytes");
    }

    #[test]
    fn bounded_buffer_moves_on_and_keeps_its_limit() {
        let data: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
        let mut buf = BoundedBuf::new(&data[..], Path::new("f"), 10_000);
        let mut seen = Vec::new();
        loop {
            let have = buf.fill(9_999, "frame").unwrap();
            assert!(have.len() <= 10_000);
            if have.is_empty() {
                break;
            }
            let n = have.len().min(777);
            seen.extend_from_slice(&have[..n]);
            buf.consume(n);
            assert_eq!(buf.offset(), seen.len() as u64);
            assert!(buf.buf.capacity() <= 40_000);
        }
        assert_eq!(seen, data);
        assert!(matches!(buf.fill(10_001, "frame"), Err(Error::OverLimit { offset: 100_000, .. })));
    }
}
