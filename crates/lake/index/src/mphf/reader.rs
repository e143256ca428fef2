//! Asks the file.

use super::chunk::{self, Shape};
use super::{CHUNK_NAMES, DictionaryHashes, END_MAGIC, ENTRY, FOOTER, HEADER, MAGIC, NameHash, VERSION, name_hash};
use crate::{Blob, Error, Result};
use bytes::Bytes;
use std::path::Path;
use std::sync::OnceLock;
use trawl_io::crc::{crc32c, crc32c_of};
use trawl_io::limits::Claim;
use trawl_io::slice::{SliceError, SliceReader};

/// Most chunks a file may have: 2^42 names.
const MAX_CHUNKS: u64 = 1 << 24;

/// What the file says of a name, given the block it would be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// Surely not a name of the dictionary.
    Stranger,
    /// If it is one, then it is this line of the block.
    Line(u32),
    /// Search the block: names in it have the same hash.
    Unknown,
}

/// An open file: the chunk table in memory, each array read and checked when first asked.
pub struct Mphf {
    source: Blob,
    chunks: Vec<Chunk>,
    names: u64,
    dictionary: DictionaryHashes,
    hash_of: NameHash,
}

struct Chunk {
    first_block: u32,
    blocks: u32,
    names: u32,
    shape: Option<Shape>,
    at: u64,
    len: u32,
    crc: u32,
    array: OnceLock<Bytes>,
}

impl Mphf {
    /// Reads header, table and footer.
    pub fn open(source: impl Into<Blob>) -> Result<Self> {
        Self::open_with(source, name_hash)
    }

    pub(super) fn open_with(source: impl Into<Blob>, hash_of: NameHash) -> Result<Self> {
        let source = source.into();
        let name = source.name().to_owned();
        let len = source.len();
        let minimum = (HEADER + FOOTER) as u64;
        let footer_at = len
            .checked_sub(FOOTER as u64)
            .filter(|at| *at >= HEADER as u64)
            .ok_or_else(|| trawl_io::Error::Short { path: name.clone(), offset: 0, wanted: minimum, found: len })?;
        let [header, footer] = source.read_ranges(&[0..HEADER as u64, footer_at..len])?.try_into().unwrap_or_default();
        let mut r = SliceReader::at(&footer, footer_at);
        let parsed = parse_footer(&mut r).map_err(|e| e.in_file(&name))?;
        if parsed.magic != END_MAGIC {
            return Err(Error::corrupt(&name, len - 4, "end magic \"TMPE\"", format!("{:02x?}", parsed.magic)));
        }
        let chunks = u64::from(parsed.chunks);
        Claim { path: &name, offset: footer_at + 24, what: "chunk table" }.check(chunks, MAX_CHUNKS)?;
        let table_at = footer_at.checked_sub(chunks * ENTRY as u64).filter(|at| *at >= HEADER as u64);
        let table_at =
            table_at.ok_or_else(|| Error::corrupt(&name, footer_at + 24, "a table that fits the file", chunks))?;
        let table = source.read_range(table_at..footer_at)?;
        let footer_body = footer.get(..FOOTER - 8).unwrap_or_default();
        if crc32c_of(&[&header, &table, footer_body]) != parsed.crc || parsed.reserved != 0 {
            return Err(Error::corrupt(
                &name,
                table_at,
                "header, table and footer with their crc32c",
                "another checksum",
            ));
        }
        check_header(&name, &header)?;
        let chunks = parse_table(&name, &table, table_at)?;
        let found: u64 = chunks.iter().map(|c| u64::from(c.names)).sum();
        if found != parsed.names {
            return Err(Error::corrupt(
                &name,
                footer_at,
                "chunks with all the names",
                format!("{found} of {}", parsed.names),
            ));
        }
        Ok(Self { source, chunks, names: parsed.names, dictionary: parsed.dictionary, hash_of })
    }

    /// Names of the dictionary.
    pub fn names(&self) -> u64 {
        self.names
    }

    /// Hashes of the dictionary it was built for.
    pub fn dictionary(&self) -> DictionaryHashes {
        self.dictionary
    }

    /// Chunks without an array, in which names are searched.
    pub fn searched_chunks(&self) -> usize {
        self.chunks.iter().filter(|c| c.shape.is_none()).count()
    }

    /// What is known of `name`, which can only be in block `block`.
    pub fn get(&self, name: &str, block: usize) -> Result<Candidate> {
        let Some((chunk, shape)) = self.chunk_of(block).map(|c| (c, c.shape)) else { return Ok(Candidate::Stranger) };
        let Some(shape) = shape else { return Ok(Candidate::Unknown) };
        let array = self.array(chunk)?;
        let hash = (self.hash_of)(name.as_bytes(), chunk::seed(shape.seed));
        Ok(chunk::get(&shape, array, hash).map_or(Candidate::Stranger, Candidate::Line))
    }

    /// Checks every array; faults go to `each`.
    pub fn check_all(&self, each: &mut dyn FnMut(Error)) {
        for chunk in self.chunks.iter().filter(|c| c.shape.is_some()) {
            if let Err(e) = self.array(chunk) {
                each(e);
            }
        }
    }

    fn chunk_of(&self, block: usize) -> Option<&Chunk> {
        let block = u32::try_from(block).ok()?;
        let after = self.chunks.partition_point(|c| c.first_block <= block);
        self.chunks.get(after.checked_sub(1)?).filter(|c| block - c.first_block < c.blocks)
    }

    fn array<'a>(&'a self, chunk: &'a Chunk) -> Result<&'a Bytes> {
        if let Some(array) = chunk.array.get() {
            return Ok(array);
        }
        let array = self.source.read_range(chunk.at..chunk.at + u64::from(chunk.len))?;
        let found = crc32c(&array);
        if found != chunk.crc {
            let found = format!("{found:#010x}, table says {:#010x}", chunk.crc);
            return Err(Error::corrupt(self.source.name(), chunk.at, "an array with its crc32c", found));
        }
        Ok(chunk.array.get_or_init(|| array))
    }
}

struct Footer {
    names: u64,
    dictionary: DictionaryHashes,
    chunks: u32,
    reserved: u32,
    crc: u32,
    magic: [u8; 4],
}

fn parse_footer(r: &mut SliceReader<'_>) -> std::result::Result<Footer, SliceError> {
    Ok(Footer {
        names: r.u64("name count")?,
        dictionary: DictionaryHashes { file: r.u64("dictionary hash")?, table: r.u64("seek table hash")? },
        chunks: r.u32("chunk count")?,
        reserved: r.u32("reserved")?,
        crc: r.u32("crc32c")?,
        magic: r.array("end magic")?,
    })
}

fn check_header(name: &Path, header: &[u8]) -> Result<()> {
    let (magic, version) = header.split_at_checked(4).unwrap_or_default();
    if magic != MAGIC {
        return Err(Error::corrupt(name, 0, "magic \"TMPH\"", format!("{magic:02x?}")));
    }
    if version != VERSION.to_le_bytes() {
        return Err(Error::corrupt(name, 4, "version 1", format!("{version:02x?}")));
    }
    Ok(())
}

fn parse_table(name: &Path, table: &[u8], table_at: u64) -> Result<Vec<Chunk>> {
    let mut r = SliceReader::at(table, table_at);
    let mut chunks: Vec<Chunk> = Vec::new();
    let (mut next_block, mut next_at) = (0u32, HEADER as u64);
    while !r.is_empty() {
        let at = r.offset();
        let (kind, chunk) = parse_entry(&mut r).map_err(|e| e.in_file(name))?;
        let bad = |expected| Error::corrupt(name, at, expected, format!("chunk {}", chunks.len()));
        if chunk.first_block != next_block || chunk.blocks == 0 || chunk.names < chunk.blocks {
            return Err(bad("chunks of consecutive blocks, none empty"));
        }
        if chunk.at != next_at || chunk.names > CHUNK_NAMES * 2 {
            return Err(bad("arrays one after another, of chunks within the limit"));
        }
        let sound = match (kind, chunk.shape) {
            (0, None) => chunk.len == 0,
            (1, Some(shape)) => shape.is_sound() && shape.len_bytes() == u64::from(chunk.len),
            _ => false,
        };
        if !sound {
            return Err(bad("an array of the length its shape gives"));
        }
        next_block = chunk.first_block.checked_add(chunk.blocks).ok_or_else(|| bad("fewer blocks"))?;
        next_at += u64::from(chunk.len);
        chunks.push(chunk);
    }
    if next_at != table_at {
        return Err(Error::corrupt(name, table_at, "arrays that fill the file up to the table", next_at));
    }
    Ok(chunks)
}

fn parse_entry(r: &mut SliceReader<'_>) -> std::result::Result<(u8, Chunk), SliceError> {
    let (first_block, blocks, names) = (r.u32("first block")?, r.u32("block count")?, r.u32("name count")?);
    let kind = r.u8("kind")?;
    let shape = Shape {
        seed: r.u8("seed")?,
        offset_bits: r.u8("offset bits")?,
        segment_log2: r.u8("segment length")?,
        segments: r.u32("segments")?,
    };
    let (at, len, crc) = (r.u64("array offset")?, r.u32("array length")?, r.u32("array crc32c")?);
    let shape = (kind != 0).then_some(shape);
    Ok((kind, Chunk { first_block, blocks, names, shape, at, len, crc, array: OnceLock::new() }))
}
