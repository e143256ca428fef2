//! Hosts in order, with their texts.

use super::MeguriFile;
use super::column::{BytesStream, ColumnStream};
use crate::arena::{Arena, Text};
use crate::error::{At, Result};
use crate::schema::{ColumnKind, Extension, HOST_COLUMNS, HostRecord, Table, extension};
use bytes::Bytes;
use std::path::PathBuf;

/// Hosts decoded at a time.
const CHUNK: u64 = 1024;
const HOST_KEY: u16 = 0;

/// One host with its texts. A text that is not there is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostRow {
    /// The fixed columns; references are those of the file it came from and mean nothing to a writer.
    pub record: HostRecord,
    /// The host group.
    pub host: Bytes,
    /// The registrable domain.
    pub registrable: Bytes,
    /// robots.txt, packed as [`crate::robots`] says.
    pub robots: Bytes,
    /// Extension columns of numbers, by id; one that is missing is 0.
    pub numbers: Vec<(u16, u64)>,
    /// Extension columns of texts, by id; one that is missing is empty.
    pub texts: Vec<(u16, Bytes)>,
}

enum Stream {
    Numbers(u16, Box<ColumnStream>),
    Addresses(BytesStream),
}

/// Walks over the host table.
pub struct HostCursor {
    /// The file, and where its host keys begin.
    place: (PathBuf, u64),
    /// Key of the last host of the chunk before.
    last: u64,
    left: u64,
    streams: Vec<Stream>,
    extensions: Vec<Extension>,
    extra: Vec<Vec<u64>>,
    records: Vec<HostRecord>,
    at: usize,
    arena: Arena,
    dangling: u64,
}

impl std::fmt::Debug for HostCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostCursor").field("left", &self.left).finish_non_exhaustive()
    }
}

impl MeguriFile {
    /// Walks over all hosts.
    pub fn hosts(&self) -> Result<HostCursor> {
        let extensions = self.extensions(Table::Hosts);
        let mut streams = Vec::new();
        for def in &HOST_COLUMNS {
            streams.push(match def.kind {
                ColumnKind::Bytes => {
                    Stream::Addresses(BytesStream::new(self.src.clone(), self.column(Table::Hosts, def.id)?))
                }
                _ => Stream::Numbers(def.id, Box::new(self.stream(Table::Hosts, def.id, 0)?)),
            });
        }
        for Extension { id, .. } in &extensions {
            streams.push(Stream::Numbers(*id, Box::new(self.stream(Table::Hosts, *id, 0)?)));
        }
        let (left, arena) = (self.header().host_count, self.arena()?);
        let extra = vec![Vec::new(); extensions.len()];
        let place = (self.path().to_owned(), self.column(Table::Hosts, HOST_KEY)?.range().start);
        Ok(HostCursor {
            place,
            last: 0,
            left,
            streams,
            extensions,
            extra,
            records: Vec::new(),
            at: 0,
            arena,
            dangling: 0,
        })
    }
}

impl HostCursor {
    /// References of hosts shown so far that lead to no text.
    pub fn dangling(&self) -> u64 {
        self.dangling
    }

    /// The next host; `None` after the last.
    pub fn next_host(&mut self) -> Result<Option<HostRow>> {
        if self.at == self.records.len() && !self.fill()? {
            return Ok(None);
        }
        let Some(record) = self.records.get(self.at).copied() else { return Ok(None) };
        let mut host = HostRow {
            record,
            host: self.text(record.host_ref)?,
            registrable: self.text(record.registrable_ref)?,
            robots: self.text(record.robots_ref)?,
            ..HostRow::default()
        };
        for place in 0..self.extensions.len() {
            let (Some(Extension { id, .. }), Some(values)) = (self.extensions.get(place), self.extra.get(place)) else {
                break;
            };
            let (id, value) = (*id, values.get(self.at).copied().unwrap_or(0));
            if extension::is_reference(id) {
                host.texts.push((id, self.text(value)?));
            } else {
                host.numbers.push((id, value));
            }
        }
        self.at += 1;
        Ok(Some(host))
    }

    fn text(&mut self, reference: u64) -> Result<Bytes> {
        let text = self.arena.get(reference)?;
        self.dangling += u64::from(text == Text::Dangling);
        Ok(super::row::owned(text))
    }

    fn fill(&mut self) -> Result<bool> {
        let n = self.left.min(CHUNK) as usize;
        self.records.clear();
        self.at = 0;
        if n == 0 {
            return Ok(false);
        }
        self.left -= n as u64;
        self.records.resize(n, HostRecord::default());
        let mut values = Vec::new();
        let mut extra = self.extra.iter_mut();
        for stream in &mut self.streams {
            match stream {
                Stream::Numbers(id, stream) if *id >= extension::FIRST => {
                    if let Some(values) = extra.next() {
                        values.clear();
                        stream.next(n, values)?;
                    }
                }
                Stream::Numbers(id, stream) => {
                    values.clear();
                    stream.next(n, &mut values)?;
                    HostRecord::scatter(&mut self.records, *id, values.iter().copied());
                }
                Stream::Addresses(stream) => {
                    let mut addresses = Vec::with_capacity(n);
                    stream.next(n, &mut addresses)?;
                    self.records.iter_mut().zip(addresses).for_each(|(r, ip)| r.resolved_ip = ip);
                }
            }
        }
        self.check_order()?;
        Ok(true)
    }

    /// Merges and comparisons walk over hosts side by side: one out of its place would vanish from their results.
    fn check_order(&mut self) -> Result<()> {
        for record in &self.records {
            if record.host_key < self.last {
                let found = format!("{:016x} behind {:016x}", record.host_key, self.last);
                return Err(At::new(&self.place.0, self.place.1).corrupt("hosts in the order of their keys", found));
            }
            self.last = record.host_key;
        }
        Ok(())
    }
}
