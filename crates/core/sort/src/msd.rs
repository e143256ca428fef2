//! Sorting the index: by eight key bytes at a time, most significant first.
//!
//! A comparison sort of long keys fetches two keys from memory for each of n log n comparisons. Here the index holds
//! eight bytes of each key; only records that agree in them are looked at again, eight bytes further on. Each key is
//! fetched once per eight bytes needed to tell it from the others.

use crate::arena::{Entry, key, key_len, position};

/// Groups up to this size are sorted by comparing what is left of their keys.
const SMALL: usize = 8;

/// Eight bytes of `key` from `depth` on; zeros past its end.
#[inline]
pub(crate) fn load(key: &[u8], depth: usize) -> u64 {
    let rest = key.get(depth..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().enumerate().fold(0, |word, (i, &byte)| word | u64::from(byte) << (56 - 8 * i)),
    }
}

#[inline]
fn cached([bytes, _]: &Entry) -> u64 {
    *bytes
}

/// Sorts entries of keys in `data`, whose cached bytes are those at depth 0.
pub(crate) fn sort(data: &[u8], entries: &mut [Entry]) {
    entries.sort_unstable_by_key(cached);
    // Ranges sorted by the bytes cached at their depth, whose groups are still to be gone into. A nested range is
    // within a group of the one below it, so the list is as long as shared prefixes are nested.
    let mut todo = vec![(0, entries.len(), 0)];
    while let Some((start, end, depth)) = todo.pop() {
        let Some(range) = entries.get_mut(start..end) else { continue };
        let mut at = start;
        for group in range.chunk_by_mut(|a, b| cached(a) == cached(b)) {
            at += group.len();
            if let Some(continuing) = finish_group(data, group, depth) {
                if at < end {
                    todo.push((at, end, depth));
                }
                todo.push((at - continuing, at, depth + 8));
                break;
            }
        }
    }
}

/// Orders a group that agrees up to `depth + 8`, as far as its keys end there. What goes on is at the group's end, the
/// bytes at the next depth cached, and sorted by them; its number is returned.
#[inline]
fn finish_group(data: &[u8], group: &mut [Entry], depth: u32) -> Option<usize> {
    if group.len() < 2 {
        return None;
    }
    let next = depth + 8;
    if group.len() <= SMALL {
        let rest = |e: &Entry| key(data, e).get(next as usize..).unwrap_or_default();
        // Keys that end here agree in their padded bytes: the shorter is first.
        let ended = |e: &Entry| key_len(e).min(next);
        group.sort_unstable_by(|a, b| {
            ended(a).cmp(&ended(b)).then_with(|| rest(a).cmp(rest(b))).then(position(a).cmp(&position(b)))
        });
        return None;
    }
    let ended = group.iter().filter(|e| key_len(e) <= next).count();
    if ended > 0 {
        group.sort_unstable_by_key(|e| (key_len(e).min(next + 1), position(e)));
    }
    let continuing = group.get_mut(ended..).unwrap_or_default();
    for entry in continuing.iter_mut() {
        let bytes = load(key(data, entry), next as usize);
        let [cached, _] = entry;
        *cached = bytes;
    }
    continuing.sort_unstable_by_key(cached);
    (continuing.len() > 1).then_some(continuing.len())
}
