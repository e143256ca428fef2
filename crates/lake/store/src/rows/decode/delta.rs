//! DELTA_BINARY_PACKED: numbers by their differences, in blocks of their own bit widths.

use super::Found;
use super::bits::unpack;
use trawl_io::slice::SliceReader;

/// Bytes that follow a part where it is unpacked, and what both take at most: 32 numbers of 64 bits.
const PADDING: usize = 16;
const ROOM: usize = 256 + PADDING;

/// Reads one sequence from the front of `reader` and hands out its values, which must be `count`.
pub(super) fn numbers(reader: &mut SliceReader<'_>, count: usize, mut each: impl FnMut(i64)) -> Found<()> {
    let text = |e: trawl_io::slice::SliceError| e.to_string();
    let block = reader.uvarint("block size").map_err(text)?;
    let minis = reader.uvarint("miniblocks").map_err(text)?;
    let total = reader.uvarint("count").map_err(text)?;
    let mut value = reader.ivarint("first value").map_err(text)?;
    if total != count as u64 {
        return Err(format!("{total} numbers instead of {count}"));
    }
    if minis == 0 || minis > 512 || block == 0 || block > 1 << 16 || block % (minis * 32) != 0 {
        return Err(format!("blocks of {block} numbers in {minis} parts"));
    }
    let per_mini = usize::try_from(block / minis).unwrap_or(usize::MAX);
    if count > 0 {
        each(value);
    }
    let mut left = count.saturating_sub(1);
    let mut padded = [0; ROOM];
    while left > 0 {
        let least = reader.ivarint("least difference").map_err(text)?;
        let widths = reader.take(usize::try_from(minis).unwrap_or(usize::MAX), "bit widths").map_err(text)?;
        for width in widths {
            if left == 0 {
                break;
            }
            if *width > 64 {
                return Err(format!("numbers of {width} bits"));
            }
            let packed = reader.take(per_mini * usize::from(*width) / 8, "packed numbers").map_err(text)?;
            let n = per_mini.min(left);
            // Lengths take some bits each, so most of a part is near its end: bytes after it keep the quick way open.
            let packed = match padded.get_mut(..packed.len()).filter(|_| packed.len() + PADDING <= ROOM) {
                Some(room) => {
                    room.copy_from_slice(packed);
                    padded.get(..packed.len() + PADDING).unwrap_or(packed)
                }
                None => packed,
            };
            for i in 0..n {
                let difference = unpack(packed, u32::from(*width), i).cast_signed();
                value = value.wrapping_add(least).wrapping_add(difference);
                each(value);
            }
            left -= n;
        }
    }
    Ok(())
}

/// [`numbers`] that are lengths: none negative, at most `limit` in sum.
pub(super) fn lengths(reader: &mut SliceReader<'_>, count: usize, limit: usize) -> Found<Vec<u32>> {
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
        return Err(format!("lengths of {sum} bytes in all, limit {limit}"));
    }
    Ok(out)
}
