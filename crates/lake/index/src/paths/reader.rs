//! Reads the paths of one slot.

use super::{MAGIC, MAX_RAW, VERSION, record};
use crate::cache::{Caches, FileKey};
use crate::counts::Count;
use crate::slots::{BlockError, SlotReader};
use crate::{Blob, Error, Result};
use bytes::Bytes;
use std::io::Read;
use std::sync::Arc;

/// An open file: blocks are decompressed on demand, through a cache.
pub struct Paths {
    file: SlotReader,
    key: FileKey,
    caches: Arc<Caches>,
}

impl Paths {
    /// Reads header and footer.
    pub fn open(source: impl Into<Blob>, caches: Arc<Caches>) -> Result<Self> {
        let file = SlotReader::open(source, MAGIC, VERSION, "magic \"TTOP\", version 1, blocks of paths")?;
        Ok(Self { file, key: FileKey::new(), caches })
    }

    /// Slots in the file.
    pub fn slots(&self) -> u64 {
        self.file.slots()
    }

    /// Fills in the paths of `slot`, whose counts are known.
    pub fn fill(&self, slot: u64, counts: &mut [Count]) -> Result<()> {
        let (block, place) = self.file.place(slot)?;
        let index = usize::try_from(block).unwrap_or(usize::MAX);
        let cached = self.caches.slices.get(&(self.key, index));
        let raw = match cached {
            Some(raw) => raw,
            None => {
                let raw = self.decompress(block)?;
                self.caches.slices.insert((self.key, index), raw.clone());
                raw
            }
        };
        record::slot(&raw, 0, place, counts).map_err(|e| self.file.bad(0, &e))
    }

    fn decompress(&self, block: u64) -> Result<Bytes> {
        let (frame, at) = self.file.block(block)?;
        if frame.is_empty() {
            return Ok(Bytes::new());
        }
        let mut raw = Vec::new();
        let decoder = zstd::stream::read::Decoder::with_buffer(&frame[..]);
        let read = decoder.and_then(|decoder| decoder.take(MAX_RAW + 1).read_to_end(&mut raw));
        if let Err(error) = read {
            return Err(Error::corrupt(self.file.name(), at, "a zstd frame", error));
        }
        if raw.len() as u64 > MAX_RAW {
            return Err(self.file.bad(at, &BlockError::Value("a block of more than 256 MiB")));
        }
        Ok(raw.into())
    }

    /// Checks every page; faults go to `each`.
    pub fn check_pages(&self, each: &mut dyn FnMut(Error)) {
        self.file.check_pages(each);
    }
}
