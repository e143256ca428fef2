//! A record taken out of its reader: header, block in memory or at hand in the file.

use super::MEMORY_BYTES;
use crate::error::{At, Error, Result};
use crate::header::{RecordHeader, RecordType};
use crate::reader::{Record, RecordFile};
use crate::writer::EventFacts;
use bytes::Bytes;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use trawl_http::{Chunked, Dechunk, Framing, Head};
use trawl_model::{Body, Entry, Place, RawRecord, Reopen};

/// Most segments that are put together: each is an open file while the body is read.
const MAX_SEGMENTS: usize = 64;

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
    /// Its first byte, which a place in a compressed file does not name.
    pub(super) at: At,
    /// HTTP head, where the block has one and it was asked for.
    pub(super) head: Option<Bytes>,
    /// The rest of the block, or all of it, if it is short enough; else it is read from `file` when somebody wants it.
    rest: Option<Bytes>,
    /// The segments that follow, if this is the first of several.
    segments: Vec<Loaded>,
    file: RecordFile,
    pub(super) facts: Option<EventFacts>,
    role: Role,
}

impl Loaded {
    /// A record as part of an event.
    pub(super) fn read(record: Record<'_>, file: &RecordFile) -> Result<Self> {
        let header = record.header();
        let is_message = header.may_be_http();
        let mut loaded = Self::taken(record, file, is_message)?;
        let record_type = loaded.header.record_type();
        loaded.facts =
            loaded.rest.as_deref().filter(|_| record_type == RecordType::Metadata).and_then(EventFacts::decode);
        loaded.role = Role::of(record_type, loaded.head.is_some(), loaded.facts.is_some());
        Ok(loaded)
    }

    /// A record as it is.
    pub(super) fn read_raw(record: Record<'_>, file: &RecordFile) -> Result<Self> {
        Self::taken(record, file, false)
    }

    fn taken(mut record: Record<'_>, file: &RecordFile, is_message: bool) -> Result<Self> {
        let header = record.header().clone();
        let (mut place, at) = (record.place(), record.at().clone());
        let head = if is_message { record.take_http_head()? } else { None };
        let rest = if record.left() <= MEMORY_BYTES { Some(record.read_block(MEMORY_BYTES)?) } else { None };
        place.length = record.finish()?.length;
        Ok(Loaded {
            header,
            place,
            at,
            head,
            rest,
            segments: Vec::new(),
            file: file.clone(),
            facts: None,
            role: Role::Other,
        })
    }

    /// The block from `skip` on.
    fn far(&self, skip: u64) -> Arc<dyn Reopen> {
        self.file.reopen(&self.at, skip, self.header.content_length().saturating_sub(skip))
    }

    /// What follows the head.
    pub(super) fn body(&self) -> Body<'static> {
        let head_bytes = self.head.as_ref().map_or(0, |head| head.len() as u64);
        match &self.rest {
            _ if !self.segments.is_empty() => {
                let others = self.segments.iter().map(|segment| segment.far(0));
                Body::Spooled(Arc::new(Joined(std::iter::once(self.far(head_bytes)).chain(others).collect())))
            }
            Some(bytes) => Body::Memory(bytes.clone()),
            None => Body::Spooled(self.far(head_bytes)),
        }
    }

    /// Whether it is a later part of another record.
    pub(super) fn is_segment(&self) -> bool {
        self.header.record_type() == RecordType::Continuation
    }

    /// Takes the next segment of this record, if `next` is that; gives it back otherwise.
    pub(super) fn join(&mut self, mut next: Loaded) -> Option<Loaded> {
        let number = |loaded: &Loaded| loaded.header.text("WARC-Segment-Number").and_then(|n| n.parse().ok());
        let wanted = self.segments.len() + 2;
        let fits = next.header.record_type() == RecordType::Continuation
            && number(self) == Some(1)
            && number(&next) == Some(wanted)
            && wanted <= MAX_SEGMENTS
            && next.header.uri("WARC-Segment-Origin-ID").is_some_and(|id| self.header.record_id() == Some(id));
        if !fits {
            return Some(next);
        }
        // However many there are: they are read again when somebody wants them.
        next.rest = None;
        self.segments.push(next);
        None
    }

    /// The other parts of it.
    pub(super) fn segments(&self) -> &[Loaded] {
        &self.segments
    }

    /// Whether segments of it are missing.
    pub(super) fn lacks_segments(&self) -> bool {
        let last = self.segments.last().unwrap_or(self);
        let total = last.header.text("WARC-Segment-Total-Length").and_then(|n| n.parse::<u64>().ok());
        let here = self.segments.iter().chain([self]).map(|s| s.header.content_length()).sum::<u64>();
        self.header.get("WARC-Segment-Number").is_some() && total != Some(here)
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
        let (record, place) = self.into_record();
        (Entry::Other(record), place)
    }

    pub(super) fn into_record(self) -> (RawRecord<'static>, Place) {
        let kind = self.header.text("WARC-Type").unwrap_or_default().into_owned();
        let body = match (&self.head, &self.rest) {
            (Some(head), Some(rest)) => Body::Memory([&head[..], rest].concat().into()),
            (None, Some(rest)) => Body::Memory(rest.clone()),
            (_, None) => Body::Spooled(self.far(0)),
        };
        (RawRecord { kind, header: Bytes::copy_from_slice(self.header.raw()), body }, self.place)
    }

    /// The body without chunked transfer coding, if the head says that it has it and the body agrees.
    pub(super) fn dechunked(&self) -> Result<Option<Body<'static>>> {
        if !self.head.as_deref().is_some_and(|head| Framing::of(&Head::new(head)) == Framing::Chunked) {
            return Ok(None);
        }
        let fail =
            |e| Error::from_io(crate::At { file: self.place.file.clone(), offset: self.place.offset, inside: 0 }, e);
        let mut body = self.body();
        let mut start = Vec::new();
        body.reader().map_err(fail)?.take(32).read_to_end(&mut start).map_err(fail)?;
        if !Chunked::may_begin(&start) {
            return Ok(None);
        }
        if let Body::Spooled(chunked) = body {
            let mut whole = Tolerant(dechunked(&*chunked).map_err(fail)?);
            let len_bytes = io::copy(&mut whole, &mut io::sink()).map_err(fail)?;
            return Ok(Some(Body::Spooled(Arc::new(Dechunked { chunked, len_bytes }))));
        }
        let mut out = Vec::new();
        let read = Dechunk::new(self.rest.as_deref().unwrap_or_default()).read_to_end(&mut out);
        // A chunked body that was cut keeps what came whole; so does one that never was chunked.
        Ok((read.is_ok() || !out.is_empty()).then(|| Body::Memory(out.into())))
    }
}

/// Bodies one after another.
struct Joined(Vec<Arc<dyn Reopen>>);

impl Reopen for Joined {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let mut all: Box<dyn Read + Send> = Box::new(io::empty());
        for part in &self.0 {
            all = Box::new(all.chain(part.open()?));
        }
        Ok(all)
    }

    fn len_bytes(&self) -> u64 {
        self.0.iter().map(|part| part.len_bytes()).sum()
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
