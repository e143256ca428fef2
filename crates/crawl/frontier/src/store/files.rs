//! Base and runs as they are read: by key, by host, never as a whole.

use crate::error::{Error, Result};
use crate::identity::UrlId;
use crate::policy::priority::Standing;
use crate::row::{Found, Row, Status, Texts};
use crate::seen::mark_of;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use trawl_io::Fs;
use trawl_io::read_at::FileReader;
use trawl_meguri::filter::Filter;
use trawl_meguri::schema::extension as ext;
use trawl_meguri::{MeguriFile, ReadSettings, Scan};

/// One file.
pub(crate) struct StoredFile {
    pub name: String,
    pub file: MeguriFile,
    /// Which keys are certainly not in it; read only where the set of known URLs does not fit in memory.
    filter: Option<Filter>,
}

impl StoredFile {
    pub fn open(fs: &Arc<dyn Fs>, dir: &Path, name: &str, with_filter: bool) -> Result<Self> {
        let source = FileReader::open_in(&**fs, &dir.join(name))?;
        let settings = ReadSettings { temp: dir.to_owned(), fs: fs.clone(), ..ReadSettings::default() };
        let file = MeguriFile::open(Arc::new(source), settings)?;
        let filter = if with_filter { file.filter()? } else { None };
        Ok(StoredFile { name: name.to_owned(), file, filter })
    }

    pub fn rows(&self) -> u64 {
        self.file.header().url_count
    }
}

/// Base and runs, the oldest first.
#[derive(Default)]
pub(crate) struct Files {
    pub base: Option<StoredFile>,
    pub runs: Vec<StoredFile>,
}

impl Files {
    /// All of them, the newest first.
    fn newest_first(&self) -> impl Iterator<Item = &StoredFile> {
        self.runs.iter().rev().chain(&self.base)
    }

    /// Scans of all files, the newest first.
    pub fn scans(&self) -> Vec<RowScan> {
        self.newest_first().map(|stored| RowScan(stored.file.scan(&COLUMNS))).collect()
    }

    /// The rows of keys, which must ascend.
    pub fn rows(&self, ids: &[UrlId]) -> Result<Vec<Option<Row>>> {
        let mut rows = vec![None; ids.len()];
        for mut scan in self.scans() {
            for (id, row) in ids.iter().zip(&mut rows).filter(|(_, row)| row.is_none()) {
                if let Some(number) = scan.0.find(id.key())? {
                    *row = Some(scan.row(*id, number)?);
                }
            }
        }
        Ok(rows)
    }

    /// What the set of known URLs would have of keys that a file has; keys ascend, each with its place in `known`.
    pub fn marks(&self, keys: &[(UrlId, usize)], max_hops: u32, known: &mut [Option<u8>]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        for stored in self.newest_first() {
            let mut scan = stored.file.scan(&MARK);
            for (id, at) in keys {
                let may = stored.filter.as_ref().is_none_or(|filter| filter.may_contain(id.key()));
                if may
                    && known[*at].is_none()
                    && let Some(number) = scan.find(id.key())?
                {
                    known[*at] = Some(mark(&mut scan, number, max_hops)?);
                }
            }
        }
        Ok(())
    }
}

const STATUS: u16 = 2;
const DEPTH: u16 = 4;
const DISCOVERY_SOURCE: u16 = 5;
/// The columns of [`mark`].
pub(crate) const MARK: [u16; 4] = [DEPTH, ext::HOPS, DISCOVERY_SOURCE, STATUS];

/// What the set of known URLs has of a row. The columns are one or two bytes wide.
pub(crate) fn mark(scan: &mut Scan, number: u64, max_hops: u32) -> Result<u8> {
    let (found, status) = (Found::of(scan.value(2, number)? as u8), Status::of(scan.value(3, number)? as u8));
    Ok(mark_of(scan.value(0, number)? as u32, scan.value(1, number)? as u32, found, status, max_hops))
}

/// The columns of a row, in the order that [`RowScan`] asks for them.
const COLUMNS: [u16; 18] = [
    STATUS,
    DEPTH,
    DISCOVERY_SOURCE,
    6,  // url_ref
    7,  // first_seen
    8,  // last_crawled
    12, // crawl_count
    19, // http_status
    21, // retry_count: strikes
    22, // error_count
    ext::DUE_MS,
    ext::HOPS,
    ext::ARRIVAL,
    ext::NOTE,
    ext::ROBOTS_UNTIL,
    ext::BUCKET,
    ext::VIA,
    ext::META_JSON,
];
const URL_REF: usize = 3;
const CRAWLS: usize = 6;
const ERRORS: usize = 9;
const DUE_MS: usize = 10;
const ROBOTS_UNTIL: usize = 14;
const VIA: usize = 16;
const META_JSON: usize = 17;

/// Reads rows of one file.
pub(crate) struct RowScan(Scan);

impl RowScan {
    pub fn rows_of_host(&mut self, key: u64) -> Result<Range<u64>> {
        Ok(self.0.rows_of_host(key)?)
    }

    pub fn path(&mut self, number: u64) -> Result<u64> {
        Ok(self.0.path(number)?)
    }

    pub fn status(&mut self, number: u64) -> Result<Status> {
        Ok(Status::of(self.0.value(0, number)? as u8))
    }

    pub fn is_robots(&mut self, number: u64) -> Result<bool> {
        Ok(self.0.value(ROBOTS_UNTIL, number)? != 0)
    }

    /// The URL of a row.
    pub fn url(&mut self, number: u64) -> Result<String> {
        let reference = self.0.value(URL_REF, number)?;
        let url = self.0.text(reference)?;
        self.utf8(&url, number)
    }

    fn utf8(&self, bytes: &[u8], number: u64) -> Result<String> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(e) => Err(Error::Corrupt {
                path: self.0.path_of_file().to_owned(),
                expected: "texts in UTF-8",
                found: format!("{e} in row {number}"),
            }),
        }
    }

    fn time(&mut self, column: usize, number: u64) -> Result<i64> {
        let ms = self.0.value(column, number)?;
        i64::try_from(ms).map_err(|_| Error::Corrupt {
            path: self.0.path_of_file().to_owned(),
            expected: "a time in milliseconds",
            found: format!("{ms} in row {number}"),
        })
    }

    /// Whether a row with this status was handed out since it was offered or became due: see [`Row::is_admitted`].
    pub fn is_tried(&mut self, number: u64, status: Status) -> Result<bool> {
        Ok(status != Status::Due && (self.0.value(CRAWLS, number)? != 0 || self.0.value(ERRORS, number)? != 0))
    }

    /// What the order of rows goes by: a refill looks at all rows of a host, and takes few.
    pub fn standing(&mut self, number: u64) -> Result<Standing> {
        let due_ms = self.time(DUE_MS, number)?;
        let mut v = |column: usize| self.0.value(column, number);
        Ok(Standing {
            status: Status::of(v(0)? as u8),
            due_ms,
            first_seen: v(4)? as u32,
            bucket: v(15)? as u8,
            depth: v(1)? as u16,
            arrival: v(12)?,
            found: Found::of(v(2)? as u8),
        })
    }

    /// A row without its texts.
    pub fn head(&mut self, id: UrlId, number: u64) -> Result<Row> {
        let (due_ms, robots_until) = (self.time(DUE_MS, number)?, self.time(ROBOTS_UNTIL, number)?);
        // The others are as wide as their columns.
        let mut v = |column: usize| self.0.value(column, number);
        Ok(Row {
            id,
            status: Status::of(v(0)? as u8),
            depth: v(1)? as u16,
            found: Found::of(v(2)? as u8),
            first_seen: v(4)? as u32,
            last_crawled: v(5)? as u32,
            crawls: v(6)? as u32,
            http_status: v(7)? as u16,
            strikes: v(8)? as u8,
            errors: v(9)? as u16,
            due_ms,
            hops: v(11)? as u16,
            arrival: v(12)?,
            note: v(13)?,
            robots_until,
            bucket: v(15)? as u8,
            texts: Texts::none(),
        })
    }

    /// A row with its texts.
    pub fn row(&mut self, id: UrlId, number: u64) -> Result<Row> {
        let mut row = self.head(id, number)?;
        let text = |scan: &mut Scan, column| -> Result<_> {
            let reference = scan.value(column, number)?;
            Ok(scan.text(reference)?)
        };
        let (url, via, meta) = (text(&mut self.0, URL_REF)?, text(&mut self.0, VIA)?, text(&mut self.0, META_JSON)?);
        let utf8 = |bytes: &[u8]| self.utf8(bytes, number);
        row.texts = Texts::new(&utf8(&url)?, &utf8(&via)?, &utf8(&meta)?);
        Ok(row)
    }
}
