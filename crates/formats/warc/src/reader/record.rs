//! One record, borrowed from its reader.

use super::{State, WarcReader};
use crate::error::{At, Error, Result};
use crate::header::{RecordHeader, RecordType};
use crate::limits::Limits;
use bytes::Bytes;
use std::io::{self, BufRead, Read};
use trawl_http::{head_len, may_begin};
use trawl_model::Place;

/// A record whose block has not been read, or not wholly.
pub struct Record<'r> {
    pub(super) reader: &'r mut WarcReader,
}

/// What is known once a record was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Stored bytes, from the first of the member to the last of its trailer: where several records share a member, of all of
    /// them. 0 where that cannot be known: in a stream, before the member ended.
    pub length: u64,
    /// The same, but in an uncompressed file only up to the end of the block: what other tools put into their indexes.
    pub block_end: u64,
}

impl Record<'_> {
    /// The record's header.
    pub fn header(&self) -> &RecordHeader {
        &self.reader.header
    }

    /// Where it begins.
    pub fn at(&self) -> &At {
        &self.reader.start
    }

    /// Where it lies; the length is unknown (0) until it is finished.
    pub fn place(&self) -> Place {
        Place {
            file: self.reader.base_name.clone(),
            offset: self.reader.start.offset,
            length: 0,
            index: self.reader.index,
        }
    }

    /// Bytes of the block not yet read.
    pub fn left(&self) -> u64 {
        match self.reader.state {
            State::Block(left) => left,
            State::Between | State::Damaged => 0,
        }
    }

    /// The reader's limits.
    pub fn limits(&self) -> &Limits {
        &self.reader.limits
    }

    /// The block: what of it was not yet read. (The record itself is the reader.)
    pub fn body(&mut self) -> &mut Self {
        self
    }

    /// Takes the HTTP head off the block, through its empty line; `None` if the block is no HTTP message.
    pub fn take_http_head(&mut self) -> Result<Option<Bytes>> {
        let limit = self.reader.limits.http_head_bytes;
        let mut want = 1usize;
        loop {
            let left = usize::try_from(self.left()).unwrap_or(usize::MAX);
            let request = self.reader.header.record_type() == RecordType::Request;
            self.reader.fill(want.min(left))?;
            let data = self.reader.container.data();
            let short = data.len() < want;
            let data = data.get(..left.min(data.len())).unwrap_or_default();
            if !may_begin(data, request) {
                return Ok(None);
            }
            if let Some(end) = head_len(data, 0) {
                let head = Bytes::copy_from_slice(data.get(..end).unwrap_or_default());
                self.consume(end);
                return Ok(Some(head));
            }
            if data.len() >= left || short {
                // All of the block is head: a message that was cut, or one without a body and without its empty line.
                let head = Bytes::copy_from_slice(data);
                let n = data.len();
                self.consume(n);
                return Ok(Some(head));
            }
            if data.len() >= limit {
                let (claimed, limit) = (data.len() as u64, limit as u64);
                let at = self.reader.container.at();
                return Err(Error::OverLimit { at, what: "HTTP head", claimed, limit });
            }
            want = (data.len() + 1).max(data.len().saturating_mul(2).min(limit)).min(left);
        }
    }

    /// Reads the rest of the block into memory, refusing more than `limit` bytes.
    pub fn read_block(&mut self, limit: u64) -> Result<Bytes> {
        let left = self.left();
        if left > limit {
            return Err(Error::OverLimit { at: self.at().clone(), what: "record block", claimed: left, limit });
        }
        let mut out = Vec::new();
        while self.left() > 0 {
            let chunk = self.chunk()?;
            out.extend_from_slice(chunk);
            let n = chunk.len();
            self.consume(n);
        }
        Ok(out.into())
    }

    /// The next bytes of the block, without copying; empty at its end. Follow with [`BufRead::consume`].
    pub fn chunk(&mut self) -> Result<&[u8]> {
        match self.left() {
            0 => Ok(&[]),
            left => self.reader.block_chunk(left),
        }
    }

    /// Reads to the record's end, checks what follows the block, and says how long the record is as stored.
    pub fn finish(self) -> Result<Finished> {
        let result = self.reader.finish_record();
        if result.is_err() {
            self.reader.state = State::Damaged;
        }
        result
    }
}

impl Read for Record<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buf)?;
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Record<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.chunk().map_err(Error::into_io)
    }

    fn consume(&mut self, n: usize) {
        let left = self.left();
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(n);
        self.reader.container.consume(n);
        if let State::Block(left) = &mut self.reader.state {
            *left -= n as u64;
        }
    }
}
