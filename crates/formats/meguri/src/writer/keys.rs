//! Pages of the key columns, cut at large hosts.
//!
//! Within a host path keys ascend: their differences need about log2(rows of the host) bits less than the keys, if the
//! page holds no other host. Such a page also answers for its host without the neighbours. Cuts cost 148 bytes each, so
//! only hosts of [`OWN_KEY_PAGES`] rows get them. Both key columns are cut at the same rows, as other readers expect.

use super::table::{FinishedColumn, TableWriter};
use crate::error::Result;
use crate::schema::ColumnDef;
use crate::settings::{OWN_KEY_PAGES, Settings};
use trawl_io::SpoolWriter;
use trawl_url::key::UrlKey;

/// The key columns are the first two.
pub(crate) const KEY_COLUMNS: usize = 2;

/// Takes keys in order and writes their pages.
pub(crate) struct KeyPages {
    table: TableWriter,
    page_rows: usize,
    hosts: Vec<u64>,
    paths: Vec<u64>,
    /// Where the last host of the page begins.
    run: usize,
}

impl KeyPages {
    pub fn new(defs: &[ColumnDef], settings: &Settings, spool: &mut dyn FnMut() -> SpoolWriter) -> Result<Self> {
        let table = TableWriter::new(defs, settings, spool)?;
        Ok(KeyPages { table, page_rows: settings.page_rows as usize, hosts: Vec::new(), paths: Vec::new(), run: 0 })
    }

    pub fn push(&mut self, key: UrlKey) -> Result<()> {
        if self.hosts.last().is_some_and(|host| *host != key.host) {
            if self.hosts.len() - self.run >= OWN_KEY_PAGES {
                self.end_page(self.hosts.len())?;
            }
            self.run = self.hosts.len();
        }
        self.hosts.push(key.host);
        self.paths.push(key.path);
        if self.run > 0 && self.hosts.len() - self.run >= OWN_KEY_PAGES {
            self.end_page(self.run)?;
        }
        if self.hosts.len() >= self.page_rows { self.end_page(self.hosts.len()) } else { Ok(()) }
    }

    fn end_page(&mut self, n: usize) -> Result<()> {
        let (hosts, paths) = (self.hosts.get(..n).unwrap_or_default(), self.paths.get(..n).unwrap_or_default());
        self.table.page(n, |def, out| {
            out.extend_from_slice(if def.id == 0 { hosts } else { paths });
            None
        })?;
        self.hosts.drain(..n);
        self.paths.drain(..n);
        self.run = 0;
        Ok(())
    }

    pub fn finish(mut self) -> Result<Vec<FinishedColumn>> {
        if !self.hosts.is_empty() {
            self.end_page(self.hosts.len())?;
        }
        self.table.finish()
    }
}
