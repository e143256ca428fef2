//! Counts the different URLs of a (domain, dataset) from its rows.

use super::{Share, Source};
use crate::build::{BuildOptions, sorter};
use crate::{Error, Result};
use std::sync::Arc;
use trawl_rows::{Columns, FilePages};
use trawl_store::Store;
use xxhash_rust::xxh3::xxh3_128;

/// Rows read at a time.
const STEP: u32 = 50_000;
/// Hashes counted in memory: 16 MiB. More are sorted.
const IN_MEMORY: usize = 1 << 20;

/// Counts URLs by 128 bits of hash, in bounded memory.
pub(super) struct Distinct<'a> {
    store: Arc<dyn Store>,
    sources: &'a [Source<'a>],
    options: &'a BuildOptions,
}

impl<'a> Distinct<'a> {
    pub fn new(store: &Arc<dyn Store>, sources: &'a [Source<'a>], options: &'a BuildOptions) -> Self {
        Self { store: store.clone(), sources, options }
    }

    pub fn count(&mut self, shares: &[Share]) -> Result<u64> {
        let mut hashes = Hashes { few: Vec::new(), many: None, options: self.options };
        for share in shares {
            let Some(source) = self.sources.get(share.source) else { continue };
            for run in &share.runs {
                let path = source.plain.file(run.file_id)?.path;
                let tables = source.plain.page_tables(&[(run.file_id, run.row_group)])?;
                let groups = tables.iter().map(|table| table.to_vec()).collect();
                let rows = run.rows().ok_or_else(|| Error::Input {
                    at: path.clone(),
                    expected: "a row group with the rows of its postings",
                    found: format!("{} rows from row {} on", run.row_count, run.first_row),
                })?;
                let pages = FilePages { path, groups, zstd_level: None };
                for step in pages.scan_rows(&*self.store, Columns::URL, [(0, rows)], STEP) {
                    let rows = step?.rows;
                    let mut url = String::new();
                    for i in 0..rows.len() {
                        url.clear();
                        rows.url_into(i, &mut url);
                        hashes.push(xxh3_128(url.as_bytes()))?;
                    }
                }
            }
        }
        hashes.finish()
    }
}

struct Hashes<'a> {
    few: Vec<u128>,
    many: Option<trawl_sort::Sorter>,
    options: &'a BuildOptions,
}

impl Hashes<'_> {
    fn push(&mut self, hash: u128) -> Result<()> {
        self.few.push(hash);
        if self.few.len() >= IN_MEMORY {
            self.settle();
            // Still more than half of it after repeats are gone: there are too many to keep.
            if self.few.len() > IN_MEMORY / 2 {
                self.spill()?;
            }
        }
        Ok(())
    }

    fn settle(&mut self) {
        self.few.sort_unstable();
        self.few.dedup();
    }

    fn spill(&mut self) -> Result<()> {
        let many = match &mut self.many {
            Some(many) => many,
            none => none.insert(sorter(self.options)?),
        };
        for hash in self.few.drain(..) {
            many.push(&hash.to_be_bytes(), &[])?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.settle();
        if self.many.is_some() {
            self.spill()?;
        }
        let Some(many) = self.many else { return Ok(self.few.len() as u64) };
        let mut sorted = many.finish()?;
        let (mut count, mut last) = (0, Vec::new());
        while let Some(record) = sorted.next_record()? {
            if record.key != last.as_slice() {
                count += 1;
                last = record.key.to_vec();
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_and_few_are_counted_alike() {
        let dir = tempfile::tempdir().unwrap();
        let options = BuildOptions::new(dir.path());
        for (pushes, different) in [(0u128, 1), (10, 3), (3 << 20, 1000), (3 << 20, 2 << 20)] {
            let mut hashes = Hashes { few: Vec::new(), many: None, options: &options };
            for i in 0..pushes {
                hashes.push((i % different).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)).unwrap();
            }
            assert_eq!(hashes.many.is_some(), pushes.min(different) > IN_MEMORY as u128 / 2);
            assert_eq!(u128::from(hashes.finish().unwrap()), different.min(pushes));
        }
    }
}
