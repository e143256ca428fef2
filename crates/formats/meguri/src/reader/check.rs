//! Whether header and footer fit each other and the file: all that can be said without reading a page.

use crate::footer::{ColumnEntry, Footer, Region, RegionId};
use crate::header::{HEADER_LEN, Header};
use crate::page::PAGE_HEADER_LEN;
use crate::schema::{ColumnDef, ColumnKind, Table};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Something wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub offset: u64,
    pub expected: &'static str,
    pub found: String,
}

/// Reports everything that does not fit.
pub(crate) fn structure(header: &Header, footer: &Footer, file_len: u64, on_fault: &mut dyn FnMut(Fault)) {
    let at = header.footer_offset;
    let mut fault = |offset, expected, found: String| on_fault(Fault { offset, expected, found });
    let most = super::most_rows(file_len);
    for (what, rows) in [
        ("URL rows that the file could hold", header.url_count),
        ("host rows that the file could hold", header.host_count),
    ] {
        if rows > most {
            fault(32, what, format!("{rows} in {file_len} bytes"));
        }
    }
    if header.hostkey_lo > header.hostkey_hi {
        fault(
            16,
            "a lowest host key below the highest",
            format!("{:x} and {:x}", header.hostkey_lo, header.hostkey_hi),
        );
    }
    let stats = &footer.stats;
    if (stats.url_count, stats.host_count) != (header.url_count, header.host_count) {
        fault(at, "the rows of the header in the stats", format!("{} and {}", stats.url_count, stats.host_count));
    }
    regions(&footer.regions, header, &mut fault);
    for (table, id, rows) in
        [(Table::Urls, RegionId::Urls, header.url_count), (Table::Hosts, RegionId::Hosts, header.host_count)]
    {
        let inside = match footer.region(id) {
            Some(region) => region.range(),
            None => {
                fault(at, "a region for each table", format!("none for the {table:?}").to_lowercase());
                continue;
            }
        };
        columns(footer.columns(table), table, &inside, rows, at, &mut fault);
    }
}

type OnFault<'a> = dyn FnMut(u64, &'static str, String) + 'a;

fn regions(regions: &[Region], header: &Header, fault: &mut OnFault<'_>) {
    let inside = HEADER_LEN as u64..header.footer_offset;
    let mut end = inside.start;
    let mut last = None;
    for region in regions {
        let range = region.range();
        if range.start < inside.start || range.end > inside.end {
            fault(
                header.footer_offset,
                "regions between header and footer",
                format!("region {} at {range:?}", region.id),
            );
        } else if range.start < end {
            fault(
                header.footer_offset,
                "regions that do not overlap",
                format!("region {} at {}", region.id, range.start),
            );
        }
        if last.is_some_and(|last| region.id <= last) {
            fault(header.footer_offset, "regions in the order of their ids", format!("region {}", region.id));
        }
        last = Some(region.id);
        end = end.max(range.end);
    }
}

fn columns(
    columns: &[Arc<ColumnEntry>],
    table: Table,
    inside: &Range<u64>,
    rows: u64,
    at: u64,
    fault: &mut OnFault<'_>,
) {
    for def in table.columns() {
        let entries = columns.iter().filter(|c| c.id == u64::from(def.id)).count();
        if entries != 1 {
            fault(at, "each column once", format!("{} {entries} times", def.name));
        }
    }
    let mut end = inside.start;
    let mut seen = HashSet::new();
    for column in columns {
        let def = table.columns().iter().find(|def| u64::from(def.id) == column.id);
        if !seen.insert(column.id) && def.is_none() {
            fault(at, "each column once", format!("column {} again", column.id));
        }
        let range = column.range();
        if range.start < end || range.end > inside.end {
            fault(at, "columns inside their region, in order", format!("column {} at {range:?}", column.id));
        }
        end = end.max(range.end);
        one_column(column, def, rows, at, fault);
    }
}

fn one_column(column: &ColumnEntry, def: Option<&ColumnDef>, rows: u64, at: u64, fault: &mut OnFault<'_>) {
    let id = column.id;
    if def.is_some_and(|def| def.width != column.width) {
        fault(at, "the width of the column", format!("column {id} of {} bytes", column.width));
    }
    if column.num_values != rows {
        fault(at, "as many values as rows", format!("column {id} with {} of {rows}", column.num_values));
    }
    let (mut row, mut stored) = (0u64, 0u64);
    for page in &column.pages {
        if page.first_row != row {
            fault(
                at,
                "pages that follow each other",
                format!("column {id}: row {} where {row} is next", page.first_row),
            );
        }
        row = page.rows().end;
        match page.byte_length.checked_sub(PAGE_HEADER_LEN as u64) {
            Some(payload) => stored = stored.saturating_add(payload),
            None => fault(at, "pages with a header", format!("column {id}: a page of {} bytes", page.byte_length)),
        }
        let no_zone = page.zone.is_none() && page.num_values > 0;
        if no_zone && def.is_some_and(ColumnDef::has_zone) {
            fault(at, "a zone map of numbers", format!("column {id}: none from row {} on", page.first_row));
        }
    }
    if row != column.num_values {
        fault(at, "pages that hold all rows", format!("column {id} with {row} of {}", column.num_values));
    }
    if stored != column.total_compressed {
        fault(at, "pages of the column's size", format!("column {id} with {stored} of {}", column.total_compressed));
    }
    let whole = column.num_values.saturating_mul(u64::from(column.width));
    if column.total_uncompressed != whole {
        fault(at, "rows times width", format!("column {id} with {} of {whole} bytes", column.total_uncompressed));
    }
    let union = column.pages.iter().filter_map(|p| p.zone).reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    if union != column.zone {
        fault(at, "the zone maps of all pages together", format!("column {id} with {:?}", column.zone));
    }
    if def.is_some_and(|def| def.kind == ColumnKind::Bytes) && column.zone.is_some() {
        fault(at, "no zone map of bytes", format!("column {id}"));
    }
}
