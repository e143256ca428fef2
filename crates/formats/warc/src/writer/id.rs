//! Record ids.

/// `urn:uuid:…` of a random (version 4) UUID made of these bytes. Six bits of them are overwritten.
pub fn record_id(bytes: [u8; 16]) -> String {
    let mut n = u128::from_be_bytes(bytes);
    n = n & !(0xf << 76) | 0x4 << 76;
    n = n & !(0x3 << 62) | 0x2 << 62;
    let hex = format!("{n:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    #[test]
    fn version_and_variant_are_set() {
        assert_eq!(super::record_id([0; 16]), "urn:uuid:00000000-0000-4000-8000-000000000000");
        assert_eq!(super::record_id([255; 16]), "urn:uuid:ffffffff-ffff-4fff-bfff-ffffffffffff");
    }
}
