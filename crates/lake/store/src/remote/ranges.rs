//! Which requests serve a batch of ranges: near ones are joined, long ones are cut.

use crate::{Error, RangeRead, Result};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// Requests for a batch, none overlapping, each object's in rising order.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) pieces: Vec<RangeRead>,
}

impl Plan {
    /// Joins ranges of one object that are at most `gap` bytes apart, and cuts what is longer than `part`.
    pub(super) fn new(reads: &[RangeRead], gap: u64, part: u64) -> Self {
        let mut wanted: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
        for RangeRead { path, range } in reads {
            // Nothing is asked for an empty range.
            if range.start < range.end {
                wanted.entry(path).or_default().push((range.start, range.end));
            }
        }
        let mut pieces = Vec::new();
        for (path, mut ranges) in wanted {
            ranges.sort_unstable();
            let mut joined: Vec<(u64, u64)> = Vec::new();
            for (start, end) in ranges {
                match joined.last_mut() {
                    Some(last) if start <= last.1.saturating_add(gap) => last.1 = last.1.max(end),
                    _ => joined.push((start, end)),
                }
            }
            for (mut start, end) in joined {
                while start < end {
                    let cut = end.min(start.saturating_add(part.max(1)));
                    pieces.push(RangeRead { path: path.to_owned(), range: start..cut });
                    start = cut;
                }
            }
        }
        Self { pieces }
    }

    /// The bytes of each read out of those of the pieces.
    pub(super) fn cut(&self, reads: &[RangeRead], got: &[Bytes]) -> Result<Vec<Bytes>> {
        reads.iter().map(|read| self.one(read, got).ok_or_else(|| missing(read))).collect()
    }

    fn one(&self, read: &RangeRead, got: &[Bytes]) -> Option<Bytes> {
        let mut at = read.range.start;
        if at >= read.range.end {
            return Some(Bytes::new());
        }
        let of = |piece: &RangeRead| (piece.path.clone(), piece.range.end);
        let mut number = self.pieces.partition_point(|piece| of(piece) <= (read.path.clone(), at));
        let mut out: Option<BytesMut> = None;
        loop {
            let (piece, bytes) = (self.pieces.get(number)?, got.get(number)?);
            if piece.path != read.path || piece.range.start > at {
                return None;
            }
            let end = piece.range.end.min(read.range.end);
            let slice = usize::try_from(at - piece.range.start).ok()?..usize::try_from(end - piece.range.start).ok()?;
            bytes.get(slice.clone())?;
            let bytes = bytes.slice(slice);
            if end == read.range.end && out.is_none() {
                return Some(bytes);
            }
            out.get_or_insert_default().extend_from_slice(&bytes);
            if end == read.range.end {
                return out.map(BytesMut::freeze);
            }
            (at, number) = (end, number + 1);
        }
    }
}

fn missing(read: &RangeRead) -> Error {
    let found = "fewer".to_owned();
    Error::Corrupt { path: read.path.clone(), offset: read.range.start, expected: "the bytes asked for", found }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(path: &str, range: std::ops::Range<u64>) -> RangeRead {
        RangeRead { path: path.into(), range }
    }

    #[test]
    fn near_ranges_are_one_request_and_long_ones_several() {
        let reads = [read("b", 10..20), read("a", 0..4), read("b", 25..30), read("b", 100..350), read("b", 5..5)];
        let plan = Plan::new(&reads, 8, 100);
        let pieces =
            [read("a", 0..4), read("b", 10..30), read("b", 100..200), read("b", 200..300), read("b", 300..350)];
        assert_eq!(plan.pieces, pieces);
    }

    proptest! {
        #[test]
        fn every_read_gets_its_bytes(
            reads in proptest::collection::vec((0..3usize, 0..200u64, 0..90u64), 0..12),
            gap in 0..40u64,
            part in 1..70u64,
        ) {
            let byte = |path: &str, at: u64| (path.len() as u8).wrapping_mul(91) ^ (at as u8);
            let make = |path: &str, range: std::ops::Range<u64>| Bytes::from(range.map(|at| byte(path, at)).collect::<Vec<_>>());
            let reads: Vec<_> = reads.iter().map(|(p, at, len)| read(["a", "bb", "a-c"][*p], *at..at + len)).collect();
            let plan = Plan::new(&reads, gap, part);
            let got: Vec<_> = plan.pieces.iter().map(|piece| make(&piece.path, piece.range.clone())).collect();
            let cut = plan.cut(&reads, &got).unwrap();
            for (read, bytes) in reads.iter().zip(cut) {
                prop_assert_eq!(bytes, make(&read.path, read.range.clone()));
            }
            prop_assert!(plan.pieces.iter().all(|piece| piece.range.end - piece.range.start <= part));
        }
    }
}
