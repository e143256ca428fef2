//! Checks the rows of a dataset against everything a reader relies on.

use crate::{Column, Columns, Distinct, FilePages, Rows, Step};
use serde::Serialize;
use trawl_model::UnixMillis;
use trawl_store::{DataFile, DatasetCommit, Fault, Result, Store};
use trawl_url::{LakeUrl, SuffixList, domain_id, domain_prefix, url_id};
use xxhash_rust::xxh3::xxh3_128;

/// Rows decoded at a time.
const STEP_ROWS: u32 = 16_384;
/// At most this many faults of one file are reported one by one.
const MAX_FAULTS: u64 = 100;

/// What a verification went through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct DatasetVerified {
    /// Files read.
    pub files: u64,
    /// Rows read.
    pub rows: u64,
    /// Faults found.
    pub faults: u64,
}

/// Reads every live file of a dataset whole: hash, checksums, order, normal forms, domains, ids, counts and ranges. Every
/// fault goes to `fault`, at most a hundred of a file; an error is a store that cannot be read.
pub fn verify_dataset(
    store: &dyn Store,
    commit: &DatasetCommit,
    suffixes: &SuffixList,
    fault: &mut dyn FnMut(Fault),
) -> Result<DatasetVerified> {
    let mut verified = DatasetVerified::default();
    for file in &commit.files {
        verified.files += 1;
        let mut check = Check::new(commit.dataset_id, file, suffixes, fault);
        match FilePages::read(store, file) {
            Err(error) if error.is_not_found() => {
                let found = format!("none: its {} rows are lost", file.rows);
                check.fault(None, "a file of its dataset", found);
            }
            Err(error) => check.fault(None, "a file as its commit says", error.to_string()),
            Ok(pages) => match check.rows(store, &pages) {
                Err(error) => check.fault(None, "pages that can be decoded", error.to_string()),
                Ok(()) => check.finish(),
            },
        }
        verified.rows += check.count;
        verified.faults += check.faults;
    }
    for pair in commit.files.windows(2) {
        if let [a, b] = pair
            && (&a.prefix, a.added) == (&b.prefix, b.added)
            && (&a.max_domain, &a.max_key) >= (&b.min_domain, &b.min_key)
        {
            verified.faults += 1;
            let found = format!("{} up to {} {}", a.path, a.max_domain, a.max_key);
            fault(Fault { file: b.path.clone(), row: None, expected: "a range after that of the file before", found });
        }
    }
    Ok(verified)
}

/// Fills in what only the rows of a file tell: its first and last domains and keys, and how many different URLs it has. Its
/// length, hash, rows and row groups must be given.
pub fn describe(store: &dyn Store, file: &DataFile, dataset_id: u32, suffixes: &SuffixList) -> Result<DataFile> {
    let pages = FilePages::read(store, file)?;
    let mut ignore = |_| ();
    let mut check = Check::new(dataset_id, file, suffixes, &mut ignore);
    check.rows(store, &pages)?;
    let ends = |rank: Option<Rank>| rank.map(|rank| (rank.0, rank.1)).unwrap_or_default();
    let ((min_domain, min_key), (max_domain, max_key)) = (ends(check.first.take()), ends(check.last.take()));
    Ok(DataFile { min_domain, min_key, max_domain, max_key, distinct_urls: check.distinct, ..file.clone() })
}

/// What rows are ordered by, but for the values after the URL.
type Rank = (String, String, Option<UnixMillis>, String, Option<i64>, Option<String>);

struct Check<'a> {
    dataset_id: u32,
    file: &'a DataFile,
    suffixes: &'a SuffixList,
    out: &'a mut dyn FnMut(Fault),
    faults: u64,
    count: u64,
    distinct: u64,
    first: Option<Rank>,
    last: Option<Rank>,
    /// URLs of the key at hand.
    seen: Distinct<u128>,
    url: LakeUrl,
}

impl<'a> Check<'a> {
    fn new(dataset_id: u32, file: &'a DataFile, suffixes: &'a SuffixList, out: &'a mut dyn FnMut(Fault)) -> Self {
        Self {
            dataset_id,
            file,
            suffixes,
            out,
            faults: 0,
            count: 0,
            distinct: 0,
            first: None,
            last: None,
            seen: Distinct::default(),
            url: LakeUrl::default(),
        }
    }

    fn fault(&mut self, row: Option<(u32, u32)>, expected: &'static str, found: impl Into<String>) {
        self.faults += 1;
        if self.faults <= MAX_FAULTS {
            (self.out)(Fault { file: self.file.path.clone(), row, expected, found: found.into() });
        }
    }

    fn rows(&mut self, store: &dyn Store, pages: &FilePages) -> Result<()> {
        for step in pages.scan(store, Columns::ALL, STEP_ROWS)? {
            let Step { group, first, rows } = step?;
            (first..).zip(0..rows.len()).for_each(|(row, i)| self.row((group, row), &rows, i));
        }
        Ok(())
    }

    fn row(&mut self, at: (u32, u32), rows: &Rows, i: usize) {
        let at = Some(at);
        let text = |column| rows.text(column, i);
        let mut normal = String::new();
        rows.lake_url_into(i, &mut normal);
        let url = rows.url(i);
        let domain = text(Column::Domain).unwrap_or_default().to_owned();

        if let Some(id) = rows.number(Column::DatasetId, i).filter(|id| *id != i64::from(self.dataset_id)) {
            self.fault(at, "the id of the dataset", id.to_string());
        }
        match self.url.assign(&normal, self.suffixes) {
            Ok(()) if self.url.as_str() != normal => self.fault(at, "a normalised url", normal.clone()),
            Ok(()) if self.url.domain() != domain => {
                let found = format!("{domain} instead of {}", self.url.domain());
                self.fault(at, "the registrable domain of the host", found);
            }
            Ok(()) => {}
            Err(reject) => self.fault(at, "a url", format!("{normal}: {reject}")),
        }
        let key = self.url.surt();
        if let Some(raw) = text(Column::RawUrl) {
            let same = self.url.assign(raw, self.suffixes).is_ok() && self.url.as_str() == normal;
            if !same || raw == normal {
                self.fault(at, "another spelling of the normalised url", raw);
            }
        }
        let id = domain_id(&domain);
        let digits =
            if self.file.prefix == "all" { 0 } else { u8::try_from(self.file.prefix.len()).unwrap_or(u8::MAX) };
        if domain_prefix(id, digits) != self.file.prefix {
            self.fault(at, "a domain of the file's prefix", domain.clone());
        }
        for (column, id) in [(Column::DomainId, id), (Column::UrlId, url_id(url.as_bytes()))] {
            let stored = rows.number(column, i).map(i64::cast_unsigned);
            if rows.has(column) && stored != Some(id) {
                self.fault(at, "the hash of the domain or the url", format!("{} {stored:?}", column.name()));
            }
        }
        let (ts, port) = (rows.ts(i), rows.number(Column::Port, i));
        let scheme = text(Column::Scheme).unwrap_or_default().to_owned();
        let rank = (domain, key, ts, scheme, port, text(Column::RawUrl).map(str::to_owned));
        if self.last.as_ref().is_some_and(|last| *last > rank) {
            self.fault(at, "a row that sorts after the one before", format!("{} {}", rank.0, rank.1));
        }
        if self.last.as_ref().is_none_or(|last| last.1 != rank.1) {
            self.seen.clear();
        }
        self.distinct += u64::from(self.seen.insert(xxh3_128(url.as_bytes())));
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(rank.clone());
        }
        self.last = Some(rank);
    }

    /// What the commit says of the file as a whole.
    fn finish(&mut self) {
        let file = self.file;
        let (first, last) = (self.first.take(), self.last.take());
        let ends = |rank: &Option<Rank>| rank.as_ref().map(|r| (r.0.clone(), r.1.clone()));
        if ends(&first) != Some((file.min_domain.clone(), file.min_key.clone())) {
            self.fault(None, "the first domain and key of its commit", format!("{:?}", ends(&first)));
        }
        if ends(&last) != Some((file.max_domain.clone(), file.max_key.clone())) {
            self.fault(None, "the last domain and key of its commit", format!("{:?}", ends(&last)));
        }
        if self.distinct != file.distinct_urls {
            self.fault(None, "as many different urls as its commit says", self.distinct.to_string());
        }
    }
}
