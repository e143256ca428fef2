//! Checking a file: every checksum and every rule, all faults listed.
//!
//! Faults are broken rules: something cannot be read, or would be answered wrongly. Warnings are odd but harmless: rows of
//! one key, a host without a row, a reference to no text, a filter of an unknown kind. Damage in one place does not hide
//! damage in another: what depends on a damaged column is left out, the rest is checked.

use crate::Codec;
use crate::codec::crc_of_range;
use crate::diff::hex;
use crate::error::{Error, Result};
use crate::footer::{ColumnEntry, RegionId};
use crate::header::{FLAG_BLOB, FLAG_SCHEDULE, FLAG_SEENSET, FLAG_SORTED};
use crate::keys::{KEY_POLICY, KeyPolicy};
use crate::reader::column::{BytesStream, ColumnStream, open_page, page_values};
use crate::reader::{MeguriFile, ReadSettings, read_ends, structure};
use crate::schedule;
use crate::schema::{ColumnKind, Table, extension};
use crate::settings::{SeenFilter, Settings};
use crate::writer::HOST_COUNTS;
use crate::writer::hosts::RowCounter;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use trawl_io::{ReadAt, SpoolWriter};
use trawl_url::SuffixList;
use trawl_url::key::UrlKey;

/// The host table's column of URLs a host has.
const URL_COUNT: u64 = 13;
/// The URL table's column of URLs.
const URL_REF: u64 = 6;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A rule is broken.
    Fault,
    /// Odd, but harmless.
    Warning,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Which file.
    pub path: PathBuf,
    /// Where in it, as far as that is known.
    pub offset: Option<u64>,
    /// What should be there and what is.
    pub detail: String,
}

/// What was checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// URL rows that the header states.
    pub urls: u64,
    /// Host rows that the header states.
    pub hosts: u64,
    /// Pages decoded.
    pub pages: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Broken rules.
    pub faults: u64,
    /// Oddities.
    pub warnings: u64,
}

/// Checks a file. Only trouble in reading it is an error; everything that is wrong with it goes to `on_finding`.
/// `on_rows` gets the number of rows checked so far, now and then.
pub fn verify(
    src: Arc<dyn ReadAt>,
    settings: ReadSettings,
    on_finding: &mut dyn FnMut(Finding),
    on_rows: &mut dyn FnMut(u64),
) -> Result<Report> {
    let report = Report { bytes: src.len(), ..Report::default() };
    let mut check = Check { src: src.clone(), report, on_finding, on_rows };
    let Some((header, footer)) = check.attempt(read_ends(&*src, &settings))? else { return Ok(check.report) };
    (check.report.urls, check.report.hosts) = (header.url_count, header.host_count);
    let mut wrong = false;
    structure(&header, &footer, src.len(), &mut |fault| {
        wrong = true;
        check.tell(Severity::Fault, Some(fault.offset), format!("expected {}, found {}", fault.expected, fault.found));
    });
    for region in &footer.regions {
        if region.range().end <= src.len() {
            let crc = crc_of_range(&*src, region.range())?;
            let at = crate::error::At::new(src.name(), region.offset);
            check.attempt(at.check_crc("region", region.crc, crc))?;
        }
    }
    // A file whose parts do not fit each other cannot be walked over.
    if wrong {
        return Ok(check.report);
    }
    let Some(file) = check.attempt(MeguriFile::open(src, settings))? else { return Ok(check.report) };
    check.flags(&file);
    check.file(&file)?;
    Ok(check.report)
}

struct Check<'a> {
    src: Arc<dyn ReadAt>,
    report: Report,
    on_finding: &'a mut dyn FnMut(Finding),
    on_rows: &'a mut dyn FnMut(u64),
}

impl Check<'_> {
    fn tell(&mut self, severity: Severity, offset: Option<u64>, detail: String) {
        match severity {
            Severity::Fault => self.report.faults += 1,
            Severity::Warning => self.report.warnings += 1,
        }
        (self.on_finding)(Finding { severity, path: self.src.name().to_owned(), offset, detail });
    }

    fn fault(&mut self, offset: u64, detail: String) {
        self.tell(Severity::Fault, Some(offset), detail);
    }

    /// The value, or nothing after the damage was told. Trouble of the machine passes through.
    fn attempt<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_damage() => {
                self.tell(Severity::Fault, error.offset(), error.to_string());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What header and stats say of the regions and columns.
    fn flags(&mut self, file: &MeguriFile) {
        let (header, footer) = (file.header(), file.footer());
        let mut expected = FLAG_SORTED;
        for (id, flag) in
            [(RegionId::Schedule, FLAG_SCHEDULE), (RegionId::Seen, FLAG_SEENSET), (RegionId::Arena, FLAG_BLOB)]
        {
            expected |= if footer.region(id).is_some() { flag } else { 0 };
        }
        let known = FLAG_SORTED | FLAG_SCHEDULE | FLAG_SEENSET | FLAG_BLOB;
        if header.flags & known != expected {
            self.fault(12, format!("expected flags {expected:#x}, found {:#x}", header.flags & known));
        }
        let total = |of: fn(&ColumnEntry) -> u64| -> u64 {
            footer.urls.iter().chain(&footer.hosts).fold(0, |sum: u64, c| sum.saturating_add(of(c)))
        };
        let stats = &footer.stats;
        let found = (stats.total_compressed, stats.total_uncompressed);
        let sums = (total(|c| c.total_compressed), total(|c| c.total_uncompressed));
        if found != sums {
            self.fault(header.footer_offset, format!("expected totals {sums:?} in the stats, found {found:?}"));
        }
        if (stats.hostkey_lo, stats.hostkey_hi) != (header.hostkey_lo, header.hostkey_hi) {
            self.fault(header.footer_offset, "expected the header's host keys in the stats, found others".into());
        }
        for tag in &footer.skipped {
            self.tell(Severity::Warning, Some(header.footer_offset), format!("section {tag} is unknown"));
        }
    }

    fn file(&mut self, file: &MeguriFile) -> Result<()> {
        let mut damaged: Vec<(Table, u64)> = Vec::new();
        for table in [Table::Urls, Table::Hosts] {
            for column in file.footer().columns(table) {
                if !self.column(file, table, column)? {
                    damaged.push((table, column.id));
                }
            }
        }
        let whole = |table, id: u64| !damaged.contains(&(table, id));
        if whole(Table::Urls, 0) && whole(Table::Urls, 1) {
            let hosts = whole(Table::Hosts, 0);
            self.keys(file, hosts)?;
            if hosts && whole(Table::Hosts, URL_COUNT) {
                self.host_counts(file)?;
            }
        }
        if whole(Table::Urls, 10) {
            self.due(file)?;
        }
        let references = |table: Table| {
            let fixed = table.columns().iter().filter(|def| def.kind == ColumnKind::Reference).map(|def| def.id);
            let more = file.extensions(table).into_iter().map(|e| e.id).filter(|id| extension::is_reference(*id));
            fixed.chain(more).filter(|id| whole(table, u64::from(*id))).map(|id| (table, id)).collect::<Vec<_>>()
        };
        let columns = [references(Table::Urls), references(Table::Hosts)];
        let keys = whole(Table::Urls, 0) && whole(Table::Urls, 1);
        self.texts(file, &columns, keys)
    }

    /// Checks all pages of a column; `false` if one is damaged.
    fn column(&mut self, file: &MeguriFile, table: Table, column: &Arc<ColumnEntry>) -> Result<bool> {
        let before = self.report.faults;
        let range = column.range();
        let crc = crc_of_range(&*self.src, range.clone())?;
        let at = crate::error::At::new(file.path(), range.start);
        self.attempt(at.check_crc("column", column.crc, crc))?;
        let def = table.columns().iter().find(|def| u64::from(def.id) == column.id);
        if column.width == 16 {
            let rows = column.num_values;
            let mut values = Vec::new();
            let mut stream = BytesStream::new(self.src.clone(), column.clone());
            let mut left = rows;
            while left > 0 {
                let some = left.min(4096);
                values.clear();
                if self.attempt(stream.next(some as usize, &mut values))?.is_none() {
                    break;
                }
                left -= some;
            }
            self.report.pages += column.pages.len() as u64;
            return Ok(self.report.faults == before);
        }
        if def.is_none() && !matches!(column.width, 1 | 2 | 4 | 8) {
            self.tell(Severity::Warning, Some(range.start), format!("column {} is unknown", column.id));
            return Ok(true);
        }
        for entry in &column.pages {
            let src = &self.src;
            let values = open_page(src, entry, None).and_then(|page| page_values(&page, entry, column.width));
            self.attempt(values)?;
            self.report.pages += 1;
        }
        Ok(self.report.faults == before)
    }

    /// The order of the keys, the host table beside them, and the filter.
    fn keys(&mut self, file: &MeguriFile, check_hosts: bool) -> Result<()> {
        let rows = file.header().url_count;
        let filter = self.attempt_filter(file)?.flatten();
        let hosts = if check_hosts { file.read_column(Table::Hosts, 0)? } else { Vec::new() };
        if !hosts.is_sorted() {
            self.fault(file.header().footer_offset, "expected hosts in the order of their keys, found others".into());
        }
        let (mut host_keys, mut path_keys) = (file.stream(Table::Urls, 0, 0)?, file.stream(Table::Urls, 1, 0)?);
        let (mut host, mut path) = (Vec::new(), Vec::new());
        let (mut row, mut last): (u64, Option<UrlKey>) = (0, None);
        let (mut unsorted, mut equal, mut unseen, mut homeless, mut outside) = (0u64, 0u64, 0u64, 0u64, 0u64);
        let owned = file.header().hostkey_lo..=file.header().hostkey_hi;
        while row < rows {
            let n = (rows - row).min(8192);
            host.clear();
            path.clear();
            host_keys.next(n as usize, &mut host)?;
            path_keys.next(n as usize, &mut path)?;
            for key in host.iter().zip(&path).map(|(host, path)| UrlKey { host: *host, path: *path }) {
                unsorted += u64::from(last.is_some_and(|last| key < last));
                equal += u64::from(last == Some(key));
                unseen += u64::from(filter.as_ref().is_some_and(|filter| !filter.may_contain(key)));
                if last.is_none_or(|last| last.host != key.host) {
                    homeless += u64::from(check_hosts && hosts.binary_search(&key.host).is_err());
                    outside += u64::from(!owned.contains(&key.host));
                }
                last = Some(key);
            }
            row += n;
            (self.on_rows)(row);
        }
        let at = Some(file.header().footer_offset);
        for (count, severity, what) in [
            (unsorted, Severity::Fault, "rows have a key below the one before"),
            (unseen, Severity::Fault, "keys are not in the seen filter"),
            (equal, Severity::Warning, "rows have the key of the one before"),
            (homeless, Severity::Warning, "hosts of URLs have no row in the host table"),
            (outside, Severity::Warning, "hosts are outside the range that the header states"),
        ] {
            if count > 0 {
                self.tell(severity, at, format!("{count} {what}"));
            }
        }
        Ok(())
    }

    /// The number of URLs that each host states against its rows. Files of other writers may state anything, and a run of
    /// ours counts rows of the other runs.
    fn host_counts(&mut self, file: &MeguriFile) -> Result<()> {
        if file.footer().metadata.contains_key(HOST_COUNTS) {
            return Ok(());
        }
        let hosts = file.read_column(Table::Hosts, 0)?;
        let stated = file.read_column(Table::Hosts, URL_COUNT as u16)?;
        // Told by the check of keys.
        if !hosts.is_sorted() {
            return Ok(());
        }
        let mut rows = RowCounter::new(file.stream(Table::Urls, 0, 0)?, file.header().url_count);
        let (mut wrong, mut first) = (0u64, None);
        for (host, stated) in hosts.iter().zip(&stated) {
            let found = rows.rows_of(*host)?.min(u64::from(u32::MAX));
            if found != *stated {
                wrong += 1;
                first.get_or_insert((*host, *stated, found));
            }
        }
        if let Some((host, stated, found)) = first {
            let severity = if file.settings().is_some() { Severity::Fault } else { Severity::Warning };
            let detail = format!(
                "{wrong} hosts state another number of URLs than they have rows; the first, {host:016x}, states {stated} and has {found}"
            );
            self.tell(severity, Some(file.header().footer_offset), detail);
        }
        Ok(())
    }

    fn attempt_filter(&mut self, file: &MeguriFile) -> Result<Option<Option<crate::filter::Filter>>> {
        // A blob of an unknown kind is carried, not understood.
        let ours = file.settings().is_some_and(|s| s.filter != SeenFilter::None);
        match file.filter() {
            Err(error @ Error::File(trawl_io::Error::Corrupt { .. }))
                if !ours && error.to_string().contains("filter") =>
            {
                self.tell(Severity::Warning, error.offset(), format!("the seen filter is of no known kind: {error}"));
                Ok(None)
            }
            other => self.attempt(other),
        }
    }

    /// Due hours against stats and schedule index: the index of these rows has exactly one spelling.
    fn due(&mut self, file: &MeguriFile) -> Result<()> {
        let rows = file.header().url_count;
        let mut scan = |each: &mut dyn FnMut(u64, u32)| {
            let mut stream = file.stream(Table::Urls, 10, 0)?;
            let (mut row, mut values) = (0, Vec::new());
            while row < rows {
                let n = (rows - row).min(8192);
                values.clear();
                stream.next(n as usize, &mut values)?;
                (row..).zip(&values).filter(|(_, due)| **due != 0).for_each(|(row, due)| each(row, *due as u32));
                row += n;
            }
            Ok(())
        };
        let (mut min, mut max, mut count) = (u32::MAX, 0, 0);
        scan(&mut |_, due| (min, max, count) = (min.min(due), max.max(due), count + 1))?;
        let stats = file.footer().stats;
        let min = if count == 0 { 0 } else { min };
        if (stats.due_min, stats.due_max) != (min, max) || stats.scheduled_count != 0 && stats.scheduled_count != count
        {
            let found = (stats.due_min, stats.due_max, stats.scheduled_count);
            let detail = format!("expected due hours {min} to {max} of {count} rows in the stats, found {found:?}");
            self.fault(file.header().footer_offset, detail);
        }
        let opened = self.attempt(file.region_page(RegionId::Schedule, crate::page::Kind::Schedule))?.flatten();
        let Some(page) = opened else { return Ok(()) };
        let spool = SpoolWriter::new(file.settings.fs.clone(), &file.settings.temp, 16 << 20);
        let plain = Settings::reference(Codec::None);
        let expected = schedule::build(&mut scan, rows, &plain, 64 << 20, spool)?;
        let Some(mut found) = self.attempt(page.stream())? else { return Ok(()) };
        let mut expected = expected.map(|e| e.payload.reader());
        let (mut a, mut b) = (vec![0; 64 << 10], vec![0; 64 << 10]);
        loop {
            let n = match found.read(&mut a) {
                Ok(n) => n,
                Err(e) => {
                    self.fault(page.offset, format!("the schedule index cannot be unpacked: {e}"));
                    return Ok(());
                }
            };
            let part = b.get_mut(..n.max(1)).unwrap_or_default();
            let same = match &mut expected {
                Some(reader) if n > 0 => reader.read_exact(part).is_ok() && a.get(..n) == Some(&*part),
                Some(reader) => matches!(reader.read(part), Ok(0)),
                None => n == 0,
            };
            if !same {
                self.fault(page.offset, "expected the schedule index of these rows, found another".into());
                return Ok(());
            }
            if n == 0 {
                return Ok(());
            }
        }
    }

    /// References of both tables lead to texts, and those of URLs to the URL of their key, if the keys can be read.
    fn texts(&mut self, file: &MeguriFile, columns: &[Vec<(Table, u16)>], with_keys: bool) -> Result<()> {
        let Some(mut arena) = self.attempt(file.arena())? else { return Ok(()) };
        let mut keys = if with_keys { Some(KeysOfUrls::new(file)?) } else { None };
        for columns in columns {
            let mut dangling = 0u64;
            let Some((table, _)) = columns.first() else { continue };
            let mut streams = Vec::new();
            for (table, id) in columns {
                let is_url = (*table, u64::from(*id)) == (Table::Urls, URL_REF);
                streams.push((file.stream(*table, *id, 0)?, is_url));
            }
            let (mut row, rows, mut values) = (0, file.rows(*table), Vec::new());
            while row < rows {
                let n = (rows - row).min(1024);
                for (stream, is_url) in &mut streams {
                    values.clear();
                    stream.next(n as usize, &mut values)?;
                    let mut keys = keys.as_mut().filter(|_| *is_url);
                    keys.as_mut().map_or(Ok(()), |keys| keys.load(row, n as usize))?;
                    for (place, reference) in values.iter().enumerate() {
                        match self.attempt(arena.get(*reference))? {
                            Some(text) => {
                                dangling += u64::from(text == crate::arena::Text::Dangling);
                                keys.as_mut().into_iter().for_each(|keys| keys.compare(place, text.bytes()));
                            }
                            // The frame is damaged, and told of; so may the next be.
                            None => return Ok(()),
                        }
                    }
                }
                row += n;
            }
            if dangling > 0 {
                let detail = format!("{dangling} references of the {table:?} lead to no text").to_lowercase();
                self.tell(Severity::Warning, None, detail);
            }
        }
        if let Some((wrong, first)) = keys.and_then(|keys| keys.first.map(|first| (keys.wrong, first))) {
            let stated = KeyPolicy::stated(&file.footer().metadata).is_some();
            let severity = if stated { Severity::Fault } else { Severity::Warning };
            self.tell(
                severity,
                None,
                format!("{wrong} rows have a key that is not the one of their URL; the first is {first}"),
            );
        }
        Ok(())
    }
}

/// Walks over the keys beside the URLs that they must be made of.
struct KeysOfUrls {
    /// What the file says, or else those that the reference's files have; none that is known: nothing can be said.
    policies: Vec<KeyPolicy>,
    streams: [ColumnStream; 2],
    /// Of the rows from `row` on.
    hosts: Vec<u64>,
    paths: Vec<u64>,
    row: u64,
    wrong: u64,
    first: Option<String>,
}

impl KeysOfUrls {
    fn new(file: &MeguriFile) -> Result<Self> {
        let metadata = &file.footer().metadata;
        let policies = match metadata.contains_key(KEY_POLICY) {
            true => KeyPolicy::stated(metadata).into_iter().collect(),
            false => vec![KeyPolicy::Reference, KeyPolicy::Legacy],
        };
        let streams = [file.stream(Table::Urls, 0, 0)?, file.stream(Table::Urls, 1, 0)?];
        Ok(KeysOfUrls { policies, streams, hosts: Vec::new(), paths: Vec::new(), row: 0, wrong: 0, first: None })
    }

    /// Reads the next `n` keys, which are those from `row` on.
    fn load(&mut self, row: u64, n: usize) -> Result<()> {
        self.row = row;
        let [hosts, paths] = &mut self.streams;
        for (stream, values) in [(hosts, &mut self.hosts), (paths, &mut self.paths)] {
            values.clear();
            stream.next(n, values)?;
        }
        Ok(())
    }

    /// Compares a key with its URL; a row without one has nothing to compare.
    fn compare(&mut self, place: usize, url: &[u8]) {
        let (Some(host), Some(path)) = (self.hosts.get(place), self.paths.get(place)) else { return };
        let (key, psl) = (UrlKey { host: *host, path: *path }, SuffixList::builtin());
        let fits = self.policies.iter().any(|policy| policy.fits_bytes(key, url, psl));
        if fits || url.is_empty() || self.policies.is_empty() {
            return;
        }
        self.wrong += 1;
        let row = self.row + place as u64;
        self.first.get_or_insert_with(|| format!("row {row}, {:?} under {}", String::from_utf8_lossy(url), hex(key)));
    }
}
