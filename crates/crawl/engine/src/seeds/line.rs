//! One line of a seed list.

use super::Seed;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// What a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Blank, or a comment.
    Nothing,
    Seed(Seed),
    /// Neither, with the reason.
    Reject(String, &'a [u8]),
}

pub(crate) fn parse_line(line: &[u8]) -> Line<'_> {
    let text = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if text.is_empty() || text.starts_with(b"#") {
        return Line::Nothing;
    }
    let Ok(text_str) = std::str::from_utf8(text) else {
        return Line::Reject("expected UTF-8".into(), line);
    };
    let (raw, meta) = match text_str.starts_with('{') {
        false => (text_str.to_owned(), None),
        true => match object(text_str) {
            Ok((Some(url), meta)) => (url, meta),
            Ok((None, _)) => return Line::Reject("expected an object with a \"url\" that is a string".into(), line),
            Err(e) => return Line::Reject(format!("expected a JSON object: {e}"), line),
        },
    };
    match trawl_url::as_found(&raw) {
        Ok(url) => Line::Seed(Seed { url, meta }),
        Err(reject) => Line::Reject(reject.to_string(), line),
    }
}

/// The URL of an object, and its other fields: same order, same values, byte for byte.
fn object(text: &str) -> Result<(Option<String>, Option<String>), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let fields = deserializer.deserialize_map(Fields)?;
    deserializer.end()?;
    let mut meta = String::new();
    let mut url = None;
    for (key, value) in fields {
        if key == "url" {
            url = serde_json::from_str(value.get()).ok();
            continue;
        }
        meta.push(if meta.is_empty() { '{' } else { ',' });
        meta.push_str(&serde_json::to_string(&key)?);
        meta.push(':');
        meta.push_str(value.get());
    }
    if !meta.is_empty() {
        meta.push('}');
    }
    Ok((url, (!meta.is_empty()).then_some(meta)))
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}
