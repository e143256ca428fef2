//! A whole partition in memory: what the reference's library works on. Texts stay where they are: encoding a decoded file
//! gives its bytes.

use crate::arena::seal_whole;
use crate::error::{At, Error, Result};
use crate::footer::{Metadata, RegionId};
use crate::header::Header;
use crate::reader::column::BytesStream;
use crate::reader::{MeguriFile, ReadSettings};
use crate::schema::{ColumnKind, Extension, HostRecord, Table, UrlRecord, extension_def};
use crate::settings::{SETTINGS_KEY, Settings};
use crate::writer::assemble::{Identity, Parts, Written};
use crate::writer::keys::{KEY_COLUMNS, KeyPages};
use crate::writer::table::{FinishedColumn, TableWriter};
use crate::{codec, schedule};
use bytes::Bytes;
use std::io::Write;
use std::sync::Arc;
use trawl_io::{Fs, RealFs, SpoolWriter};
use trawl_url::key::UrlKey;

/// An extension column in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionColumn {
    /// Which one.
    pub extension: Extension,
    /// One value a row.
    pub values: Vec<u64>,
}

/// Everything a file says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Partition {
    /// Which partition of the fleet.
    pub id: u32,
    /// Lowest host key owned.
    pub hostkey_lo: u64,
    /// Highest host key owned.
    pub hostkey_hi: u64,
    /// Hours since 1970.
    pub created: u32,
    /// URLs, in order of their keys.
    pub urls: Vec<UrlRecord>,
    /// Hosts, in order of their keys.
    pub hosts: Vec<HostRecord>,
    /// Columns of URLs beside the fixed ones, by id.
    pub url_extensions: Vec<ExtensionColumn>,
    /// Columns of hosts beside the fixed ones, by id.
    pub host_extensions: Vec<ExtensionColumn>,
    /// The texts, entry after entry.
    pub arena: Vec<u8>,
    /// Arena bytes of each frame, as the file had them.
    pub arena_frames: Option<Vec<u32>>,
    /// The seen filter, as bytes; any bytes are carried.
    pub filter: Option<Vec<u8>>,
    /// Whether there is a schedule index.
    pub schedule: bool,
    /// Texts for the footer.
    pub metadata: Metadata,
}

/// The most that is decoded into memory.
const MAX_ROWS: u64 = 1 << 28;
const MAX_ARENA: u64 = 4 << 30;

impl Partition {
    /// Decodes a whole file. Checks every region before anything in it is believed, then every page.
    pub fn decode(bytes: impl Into<Bytes>) -> Result<Partition> {
        let bytes: Bytes = bytes.into();
        Self::read(&MeguriFile::open(Arc::new(bytes), ReadSettings::default())?)
    }

    /// Reads a whole file, as [`Partition::decode`] does.
    pub fn read(file: &MeguriFile) -> Result<Partition> {
        check_regions(file)?;
        check_columns(file)?;
        let header: &Header = file.header();
        let rows = header.url_count.max(header.host_count);
        if rows > MAX_ROWS {
            return Err(file.at(32).over_limit("the rows of a table", rows, MAX_ROWS));
        }
        let mut urls = vec![UrlRecord::default(); header.url_count as usize];
        for def in Table::Urls.columns() {
            let values = file.read_column(Table::Urls, def.id)?;
            UrlRecord::scatter(&mut urls, def.id, values.into_iter());
        }
        let mut hosts = vec![HostRecord::default(); header.host_count as usize];
        for def in Table::Hosts.columns() {
            if def.kind == ColumnKind::Bytes {
                let mut values = Vec::new();
                BytesStream::new(file.src.clone(), file.column(Table::Hosts, def.id)?)
                    .next(hosts.len(), &mut values)?;
                hosts.iter_mut().zip(values).for_each(|(host, ip)| host.resolved_ip = ip);
            } else {
                let values = file.read_column(Table::Hosts, def.id)?;
                HostRecord::scatter(&mut hosts, def.id, values.into_iter());
            }
        }
        let unsorted = |what| file.at(header.footer_offset).corrupt("rows in the order of their keys", what);
        let key = |r: &UrlRecord| (r.host_key, r.path_key);
        if !urls.is_sorted_by_key(key) {
            return Err(unsorted("unsorted URLs"));
        }
        if !hosts.is_sorted_by_key(|h| h.host_key) {
            return Err(unsorted("unsorted hosts"));
        }
        let extensions = |table| -> Result<Vec<ExtensionColumn>> {
            let read = |extension: Extension| {
                Ok(ExtensionColumn { extension, values: file.read_column(table, extension.id)? })
            };
            file.extensions(table).into_iter().map(read).collect()
        };
        let mut arena = file.arena()?;
        let mut metadata = file.footer().metadata.clone();
        // It speaks of the file, not of the partition; encoding writes it anew.
        metadata.remove(SETTINGS_KEY);
        Ok(Partition {
            id: header.partition_id,
            hostkey_lo: header.hostkey_lo,
            hostkey_hi: header.hostkey_hi,
            created: header.created,
            urls,
            hosts,
            url_extensions: extensions(Table::Urls)?,
            host_extensions: extensions(Table::Hosts)?,
            arena_frames: arena.cuts(),
            arena: arena.read_all(MAX_ARENA)?,
            filter: read_filter(file)?,
            schedule: file.footer().region(RegionId::Schedule).is_some(),
            metadata,
        })
    }

    /// The bytes of a file.
    pub fn encode(&self, settings: &Settings) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.write(settings, &mut out)?;
        Ok(out)
    }

    /// Writes a file. Rows must be in the order of their keys; equal keys are allowed. The filter is written as it is, a
    /// schedule index if there was one and a row is scheduled.
    pub fn write(&self, settings: &Settings, out: &mut dyn Write) -> Result<Written> {
        settings.check()?;
        self.check_order()?;
        let urls = self.url_columns(settings)?;
        let hosts = self.host_columns(settings)?;
        let due = || self.urls.iter().map(|r| r.next_due).filter(|due| *due != 0);
        let index = if self.schedule {
            let mut scan = |each: &mut dyn FnMut(u64, u32)| {
                let rows = self.urls.iter().enumerate().filter(|(_, r)| r.next_due != 0);
                rows.for_each(|(row, r)| each(row as u64, r.next_due));
                Ok(())
            };
            schedule::build(&mut scan, self.urls.len() as u64, settings, usize::MAX, in_memory())?
        } else {
            None
        };
        let arena = seal_whole(&self.arena, self.arena_frames.as_deref(), settings, in_memory())?;
        let identity = Identity {
            partition_id: self.id,
            range: Some((self.hostkey_lo, self.hostkey_hi)),
            created: self.created,
            metadata: self.metadata.clone(),
        };
        let parts = Parts {
            identity,
            settings: *settings,
            url_count: self.urls.len() as u64,
            host_count: self.hosts.len() as u64,
            urls,
            hosts,
            schedule: index,
            filter: self.filter.clone().filter(|blob| !blob.is_empty()),
            arena,
            due: (due().min().unwrap_or(0), due().max().unwrap_or(0)),
            scheduled: due().count() as u64,
        };
        parts.write(out)
    }

    fn check_order(&self) -> Result<()> {
        let url = |r: &UrlRecord| (r.host_key, r.path_key);
        let wrong = self.urls.windows(2).position(|w| matches!(w, [a, b] if url(a) > url(b)));
        let hosts = self.hosts.windows(2).position(|w| matches!(w, [a, b] if a.host_key > b.host_key));
        let key = |place: usize| self.urls.get(place).map(|r| format!("{:016x}{:016x}", r.host_key, r.path_key));
        let host = |place: usize| self.hosts.get(place).map(|h| format!("{:016x}", h.host_key));
        let (row, previous, found) = match (wrong, hosts) {
            (Some(place), _) => (place + 1, key(place), key(place + 1)),
            (_, Some(place)) => (place + 1, host(place), host(place + 1)),
            _ => return Ok(()),
        };
        let text = |key: Option<String>| key.unwrap_or_else(|| "none".to_owned());
        Err(Error::NotSorted { row: row as u64, previous: text(previous), found: text(found) })
    }

    fn url_columns(&self, settings: &Settings) -> Result<Vec<FinishedColumn>> {
        let mut defs = Table::Urls.columns().to_vec();
        defs.extend(self.url_extensions.iter().map(|c| extension_def(c.extension)));
        let mut columns = Vec::new();
        if !settings.reference {
            let rest = defs.split_off(KEY_COLUMNS);
            let mut keys = KeyPages::new(&defs, settings, &mut in_memory)?;
            for record in &self.urls {
                keys.push(UrlKey { host: record.host_key, path: record.path_key })?;
            }
            columns = keys.finish()?;
            defs = rest;
        }
        let mut table = TableWriter::new(&defs, settings, &mut in_memory)?;
        let mut first = 0;
        for rows in self.urls.chunks(page_rows(settings, self.urls.len())) {
            table.page(rows.len(), |def, values| {
                if !UrlRecord::gather(rows, def.id, values) {
                    gather_extension(&self.url_extensions, def.id, first, rows.len(), values);
                }
                None
            })?;
            first += rows.len();
        }
        columns.extend(table.finish()?);
        Ok(columns)
    }

    fn host_columns(&self, settings: &Settings) -> Result<Vec<FinishedColumn>> {
        let mut defs = Table::Hosts.columns().to_vec();
        defs.extend(self.host_extensions.iter().map(|c| extension_def(c.extension)));
        let mut table = TableWriter::new(&defs, settings, &mut in_memory)?;
        let mut first = 0;
        for rows in self.hosts.chunks(page_rows(settings, self.hosts.len())) {
            table.page(rows.len(), |def, values| {
                if def.kind == ColumnKind::Bytes {
                    return Some(rows.iter().flat_map(|h| h.resolved_ip).collect());
                }
                if !HostRecord::gather(rows, def.id, values) {
                    gather_extension(&self.host_extensions, def.id, first, rows.len(), values);
                }
                None
            })?;
            first += rows.len();
        }
        table.finish()
    }
}

fn gather_extension(columns: &[ExtensionColumn], id: u16, first: usize, n: usize, out: &mut Vec<u64>) {
    let values = columns.iter().find(|c| c.extension.id == id).map(|c| c.values.iter().skip(first));
    out.extend(values.into_iter().flatten().copied().chain(std::iter::repeat(0)).take(n));
}

/// Rows of each page; all of them where the reference does not split.
fn page_rows(settings: &Settings, rows: usize) -> usize {
    if settings.page_rows == 0 { rows.max(1) } else { settings.page_rows as usize }
}

/// A spool that stays in memory.
fn in_memory() -> SpoolWriter {
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    SpoolWriter::new(fs, std::path::Path::new("."), usize::MAX)
}

fn check_regions(file: &MeguriFile) -> Result<()> {
    for region in &file.footer().regions {
        let crc = codec::crc_of_range(&*file.src, region.range())?;
        file.at(region.offset).check_crc("region", region.crc, crc)?;
    }
    Ok(())
}

fn check_columns(file: &MeguriFile) -> Result<()> {
    for table in [Table::Urls, Table::Hosts] {
        for column in file.footer().columns(table) {
            let range = column.range();
            let crc = codec::crc_of_range(&*file.src, range.clone())?;
            At::new(file.path(), range.start).check_crc("column", column.crc, crc)?;
        }
    }
    Ok(())
}

fn read_filter(file: &MeguriFile) -> Result<Option<Vec<u8>>> {
    let page = file.region_page(RegionId::Seen, crate::page::Kind::Filter)?;
    page.map(|page| Ok(page.payload(file.settings.filter_bytes)?.to_vec())).transpose()
}
