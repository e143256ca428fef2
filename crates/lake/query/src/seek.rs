//! Finding rows by key. The rows of a domain in one file are sorted by SURT key, over all its row groups, so a few single
//! rows lead to any of them. All files are halved side by side: rounds of reads grow with the longest one, not with their
//! number.

use crate::postings::{Postings, cut};
use crate::{Pinned, QueryError};
use std::cmp::Ordering;
use trawl_index::postings::Run;
use trawl_rows::{Column, Columns};
use trawl_url::surt;

/// Rows that are read together rather than halved further: a page of a column.
const LEAF: u64 = 4096;
/// Pieces read in one round at most.
const MAX_PIECES: usize = 256;
/// Rows read in one round at most, but for one piece.
const MAX_ROWS: u64 = 16 * LEAF;
/// Rows that looking up one host decodes, about: past that it is cheaper to read all.
const HOST_ROWS: u64 = 4 * LEAF;
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

/// The runs of one file.
struct Chain<'a> {
    runs: &'a [(usize, Run)],
    rows: u64,
}

impl<'a> Chain<'a> {
    fn all(runs: &'a [(usize, Run)]) -> Vec<Self> {
        let one_file = |a: &(usize, Run), b: &(usize, Run)| (a.0, a.1.file_id) == (b.0, b.1.file_id);
        let rows = |runs: &[(usize, Run)]| runs.iter().fold(0u64, |sum, (_, run)| sum.saturating_add(run.row_count));
        runs.chunk_by(one_file).map(|runs| Chain { runs, rows: rows(runs) }).collect()
    }
}

impl Pinned {
    /// Cuts every run down to the rows whose keys are in `range`.
    pub(crate) fn narrow(&self, postings: &mut Postings, range: &KeyRange) -> Result<(), QueryError> {
        let chains = Chain::all(&postings.runs);
        let starts = self.first(&chains, vec![0; chains.len()], &|key| range.place(key) != Ordering::Less)?;
        let ends = self.first(&chains, starts.clone(), &|key| range.place(key) == Ordering::Greater)?;
        let parts = chains.iter().zip(&starts).zip(&ends);
        postings.runs = parts.flat_map(|((chain, start), end)| cut(chain.runs, *start, *end)).collect();
        Ok(())
    }

    /// Cuts every run down to the rows whose paths begin with `path`, whatever their host: host by host, while there are
    /// few enough of them that this reads less than all rows would.
    pub(crate) fn narrow_hosts(&self, postings: &mut Postings, path: &str) -> Result<(), QueryError> {
        let most = postings.total() / HOST_ROWS;
        let chains = Chain::all(&postings.runs);
        let ends: Vec<u64> = chains.iter().map(|chain| chain.rows).collect();
        let (mut low, mut parts, mut hosts) = (vec![0; chains.len()], vec![Vec::new(); chains.len()], 0);
        while low != ends {
            hosts += 1;
            if hosts > most {
                return Ok(());
            }
            let mut first: Option<String> = None;
            let open = low.iter().zip(&ends).enumerate().filter(|(_, (low, end))| low < end);
            self.look(&chains, open.map(|(i, (low, _))| (i, *low, *low + 1)), |_, _, key| {
                if first.as_deref().is_none_or(|first| key < first) {
                    first = Some(key.to_owned());
                }
            })?;
            let Some((host, _)) = first.as_deref().and_then(|key| key.split_once(')')) else { return Ok(()) };
            let all = KeyRange { key: format!("{host})"), exact: false };
            let wanted = KeyRange { key: format!("{host}){path}"), exact: false };
            let starts = self.first(&chains, low, &|key| wanted.place(key) != Ordering::Less)?;
            let stops = self.first(&chains, starts.clone(), &|key| wanted.place(key) == Ordering::Greater)?;
            for (part, range) in parts.iter_mut().zip(starts.iter().zip(&stops)) {
                part.push((*range.0, *range.1));
            }
            low = self.first(&chains, stops, &|key| all.place(key) == Ordering::Greater)?;
        }
        let cuts = chains.iter().zip(parts);
        postings.runs = cuts
            .flat_map(|(chain, parts)| parts.into_iter().flat_map(|(start, end)| cut(chain.runs, start, end)))
            .collect();
        Ok(())
    }

    /// In each chain the first row, from its `low` on, whose key is `past` something; its number of rows if none is.
    fn first(
        &self,
        chains: &[Chain<'_>],
        mut low: Vec<u64>,
        past: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<u64>, QueryError> {
        let mut high: Vec<u64> = chains.iter().map(|chain| chain.rows).collect();
        loop {
            let wide =
                |(i, (low, high)): (usize, (&u64, &u64))| (high - low > LEAF).then(|| (i, low + (high - low) / 2));
            let middles: Vec<(usize, u64)> = low.iter().zip(&high).enumerate().filter_map(wide).collect();
            if middles.is_empty() {
                break;
            }
            self.look(chains, middles.iter().map(|(i, middle)| (*i, *middle, *middle + 1)), |i, middle, key| {
                let end = if past(key) { high.get_mut(i) } else { low.get_mut(i) };
                end.into_iter().for_each(|end| *end = if past(key) { middle } else { middle + 1 });
            })?;
        }
        let leaves: Vec<_> = low.iter().zip(&high).enumerate().map(|(i, (low, high))| (i, *low, *high)).collect();
        // Found from the front: the first one that is past, or the end.
        let mut found = high;
        self.look(chains, leaves.into_iter().filter(|(_, low, high)| low < high), |i, row, key| {
            if past(key) {
                found.get_mut(i).into_iter().for_each(|found| *found = row.min(*found));
            }
        })?;
        Ok(found)
    }

    /// Shows the keys of rows, each with the number of its chain and its place there. Few rounds for many places.
    fn look(
        &self,
        chains: &[Chain<'_>],
        places: impl Iterator<Item = (usize, u64, u64)>,
        mut show: impl FnMut(usize, u64, &str),
    ) -> Result<(), QueryError> {
        let mut places = places.peekable();
        while places.peek().is_some() {
            let (mut pieces, mut origins, mut rows) = (Vec::new(), Vec::new(), 0);
            while let Some((i, start, end)) = places.next_if(|_| pieces.len() < MAX_PIECES && rows < MAX_ROWS) {
                let Some(chain) = chains.get(i) else { continue };
                let mut at = start;
                for piece in cut(chain.runs, start, end) {
                    origins.push((i, at));
                    at += piece.1.row_count;
                    pieces.push(piece);
                }
                rows += end - start;
            }
            for ((i, start), read) in origins.into_iter().zip(self.read(&pieces, KEY)?) {
                let text = |column, row| read.text(column, row).unwrap_or_default();
                for row in 0..read.len() {
                    show(i, start + row as u64, &key_of(text(Column::Host, row), text(Column::PathQuery, row)));
                }
            }
        }
        Ok(())
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
