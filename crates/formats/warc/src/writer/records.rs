//! Records that are stored as they were read. Headers and blocks stay as they are, whatever their type, unknown ones too.
//!
//! A record without an id gets one. Records of an ARC file get what WARC demands and ARC does not have: an id, digests, and for the version block at its
//! front a `warcinfo` record that keeps it.

use super::event::EventPreparer;
use super::fields::{HeaderText, header_uri, put_field};
use super::id::record_id;
use super::member::spool_error;
use crate::arc::ARC_FIELD;
use crate::digest::{sha1_of, sha1_of_message};
use crate::error::{At, Error, Result};
use crate::header::{RecordHeader, RecordType};
use crate::limits::Limits;
use bytes::Bytes;
use std::io::{self, Read};
use trawl_model::{Body, Place, RawRecord};

/// Bytes at the front of a block in which an HTTP head is looked for.
const MAX_HEAD_BYTES: u64 = 1 << 20;

/// A record as it will be written.
pub(super) struct RawParts {
    pub(super) record_type: RecordType,
    pub(super) id: String,
    pub(super) header: Bytes,
    pub(super) body: Body<'static>,
}

impl RawParts {
    pub(super) fn new(preparer: &EventPreparer, record: RawRecord<'_>, place: &Place) -> Result<Self> {
        let at = At { file: place.file.clone(), offset: place.offset, inside: 0 };
        let mut parsed = RecordHeader::default();
        parsed.set(&record.header, &Limits::default()).map_err(|e| e.within(&at))?;
        let body = preparer.rereadable(record.body)?;
        if parsed.content_length() != body.len_bytes() {
            let found = body.len_bytes();
            return Err(Error::Truncated { at, expected: "a block as long as the header says", found });
        }
        let record_type = parsed.record_type();
        let own_id = parsed.record_id().map(|id| id.into_owned());
        if let Some(id) = own_id {
            return Ok(RawParts { record_type, id, header: record.header, body });
        }
        let id = record_id(preparer.ids.next_id());
        if parsed.get(ARC_FIELD).is_none() {
            return Ok(RawParts { record_type, header: with_id(&record.header, &id), id, body });
        }
        let (header, body) = arc_record(&id, &parsed, body, &preparer.about.software)?;
        Ok(RawParts { record_type, id, header: header.into(), body })
    }
}

/// The header of a WARC record whose writer gave it no id, with one, and otherwise as it is.
fn with_id(header: &[u8], id: &str) -> Bytes {
    let version = memchr::memchr(b'\n', header).map_or(0, |lf| lf + 1);
    let (version, fields) = header.split_at_checked(version).unwrap_or((b"", header));
    let line_end: &[u8] = if version.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
    [version, b"WARC-Record-ID: <", id.as_bytes(), b">", line_end, fields].concat().into()
}

/// The WARC record for a record of an ARC file.
fn arc_record(
    id: &str,
    parsed: &RecordHeader,
    mut body: Body<'static>,
    software: &str,
) -> Result<(Vec<u8>, Body<'static>)> {
    let kind = parsed.record_type();
    let mut header = HeaderText::new(&parsed.text("WARC-Type").unwrap_or_default());
    header.put_id("WARC-Record-ID", id);
    header.put("WARC-Date", &parsed.text("WARC-Date").unwrap_or_default());
    if kind == RecordType::Warcinfo {
        let original = body.read_to_bytes(Limits::DEFAULT_BLOCK_BYTES).map_err(spool_error)?;
        let mut fields = Vec::new();
        put_field(&mut fields, "software", software);
        put_field(&mut fields, "format", "WARC File Format 1.1");
        put_field(&mut fields, "arcTarget", &parsed.target_uri().unwrap_or_default());
        put_field(&mut fields, "arcVersionBlock", &String::from_utf8_lossy(&original));
        let header = header.finish("application/warc-fields", &sha1_of(&[&fields]), fields.len() as u64);
        return Ok((header, Body::Memory(fields.into())));
    }
    if let Some(uri) = parsed.target_uri().and_then(|uri| header_uri(&uri)) {
        header.put("WARC-Target-URI", &uri);
    }
    if let Some(ip) = parsed.text("WARC-IP-Address") {
        header.put("WARC-IP-Address", &ip);
    }
    let head = if kind == RecordType::Response { take_head(&mut body).map_err(spool_error)? } else { Vec::new() };
    let mut rest = body.reader().map_err(spool_error)?;
    io::copy(&mut (&mut rest).take(head.len() as u64), &mut io::sink()).map_err(spool_error)?;
    let (payload, digest, _) = sha1_of_message(&head, &mut rest).map_err(spool_error)?;
    drop(rest);
    header.put_digest("WARC-Payload-Digest", &payload);
    let content_type = parsed.text("Content-Type").unwrap_or_default();
    Ok((header.finish(&content_type, &digest, body.len_bytes()), body))
}

/// The HTTP head at the front of a block; nothing if it has none.
fn take_head(body: &mut Body<'_>) -> io::Result<Vec<u8>> {
    let mut front = Vec::new();
    let mut reader = body.reader()?.take(MAX_HEAD_BYTES);
    loop {
        if let Some(end) = trawl_http::head_len(&front, 0) {
            front.truncate(end);
            return Ok(front);
        }
        if (&mut reader).take(16 << 10).read_to_end(&mut front)? == 0 {
            return Ok(Vec::new());
        }
    }
}
