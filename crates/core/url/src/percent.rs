//! Percent coding: one table of byte classes and one rewriting loop, used by every form.

/// Which bytes a part of a URL may hold as they are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Class(u8);

/// `A-Za-z0-9-._~`: an escape of one of these means the same as the byte.
pub const UNRESERVED: Class = Class(1);
/// Lake form, path: printable ASCII except space and ``"#<>?\^`{|}``.
pub const LAKE_PATH: Class = Class(2);
/// Lake form, query: as the path, with `?` but without `'`, as browsers send it.
pub const LAKE_QUERY: Class = Class(4);
/// Key form, path: RFC 3986's path characters and `[]`.
pub const KEY_PATH: Class = Class(8);
/// Key form, query: unreserved bytes and `+`, which stands for a space.
pub const KEY_QUERY: Class = Class(32);
/// User information: RFC 3986's characters, `%` and `@`.
pub const USERINFO: Class = Class(16);
/// Key form, what the reference's grammar lets a host hold before IDNA has its say.
pub const HOST: Class = Class(64);

static CLASSES: [u8; 256] = classes();

#[allow(clippy::indexing_slicing)] // runs at compile time only: out of bounds would not build
const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        table[i] = classes_of(i as u8);
        i += 1;
    }
    table
}

const fn classes_of(byte: u8) -> u8 {
    let everywhere = LAKE_PATH.0 | LAKE_QUERY.0 | KEY_PATH.0 | USERINFO.0 | HOST.0;
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => UNRESERVED.0 | KEY_QUERY.0 | everywhere,
        b'+' => KEY_QUERY.0 | everywhere,
        b'!' | b'$' | b'&' | b'(' | b')' | b'*' | b',' | b';' | b'=' | b':' => everywhere,
        b'\'' => everywhere & !LAKE_QUERY.0,
        b'@' => everywhere & !HOST.0,
        b'/' => everywhere & !(HOST.0 | USERINFO.0),
        b'[' | b']' => everywhere & !USERINFO.0,
        b'?' => LAKE_QUERY.0,
        b'%' => USERINFO.0 | HOST.0,
        b'<' | b'>' | b'"' => HOST.0,
        _ => 0,
    }
}

impl Class {
    /// Whether a byte belongs to the class.
    pub fn has(self, byte: u8) -> bool {
        CLASSES.get(usize::from(byte)).is_some_and(|classes| classes & self.0 != 0)
    }
}

/// Whether all bytes lie in `low..=high`. Looks at every byte, without an early end, so that it compiles to vector code.
pub fn all_within(bytes: &[u8], low: u8, high: u8) -> bool {
    bytes.iter().fold(true, |all, byte| all & (low..=high).contains(byte))
}

/// The value of a hex digit.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// The byte that `%XX` at `at` stands for.
pub fn escape_at(text: &[u8], at: usize) -> Option<u8> {
    match text.get(at..at + 3) {
        Some(&[b'%', high, low]) => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    }
}

/// Whether every `%` is followed by two hex digits.
pub fn well_formed(text: &[u8]) -> bool {
    memchr::memchr_iter(b'%', text).all(|at| escape_at(text, at).is_some())
}

/// Decodes escapes until none is left, also those that decoding brings about (`%2541` is `A`). Linear: each escape shrinks the
/// output, and only its tail can become a new one.
pub fn decode_fully(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        out.push(byte);
        while let Some(start) = out.len().checked_sub(3)
            && let Some(decoded) = escape_at(&out, start)
        {
            out.truncate(start);
            out.push(decoded);
        }
    }
    out
}

/// Appends `%XX` in upper case.
pub fn push_escaped(byte: u8, out: &mut String) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let hex = |nibble: u8| HEX.get(usize::from(nibble)).copied().unwrap_or('0');
    out.push('%');
    out.push(hex(byte >> 4));
    out.push(hex(byte & 15));
}

/// Copies `text` so that each byte has one spelling: bytes of `keep` as they are, escapes of unreserved bytes decoded, all other
/// escapes in upper case, everything else escaped. A `%` that starts no escape becomes `%25`: left alone, the digits that
/// decoding brings behind it could make it an escape the next time.
pub fn normalise(text: &str, keep: Class, out: &mut String) {
    normalise_with(text, keep, out, push_escaped);
}

/// As [`normalise`], with the caller's own way to write a byte that may not stand as it is.
pub fn normalise_with(text: &str, keep: Class, out: &mut String, escape: impl Fn(u8, &mut String)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let run = rest.iter().position(|&b| !keep.has(b)).unwrap_or(rest.len());
        out.push_str(text.get(at..at + run).unwrap_or_default());
        at += run;
        let Some(&byte) = bytes.get(at) else { return };
        match escape_at(bytes, at) {
            Some(decoded) => {
                if UNRESERVED.has(decoded) {
                    out.push(char::from(decoded));
                } else {
                    escape(decoded, out);
                }
                at += 3;
            }
            None => {
                escape(byte, out);
                at += 1;
            }
        }
    }
}

/// Escapes half of a surrogate pair as the three bytes that it would have in UTF-8, so that texts that differ only there stay
/// different: `U+D800` is `%ED%A0%80`.
pub fn push_surrogate(half: u16, out: &mut String) {
    let bits = u32::from(half);
    for byte in [0xE0 | bits >> 12, 0x80 | bits >> 6 & 0x3F, 0x80 | bits & 0x3F] {
        push_escaped((byte & 0xFF) as u8, out);
    }
}

/// Bytes as text, losing nothing: what is not UTF-8 is escaped.
pub fn text_of(raw: &[u8]) -> std::borrow::Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(raw) {
        return text.into();
    }
    let mut text = String::with_capacity(raw.len() + 16);
    for chunk in raw.utf8_chunks() {
        text.push_str(chunk.valid());
        for &byte in chunk.invalid() {
            push_escaped(byte, &mut text);
        }
    }
    text.into()
}
