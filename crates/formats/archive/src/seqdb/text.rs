//! Byte strings and superblocks, for people and as JSON.

use serde::Serialize;
use serde_json::{Value, json};
use trawl_seqdb::Inspection;

/// A byte string: text where it is UTF-8, else base64 in JSON and escapes for people.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(pub &'a [u8]);

#[derive(Serialize)]
struct Base64 {
    base64: String,
}

impl Serialize for Text<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Base64 { base64: data_encoding::BASE64.encode(self.0) }.serialize(serializer),
        }
    }
}

impl std::fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    '\t' => f.write_str("\\t")?,
                    '\n' => f.write_str("\\n")?,
                    '\r' => f.write_str("\\r")?,
                    c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                    // The other control characters, which a terminal might obey too.
                    c if c.is_control() => {
                        for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                            write!(f, "\\x{byte:02x}")?;
                        }
                    }
                    c => write!(f, "{c}")?,
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// What a superblock says, as JSON. What is absent has no member, but `clean`: there `null` says that the file cannot tell.
pub fn superblock(seen: &Inspection) -> Value {
    let variables = seen.variables.iter().map(|v| match &v.remark {
        Some(remark) => json!({ "name": v.name, "value": v.value, "remark": remark }),
        None => json!({ "name": v.name, "value": v.value }),
    });
    let mut all = json!({
        "format": seen.kind.as_str(), "purpose": seen.purpose, "unix_bytes": seen.unix_bytes, "bytes": seen.bytes,
        "clean": seen.clean, "variables": variables.collect::<Vec<_>>(),
    });
    if let (Some(writer), Some(all)) = (&seen.writer, all.as_object_mut()) {
        all.insert("writer".to_owned(), writer.as_str().into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_and_told() {
        assert_eq!(Text(b"a\tb\\\xff\n\0").to_string(), "a\\tb\\\\\\xff\\n\\x00");
        assert_eq!(Text("\u{9b}31m".as_bytes()).to_string(), "\\xc2\\x9b31m", "a terminal would obey it");
        assert_eq!(serde_json::to_string(&Text("ü\n".as_bytes())).unwrap(), "\"ü\\n\"");
        assert_eq!(serde_json::to_string(&Text(b"\xff\x00")).unwrap(), "{\"base64\":\"/wA=\"}");
    }
}
