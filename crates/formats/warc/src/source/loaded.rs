//! A record taken out of its reader: header, block in memory or at hand in the file.

use super::MEMORY_BYTES;
use crate::error::{Error, Result};
use crate::header::{RecordHeader, RecordType};
use crate::reader::{Record, RecordFile};
use crate::writer::EventFacts;
use bytes::Bytes;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use trawl_http::{Chunked, Dechunk, Framing, Head};
use trawl_model::{Body, Entry, Place, RawRecord, Reopen};

/// What a record is in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Response or revisit.
    Main,
    /// Request.
    Request,
    /// Our own metadata record.
    Facts,
    /// Not part of any event.
    Other,
}

pub(super) struct Loaded {
    pub(super) header: RecordHeader,
    pub(super) place: Place,
    /// HTTP head, where the block has one.
    pub(super) head: Option<Bytes>,
    /// The rest of the block, or all of it.
    pub(super) body: Body<'static>,
    pub(super) facts: Option<EventFacts>,
    role: Role,
}

impl Loaded {
    pub(super) fn read(mut record: Record<'_>, file: &RecordFile) -> Result<Self> {
        let header = record.header().clone();
        let mut place = record.place();
        let is_message = header.is_http()
            && matches!(header.record_type(), RecordType::Response | RecordType::Request | RecordType::Revisit);
        let head = if is_message { record.take_http_head()? } else { None };
        let left = record.left();
        let body = if left <= MEMORY_BYTES {
            Body::Memory(record.read_block(MEMORY_BYTES)?)
        } else {
            file.reopen(place.offset, place.index, header.content_length() - left, left)
        };
        place.length = record.finish()?.length;
        let facts = match &body {
            Body::Memory(bytes) if header.record_type() == RecordType::Metadata => EventFacts::decode(bytes),
            _ => None,
        };
        let role = Role::of(header.record_type(), head.is_some(), facts.is_some());
        Ok(Loaded { header, place, head, body, facts, role })
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }

    /// Whether this record says it belongs to `other`.
    pub(super) fn names(&self, other: &Loaded) -> bool {
        other.header.record_id().is_some_and(|id| self.header.concurrent_to().any(|named| named == id))
    }

    /// Whether this record says nothing about what it belongs to.
    pub(super) fn is_silent(&self) -> bool {
        self.header.concurrent_to().next().is_none()
    }

    pub(super) fn target(&self) -> Option<std::borrow::Cow<'_, str>> {
        self.header.target_uri()
    }

    /// The record in its own terms, with its whole block.
    pub(super) fn into_other(self) -> (Entry<'static>, Place) {
        let kind = self.header.text("WARC-Type").unwrap_or_default().into_owned();
        let body = match (self.head, self.body) {
            (None, body) => body,
            (Some(head), Body::Memory(body)) => Body::Memory([head, body].concat().into()),
            (Some(head), body) => Body::Spooled(Arc::new(Joined { head, body: body.into_spooled() })),
        };
        let record = RawRecord { kind, header: Bytes::copy_from_slice(self.header.raw()), body };
        (Entry::Other(record), self.place)
    }

    /// Takes chunked transfer coding off the body if the head says so and the body agrees; says whether it did.
    pub(super) fn dechunk(&mut self) -> Result<bool> {
        if !self.head.as_deref().is_some_and(|head| Framing::of(&Head::new(head)) == Framing::Chunked) {
            return Ok(false);
        }
        let at = || crate::At { file: self.place.file.clone(), offset: self.place.offset, inside: 0 };
        let fail = |e| Error::from_io(at(), e);
        let mut start = [0; 32];
        let n = read_up_to(&mut self.body.reader().map_err(fail)?, &mut start).map_err(fail)?;
        if !Chunked::may_begin(start.get(..n).unwrap_or_default()) {
            return Ok(false);
        }
        let body = match std::mem::replace(&mut self.body, Body::empty()) {
            Body::Memory(bytes) => {
                let mut out = Vec::with_capacity(bytes.len());
                match Dechunk::new(&bytes[..]).read_to_end(&mut out) {
                    Ok(_) => Body::Memory(out.into()),
                    // A chunked body that was cut keeps what came whole; so does one that never was chunked.
                    Err(_) if !out.is_empty() => Body::Memory(out.into()),
                    Err(_) => {
                        self.body = Body::Memory(bytes);
                        return Ok(false);
                    }
                }
            }
            other => {
                let chunked = other.into_spooled();
                let len_bytes =
                    io::copy(&mut Tolerant(dechunked(&*chunked).map_err(fail)?), &mut io::sink()).map_err(fail)?;
                Body::Spooled(Arc::new(Dechunked { chunked, len_bytes }))
            }
        };
        self.body = body;
        Ok(true)
    }
}

fn read_up_to(from: &mut dyn Read, buf: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match from.read(rest)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

trait IntoSpooled {
    fn into_spooled(self) -> Arc<dyn Reopen>;
}

impl IntoSpooled for Body<'static> {
    fn into_spooled(self) -> Arc<dyn Reopen> {
        match self {
            Body::Spooled(spool) => spool,
            Body::Memory(bytes) => Arc::new(InMemory(bytes)),
            // The loader makes no such body.
            Body::Reader { .. } => Arc::new(InMemory(Bytes::new())),
        }
    }
}

struct InMemory(Bytes);

impl Reopen for InMemory {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(self.0.clone())))
    }

    fn len_bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

/// A head in front of a body.
struct Joined {
    head: Bytes,
    body: Arc<dyn Reopen>,
}

impl Reopen for Joined {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(self.head.clone()).chain(self.body.open()?)))
    }

    fn len_bytes(&self) -> u64 {
        self.head.len() as u64 + self.body.len_bytes()
    }
}

/// A chunked body without its chunks.
struct Dechunked {
    chunked: Arc<dyn Reopen>,
    len_bytes: u64,
}

impl Reopen for Dechunked {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(dechunked(&*self.chunked)?.take(self.len_bytes)))
    }

    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }
}

fn dechunked(body: &dyn Reopen) -> io::Result<Dechunk<BufReader<Box<dyn Read + Send>>>> {
    Ok(Dechunk::new(BufReader::new(body.open()?)))
}

/// Ends where its reader fails on the data: what came whole counts.
struct Tolerant<R>(R);

impl<R: Read> Read for Tolerant<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buf) {
            Err(e) if e.kind() == io::ErrorKind::InvalidData => Ok(0),
            other => other,
        }
    }
}
