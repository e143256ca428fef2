//! A batch of discovered links on its way from one partition to another.
//!
//! ```text
//! nothing at all                      no rows
//! uvarint n, then columns of n, rows in the order of their keys, running values from 0:
//!   host key       uvarint differences
//!   path key       zigzag differences
//!   depth          uvarint
//!   source         u8
//!   source's host  zigzag differences
//!   weight         f32
//!   anchor         u8
//!   observed_at    zigzag differences
//!   URL            uvarint differences of references into the spans
//! uvarint length, symbol table of [`fsst`]; uvarint length, spans
//! ```

pub mod fsst;

use crate::error::{At, Malformed, Result};
use std::path::Path;
use trawl_io::slice::SliceReader;
use trawl_io::varint::{put_ivarint, put_uvarint};
use trawl_url::key::UrlKey;

/// Names of `anchor`, by value.
pub const ANCHOR_NAMES: [&str; 5] = ["unknown", "empty", "generic", "descriptive", "spammy"];

/// One discovered link.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Discovery {
    /// Its key.
    pub key: UrlKey,
    /// Its text.
    pub url: Vec<u8>,
    /// Links from the nearest seed.
    pub depth: u16,
    /// See [`crate::schema::SOURCE_NAMES`].
    pub source: u8,
    /// Host key of the page it was found on.
    pub source_host: u64,
    /// Weight of the link.
    pub weight: f32,
    /// See [`ANCHOR_NAMES`].
    pub anchor: u8,
    /// Hours since 1970.
    pub observed_at: u32,
}

/// The bytes of a batch; rows may come in any order.
pub fn encode(rows: &[Discovery]) -> Vec<u8> {
    let mut rows: Vec<&Discovery> = rows.iter().collect();
    rows.sort_by_key(|row| row.key);
    let mut out = Vec::new();
    if rows.is_empty() {
        return out;
    }
    let texts: Vec<&[u8]> = rows.iter().map(|row| &row.url[..]).collect();
    let table = fsst::Table::train(&texts);
    let (spans, references) = table.spans(&texts);
    put_uvarint(&mut out, rows.len() as u64);
    let ascending = |out: &mut Vec<u8>, values: &mut dyn Iterator<Item = u64>| {
        values.fold(0, |before, value| {
            put_uvarint(out, value - before);
            value
        });
    };
    let zigzag = |out: &mut Vec<u8>, values: &mut dyn Iterator<Item = u64>| {
        values.fold(0u64, |before, value| {
            put_ivarint(out, value.wrapping_sub(before) as i64);
            value
        });
    };
    ascending(&mut out, &mut rows.iter().map(|r| r.key.host));
    zigzag(&mut out, &mut rows.iter().map(|r| r.key.path));
    rows.iter().for_each(|r| put_uvarint(&mut out, u64::from(r.depth)));
    out.extend(rows.iter().map(|r| r.source));
    zigzag(&mut out, &mut rows.iter().map(|r| r.source_host));
    rows.iter().for_each(|r| out.extend_from_slice(&r.weight.to_le_bytes()));
    out.extend(rows.iter().map(|r| r.anchor));
    zigzag(&mut out, &mut rows.iter().map(|r| u64::from(r.observed_at)));
    ascending(&mut out, &mut references.into_iter());
    for bytes in [table.encode(), spans] {
        put_uvarint(&mut out, bytes.len() as u64);
        out.extend_from_slice(&bytes);
    }
    out
}

/// Reads a batch. Anything missing or left over refuses all of it.
pub fn decode(body: &[u8]) -> Result<Vec<Discovery>> {
    if body.is_empty() {
        return Ok(Vec::new());
    }
    rows(body).map_err(|e| e.at(At::new(Path::new("(batch)"), 0)))
}

fn rows(body: &[u8]) -> Result<Vec<Discovery>, Malformed> {
    let mut r = SliceReader::new(body);
    let claimed = r.uvarint("the number of rows")?;
    // A row takes at least twelve bytes, one of which the length must be.
    let n = usize::try_from(claimed).ok().filter(|n| *n <= body.len());
    let n = n.ok_or_else(|| Malformed::new("a number of rows that the batch could hold", claimed))?;
    let mut rows = vec![Discovery::default(); n];
    let mut before = 0u64;
    for row in &mut rows {
        let step = r.uvarint("a host key")?;
        before = before.checked_add(step).ok_or_else(|| Malformed::new("ascending host keys", step))?;
        row.key.host = before;
    }
    let mut before = 0u64;
    for row in &mut rows {
        before = before.wrapping_add(r.ivarint("a path key")? as u64);
        row.key.path = before;
    }
    for row in &mut rows {
        let depth = r.uvarint("a depth")?;
        row.depth = u16::try_from(depth).map_err(|_| Malformed::new("a depth of 16 bits", depth))?;
    }
    for row in &mut rows {
        row.source = r.u8("a source")?;
    }
    let mut before = 0u64;
    for row in &mut rows {
        before = before.wrapping_add(r.ivarint("a source's host")? as u64);
        row.source_host = before;
    }
    for row in &mut rows {
        row.weight = f32::from_le_bytes(r.array("a weight")?);
    }
    for row in &mut rows {
        row.anchor = r.u8("an anchor")?;
    }
    let mut before = 0u64;
    for row in &mut rows {
        before = before.wrapping_add(r.ivarint("an hour")? as u64);
        row.observed_at = u32::try_from(before).map_err(|_| Malformed::new("an hour of 32 bits", before))?;
    }
    let mut references = Vec::with_capacity(n);
    let mut before = 0u64;
    for _ in 0..n {
        let step = r.uvarint("a reference")?;
        before = before.checked_add(step).ok_or_else(|| Malformed::new("ascending references", step))?;
        references.push(before);
    }
    let table = fsst::Table::decode(r.prefixed(usize::MAX, "a symbol table")?)?;
    let spans = r.prefixed(usize::MAX, "spans")?;
    if !r.is_empty() {
        return Err(Malformed::new("the end of the batch", format!("{} more bytes", r.rest().len())));
    }
    // Spans may not overlap: together they are no longer than the batch times the longest symbol.
    let mut end = 1;
    for (row, reference) in rows.iter_mut().zip(references) {
        if reference < end {
            return Err(Malformed::new("a reference past the span before", reference));
        }
        (row.url, end) = table.text(spans, reference)?;
    }
    if !rows.is_sorted_by_key(|row| row.key) {
        return Err(Malformed::new("rows in the order of their keys", "others"));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(host: u64, path: u64, url: &str, rest: (u16, u8, u64, f32, u8, u32)) -> Discovery {
        let (depth, source, source_host, weight, anchor, observed_at) = rest;
        let key = UrlKey { host, path };
        Discovery { key, url: url.as_bytes().to_vec(), depth, source, source_host, weight, anchor, observed_at }
    }

    fn three() -> Vec<Discovery> {
        vec![
            row(20, 5, "https://b.example/three", (3, 1, 10, 0.5, 3, 482_817)),
            row(10, 9, "https://a.example/one", (1, 2, 20, 0.25, 0, 482_816)),
            row(10, 4, "https://a.example/two", (0, 0, 0, 1.0, 4, 482_800)),
        ]
    }

    #[test]
    fn the_published_vector() {
        let hex: String = encode(&three()).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(
            hex,
            "030a000a080a070001030002010028130000803f0000803e0000003f040003e0f73a200201040430060868747470733a\
             2f2f08612e6578616d706c08622e6578616d706c07652f746872656505652f6f6e6505652f74776f0d00030001050300\
             010403000203"
        );
        let mut sorted = three();
        sorted.reverse();
        assert_eq!(decode(&encode(&three())).unwrap(), sorted);
        assert!(encode(&[]).is_empty() && decode(&[]).unwrap().is_empty());
    }

    #[test]
    fn a_batch_that_is_cut_is_refused_whole() {
        let bytes = encode(&three());
        for cut in 1..bytes.len() {
            assert!(decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let _ = decode(&flipped);
        }
    }

    proptest! {
        #[test]
        fn any_rows_come_back(urls in prop::collection::vec("[a-z/:.]{0,40}", 0..30), seed: u64) {
            let mut rows: Vec<Discovery> = urls.iter().zip(0..).map(|(url, i)| {
                let x = seed.wrapping_mul(2 * i + 1);
                row(x >> 3, x << 7, url, (x as u16, x as u8, !x, 0.25, 1, x as u32))
            }).collect();
            rows.sort_by_key(|r| r.key);
            prop_assert_eq!(decode(&encode(&rows)).unwrap(), rows);
        }

        #[test]
        fn any_bytes_are_rows_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
