//! Response headers over raw text: `Retry-After`, `Link`, `X-Robots-Tag`, dates, charsets.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_model::{UnixMillis, date};
use trawl_parse::directives::Directives;
use trawl_parse::{charset, headers};

fuzz_target!(|text: &str| {
    let now = UnixMillis(1_700_000_000_000);
    let _ = headers::retry_after(text, now);
    let links = headers::link_header(text);
    assert!(
        links.iter().all(|link| link.resolve("http://h.example/p").is_none_or(|link| link.url.starts_with("http")))
    );
    let for_all = Directives::parse(text);
    let _ = Directives::header(text, "TrawlBot");
    let mut merged = for_all;
    merged.merge(&for_all);
    assert_eq!(merged, for_all, "merging with itself changes nothing");
    if let Some(at) = date::w3c_date(text) {
        assert_eq!(date::w3c_date(&at.to_string()), Some(at), "a date reads back");
    }
    let _ = date::any_date(text, now);
    let _ = charset::from_content_type(text);
    let _ = charset::guess(text.as_bytes(), Some(text));
});
