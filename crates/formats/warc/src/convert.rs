//! Copies records from file to file: another compression, one member per record, ARC to WARC. Nothing is lost: headers and
//! blocks stay as they are, whatever their type, and unknown ones too.
//!
//! Records of an ARC file get what WARC demands and ARC does not have: an id, digests, and for the version block at its
//! front a `warcinfo` record that keeps it.

use crate::container::Compression;
use crate::digest::{sha1_of, sha1_of_message};
use crate::error::{At, Result};
use crate::header::{RecordHeader, RecordType};
use crate::reader::{Record, WarcReader};
use crate::verify::{Progress, REPORT_EVERY};
use crate::writer::{Encoder, HeaderText, IdSource, Stored, header_uri, put_field, record_id, spool_error};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use trawl_http::head_len;
use trawl_io::{AtomicFile, Fs, Spool};
use trawl_model::Place;

mod events;

pub use events::{EventReader, RawEvent};

/// Blocks of records up to this size are kept in memory until they are written.
const MEMORY_BYTES: usize = 4 << 20;

/// Writes records as they are given, each a member of its own; the file appears when finished.
pub struct RecordWriter {
    encoder: Encoder,
    file: AtomicFile,
    name: Arc<str>,
    records: u64,
}

impl RecordWriter {
    /// Starts a file at `path`.
    pub fn create(fs: &Arc<dyn Fs>, path: &Path, compression: Compression, level: Option<i32>) -> Result<Self> {
        let dir = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(RecordWriter {
            encoder: Encoder::new(compression, level, fs.clone(), dir),
            file: AtomicFile::create(fs, path)?,
            name: path.file_name().unwrap_or_default().to_string_lossy().into(),
            records: 0,
        })
    }

    /// Writes a record: its header through the empty line, its block, and the two line ends after it.
    pub fn put(&mut self, header: &[u8], block: &mut dyn Read, block_len: u64) -> Result<Place> {
        let offset = self.file.position();
        match self.encoder.member(&[header], block, block_len, b"\r\n\r\n")? {
            Stored::Memory(bytes) => self.file.put(&bytes)?,
            Stored::Spooled(spool) => drop(io::copy(&mut spool.reader(), &mut self.file).map_err(spool_error)?),
        }
        self.records += 1;
        Ok(Place::new(self.name.clone(), offset, self.file.position() - offset))
    }

    /// Records written so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.file.position()
    }

    /// Publishes the file.
    pub fn finish(self) -> Result<()> {
        Ok(self.file.publish()?)
    }
}

/// How records are copied.
pub struct CopyOptions<'a> {
    /// Ids for records that have none.
    pub ids: &'a dyn IdSource,
    /// Goes on after damage, telling each instance; an error otherwise.
    pub on_damage: Option<&'a mut dyn FnMut(crate::Error)>,
    /// Program and version, for the `warcinfo` record of a converted ARC file.
    pub software: &'a str,
}

/// What was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CopyReport {
    /// Records.
    pub records: u64,
    /// Bytes of their blocks.
    pub block_bytes: u64,
    /// Damaged places that were skipped.
    pub damaged: u64,
}

/// Copies every record of `reader` to `out`.
pub fn copy_records(
    reader: &mut WarcReader,
    out: &mut RecordWriter,
    options: &mut CopyOptions<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<CopyReport> {
    let mut report = CopyReport::default();
    loop {
        match copy_one(reader, out, options) {
            Ok(Some(bytes)) => {
                report.records += 1;
                report.block_bytes += bytes;
            }
            Ok(None) => return Ok(report),
            Err(e) if e.is_damage() => {
                let Some(tell) = &mut options.on_damage else { return Err(e) };
                tell(e);
                report.damaged += 1;
                reader.recover_from_here()?;
            }
            Err(e) => return Err(e),
        }
        if report.records.is_multiple_of(REPORT_EVERY) {
            progress(Progress { records: report.records, bytes: reader.stored_offset(), total_bytes: 0 });
        }
    }
}

fn copy_one(reader: &mut WarcReader, out: &mut RecordWriter, options: &CopyOptions<'_>) -> Result<Option<u64>> {
    let Some(raw) = RawRecord::read(reader, &out.encoder, options)? else { return Ok(None) };
    out.put(&raw.header, &mut raw.block.reader(), raw.block.len())?;
    Ok(Some(raw.length))
}

/// A record as it will be written.
struct RawRecord {
    /// Its header as read; that of an ARC record has fewer fields than what is written.
    parsed: RecordHeader,
    header: Vec<u8>,
    block: Spool,
    /// Bytes of the block that was read.
    length: u64,
}

impl RawRecord {
    /// Read to its end before anything is written: a record whose block or checksum is bad is not copied half.
    fn read(reader: &mut WarcReader, encoder: &Encoder, options: &CopyOptions<'_>) -> Result<Option<Self>> {
        let Some(mut record) = reader.next_record()? else { return Ok(None) };
        let parsed = record.header().clone();
        let at = record.at().clone();
        let block = spooled(&mut record, encoder)?;
        record.finish()?;
        let length = parsed.content_length();
        if parsed.record_id().is_some() {
            let header = parsed.raw().to_vec();
            return Ok(Some(RawRecord { parsed, header, block, length }));
        }
        let (header, block) = arc_record(&parsed, &block, &at, options)?;
        Ok(Some(RawRecord { parsed, header, block, length }))
    }
}

fn spooled(record: &mut Record<'_>, encoder: &Encoder) -> Result<Spool> {
    let mut spool = encoder.spool(MEMORY_BYTES);
    loop {
        let chunk = record.chunk()?;
        if chunk.is_empty() {
            return Ok(spool.finish()?);
        }
        spool.put(chunk)?;
        let n = chunk.len();
        io::BufRead::consume(record, n);
    }
}

/// The WARC record for a record without an id: one that came from ARC.
fn arc_record(parsed: &RecordHeader, block: &Spool, at: &At, options: &CopyOptions<'_>) -> Result<(Vec<u8>, Spool)> {
    let id = record_id(options.ids.next_id());
    let kind = parsed.record_type();
    let mut header = HeaderText::new(&parsed.text("WARC-Type").unwrap_or_default());
    header.put_id("WARC-Record-ID", &id);
    header.put("WARC-Date", &parsed.text("WARC-Date").unwrap_or_default());
    if kind == RecordType::Warcinfo {
        let mut original = Vec::new();
        block.reader().read_to_end(&mut original).map_err(|e| crate::Error::from_io(at.clone(), e))?;
        let mut fields = Vec::new();
        put_field(&mut fields, "software", options.software);
        put_field(&mut fields, "format", "WARC File Format 1.1");
        put_field(&mut fields, "arcTarget", &parsed.target_uri().unwrap_or_default());
        put_field(&mut fields, "arcVersionBlock", &String::from_utf8_lossy(&original));
        let header = header.finish("application/warc-fields", &sha1_of(&[&fields]), fields.len() as u64);
        return Ok((header, Spool::from_bytes(fields.into())));
    }
    if let Some(uri) = parsed.target_uri().and_then(|uri| header_uri(&uri)) {
        header.put("WARC-Target-URI", &uri);
    }
    if let Some(ip) = parsed.text("WARC-IP-Address") {
        header.put("WARC-IP-Address", &ip);
    }
    let fail = |e| crate::Error::from_io(at.clone(), e);
    let mut reader = block.reader();
    let head = if kind == RecordType::Response { take_head(block).map_err(fail)? } else { Vec::new() };
    io::copy(&mut (&mut reader).take(head.len() as u64), &mut io::sink()).map_err(fail)?;
    let (payload, digest, _) = sha1_of_message(&head, &mut reader).map_err(fail)?;
    header.put_digest("WARC-Payload-Digest", &payload);
    let content_type = parsed.text("Content-Type").unwrap_or_default();
    Ok((header.finish(&content_type, &digest, block.len()), block.clone()))
}

/// The HTTP head at the front of a block; nothing if it has none.
fn take_head(block: &Spool) -> io::Result<Vec<u8>> {
    let mut front = Vec::new();
    let mut reader = block.reader();
    loop {
        if let Some(end) = head_len(&front, 0) {
            front.truncate(end);
            return Ok(front);
        }
        let before = front.len();
        (&mut reader).take(16 << 10).read_to_end(&mut front)?;
        if front.len() == before || front.len() > 1 << 20 {
            return Ok(Vec::new());
        }
    }
}

#[cfg(test)]
mod tests;
