//! SequenceFile: a flat file of keys and values.
//!
//! ```text
//! header   "SEQ" version key-class value-class compressed blocked codec metadata sync-marker   (see header)
//! records  i32 length of key and value, i32 length of key, key, value        none; RECORD: the value is one stream
//!          i32 -1, marker                                                    now and then: an escape
//! blocks   i32 -1, marker, VInt records, then four streams                   BLOCK
//!          each VInt length and bytes: key lengths, keys, value lengths, values
//! ```
//!
//! | version | written by | differs in |
//! | --- | --- | --- |
//! | 1 | Nutch 0.3 to 0.6 | class names as UTF8, no marker, nothing compressed |
//! | 2 | Nutch 0.7 | marker |
//! | 3 | Hadoop 0.1 to 0.5 (Nutch 0.8) | a flag: values compressed by DefaultCodec |
//! | 4 | unreleased | class names as Text, a flag: blocks |
//! | 5 | Hadoop 0.6 to 0.13 (Nutch 0.9) | name of the codec |
//! | 6 | Hadoop 0.14 and later | metadata |
//!
//! All are read; 6 is written, and 1 for the layouts of Nutch 0.4 and 0.5.

mod block;
mod header;
mod inspect;
mod reader;
mod sort;
mod verify;
mod window;
mod writer;

#[cfg(test)]
mod tests;

pub use header::{Compression, Header, Marker};
pub use inspect::{Inspection, inspect};
pub use reader::{At, OpenOptions, Reader, Record, Span};
pub use sort::{SortSettings, sort};
pub use verify::{CheckRecord, Fault, verify};
pub use writer::{Pack, Writer, WriterOptions, Written};

/// What stands where a record's length would: a marker follows.
const ESCAPE: i32 = -1;
/// Bytes of an escape: the -1 and the marker.
const ESCAPE_BYTES: u64 = 4 + 16;
