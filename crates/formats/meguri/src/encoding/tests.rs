use super::*;
use crate::codec::{Codec, Packer};
use crate::error::Malformed;
use bytes::Bytes;
use proptest::prelude::*;
use std::path::Path;

/// Decodes a payload that is in memory as a whole.
fn decode(encoding: Encoding, payload: Bytes, n: usize, width: u8, base: u64) -> Result<Vec<u64>, Malformed> {
    let mut decoder = Decoder::new(encoding, Payload::memory(payload), n as u64, width, base)?;
    let mut values = Vec::new();
    decoder.next(n, &mut values)?;
    decoder.finish()?;
    Ok(values)
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn round(encoding: Encoding, values: &[u64], width: u8, bits: u32) -> (u64, Vec<u8>) {
    let mut payload = Vec::new();
    let base = encode(encoding, values, width, bits, &mut payload);
    let back = decode(encoding, payload.clone().into(), values.len(), width, base).unwrap();
    assert_eq!(back, values, "{encoding:?}");
    (base, payload)
}

#[test]
fn the_published_vectors() {
    use Encoding::*;
    let top = u64::MAX;
    for (encoding, width, values, base, hex) in [
        (Rle, 8, vec![1, 1, 2, 2, 2, 9], 0, "03010000000000000002020000000000000003090000000000000001"),
        (Rle, 1, vec![7], 0, "010701"),
        (Dict, 1, vec![1, 5, 1, 5, 5, 1], 0, "020105011a"),
        (Dict, 2, vec![3, 3, 3], 0, "01030000"),
        (Dict, 4, vec![100, 200, 300, 100, 200], 0, "0364000000c80000002c010000022401"),
        (Delta, 4, vec![470_100, 470_050, 470_080, 470_060], 470_100, "633c27"),
        (Delta, 8, vec![0, top, 1], 0, "0104"),
        (Delta, 8, vec![99], 99, ""),
        (For, 4, vec![100, 101, 100, 102, 100], 100, "028400"),
        (For, 8, vec![0, 1 << 40, 7], 0, "29000000000000000000001e0000000000"),
        (DeltaFor, 8, vec![0xAA, 0xBB, 0xCC, 0x100], 0xAA, "0722008011"),
        (DeltaFor, 8, vec![10, 17], 10, "000e"),
        (DeltaFor, 8, vec![0x55], 0x55, "0000"),
        (DeltaFor, 8, vec![0x1111_1111, 0x2222_2222, 0x3333_3333], 0x1111_1111, "00a2c4889102"),
        (DeltaFor, 8, vec![0xF000_0000_0000_0000, 1, 5], 0xF000_0000_0000_0000, "3d08faffffffffffff1f0000000000000000"),
    ] {
        assert_eq!(round(encoding, &values, width, 0), (base, unhex(hex)), "{encoding:?} {values:?}");
    }
    for (encoding, hex) in [(Raw, ""), (Dict, "0000"), (Delta, ""), (For, ""), (Rle, "00"), (DeltaFor, "")] {
        assert_eq!(round(encoding, &[], 8, 0), (0, unhex(hex)), "{encoding:?}");
    }
}

#[test]
fn a_payload_that_lies_is_malformed() {
    let bad = |encoding, hex: &str, n, width, base| {
        decode(encoding, unhex(hex).into(), n, width, base)
            .map_err(|e| format!("{}: {}", e.expected, e.found))
            .unwrap_err()
    };
    use Encoding::*;
    assert_eq!(bad(Raw, "0102", 1, 1, 0), "the end of the payload: 1 more bytes");
    assert_eq!(bad(Raw, "01", 2, 1, 0), "values as they are: 1 of 2 bytes");
    assert_eq!(bad(Raw, "01", 1, 3, 0), "a width of 1, 2, 4 or 8 bytes: 3");
    assert_eq!(bad(Rle, "0107ffffffff0f", 4, 1, 0), "a run within the page: 4294967295 values");
    assert_eq!(bad(Rle, "010700", 4, 1, 0), "a run within the page: 0 values");
    assert_eq!(bad(Rle, "010701", 4, 1, 0), "another run: the end of the runs");
    assert_eq!(bad(Rle, "0207010701", 1, 1, 0), "runs that end with the last value: 1 more runs");
    assert_eq!(
        bad(Dict, "ffffffff0f", 4, 1, 0),
        "a dictionary no larger than its page: 4294967295 entries for 4 values, limit 16777216"
    );
    assert_eq!(bad(Dict, "0103 0203".replace(' ', "").as_str(), 4, 1, 0), "a code of the dictionary: 3 of 1");
    assert_eq!(bad(For, "41", 4, 8, 0), "a bit width of at most 64: 65");
    assert_eq!(bad(For, "0884", 4, 8, 0), "packed values: 1 of 4 bytes");
    assert_eq!(bad(For, "0805", 1, 1, 255), "values that fit the column's width: bits 104");
    assert_eq!(bad(Delta, "80", 2, 8, 0), "a difference: varint cut short");
    assert_eq!(bad(Delta, "02", 2, 1, 256), "a base that fits the column's width: 256");
    assert_eq!(decode(Delta, unhex("02ff").into(), 2, 8, 1).unwrap(), [1, 2], "what follows differences is ignored");
}

#[test]
fn streams_decode_as_memory_does() {
    let values: Vec<u64> = (0..5000u64).map(|i| i * i % 977 + if i % 100 < 50 { 0 } else { 1 << 30 }).collect();
    for encoding in [Encoding::Raw, Encoding::Dict, Encoding::Delta, Encoding::For, Encoding::Rle, Encoding::DeltaFor] {
        let mut bytes = Vec::new();
        let base = encode(encoding, &values, 8, 0, &mut bytes);
        for step in [1, 7, 1000, 1024, 4999, 5000] {
            let payload = Payload::stream(Box::new(std::io::Cursor::new(bytes.clone())), Path::new("f"));
            let mut decoder = Decoder::new(encoding, payload, 5000, 8, base).unwrap();
            let mut back = Vec::new();
            while back.len() < 5000 {
                let n = step.min(5000 - back.len());
                decoder.next(n, &mut back).unwrap();
            }
            assert!(decoder.next(1, &mut Vec::new()).is_err());
            decoder.finish().unwrap();
            assert_eq!(back, values, "{encoding:?} by {step}");
        }
    }
}

#[test]
fn the_nominal_way_keeps_raw_on_a_tie() {
    let mut packer = Packer::new(Codec::None, 3, true).unwrap();
    let page =
        |encoding, values: &[u64], packer: &mut Packer| Chooser::Nominal(encoding).page(values, 1, packer).unwrap();
    assert_eq!(page(Encoding::Rle, &[7, 7, 7], &mut packer).encoding, Encoding::Raw, "three bytes either way");
    assert_eq!(page(Encoding::Rle, &[7, 7, 7, 7], &mut packer).encoding, Encoding::Rle);
}

proptest! {
    #[test]
    fn every_encoding_gives_its_values_back(
        values in prop::collection::vec(prop_oneof![0u64..4, 0u64..100_000, any::<u64>()], 0..3000),
        width in prop::sample::select(vec![1u8, 2, 4, 8]),
        bits in 0u32..=24,
    ) {
        let values: Vec<u64> = values.into_iter().map(|v| v & max_of(width)).collect();
        for encoding in [Encoding::Raw, Encoding::Dict, Encoding::Delta, Encoding::For, Encoding::Rle, Encoding::DeltaFor] {
            round(encoding, &values, width, bits);
        }
        let mut packer = Packer::new(Codec::Zstd, 3, false).unwrap();
        for mut chooser in [Chooser::Nominal(Encoding::Delta), Chooser::best(true, true, false), Chooser::best(false, false, true)] {
            for _ in 0..3 {
                let page = chooser.page(&values, width, &mut packer).unwrap();
                let payload = crate::codec::unpack(page.codec, Bytes::from(page.bytes), page.uncompressed_len).unwrap();
                prop_assert_eq!(&decode(page.encoding, payload, values.len(), width, page.base).unwrap(), &values);
            }
        }
    }

    #[test]
    fn any_payload_is_a_value_or_malformed(bytes in prop::collection::vec(any::<u8>(), 0..60), n in 0usize..200, base: u64) {
        for encoding in [Encoding::Raw, Encoding::Dict, Encoding::Delta, Encoding::For, Encoding::Rle, Encoding::DeltaFor] {
            for width in [1, 2, 4, 8] {
                if let Ok(values) = decode(encoding, bytes.clone().into(), n, width, base & max_of(width)) {
                    prop_assert_eq!(values.len(), n);
                }
            }
        }
    }
}
