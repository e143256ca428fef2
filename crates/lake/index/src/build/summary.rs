//! What a scan says of one domain in one file, as the sorter carries it.

use crate::postings::Run;
use crate::{Error, Result};
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::{put_ivarint, put_uvarint};
use trawl_model::UnixMillis;

/// What a scan says of one domain in one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub domain: String,
    pub dataset_id: u32,
    pub file_id: u32,
    /// Files with the same number have disjoint ranges, so their distinct URLs add up.
    pub chain: u32,
    pub rows: u64,
    pub distinct: u64,
    pub times: Option<(UnixMillis, UnixMillis)>,
    pub paths: Vec<(String, u64)>,
    /// (row group, first row, rows).
    pub runs: Vec<(u32, u64, u64)>,
}

impl Summary {
    /// Sorts by domain, then dataset, then file. Names have no zero byte, so a shorter name comes first.
    pub fn key(&self) -> Vec<u8> {
        let mut key = self.domain.as_bytes().to_vec();
        key.push(0);
        key.extend_from_slice(&self.dataset_id.to_be_bytes());
        key.extend_from_slice(&self.file_id.to_be_bytes());
        key
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [u64::from(self.chain), self.rows, self.distinct, u64::from(self.times.is_some())] {
            put_uvarint(&mut out, number);
        }
        if let Some((first, last)) = self.times {
            put_ivarint(&mut out, first.0);
            put_ivarint(&mut out, last.0);
        }
        put_uvarint(&mut out, self.paths.len() as u64);
        for (path, rows) in &self.paths {
            put_uvarint(&mut out, path.len() as u64);
            out.extend_from_slice(path.as_bytes());
            put_uvarint(&mut out, *rows);
        }
        put_uvarint(&mut out, self.runs.len() as u64);
        for (group, first, rows) in &self.runs {
            put_uvarint(&mut out, u64::from(*group));
            put_uvarint(&mut out, *first);
            put_uvarint(&mut out, *rows);
        }
        out
    }

    /// The domain and the rest, which does not repeat it.
    pub fn decode<'a>(key: &'a [u8], value: &[u8]) -> Result<(&'a str, Self)> {
        let bad = |found: String| Error::Input { at: "sorted summaries".into(), expected: "what was pushed", found };
        let parts = key.split_last_chunk::<4>().and_then(|(rest, file)| {
            let (rest, dataset) = rest.split_last_chunk::<4>()?;
            let name = std::str::from_utf8(rest.strip_suffix(&[0])?).ok()?;
            Some((name, u32::from_be_bytes(*dataset), u32::from_be_bytes(*file)))
        });
        let (name, dataset_id, file_id) = parts.ok_or_else(|| bad(format!("{key:02x?}")))?;
        let mut summary = read(value).map_err(|e| bad(e.to_string()))?;
        (summary.dataset_id, summary.file_id) = (dataset_id, file_id);
        Ok((name, summary))
    }

    /// The runs, with the file they are in.
    pub fn postings(&self) -> impl Iterator<Item = Run> {
        let file_id = self.file_id;
        self.runs.iter().map(move |&(row_group, first_row, row_count)| Run { file_id, row_group, first_row, row_count })
    }
}

fn read(value: &[u8]) -> std::result::Result<Summary, SliceError> {
    let mut r = SliceReader::new(value);
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let mut summary = Summary {
        chain: small(r.uvarint("chain")?),
        rows: r.uvarint("rows")?,
        distinct: r.uvarint("distinct")?,
        ..Summary::default()
    };
    if r.uvarint("whether there are times")? != 0 {
        summary.times = Some((UnixMillis(r.ivarint("first time")?), UnixMillis(r.ivarint("last time")?)));
    }
    for _ in 0..r.uvarint("path count")? {
        let path = String::from_utf8_lossy(r.prefixed(4096, "path")?).into_owned();
        summary.paths.push((path, r.uvarint("rows of a path")?));
    }
    for _ in 0..r.uvarint("run count")? {
        summary.runs.push((small(r.uvarint("row group")?), r.uvarint("first row")?, r.uvarint("rows")?));
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_come_back() {
        let summary = Summary {
            domain: "example.com".into(),
            dataset_id: 17,
            file_id: 3,
            chain: 2,
            rows: 1000,
            distinct: 999,
            times: Some((UnixMillis(-5), UnixMillis(1 << 40))),
            paths: vec![("/a/".into(), 3)],
            runs: vec![(0, 5, 10), (1, 0, 990)],
        };
        let (key, value) = (summary.key(), summary.encode());
        let (name, decoded) = Summary::decode(&key, &value).unwrap();
        assert_eq!((name, decoded), ("example.com", Summary { domain: String::new(), ..summary }));
    }

    #[test]
    fn keys_sort_as_names_do() {
        let key = |domain: &str, dataset_id| Summary { domain: domain.into(), dataset_id, ..Summary::default() }.key();
        assert!(key("a.com", 300) < key("a.com.uk", 1));
        assert!(key("a.com", 255) < key("a.com", 256));
        assert!(key("a-b.com", 9) < key("a.com", 1));
    }
}
