//! What Nutch's readers print: `readdb`, `readlinkdb` and `readseg`, in the reference's shapes.
//!
//! Times are in UTC; the reference prints them in the zone of its machine. Numbers print as JDK 17 prints them.

mod dump;
mod readdb;
mod readlinkdb;
mod readseg;
mod readseg_legacy;
mod stats;
pub mod text;

pub use dump::{DumpFormat, copy_part, write_dump_header, write_dumped};
pub use readdb::{Filter, Sample, TopN, UrlPattern, write_url};
pub use readlinkdb::{LinkPrinter, write_inlinks_of};
pub use readseg::{DumpSettings, SegmentFacts, dump_segment, get_json, list_header, write_get};
pub use readseg_legacy::{dump_legacy, dump_legacy_json, get_legacy_json, legacy_facts, legacy_missing};
pub use stats::Stats;
