use super::*;
use proptest::prelude::*;

fn round_trip(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let mut coder = Coder::new(codec);
    let mut packed = b"before".to_vec();
    coder.pack(bytes, &mut packed).unwrap();
    let stream = packed.strip_prefix(b"before").unwrap();
    let mut out = Unpacked::default();
    coder.unpack(stream, bytes.len(), &mut out).unwrap();
    assert_eq!(out.bytes(), bytes, "{codec:?}");
    if bytes.len() > 1 {
        let over = coder.unpack(stream, bytes.len() - 1, &mut out);
        assert!(over.is_err(), "{codec:?}: more than the limit came out");
    }
    stream.to_vec()
}

#[test]
fn every_codec_comes_back_at_every_size() {
    let noise: Vec<u8> = (0..600_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for codec in Codec::ALL {
        for len in [0, 1, 100, 218_422, 218_423, 600_000] {
            round_trip(codec, &noise[..len]);
            round_trip(codec, &vec![b'a'; len]);
        }
        assert_eq!(Codec::of_class(&codec.class()), Some(codec));
    }
    assert_eq!(Codec::of_class("com.hadoop.compression.lzo.LzoCodec"), None);
}

#[test]
fn one_write_is_one_block_of_several_chunks() {
    let stream = round_trip(Codec::Snappy, &vec![7; 500_000]);
    assert_eq!(stream[..4], 500_000i32.to_be_bytes());
    assert_eq!(round_trip(Codec::Lz4, b""), [0; 4], "an empty stream is a length of zero");
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let zeros = vec![0; 50 << 20];
    for codec in Codec::ALL {
        let mut coder = Coder::new(codec);
        let mut packed = Vec::new();
        coder.pack(&zeros, &mut packed).unwrap();
        let mut out = Unpacked::default();
        let error = coder.unpack(&packed, 1 << 20, &mut out).unwrap_err();
        assert_eq!(error, CodecError::OverLimit { limit: 1 << 20 }, "{codec:?}");
        assert!(out.buffer.capacity() <= 4 << 20, "{codec:?} reserved {}", out.buffer.capacity());
    }
}

#[test]
fn lengths_in_framed_blocks_are_claims() {
    let mut out = Unpacked::default();
    for codec in [Codec::Snappy, Codec::Lz4] {
        let mut coder = Coder::new(codec);
        for stream in [
            &[0x7f, 0xff, 0xff, 0xff][..],
            &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0],
            &[0, 0, 0, 9, 0x7f, 0xff, 0xff, 0xff, 1, 2],
            &[0xff, 0xff, 0xff, 0xff],
            &[0, 0, 0, 9],
            &[0, 0, 0, 9, 0, 0, 0, 0],
            &[0, 0, 0],
        ] {
            assert!(coder.unpack(stream, usize::MAX >> 1, &mut out).is_err(), "{codec:?} {stream:?}");
        }
    }
}

proptest! {
    #[test]
    fn damage_is_an_error_or_a_value(bytes in prop::collection::vec(any::<u8>(), 0..200), flip in any::<(usize, u8)>()) {
        for codec in Codec::ALL {
            let mut coder = Coder::new(codec);
            let mut packed = Vec::new();
            coder.pack(&bytes, &mut packed).unwrap();
            let at = flip.0 % packed.len();
            packed[at] ^= flip.1;
            let mut out = Unpacked::default();
            let _ = coder.unpack(&packed, 1 << 20, &mut out);
            let _ = coder.unpack(&packed[..at], 1 << 20, &mut out);
        }
    }
}
