//! Finding rows by key. Rows of a run are sorted by SURT key, so a few single rows lead to any of them.

use crate::postings::Postings;
use crate::{Pinned, QueryError};
use std::cmp::Ordering;
use trawl_index::postings::Run;
use trawl_store::rows::{Column, Columns};
use trawl_url::surt;

/// Rows that are read together rather than halved further: a page of a column.
const LEAF: u64 = 4096;
/// A posting of more runs is not searched: each run takes some rounds of reads.
const MAX_SEARCHED: usize = 64;
/// What a key is made of.
const KEY: Columns = Columns::of(&[Column::Host, Column::PathQuery]);

/// The keys that begin with a text, or are equal to it.
pub(crate) struct KeyRange {
    key: String,
    exact: bool,
}

impl KeyRange {
    /// Keys of `host` whose path begins with `path`.
    pub fn prefix(host: &str, path: &str) -> Self {
        Self { key: key_of(host, path), exact: false }
    }

    /// Keys of `host` and the hosts below it. Also those of hosts beside it whose label only begins alike.
    pub fn host_and_below(host: &str) -> Self {
        let mut key = String::with_capacity(host.len());
        surt::host_into(host, &mut key);
        Self { key, exact: false }
    }

    /// The key of one host and path.
    pub fn exactly(key: String) -> Self {
        Self { key, exact: true }
    }

    /// Where a key stands: before the range, in it, or after.
    fn place(&self, key: &str) -> Ordering {
        match (key.cmp(&self.key), self.exact) {
            (Ordering::Greater, false) if key.starts_with(&self.key) => Ordering::Equal,
            (order, _) => order,
        }
    }
}

pub(crate) fn key_of(host: &str, path_query: &str) -> String {
    let mut key = String::with_capacity(host.len() + path_query.len() + 1);
    surt::host_into(host, &mut key);
    key.push(')');
    key.push_str(path_query);
    key
}

impl Pinned {
    /// Cuts every run down to the rows whose keys are in `range`. Left as it is where there are too many runs.
    pub(crate) fn narrow(&self, postings: &mut Postings, range: &KeyRange) -> Result<(), QueryError> {
        if postings.runs.len() > MAX_SEARCHED {
            return Ok(());
        }
        let mut narrowed = Vec::new();
        for (segment, run) in &postings.runs {
            let start = self.first(*segment, run, 0, &|key| range.place(key) != Ordering::Less)?;
            let end = self.first(*segment, run, start, &|key| range.place(key) == Ordering::Greater)?;
            if start < end {
                narrowed.push((*segment, Run { first_row: run.first_row + start, row_count: end - start, ..*run }));
            }
        }
        postings.runs = narrowed;
        Ok(())
    }

    /// The first row of a run, from `low` on, whose key is `past` something; the number of rows if none is.
    fn first(&self, segment: usize, run: &Run, low: u64, past: &dyn Fn(&str) -> bool) -> Result<u64, QueryError> {
        let (mut low, mut high) = (low, run.row_count);
        let keys = |start: u64, len: u64| -> Result<Vec<String>, QueryError> {
            let piece = Run { first_row: run.first_row + start, row_count: len, ..*run };
            let mut keys = Vec::new();
            for rows in self.read(&[(segment, piece)], KEY)? {
                let text = |column, i| rows.text(column, i).unwrap_or_default();
                keys.extend((0..rows.len()).map(|i| key_of(text(Column::Host, i), text(Column::PathQuery, i))));
            }
            Ok(keys)
        };
        while high - low > LEAF {
            let middle = low + (high - low) / 2;
            if keys(middle, 1)?.first().is_some_and(|key| past(key)) { high = middle } else { low = middle + 1 }
        }
        if low >= high {
            return Ok(low);
        }
        let found = keys(low, high - low)?.iter().position(|key| past(key));
        Ok(found.map_or(high, |at| low + at as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let range = KeyRange::prefix("www.example.com", "/a");
        for (host, path, place) in [
            ("www.example.com", "/a", Ordering::Equal),
            ("www.example.com", "/a/b?c", Ordering::Equal),
            ("www.example.com", "/", Ordering::Less),
            ("www.example.com", "/b", Ordering::Greater),
            ("example.com", "/a", Ordering::Less),
            ("x.www.example.com", "/a", Ordering::Greater),
            ("wwx.example.com", "/a", Ordering::Greater),
        ] {
            assert_eq!(range.place(&key_of(host, path)), place, "{host}{path}");
        }
        let below = KeyRange::host_and_below("b.com");
        for (host, place) in [
            ("a.com", Ordering::Less),
            ("b.com", Ordering::Equal),
            ("z.b.com", Ordering::Equal),
            ("b-.com", Ordering::Equal),
            ("c.com", Ordering::Greater),
        ] {
            assert_eq!(below.place(&key_of(host, "/")), place, "{host}");
        }
        let exact = KeyRange::exactly("com,x)/a".into());
        assert_eq!(
            ["com,x)/", "com,x)/a", "com,x)/ab"].map(|k| exact.place(k)),
            [Ordering::Less, Ordering::Equal, Ordering::Greater]
        );
    }
}
