//! Hosts wait in a spool until all URLs are in: their texts follow those of the URLs in the arena, so that reading the
//! host table touches no other frames, and the file does not depend on how hosts and URLs were interleaved.

use super::table::{FinishedColumn, TableWriter};
use super::{WriterOptions, definitions, extension_value};
use crate::arena::{ArenaWriter, MAX_TEXT};
use crate::error::{At, Error, Malformed, Result};
use crate::reader::HostRow;
use crate::reader::column::ColumnStream;
use crate::schema::{ColumnKind, Extension, HOST_COLUMNS, HostRecord, extension};
use bytes::Bytes;
use std::path::Path;
use trawl_io::limits::BoundedBuf;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;
use trawl_io::{SpoolReader, SpoolWriter};

/// Hosts on their way.
pub(super) struct HostSpool {
    extensions: Vec<Extension>,
    spool: SpoolWriter,
    count: u64,
    last: Option<u64>,
    buf: Vec<u8>,
}

impl HostSpool {
    pub fn new(options: &WriterOptions, spool: SpoolWriter) -> Result<Self> {
        definitions(&HOST_COLUMNS, &options.host_extensions)?;
        let extensions = options.host_extensions.clone();
        Ok(HostSpool { extensions, spool, count: 0, last: None, buf: Vec::new() })
    }

    pub fn push(&mut self, host: &HostRow) -> Result<()> {
        let key = host.record.host_key;
        if let Some(last) = self.last.filter(|last| key <= *last) {
            let (previous, found) = (format!("{last:016x}"), format!("{key:016x}"));
            return Err(Error::NotSorted { row: self.count, previous, found });
        }
        self.last = Some(key);
        self.count += 1;
        self.buf.clear();
        encode_host(host, &self.extensions, &mut self.buf);
        let mut length = Vec::new();
        put_uvarint(&mut length, self.buf.len() as u64);
        self.spool.put(&length)?;
        self.spool.put(&self.buf)?;
        Ok(())
    }

    /// Writes the table, and the texts into the arena. With a counter, each host gets the number of its rows.
    pub fn finish(
        self,
        options: &WriterOptions,
        arena: &mut ArenaWriter,
        mut counter: Option<RowCounter>,
    ) -> Result<(u64, Vec<FinishedColumn>)> {
        let defs = definitions(&HOST_COLUMNS, &self.extensions)?;
        let share = options.memory_bytes / 8 / defs.len().max(1);
        let spool = || SpoolWriter::new(options.fs.clone(), &options.temp, share);
        let mut table = TableWriter::new(&defs, &options.settings, &mut { spool })?;
        let mut rows = Rows { source: BoundedBuf::new(self.spool.finish()?.reader(), Path::new("(hosts)"), 1 << 30) };
        let mut left = self.count;
        while left > 0 {
            let n = left.min(u64::from(options.settings.page_rows)) as usize;
            let mut records = Vec::with_capacity(n);
            let mut extra = vec![Vec::with_capacity(n); self.extensions.len()];
            for _ in 0..n {
                let mut host = rows.next(&self.extensions)?;
                if let Some(counter) = &mut counter {
                    let rows = counter.rows_of(host.record.host_key)?;
                    host.record.url_count = u32::try_from(rows).unwrap_or(u32::MAX);
                }
                host.record.host_ref = arena.share_first(&host.host)?;
                host.record.registrable_ref = arena.share_first(&host.registrable)?;
                host.record.robots_ref = arena.share_first(&host.robots)?;
                for (Extension { id, width }, values) in self.extensions.iter().zip(&mut extra) {
                    values
                        .push(extension_value(*id, *width, &host.numbers, &host.texts, &mut |t| arena.share_first(t))?);
                }
                arena.end_row()?;
                records.push(host.record);
            }
            table.page(n, |def, out| {
                if def.kind == ColumnKind::Bytes {
                    return Some(records.iter().flat_map(|h| h.resolved_ip).collect());
                }
                if !HostRecord::gather(&records, def.id, out) {
                    let column = self.extensions.iter().position(|e| e.id == def.id).and_then(|at| extra.get(at));
                    out.extend(column.into_iter().flatten());
                }
                None
            })?;
            left -= n as u64;
        }
        Ok((self.count, table.finish()?))
    }
}

/// A host as bytes: its columns, its texts, then the extension columns that are asked for.
pub(crate) fn encode_host(host: &HostRow, extensions: &[Extension], body: &mut Vec<u8>) {
    let mut value = Vec::with_capacity(1);
    for def in &HOST_COLUMNS {
        value.clear();
        if HostRecord::gather(std::slice::from_ref(&host.record), def.id, &mut value) {
            value.iter().for_each(|v| put_uvarint(body, *v));
        }
    }
    body.extend_from_slice(&host.record.resolved_ip);
    let mut text = |text: &[u8]| {
        put_uvarint(body, text.len() as u64);
        body.extend_from_slice(text);
    };
    [&host.host, &host.registrable, &host.robots].into_iter().for_each(|t| text(t));
    for Extension { id, .. } in extensions {
        if extension::is_reference(*id) {
            text(host.texts.iter().find(|(known, _)| known == id).map_or(&[][..], |(_, text)| text));
        } else {
            let value = host.numbers.iter().find(|(known, _)| known == id).map_or(0, |(_, value)| *value);
            text(&value.to_le_bytes());
        }
    }
}

/// Counts the rows of hosts that are asked for in ascending order, in one pass over the column of host keys.
pub(crate) struct RowCounter {
    keys: ColumnStream,
    /// Rows behind those in `buffer`.
    left: u64,
    buffer: Vec<u64>,
    at: usize,
}

impl RowCounter {
    pub fn new(keys: ColumnStream, rows: u64) -> Self {
        RowCounter { keys, left: rows, buffer: Vec::new(), at: 0 }
    }

    pub fn rows_of(&mut self, host: u64) -> Result<u64> {
        let mut count = 0;
        loop {
            let rest = self.buffer.get(self.at..).unwrap_or_default();
            let below = rest.partition_point(|key| *key < host);
            let up_to = rest.partition_point(|key| *key <= host);
            count += (up_to - below) as u64;
            self.at += up_to;
            if up_to < rest.len() || self.left == 0 {
                return Ok(count);
            }
            let n = self.left.min(super::STEP);
            (self.at, self.left) = (0, self.left - n);
            self.buffer.clear();
            self.keys.next(n as usize, &mut self.buffer)?;
        }
    }
}

/// Reads hosts back.
struct Rows {
    source: BoundedBuf<SpoolReader>,
}

impl Rows {
    fn next(&mut self, extensions: &[Extension]) -> Result<HostRow> {
        let at = self.source.offset();
        let head = self.source.fill(trawl_io::varint::MAX_LEN, "a host's length")?;
        let mut r = SliceReader::new(head);
        let bad = |e: SliceError| Malformed::from(e).at(At::new(Path::new("(hosts)"), at));
        let length = r.uvarint("a host's length").map_err(bad)?;
        let used = r.offset() as usize;
        self.source.consume(used);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let body = self.source.fill(length, "a host")?;
        let host = decode_host(body.get(..length).unwrap_or(body), extensions).map_err(bad)?;
        self.source.consume(length);
        Ok(host)
    }
}

/// The host of [`encode_host`].
pub(crate) fn decode_host(body: &[u8], extensions: &[Extension]) -> Result<HostRow, SliceError> {
    let mut r = SliceReader::new(body);
    let mut host = HostRow::default();
    for def in HOST_COLUMNS.iter().filter(|def| def.kind != ColumnKind::Bytes) {
        let value = r.uvarint("a host's column")?;
        HostRecord::scatter(std::slice::from_mut(&mut host.record), def.id, std::iter::once(value));
    }
    host.record.resolved_ip = r.array("a host's address")?;
    let mut text = || r.prefixed(MAX_TEXT, "a host's text").map(Bytes::copy_from_slice);
    host.host = text()?;
    host.registrable = text()?;
    host.robots = text()?;
    for Extension { id, .. } in extensions {
        let bytes = text()?;
        if extension::is_reference(*id) {
            host.texts.push((*id, bytes));
        } else {
            host.numbers.push((*id, crate::encoding::get_value(&bytes)));
        }
    }
    Ok(host)
}
