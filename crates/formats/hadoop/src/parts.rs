//! Which part a key belongs to, and which entries of a directory are parts.

use crate::{Result, java};
use std::path::{Path, PathBuf};
use trawl_io::Fs;

/// The part that Hadoop's `HashPartitioner` gives to a key with this hash code. Readers look into that part only.
pub fn part_of_hash(hash: i32, parts: u32) -> u32 {
    (hash & i32::MAX).cast_unsigned() % parts.max(1)
}

/// The part of a `Text` key, given its bytes without the length.
pub fn part_of_text(content: &[u8], parts: u32) -> u32 {
    part_of_hash(java::hash_bytes(content), parts)
}

/// `part-r-00003`: five digits at least.
pub fn part_name(n: u32) -> String {
    format!("part-r-{n:05}")
}

/// One part of an output directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its file or directory.
    pub path: PathBuf,
    /// Whether it is a directory: a MapFile.
    pub is_dir: bool,
}

/// The parts of an output directory in Hadoop's order: sorted by name, without names that begin with `_` or `.`.
pub fn list_parts(fs: &dyn Fs, dir: &Path) -> Result<Vec<Part>> {
    let hidden = |name: &std::ffi::OsStr| matches!(name.as_encoded_bytes().first(), Some(b'_' | b'.') | None);
    let parts = fs.list(dir)?.into_iter().filter(|entry| !hidden(&entry.name));
    Ok(parts.map(|entry| Part { path: dir.join(&entry.name), is_dir: entry.is_dir }).collect())
}
