//! Random access: a length, and bytes at offsets.
//!
//! Formats read through [`ReadAt`] so that a local file, a map, memory and an object in a store look the same. Ask for
//! all ranges of one step at once ([`ReadAt::read_ranges`]): a store answers a batch in one round.

mod count;
mod file;
mod map;

pub use count::{Counting, Reads};
pub use file::FileReader;
pub use map::MapReader;

use crate::{Error, Result};
use bytes::Bytes;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes of fixed length, readable at any offset from any thread.
pub trait ReadAt: Send + Sync {
    /// What is read, for messages: a path or an object's name.
    fn name(&self) -> &Path;

    /// The length in bytes, as it was when opened.
    fn len(&self) -> u64;

    /// Fills `buf` from `offset`. A range that passes the end is [`Error::Short`].
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Whether there are no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of one range. The range is checked against the length before memory is reserved for it.
    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let wanted = check_range(self.name(), self.len(), &range)?;
        let mut buf = vec![0; wanted];
        self.read_at(range.start, &mut buf)?;
        Ok(buf.into())
    }

    /// The bytes of many ranges, in their order: one round trip where a round trip costs.
    fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.read_range(range.clone())).collect()
    }
}

macro_rules! delegate {
    ($t:ty) => {
        impl<T: ReadAt + ?Sized> ReadAt for $t {
            fn name(&self) -> &Path {
                (**self).name()
            }
            fn len(&self) -> u64 {
                (**self).len()
            }
            fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
                (**self).read_at(offset, buf)
            }
            fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
                (**self).read_range(range)
            }
            fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
                (**self).read_ranges(ranges)
            }
        }
    };
}
delegate!(&T);
delegate!(Arc<T>);
delegate!(Box<T>);

impl ReadAt for Bytes {
    fn name(&self) -> &Path {
        Path::new("(memory)")
    }

    fn len(&self) -> u64 {
        <[u8]>::len(self) as u64
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        copy_from(self.name(), self, offset, buf)
    }

    fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let wanted = check_range(self.name(), ReadAt::len(self), &range)?;
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        Ok(self.slice(start..start + wanted))
    }
}

/// The length of `range` if it lies within `len` bytes.
pub fn check_range(name: &Path, len: u64, range: &Range<u64>) -> Result<usize> {
    let wanted = range.end.saturating_sub(range.start);
    match usize::try_from(wanted) {
        Ok(n) if range.start <= range.end && range.end <= len => Ok(n),
        _ => Err(Error::Short {
            path: name.into(),
            offset: range.start,
            wanted,
            found: len.saturating_sub(range.start).min(wanted),
        }),
    }
}

/// [`ReadAt::read_at`] over a slice.
pub(crate) fn copy_from(name: &Path, bytes: &[u8], offset: u64, buf: &mut [u8]) -> Result<()> {
    let end = offset.saturating_add(buf.len() as u64);
    check_range(name, bytes.len() as u64, &(offset..end))?;
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    if let Some(found) = bytes.get(start..).and_then(|rest| rest.get(..buf.len())) {
        buf.copy_from_slice(found);
    }
    Ok(())
}

/// The position a seek leads to.
fn seek(at: u64, len: u64, to: SeekFrom) -> io::Result<u64> {
    let target = match to {
        SeekFrom::Start(n) => Some(n),
        SeekFrom::End(n) => len.checked_add_signed(n),
        SeekFrom::Current(n) => at.checked_add_signed(n),
    };
    target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "seek before the start"))
}

/// `Read` and `Seek` over a [`ReadAt`]. Unbuffered: wrap it in a `BufReader` for small reads.
#[derive(Debug, Clone)]
pub struct Cursor<R> {
    inner: R,
    at: u64,
}

impl<R: ReadAt> Cursor<R> {
    /// Starts at the first byte.
    pub fn new(inner: R) -> Self {
        Cursor { inner, at: 0 }
    }

    /// What is read.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }
}

impl<R: ReadAt> Read for Cursor<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.inner.len().saturating_sub(self.at)).unwrap_or(usize::MAX);
        let n = buf.len().min(left);
        if n == 0 {
            return Ok(0);
        }
        self.inner.read_at(self.at, buf.get_mut(..n).unwrap_or_default())?;
        self.at += n as u64;
        Ok(n)
    }
}

impl<R: ReadAt> Seek for Cursor<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = seek(self.at, self.inner.len(), to)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests;
