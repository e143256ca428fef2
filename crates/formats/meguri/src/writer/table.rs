//! Pages of one table, gathered column by column.
//!
//! A file has all pages of a column together, but rows arrive one by one: each column has a spool of its own, and the
//! file is put together from the spools when all rows are in.

use super::keys::KEY_COLUMNS;
use crate::codec::Packer;
use crate::encoding::{Chooser, Encoding, Stored, encode_run};
use crate::error::{Error, Result};
use crate::footer::{ColumnEntry, PageEntry, Zone};
use crate::page::{Kind, PAGE_HEADER_LEN, PageHeader, frame};
use crate::schema::{ColumnDef, ColumnKind};
use crate::settings::Settings;
use std::sync::Arc;
use trawl_io::crc::{Crc32c, crc32c};
use trawl_io::{ReadAt, Spool, SpoolWriter};

/// From this level on size matters more than time.
const PATIENT: i32 = 10;

/// One column that is being written.
struct Column {
    def: ColumnDef,
    chooser: Chooser,
    spool: SpoolWriter,
    crc: Crc32c,
    entry: ColumnEntry,
    /// The value that all rows so far have.
    constant: Option<u64>,
}

/// A column that is complete: its entry counts offsets from the start of its own bytes.
pub(crate) struct FinishedColumn {
    pub entry: ColumnEntry,
    pub bytes: Spool,
}

/// The values of one column of one page.
pub(crate) enum PageValues<'a> {
    Numbers(&'a [u64]),
    /// RAW bytes of 16-byte values.
    Bytes(&'a [u8]),
}

/// Writes one table.
pub(crate) struct TableWriter {
    settings: Settings,
    packer: Packer,
    columns: Vec<Column>,
    rows: u64,
}

impl TableWriter {
    pub fn new(defs: &[ColumnDef], settings: &Settings, spool: &mut dyn FnMut() -> SpoolWriter) -> Result<Self> {
        let columns = defs.iter().map(|def| {
            // Pages of keys hold one host or many: no page is like the one before.
            let steady = usize::from(def.id) >= KEY_COLUMNS;
            let chooser = match settings.reference {
                true => Chooser::Nominal(def.nominal),
                false => Chooser::best(def.has_zone(), steady, settings.level >= PATIENT),
            };
            let entry = ColumnEntry {
                id: u64::from(def.id),
                total_compressed: 0,
                total_uncompressed: 0,
                num_values: 0,
                width: def.width,
                codec: settings.codec as u8,
                crc: 0,
                zone: None,
                pages: Vec::new(),
            };
            Column { def: *def, chooser, spool: spool(), crc: Crc32c::new(), entry, constant: None }
        });
        let packer = Packer::new(settings.codec, settings.level, settings.reference)?;
        Ok(TableWriter { settings: *settings, packer, columns: columns.collect(), rows: 0 })
    }

    /// Rows written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes a page of `n` rows; `values` gives each column's, in the order of the definitions.
    pub fn page(
        &mut self,
        n: usize,
        mut values: impl FnMut(&ColumnDef, &mut Vec<u64>) -> Option<Vec<u8>>,
    ) -> Result<()> {
        let mut numbers = Vec::with_capacity(n);
        for column in &mut self.columns {
            numbers.clear();
            let bytes = values(&column.def, &mut numbers);
            let page = bytes.as_deref().map_or(PageValues::Numbers(&numbers), PageValues::Bytes);
            column.page(self.rows, n, page, &mut self.packer)?;
        }
        self.rows += n as u64;
        Ok(())
    }

    /// Ends the table. One without rows has one empty page a column.
    pub fn finish(mut self) -> Result<Vec<FinishedColumn>> {
        if self.rows == 0 {
            self.page(0, |def, _| (def.kind == ColumnKind::Bytes).then(Vec::new))?;
        }
        let (reference, packer) = (self.settings.reference, &mut self.packer);
        self.columns.into_iter().map(|column| column.finish(reference, packer)).collect()
    }
}

impl Column {
    fn page(&mut self, first_row: u64, n: usize, values: PageValues<'_>, packer: &mut Packer) -> Result<()> {
        let (stored, zone) = match values {
            PageValues::Numbers(values) => {
                let (min, max) = values.iter().fold((u64::MAX, 0), |(min, max), &v| (min.min(v), max.max(v)));
                let same = (min == max && (first_row == 0 || self.constant == Some(min))).then_some(min);
                self.constant = same;
                let zone = (self.def.has_zone() && n > 0).then_some((min, max));
                (self.chooser.page(values, self.def.width, packer)?, zone)
            }
            PageValues::Bytes(bytes) => {
                let uncompressed_len = bytes.len();
                let raw = matches!(self.chooser, Chooser::Nominal(_));
                let (codec, bytes) =
                    if raw { packer.pack(bytes.to_vec())? } else { packer.pack_or_keep(bytes.to_vec())? };
                let stored = Stored { encoding: Encoding::Raw, codec, base: 0, uncompressed_len, bytes };
                (stored, None)
            }
        };
        let header = PageHeader {
            kind: Kind::Data as u8,
            encoding: stored.encoding as u8,
            codec: stored.codec as u8,
            num_values: u32::try_from(n).map_err(|_| too_many())?,
            uncompressed_size: u32::try_from(stored.uncompressed_len).map_err(|_| too_many())?,
            compressed_size: u32::try_from(stored.bytes.len()).map_err(|_| too_many())?,
            first_row: u32::try_from(first_row).map_err(|_| too_many())?,
            base: stored.base,
            crc: crc32c(&stored.bytes),
        };
        self.put(&header, &stored.bytes, zone)
    }

    fn put(&mut self, header: &PageHeader, stored: &[u8], zone: Zone) -> Result<()> {
        let head = header.encode();
        for part in [&head[..], stored] {
            self.crc.update(part);
            self.spool.put(part)?;
        }
        let entry = &mut self.entry;
        let byte_length = (PAGE_HEADER_LEN + stored.len()) as u64;
        entry.pages.push(PageEntry {
            first_row: u64::from(header.first_row),
            num_values: u64::from(header.num_values),
            offset: entry.pages.last().map_or(0, |p| p.offset + p.byte_length),
            byte_length,
            encoding: header.encoding,
            zone,
        });
        entry.total_compressed += stored.len() as u64;
        entry.num_values += u64::from(header.num_values);
        entry.total_uncompressed += u64::from(header.num_values) * u64::from(self.def.width);
        entry.zone = match (entry.zone, zone) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (a, b) => a.or(b),
        };
        Ok(())
    }

    fn finish(mut self, reference: bool, packer: &mut Packer) -> Result<FinishedColumn> {
        // Most columns of most files hold one value: one page then says it all, whatever the number of rows. The key
        // columns stay in pages, by which readers find hosts.
        if let (false, Some(value), 2..) = (reference || self.def.id < 2, self.constant, self.entry.pages.len()) {
            return self.constant_column(value, packer);
        }
        self.entry.crc = self.crc.value();
        Ok(FinishedColumn { entry: self.entry, bytes: self.spool.finish()? })
    }

    fn constant_column(self, value: u64, packer: &mut Packer) -> Result<FinishedColumn> {
        let mut entry = self.entry;
        let mut payload = Vec::new();
        encode_run(value, entry.num_values, self.def.width, &mut payload);
        let uncompressed = payload.len() as u64;
        let (codec, stored) = packer.pack_or_keep(payload)?;
        let rows = u32::try_from(entry.num_values).map_err(|_| too_many())?;
        let framed = frame(Kind::Data, codec, rows, 0, uncompressed, &stored)?;
        let encoding = Encoding::Rle as u8;
        let mut bytes = PageHeader { encoding, ..framed }.encode().to_vec();
        bytes.extend_from_slice(&stored);
        let byte_length = bytes.len() as u64;
        let num_values = entry.num_values;
        entry.pages = vec![PageEntry { first_row: 0, num_values, offset: 0, byte_length, encoding, zone: entry.zone }];
        entry.total_compressed = stored.len() as u64;
        entry.crc = crc32c(&bytes);
        Ok(FinishedColumn { entry, bytes: Spool::from_bytes(bytes.into()) })
    }
}

fn too_many() -> Error {
    Error::Refused("a file holds at most 2^32 - 1 rows a table".into())
}

impl FinishedColumn {
    /// The column as a reader sees it: its bytes begin at 0.
    pub fn source(&self) -> Arc<dyn ReadAt> {
        Arc::new(self.bytes.clone())
    }
}
