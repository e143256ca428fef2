//! Variable-length integers: LEB128, seven bits a byte, low bits first, the top bit set on all bytes but the last.

/// The longest encoding of a `u64`.
pub const MAX_LEN: usize = 10;

/// Why bytes are not a varint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VarintError {
    /// The bytes end inside it.
    #[error("varint cut short")]
    Short,
    /// It does not end within ten bytes, or its value needs more than 64 bits.
    #[error("varint larger than 64 bits")]
    TooLarge,
}

/// Appends `value` in its shortest form.
#[inline]
pub fn put_uvarint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed value: zigzag, then [`put_uvarint`].
pub fn put_ivarint(out: &mut Vec<u8>, value: i64) {
    put_uvarint(out, zigzag(value));
}

/// The number of bytes [`put_uvarint`] writes for `value`.
pub fn uvarint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}

/// Reads a value from the start of `buf` and tells how many bytes it took. Longer than shortest forms are accepted.
#[inline]
pub fn uvarint(buf: &[u8]) -> Result<(u64, usize), VarintError> {
    match buf {
        // Most lengths are below 128.
        [byte @ 0..=0x7f, ..] => Ok((u64::from(*byte), 1)),
        _ => long_uvarint(buf),
    }
}

fn long_uvarint(buf: &[u8]) -> Result<(u64, usize), VarintError> {
    let mut value = 0u64;
    for (i, &byte) in buf.iter().take(MAX_LEN).enumerate() {
        let bits = u64::from(byte & 0x7f);
        // The tenth byte has room for one bit only.
        if i == MAX_LEN - 1 && bits > 1 {
            return Err(VarintError::TooLarge);
        }
        value |= bits << (7 * i);
        if byte < 0x80 {
            return Ok((value, i + 1));
        }
    }
    Err(if buf.len() < MAX_LEN { VarintError::Short } else { VarintError::TooLarge })
}

/// Reads a signed value: [`uvarint`], then [`unzigzag`].
pub fn ivarint(buf: &[u8]) -> Result<(i64, usize), VarintError> {
    uvarint(buf).map(|(value, used)| (unzigzag(value), used))
}

/// Maps small magnitudes of either sign to small values: 0, -1, 1, -2 to 0, 1, 2, 3.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (u64::MAX, &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
        ] {
            let mut out = Vec::new();
            put_uvarint(&mut out, value);
            assert_eq!(out, bytes);
            assert_eq!(uvarint(bytes), Ok((value, bytes.len())));
        }
        assert_eq!([0, -1, 1, -2, i64::MIN].map(zigzag), [0, 1, 2, 3, u64::MAX]);
    }

    #[test]
    fn refusals() {
        assert_eq!(uvarint(&[]), Err(VarintError::Short));
        assert_eq!(uvarint(&[0x80; 9]), Err(VarintError::Short));
        assert_eq!(uvarint(&[0x80; 10]), Err(VarintError::TooLarge));
        assert_eq!(uvarint(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]), Err(VarintError::TooLarge));
        assert_eq!(uvarint(&[0x80, 0x80, 0]), Ok((0, 3)));
    }

    proptest! {
        #[test]
        fn round_trip(value: u64, shift in 0u32..64, tail: [u8; 3]) {
            let value = value >> shift;
            let mut out = Vec::new();
            put_uvarint(&mut out, value);
            let used = out.len();
            prop_assert_eq!(used, uvarint_len(value));
            for cut in 0..used {
                prop_assert_eq!(uvarint(&out[..cut]), Err(VarintError::Short));
            }
            out.extend_from_slice(&tail);
            prop_assert_eq!(uvarint(&out), Ok((value, used)));
            prop_assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
            out.clear();
            put_ivarint(&mut out, value as i64);
            prop_assert_eq!(ivarint(&out), Ok((value as i64, out.len())));
        }
    }
}
