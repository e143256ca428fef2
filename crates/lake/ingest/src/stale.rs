//! Rows that go out again: what the last item of a cut source was taken for, while it was cut.
//!
//! A row does not know its source, and another source may have the very same row. So of rows that are equal in every
//! column one goes for each that is stale, and the file that holds it is written again without it.

use crate::Result;
use crate::record;
use crate::source::LakeSource;
use std::sync::{Mutex, PoisonError};
use trawl_model::{UrlRecord, UrlSource};
use trawl_store::{DataFile, DatasetCommit, Store};
use trawl_url::{LakeUrl, SuffixList};

/// A file that loses rows.
pub(crate) struct Losing<'a> {
    pub file: &'a DataFile,
    pub rows: StaleRows<'a>,
    /// URLs of the file that are gone with them.
    pub urls: u64,
}

/// Rows that do not stay, each as often as it is here.
pub(crate) struct StaleRows<'a> {
    left: Mutex<Vec<Stale>>,
    suffixes: &'a SuffixList,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Stale {
    url: String,
    /// The row in all its columns, as it is sorted.
    bytes: Vec<u8>,
}

impl<'a> StaleRows<'a> {
    fn new(suffixes: &'a SuffixList) -> Self {
        Self { left: Mutex::default(), suffixes }
    }

    fn add(&mut self, stale: Stale) {
        self.left.get_mut().unwrap_or_else(PoisonError::into_inner).push(stale);
    }

    /// How many rows go.
    pub fn count(&self) -> u64 {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
    }

    /// Whether a row stays. A row that does not is asked for once.
    pub fn keep(&self, record: &UrlRecord) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if !left.iter().any(|stale| stale.url == record.url) {
            return true;
        }
        let found = encoded(record, self.suffixes).and_then(|bytes| left.iter().position(|stale| stale.bytes == bytes));
        found.map(|at| left.swap_remove(at)).is_none()
    }
}

/// The row of a record; `None` if there is none.
fn encoded(record: &UrlRecord, suffixes: &SuffixList) -> Option<Vec<u8>> {
    let mut url = LakeUrl::default();
    url.assign(&record.url, suffixes).ok()?;
    let mut bytes = Vec::new();
    record::encode(&url, record, 0, &mut String::new(), &mut bytes).ok()?;
    Some(bytes)
}

/// The files of `commit` that hold `stale` rows. A row that no file has was rejected, denied or purged.
pub(crate) fn find<'a>(
    store: &dyn Store,
    commit: &'a DatasetCommit,
    stale: &[&UrlRecord],
    suffixes: &'a SuffixList,
) -> Result<Vec<Losing<'a>>> {
    let mut losing: Vec<Losing<'a>> = Vec::new();
    for record in stale {
        let Some(bytes) = encoded(record, suffixes) else { continue };
        let stale = Stale { url: record.url.clone(), bytes };
        for file in commit.files.iter().filter(|file| may_hold(file, record, suffixes)) {
            let at = losing.iter().position(|losing| losing.file.path == file.path);
            let planned = |losing: &mut Losing<'a>| {
                let left = losing.rows.left.get_mut().unwrap_or_else(PoisonError::into_inner);
                left.iter().filter(|other| **other == stale).count() as u64
            };
            let planned = at.and_then(|at| losing.get_mut(at)).map_or(0, planned);
            let (equal, same_url) = count(store, file, &stale, suffixes)?;
            if equal <= planned {
                continue;
            }
            let at = at.unwrap_or_else(|| {
                losing.push(Losing { file, rows: StaleRows::new(suffixes), urls: 0 });
                losing.len() - 1
            });
            if let Some(losing) = losing.get_mut(at) {
                losing.urls += u64::from(same_url == planned + 1);
                losing.rows.add(stale);
            }
            break;
        }
    }
    Ok(losing)
}

/// Whether the row of a record would lie in the range of a file.
fn may_hold(file: &DataFile, record: &UrlRecord, suffixes: &SuffixList) -> bool {
    let mut url = LakeUrl::default();
    url.assign(&record.url, suffixes).is_ok() && (&*file.min_domain..=&*file.max_domain).contains(&url.domain())
}

/// Rows of a file that are `stale`, and rows that have its URL.
fn count(store: &dyn Store, file: &DataFile, stale: &Stale, suffixes: &SuffixList) -> Result<(u64, u64)> {
    let (mut equal, mut same_url) = (0, 0);
    let source = LakeSource::open(store, file, &|_| true)?;
    for split in source.splits(u64::MAX)? {
        source.read(split, &mut |_, item| {
            if let Ok(record) = item
                && record.url == stale.url
            {
                same_url += 1;
                equal += u64::from(encoded(&record, suffixes).as_ref() == Some(&stale.bytes));
            }
            Ok(())
        })?;
    }
    Ok((equal, same_url))
}
