//! Pages over raw bytes: no panic, bounded, and the same result however the page is cut into pieces.
//!
//! The first byte chooses a charset header, the second the size of the pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_parse::links::{LinkExtractor, Options, links};

const BASE: &str = "http://h.example/dir/page";
const HEADERS: [Option<&str>; 6] = [
    None,
    Some("text/html; charset=utf-8"),
    Some("text/html; charset=utf-16le"),
    Some("text/html; charset=shift_jis"),
    Some("text/html; charset=iso-2022-jp"),
    Some("text/html; charset=windows-1251"),
];

fuzz_target!(|data: &[u8]| {
    let [choice, size, html @ ..] = data else { return };
    let header = HEADERS[usize::from(*choice) % HEADERS.len()];
    let options = Options {
        max_links: 50,
        max_attribute_bytes: 200,
        max_total_bytes: 2000,
        forms: true,
        templates: choice & 0x80 != 0,
        agent: Some("TrawlBot".into()),
        ..Options::default()
    };
    let whole = links(html, BASE, header, &options);
    assert!(whole.links.len() <= 50);
    assert!(whole.links.iter().all(|link| link.url.starts_with("http") && !link.url.contains('#')));

    let mut extractor = LinkExtractor::new(options.clone(), header);
    html.chunks(usize::from(*size).max(1)).for_each(|piece| extractor.push(piece));
    assert_eq!(extractor.finish(BASE), whole, "pieces of {size} give another page");

    // Without `<base>` or a later charset to change them, the links of a prefix are a prefix of the links.
    if header.is_some() && whole.base == BASE && options.max_links > whole.links.len() {
        let part = links(&html[..html.len() / 2], BASE, header, &options);
        assert!(part.base != BASE || whole.links.starts_with(&part.links), "a prefix has other links");
    }
});
