//! Builds the file while the dictionary is written.

use super::chunk::{Names, Shape, build};
use super::{CHUNK_NAMES, END_MAGIC, HEADER, MAGIC, NameHash, VERSION, name_hash};
use crate::{Error, Result};
use std::io::Write;
use trawl_io::crc::{crc32c, crc32c_of};

const WHAT: &str = "domains.mphf";

/// What ties the file to its dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryHashes {
    /// xxh3_64 of the whole file.
    pub file: u64,
    /// xxh3_64 of its seek table, which a reader has at hand.
    pub table: u64,
}

/// Takes names in dictionary order.
pub struct MphfWriter<W: Write> {
    out: W,
    hash_of: NameHash,
    position: u64,
    table: Vec<u8>,
    chunks: u32,
    names: Names,
    total: u64,
    /// First block of the current chunk, and blocks in it.
    first_block: u32,
    blocks: u32,
    in_block: u32,
    chunk_names: u32,
}

impl<W: Write> MphfWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Result<Self> {
        Self::with(out, name_hash, CHUNK_NAMES)
    }

    /// As [`MphfWriter::new`], with another hash and another chunk size.
    pub(super) fn with(out: W, hash_of: NameHash, chunk_names: u32) -> Result<Self> {
        let mut writer = Self {
            out,
            hash_of,
            position: 0,
            table: Vec::new(),
            chunks: 0,
            names: Names::default(),
            total: 0,
            first_block: 0,
            blocks: 0,
            in_block: 0,
            chunk_names,
        };
        writer.emit(&header())?;
        Ok(writer)
    }

    /// Takes the next name; `begins_block` as the dictionary's writer tells.
    pub fn push(&mut self, name: &str, begins_block: bool) -> Result<()> {
        if begins_block {
            if self.names.len() >= self.chunk_names as usize {
                self.end_chunk()?;
            }
            self.blocks += 1;
            self.in_block = 0;
        }
        self.names.push(name.as_bytes(), self.in_block);
        self.in_block += 1;
        self.total += 1;
        Ok(())
    }

    /// Ends the file.
    pub fn finish(mut self, dictionary: DictionaryHashes) -> Result<W> {
        self.end_chunk()?;
        let mut tail = std::mem::take(&mut self.table);
        tail.extend_from_slice(&self.total.to_le_bytes());
        tail.extend_from_slice(&dictionary.file.to_le_bytes());
        tail.extend_from_slice(&dictionary.table.to_le_bytes());
        tail.extend_from_slice(&self.chunks.to_le_bytes());
        tail.extend_from_slice(&[0; 4]);
        let crc = crc32c_of(&[&header(), &tail]);
        tail.extend_from_slice(&crc.to_le_bytes());
        tail.extend_from_slice(&END_MAGIC);
        self.emit(&tail)?;
        Ok(self.out)
    }

    fn end_chunk(&mut self) -> Result<()> {
        if self.names.len() == 0 {
            return Ok(());
        }
        let none = Shape { seed: 0, offset_bits: 0, segment_log2: 0, segments: 0 };
        let (kind, shape, array) = match build(&self.names, self.hash_of) {
            Some((shape, array)) => (1u8, shape, array),
            None => (0, none, Vec::new()),
        };
        let count = |n: usize| {
            let found = n.to_string();
            u32::try_from(n).map_err(|_| Error::Input { at: WHAT.into(), expected: "a chunk below 4 GiB", found })
        };
        for field in [self.first_block, self.blocks, count(self.names.len())?] {
            self.table.extend_from_slice(&field.to_le_bytes());
        }
        self.table.extend_from_slice(&[kind, shape.seed, shape.offset_bits, shape.segment_log2]);
        self.table.extend_from_slice(&shape.segments.to_le_bytes());
        self.table.extend_from_slice(&self.position.to_le_bytes());
        self.table.extend_from_slice(&count(array.len())?.to_le_bytes());
        self.table.extend_from_slice(&crc32c(&array).to_le_bytes());
        self.emit(&array)?;
        self.names.clear();
        self.chunks += 1;
        self.first_block += self.blocks;
        self.blocks = 0;
        Ok(())
    }

    fn emit(&mut self, bytes: &[u8]) -> Result<()> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes).map_err(Error::write(WHAT))
    }
}

fn header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let (magic, version) = header.split_at_mut(MAGIC.len());
    magic.copy_from_slice(&MAGIC);
    version.copy_from_slice(&VERSION.to_le_bytes());
    header
}
