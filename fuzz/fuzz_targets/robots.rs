//! robots.txt over raw bytes: no panic, no blow-up, and the promises that hold for any file.
//!
//! The first line is the path to judge, the rest the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_parse::robots::{Robots, path_and_query, product_token};

fuzz_target!(|data: &[u8]| {
    let at = data.iter().position(|&b| b == b'\n').unwrap_or(data.len());
    let (path, file) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let robots = Robots::parse(file);
    for agent in ["TrawlBot", "a", "*", ""] {
        let rules = robots.agent(agent);
        assert!(rules.allows("/robots.txt").allowed, "robots.txt is always allowed");
        let verdict = rules.allows(path);
        assert!(verdict.allowed || verdict.line.is_some(), "nothing is forbidden without a rule");
        assert_eq!(verdict, rules.allows([path, b"#x"].concat()), "a fragment never matters");
    }
    // A comment at the end changes nothing, whatever came before it.
    let commented = Robots::parse(&[file, b"\n# the end"].concat());
    assert_eq!(commented.agent("a").allows(path), robots.agent("a").allows(path));
    assert_eq!(commented.sitemaps(), robots.sitemaps());
    if let Ok(text) = std::str::from_utf8(path) {
        let _ = product_token(text);
        assert!(path_and_query(text).starts_with('/'));
    }
});
