//! Codecs over raw bytes: no panic, no hang, never more than the limit; what is packed comes back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_hadoop::Codec;
use trawl_hadoop::codec::{Coder, Unpacked};

const LIMIT: usize = 1 << 18;

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let codec = Codec::ALL[usize::from(choice) % 7];
    let mut coder = Coder::new(codec);
    let mut out = Unpacked::default();
    if coder.unpack(bytes, LIMIT, &mut out).is_ok() {
        assert!(out.bytes().len() <= LIMIT);
    }
    let mut packed = Vec::new();
    coder.pack(bytes, &mut packed).expect("room");
    coder.unpack(&packed, bytes.len(), &mut out).expect("what was packed can be unpacked");
    assert_eq!(out.bytes(), bytes);
});
