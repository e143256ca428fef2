//! What the pages of a lake's Parquet are made of, both ways: what is written here is read here, and more.

pub(crate) mod delta;
pub(crate) mod header;
pub(crate) mod levels;

/// A value, or what was found in the place of what was expected.
pub(crate) type Found<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Encodings, as page headers number them.
pub(crate) const PLAIN: u32 = 0;
pub(crate) const PLAIN_DICTIONARY: u32 = 2;
pub(crate) const RLE: u32 = 3;
pub(crate) const DELTA_BINARY_PACKED: u32 = 5;
pub(crate) const DELTA_LENGTH_BYTE_ARRAY: u32 = 6;
pub(crate) const DELTA_BYTE_ARRAY: u32 = 7;
pub(crate) const RLE_DICTIONARY: u32 = 8;
