//! Digests of one record, in one pass over its block.

use crate::error::Result;
use crate::header::RecordType;
use crate::reader::Record;
use std::io::{self, BufRead, Read};
use trawl_http::{Dechunk, Framing, Head};
use trawl_io::Hasher;
use trawl_model::{Algorithm, Digest, Severity};

/// What checking a record found.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) findings: Vec<(&'static str, Severity, String)>,
    pub(super) compared: u64,
}

impl Checked {
    fn compare(&mut self, kind: &'static str, stated: &Digest, actual: &Digest) {
        self.compared += 1;
        if stated != actual {
            self.findings.push((kind, Severity::Fault, format!("expected {stated}, found {actual}")));
        }
    }
}

/// A digest a header states: to be computed, or of a kind that cannot be.
enum Stated {
    None,
    Known(Digest),
}

fn stated(record: &Record<'_>, name: &str, kind: &'static str, checked: &mut Checked) -> Stated {
    let Some(text) = record.header().text(name).filter(|t| !t.is_empty()) else { return Stated::None };
    match Digest::parse(&text) {
        Ok(digest) if digest.algorithm() != Algorithm::Md5 => Stated::Known(digest),
        _ => {
            checked.findings.push((kind, Severity::Note, format!("{text:?} cannot be checked")));
            Stated::None
        }
    }
}

fn hasher(stated: &Stated) -> Option<Hasher> {
    match stated {
        Stated::Known(digest) => Hasher::new(digest.algorithm()),
        Stated::None => None,
    }
}

/// Reads a record to its end and compares what its header states about its block and payload.
pub(super) fn check(mut record: Record<'_>) -> Result<Checked> {
    let mut checked = Checked::default();
    let block = stated(&record, "WARC-Block-Digest", "block-digest", &mut checked);
    let payload = stated(&record, "WARC-Payload-Digest", "payload-digest", &mut checked);
    let mut block_hasher = hasher(&block);
    let mut payload_hasher = hasher(&payload);
    let record_type = record.header().record_type();
    let truncated = record.header().get("WARC-Truncated").is_some();
    let is_message = record.header().may_be_http() && record_type != RecordType::Revisit;
    // The payload that a revisit or a part of a record speaks of is stored elsewhere.
    if record_type == RecordType::Revisit || record.header().get("WARC-Segment-Number").is_some() {
        payload_hasher = None;
    }
    let head = if is_message { record.take_http_head()? } else { None };
    let mut chunked = None;
    let mut stated_length = None;
    if let Some(head) = &head {
        if let Some(hasher) = &mut block_hasher {
            hasher.update(head);
        }
        match Framing::of(&Head::new(head)) {
            Framing::Chunked if payload_hasher.is_some() => chunked = hasher(&payload),
            Framing::Length(length) => stated_length = Some(length),
            _ => {}
        }
    }
    let body_length = record.left();
    let mut both = Both { record, block: block_hasher, payload: payload_hasher };
    if let Some(mut hasher) = chunked {
        // What the payload is, chunks or what they hold, is a matter crawlers disagree on: either will do.
        if dechunk(&mut both, &mut hasher) {
            let joined = hasher.finish();
            both.payload = both.payload.filter(|_| !matches!(&payload, Stated::Known(d) if *d == joined));
            checked.compared += u64::from(both.payload.is_none());
        }
    }
    both.drain()?;
    let Both { record, block: block_hasher, payload: payload_hasher } = both;
    if let (Stated::Known(digest), Some(hasher)) = (&block, block_hasher) {
        checked.compare("block-digest", digest, &hasher.finish());
    }
    if let (Stated::Known(digest), Some(hasher)) = (&payload, payload_hasher) {
        checked.compare("payload-digest", digest, &hasher.finish());
    }
    if record_type == RecordType::Response
        && !truncated
        && let Some(n) = stated_length.filter(|n| *n != body_length)
    {
        let detail = format!("the HTTP head says {n} bytes, {body_length} are stored");
        checked.findings.push(("http-length", Severity::Note, detail));
    }
    record.finish()?;
    Ok(checked)
}

/// A block that is digested, twice if need be, as it is read.
struct Both<'r> {
    record: Record<'r>,
    block: Option<Hasher>,
    payload: Option<Hasher>,
}

impl Both<'_> {
    fn drain(&mut self) -> Result<()> {
        loop {
            let n = self.record.chunk()?.len();
            if n == 0 {
                return Ok(());
            }
            self.consume(n);
        }
    }
}

impl Read for Both<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.fill_buf()?.read(buf)?;
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for Both<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.record.fill_buf()
    }

    fn consume(&mut self, n: usize) {
        if let Ok(chunk) = self.record.chunk() {
            let chunk = chunk.get(..n).unwrap_or(chunk);
            [&mut self.block, &mut self.payload].into_iter().flatten().for_each(|hasher| hasher.update(chunk));
        }
        self.record.consume(n);
    }
}

/// Digests what the chunks hold; `false` if the body is not chunked after all.
fn dechunk(both: &mut Both<'_>, hasher: &mut Hasher) -> bool {
    let mut reader = Dechunk::new(both);
    let mut buf = vec![0; 32 << 10];
    loop {
        match reader.read(&mut buf) {
            Ok(0) => return true,
            Ok(n) => hasher.update(buf.get(..n).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            // Real trouble with the file comes back when the rest of the block is read.
            Err(_) => return false,
        }
    }
}
