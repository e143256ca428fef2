//! `crawl.Generator$SelectorEntry`: an entry of the generator's temporary files.

use super::CrawlDatum;
use trawl_hadoop::{Decoded, Decoder, Encode, Text};

/// A URL that was selected for a segment.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectorEntry<'a> {
    /// The URL.
    pub url: Text<'a>,
    /// Its state.
    pub datum: CrawlDatum<'a>,
    /// Number of the segment.
    pub segment: i32,
}

impl<'a> SelectorEntry<'a> {
    /// Reads an entry.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let url = d.text("URL")?;
        let datum = CrawlDatum::decode(d)?;
        Ok(SelectorEntry { url, datum, segment: d.i32("number of the segment")? })
    }

    /// Writes an entry.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_text(self.url.as_bytes());
        self.datum.encode(out);
        out.put_i32(self.segment);
    }
}
