//! Values of Hadoop and Nutch over raw bytes: no panic, no hang; what decodes is written and decoded again alike.
//!
//! The first byte chooses the class.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trawl_hadoop::json::{Detail, JsonClasses as _};
use trawl_hadoop::{Decoder, class as hadoop};
use trawl_nutch::Dialect;
use trawl_nutch::class::{self, NutchClasses};
use trawl_nutch::types::{
    Content, CrawlDatum, HostDatum, Metadata, NutchDocument, ParseData, ParseStatus, ParseText, ProtocolStatus,
    encoded, whole,
};

const CLASSES: &[&str] = &[
    class::CRAWL_DATUM,
    class::INLINK,
    class::INLINKS,
    class::SELECTOR_ENTRY,
    class::NUTCH_WRITABLE,
    class::METADATA,
    class::META_WRAPPER,
    class::CONTENT,
    class::PROTOCOL_STATUS,
    class::PARSE_STATUS,
    class::PARSE_TEXT,
    class::PARSE_DATA,
    class::PARSE_IMPL,
    class::OUTLINK,
    class::LINK_DATUM,
    class::NODE,
    class::LINK_NODE,
    class::LINK_NODES,
    class::HOST_DATUM,
    class::DOCUMENT,
    class::FIELD,
    class::INDEX_ACTION,
    class::PAGE,
    class::LINK,
    class::FETCH_LIST_ENTRY,
    class::FETCHER_OUTPUT,
    class::FETCHER_CONTENT,
    class::FETCHER_TEXT,
    hadoop::MAP,
    hadoop::TEXT,
    hadoop::UTF8,
    hadoop::BYTES,
    hadoop::VLONG,
];

/// Reads, writes, reads and writes: the two writings are the same.
macro_rules! again {
    ($bytes:expr, $decode:expr) => {
        if let Ok(value) = whole($bytes, $decode) {
            let first = encoded(|out| value.encode(out));
            let second = whole(&first, $decode).expect("what was written can be read");
            assert_eq!(encoded(|out| second.encode(out)), first);
        }
    };
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let class = CLASSES[usize::from(choice) % CLASSES.len()];
    let _ = NutchClasses.json(class, &mut Decoder::new(bytes), Detail::Full);
    let _ = Dialect::default().json(class, bytes, Detail::Digest);
    match class {
        class::CRAWL_DATUM => again!(bytes, CrawlDatum::decode),
        class::CONTENT => again!(bytes, Content::decode),
        class::HOST_DATUM => again!(bytes, HostDatum::decode),
        class::DOCUMENT => again!(bytes, NutchDocument::decode),
        class::PARSE_STATUS => again!(bytes, ParseStatus::decode),
        class::PARSE_TEXT => again!(bytes, ParseText::decode),
        class::PROTOCOL_STATUS => again!(bytes, ProtocolStatus::decode),
        class::METADATA => again!(bytes, |d| Metadata::decode(d, Default::default())),
        class::PARSE_DATA => again!(bytes, |d| ParseData::decode(d, Default::default())),
        _ => {}
    }
});
