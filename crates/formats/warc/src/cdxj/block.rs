//! Large indexes in gzip blocks, with an index of the blocks.

use super::line::push_json;
use crate::error::Result;
use crate::writer::spool_error;
use flate2::write::GzEncoder;
use std::io::Write;

/// Lines of a ZipNum block unless told otherwise.
pub const ZIPNUM_LINES: usize = 3000;

/// The two ways to write the index of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockIndex {
    /// `cluster.idx`: tab-separated, naming the block file.
    Cluster,
    /// `index.idx` of a WACZ file: JSON, naming the block file once.
    Wacz,
}

/// Writes sorted lines into blocks.
pub struct BlockWriter<D: Write, I: Write> {
    data: D,
    index: I,
    style: BlockIndex,
    data_name: String,
    lines_per_block: usize,
    block: Vec<u8>,
    lines: usize,
    first: String,
    offset: u64,
    blocks: u64,
}

impl<D: Write, I: Write> BlockWriter<D, I> {
    /// Writes blocks of `lines_per_block` lines to `data`, which will be called `data_name`, and their index to `index`.
    pub fn new(data: D, index: I, style: BlockIndex, data_name: &str, lines_per_block: usize) -> Result<Self> {
        let mut writer = BlockWriter {
            data,
            index,
            style,
            data_name: data_name.into(),
            lines_per_block: lines_per_block.max(1),
            block: Vec::new(),
            lines: 0,
            first: String::new(),
            offset: 0,
            blocks: 0,
        };
        if writer.style == BlockIndex::Wacz {
            let mut meta = String::from("!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": ");
            push_json(&mut meta, data_name);
            meta.push_str("}\n");
            writer.index.write_all(meta.as_bytes()).map_err(spool_error)?;
        }
        Ok(writer)
    }

    /// Takes the next line.
    pub fn push(&mut self, line: &[u8]) -> Result<()> {
        if self.lines == 0 {
            // Key and time: everything in front of the second blank. A key may hold a brace, as the JSON does, but no blank.
            let end = memchr::memchr_iter(b' ', line).nth(1).unwrap_or(line.len());
            self.first = String::from_utf8_lossy(line.get(..end).unwrap_or(line)).trim().to_owned();
        }
        self.block.extend_from_slice(line);
        self.block.push(b'\n');
        self.lines += 1;
        if self.lines >= self.lines_per_block { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.lines == 0 {
            return Ok(());
        }
        let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        gzip.write_all(&self.block).map_err(spool_error)?;
        let member = gzip.finish().map_err(spool_error)?;
        let (offset, length) = (self.offset, member.len() as u64);
        self.blocks += 1;
        let line = match self.style {
            BlockIndex::Cluster => format!("{}\t{}\t{offset}\t{length}\t{}\n", self.first, self.data_name, self.blocks),
            BlockIndex::Wacz => format!("{} {{\"offset\": {offset}, \"length\": {length}}}\n", self.first),
        };
        self.index.write_all(line.as_bytes()).map_err(spool_error)?;
        self.data.write_all(&member).map_err(spool_error)?;
        self.offset += length;
        self.block.clear();
        self.lines = 0;
        Ok(())
    }

    /// Writes the last block and gives the writers back: blocks, index.
    pub fn finish(mut self) -> Result<(D, I)> {
        self.flush()?;
        Ok((self.data, self.index))
    }
}
