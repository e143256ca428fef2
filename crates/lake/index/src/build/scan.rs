//! Reads a Parquet file and sums up its domains.

use super::paths::{TOP_PATHS_MIN_ROWS, TopPaths};
use super::summary::Summary;
use super::{BuildOptions, SourceFile};
use crate::counts::Count;
use crate::postings::Run;
use crate::{Error, Result};
use trawl_rows::{Column, Columns, Distinct, FilePages, Step};
use trawl_store::{Cancel, Store};
use xxhash_rust::xxh3::xxh3_128;

/// What the sums need.
const WANTED: Columns = Columns::URL.and(Columns::of(&[Column::Domain, Column::Ts]));
/// Path candidates carried per file, so that those of several files can be added up.
const PATH_CANDIDATES: usize = 32;

/// Scans files in their order; keeps what must be carried from a file to the next.
pub(super) struct Scanner {
    step_rows: u32,
    cancel: Cancel,
    chain: u64,
    previous: Option<SourceFile>,
    url: String,
    urls: UrlGroup,
    paths: TopPaths,
}

impl Scanner {
    pub fn new(options: &BuildOptions) -> Self {
        let (urls, paths) = (UrlGroup::default(), TopPaths::default());
        let (step_rows, cancel) = (options.scan_rows, options.cancel.clone());
        Self { step_rows, cancel, chain: 0, previous: None, url: String::new(), urls, paths }
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
            self.urls = UrlGroup::default();
        }
        let mut sums = Sums { source, file_id, chain: self.chain, open: None, rows: 0 };
        let pages = FilePages::read(store, &source.file)?;
        for step in pages.scan(store, WANTED, self.step_rows)? {
            self.rows(&mut sums, &step?, emit)?;
            progress(sums.rows);
            self.cancel.check()?;
        }
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
        Step { group, first, rows }: &Step,
        emit: &mut dyn FnMut(Summary) -> Result<()>,
    ) -> Result<()> {
        for i in 0..rows.len() {
            let domain = rows.domain(i).unwrap_or_default();
            let row = u64::from(*first) + i as u64;
            if sums.open.as_ref().is_none_or(|open| open.domain != domain) {
                if sums.open.as_ref().is_some_and(|open| open.domain.as_str() > domain) || domain.is_empty() {
                    return Err(
                        sums.input("rows sorted by domain", format!("{domain:?} in row {row} of group {group}"))
                    );
                }
                self.end_domain(sums, emit)?;
                let (dataset_id, file_id, chain) = (sums.source.dataset_id, sums.file_id, sums.chain);
                let count = Count { exact: true, ..Count::default() };
                let domain = domain.to_owned();
                sums.open = Some(Summary { domain, dataset_id, file_id, chain, count, runs: Vec::new() });
            }
            let (host, path) = (rows.text(Column::Host, i), rows.text(Column::PathQuery, i));
            let path = path.unwrap_or_default();
            self.url.clear();
            rows.url_into(i, &mut self.url);
            let new = self.urls.add(host.unwrap_or_default(), path, &self.url);
            self.paths.add(path);
            if let Some(open) = &mut sums.open {
                open.count.rows += 1;
                open.count.distinct += u64::from(new);
                if let Some(ts) = rows.ts(i) {
                    let (from, until) = open.count.times.unwrap_or((ts, ts));
                    open.count.times = Some((from.min(ts), until.max(ts)));
                }
                match open.runs.last_mut() {
                    Some(run) if run.row_group == *group => run.row_count += 1,
                    _ => {
                        open.runs.push(Run { file_id: sums.file_id, row_group: *group, first_row: row, row_count: 1 });
                    }
                }
            }
            sums.rows += 1;
        }
        Ok(())
    }

    fn end_domain(&mut self, sums: &mut Sums<'_>, emit: &mut dyn FnMut(Summary) -> Result<()>) -> Result<()> {
        let paths = self.paths.take(PATH_CANDIDATES);
        let Some(mut summary) = sums.open.take() else { return Ok(()) };
        if summary.count.rows >= TOP_PATHS_MIN_ROWS {
            summary.count.paths = paths;
        }
        emit(summary)
    }
}

/// The sums of the file being read.
struct Sums<'a> {
    source: &'a SourceFile,
    file_id: u32,
    chain: u64,
    open: Option<Summary>,
    rows: u64,
}

impl Sums<'_> {
    fn input(&self, expected: &'static str, found: String) -> Error {
        Error::Input { at: self.source.file.path.clone(), expected, found }
    }
}

/// The different URLs among rows that follow one another with the same host and path: rows are sorted by these before
/// anything else, so equal URLs can only be found there. URLs are compared by 128 bits of hash.
#[derive(Debug, Default)]
struct UrlGroup {
    host: String,
    path: String,
    urls: Distinct<u128>,
}

impl UrlGroup {
    /// Whether the URL is the first of its kind.
    fn add(&mut self, host: &str, path: &str, url: &str) -> bool {
        if path != self.path || host != self.host {
            host.clone_into(&mut self.host);
            path.clone_into(&mut self.path);
            self.urls.clear();
        }
        self.urls.insert(xxh3_128(url.as_bytes()))
    }
}
