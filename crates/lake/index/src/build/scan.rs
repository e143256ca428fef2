//! Reads a Parquet file and sums up its domains.

use super::SourceFile;
use super::paths::{TOP_PATHS_MIN_ROWS, TopPaths};
use super::summary::Summary;
use crate::{Error, Result};
use std::collections::HashSet;
use trawl_store::Store;
use trawl_store::rows::{Column, Columns, FilePages, Rows};
use xxhash_rust::xxh3::xxh3_128;

/// What the sums need.
const WANTED: Columns = Columns::URL.and(Columns::of(&[Column::Domain, Column::Ts]));
/// Path candidates carried per file, so that those of several files can be added up.
const PATH_CANDIDATES: usize = 32;

/// Scans files in their order; keeps what must be carried from a file to the next.
pub(super) struct Scanner {
    step_rows: u32,
    chain: u32,
    previous: Option<SourceFile>,
    url: String,
    urls: UrlGroup,
    paths: TopPaths,
}

impl Scanner {
    pub fn new(step_rows: u32) -> Self {
        let (urls, paths) = (UrlGroup::default(), TopPaths::default());
        Self { step_rows, chain: 0, previous: None, url: String::new(), urls, paths }
    }

    /// Scans one file, checked against its commit: a summary of each domain goes to `emit`. Returns its page tables.
    pub fn file(
        &mut self,
        store: &dyn Store,
        file_id: u32,
        source: &SourceFile,
        emit: &mut dyn FnMut(Summary) -> Result<()>,
        progress: &dyn Fn(u64),
    ) -> Result<Vec<Vec<u8>>> {
        if !self.continues(source) {
            self.chain += 1;
            self.urls.clear();
        }
        let mut sums = Sums { source, file_id, chain: self.chain, open: None, rows: 0 };
        let pages = FilePages::read(store, &source.file)?;
        // The scan's callback speaks the store's error; ours waits here.
        let mut failed = None;
        let scanned = pages.scan(store, WANTED, self.step_rows, |group, first, rows| {
            let result = self.rows(&mut sums, group, first, rows, emit);
            progress(sums.rows);
            result.map_err(|e| {
                let reason = e.to_string();
                failed = Some(e);
                trawl_store::Error::Refused { reason }
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        scanned?;
        self.end_domain(&mut sums, emit)?;
        if sums.rows != source.file.rows {
            return Err(sums.input("as many rows as the commit says", sums.rows.to_string()));
        }
        self.previous = Some(source.clone());
        Ok(pages.groups)
    }

    /// Whether the file goes on where the one before ended: same commit and prefix, a range after its range.
    fn continues(&self, source: &SourceFile) -> bool {
        self.previous.as_ref().is_some_and(|before| {
            let place = |s: &SourceFile| (s.dataset_id, s.file.added, s.file.prefix.clone());
            place(before) == place(source)
                && (&before.file.max_domain, &before.file.max_key) <= (&source.file.min_domain, &source.file.min_key)
        })
    }

    fn rows(
        &mut self,
        sums: &mut Sums<'_>,
        group: u32,
        first: u32,
        rows: &Rows,
        emit: &mut dyn FnMut(Summary) -> Result<()>,
    ) -> Result<()> {
        for i in 0..rows.len() {
            let domain = rows.domain(i).unwrap_or_default();
            let row = u64::from(first) + i as u64;
            if sums.open.as_ref().is_none_or(|open| open.domain != domain) {
                if sums.open.as_ref().is_some_and(|open| open.domain.as_str() > domain) || domain.is_empty() {
                    return Err(
                        sums.input("rows sorted by domain", format!("{domain:?} in row {row} of group {group}"))
                    );
                }
                self.end_domain(sums, emit)?;
                let (dataset_id, file_id, chain) = (sums.source.dataset_id, sums.file_id, sums.chain);
                sums.open =
                    Some(Summary { domain: domain.to_owned(), dataset_id, file_id, chain, ..Summary::default() });
            }
            let (host, path) = (rows.text(Column::Host, i), rows.text(Column::PathQuery, i));
            let path = path.unwrap_or_default();
            self.url.clear();
            rows.url_into(i, &mut self.url);
            let new = self.urls.add(host.unwrap_or_default(), path, &self.url);
            self.paths.add(path);
            if let Some(open) = &mut sums.open {
                open.rows += 1;
                open.distinct += u64::from(new);
                if let Some(ts) = rows.ts(i) {
                    let (from, until) = open.times.unwrap_or((ts, ts));
                    open.times = Some((from.min(ts), until.max(ts)));
                }
                match open.runs.last_mut() {
                    Some((run_group, _, count)) if *run_group == group => *count += 1,
                    _ => open.runs.push((group, row, 1)),
                }
            }
            sums.rows += 1;
        }
        Ok(())
    }

    fn end_domain(&mut self, sums: &mut Sums<'_>, emit: &mut dyn FnMut(Summary) -> Result<()>) -> Result<()> {
        let paths = self.paths.take(PATH_CANDIDATES);
        let Some(mut summary) = sums.open.take() else { return Ok(()) };
        if summary.rows >= TOP_PATHS_MIN_ROWS {
            summary.paths = paths;
        }
        emit(summary)
    }
}

/// The sums of the file being read.
struct Sums<'a> {
    source: &'a SourceFile,
    file_id: u32,
    chain: u32,
    open: Option<Summary>,
    rows: u64,
}

impl Sums<'_> {
    fn input(&self, expected: &'static str, found: String) -> Error {
        Error::Input { at: self.source.file.path.clone(), expected, found }
    }
}

/// The different URLs among rows that follow one another with the same host and path: rows are sorted by these before
/// anything else, so equal URLs can only be found there. URLs are told apart by 128 bits of hash.
#[derive(Debug, Default)]
struct UrlGroup {
    host: String,
    path: String,
    few: Vec<u128>,
    many: HashSet<u128>,
}

impl UrlGroup {
    /// Whether the URL is the first of its kind.
    fn add(&mut self, host: &str, path: &str, url: &str) -> bool {
        if path != self.path || host != self.host {
            self.clear();
            host.clone_into(&mut self.host);
            path.clone_into(&mut self.path);
        }
        let hash = xxh3_128(url.as_bytes());
        if self.few.contains(&hash) || self.many.contains(&hash) {
            return false;
        }
        if self.few.len() < 16 {
            self.few.push(hash);
            true
        } else {
            self.many.insert(hash)
        }
    }

    fn clear(&mut self) {
        self.host.clear();
        self.path.clear();
        self.few.clear();
        // Dropped rather than cleared: clearing a set costs its capacity each time.
        if !self.many.is_empty() {
            self.many = HashSet::new();
        }
    }
}
