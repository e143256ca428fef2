//! Index lines, keys, lookups and ZIP directories over raw bytes.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;
use trawl_warc::cdxj::{CdxjFile, CdxjLine, ZipNum, surt_key};
use trawl_warc::wacz::Wacz;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data) {
        let key = surt_key(text);
        assert!(!key.is_empty());
    }
    if let Ok(line) = CdxjLine::parse(data) {
        let again = CdxjLine::parse(line.to_text().as_bytes()).expect("a line we wrote");
        assert_eq!(again, line);
    }
    let bytes = Bytes::copy_from_slice(data);
    let file = CdxjFile::new(Arc::new(bytes.clone()));
    if let Ok(lines) = file.lines(b"a") {
        lines.take(100).for_each(drop);
    }
    let blocks = bytes.clone();
    if let Ok(index) = ZipNum::new(Arc::new(bytes.clone()), move |_| Ok(Arc::new(blocks.clone()) as _))
        && let Ok(lines) = index.lines(b"a")
    {
        lines.take(100).for_each(drop);
    }
    if let Ok(wacz) = Wacz::open(Arc::new(bytes)) {
        let _ = wacz.verify(&mut |_| {});
        let _ = wacz.lookup(b"a").map(|lines| lines.take(100).count());
    }
});
