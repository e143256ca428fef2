//! DELTA_BINARY_PACKED: numbers by their differences, in blocks of their own bit widths. Any width is read; whole bytes are
//! written.

use super::Found;
use super::levels::unpack;
use trawl_io::slice::SliceReader;
use trawl_io::varint::{put_ivarint, put_uvarint};

/// Numbers in a block that is written, at most; a page usually has one block, as long as it needs.
const BLOCK: usize = 1 << 15;
/// The format's blocks are multiples of this.
const STEP: usize = 128;

/// Bytes that follow a part where it is unpacked, and what both take at most: 32 numbers of 64 bits.
const PADDING: usize = 16;
const ROOM: usize = 256 + PADDING;

/// Reads one sequence from the front of `reader` and hands out its values, which must be `count`.
pub(crate) fn numbers(reader: &mut SliceReader<'_>, count: usize, mut each: impl FnMut(i64)) -> Found<()> {
    let block = reader.uvarint("block size")?;
    let minis = reader.uvarint("miniblocks")?;
    let total = reader.uvarint("count")?;
    let mut value = reader.ivarint("first value")?;
    if total != count as u64 {
        return Err(format!("{total} numbers instead of {count}").into());
    }
    if minis == 0 || minis > 512 || block == 0 || block > 1 << 16 || block % (minis * 32) != 0 {
        return Err(format!("blocks of {block} numbers in {minis} parts").into());
    }
    let per_mini = usize::try_from(block / minis).unwrap_or(usize::MAX);
    if count > 0 {
        each(value);
    }
    let mut left = count.saturating_sub(1);
    let mut padded = [0; ROOM];
    while left > 0 {
        let least = reader.ivarint("least difference")?;
        let widths = reader.take(usize::try_from(minis).unwrap_or(usize::MAX), "bit widths")?;
        for width in widths {
            if left == 0 {
                break;
            }
            if *width > 64 {
                return Err(format!("numbers of {width} bits").into());
            }
            let packed = reader.take(per_mini * usize::from(*width) / 8, "packed numbers")?;
            let n = per_mini.min(left);
            left -= n;
            let mut step = |difference: u64| {
                value = value.wrapping_add(least).wrapping_add(difference.cast_signed());
                each(value);
            };
            // Lengths as they are written here: whole bytes, nearly always one or two.
            match *width {
                8 => {
                    packed.iter().take(n).for_each(|byte| step(u64::from(*byte)));
                    continue;
                }
                16 => {
                    packed.as_chunks().0.iter().take(n).for_each(|two| step(u64::from(u16::from_le_bytes(*two))));
                    continue;
                }
                _ => {}
            }
            // Lengths take some bits each, so most of a part is near its end: bytes after it keep the quick way open.
            let packed = match padded.get_mut(..packed.len()).filter(|_| packed.len() + PADDING <= ROOM) {
                Some(room) => {
                    room.copy_from_slice(packed);
                    padded.get(..packed.len() + PADDING).unwrap_or(packed)
                }
                None => packed,
            };
            for i in 0..n {
                step(unpack(packed, u32::from(*width), i));
            }
        }
    }
    Ok(())
}

/// [`numbers`] that are lengths: none negative, at most `limit` in sum.
pub(crate) fn lengths(reader: &mut SliceReader<'_>, count: usize, limit: usize) -> Found<Vec<u32>> {
    let mut out = Vec::with_capacity(count);
    let (mut sum, mut bad) = (0usize, false);
    numbers(reader, count, |n| match u32::try_from(n) {
        Ok(n) => {
            sum = sum.saturating_add(n as usize);
            out.push(n);
        }
        Err(_) => bad = true,
    })?;
    if bad || sum > limit {
        return Err(format!("lengths of {sum} bytes in all, limit {limit}").into());
    }
    Ok(out)
}

/// Appends `values`, their differences in as few whole bytes as a block of them needs.
pub(crate) fn put_numbers(values: &[u32], out: &mut Vec<u8>) {
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
