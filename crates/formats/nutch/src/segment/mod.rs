//! Segments of Nutch 0.8 and later: everything one round of crawling fetched.
//!
//! ```text
//! segments/20261115074402/
//!   crawl_generate/part-r-00000          URL -> CrawlDatum    what was to be fetched, hosts scattered
//!   crawl_fetch/part-r-00000/{data,index} URL -> CrawlDatum    how each fetch ended
//!   content/part-r-00000/…               URL -> Content       what servers sent
//!   crawl_parse/part-r-00000             URL -> CrawlDatum    signatures, links found: keyed by their targets, unsorted
//!   parse_data/part-r-00000/…            URL -> ParseData     title, links, metadata
//!   parse_text/part-r-00000/…            URL -> ParseText     text
//! ```
//! Any of them may be missing: only the first is there after generating, the last three come with parsing.

mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use reader::Segment;
pub use writer::{OnSegmentRecord, SegmentWriter, WrittenSegment};

use crate::class;
use crate::db::{Place, Shape};

/// A directory of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SegmentPart {
    /// What was to be fetched.
    CrawlGenerate,
    /// How each fetch ended.
    CrawlFetch,
    /// What servers sent.
    Content,
    /// Signatures and links.
    CrawlParse,
    /// Title, links and metadata.
    ParseData,
    /// Text.
    ParseText,
}

impl SegmentPart {
    /// All six.
    pub const ALL: [SegmentPart; 6] = [
        SegmentPart::CrawlGenerate,
        SegmentPart::CrawlFetch,
        SegmentPart::Content,
        SegmentPart::CrawlParse,
        SegmentPart::ParseData,
        SegmentPart::ParseText,
    ];

    /// Name of the directory.
    pub fn name(self) -> &'static str {
        match self {
            SegmentPart::CrawlGenerate => "crawl_generate",
            SegmentPart::CrawlFetch => "crawl_fetch",
            SegmentPart::Content => "content",
            SegmentPart::CrawlParse => "crawl_parse",
            SegmentPart::ParseData => "parse_data",
            SegmentPart::ParseText => "parse_text",
        }
    }

    /// Class of its values.
    pub fn class(self) -> &'static str {
        match self {
            SegmentPart::CrawlGenerate | SegmentPart::CrawlFetch | SegmentPart::CrawlParse => class::CRAWL_DATUM,
            SegmentPart::Content => class::CONTENT,
            SegmentPart::ParseData => class::PARSE_DATA,
            SegmentPart::ParseText => class::PARSE_TEXT,
        }
    }

    /// Whether its parts are MapFiles, in which a URL can be looked up.
    pub fn is_map(self) -> bool {
        !matches!(self, SegmentPart::CrawlGenerate | SegmentPart::CrawlParse)
    }

    pub(crate) fn shape(self) -> Shape {
        if self.is_map() { Shape::MapFile } else { Shape::File }
    }

    pub(crate) fn place(self) -> Place {
        match self {
            SegmentPart::CrawlGenerate => Place::CrawlGenerate,
            SegmentPart::CrawlFetch => Place::CrawlFetch,
            SegmentPart::Content => Place::Content,
            SegmentPart::CrawlParse => Place::CrawlParse,
            SegmentPart::ParseData => Place::ParseData,
            SegmentPart::ParseText => Place::ParseText,
        }
    }
}
