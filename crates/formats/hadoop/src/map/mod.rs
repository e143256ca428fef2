//! MapFile: a directory with a sorted SequenceFile `data` and a sparse `index` of it.
//!
//! ```text
//! data   key -> value, keys ascending (equal neighbours allowed)
//! index  every 128th key -> LongWritable: where its record, or the block that holds it, begins in data
//! ```
//! *ArrayFile*: keys are LongWritable 0, 1, 2, … *SetFile*: values are NullWritable. *BloomMapFile*: a file `bloom` beside,
//! which rules most absent keys out.
//!
//! An index is derived from its data and can be rebuilt. One that ends early is used as far as it goes.

mod bloom;
mod index;
mod reader;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub use bloom::BloomFilter;
pub use index::{Index, rebuild_index};
pub use reader::{MapReader, Range};
pub use verify::verify;
pub use writer::{DEFAULT_INTERVAL, MapWriter, MapWriterOptions};

use std::path::{Path, PathBuf};

/// The file of records.
pub fn data_path(dir: &Path) -> PathBuf {
    dir.join("data")
}

/// The file of every so many keys.
pub fn index_path(dir: &Path) -> PathBuf {
    dir.join("index")
}
