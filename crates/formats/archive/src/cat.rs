//! The entries of an archive, printed: WARC records of whatever keeps them, and everything else in its own terms.

use crate::error::{Error, Result};
use crate::registry::Found;
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::sync::Arc;
use trawl_http::{Chunked, Dechunk, Framing, Head, decode_content};
use trawl_io::{Fs, Hasher};
use trawl_model::{
    Advice, Archive, Body, CaptureSource, DoorError, Entry, Message, Outcome, Pick, Place, RawRecord, RecordSource,
    Wanted,
};
use trawl_url::{AnySpelling, Printed, Redacted, redact, text_of, without_credentials, without_userinfo};
use trawl_warc::{Record, RecordHeader, WarcReader};

/// A block is put into JSON up to this size; of a larger one, only its digest is printed.
const JSON_BLOCK: u64 = 64 << 20;

/// What is printed.
#[derive(Debug, Clone, Copy, Default)]
pub struct CatOptions<'a> {
    /// Which entries, and whether as JSON.
    pub wanted: Wanted<'a>,
    /// Only records of this type.
    pub kind: Option<&'a str>,
    /// Whether headers and listings show `user:password@` of URLs. Contents are always as they are stored.
    pub credentials: bool,
    /// Which part of them.
    pub show: Show,
}

/// Which part of a record is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Show {
    /// All of it, as it is stored.
    #[default]
    Record,
    /// The HTTP head.
    Head,
    /// The body as it is stored.
    Body,
    /// The body without chunks and content codings.
    Decoded,
}

/// Prints entries of an archive and says how many were found. A damaged place is reported to `on_damage` and skipped.
pub fn cat(
    found: &Found,
    fs: &Arc<dyn Fs>,
    options: &CatOptions<'_>,
    out: &mut dyn Write,
    on_damage: &mut dyn FnMut(DoorError),
) -> Result<u64> {
    let archive = found.open(fs)?;
    let wanted = &options.wanted;
    if !wanted.rows.is_all() && !archive.has_rows() {
        return Err(Error::NoRows { path: found.path.clone() }.into());
    }
    let url = wanted.url.map(AnySpelling::new);
    let mut printer = Printer { path: &found.path, archive: &*archive, options, url: url.as_ref(), on_damage };
    if let Some(offset) = wanted.offset {
        let place = Place::new("", offset, 0);
        if let Some(mut source) = archive.records(Pick::At(&place))? {
            let first = source.next_event()?.and_then(|event| event.records.into_iter().next());
            let nothing = || DoorError::new(Advice::Skip, "expected a record, found the end").at(place.clone());
            let (record, place) = first.ok_or_else(nothing)?;
            return printer.one(record, &place, out);
        }
    }
    let mut has_index = false;
    for url in url.iter().flat_map(AnySpelling::candidates) {
        let Some(source) = archive.records(Pick::Newest(url))? else { break };
        let (events, printed) = printer.all(source, out)?;
        if printed > 0 {
            return Ok(printed);
        }
        has_index = events == 0;
        if !has_index {
            // The newest has nothing of the kind asked for, as a revisit has no body: an older one may.
            break;
        }
    }
    if has_index {
        return Ok(0);
    }
    if let Some(source) = archive.records(Pick::All)? {
        return Ok(printer.all(source, out)?.1);
    }
    if options.show != Show::Record && options.kind.is_none() {
        return responses(&*archive, found, options, url.as_ref(), out, printer.on_damage);
    }
    if options.kind.is_some() {
        return Err(Error::NoCaptures { path: found.path.clone() }.into());
    }
    let listed = match options.credentials || archive.lists_contents(wanted) {
        true => archive.list(wanted, out, printer.on_damage)?,
        false => {
            let mut out = Redacted::new(out, if wanted.json { Printed::Json } else { Printed::Text });
            let listed = archive.list(wanted, &mut out, printer.on_damage)?;
            out.exact()?;
            listed
        }
    };
    listed.ok_or_else(|| Error::NoCaptures { path: found.path.clone() }.into())
}

/// Prints heads or bodies of the responses of an archive that keeps no WARC records.
fn responses(
    archive: &dyn Archive,
    found: &Found,
    options: &CatOptions<'_>,
    url: Option<&AnySpelling>,
    out: &mut dyn Write,
    on_damage: &mut dyn FnMut(DoorError),
) -> Result<u64> {
    let place = options.wanted.offset.map(|offset| Place::new("", offset, 0));
    let picks: Vec<Pick<'_>> = match (&place, url) {
        (Some(place), _) => vec![Pick::At(place)],
        (None, Some(url)) => url.candidates().map(Pick::Newest).collect(),
        (None, None) => vec![Pick::All],
    };
    for pick in picks {
        let Some(source) = archive.captures(pick)? else { break };
        let printed = print_responses(source, options, place.as_ref(), url, out, on_damage)?;
        if printed > 0 || place.is_some() || url.is_none() {
            return Ok(printed);
        }
    }
    let source = archive.captures(Pick::All)?.ok_or_else(|| Error::NoCaptures { path: found.path.clone() })?;
    print_responses(source, options, place.as_ref(), url, out, on_damage)
}

fn print_responses(
    mut source: Box<dyn CaptureSource + '_>,
    options: &CatOptions<'_>,
    place: Option<&Place>,
    url: Option<&AnySpelling>,
    out: &mut dyn Write,
    on_damage: &mut dyn FnMut(DoorError),
) -> Result<u64> {
    let mut printed = 0;
    loop {
        let (entry, at) = match source.next_entry() {
            Ok(Some(found)) => found,
            Ok(None) => break,
            // Reading goes on behind it; at a place that was named there is nothing else to look for.
            Err(error) if error.advice == Advice::Skip && place.is_none() => {
                on_damage(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        if place.is_some_and(|place| place.offset != at.offset) {
            break;
        }
        let Entry::Capture(capture) = entry else { continue };
        if place.is_none() && url.is_some_and(|url| !url.matches(&capture.url)) {
            continue;
        }
        let Outcome::Response { mut message, .. } = capture.outcome else { continue };
        printed += 1;
        match options.show {
            Show::Head => out.write_all(&message.head)?,
            show => match body(&mut message, show, &at, out) {
                Err(error) if error.advice == Advice::Skip => on_damage(error),
                done => done?,
            },
        }
    }
    Ok(printed)
}

/// Prints the body of a message, as it is stored or decoded.
fn body(message: &mut Message<'_>, show: Show, place: &Place, out: &mut dyn Write) -> Result<()> {
    if show == Show::Decoded {
        let codings = Head::new(&message.head).known_codings();
        let limit = trawl_warc::Limits::default().decoded_bytes;
        print_decoded(message.body.reader()?, &codings, limit, place, out)
    } else {
        io::copy(&mut message.body.reader()?, out)?;
        Ok(())
    }
}

/// Prints as much of a body as can be decoded. The error for the rest is one to skip: the next body may be fine.
fn print_decoded(body: impl Read, codings: &[String], limit: u64, place: &Place, out: &mut dyn Write) -> Result<()> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(_) => DoorError::from(error),
        None => DoorError::new(Advice::Skip, format!("its body cannot be decoded: {error}")).at(place.clone()),
    };
    let mut decoded = decode_content(body, codings, limit).map_err(failed)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match decoded.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => {
                let bytes =
                    buffer.get(..n).ok_or_else(|| io::Error::other("a decoder returned more than it had room for"))?;
                out.write_all(bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// A record as JSON.
#[derive(Debug, Serialize)]
struct JsonRecord<'a> {
    file: &'a str,
    offset: u64,
    #[serde(rename = "type")]
    kind: &'a str,
    fields: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_head: Option<String>,
    #[serde(flatten)]
    block: Block,
}

/// What follows the heads: text where it is text.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Block {
    Text { text: String },
    Base64 { base64: String },
    Digest { length: u64, sha256: String },
}

struct Printer<'a> {
    path: &'a Path,
    archive: &'a dyn Archive,
    options: &'a CatOptions<'a>,
    url: Option<&'a AnySpelling>,
    on_damage: &'a mut dyn FnMut(DoorError),
}

impl Printer<'_> {
    /// Prints what is wanted of a source; says how many groups of records there were and how many records were printed.
    fn all(&mut self, mut source: Box<dyn RecordSource + '_>, out: &mut dyn Write) -> Result<(u64, u64)> {
        let (mut events, mut printed) = (0, 0);
        loop {
            let event = match source.next_event() {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) if error.advice == Advice::Skip => {
                    (self.on_damage)(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            events += 1;
            for (record, place) in event.records {
                printed += self.one(record, &place, out)?;
            }
        }
        Ok((events, printed))
    }

    /// Prints a record if it is wanted; returns how many were printed. Damage is reported through `on_damage`.
    fn one(&mut self, record: RawRecord<'static>, place: &Place, out: &mut dyn Write) -> Result<u64> {
        match self.record(record, place, out) {
            Err(error) if error.advice == Advice::Skip => {
                (self.on_damage)(error);
                Ok(0)
            }
            printed => Ok(u64::from(printed?)),
        }
    }

    /// Prints a record if it is wanted; says whether it was.
    fn record(&self, record: RawRecord<'static>, place: &Place, out: &mut dyn Write) -> Result<bool> {
        let mut reader = reader_of(record, place)?;
        let Some(mut record) = reader.next_record()? else { return Ok(false) };
        let show = self.options.show;
        if !self.wants(&record) {
            return Ok(false);
        }
        if self.options.wanted.json {
            self.json(record, place, out)?;
            return Ok(true);
        }
        if show == Show::Record {
            match self.options.credentials {
                true => out.write_all(record.header().raw())?,
                false => out.write_all(&shown_header(record.header()))?,
            }
            io::copy(&mut record, out)?;
            out.write_all(b"\r\n\r\n")?;
            return Ok(true);
        }
        let is_first = record.header().get("WARC-Segment-Number").is_some();
        if matches!(show, Show::Body | Show::Decoded) && is_first && self.segments(place, out)? {
            return Ok(true);
        }
        let head = record.take_http_head()?;
        if show == Show::Head {
            let Some(head) = head else { return Ok(false) };
            out.write_all(&head)?;
            return Ok(true);
        }
        let limit = record.limits().decoded_bytes;
        match head.filter(|_| show == Show::Decoded) {
            Some(head) => {
                let head = Head::new(&head);
                // Some tools take the chunks apart and keep the header.
                let start = if Framing::of(&head) == Framing::Chunked { record.body().fill_buf()? } else { &[] };
                let body: Box<dyn Read + '_> = match !start.is_empty() && Chunked::may_begin(start) {
                    true => Box::new(Dechunk::new(record.body())),
                    false => Box::new(record.body()),
                };
                print_decoded(body, &head.known_codings(), limit, place, out)?;
            }
            None => drop(io::copy(&mut record, out)?),
        }
        Ok(true)
    }

    /// Prints the body of a capture that is kept as several records; `false` if there is no capture at this place.
    fn segments(&self, place: &Place, out: &mut dyn Write) -> Result<bool> {
        let Some(mut source) = self.archive.captures(Pick::At(place))? else { return Ok(false) };
        let Some((Entry::Capture(capture), _)) = source.next_entry()? else { return Ok(false) };
        let Outcome::Response { mut message, .. } = capture.outcome else { return Ok(false) };
        body(&mut message, self.options.show, place, out)?;
        Ok(true)
    }

    fn wants(&self, record: &Record<'_>) -> bool {
        let CatOptions { wanted, kind: wanted_kind, show, .. } = self.options;
        let header = record.header();
        let url_fits = self.url.is_none_or(|url| header.target_uri().is_some_and(|uri| url.matches(&uri)));
        let kind = header.record_type().as_str();
        let kind_fits = match wanted_kind {
            Some(wanted) => kind == *wanted,
            None => *show == Show::Record || matches!(kind, "response" | "resource" | "conversion"),
        };
        // Who names a place wants what is there.
        wanted.offset.is_some() || url_fits && kind_fits
    }

    fn json(&self, mut record: Record<'_>, place: &Place, out: &mut dyn Write) -> Result<()> {
        let header = record.header().clone();
        let http_head = if header.is_http() || header.may_be_http() { record.take_http_head()? } else { None };
        // Bytes that are not UTF-8 are escaped: different URLs stay different.
        let text = |bytes: &[u8]| text_of(bytes).into_owned();
        let field = |name: &[u8], value: &[u8]| {
            let value = text_of(value);
            let value = if self.options.credentials { value } else { shown_value(name, &value).into_owned().into() };
            (text(name), value.into_owned())
        };
        let block = if self.options.wanted.digests || record.left() > JSON_BLOCK {
            digest(&mut record)?
        } else {
            match String::from_utf8(record.read_block(JSON_BLOCK)?.to_vec()) {
                Ok(text) => Block::Text { text },
                Err(bytes) => Block::Base64 { base64: data_encoding::BASE64.encode(bytes.as_bytes()) },
            }
        };
        // Places name a file without its directory; the reader may be in another one.
        let own = self.path.file_name().is_some_and(|name| name.to_string_lossy() == *place.file);
        let path = self.path.to_string_lossy();
        let line = JsonRecord {
            file: if own { &path } else { &place.file },
            offset: place.offset,
            kind: header.record_type().as_str(),
            fields: header.fields().map(|(name, value)| field(name, value)).collect(),
            http_head: http_head.map(|head| text(&head)),
            block,
        };
        serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
        Ok(out.write_all(b"\n")?)
    }
}

/// The value of a header field as it is shown. What is said to be a URL is one, whatever its spelling.
fn shown_value<'a>(name: &[u8], value: &'a str) -> Cow<'a, str> {
    let bare = value.trim().trim_start_matches('<').trim_end_matches('>');
    match name.eq_ignore_ascii_case(b"WARC-Target-URI") {
        true => match without_userinfo(bare) {
            Cow::Owned(shown) => Cow::Owned(shown),
            Cow::Borrowed(_) => Cow::Borrowed(value),
        },
        false => without_credentials(value),
    }
}

/// The header of a record as it is shown: as it is stored, but for user names and passwords.
fn shown_header(header: &RecordHeader) -> Vec<u8> {
    let raw = header.raw();
    if !raw.contains(&b'@') {
        return raw.to_vec();
    }
    let mut out = Vec::with_capacity(raw.len());
    for line in raw.split_inclusive(|b| *b == b'\n') {
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        // What is not UTF-8 is only searched, so that all other bytes stay.
        let is_target = name.trim_ascii().eq_ignore_ascii_case(b"WARC-Target-URI");
        match std::str::from_utf8(value.get(1..).unwrap_or_default().trim_ascii()).ok().filter(|_| is_target) {
            Some(url) if matches!(shown_value(b"WARC-Target-URI", url), Cow::Owned(_)) => {
                out.extend([name, b": ", shown_value(b"WARC-Target-URI", url).as_bytes()].concat());
                out.extend_from_slice(b"\r\n");
            }
            _ => out.extend_from_slice(&redact(line, Printed::Text)),
        }
    }
    out
}

fn digest(record: &mut Record<'_>) -> Result<Block> {
    let mut hash = Hasher::sha256();
    let mut length = 0;
    loop {
        let chunk = record.chunk()?;
        if chunk.is_empty() {
            return Ok(Block::Digest { length, sha256: hash.finish().hex() });
        }
        hash.update(chunk);
        let n = chunk.len();
        length += n as u64;
        io::BufRead::consume(record, n);
    }
}

/// A reader over one record.
fn reader_of(record: RawRecord<'static>, place: &Place) -> Result<WarcReader> {
    let body: Box<dyn Read + Send> = match record.body {
        Body::Memory(bytes) => Box::new(io::Cursor::new(bytes)),
        Body::Spooled(spool) => spool.open()?,
        Body::Reader { reader, .. } => reader,
    };
    let stream = io::Cursor::new(record.header).chain(body).chain(&b"\r\n\r\n"[..]);
    Ok(WarcReader::builder().lenient(true).from_read(stream, &place.to_string()))
}
