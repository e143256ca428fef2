//! `crawl.NutchWritable` and `metadata.MetaWrapper`: one of a table of classes. Only jobs use them between their steps.

use super::Metadata;
use crate::class::{self as nutch, NutchClasses};
use trawl_hadoop::class::{self, ClassSet as _};
use trawl_hadoop::{Any, Decoded, Decoder, Encode};

/// Classes by their index, in the newest code. Earlier releases had another order: across versions the index says nothing.
const TABLE: [&str; 24] = [
    class::NULL,
    class::BOOLEAN,
    class::LONG,
    class::BYTE,
    class::BYTES,
    class::FLOAT,
    class::INT,
    class::MAP,
    class::TEXT,
    class::MD5,
    nutch::CRAWL_DATUM,
    nutch::INLINK,
    nutch::INLINKS,
    nutch::INDEX_ACTION,
    nutch::METADATA,
    nutch::OUTLINK,
    nutch::PARSE_TEXT,
    nutch::PARSE_DATA,
    nutch::PARSE_IMPL,
    nutch::PARSE_STATUS,
    nutch::CONTENT,
    nutch::PROTOCOL_STATUS,
    nutch::LINK_DATUM,
    nutch::HOST_DATUM,
];

/// A value of one of a table of classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NutchWritable<'a>(pub Any<'a>);

impl<'a> NutchWritable<'a> {
    /// Reads an index and a value.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let index = d.u8("index of a class")?;
        let Some(class) = TABLE.get(usize::from(index)) else {
            return Err(d.error("an index of a class, 0 to 23", index.to_string()));
        };
        let bytes = d.measured(|d| NutchClasses.skip(class, d))?;
        Ok(NutchWritable(Any { class: (*class).into(), bytes: bytes.into() }))
    }

    /// Writes index and value; `false`, and nothing, for a class outside the table.
    pub fn encode(&self, out: &mut Vec<u8>) -> bool {
        let Some(index) = TABLE.iter().position(|class| *class == self.0.class) else { return false };
        out.put_u8(index as u8);
        out.put(&self.0.bytes);
        true
    }
}

/// A value with metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaWrapper<'a> {
    /// The value.
    pub value: NutchWritable<'a>,
    /// Its metadata.
    pub metadata: Metadata<'a>,
}

impl<'a> MetaWrapper<'a> {
    /// Reads a value and its metadata.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        Ok(MetaWrapper { value: NutchWritable::decode(d)?, metadata: Metadata::decode(d, Default::default())? })
    }

    /// Writes value and metadata; `false`, and nothing, for a class outside the table.
    pub fn encode(&self, out: &mut Vec<u8>) -> bool {
        let written = self.value.encode(out);
        if written {
            self.metadata.encode(out);
        }
        written
    }
}
