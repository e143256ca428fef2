//! What a scan says of one domain in one file, as the sorter carries it.

use crate::counts::Count;
use crate::postings::{Run, decode_runs, encode_runs};
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
    pub chain: u64,
    pub count: Count,
    pub runs: Vec<Run>,
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

    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        // All fields by name, so that a new one cannot be forgotten here. One file counts its distinct URLs exactly.
        let Count { rows, distinct, exact: _, times, paths } = &self.count;
        for number in [self.chain, *rows, *distinct, u64::from(times.is_some())] {
            put_uvarint(&mut out, number);
        }
        if let Some((first, last)) = times {
            put_ivarint(&mut out, first.0);
            put_ivarint(&mut out, last.0);
        }
        put_uvarint(&mut out, paths.len() as u64);
        for (path, rows) in paths {
            put_uvarint(&mut out, path.len() as u64);
            out.extend_from_slice(path.as_bytes());
            put_uvarint(&mut out, *rows);
        }
        out.extend_from_slice(&encode_runs(&self.runs)?);
        Ok(out)
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
        let (mut summary, runs) = read(value).map_err(|e| bad(e.to_string()))?;
        summary.runs = decode_runs(runs)?;
        (summary.dataset_id, summary.file_id) = (dataset_id, file_id);
        Ok((name, summary))
    }
}

/// All but the runs, and their bytes.
fn read(value: &[u8]) -> std::result::Result<(Summary, &[u8]), SliceError> {
    let mut r = SliceReader::new(value);
    let mut summary = Summary { chain: r.uvarint("chain")?, ..Summary::default() };
    let count = &mut summary.count;
    (count.rows, count.distinct, count.exact) = (r.uvarint("rows")?, r.uvarint("distinct")?, true);
    if r.uvarint("whether there are times")? != 0 {
        count.times = Some((UnixMillis(r.ivarint("first time")?), UnixMillis(r.ivarint("last time")?)));
    }
    for _ in 0..r.uvarint("path count")? {
        let path = String::from_utf8_lossy(r.prefixed(4096, "path")?).into_owned();
        count.paths.push((path, r.uvarint("rows of a path")?));
    }
    Ok((summary, r.rest()))
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
            count: Count {
                rows: 1000,
                distinct: 999,
                exact: true,
                times: Some((UnixMillis(-5), UnixMillis(1 << 40))),
                paths: vec![("/a/".into(), 3)],
            },
            runs: vec![
                Run { file_id: 3, row_group: 0, first_row: 5, row_count: 10 },
                Run { file_id: 3, row_group: 1, first_row: 0, row_count: 990 },
            ],
        };
        let (key, value) = (summary.key(), summary.encode().unwrap());
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
