//! Telling unversioned variants apart, and printing records of any class.
//!
//! Outlink and Inlink grew a field without a version, and strings changed from `UTF8` to `Text` in values that have none.
//! Every record has its exact length: the variant that reads all of it is the right one. It is decided once for a file, by
//! the first record that only one variant reads.

use crate::class::{self, NutchClasses};
use crate::json;
use crate::types::{Inlink, Inlinks, LinkForm, Metadata, Outlink, ParseData, StringForm, whole};
use serde_json::{Map, Value};
use trawl_hadoop::json::{Detail, JsonClasses as _};
use trawl_hadoop::seq::{Compression, Header, Record};
use trawl_hadoop::{Decoded, Decoder, ValueError, json as hadoop_json};

/// The variants of one file, as far as its records have shown them.
#[derive(Debug, Clone, Default)]
pub struct Dialect {
    links: Option<LinkForm>,
    strings: Option<StringForm>,
}

/// Reads all of `bytes` in the decided variant, or else in the first that fits; decides if it is the only one.
fn choose<'a, T, V: Copy>(
    bytes: &'a [u8],
    decided: &mut Option<V>,
    variants: &[V],
    decode: impl Fn(&mut Decoder<'a>, V) -> Decoded<T>,
) -> Decoded<T> {
    if let Some(variant) = *decided {
        return whole(bytes, |d| decode(d, variant));
    }
    let mut first = None;
    let mut fitting = Vec::new();
    for variant in variants {
        match (whole(bytes, |d| decode(d, *variant)), &first) {
            (Ok(value), _) => {
                if fitting.is_empty() {
                    first = Some(Ok(value));
                }
                fitting.push(*variant);
            }
            (Err(e), None) => first = Some(Err(e)),
            (Err(_), Some(_)) => {}
        }
    }
    if let [only] = fitting.as_slice() {
        *decided = Some(*only);
    }
    first.unwrap_or_else(|| Err(Decoder::new(bytes).error("a variant", "none")))
}

impl Dialect {
    /// All links to a page.
    pub fn inlinks<'a>(&mut self, bytes: &'a [u8]) -> Decoded<Inlinks<'a>> {
        choose(bytes, &mut self.links, &LinkForm::ALL, Inlinks::decode)
    }

    /// A link to a page.
    pub fn inlink<'a>(&mut self, bytes: &'a [u8]) -> Decoded<Inlink<'a>> {
        choose(bytes, &mut self.links, &LinkForm::ALL, Inlink::decode)
    }

    /// A link from a page.
    pub fn outlink<'a>(&mut self, bytes: &'a [u8]) -> Decoded<Outlink<'a>> {
        choose(bytes, &mut self.links, &LinkForm::ALL, Outlink::decode)
    }

    /// Title, links and metadata of a page.
    pub fn parse_data<'a>(&mut self, bytes: &'a [u8]) -> Decoded<ParseData<'a>> {
        // Versions below 5 have one form only, and say so.
        if bytes.first() != Some(&5) {
            return whole(bytes, |d| ParseData::decode(d, LinkForm::Utf8));
        }
        choose(bytes, &mut self.links, &[LinkForm::WithMetadata, LinkForm::Plain], ParseData::decode)
    }

    /// Names with values.
    pub fn metadata<'a>(&mut self, bytes: &'a [u8]) -> Decoded<Metadata<'a>> {
        choose(bytes, &mut self.strings, &[StringForm::Text, StringForm::Utf8], Metadata::decode)
    }

    /// A record's value, or key, as JSON.
    pub fn json(&mut self, class: &str, bytes: &[u8], detail: Detail) -> Decoded<Value> {
        match class {
            class::INLINKS => json::inlinks(&self.inlinks(bytes)?, detail),
            class::INLINK => json::inlink(&self.inlink(bytes)?, detail),
            class::OUTLINK => json::outlink(&self.outlink(bytes)?, detail),
            class::PARSE_DATA => json::parse_data(&self.parse_data(bytes)?, detail),
            class::METADATA => Ok(json::metadata(&self.metadata(bytes)?, detail)),
            _ => whole(bytes, |d| NutchClasses.json(class, d, detail)),
        }
    }
}

/// Prints the records of one file as JSON.
#[derive(Debug)]
pub struct RecordPrinter {
    key_class: String,
    value_class: String,
    blocked: bool,
    dialect: Dialect,
    detail: Detail,
    count: u64,
    /// What of the last record is of a known class and does not decode.
    damage: Option<String>,
}

/// Whether a value was not decoded because nothing is known of its class: that is no damage.
pub(crate) fn is_unknown_class(error: &ValueError) -> bool {
    error.expected.contains("a class whose l")
}

impl RecordPrinter {
    /// For a file with this header.
    pub fn new(header: &Header, detail: Detail) -> Self {
        RecordPrinter {
            key_class: class::canonical(&header.stored_key_class).into_owned(),
            value_class: class::canonical(&header.stored_value_class).into_owned(),
            blocked: header.compression == Compression::Block,
            dialect: Dialect::default(),
            detail,
            count: 0,
            damage: None,
        }
    }

    /// A record: its number, place (not in blocks), key, value, lengths, and a checksum of the value's bytes. A value of an
    /// unknown class, or one that does not decode, is its bytes in hex; `undecoded` then says why.
    pub fn print(&mut self, record: &Record<'_>) -> Value {
        let mut line = Map::new();
        line.insert("i".into(), self.count.into());
        self.count += 1;
        if !self.blocked {
            line.insert("pos".into(), record.at.offset.into());
        }
        let (mut undecoded, mut damage) = (Vec::new(), Vec::new());
        for (name, class, bytes) in [("key", &self.key_class, record.key), ("value", &self.value_class, record.value)] {
            let value = self.dialect.json(class, bytes, self.detail).unwrap_or_else(|e| {
                let why = format!("{name}: {class}{e}");
                damage.extend((!is_unknown_class(&e)).then(|| why.clone()));
                undecoded.push(why);
                hadoop_json::bytes(bytes, self.detail)
            });
            line.insert(name.into(), value);
        }
        line.insert("key_len".into(), record.key.len().into());
        line.insert("value_len".into(), record.value.len().into());
        line.insert("value_crc32".into(), format!("{:08x}", crc32fast::hash(record.value)).into());
        if !undecoded.is_empty() {
            line.insert("undecoded".into(), undecoded.join("; ").into());
        }
        self.damage = (!damage.is_empty()).then(|| damage.join("; "));
        line.into()
    }

    /// Why the key or value of the last record could not be decoded, though its class is known.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }
}
