//! Makes the records of a capture event, on any thread.

use super::facts::EventFacts;
use super::fields::{HeaderText, header_uri};
use super::id::record_id;
use super::info::info_record;
use super::member::{Effort, Encoder, Stored, spool_error};
use super::records::RawParts;
use crate::container::Compression;
use crate::digest::{sha1_of, sha1_of_message};
use crate::error::{Error, Result};
use crate::header::RecordType;
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use trawl_http::Head;
use trawl_io::format::{About, Creation};
use trawl_io::{FileWriter, Spool};
use trawl_model::{
    Algorithm, Body, Capture, CaptureFacts, Digest, DoorError, IdSource, Message, Outcome, Prepared, Preparer,
    RawEvent, Revisit, RevisitProfile, Truncated, UnixMillis,
};

/// Bodies that can be read only once are kept in memory up to this size and spooled past it.
const BODY_MEMORY_BYTES: usize = 4 << 20;

/// Bodies from this size on are not compressed again if they came compressed. With a shorter one the headers, half a KiB of
/// which compressing saves, weigh more.
const MIN_LEAST_BYTES: u64 = 8 << 10;

const IDENTICAL: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";
const NOT_MODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// One record of an event, compressed.
#[derive(Debug)]
pub struct PreparedRecord {
    record_type: RecordType,
    stored: Stored,
    plain_len: u64,
    effort: Effort,
}

impl PreparedRecord {
    /// What it is.
    pub fn record_type(&self) -> RecordType {
        self.record_type
    }

    /// Stored bytes.
    pub fn len_bytes(&self) -> u64 {
        self.stored.len()
    }

    pub(super) fn write_to(&self, to: &mut FileWriter) -> Result<()> {
        match &self.stored {
            Stored::Memory(bytes) => to.put(bytes)?,
            Stored::Spooled(spool) => drop(std::io::copy(&mut spool.reader(), to).map_err(spool_error)?),
        }
        Ok(())
    }
}

/// An event made ready: its records, in order, each a member.
#[derive(Debug)]
pub struct PreparedEvent {
    records: Vec<PreparedRecord>,
    /// The `warcinfo` its records name; `None` for records that are stored as they were read.
    warcinfo: Option<Arc<str>>,
}

impl PreparedEvent {
    /// The records, in the order they will be appended.
    pub fn records(&self) -> &[PreparedRecord] {
        &self.records
    }

    /// Stored bytes of the event.
    pub fn len_bytes(&self) -> u64 {
        self.records.iter().map(PreparedRecord::len_bytes).sum()
    }

    /// The stored bytes of all records, in order.
    pub fn reader(&self) -> impl Read + '_ {
        Chained(self.records.iter().map(|record| record.stored.reader()).collect())
    }

    /// Ready to be committed.
    fn named(self, url: String, time: UnixMillis, record_ids: Vec<String>) -> Prepared {
        let mut prepared = Prepared::new(url, time, self.len_bytes(), self);
        prepared.record_ids = record_ids;
        prepared
    }
}

/// Readers one after another.
struct Chained<'a>(VecDeque<Box<dyn Read + 'a>>);

impl Read for Chained<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        while let Some(first) = self.0.front_mut() {
            match first.read(buf)? {
                0 if !buf.is_empty() => drop(self.0.pop_front()),
                n => return Ok(n),
            }
        }
        Ok(0)
    }
}

/// Ids of an event's records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventIds {
    /// Of the response, revisit or lone metadata record, unless the capture brings its own.
    pub first: String,
    /// Of the request.
    pub request: String,
    /// Of the metadata record.
    pub metadata: String,
}

/// Makes events ready, for WARC files and for every other container that keeps their records.
pub struct EventPreparer {
    pub(super) encoder: Encoder,
    pub(super) ids: Arc<dyn IdSource>,
    pub(super) about: About,
    /// Id of the `warcinfo` record of the file that will most likely take the event.
    warcinfo: RwLock<Arc<str>>,
}

impl Preparer for EventPreparer {
    fn prepare(&self, capture: Capture<'_>) -> Result<Prepared, DoorError> {
        Ok(self.prepare_with(capture, self.event_ids())?)
    }

    fn prepare_records(&self, event: RawEvent<'_>) -> Result<Prepared, DoorError> {
        let mut records = Vec::with_capacity(event.records.len());
        let mut ids = Vec::with_capacity(event.records.len());
        for (record, place) in event.records {
            let raw = RawParts::new(self, record, &place)?;
            let body_len = raw.body.len_bytes();
            let mut body = raw.body;
            let mut reader = body.reader().map_err(spool_error)?;
            let effort = Effort::Usual;
            let stored = self.encoder.member(effort, &[&raw.header], &mut reader, body_len, b"\r\n\r\n")?;
            let plain_len = raw.header.len() as u64 + body_len + 4;
            records.push(PreparedRecord { record_type: raw.record_type, stored, plain_len, effort });
            ids.push(raw.id);
        }
        let event_records = PreparedEvent { records, warcinfo: None };
        Ok(event_records.named(event.url.unwrap_or_default(), event.time.unwrap_or_default(), ids))
    }
}

/// What all records of an event have in common.
struct Common<'a> {
    uri: Option<String>,
    date: UnixMillis,
    facts: &'a CaptureFacts,
    warcinfo: &'a str,
}

impl Common<'_> {
    fn header(&self, record_type: RecordType, id: &str) -> HeaderText {
        let mut header = HeaderText::new(record_type.as_str());
        header.put_id("WARC-Record-ID", id);
        header.put_date("WARC-Date", self.date);
        if let Some(uri) = &self.uri {
            header.put("WARC-Target-URI", uri);
        }
        if let Some(ip) = self.facts.ip {
            header.put("WARC-IP-Address", &ip.to_string());
        }
        header.put_id("WARC-Warcinfo-ID", self.warcinfo);
        header
    }
}

impl EventPreparer {
    /// Makes events for a container of any kind; compressed bodies that are too large for memory are spooled in
    /// `spool_dir`.
    pub fn new(creation: &Creation, compression: Compression, spool_dir: &Path) -> Self {
        let ids = creation.ids.clone();
        let warcinfo: Arc<str> = record_id(ids.next_id()).into();
        let encoder = Encoder::new(compression, creation.level, creation.fs.clone(), spool_dir);
        EventPreparer { encoder, ids, about: creation.about.clone(), warcinfo: RwLock::new(warcinfo) }
    }

    /// The `warcinfo` record that events made from now on name, for a file called `name`.
    pub fn info(&self, name: &str, now: UnixMillis) -> Result<PreparedEvent> {
        let warcinfo = self.current_warcinfo();
        let (header, block) = info_record(&self.about, &warcinfo, name, now);
        let effort = Effort::Usual;
        let stored = self.encoder.member(effort, &[&header, &block], &mut std::io::empty(), 0, b"\r\n\r\n")?;
        let plain_len = (header.len() + block.len() + 4) as u64;
        let records = vec![PreparedRecord { record_type: RecordType::Warcinfo, stored, plain_len, effort }];
        Ok(PreparedEvent { records, warcinfo: Some(warcinfo) })
    }

    /// Lets events name another `warcinfo` record: that of a file which is there already.
    pub fn set_warcinfo(&self, id: &str) {
        *self.warcinfo.write().unwrap_or_else(PoisonError::into_inner) = id.into();
    }

    /// Draws the ids of one event. Drawn in order, they make a parallel run write the same bytes as a serial one.
    pub fn event_ids(&self) -> EventIds {
        let next = || record_id(self.ids.next_id());
        EventIds { first: next(), request: next(), metadata: next() }
    }

    /// [`Preparer::prepare`] with ids drawn before.
    pub fn prepare_with(&self, capture: Capture<'_>, ids: EventIds) -> Result<Prepared> {
        let warcinfo = self.current_warcinfo();
        let Capture { url, started_at, request, outcome, facts } = capture;
        let uri = header_uri(&url);
        let mut event = EventFacts { facts, ..EventFacts::default() };
        if uri.as_deref() != Some(url.as_str()) {
            event.url = Some(url.clone());
        }
        let first_id = event.facts.record_id.take().unwrap_or(ids.first);
        let facts = event.facts.clone();
        let common = Common { uri, date: started_at, facts: &facts, warcinfo: &warcinfo };
        let mut records = Vec::with_capacity(3);
        let mut record_ids = vec![first_id.clone()];
        match outcome {
            Outcome::Response { message, payload_digest, truncated } => {
                records.push(self.response(&common, &first_id, message, payload_digest, truncated)?);
            }
            Outcome::Revisit(revisit) => {
                records.push(self.revisit(&common, &first_id, &revisit)?);
                event.body_length = Some(revisit.body_length);
            }
            Outcome::Failed(failure) => {
                event.failure = Some(failure);
                records.push(self.metadata(&common, &first_id, None, &event)?);
            }
        }
        if let Some(request) = request {
            records.push(self.request(&common, &ids.request, &first_id, request)?);
            record_ids.push(ids.request);
        }
        if event.failure.is_none() {
            records.push(self.metadata(&common, &ids.metadata, Some(&first_id), &event)?);
            record_ids.push(ids.metadata);
        }
        Ok(PreparedEvent { records, warcinfo: Some(warcinfo) }.named(url, started_at, record_ids))
    }

    pub(super) fn current_warcinfo(&self) -> Arc<str> {
        self.warcinfo.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes an event name the `warcinfo` record of the file it goes to after all: the file rolled since it was prepared.
    pub(super) fn rebind(&self, event: &mut PreparedEvent, warcinfo: &Arc<str>) -> Result<()> {
        let Some(old) = event.warcinfo.replace(warcinfo.clone()).filter(|old| old != warcinfo) else { return Ok(()) };
        for record in &mut event.records {
            record.stored = self.encoder.rebind(record.effort, &record.stored, record.plain_len, &old, warcinfo)?;
        }
        Ok(())
    }

    fn response(
        &self,
        common: &Common<'_>,
        id: &str,
        message: Message<'_>,
        known: Option<Digest>,
        truncated: Option<Truncated>,
    ) -> Result<PreparedRecord> {
        let mut body = self.rereadable(message.body)?;
        let head = Head::new(&message.head).stored(body.len_bytes());
        let (payload, block) = digests(&head, &mut body, known)?;
        let mut header = common.header(RecordType::Response, id);
        if let Some(protocol) = common.facts.protocol.as_deref().filter(|p| !p.starts_with("http/1")) {
            header.put("WARC-Protocol", protocol);
        }
        header.put_digest("WARC-Payload-Digest", &payload);
        if let Some(truncated) = truncated {
            header.put("WARC-Truncated", truncated.as_str());
        }
        let content_type = "application/http; msgtype=response";
        let effort = effort_for(&Head::new(&head), body.len_bytes());
        self.record(effort, RecordType::Response, header, content_type, &block, &head, &mut body)
    }

    fn revisit(&self, common: &Common<'_>, id: &str, revisit: &Revisit) -> Result<PreparedRecord> {
        let mut header = common.header(RecordType::Revisit, id);
        let identical = revisit.profile == RevisitProfile::IdenticalPayloadDigest;
        header.put("WARC-Profile", if identical { IDENTICAL } else { NOT_MODIFIED });
        if let Some(id) = &revisit.refers_to_id {
            header.put_id("WARC-Refers-To", id);
        }
        if let Some(uri) = revisit.refers_to_url.as_deref().and_then(header_uri) {
            header.put("WARC-Refers-To-Target-URI", &uri);
        }
        if let Some(date) = revisit.refers_to_date {
            header.put_date("WARC-Refers-To-Date", date);
        }
        match &revisit.payload_digest {
            Some(digest) => header.put_digest("WARC-Payload-Digest", digest),
            None if identical => {
                let reason = "a revisit by identical payload digest needs the digest".to_owned();
                return Err(Error::Refused { file: id.to_owned(), reason });
            }
            None => {}
        }
        if identical {
            header.put("WARC-Truncated", Truncated::Length.as_str());
        }
        let content_type = "application/http; msgtype=response";
        let head = &revisit.head;
        self.record(
            Effort::Usual,
            RecordType::Revisit,
            header,
            content_type,
            &sha1_of(&[head]),
            head,
            &mut Body::empty(),
        )
    }

    fn request(
        &self,
        common: &Common<'_>,
        id: &str,
        concurrent_to: &str,
        message: Message<'_>,
    ) -> Result<PreparedRecord> {
        let mut body = self.rereadable(message.body)?;
        let (_, block) = digests(&message.head, &mut body, None)?;
        let mut header = common.header(RecordType::Request, id);
        header.put_id("WARC-Concurrent-To", concurrent_to);
        let content_type = "application/http; msgtype=request";
        self.record(Effort::Usual, RecordType::Request, header, content_type, &block, &message.head, &mut body)
    }

    fn metadata(
        &self,
        common: &Common<'_>,
        id: &str,
        concurrent_to: Option<&str>,
        event: &EventFacts,
    ) -> Result<PreparedRecord> {
        let block = event.encode();
        let mut header = common.header(RecordType::Metadata, id);
        if let Some(other) = concurrent_to {
            header.put_id("WARC-Concurrent-To", other);
        }
        let digest = sha1_of(&[&block]);
        self.record(
            Effort::Usual,
            RecordType::Metadata,
            header,
            "application/warc-fields",
            &digest,
            &block,
            &mut Body::empty(),
        )
    }

    #[expect(clippy::too_many_arguments, reason = "each is one part of a record")]
    fn record(
        &self,
        effort: Effort,
        record_type: RecordType,
        header: HeaderText,
        content_type: &str,
        block_digest: &Digest,
        head: &[u8],
        body: &mut Body<'_>,
    ) -> Result<PreparedRecord> {
        let body_len = body.len_bytes();
        let block_len = head.len() as u64 + body_len;
        let header = header.finish(content_type, block_digest, block_len);
        let plain_len = header.len() as u64 + block_len + 4;
        let mut reader = body.reader().map_err(spool_error)?;
        let stored = self.encoder.member(effort, &[&header, head], &mut reader, body_len, b"\r\n\r\n")?;
        Ok(PreparedRecord { record_type, stored, plain_len, effort })
    }

    /// Digests stand before the block, so a body that can be read only once is kept or spooled.
    pub(super) fn rereadable(&self, body: Body<'_>) -> Result<Body<'static>> {
        match body {
            Body::Memory(bytes) => Ok(Body::Memory(bytes)),
            Body::Spooled(spool) => Ok(Body::Spooled(spool)),
            Body::Reader { mut reader, .. } => {
                let mut spool = self.encoder.spool(BODY_MEMORY_BYTES);
                std::io::copy(&mut reader, &mut spool).map_err(spool_error)?;
                let spool = spool.finish()?;
                Ok(match spool.as_bytes() {
                    Some(bytes) => Body::Memory(bytes.clone()),
                    None => Body::Spooled(Arc::new(SpoolBody(spool))),
                })
            }
        }
    }
}

/// How hard a response is compressed: hardly, if its body came compressed. The head decides alone, so that the same record
/// always gives the same bytes.
fn effort_for(head: &Head<'_>, body_len: u64) -> Effort {
    // Headers are a good part of a short record.
    if body_len < MIN_LEAST_BYTES {
        return Effort::Usual;
    }
    let coded = head.content_codings().iter().any(|coding| coding != "identity");
    let media_type = head.text("Content-Type").unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = ["image/svg", "image/bmp", "image/x-icon", "image/vnd.microsoft.icon", "audio/midi", "audio/x-midi"];
    let packed =
        ["image/", "video/", "audio/", "font/woff", "application/zip", "application/gzip", "application/x-gzip"];
    let starts = |all: &[&str]| all.iter().any(|start| media_type.starts_with(start));
    if coded || starts(&packed) && !starts(&is_text) { Effort::Least } else { Effort::Usual }
}

/// A spool as a body.
struct SpoolBody(Spool);

impl trawl_model::Reopen for SpoolBody {
    fn open(&self) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        Ok(Box::new(self.0.reader()))
    }

    fn len_bytes(&self) -> u64 {
        self.0.len()
    }
}

/// Payload and block digest. A SHA-1 that is known already is believed: computing it is most of the cost.
fn digests(head: &[u8], body: &mut Body<'_>, known: Option<Digest>) -> Result<(Digest, Digest)> {
    let known = known.filter(|d| d.algorithm() == Algorithm::Sha1);
    if let Body::Memory(bytes) = body {
        let bytes: &Bytes = bytes;
        let payload = known.unwrap_or_else(|| sha1_of(&[bytes]));
        return Ok((payload, sha1_of(&[head, bytes])));
    }
    let wanted = body.len_bytes();
    let (payload, block, len) = sha1_of_message(head, &mut body.reader().map_err(spool_error)?).map_err(spool_error)?;
    if len != wanted {
        return Err(Error::Truncated { at: Default::default(), expected: "a body as long as it said", found: len });
    }
    Ok((payload, block))
}
