//! Pages without end take constant memory. One test, so that nothing else runs in its process.

use trawl_parse::links::{LinkExtractor, Options};

const BASE: &str = "http://h.example/dir/page";

#[test]
fn memory_is_bounded() {
    endless_pages();
    long_attributes();
}

/// Resident memory in KiB; `None` where the system does not tell.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find(|line| line.starts_with("VmRSS"))?.split_whitespace().nth(1)?.parse().ok()
}

/// 20 MB of each, in pieces: memory stays what it was. The benchmark `parse` does 200 MB.
fn endless_pages() {
    let pieces: [&[u8]; 12] = [
        b"<div>",
        b"<a href='/x'><b class=\"y z\">",
        b"<svg><math><foreignObject><template>",
        b"<",
        b"<!",
        b"x",
        b"<a href=\"",
        b"<a href",
        b"<a href=x ",
        b"<!-- <script><!-- ",
        b"<img srcset='a 1x, b 2x, ",
        b"&amp;<title>",
    ];
    for piece in pieces {
        let block = piece.repeat((64 << 10) / piece.len());
        let mut extractor = LinkExtractor::new(Options::default(), None);
        extractor.push(&block);
        let before = resident_kib();
        for _ in 0..(20 << 20) / block.len() {
            extractor.push(&block);
        }
        if let (Some(before), Some(after)) = (before, resident_kib()) {
            let grown = after.saturating_sub(before);
            assert!(grown < 12 << 10, "{} grew by {grown} KiB", String::from_utf8_lossy(piece));
        }
        assert!(extractor.finish(BASE).links.len() <= Options::default().max_links);
    }
}

/// One long attribute after another, none of which fits.
fn long_attributes() {
    let mut extractor = LinkExtractor::new(Options::default(), None);
    let block = vec![b'x'; 1 << 20];
    let before = resident_kib();
    for _ in 0..20 {
        extractor.push(b"<a href='");
        extractor.push(&block);
        extractor.push(b"' rel=\"");
        extractor.push(&block);
        extractor.push(b"\">");
    }
    if let (Some(before), Some(after)) = (before, resident_kib()) {
        assert!(after.saturating_sub(before) < 12 << 10);
    }
    let page = extractor.finish(BASE);
    assert_eq!((page.links.len(), page.over_limit), (0, 40));
}
