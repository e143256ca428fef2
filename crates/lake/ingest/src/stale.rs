//! Rows that go out again: what the last item of a cut source was taken for, while it was cut.
//!
//! A row does not know its source, and another source may have the very same row. So of rows that are equal in every
//! column one goes for each that is stale, and the file that holds it is written again without it. A source whose row is
//! not there, since it was denied, rejected or purged, takes none back: it would be another's. For that the commit knows
//! by a hash which source has the row of its last record in the dataset, and a purge forgets those that it takes out.

use crate::Result;
use crate::record;
use crate::source::{Grown, LakeSource, of_name};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use trawl_model::{UrlRecord, UrlSource};
use trawl_store::{DataFile, DatasetCommit, Store};
use trawl_url::{LakeUrl, SuffixList};
use xxhash_rust::xxh3::xxh3_64;

/// By what a source's last row is known again.
pub(crate) fn tail_of(url: &str) -> String {
    format!("{:016x}", xxh3_64(url.as_bytes()))
}

/// What a source that has grown takes back, if it brought it and it is still there.
pub(crate) fn of<'a>(grown: &'a Grown, commit: &DatasetCommit) -> Option<&'a UrlRecord> {
    let tail = commit.known_source(&grown.known)?.tail.as_deref()?;
    grown.stale.as_ref().filter(|stale| tail_of(&stale.url) == tail)
}

/// The last rows of a dataset's sources, and which of them are going.
pub(crate) struct Going {
    tails: HashSet<String>,
    going: Mutex<HashSet<String>>,
}

impl Going {
    pub fn new(commit: &DatasetCommit) -> Self {
        let tails = commit.sources.iter().filter_map(|known| known.tail.clone()).collect();
        Self { tails, going: Mutex::default() }
    }

    /// A row goes.
    pub fn note(&self, record: &UrlRecord) {
        let tail = tail_of(&record.url);
        if self.tails.contains(&tail) {
            self.going.lock().unwrap_or_else(PoisonError::into_inner).insert(tail);
        }
    }

    /// Forgets the last rows that went. `before` is the commit whose rows they were: what came later has its own, but for a
    /// source that grew meanwhile and kept its last row.
    pub fn forget(&self, commit: &mut DatasetCommit, before: &DatasetCommit) {
        let going = self.going.lock().unwrap_or_else(PoisonError::into_inner);
        for known in &mut commit.sources {
            let was = of_name(&before.sources, &known.identity.uri);
            let goes = |tail: &String| going.contains(tail) && was.iter().any(|was| was.tail.as_ref() == Some(tail));
            known.tail = known.tail.take().filter(|tail| !goes(tail));
        }
    }
}

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

/// The files of `commit` that hold `stale` rows; each is read once at most.
pub(crate) fn find<'a>(
    store: &dyn Store,
    commit: &'a DatasetCommit,
    stale: &[&UrlRecord],
    suffixes: &'a SuffixList,
) -> Result<Vec<Losing<'a>>> {
    let mut sought: Vec<(String, Stale)> = stale.iter().filter_map(|record| seek(record, suffixes)).collect();
    let mut losing = Vec::new();
    for file in &commit.files {
        let is_here = |domain: &str| (&*file.min_domain..=&*file.max_domain).contains(&domain);
        if !sought.iter().any(|(domain, _)| is_here(domain)) {
            continue;
        }
        let mut found = count(store, file, &sought, suffixes)?;
        let mut here = Losing { file, rows: StaleRows::new(suffixes), urls: 0 };
        sought.retain(|(_, stale)| {
            let Some(rows) = found.rows.get_mut(&stale.bytes).filter(|rows| **rows > 0) else { return true };
            *rows -= 1;
            if let Some(of_url) = found.urls.get_mut(&*stale.url) {
                *of_url -= 1;
                here.urls += u64::from(*of_url == 0);
            }
            here.rows.add(stale.clone());
            false
        });
        if here.rows.count() > 0 {
            losing.push(here);
        }
    }
    Ok(losing)
}

/// What to look for, and under which domain.
fn seek(record: &UrlRecord, suffixes: &SuffixList) -> Option<(String, Stale)> {
    let mut url = LakeUrl::default();
    url.assign(&record.url, suffixes).ok()?;
    Some((url.domain().to_owned(), Stale { url: record.url.clone(), bytes: encoded(record, suffixes)? }))
}

/// How many rows of a file are equal to each that is sought, and how many have its URL.
#[derive(Default)]
struct Counted {
    rows: HashMap<Vec<u8>, u64>,
    urls: HashMap<String, u64>,
}

fn count(store: &dyn Store, file: &DataFile, sought: &[(String, Stale)], suffixes: &SuffixList) -> Result<Counted> {
    let mut counted = Counted {
        rows: sought.iter().map(|(_, stale)| (stale.bytes.clone(), 0)).collect(),
        urls: sought.iter().map(|(_, stale)| (stale.url.clone(), 0)).collect(),
    };
    let source = LakeSource::open(store, file, &|_| true)?;
    for split in source.splits(u64::MAX)? {
        source.read(split, &mut |_, item| {
            let Ok(record) = item else { return Ok(()) };
            let Some(of_url) = counted.urls.get_mut(&record.url) else { return Ok(()) };
            *of_url += 1;
            if let Some(rows) = encoded(&record, suffixes).and_then(|bytes| counted.rows.get_mut(&bytes)) {
                *rows += 1;
            }
            Ok(())
        })?;
    }
    Ok(counted)
}
