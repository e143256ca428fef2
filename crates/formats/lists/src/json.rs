//! JSON objects as records, their values byte for byte as written but for white space.

use crate::fields::{Fields, Role, Roles, Value};
use crate::{Options, Purpose};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// What the members of the object that `text` is say. Numbers keep every digit; of a seed all that is not its URL stays as it is
/// written.
pub(crate) fn object(options: &Options, is_cdx: bool, text: &str) -> Result<Fields, serde_json::Error> {
    let members: Members<'_> = serde_json::from_str(text)?;
    let roles = Roles::of(options, is_cdx, members.0.iter().map(|(name, _)| &**name));
    let mut fields = roles.fields();
    for (role, (name, raw)) in roles.each.iter().zip(&members.0) {
        let json = raw.get();
        match json.as_bytes().first() {
            _ if options.purpose == Purpose::Crawl && *role == Role::Extra => {
                fields.put(*role, name, Value::Json(json))
            }
            Some(b'"') => fields.put(*role, name, Value::Text(&serde_json::from_str::<Cow<'_, str>>(json)?)),
            Some(b'-' | b'0'..=b'9') => fields.put(*role, name, Value::Number(json)),
            Some(b'n') => fields.put(*role, name, Value::Null),
            _ => fields.put(*role, name, Value::Json(&compact(json))),
        }
    }
    Ok(fields)
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
            let _ = object(&Options::default(), false, &text);
        }
    }
}
