//! Bodies that need not fit into memory.

use bytes::Bytes;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

/// Something spooled that can be read from its start any number of times (a temporary file, usually).
pub trait Reopen: Send + Sync {
    /// A reader at the first byte.
    fn open(&self) -> io::Result<Box<dyn Read + Send>>;
    /// Total bytes.
    fn len_bytes(&self) -> u64;
}

/// The body of a message.
pub enum Body<'a> {
    /// In memory.
    Memory(Bytes),
    /// Spooled: readable again and again, so that a digest can precede the block.
    Spooled(Arc<dyn Reopen>),
    /// Borrowed from a container that is being read: once, front to back.
    Reader {
        /// Bytes the reader will yield, as far as the container says.
        len_bytes: u64,
        /// The bytes.
        reader: Box<dyn Read + Send + 'a>,
    },
}

impl Body<'_> {
    /// No bytes at all.
    pub fn empty() -> Self {
        Self::Memory(Bytes::new())
    }

    /// Length in bytes.
    pub fn len_bytes(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Spooled(spool) => spool.len_bytes(),
            Self::Reader { len_bytes, .. } => *len_bytes,
        }
    }

    /// A reader over the bytes. A borrowed body is consumed by reading; the others start again.
    pub fn reader(&mut self) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::Memory(bytes) => Box::new(io::Cursor::new(bytes.clone())),
            Self::Spooled(spool) => spool.open()?,
            Self::Reader { reader, .. } => Box::new(reader.by_ref()),
        })
    }

    /// Reads it whole, refusing more than `limit` bytes.
    pub fn read_to_bytes(&mut self, limit: u64) -> io::Result<Bytes> {
        if let Self::Memory(bytes) = self
            && bytes.len() as u64 <= limit
        {
            return Ok(bytes.clone());
        }
        let mut out = Vec::new();
        self.reader()?.take(limit.saturating_add(1)).read_to_end(&mut out)?;
        if out.len() as u64 > limit {
            let message = format!("body of more than {limit} bytes, the limit of this call");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(out.into())
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Memory(_) => "Memory",
            Self::Spooled(_) => "Spooled",
            Self::Reader { .. } => "Reader",
        };
        write!(f, "{kind}({} bytes)", self.len_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_reads_twice_and_a_reader_once() {
        let mut memory = Body::Memory(Bytes::from_static(b"abc"));
        assert_eq!(memory.read_to_bytes(3).unwrap(), "abc");
        assert_eq!(memory.read_to_bytes(3).unwrap(), "abc");
        assert!(memory.read_to_bytes(2).is_err());
        let mut borrowed = Body::Reader { len_bytes: 3, reader: Box::new(&b"abc"[..]) };
        assert_eq!(borrowed.read_to_bytes(10).unwrap(), "abc");
        assert_eq!(borrowed.read_to_bytes(10).unwrap(), "");
    }
}
