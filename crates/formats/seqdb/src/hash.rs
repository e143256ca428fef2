//! The hash of a key: the first 64 bits of its MD5.

use md5::{Digest, Md5};

/// The first eight bytes of the MD5 of `key`, as a big-endian number.
#[inline]
pub fn h64(key: &[u8]) -> u64 {
    (u128::from_be_bytes(Md5::digest(key).into()) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys() {
        for (key, hash, mods) in [
            ("", 0xd41d_8cd9_8f00_b204, [2, 3, 0, 10]),
            ("a", 0x0cc1_75b9_c0f1_b6a8, [0, 0, 6, 8]),
            ("apple", 0x1f38_70be_274f_6c49, [1, 3, 4, 4]),
            ("pear", 0x8893_dc16_b1b2_534b, [0, 3, 3, 10]),
            ("fig", 0x04d8_b0d7_2264_ac23, [1, 2, 0, 8]),
            ("a.txt", 0xa5e5_4d1f_d7bb_69a2, [1, 1, 0, 9]),
        ] {
            assert_eq!(h64(key.as_bytes()), hash, "{key}");
            assert_eq!([3, 5, 7, 11].map(|n| hash % n), mods, "{key}");
        }
    }
}
