//! Chunked bodies and content codings over raw bytes: no panic, no more than the limit comes out.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Read;
use trawl_http::{Dechunk, Head, decode_content, head_len};

fuzz_target!(|data: &[u8]| {
    let end = head_len(data, 0).unwrap_or(data.len());
    let (head, body) = data.split_at(end);
    let codings = Head::new(head).content_codings();
    let settled = Head::new(head).stored(body.len() as u64).into_owned();
    assert_eq!(Head::new(&settled).stored(body.len() as u64), settled, "a settled head stays as it is");
    let mut out = Vec::new();
    let _ = Dechunk::new(body).read_to_end(&mut out);
    assert!(out.len() <= body.len());
    for codings in [codings, vec!["gzip".into()], vec!["deflate".into()], vec!["br".into()], vec!["zstd".into()]] {
        let mut out = Vec::new();
        if let Ok(mut reader) = decode_content(body, &codings, 100_000) {
            let _ = reader.read_to_end(&mut out);
        }
        assert!(out.len() <= 100_000);
    }
});
