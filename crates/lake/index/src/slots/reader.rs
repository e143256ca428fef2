//! Finds the record of a slot.

use super::{BLOCK_SLOTS, BlockError, FOOTER, HEADER, MAX_BLOCK, MAX_RAW, Record, VERSION, decode};
use crate::cache::{Caches, FileKey};
use crate::counts::Count;
use crate::paged::{PagedReader, Piece};
use crate::{Blob, Error, Result};
use std::io::Read;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use trawl_io::slice::SliceReader;

const BLOCK: u64 = BLOCK_SLOTS as u64;

/// An open file of records. Packed blocks are decompressed on demand, through a cache.
pub(crate) struct SlotReader<R> {
    file: PagedReader,
    slots: u64,
    table_at: u64,
    key: FileKey,
    caches: Arc<Caches>,
    record: PhantomData<R>,
}

impl<R: Record> SlotReader<R> {
    /// Reads header and footer.
    pub fn open(source: impl Into<Blob>, caches: Arc<Caches>) -> Result<Self> {
        let (file, footer_at, footer) = PagedReader::open_framed(source, R::MAGIC, VERSION, R::WHAT, FOOTER)?;
        let mut r = SliceReader::at(&footer, footer_at);
        let numbers = || Ok((r.u64("slot count")?, r.u64("pair count")?, r.u64("table offset")?));
        let (slots, _pairs, table_at) = file.parsed(numbers)?;
        let end = slots.div_ceil(BLOCK).checked_mul(8).and_then(|len| table_at.checked_add(len));
        if table_at < HEADER || end != Some(footer_at) {
            let found = format!("{slots} slots, table at {table_at}, {} bytes", file.len());
            return Err(Error::corrupt(file.name(), footer_at, "a table of all blocks before the footer", found));
        }
        Ok(Self { file, slots, table_at, key: FileKey::new(), caches, record: PhantomData })
    }

    /// Slots in the file.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Fills in what the file has of `slot`: one count a dataset.
    pub fn fill(&self, slot: u64, counts: &mut [Count]) -> Result<()> {
        if slot >= self.slots {
            return Err(Error::corrupt(self.file.name(), 0, "a slot of this segment", slot));
        }
        let range = self.range(slot / BLOCK)?;
        let bad = |e: BlockError| Error::corrupt(self.file.name(), range.start, R::WHAT, e);
        let block = if R::PACKED { self.unpack(slot / BLOCK, &range)? } else { self.file.piece(range.clone())? };
        decode::<R>(&block, range.start, slot % BLOCK, counts).map_err(bad)
    }

    /// The file beneath.
    pub fn file(&self) -> &PagedReader {
        &self.file
    }

    fn unpack(&self, index: u64, range: &Range<u64>) -> Result<Piece<'_>> {
        let key = (self.key, usize::try_from(index).unwrap_or(usize::MAX));
        let raw = self.caches.slices.get_or_insert_with(&key, || {
            let frame = self.file.piece(range.clone())?;
            let mut raw = Vec::new();
            if !frame.is_empty() {
                let decoder = zstd::stream::read::Decoder::with_buffer(&frame[..]);
                decoder
                    .and_then(|decoder| decoder.take(MAX_RAW + 1).read_to_end(&mut raw))
                    .map_err(|e| Error::corrupt(self.file.name(), range.start, "a zstd frame", e))?;
            }
            if raw.len() as u64 > MAX_RAW {
                return Err(Error::corrupt(self.file.name(), range.start, R::WHAT, "a block of more than 256 MiB"));
            }
            Ok(raw.into())
        })?;
        Ok(Piece::Read(raw))
    }

    /// Where block `index` lies.
    fn range(&self, index: u64) -> Result<Range<u64>> {
        let at = self.table_at + index * 8;
        // The last block ends where the table begins.
        let last = index + 1 == self.slots.div_ceil(BLOCK);
        let bytes = self.file.piece(at..at + if last { 8 } else { 16 })?;
        let mut r = SliceReader::at(&bytes, at);
        let mut number = || r.u64("block offset");
        let (start, end) = self.file.parsed(|| Ok((number()?, if last { self.table_at } else { number()? })))?;
        if start < HEADER || end < start || end > self.table_at || end - start > MAX_BLOCK {
            let found = format!("{start}..{end}");
            return Err(Error::corrupt(self.file.name(), at, "blocks in order before the table", found));
        }
        Ok(start..end)
    }
}
