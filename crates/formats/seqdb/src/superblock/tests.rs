use super::*;
use crate::{is_seqdb, purpose_of};
use proptest::prelude::*;

fn path() -> &'static Path {
    Path::new("f")
}

fn sample() -> Superblock {
    let mut sb = Superblock::new(path(), 256, Kind::Kvseq, Purpose::new("TEST").unwrap()).unwrap();
    sb.set("FILESIZE", 256).unwrap();
    sb.set("MYVAR_1", -7).unwrap();
    sb
}

#[test]
fn the_bytes_are_where_the_magic_tests_look() {
    let bytes = sample().encode_full();
    assert_eq!(bytes.len(), 256);
    assert_eq!(&bytes[..16], b"#!WINKMESBSIZE\0\0");
    assert_eq!(&bytes[16..24], 256u64.to_be_bytes());
    assert_eq!(is_seqdb(&bytes), Some(Kind::Kvseq));
    assert_eq!(purpose_of(&bytes).unwrap().to_string(), "TEST");
    assert_eq!(is_seqdb(&bytes[..39]), None);
    assert_eq!(is_seqdb(b"#!WINKGA"), None);
    assert_eq!(Purpose::from_value(5_067_492_219_884_229_697).to_string(), "FSYSDATA");
}

#[test]
fn user_variables_keep_their_place() {
    let mut sb = sample();
    sb.set("FILESIZE", 300).unwrap();
    let back = Superblock::decode(path(), &sb.encode_full()).unwrap();
    assert_eq!(back, sb);
    let names: Vec<String> = back.variables().map(|(n, _)| n.to_string()).collect();
    assert_eq!(names, ["SBSIZE", "FORMAT", "PURPOSE", "FILESIZE", "MYVAR_1"]);
    assert_eq!((back.get("MYVAR_1"), back.get("FILESIZE"), back.get("nope")), (Some(-7), Some(300), None));
}

#[test]
fn what_cannot_be_set_is_refused() {
    let mut sb = sample();
    for name in ["SBSIZE", "FORMAT", "", "lower", "1DIGIT", "TOOLONGNAME", "A B", "A\0B"] {
        assert!(matches!(sb.set(name, 1), Err(Error::Refused { .. })), "{name:?}");
    }
    assert!(!sb.update(Name::ENTRIES, 1), "counters are not added silently");
    assert_eq!(sb.value(Name::ENTRIES), None);
    for i in 0..10 {
        sb.set(&format!("V{i}"), i).unwrap();
    }
    let full = sb.set("ONEMORE", 0).unwrap_err();
    assert_eq!(full.to_string(), "f: no room for variable ONEMORE in a superblock of 256 bytes");
    sb.set("V9", 99).unwrap();
    assert_eq!(Superblock::decode(path(), &sb.encode_full()).unwrap(), sb, "a full list needs no end mark");
}

#[test]
fn rules_are_checked_and_the_place_is_named() {
    let good = sample().encode_full();
    let broken = |at: usize, bytes: &[u8]| {
        let mut b = good.clone();
        b[at..at + bytes.len()].copy_from_slice(bytes);
        Superblock::decode(path(), &b).unwrap_err().to_string()
    };
    assert!(broken(0, b"#?").starts_with("f@0: expected a seqdb file, which begins with \"#!WINKME\""));
    assert_eq!(broken(8, b"SBSIZF"), "f@8: superblock: expected SBSIZE as the first variable, found SBSIZF");
    for sbsize in [0, 63, 65, 100, (16 << 20) + 8, u64::MAX] {
        assert!(broken(16, &sbsize.to_be_bytes()).starts_with("f@16: superblock: expected SBSIZE"), "{sbsize}");
    }
    assert!(broken(32, &17u64.to_be_bytes()).contains("FORMAT 17"));
    assert!(broken(24, b"FORMAS").contains("f@24"));
    assert!(broken(40, b"PURPOSF").contains("f@40"));
    assert!(broken(56, b"FORMAT\0\0").contains("each variable once"));
    assert!(broken(56, b"FILE\0IZE").contains("f@56: superblock: expected a name"));
    assert!(broken(56, b"\0ILESIZE").contains("f@56"));
    assert!(broken(56, b"filesize").contains("f@56"));
}

#[test]
fn cut_and_flip() {
    let good = sample().encode_full();
    for cut in 0..good.len() {
        let result = Superblock::decode(path(), &good[..cut]);
        // Once the empty slot that ends the list is there, nothing more is needed.
        assert_eq!(result.is_ok(), cut >= 8 + 6 * 16, "{cut}");
    }
    for bit in 0..good.len() * 8 {
        let mut flipped = good.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        if let Ok(sb) = Superblock::decode(path(), &flipped) {
            assert_eq!(Superblock::decode(path(), &sb.encode_full()).unwrap(), sb);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(tail in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = b"#!WINKMESBSIZE\0\0\0\0\0\0\0\0\x01\0FORMAT\0\0\0\0\0\0\0\0\0\x10PURPOSE\0".to_vec();
        bytes.extend(tail);
        if let Ok(sb) = Superblock::decode(path(), &bytes) {
            prop_assert_eq!(Superblock::decode(path(), &sb.encode_full()).unwrap(), sb);
        }
    }
}
