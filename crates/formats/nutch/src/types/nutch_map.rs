//! Nutch's own `MapWritable`, inside a CrawlDatum of versions 4 to 6.
//!
//! ```text
//! i32  entries
//! if there are any:
//!   i8   classes outside the built-in table
//!   [ i8 id, class name ]
//!   [ i8 class of the key, i8 class of the value, key, value ]     both ids come first
//! ```
//! Strings, also those of class names, are `UTF8` in 0.8 and `Text` from 0.9 on. It is read as Hadoop's map, and written
//! as that.

use super::{ProtocolStatus, StringForm};
use crate::class::{self as nutch, NutchClasses};
use std::borrow::Cow;
use trawl_hadoop::class::{self, ClassSet as _};
use trawl_hadoop::{Any, Decoded, Decoder, MapWritable, class_name};

const FIRST_ID: i8 = -127;

/// The built-in classes from the first id on.
fn built_in(id: i8, form: StringForm) -> Option<&'static str> {
    let string = if form == StringForm::Text { class::TEXT } else { class::UTF8 };
    let table = [
        class::NULL,
        class::LONG,
        string,
        class::MD5,
        nutch::FETCHER_OUTPUT,
        nutch::CONTENT,
        nutch::PARSE_TEXT,
        nutch::PARSE_DATA,
        nutch::NUTCH_MAP,
        class::BYTES,
        class::FLOAT,
        class::INT,
        class::OBJECT,
        nutch::PROTOCOL_STATUS,
    ];
    // 0.8 ended before the last one and gave its id to the first declared class.
    let n = usize::try_from(i16::from(id) - i16::from(FIRST_ID)).ok()?;
    table.get(n).copied().filter(|_| n < 13 || form == StringForm::Text)
}

/// Reads Nutch's own map.
pub fn decode_nutch_map<'a>(d: &mut Decoder<'a>, form: StringForm) -> Decoded<MapWritable<'a>> {
    d.enter("a map")?;
    let count = d.count(2, "number of entries")?;
    let mut entries = Vec::with_capacity(count.min(64));
    if count > 0 {
        let classes = d.i8("number of classes")?;
        let mut declared = Vec::new();
        for _ in 0..classes {
            let id = d.i8("id of a class")?;
            let name = match form {
                StringForm::Text => d.text_bytes("name of a class")?,
                StringForm::Utf8 => d.utf8_bytes("name of a class")?,
            };
            declared.push((id, class_name(name, d)?));
        }
        let class_of = |id: i8, d: &Decoder<'_>| -> Decoded<Cow<'a, str>> {
            // A declared id goes before a built-in one: 0.8 declares what 0.9 has in its table.
            let found = declared.iter().find(|(known, _)| *known == id).map(|(_, name)| name.clone());
            found
                .or_else(|| built_in(id, form).map(Cow::Borrowed))
                .ok_or_else(|| d.error("the id of a class", id.to_string()))
        };
        for _ in 0..count {
            let key_class = class_of(d.i8("class of a key")?, d)?;
            let value_class = class_of(d.i8("class of a value")?, d)?;
            let key = any(d, key_class, form)?;
            entries.push((key, any(d, value_class, form)?));
        }
    }
    d.leave();
    Ok(MapWritable::new(entries))
}

fn any<'a>(d: &mut Decoder<'a>, class: Cow<'a, str>, form: StringForm) -> Decoded<Any<'a>> {
    let bytes = d.measured(|d| match &*class {
        nutch::NUTCH_MAP => decode_nutch_map(d, form).map(drop),
        nutch::PROTOCOL_STATUS => ProtocolStatus::decode(d).map(drop),
        name => NutchClasses.skip(name, d),
    })?;
    Ok(Any { class, bytes: Cow::Borrowed(bytes) })
}
