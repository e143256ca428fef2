//! Checks a map and lists every fault.

use super::bloom::{BloomFilter, bloom_path};
use super::index::Index;
use super::{data_path, index_path};
use crate::order::Order;
use crate::seq::{self, Fault, Header, OpenOptions};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Checks `data` as [`seq::verify`] does, that its keys ascend, that each entry of the index leads to its key, and that the
/// filter of a BloomMapFile has every key. Returns the number of records.
pub fn verify(
    dir: &Path,
    options: &OpenOptions,
    order: Option<Order>,
    check: &mut seq::CheckRecord<'_>,
    report: &mut dyn FnMut(Fault),
) -> Result<u64> {
    let data = data_path(dir);
    let index = index_path(dir);
    let known = |class: String| order.or_else(|| Order::of_class(&class));
    // A header that cannot be read is reported by the check of its file.
    let unchecked = OpenOptions { verify_checksums: false, ..options.clone() };
    let order = unchecked.open(&data).ok().and_then(|reader| known(reader.header().key_class()));
    let bloom = match BloomFilter::read(dir, options) {
        Ok(bloom) => bloom,
        Err(e) if e.is_damage() => {
            report(Fault::of(&bloom_path(dir), &e));
            None
        }
        Err(e) => return Err(e),
    };
    let mut missed = 0u64;
    let mut check = |header: &Header, key: &[u8], value: &[u8]| {
        missed += u64::from(bloom.as_ref().is_some_and(|bloom| !bloom.may_contain(key)));
        check(header, key, value)
    };
    let records = seq::verify(&data, options, order, &mut check, report)?;
    if missed > 0 {
        let detail = format!("expected every key of data, found {missed} keys missing: lookups do not find them");
        report(Fault { file: bloom_path(dir), offset: None, detail });
    }
    if !options.fs.exists(&index)? {
        report(Fault { file: index, offset: None, detail: "the index is missing; it can be rebuilt".into() });
        return Ok(records);
    }
    seq::verify(&index, options, order, &mut |_, _, _| None, report)?;
    match Index::read(dir, &unchecked) {
        Ok(entries) => check_positions(&data, &entries, &unchecked, &mut |detail| {
            report(Fault { file: index.clone(), offset: None, detail });
        })?,
        Err(e) if e.is_damage() => report(Fault::of(&index, &e)),
        // The check of the index as a file has reported it.
        Err(Error::Unsupported { .. }) => {}
        Err(e) => return Err(e),
    }
    Ok(records)
}

/// Every entry's position must be where a record with its key, or the block that holds it, begins.
fn check_positions(data: &Path, index: &Index, options: &OpenOptions, report: &mut dyn FnMut(String)) -> Result<()> {
    // Keys by position, in the order of the file, so that the data are read once.
    let mut wanted: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
    for n in 0..index.len() {
        if let Some((key, position)) = index.entry(n) {
            wanted.entry(position).or_default().push(key);
        }
    }
    let mut reader = match options.open(data) {
        Ok(reader) => reader,
        Err(e) if e.is_damage() || matches!(e, Error::Unsupported { .. }) => return Ok(()),
        Err(e) => return Err(e),
    };
    for (position, mut keys) in wanted {
        reader.seek(position);
        let mut first = true;
        // Entries that are 128 records apart in a block of 1 MB share its position.
        while position >= reader.header().end && !keys.is_empty() {
            match reader.advance() {
                Ok(true) if first || reader.at().offset == position => {
                    first = false;
                    keys.retain(|key| *key != reader.key());
                }
                Ok(_) => break,
                Err(e) if e.is_damage() => break,
                Err(e) => return Err(e),
            }
            if reader.header().compression != seq::Compression::Block {
                break;
            }
        }
        for key in keys {
            let key =
                String::from_utf8_lossy(key.get(..key.len().min(100)).unwrap_or_default()).escape_debug().to_string();
            report(format!("expected the key {key} at {position} of data, found another or none"));
        }
    }
    Ok(())
}
