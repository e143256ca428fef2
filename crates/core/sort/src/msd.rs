//! Sorting the index: by eight key bytes at a time, most significant first.
//!
//! A comparison sort of long keys fetches two keys from memory for each of n log n comparisons. Here the index holds
//! eight bytes of each key; only records that agree in them are looked at again, eight bytes further on. Each key is
//! fetched once per eight bytes needed to tell it from the others.

use crate::arena::{Entry, SortedBuffer};

/// Groups up to this size are sorted by comparing what is left of their keys.
const SMALL: usize = 20;

/// Eight bytes of `key` from `depth` on; zeros past its end.
#[inline]
pub(crate) fn load(key: &[u8], depth: usize) -> u64 {
    let rest = key.get(depth..).unwrap_or_default();
    match rest.first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().enumerate().fold(0, |word, (i, &byte)| word | u64::from(byte) << (56 - 8 * i)),
    }
}

/// Sorts entries whose prefixes are loaded at depth 0.
pub(crate) fn sort(keys: &SortedBuffer, entries: &mut [Entry]) {
    // Ranges of entries that agree in all bytes before `depth`, prefixes loaded at `depth`.
    let mut todo = vec![(0u32, entries.len() as u32, 0u32)];
    while let Some((start, end, depth)) = todo.pop() {
        let Some(range) = entries.get_mut(start as usize..end as usize) else { continue };
        range.sort_unstable_by_key(|e| e.prefix);
        let mut at = start;
        for group in range.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            let end = at + group.len() as u32;
            if let Some(continuing) = finish_group(keys, group, depth) {
                todo.push((end - continuing, end, depth + 8));
            }
            at = end;
        }
    }
}

/// Orders a group that agrees up to `depth + 8`, as far as its keys end there. What goes on is at the group's end, its
/// prefixes loaded at the next depth; its number is returned.
#[inline]
fn finish_group(keys: &SortedBuffer, group: &mut [Entry], depth: u32) -> Option<u32> {
    if group.len() < 2 {
        return None;
    }
    let next = depth + 8;
    if group.len() <= SMALL {
        let rest = |e: &Entry| keys.key(e).get(next as usize..).unwrap_or_default();
        // Keys that end here agree in their padded bytes: the shorter is first.
        let ended = |e: &Entry| e.key_len.min(next);
        group.sort_unstable_by(|a, b| {
            ended(a).cmp(&ended(b)).then_with(|| rest(a).cmp(rest(b))).then(a.position.cmp(&b.position))
        });
        return None;
    }
    let ended = group.iter().filter(|e| e.key_len <= next).count();
    if ended > 0 {
        group.sort_unstable_by_key(|e| (e.key_len.min(next + 1), e.position));
    }
    let continuing = group.get_mut(ended..).unwrap_or_default();
    for entry in continuing.iter_mut() {
        entry.prefix = load(keys.key(entry), next as usize);
    }
    (continuing.len() > 1).then_some(continuing.len() as u32)
}
