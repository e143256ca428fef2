//! One line of an index.

use crate::error::{At, Error, Result, shown};
use trawl_model::{Digest, Place, UnixMillis, UrlRecord};

/// A line: key, time, and fields in order. All values are text, as cdxj-indexer writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdxjLine {
    /// Sort key of the URL.
    pub key: String,
    /// 14 (or 17) digits.
    pub timestamp: String,
    /// Names and values, in order.
    pub fields: Vec<(String, String)>,
}

/// The key of a URL's lines: [`trawl_url::surt::cdxj`]. A URL that it refuses is its own key, as in other tools.
pub fn surt_key(url: &str) -> String {
    trawl_url::surt::cdxj(url).unwrap_or_else(|_| url.to_owned())
}

impl CdxjLine {
    /// A line without fields yet.
    pub fn new(url: &str, date: UnixMillis) -> Self {
        CdxjLine { key: surt_key(url), timestamp: date.digits14(), fields: Vec::new() }
    }

    /// Parses a line without its line end. Values that are not text (numbers, lists) are kept as their JSON.
    pub fn parse(line: &[u8]) -> Result<Self> {
        let bad = |expected| Error::corrupt(At::default(), expected, shown(line));
        let text = std::str::from_utf8(line).map_err(|_| bad("a CDXJ line in UTF-8"))?;
        let (key, rest) = text.split_once(' ').ok_or_else(|| bad("a CDXJ line: key, time, JSON"))?;
        let (timestamp, json) = rest.split_once(' ').ok_or_else(|| bad("a CDXJ line: key, time, JSON"))?;
        if timestamp.is_empty() || timestamp.len() > 17 || !timestamp.bytes().all(|b| b.is_ascii_digit()) {
            return Err(bad("a time of up to 17 digits"));
        }
        let value: serde_json::Value = serde_json::from_str(json).map_err(|_| bad("a JSON object"))?;
        let serde_json::Value::Object(map) = value else { return Err(bad("a JSON object")) };
        let text_of = |value: serde_json::Value| match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        let fields = map.into_iter().map(|(name, value)| (name, text_of(value))).collect();
        Ok(CdxjLine { key: key.to_owned(), timestamp: timestamp.to_owned(), fields })
    }

    /// A line as it is shown: without the user name and password of its URL, in its key, too; `None` if it has none. The key of
    /// a URL in an odd spelling may hold them.
    pub fn without_credentials(line: &[u8]) -> Option<String> {
        memchr::memchr(b'@', line)?;
        let mut parsed = CdxjLine::parse(line).ok()?;
        let shown = match trawl_url::without_userinfo(parsed.get("url")?) {
            std::borrow::Cow::Borrowed(_) => return None,
            std::borrow::Cow::Owned(shown) => shown,
        };
        parsed.key = surt_key(&shown);
        parsed.fields.iter_mut().filter(|(name, _)| name == "url").for_each(|(_, url)| url.clone_from(&shown));
        Some(parsed.to_text())
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// Adds a field.
    pub fn put(&mut self, name: &str, value: impl Into<String>) {
        self.fields.push((name.to_owned(), value.into()));
    }

    /// Where the capture lies, if the line says so.
    pub fn place(&self) -> Option<Place> {
        let number = |name: &str| self.get(name)?.parse().ok();
        Some(Place::new(self.get("filename")?, number("offset")?, number("length").unwrap_or(0)))
    }

    /// What the lake takes of it.
    pub fn to_record(&self) -> UrlRecord {
        UrlRecord {
            url: self.get("url").unwrap_or_default().to_owned(),
            ts: UnixMillis::parse(&self.timestamp).ok(),
            status: self.get("status").and_then(|s| s.parse().ok()),
            content_type: self.get("mime").filter(|m| !m.is_empty()).map(str::to_owned),
            digest: self.get("digest").and_then(|d| Digest::parse(d).ok()),
            body_length: None,
            place: self.place(),
            extras: None,
        }
    }

    /// The line without its line end: what is sorted and written.
    pub fn to_text(&self) -> String {
        let mut out = String::with_capacity(self.key.len() + 300);
        out.push_str(&self.key);
        out.push(' ');
        out.push_str(&self.timestamp);
        out.push_str(" {");
        for (i, (name, value)) in self.fields.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            push_json(&mut out, name);
            out.push_str(": ");
            push_json(&mut out, value);
        }
        out.push('}');
        out
    }
}

/// A JSON string in ASCII, with the escapes that Python's `json.dumps` uses: lines of both tools compare equal.
pub(super) fn push_json(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}
