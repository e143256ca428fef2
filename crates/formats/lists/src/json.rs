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
    let text = &*whole_characters(text);
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

/// JSON whose texts are Unicode: half of a surrogate pair (`\ud83d`, where a program cut a text in the middle of a character)
/// becomes its bytes, escaped (`%ED%A0%BD`), as bytes that are not UTF-8 are. Most JSON has none and stays as it is.
pub(crate) fn whole_characters(text: &str) -> Cow<'_, str> {
    let may_have = |escape: &str| memchr::memmem::find(text.as_bytes(), escape.as_bytes()).is_some();
    if !may_have("\\ud") && !may_have("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let used = match (half(escape), escape.get(6..).and_then(half)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(lone @ 0xD800..=0xDFFF), _) => {
                trawl_url::push_surrogate(lone, &mut out);
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            // Any other escape, of which the second byte may be a backslash.
            _ => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (kept, behind) = escape.split_at_checked(used).unwrap_or((escape, ""));
        out.push_str(kept);
        rest = behind;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The number of `\uXXXX` at the beginning of a text.
fn half(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
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

    #[test]
    fn halves_of_characters_are_escaped() {
        for (json, expected) in [
            (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
            (r#""cut \ud83d""#, r#""cut %ED%A0%BD""#),
            (r#""\uDE00\ud83d\ud83d\uDE00x""#, r#""%ED%B8%80%ED%A0%BD\ud83d\uDE00x""#),
            (r#""\\ud83d\\\ud83d""#, r#""\\ud83d\\%ED%A0%BD""#),
            (r#""\u00e9\ud8""#, r#""\u00e9\ud8""#),
            (r#""\é\ud800"#, r#""\é%ED%A0%80"#),
            ("\\ud", "\\ud"),
        ] {
            assert_eq!(whole_characters(json), expected, "{json}");
        }
        let object = |text: &str| object(&Options::default(), false, text).unwrap().finish().unwrap();
        let cut = object(r#"{"url":"http://b.com/","title":"cut \ud83d","t\ud83d":{"a":"\ude00"}}"#);
        let extras = r#"{"title":"cut %ED%A0%BD","t%ED%A0%BD":{"a":"%ED%B8%80"}}"#;
        assert_eq!((cut.url.as_str(), cut.extras.as_deref()), ("http://b.com/", Some(extras)));
        assert_ne!(object(r#"{"url":"http://a.com/\ud800"}"#).url, object(r#"{"url":"http://a.com/\ud801"}"#).url);
    }

    proptest! {
        #[test]
        fn texts_of_whole_characters_are_json(text in "(\\\\u[dD][89a-fA-F]00|\\\\\\\\|\\\\n|x|é){0,8}") {
            let json = format!("\"{text}\"");
            prop_assert!(serde_json::from_str::<String>(&whole_characters(&json)).is_ok(), "{}", json);
        }

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
