use super::bloom::bits_of;
use super::ribbon::equation;
use super::*;
use std::sync::Arc;

fn keys() -> [UrlKey; 4] {
    let legacy = |host: &str, path: &str| trawl_url::key::legacy(&format!("http://{host}{path}"), None);
    [
        UrlKey { host: 1, path: 2 },
        UrlKey { host: 0x0123_4567_89ab_cdef, path: 0xfedc_ba98_7654_3210 },
        legacy("example.com", "/"),
        legacy("golang.org", "/doc"),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Bytes of a filter with all zero words left out, and where the others are.
fn words(blob: &[u8]) -> String {
    hex(&blob[..32])
}

#[test]
fn bloom_vectors() {
    let expected: [&[u64]; 4] = [
        &[100, 103, 106, 109, 112, 115, 118, 121],
        &[55, 72, 89, 106, 123, 140, 157, 174],
        &[412, 439, 466, 493, 8, 35, 62, 89],
        &[248, 333, 418, 503, 76, 161, 246, 331],
    ];
    for (key, bits) in keys().into_iter().zip(expected) {
        assert_eq!(bits_of(key, 8), bits);
    }
    let mut bloom = Bloom::with_capacity(4, 0.01);
    keys().into_iter().for_each(|key| bloom.add(key));
    assert_eq!(
        hex(&bloom.encode()),
        "01000800000000000100000000000000040000000000000004000000000000000001000008008040001100029024490a\
         001000200240000000000000000040010000000000000000002800000000000000000010040080000000040000208000"
    );
    let mut bloom = Bloom::with_capacity(200, 0.01);
    keys().into_iter().for_each(|key| bloom.add(key));
    let blob = bloom.encode();
    assert_eq!(words(&blob), "010008000000000005000000000000000400000000000000c800000000000000");
    let crc = trawl_io::crc::crc32c(&blob);
    assert_eq!((blob.len(), crc), (352, trawl_io::crc::crc32c(&unhex(BLOOM_200))));
    assert_eq!(hex(&blob), BLOOM_200);
    let Filter::Bloom(back) = parse(blob).unwrap() else { panic!("not a Bloom filter") };
    assert_eq!(back, bloom);
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

const BLOOM_200: &str = "010008000000000005000000000000000400000000000000c80000000000000000000000000000000000000000000000\
000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
000000000000000000100000000000000000000002000000000000000000400100000000000000000028000000000000\
000000000400000000000000000080000001000008008040000100020004000800100020004000000000000000000000\
000000000000000000000000000000000000001000008000000004000020000000000000000000000000000000000000\
000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000\
000000000000000000000000902449020000000000000000000000000000000000000000000000000000000000000000\
00000000000000000000000000000000";

#[test]
fn bloom_sizes() {
    for (capacity, rate, blocks, k) in [
        (1, 0.01, 1, 8),
        (4, 0.01, 1, 8),
        (100, 0.01, 3, 8),
        (1000, 0.01, 22, 8),
        (1_000_000, 0.01, 21_529, 8),
        (1 << 20, 0.01, 22_575, 8),
        (30_000_000, 0.01, 645_869, 8),
        (1000, 0.5, 4, 1),
        (1000, 0.1, 11, 4),
        (1000, 0.05, 15, 5),
        (1000, 0.001, 33, 11),
        (1000, 1e-4, 44, 15),
        (1000, 1e-6, 65, 16),
        (0, 2.0, 1, 8),
    ] {
        let bloom = Bloom::with_capacity(capacity, rate);
        assert_eq!((bloom.block_count(), bloom.bits_per_key()), (blocks, k), "{capacity} at {rate}");
    }
}

#[test]
fn ribbon_vector() {
    let ribbon = Ribbon::build(&keys(), 7).unwrap();
    let found: Vec<_> = keys().map(|key| equation(key, 0, 128, 7)).iter().map(|e| (e.start, e.fingerprint)).collect();
    assert_eq!(found, [(6, 0x79), (19, 0x53), (7, 0x6b), (42, 0x54)]);
    assert_eq!(
        hex(&ribbon.encode()),
        "01010700000000000400000000000000800000000000000000000000001871000000000000000000e000000000000000\
         000000000000000000000000001500000000000000000000000000000000000000000000000000000000000000000000\
         00000000000000000000000000000000000000000000000000000000000000000000000000000000"
    );
    assert_eq!(parse(ribbon.encode()).unwrap(), Filter::Ribbon(ribbon));
}

fn many(n: u64, salt: u64) -> Vec<UrlKey> {
    let spread = |x: u64| (x ^ x >> 31).wrapping_mul(0xD6E8_FEB8_6659_FD93) ^ x >> 27;
    (0..n).map(|i| UrlKey { host: spread(i / 30 + 1), path: spread(i * 2 + salt + 7) }).collect()
}

#[test]
fn ribbon_has_no_false_negatives_and_few_false_positives() {
    let keys = many(50_000, 0);
    let ribbon = Ribbon::build(&keys, DEFAULT_BITS).unwrap();
    assert!(keys.iter().all(|key| ribbon.may_contain(*key)));
    let wrong = many(50_000, 1).iter().filter(|key| ribbon.may_contain(**key)).count();
    assert!((250..550).contains(&wrong), "{wrong} of 50,000, expected about 390");
    let bits = ribbon.encode().len() as f64 * 8.0 / 50_000.0;
    assert!(bits < 7.9, "{bits} bits a key");
}

#[test]
fn a_small_budget_gives_the_same_ribbon() {
    let keys = many(20_000, 0);
    let whole = Ribbon::build(&keys, 5).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
    let mut scans = 0;
    let mut scan = |each: &mut dyn FnMut(UrlKey)| {
        scans += 1;
        keys.iter().for_each(|key| each(*key));
        Ok(())
    };
    let small = build_ribbon(&mut scan, keys.len() as u64, 5, 100_000, &fs, dir.path()).unwrap();
    assert_eq!(small, whole);
    assert_eq!(scans, 1, "ten ranges are dealt out in one scan");
}

/// A file of many rows costs one scan of its keys for each 64 ranges, not one for each.
#[test]
fn many_ranges_take_few_scans() {
    let keys = many(80_000, 0);
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn trawl_io::Fs> = Arc::new(trawl_io::RealFs);
    let mut scans = 0;
    let mut scan = |each: &mut dyn FnMut(UrlKey)| {
        scans += 1;
        keys.iter().for_each(|key| each(*key));
        Ok(())
    };
    // 1024 equations at a time are the least: 79 ranges.
    let small = build_ribbon(&mut scan, keys.len() as u64, 7, 1, &fs, dir.path()).unwrap();
    assert_eq!((small, scans), (Ribbon::build(&keys, 7).unwrap(), 2));
}

#[test]
fn repeated_keys_do_no_harm_and_none_are_fine() {
    let mut keys = many(1000, 0);
    keys.extend_from_within(..500);
    let ribbon = Ribbon::build(&keys, 7).unwrap();
    assert!(keys.iter().all(|key| ribbon.may_contain(*key)));
    assert_eq!(Ribbon::build(&[], 7).unwrap().slot_count(), 128);
}

#[test]
fn malformed_filters_are_refused() {
    let ribbon = Ribbon::build(&keys(), 7).unwrap().encode();
    let mut bloom = Bloom::with_capacity(4, 0.01);
    bloom.add(keys()[0]);
    for blob in [ribbon, bloom.encode()] {
        for cut in 0..blob.len() {
            assert!(parse(blob[..cut].to_vec()).is_err(), "cut at {cut}");
        }
        let mut longer = blob.clone();
        longer.push(0);
        assert!(parse(longer).is_err());
        for bit in 0..32 * 8 {
            let mut flipped = blob.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(filter) = parse(flipped) {
                filter.may_contain(keys()[0]);
            }
        }
    }
}
