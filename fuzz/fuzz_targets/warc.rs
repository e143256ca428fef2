//! Archives over raw bytes: no panic, no hang, no more work than the input is worth; and what is read strictly is read
//! leniently too.
//!
//! The first byte chooses whether the rest is packed into a gzip member first, so that the fuzzer reaches the records.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use std::io::{Read, Write};
use std::sync::Arc;
use trawl_warc::{Limits, WarcReader, WarcSource};

const LIMITS: Limits = Limits {
    header_bytes: 4096,
    block_bytes: 1 << 20,
    http_head_bytes: 4096,
    decoded_bytes: 1 << 20,
    zstd_window_log: 20,
    dictionary_bytes: 1 << 16,
};

fn read(bytes: &Bytes, lenient: bool) -> (usize, bool) {
    let mut reader = WarcReader::builder().limits(LIMITS).lenient(lenient).over(Arc::new(bytes.clone()));
    let mut count = 0;
    for _ in 0..1000 {
        match reader.next_record() {
            Ok(Some(mut record)) => {
                let _ = record.take_http_head();
                if std::io::copy(&mut record.body().take(1 << 20), &mut std::io::sink()).is_err() {
                    return (count, false);
                }
                count += 1;
            }
            Ok(None) => return (count, true),
            Err(_) if lenient => match reader.recover() {
                Ok(Some(gap)) => assert!(gap.from <= gap.to, "a gap goes forward"),
                other => panic!("after an error there is a gap: {other:?}"),
            },
            Err(_) => return (count, false),
        }
    }
    (count, false)
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let bytes = if choice & 1 == 0 {
        Bytes::copy_from_slice(rest)
    } else {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(rest).unwrap();
        Bytes::from(gzip.finish().unwrap())
    };
    let (strict, whole) = read(&bytes, false);
    let (lenient, _) = read(&bytes, true);
    assert!(!whole || lenient == strict, "strict {strict}, lenient {lenient}");
    let mut source = WarcSource::over(Arc::new(bytes), LIMITS, true);
    for _ in 0..1000 {
        if let Ok(None) = source.next_owned() {
            break;
        }
    }
});
