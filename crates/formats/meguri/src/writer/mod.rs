//! Writing a file from rows that arrive in order, within a memory budget.
//!
//! ```text
//! push(row) ─► texts ─► arena frames ─────────► spool ┐
//!          ├─► page of records ─► 21+ columns ─► spools ├─ finish ─► one pass: header, regions, footer
//!          └─► key pages ───────► 2 columns ──► spools │
//! push_host ─► spool of hosts ── finish ─► pages, texts ┘
//!                     finish ─► key columns read back ─► seen filter
//!                     finish ─► next_due read back ────► schedule index
//! ```
//! Regions lie one after another and columns too, so nothing can be written to its place before all rows are in. What
//! does not fit into memory waits in unnamed temporary files.

pub(crate) mod assemble;
pub(crate) mod hosts;
pub(crate) mod keys;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use crate::arena::{ArenaWriter, FrameEnd};
use crate::error::{Error, Result};
use crate::filter::{Bloom, build_ribbon};
use crate::footer::ColumnEntry;
use crate::reader::column::ColumnStream;
use crate::reader::{HostRow, UrlRow};
use crate::schedule;
use crate::schema::{ColumnDef, Extension, URL_COLUMNS, UrlRecord, extension, extension_def};
use crate::settings::{SeenFilter, Settings};
use assemble::{Identity, Parts, Written};
use hosts::{HostSpool, RowCounter};
use keys::{KEY_COLUMNS, KeyPages};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use table::{FinishedColumn, TableWriter};
use trawl_io::{AtomicFile, Fs, RealFs, SpoolWriter};
use trawl_url::key::UrlKey;

/// Memory budget unless told otherwise: 64 MiB.
pub const DEFAULT_MEMORY_BYTES: usize = 64 << 20;
const HOST_KEY: usize = 0;
const PATH_KEY: usize = 1;
const NEXT_DUE: usize = 10;

/// How a writer works and what it writes.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// The layout.
    pub settings: Settings,
    /// Name, range, hour and metadata.
    pub identity: Identity,
    /// Columns of URLs beside the fixed ones.
    pub url_extensions: Vec<Extension>,
    /// Columns of hosts beside the fixed ones.
    pub host_extensions: Vec<Extension>,
    /// Where `url_count` of a host comes from.
    pub host_counts: HostCounts,
    /// Memory that rows, filter and index may take, apart from one page and one frame.
    pub memory_bytes: usize,
    /// Where the rest waits.
    pub temp: PathBuf,
    /// The file system of `temp`.
    pub fs: Arc<dyn Fs>,
}

/// Where `url_count` of a host comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostCounts {
    /// The writer counts the rows of each host: the file is a whole partition.
    #[default]
    OfRows,
    /// As each host says: the file is one run of several, and its hosts speak of all of them. Its metadata say so.
    AsGiven,
}

/// The name in a file's metadata under which a run says that its hosts count rows of other files too.
pub const HOST_COUNTS: &[u8] = b"host_counts";

impl Default for WriterOptions {
    fn default() -> Self {
        WriterOptions {
            settings: Settings::default(),
            identity: Identity::default(),
            url_extensions: Vec::new(),
            host_extensions: Vec::new(),
            host_counts: HostCounts::OfRows,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            temp: std::env::temp_dir(),
            fs: Arc::new(RealFs),
        }
    }
}

/// Takes rows in the order of their keys, hosts in the order of theirs, and writes a file.
pub struct Writer {
    options: WriterOptions,
    /// Rows whose page is not written yet; the texts of those from `settled` on are in a frame that is still open.
    page: Vec<UrlRecord>,
    settled: usize,
    /// Values of the extension columns of these rows.
    extra: Vec<Vec<u64>>,
    keys: KeyPages,
    urls: TableWriter,
    hosts: HostSpool,
    arena: ArenaWriter,
    last: Option<UrlKey>,
    due: (u32, u32),
    scheduled: u64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("rows", &self.rows()).field("last", &self.last).finish_non_exhaustive()
    }
}

/// The definitions of a table's columns, extensions included.
fn definitions(fixed: &[ColumnDef], extensions: &[Extension]) -> Result<Vec<ColumnDef>> {
    let mut defs = fixed.to_vec();
    for extension in extensions {
        let Extension { id, width } = *extension;
        let known = (extension::FIRST..=extension::LAST).contains(&id);
        let fits = matches!(width, 1 | 2 | 4 | 8) && (!extension::is_reference(id) || width == 8);
        if !known || !fits || defs.iter().any(|def| def.id == id) {
            return Err(Error::Refused(format!(
                "extension column {id} of {width} bytes: expected each id of 128 to 255 once"
            )));
        }
        defs.push(extension_def(*extension));
    }
    Ok(defs)
}

impl Writer {
    /// Starts a file. Nothing is written before [`Writer::finish`], except temporary files.
    pub fn new(mut options: WriterOptions) -> Result<Writer> {
        options.settings.check()?;
        match options.host_counts {
            HostCounts::OfRows => options.identity.metadata.remove(HOST_COUNTS),
            HostCounts::AsGiven => options.identity.metadata.insert(HOST_COUNTS.to_vec(), b"of_all_runs".to_vec()),
        };
        if options.settings.reference {
            return Err(Error::Refused("the reference's layout is written from a whole partition".into()));
        }
        options.url_extensions.sort_unstable();
        options.host_extensions.sort_unstable();
        let defs = definitions(&URL_COLUMNS, &options.url_extensions)?;
        let (fs, temp) = (options.fs.clone(), options.temp.clone());
        let spool = |share: usize| SpoolWriter::new(fs.clone(), &temp, share);
        // An eighth each for columns, hosts and arena: a spool may have twice its share while it grows.
        let eighth = options.memory_bytes / 8;
        let share = eighth / defs.len().max(1);
        let (keys, rest) = defs.split_at(KEY_COLUMNS.min(defs.len()));
        let keys = KeyPages::new(keys, &options.settings, &mut || spool(share))?;
        let urls = TableWriter::new(rest, &options.settings, &mut || spool(share))?;
        let hosts = HostSpool::new(&options, spool(eighth))?;
        let arena = ArenaWriter::new(&options.settings, spool(eighth))?;
        let extra = vec![Vec::new(); options.url_extensions.len()];
        let (page, last, due) = (Vec::new(), None, (0, 0));
        Ok(Writer { options, page, settled: 0, extra, keys, urls, hosts, arena, last, due, scheduled: 0 })
    }

    /// Rows taken so far.
    pub fn rows(&self) -> u64 {
        self.urls.rows() + self.page.len() as u64
    }

    /// Arena bytes so far: a file holds less than 4 GiB of texts.
    pub fn arena_bytes(&self) -> u64 {
        self.arena.len()
    }

    /// Takes a row, whose key must be above the one before it.
    pub fn push(&mut self, row: UrlRow<'_>) -> Result<()> {
        let key = row.key();
        if let Some(last) = self.last.filter(|last| key <= *last) {
            let hex = |key: UrlKey| format!("{:016x}{:016x}", key.host, key.path);
            return Err(Error::NotSorted { row: self.rows(), previous: hex(last), found: hex(key) });
        }
        self.last = Some(key);
        let mut record = *row.record;
        record.url_ref = self.arena.add(row.url)?;
        record.etag_ref = self.arena.share(row.etag)?;
        record.redirect_ref = self.arena.share(row.redirect)?;
        for (Extension { id, width }, values) in self.options.url_extensions.iter().zip(&mut self.extra) {
            values.push(extension_value(*id, *width, row.numbers, row.texts, &mut |text| self.arena.share(text))?);
        }
        self.keys.push(key)?;
        if record.next_due != 0 {
            self.scheduled += 1;
            let (min, max) = self.due;
            self.due = (if min == 0 { record.next_due } else { min.min(record.next_due) }, max.max(record.next_due));
        }
        self.page.push(record);
        match self.arena.end_row()? {
            Some(end) => self.settle(end),
            None => Ok(()),
        }
    }

    /// A frame has ended: its rows get their references, and full pages are written.
    fn settle(&mut self, end: FrameEnd) -> Result<()> {
        for record in self.page.iter_mut().skip(self.settled) {
            record.etag_ref = end.close(record.etag_ref);
            record.redirect_ref = end.close(record.redirect_ref);
        }
        for (Extension { id, .. }, values) in self.options.url_extensions.iter().zip(&mut self.extra) {
            if extension::is_reference(*id) {
                values.iter_mut().skip(self.settled).for_each(|value| *value = end.close(*value));
            }
        }
        self.settled = self.page.len();
        while self.page.len() >= self.options.settings.page_rows as usize {
            self.end_page()?;
        }
        Ok(())
    }

    /// Takes a host, whose key must be above the one before it. Hosts and URLs may come in any interleaving; the file is
    /// the same.
    pub fn push_host(&mut self, host: &HostRow) -> Result<()> {
        self.hosts.push(host)
    }

    /// Writes the first page of the rows, all of which are settled.
    fn end_page(&mut self) -> Result<()> {
        let n = self.page.len().min(self.options.settings.page_rows as usize);
        let extensions = &self.options.url_extensions;
        let (page, extra) = (self.page.get(..n).unwrap_or_default(), &self.extra);
        self.urls.page(n, |def, out| {
            if !UrlRecord::gather(page, def.id, out) {
                let column = extensions.iter().position(|e| e.id == def.id).and_then(|place| extra.get(place));
                out.extend(column.into_iter().flatten().take(n));
            }
            None
        })?;
        self.page.drain(..n);
        self.extra.iter_mut().for_each(|values| drop(values.drain(..n)));
        self.settled -= n;
        Ok(())
    }

    /// Completes the file and publishes it under `path`: it is there as a whole or not at all.
    pub fn finish_file(self, path: &Path) -> Result<Written> {
        let fs = self.options.fs.clone();
        let mut file = AtomicFile::create(&fs, path)?;
        let written = self.finish(&mut file)?;
        file.publish()?;
        Ok(written)
    }

    /// Completes the file into any sink.
    pub fn finish(mut self, out: &mut dyn Write) -> Result<Written> {
        let end = self.arena.end_frame()?;
        self.settle(end)?;
        if !self.page.is_empty() {
            self.end_page()?;
        }
        let Writer { options, keys, urls: rest, hosts, mut arena, due, scheduled, .. } = self;
        let url_count = rest.rows();
        let mut urls = keys.finish()?;
        urls.extend(rest.finish()?);
        let finishing = Finishing { options: &options, urls: &urls, rows: url_count };
        let counter = match options.host_counts {
            HostCounts::OfRows => Some(RowCounter::new(finishing.stream(HOST_KEY)?, url_count)),
            HostCounts::AsGiven => None,
        };
        let (host_count, hosts) = hosts.finish(&options, &mut arena, counter)?;
        let arena = arena.finish()?;
        let schedule = finishing.schedule()?;
        let filter = finishing.filter()?;
        let settings = options.settings;
        let identity = options.identity;
        Parts { identity, settings, url_count, host_count, urls, hosts, schedule, filter, arena, due, scheduled }
            .write(out)
    }
}

/// The value of an extension column: a number, or a reference to its text.
fn extension_value(
    id: u16,
    width: u8,
    numbers: &[(u16, u64)],
    texts: &[(u16, bytes::Bytes)],
    store: &mut dyn FnMut(&[u8]) -> Result<u64>,
) -> Result<u64> {
    if extension::is_reference(id) {
        return texts.iter().find(|(known, _)| *known == id).map_or(Ok(0), |(_, text)| store(text));
    }
    let value = numbers.iter().find(|(known, _)| *known == id).map_or(0, |(_, value)| *value);
    if value > crate::encoding::max_of(width) {
        return Err(Error::Refused(format!("extension column {id}: {value} does not fit {width} bytes")));
    }
    Ok(value)
}

/// What is derived from finished columns.
struct Finishing<'a> {
    options: &'a WriterOptions,
    urls: &'a [FinishedColumn],
    rows: u64,
}

/// Rows read back at a time.
const STEP: u64 = 8192;

impl Finishing<'_> {
    fn stream(&self, column: usize) -> Result<ColumnStream> {
        let missing = || Error::Refused("a column is missing".into());
        let FinishedColumn { entry, .. } = self.urls.get(column).ok_or_else(missing)?;
        let source = self.urls.get(column).ok_or_else(missing)?.source();
        let entry: Arc<ColumnEntry> = Arc::new(entry.clone());
        ColumnStream::new(source, entry, 0)
    }

    fn spool(&self) -> SpoolWriter {
        SpoolWriter::new(self.options.fs.clone(), &self.options.temp, self.options.memory_bytes / 8)
    }

    fn schedule(&self) -> Result<Option<schedule::StoredSchedule>> {
        if !self.options.settings.schedule {
            return Ok(None);
        }
        let mut scan = |each: &mut dyn FnMut(u64, u32)| {
            let mut stream = self.stream(NEXT_DUE)?;
            let (mut row, mut due) = (0, Vec::new());
            while row < self.rows {
                let n = (self.rows - row).min(STEP);
                due.clear();
                stream.next(n as usize, &mut due)?;
                (row..).zip(&due).filter(|(_, due)| **due != 0).for_each(|(row, due)| each(row, *due as u32));
                row += n;
            }
            Ok(())
        };
        let memory = self.options.memory_bytes / 4;
        schedule::build(&mut scan, self.rows, &self.options.settings, memory, self.spool())
    }

    fn filter(&self) -> Result<Option<Vec<u8>>> {
        let mut scan = |each: &mut dyn FnMut(UrlKey)| {
            let (mut hosts, mut paths) = (self.stream(HOST_KEY)?, self.stream(PATH_KEY)?);
            let (mut row, mut host, mut path) = (0, Vec::new(), Vec::new());
            while row < self.rows {
                let n = (self.rows - row).min(STEP);
                host.clear();
                path.clear();
                hosts.next(n as usize, &mut host)?;
                paths.next(n as usize, &mut path)?;
                host.iter().zip(&path).for_each(|(host, path)| each(UrlKey { host: *host, path: *path }));
                row += n;
            }
            Ok(())
        };
        Ok(match self.options.settings.filter {
            SeenFilter::None => None,
            SeenFilter::Bloom => {
                let mut bloom = Bloom::with_capacity(self.rows, 0.01);
                scan(&mut |key| bloom.add(key))?;
                Some(bloom.encode())
            }
            SeenFilter::Ribbon(r) => {
                let (memory, fs) = (self.options.memory_bytes / 2, &self.options.fs);
                Some(build_ribbon(&mut scan, self.rows, r, memory, fs, &self.options.temp)?.encode())
            }
        })
    }
}
