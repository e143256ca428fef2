//! DELTA_BINARY_PACKED in whole bytes, and which rows have a value.

use trawl_io::varint::{put_ivarint, put_uvarint};

/// Numbers in a block at most; a page usually has one block, as long as it needs.
const BLOCK: usize = 1 << 15;
/// The format's blocks are multiples of this.
const STEP: usize = 128;

/// Appends `values`, their differences in as few whole bytes as a block of them needs.
pub(super) fn put_numbers(values: &[u32], out: &mut Vec<u8>) {
    let differences = values.len().saturating_sub(1);
    let block = differences.next_multiple_of(STEP).clamp(STEP, BLOCK);
    put_uvarint(out, block as u64);
    put_uvarint(out, 1);
    put_uvarint(out, values.len() as u64);
    put_ivarint(out, values.first().map_or(0, |first| i64::from(*first)));
    let pairs = values.iter().zip(values.iter().skip(1));
    let differences: Vec<i64> = pairs.map(|(a, b)| i64::from(*b) - i64::from(*a)).collect();
    for part in differences.chunks(block) {
        let (least, most) = part.iter().fold((i64::MAX, i64::MIN), |(a, b), d| (a.min(*d), b.max(*d)));
        // The span of differences of 32-bit numbers: at most 33 bits.
        let width = (64 - most.abs_diff(least).leading_zeros()).div_ceil(8) as usize;
        put_ivarint(out, least);
        out.push(u8::try_from(width * 8).unwrap_or(u8::MAX));
        let end = out.len() + block * width;
        if width == 1 {
            out.extend(part.iter().map(|d| d.abs_diff(least) as u8));
        } else {
            for difference in part {
                out.extend(difference.abs_diff(least).to_le_bytes().iter().take(width));
            }
        }
        out.resize(end, 0);
    }
}

/// Appends which rows have a value: runs, or a bit a row where that is shorter.
pub(super) fn put_levels(present: &[bool], out: &mut Vec<u8>) {
    let at = out.len();
    out.extend([0; 4]);
    let runs = present.chunk_by(|a, b| a == b);
    if runs.clone().count() * 2 <= present.len() / 8 + 2 {
        for run in runs {
            put_uvarint(out, (run.len() as u64) << 1);
            out.push(u8::from(run.first() == Some(&true)));
        }
    } else {
        put_uvarint(out, (present.len().div_ceil(8) as u64) << 1 | 1);
        let byte = |rows: &[bool]| rows.iter().rev().fold(0, |byte, row| byte << 1 | u8::from(*row));
        out.extend(present.chunks(8).map(byte));
    }
    let len = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&len.to_le_bytes());
    }
}
