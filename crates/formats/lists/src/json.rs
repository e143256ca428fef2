//! Members of a JSON object, their values byte for byte as written but for white space.

use crate::fields::{Names, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Hands over each member of the object that `text` is. Numbers keep every digit; where only the URL is wanted, all other
/// values stay as they are written.
pub(crate) fn members(
    text: &str,
    names: Names,
    mut each: impl FnMut(&str, Value<'_>),
) -> Result<(), serde_json::Error> {
    let members: Members<'_> = serde_json::from_str(text)?;
    for (name, raw) in &members.0 {
        let json = raw.get();
        match json.as_bytes().first() {
            _ if names == Names::Url && !names.is_url(name) => each(name, Value::Json(json)),
            Some(b'"') => each(name, Value::Text(&serde_json::from_str::<std::borrow::Cow<'_, str>>(json)?)),
            Some(b'-' | b'0'..=b'9') => each(name, Value::Number(json)),
            Some(b'n') => each(name, Value::Null),
            _ => each(name, Value::Json(&compact(json))),
        }
    }
    Ok(())
}

struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Drops the white space between tokens.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_text, mut escaped) = (false, false);
    for c in json.chars() {
        if in_text {
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c == '"' {
            in_text = true;
        } else if c.is_ascii_whitespace() {
            continue;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn compact_keeps_texts() {
        assert_eq!(compact("{ \"a b\" : [ 1 , \"\\\" x \\\\\" , 2 ] }"), "{\"a b\":[1,\"\\\" x \\\\\",2]}");
    }

    proptest! {
        #[test]
        fn compact_means_the_same(text in "[ a\"\\\\]{0,12}", n: i64) {
            let value = serde_json::json!({ text.clone(): [n, text, {"k": null}] });
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(compact(&pretty), serde_json::to_string(&value).unwrap());
        }

        #[test]
        fn never_panics(text in "[{}\\[\\]\":,\\\\ua0-]{0,60}") {
            let _ = members(&text, Names::General, |_, _| ());
        }
    }
}
