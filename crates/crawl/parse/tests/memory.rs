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
        stays_small(&String::from_utf8_lossy(piece), || {
            let mut extractor = LinkExtractor::new(Options::default(), None);
            extractor.push(&block);
            let before = resident_kib();
            for _ in 0..(20 << 20) / block.len() {
                extractor.push(&block);
            }
            let grown = grown_since(before);
            assert!(extractor.finish(BASE).links.len() <= Options::default().max_links);
            grown
        });
    }
}

fn grown_since(before: Option<u64>) -> u64 {
    before.zip(resident_kib()).map_or(0, |(before, after)| after.saturating_sub(before))
}

/// Chance, as that of huge pages, only adds: what grows without end does so each time.
fn stays_small(what: &str, grown_kib: impl Fn() -> u64) {
    let least = (0..3).map(|_| grown_kib()).find(|grown| *grown < 12 << 10);
    assert!(least.is_some(), "{what} grew by more than 12 MiB, three times");
}

/// One long attribute after another, none of which fits.
fn long_attributes() {
    let block = vec![b'x'; 1 << 20];
    stays_small("long attributes", || {
        let mut extractor = LinkExtractor::new(Options::default(), None);
        let before = resident_kib();
        for _ in 0..20 {
            extractor.push(b"<a href='");
            extractor.push(&block);
            extractor.push(b"' rel=\"");
            extractor.push(&block);
            extractor.push(b"\">");
        }
        let grown = grown_since(before);
        let page = extractor.finish(BASE);
        assert_eq!((page.links.len(), page.over_limit), (0, 40));
        grown
    });
}
