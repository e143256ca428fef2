//! What is in a file, from its header and footer alone: two reads, whatever its size.

use crate::encoding::Encoding;
use crate::footer::{ColumnEntry, RegionId, Stats};
use crate::header::Header;
use crate::reader::MeguriFile;
use crate::schema::{Table, extension};
use crate::settings::SETTINGS_KEY;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// One region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RegionFacts {
    /// Its name, or its number if it is unknown.
    pub name: String,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ColumnFacts {
    /// Its name, or its number if it is unknown.
    pub name: String,
    /// Its number.
    pub id: u64,
    /// Bytes of a value.
    pub width: u8,
    /// Pages.
    pub pages: u64,
    /// How its pages are encoded, and how many of them so.
    pub encodings: BTreeMap<String, u64>,
    /// Stored bytes, page headers included.
    pub bytes: u64,
    /// Smallest value, where the footer says so.
    pub min: Option<u64>,
    /// Largest value, where the footer says so.
    pub max: Option<u64>,
}

/// What header and footer say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Always `meguri`.
    pub format: &'static str,
    /// Bytes of the file.
    pub bytes: u64,
    /// The header.
    #[serde(flatten)]
    pub header: Header,
    /// Names of the flags.
    pub flag_names: Vec<&'static str>,
    /// Bytes of the footer and trailer.
    pub footer_bytes: u64,
    /// How keys were made.
    pub key_policy: &'static str,
    /// Totals.
    pub stats: Stats,
    /// Whole file over URLs.
    pub bytes_per_url: f64,
    /// The regions.
    pub regions: Vec<RegionFacts>,
    /// Columns of the URL table.
    pub url_columns: Vec<ColumnFacts>,
    /// Columns of the host table.
    pub host_columns: Vec<ColumnFacts>,
    /// Metadata, what is not text with replacements.
    pub metadata: BTreeMap<String, String>,
}

impl Inspection {
    /// Of an open file; reads nothing more.
    pub fn of(file: &MeguriFile) -> Inspection {
        let (header, footer) = (*file.header(), file.footer());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let region =
            |r: &crate::footer::Region| RegionFacts { name: region_name(r.id), offset: r.offset, length: r.length };
        Inspection {
            format: "meguri",
            bytes: file.len(),
            header,
            flag_names: header.flag_names(),
            footer_bytes: file.len().saturating_sub(header.footer_offset),
            key_policy: file.key_policy().name(),
            stats: footer.stats,
            bytes_per_url: if header.url_count == 0 { 0.0 } else { file.len() as f64 / header.url_count as f64 },
            regions: footer.regions.iter().map(region).collect(),
            url_columns: footer.urls.iter().map(|c| column_facts(c, Table::Urls)).collect(),
            host_columns: footer.hosts.iter().map(|c| column_facts(c, Table::Hosts)).collect(),
            metadata: footer.metadata.iter().map(|(k, v)| (text(k), text(v))).collect(),
        }
    }
}

fn region_name(id: u8) -> String {
    use RegionId::{Arena, Hosts, Schedule, Seen, Urls};
    let names = [(Urls, "urls"), (Hosts, "hosts"), (Schedule, "schedule"), (Seen, "seen"), (Arena, "arena")];
    names.iter().find(|(known, _)| *known as u8 == id).map_or_else(|| id.to_string(), |(_, name)| (*name).to_owned())
}

fn column_facts(column: &ColumnEntry, table: Table) -> ColumnFacts {
    let id = u16::try_from(column.id).ok();
    let fixed = || table.columns().iter().find(|def| Some(def.id) == id).map(|def| def.name);
    let name = fixed().or_else(|| extension::name(id?));
    let mut encodings = BTreeMap::new();
    for page in &column.pages {
        let name = Encoding::from_id(page.encoding)
            .map_or_else(|| page.encoding.to_string(), |e| format!("{e:?}").to_lowercase());
        *encodings.entry(name).or_insert(0) += 1;
    }
    let range = column.range();
    ColumnFacts {
        name: name.map_or_else(|| column.id.to_string(), str::to_owned),
        id: column.id,
        width: column.width,
        pages: column.pages.len() as u64,
        encodings,
        bytes: range.end.saturating_sub(range.start),
        min: column.zone.map(|zone| zone.0),
        max: column.zone.map(|zone| zone.1),
    }
}

/// For people: what fits a screen.
impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let h = &self.header;
        writeln!(f, "partition    {} (created at hour {})", h.partition_id, h.created)?;
        writeln!(f, "urls         {}", h.url_count)?;
        writeln!(f, "hosts        {}", h.host_count)?;
        writeln!(f, "host keys    {:016x} to {:016x}", h.hostkey_lo, h.hostkey_hi)?;
        writeln!(f, "key policy   {}", self.key_policy)?;
        writeln!(f, "flags        {}", self.flag_names.join("|"))?;
        writeln!(f, "bytes        {} ({:.2} a URL)", self.bytes, self.bytes_per_url)?;
        match self.stats.due_min {
            0 => writeln!(f, "due          nothing")?,
            min => {
                writeln!(f, "due          hours {min} to {}, {} rows", self.stats.due_max, self.stats.scheduled_count)?
            }
        }
        for region in &self.regions {
            writeln!(f, "region       {:<9} {:>12} bytes at {}", region.name, region.length, region.offset)?;
        }
        writeln!(f, "footer       {:>22} bytes at {}", self.footer_bytes, h.footer_offset)?;
        for (table, columns) in [("url", &self.url_columns), ("host", &self.host_columns)] {
            for column in columns {
                let encodings: Vec<_> = column.encodings.iter().map(|(name, n)| format!("{name} {n}")).collect();
                write!(f, "{table:<5} {:>3} {:<18} {:>12} bytes", column.id, column.name, column.bytes)?;
                write!(f, "  {}", encodings.join(", "))?;
                match (column.min, column.max) {
                    (Some(min), Some(max)) => writeln!(f, "  {min} to {max}")?,
                    _ => writeln!(f)?,
                }
            }
        }
        for (key, value) in self.metadata.iter().filter(|(key, _)| key.as_bytes() != SETTINGS_KEY) {
            writeln!(f, "metadata     {key}: {value}")?;
        }
        if let Some(settings) = self.metadata.get("trawl") {
            writeln!(f, "written with {settings}")?;
        }
        Ok(())
    }
}
