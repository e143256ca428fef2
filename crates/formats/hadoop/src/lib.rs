//! Hadoop's files without a JVM.
//!
//! | what | where |
//! | --- | --- |
//! | Writables: numbers, strings, maps | [`Decoder`], [`Encode`], [`Text`], [`MapWritable`] |
//! | SequenceFile, versions 1 to 6, three compressions, seven codecs | [`seq`] |
//! | MapFile, ArrayFile, SetFile, BloomMapFile | [`map`] |
//! | `.crc` sidecars | [`crc`] |
//! | which part a key belongs to | [`parts`] |
//! | what Java prints and hashes | [`java`], [`java_text`] |
//!
//! Not here: HDFS, MapReduce, and the classes of applications. A class that is unknown here can still be read: its values
//! are bytes.
//!
//! ```
//! use trawl_hadoop::{Encode, class, seq};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let path = dir.path().join("urls.seq");
//! let options = seq::WriterOptions::new(class::TEXT, class::INT, *b"sixteen bytes ok");
//! let mut writer = seq::Writer::create(&path, options)?;
//! let mut key = Vec::new();
//! key.put_text(b"https://example.com/");
//! writer.append(&key, &200i32.to_be_bytes())?;
//! writer.finish()?;
//!
//! let mut reader = seq::Reader::open(&path)?;
//! while let Some(record) = reader.next_record()? {
//!     assert_eq!(record.key, key);
//! }
//! # Ok(()) }
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

pub mod class;
pub mod codec;
pub mod crc;
mod decode;
mod encode;
mod error;
pub mod java;
pub mod java_text;
pub mod json;
mod limits;
pub mod map;
mod map_writable;
pub mod order;
pub mod parts;
pub mod seq;
mod strings;
pub mod text;

#[cfg(test)]
mod vectors;

pub use codec::Codec;
pub use decode::{Decoded, Decoder};
pub use encode::Encode;
pub use error::{Error, Result, ValueError};
pub use limits::Limits;
pub use map_writable::{Any, MapWritable, class_name};
pub use strings::{EncodeStrings, MAX_INFLATED_BYTES, Strings, inflate_zlib};
pub use text::Text;
