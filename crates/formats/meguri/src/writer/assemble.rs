//! Putting a file together from its finished parts, front to back.
//!
//! ```text
//! header | URL table | host table | schedule index | seen filter | arena | footer | trailer
//! ```

use super::table::FinishedColumn;
use crate::arena::StoredArena;
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::footer::{ColumnEntry, Footer, Metadata, Region, RegionId, Stats};
use crate::header::{FLAG_BLOB, FLAG_RIBBON, FLAG_SCHEDULE, FLAG_SEENSET, FLAG_SORTED, HEADER_LEN, Header};
use crate::page::{Kind, PAGE_HEADER_LEN, PageHeader, frame};
use crate::schedule::StoredSchedule;
use crate::settings::{SETTINGS_KEY, Settings};
use std::io::{Read, Write};
use std::sync::Arc;
use trawl_io::crc::{Crc32c, crc32c};
use trawl_io::{Spool, limits::Claim};

/// What a partition is called and owns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Which partition of the fleet.
    pub partition_id: u32,
    /// Lowest and highest host key owned, both included; `None`: those of the first and last host, or all of them if
    /// there is no host.
    pub range: Option<(u64, u64)>,
    /// Hours since 1970.
    pub created: u32,
    /// Texts for the footer; `trawl` is taken.
    pub metadata: Metadata,
}

/// The parts of a file.
pub(crate) struct Parts {
    pub identity: Identity,
    pub settings: Settings,
    pub url_count: u64,
    pub host_count: u64,
    pub urls: Vec<FinishedColumn>,
    pub hosts: Vec<FinishedColumn>,
    pub schedule: Option<StoredSchedule>,
    pub filter: Option<Vec<u8>>,
    pub arena: StoredArena,
    /// Smallest `next_due` that is not 0, and largest.
    pub due: (u32, u32),
    pub scheduled: u64,
}

/// What a finished file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Written {
    /// Rows of the URL table.
    pub urls: u64,
    /// Rows of the host table.
    pub hosts: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// CRC-32C of the footer, which a manifest states.
    pub footer_crc: u32,
}

/// A region of one page.
struct PageRegion {
    id: RegionId,
    header: PageHeader,
    payload: Spool,
}

impl Parts {
    /// Writes the file.
    pub fn write(mut self, out: &mut dyn Write) -> Result<Written> {
        let regions = self.page_regions()?;
        let mut at = HEADER_LEN as u64;
        let urls = place(&self.urls, &mut at);
        let hosts_at = at;
        let hosts = place(&self.hosts, &mut at);
        let footer_offset = regions.iter().fold(at, |at, r| at + region_len(r));
        let (lo, hi) = self.identity.range.unwrap_or_else(|| host_range(&hosts));
        let header = Header {
            partition_id: self.identity.partition_id,
            flags: self.flags(),
            default_codec: self.settings.codec as u8,
            hostkey_lo: lo,
            hostkey_hi: hi,
            url_count: self.url_count,
            host_count: self.host_count,
            footer_offset,
            created: self.identity.created,
        };
        let mut out = Out { out, written: 0, crc: Crc32c::new() };
        out.put(&header.encode())?;
        let mut directory = Vec::new();
        for (id, columns, start) in
            [(RegionId::Urls, &self.urls, HEADER_LEN as u64), (RegionId::Hosts, &self.hosts, hosts_at)]
        {
            out.crc = Crc32c::new();
            columns.iter().try_for_each(|column| out.copy(&column.bytes))?;
            directory.push(Region { id: id as u8, offset: start, length: out.written - start, crc: out.crc.value() });
        }
        for region in &regions {
            let start = out.written;
            out.crc = Crc32c::new();
            out.put(&region.header.encode())?;
            out.copy(&region.payload)?;
            directory.push(Region {
                id: region.id as u8,
                offset: start,
                length: out.written - start,
                crc: out.crc.value(),
            });
        }
        let sum = |of: fn(&ColumnEntry) -> u64| urls.iter().chain(&hosts).map(|c| of(c)).sum();
        let stats = Stats {
            url_count: self.url_count,
            host_count: self.host_count,
            hostkey_lo: lo,
            hostkey_hi: hi,
            // The reference never counts them.
            scheduled_count: if self.settings.reference { 0 } else { self.scheduled },
            due_min: self.due.0,
            due_max: self.due.1,
            total_compressed: sum(|c| c.total_compressed),
            total_uncompressed: sum(|c| c.total_uncompressed),
            bytes_per_url: if self.url_count == 0 { 0.0 } else { footer_offset as f32 / self.url_count as f32 },
        };
        if !self.settings.reference {
            let text = self.settings.to_metadata(self.arena.frames);
            self.identity.metadata.insert(SETTINGS_KEY.to_vec(), text);
        }
        let metadata = std::mem::take(&mut self.identity.metadata);
        let footer = Footer { regions: directory, urls, hosts, stats, metadata, skipped: Vec::new() }.encode();
        if u32::try_from(footer.len()).is_err() {
            return Err(Error::Refused("a footer of 4 GiB: write fewer or larger pages".into()));
        }
        out.put(&footer)?;
        let body = footer.get(..footer.len().saturating_sub(crate::footer::TRAILER_LEN)).unwrap_or_default();
        Ok(Written { urls: self.url_count, hosts: self.host_count, bytes: out.written, footer_crc: crc32c(body) })
    }

    fn flags(&self) -> u16 {
        let set = |yes: bool, flag| if yes { flag } else { 0 };
        let ribbon = self.filter.as_ref().is_some_and(|blob| blob.get(1) == Some(&1)) && !self.settings.reference;
        FLAG_SORTED
            | set(self.schedule.is_some(), FLAG_SCHEDULE)
            | set(self.filter.is_some(), FLAG_SEENSET)
            | set(self.has_arena(), FLAG_BLOB)
            | set(ribbon, FLAG_RIBBON)
    }

    /// The reference leaves out an arena without bytes; here it is always present, as the format's page promises.
    fn has_arena(&self) -> bool {
        self.arena.len > 0 || !self.settings.reference
    }

    fn page_regions(&mut self) -> Result<Vec<PageRegion>> {
        let mut regions = Vec::new();
        if let Some(schedule) = &self.schedule {
            let StoredSchedule { codec, base, scheduled, uncompressed, payload } = schedule;
            let header =
                stream_frame(Kind::Schedule, *codec, *scheduled as u32, u64::from(*base), *uncompressed, payload)?;
            regions.push(PageRegion { id: RegionId::Schedule, header, payload: payload.clone() });
        }
        if let Some(blob) = &self.filter {
            let mut packer =
                crate::codec::Packer::new(self.settings.codec, self.settings.level, self.settings.reference)?;
            let uncompressed = blob.len() as u64;
            let pack = blob.clone();
            let (codec, stored) =
                if self.settings.reference { packer.pack(pack)? } else { packer.pack_or_keep(pack)? };
            let header = frame(Kind::Filter, codec, self.url_count as u32, 0, uncompressed, &stored)?;
            regions.push(PageRegion { id: RegionId::Seen, header, payload: Spool::from_bytes(stored.into()) });
        }
        let arena = &self.arena;
        if self.has_arena() {
            let header = stream_frame(Kind::Blob, arena.codec, arena.len as u32, 0, arena.len, &arena.payload)?;
            regions.push(PageRegion { id: RegionId::Arena, header, payload: arena.payload.clone() });
        }
        Ok(regions)
    }
}

/// A page header of a payload that may not fit in memory.
fn stream_frame(
    kind: Kind,
    codec: Codec,
    num_values: u32,
    base: u64,
    uncompressed: u64,
    stored: &Spool,
) -> Result<PageHeader> {
    let limit = u64::from(u32::MAX);
    let claim = Claim { path: std::path::Path::new("(writer)"), offset: 0, what: "a region's page" };
    claim.check(stored.len().max(uncompressed), limit)?;
    let crc = crate::codec::crc_of_range(stored, 0..stored.len())?;
    let header = frame(kind, codec, num_values, base, uncompressed, &[])?;
    Ok(PageHeader { compressed_size: stored.len() as u32, crc, ..header })
}

fn region_len(region: &PageRegion) -> u64 {
    PAGE_HEADER_LEN as u64 + region.payload.len()
}

/// The directory of columns that are laid one after another from `at` on.
fn place(columns: &[FinishedColumn], at: &mut u64) -> Vec<Arc<ColumnEntry>> {
    let entries = columns.iter().map(|column| {
        let mut entry = column.entry.clone();
        entry.pages.iter_mut().for_each(|page| page.offset += *at);
        *at += column.bytes.len();
        Arc::new(entry)
    });
    entries.collect()
}

fn host_range(hosts: &[Arc<ColumnEntry>]) -> (u64, u64) {
    hosts.first().and_then(|keys| keys.zone).unwrap_or((0, u64::MAX))
}

/// Counts and checksums what passes.
struct Out<'a> {
    out: &'a mut dyn Write,
    written: u64,
    crc: Crc32c,
}

impl Out<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.out
            .write_all(bytes)
            .map_err(|e| trawl_io::Error::io_at(trawl_io::Op::Write, "(writer)", self.written, e))?;
        self.crc.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn copy(&mut self, spool: &Spool) -> Result<()> {
        if let Some(bytes) = spool.as_bytes() {
            return self.put(bytes);
        }
        let mut reader = spool.reader();
        let mut buf = vec![0; 256 * 1024];
        loop {
            let n = reader.read(&mut buf).map_err(|e| trawl_io::Error::io(trawl_io::Op::Read, "(spool)", e))?;
            if n == 0 {
                return Ok(());
            }
            self.put(buf.get(..n).unwrap_or_default())?;
        }
    }
}
