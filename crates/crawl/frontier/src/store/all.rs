//! Every row once, in the order of keys: of rows with one key the newest.

use super::files::RowScan;
use crate::error::Result;
use crate::frontier::Frontier;
use crate::identity::UrlId;
use crate::row::Row;
use std::collections::HashSet;
use std::ops::Range;

/// All rows of base and runs as they were when this began. Files that are merged meanwhile stay readable.
pub(crate) struct AllRows {
    /// The newest first.
    scans: Vec<RowScan>,
    /// Keys and numbers of hosts, the first one last.
    hosts: Vec<(u64, u32)>,
    at: Option<At>,
}

/// How far the rows of a host were read.
struct At {
    host: (u64, u32),
    file: usize,
    rows: Range<u64>,
    /// Path keys of newer files.
    newer: HashSet<u64>,
}

/// Where a row is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub host: u32,
    pub id: UrlId,
    file: usize,
    number: u64,
}

impl AllRows {
    pub fn next_place(&mut self) -> Result<Option<Place>> {
        let files = self.scans.len();
        loop {
            let at = match &mut self.at {
                Some(at) => at,
                None => {
                    let Some(host) = self.hosts.pop() else { return Ok(None) };
                    let Some(first) = self.scans.first_mut() else { return Ok(None) };
                    let rows = first.rows_of_host(host.0)?;
                    self.at.insert(At { host, file: 0, rows, newer: HashSet::new() })
                }
            };
            for number in at.rows.by_ref() {
                let path = self.scans[at.file].path(number)?;
                // Nothing lies behind the oldest file, so nothing has to be remembered of it.
                let hidden = if at.file + 1 == files { at.newer.contains(&path) } else { !at.newer.insert(path) };
                if !hidden {
                    let (key, host) = at.host;
                    return Ok(Some(Place { host, id: UrlId::new(key, path), file: at.file, number }));
                }
            }
            at.file += 1;
            match self.scans.get_mut(at.file) {
                Some(scan) => at.rows = scan.rows_of_host(at.host.0)?,
                None => self.at = None,
            }
        }
    }

    /// The row there without its texts.
    pub fn head(&mut self, place: Place) -> Result<Row> {
        self.scans[place.file].head(place.id, place.number)
    }

    /// The row there.
    pub fn row(&mut self, place: Place) -> Result<Row> {
        self.scans[place.file].row(place.id, place.number)
    }
}

impl Frontier {
    /// All rows, or those of one host, as of now; `None` without files.
    pub(crate) fn all_rows(&mut self, host: Option<u32>) -> Result<Option<AllRows>> {
        self.flush()?;
        self.finish_flush()?;
        let Some(store) = &self.store else { return Ok(None) };
        let mut hosts: Vec<(u64, u32)> = match host {
            Some(id) => vec![(self.hosts[id as usize].key, id)],
            None => self.hosts.iter().enumerate().map(|(id, host)| (host.key, id as u32)).collect(),
        };
        hosts.sort_unstable_by(|a, b| b.cmp(a));
        Ok(Some(AllRows { scans: store.files.scans(), hosts, at: None }))
    }
}
