//! Packed integers: runs and bit-packed groups (RLE hybrid), and plain bit-packed blocks; which rows have a value.

use super::Found;
use trawl_io::slice::SliceReader;
use trawl_io::varint::put_uvarint;

/// Value number `i` of `width` bits in `bytes`, low bits first. Bits past the end are zero.
#[inline]
pub(crate) fn unpack(bytes: &[u8], width: u32, i: usize) -> u64 {
    let bit = i * width as usize;
    let from = bytes.get(bit / 8..).unwrap_or_default();
    let shift = bit % 8;
    if width <= 56
        && let Some(chunk) = from.first_chunk::<8>()
    {
        return (u64::from_le_bytes(*chunk) >> shift) & ((1u64 << width) - 1);
    }
    let word = match from.first_chunk::<16>() {
        Some(chunk) => u128::from_le_bytes(*chunk),
        None => {
            let mut chunk = [0; 16];
            for (to, byte) in chunk.iter_mut().zip(from) {
                *to = *byte;
            }
            u128::from_le_bytes(chunk)
        }
    };
    let mask = (1u128 << width) - 1;
    ((word >> shift) & mask) as u64
}

/// Hands out `count` values of an RLE hybrid of `width` bits (at most 32), in order, run by run.
pub(crate) fn hybrid(bytes: &[u8], width: u32, count: usize, mut each: impl FnMut(u32, usize)) -> Found<()> {
    if width > 32 {
        return Err(format!("values of {width} bits").into());
    }
    let mut reader = SliceReader::new(bytes);
    let mut left = count;
    while left > 0 {
        let head = reader.uvarint("run")?;
        let units = usize::try_from(head >> 1).unwrap_or(usize::MAX);
        if units == 0 {
            return Err("an empty run".into());
        }
        if head & 1 == 0 {
            let value = reader.take(width.div_ceil(8) as usize, "run value")?;
            let value = unpack(value, width, 0);
            let n = units.min(left);
            each(value as u32, n);
            left -= n;
        } else {
            // A group is eight values; the last one may be cut short at the end of the page.
            let len = units.saturating_mul(width as usize).min(reader.rest().len());
            let packed = reader.take(len, "packed group")?;
            let n = units.saturating_mul(8).min(left);
            if width > 0 && packed.len().saturating_mul(8) < n * width as usize {
                return Err("a packed group cut short".into());
            }
            for i in 0..n {
                each(unpack(packed, width, i) as u32, 1);
            }
            left -= n;
        }
    }
    Ok(())
}

/// Appends which rows have a value: runs, or a bit a row where that is shorter.
pub(crate) fn put_levels(present: &[bool], out: &mut Vec<u8>) {
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
