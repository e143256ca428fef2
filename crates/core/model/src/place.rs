//! Where an entry lies.

use std::fmt;
use std::sync::Arc;

/// A seekable place in a container: enough to come back for exactly this entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The file, as the container names it (no directory where the container has one of its own).
    pub file: Arc<str>,
    /// Byte offset in the file as stored: of a compressed member, its first byte.
    pub offset: u64,
    /// Stored length in bytes; 0 where unknown.
    pub length: u64,
    /// Which entry inside the compressed block at `offset`; 0 where a block holds one entry.
    pub index: u32,
}

impl Place {
    /// A place at the start of a block.
    pub fn new(file: impl Into<Arc<str>>, offset: u64, length: u64) -> Self {
        Self { file: file.into(), offset, length, index: 0 }
    }
}

/// `file@offset`, with `+index` for an entry inside a block.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.file, self.offset)?;
        if self.index > 0 { write!(f, "+{}", self.index) } else { Ok(()) }
    }
}
