//! Byte strings for people and for JSON.

use serde::{Serialize, Serializer};
use std::fmt;

/// A byte string. JSON has it as text if it is UTF-8, else as `{"hex": ...}`; people see escapes for what is no text.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(pub &'a [u8]);

#[derive(Serialize)]
struct Hex {
    hex: String,
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Hex { hex: data_encoding::HEXLOWER.encode(self.0) }.serialize(serializer),
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => f.write_str("\\\\")?,
                    '\t' => f.write_str("\\t")?,
                    '\n' => f.write_str("\\n")?,
                    '\r' => f.write_str("\\r")?,
                    c if c.is_control() => write!(f, "\\x{:02x}", u32::from(c))?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_and_told() {
        assert_eq!(Text(b"a\tb\\\xff\n\0").to_string(), "a\\tb\\\\\\xff\\n\\x00");
        assert_eq!(serde_json::to_string(&Text("ü\n".as_bytes())).unwrap(), "\"ü\\n\"");
        assert_eq!(serde_json::to_string(&Text(b"\xff\x00")).unwrap(), "{\"hex\":\"ff00\"}");
    }
}
