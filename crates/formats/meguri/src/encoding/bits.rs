//! Fixed-width bit packing: value `i` occupies bits `[i*w, (i+1)*w)` of a stream whose bit `k` is bit `k mod 8` of byte
//! `k / 8`; unused high bits of the last byte are 0.

/// Bits needed to hold `value`; 0 for 0.
pub fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Bytes that `n` values of `width` bits take.
pub fn packed_len(n: usize, width: u32) -> usize {
    let bits = n as u128 * u128::from(width);
    usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX)
}

/// Appends `values`, each below `2^width`, at `width` (0 to 64) bits each.
pub fn pack(values: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut acc, mut filled) = (0u128, 0u32);
    for value in values {
        acc |= u128::from(value) << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&(acc as u64).to_le_bytes());
            acc >>= 64;
            filled -= 64;
        }
    }
    let tail = acc.to_le_bytes();
    out.extend(tail.iter().take(filled.div_ceil(8) as usize));
}

/// Appends `n` values of `width` (0 to 64) bits each, after adding `base` modulo 2^64. `bytes` must hold at least
/// [`packed_len`] bytes; what it lacks reads as zero bits.
pub fn unpack(bytes: &[u8], n: usize, width: u32, base: u64, out: &mut Vec<u64>) {
    if width == 0 {
        out.resize(out.len() + n, base);
        return;
    }
    let mask = u64::MAX >> (64 - width.clamp(1, 64));
    out.reserve(n);
    let w = width as usize;
    // Sixteen bytes hold any value at any shift; values whose sixteen bytes pass the end are read from a padded copy.
    let whole = if bytes.len() >= 16 { ((bytes.len() - 16) * 8 / w + 1).min(n) } else { 0 };
    let window = |bytes: &[u8], bit: usize| -> Option<u64> {
        let chunk = bytes.get(bit / 8..)?.first_chunk::<16>()?;
        Some((u128::from_le_bytes(*chunk) >> (bit % 8)) as u64 & mask)
    };
    out.extend((0..whole).map_while(|i| window(bytes, i * w)).map(|v| v.wrapping_add(base)));
    if whole < n {
        let start = whole * w / 8;
        let mut tail = bytes.get(start..).unwrap_or_default().to_vec();
        tail.resize(packed_len(n - whole, width) + 17, 0);
        out.extend((whole..n).map_while(|i| window(&tail, i * w - start * 8)).map(|v| v.wrapping_add(base)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn widths() {
        assert_eq!([0, 1, 2, 3, 255, 256, u64::MAX].map(width_of), [0, 1, 2, 2, 8, 9, 64]);
        assert_eq!(packed_len(3, 3), 2);
        assert_eq!(packed_len(usize::MAX, 64), usize::MAX, "a claim too large for memory saturates");
    }

    #[test]
    fn low_bits_first() {
        let mut out = Vec::new();
        pack([0, 1, 0, 1, 1, 0].into_iter(), 1, &mut out);
        assert_eq!(out, [0b0001_1010]);
        out.clear();
        pack([0, 1, 2, 0, 1].into_iter(), 2, &mut out);
        assert_eq!(out, [0x24, 0x01]);
    }

    proptest! {
        #[test]
        fn unpacks_what_was_packed(width in 0u32..=64, n in 0usize..200, seed: u64) {
            let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
            let values: Vec<u64> = (0..n as u64).map(|i| (seed ^ i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).rotate_left(i as u32) & mask).collect();
            let mut bytes = Vec::new();
            pack(values.iter().copied(), width, &mut bytes);
            prop_assert_eq!(bytes.len(), packed_len(n, width));
            let mut back = Vec::new();
            unpack(&bytes, n, width, 0, &mut back);
            prop_assert_eq!(&back, &values);
            bytes.extend_from_slice(&[0xff; 3]);
            back.clear();
            unpack(&bytes, n, width, 5, &mut back);
            prop_assert_eq!(back, values.iter().map(|v| v.wrapping_add(5)).collect::<Vec<_>>());
        }
    }
}
