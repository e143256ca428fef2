//! Header text under construction, and values that fit into one line.

use trawl_model::{Digest, UnixMillis};

/// A record header being written.
#[derive(Debug)]
pub(crate) struct HeaderText {
    text: Vec<u8>,
}

impl HeaderText {
    pub(crate) fn new(record_type: &str) -> Self {
        let mut text = Vec::with_capacity(512);
        text.extend_from_slice(b"WARC/1.1\r\n");
        let mut header = HeaderText { text };
        header.put("WARC-Type", record_type);
        header
    }

    /// Adds a field. Line ends in a value would begin another field: they become spaces.
    pub(crate) fn put(&mut self, name: &str, value: &str) {
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(b": ");
        self.text.extend(value.bytes().map(|b| if b.is_ascii_control() { b' ' } else { b }));
        self.text.extend_from_slice(b"\r\n");
    }

    pub(crate) fn put_id(&mut self, name: &str, id: &str) {
        self.put(name, &format!("<{id}>"));
    }

    pub(crate) fn put_date(&mut self, name: &str, date: UnixMillis) {
        self.put(name, &date.to_string());
    }

    pub(crate) fn put_digest(&mut self, name: &str, digest: &Digest) {
        self.put(name, &digest.to_string());
    }

    /// Type and length of the block, the empty line, and done.
    pub(crate) fn finish(mut self, content_type: &str, block_digest: &Digest, length: u64) -> Vec<u8> {
        self.put("Content-Type", content_type);
        self.put_digest("WARC-Block-Digest", block_digest);
        self.put("Content-Length", &length.to_string());
        self.text.extend_from_slice(b"\r\n");
        self.text
    }
}

/// A URL as a header value: what a URI cannot contain is percent-encoded. `None` if it has no scheme, so that it is no URI
/// at all.
pub(crate) fn header_uri(url: &str) -> Option<String> {
    let (scheme, _) = url.split_once(':')?;
    let fits = |(i, b): (usize, u8)| b.is_ascii_alphabetic() || i > 0 && (b.is_ascii_digit() || b"+-.".contains(&b));
    if scheme.is_empty() || !scheme.bytes().enumerate().all(fits) {
        return None;
    }
    let mut out = String::with_capacity(url.len());
    for b in url.bytes() {
        if b.is_ascii_graphic() && !matches!(b, b'<' | b'>' | b'"') {
            out.push(char::from(b));
        } else {
            out.push_str(&format!("%{b:02X}"));
        }
    }
    Some(out)
}

/// Adds `name: value` to a block of `application/warc-fields`. A value that would not survive as it is (line ends, other
/// control characters, blanks at its ends, a leading quote, emptiness) is written as a JSON string.
pub(crate) fn put_field(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    let plain = !value.is_empty()
        && !value.starts_with('"')
        && value.trim() == value
        && !value.contains(|c: char| c.is_control() || c == '\u{2028}' || c == '\u{2029}');
    if plain {
        out.extend_from_slice(value.as_bytes());
    } else {
        out.extend_from_slice(serde_json::Value::from(value).to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

/// Names and values of a block of `application/warc-fields`, JSON strings taken back.
pub(crate) fn parse_fields(block: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(block);
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.split('\n') {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
            continue;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        let decoded = if value.starts_with('"') { serde_json::from_str(value).ok() } else { None };
        fields.push((name.trim().to_owned(), decoded.unwrap_or_else(|| value.to_owned())));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn urls_become_header_values() {
        assert_eq!(header_uri("http://a.example/é b").as_deref(), Some("http://a.example/%C3%A9%20b"));
        assert_eq!(header_uri("http://a.example/\r\nX: y").as_deref(), Some("http://a.example/%0D%0AX:%20y"));
        assert_eq!(header_uri("no url"), None);
        assert_eq!(header_uri("not a scheme: x"), None);
    }

    #[test]
    fn plain_values_stay_readable() {
        let mut out = Vec::new();
        put_field(&mut out, "metaJson", r#"{"a":1}"#);
        put_field(&mut out, "error", "two\nlines");
        assert_eq!(out, b"metaJson: {\"a\":1}\r\nerror: \"two\\nlines\"\r\n");
    }

    proptest! {
        #[test]
        fn any_value_comes_back(value in "(?s).{0,60}") {
            let mut out = Vec::new();
            put_field(&mut out, "x", &value);
            prop_assert_eq!(parse_fields(&out), [("x".to_owned(), value)]);
        }
    }
}
