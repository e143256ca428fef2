//! Nutch's values, one file each. Every version is read; the current one is written.
//!
//! Values borrow the bytes they are read from. Strings are [`Text`]: bytes that should be UTF-8.

mod content;
mod crawl_datum;
mod document;
mod host_datum;
mod links;
mod metadata;
mod nutch_map;
mod parse;
mod protocol_status;
mod selector;
mod status;
mod webgraph;
mod wrapper;

#[cfg(test)]
mod tests;

pub use content::Content;
pub use crawl_datum::{CrawlDatum, Interval};
pub use document::{FieldValue, NutchDocument, NutchField, NutchIndexAction};
pub use host_datum::HostDatum;
pub use links::{Inlink, Inlinks, LinkForm, Outlink};
pub use metadata::Metadata;
pub use nutch_map::decode_nutch_map;
pub use parse::{ParseData, ParseImpl, ParseStatus, ParseText};
pub use protocol_status::ProtocolStatus;
pub use selector::SelectorEntry;
pub use status::Status;
pub use webgraph::{LinkDatum, LinkNode, Node};
pub use wrapper::{MetaWrapper, NutchWritable};

use trawl_hadoop::{Decoded, Decoder, Text};

/// How the strings of a value without a version of its own are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StringForm {
    /// `Text`, from 0.9 on.
    #[default]
    Text,
    /// `UTF8`, up to 0.8.
    Utf8,
}

impl StringForm {
    pub(crate) fn read<'a>(self, d: &mut Decoder<'a>, what: &'static str) -> Decoded<Text<'a>> {
        match self {
            StringForm::Text => d.text(what),
            StringForm::Utf8 => d.utf8(what),
        }
    }
}

/// Decodes a value that takes all of `bytes`.
pub fn whole<'a, T>(bytes: &'a [u8], decode: impl FnOnce(&mut Decoder<'a>) -> Decoded<T>) -> Decoded<T> {
    let mut d = Decoder::new(bytes);
    let value = decode(&mut d)?;
    d.end()?;
    Ok(value)
}

/// The serialised form of a value.
pub fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}
