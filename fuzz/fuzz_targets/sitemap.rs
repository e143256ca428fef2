//! Sitemaps and feeds over raw bytes, plain and in gzip: no panic, within the limits, only web URLs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_lists::sitemap::{Options, parse};
use trawl_model::UnixMillis;

fuzz_target!(|data: &[u8]| {
    let options = Options { max_urls: 20, max_bytes: 64 << 10 };
    let now = UnixMillis(1_700_000_000_000);
    let Ok(document) = parse(data, "http://h.example/sitemap.xml", now, &options) else { return };
    assert!(document.entries.len() <= 20);
    assert!(document.entries.iter().all(|entry| entry.url.starts_with("http") && !entry.url.contains('#')));
    // Where it was found matters only for paths.
    if let Ok(elsewhere) = parse(data, "not a url", now, &options) {
        assert!(elsewhere.entries.len() <= document.entries.len());
        assert_eq!(elsewhere.kind, document.kind);
    }
});
