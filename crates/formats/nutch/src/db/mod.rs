//! Databases: directories of parts, placed as Hadoop places them.
//!
//! ```text
//! crawldb/   current/part-r-00000/{data,index} …   Text URL -> CrawlDatum
//!            old/…                                  the generation before
//!            .locked                                while a job works on it
//! linkdb/    current/part-r-00000/{data,index} …   Text URL -> Inlinks
//! webgraphdb/ outlinks/{current,old}, inlinks, nodes   Text URL -> LinkDatum (keys repeat), Node
//! hostdb/    current/part-r-00000 …                Text host -> HostDatum, SequenceFiles
//! ```
//! A key lies in the part that its hash names, and only there: a reader looks nowhere else.

mod crawldb;
mod install;
mod linkdb;
mod parted;
mod writer;

#[cfg(test)]
mod tests;

pub use crawldb::{CrawlDb, merge_crawldbs};
pub use install::{Lock, install};
pub use linkdb::LinkDb;
pub use parted::{Entry, PartedMap, Scan, current_of, data_files, entry, text_key};
pub(crate) use parted::{key, segment_files};
pub use writer::{Duplicates, OnRecord, PartedWriter, Shape, WriteSettings, WrittenParts};

use trawl_hadoop::Codec;
use trawl_hadoop::seq::Pack;

/// A directory of Nutch's whose files have one shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// CrawlDb.
    CrawlDb,
    /// LinkDb.
    LinkDb,
    /// Web graph: outlinks, inlinks, nodes.
    WebGraph,
    /// Host db.
    HostDb,
    /// What a segment was to fetch.
    CrawlGenerate,
    /// How each fetch of a segment ended.
    CrawlFetch,
    /// What servers sent.
    Content,
    /// What parsing says to the CrawlDb: signatures, links.
    CrawlParse,
    /// Title, links and metadata of pages.
    ParseData,
    /// Text of pages.
    ParseText,
}

/// How Nutch's files are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compress {
    /// As Nutch does without any configuration: databases and fetch lists not at all, everything else by record.
    #[default]
    Nutch,
    /// As the table of Nutch's documentation has it: DefaultCodec everywhere, in blocks. Texts stay by record, as Nutch
    /// writes them whatever is configured.
    Block,
}

impl Compress {
    /// How the files of a place are packed.
    pub fn pack(self, place: Place) -> Pack {
        match (self, place) {
            (_, Place::ParseText) => Pack::Record(Codec::Default),
            (Compress::Block, _) => Pack::Block(Codec::Default),
            (Compress::Nutch, Place::CrawlDb | Place::WebGraph | Place::HostDb | Place::CrawlGenerate) => Pack::None,
            (Compress::Nutch, _) => Pack::Record(Codec::Default),
        }
    }
}
