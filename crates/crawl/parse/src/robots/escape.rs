//! Percent-encoding of rule patterns and URL paths, so that both sides compare octet by octet.
//!
//! RFC 9309 section 2.2.2: an encoded unreserved character equals the plain one, anything that may not stand in
//! a URL is encoded, and hexadecimal digits have one case. Reserved characters keep the form they came in, since
//! `%2F` and `/` name different resources.

use std::borrow::Cow;

/// May stand plainly in a path or query and means itself on both sides.
const PLAIN: u8 = 0;
/// Must be percent-encoded before comparison; also `*` and `$`, which a rule can only name by their encoded form.
const ENCODE: u8 = 1;
/// `%`.
const PERCENT: u8 = 2;

#[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
const CLASS: [u8; 256] = {
    let mut table = [ENCODE; 256];
    let mut i = 0;
    // RFC 3986: unreserved, then reserved (gen-delims and sub-delims) without `*` and `$`.
    let plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!&'()+,;=";
    while i < plain.len() {
        table[plain[i] as usize] = PLAIN;
        i += 1;
    }
    table[b'%' as usize] = PERCENT;
    table
};

fn class(byte: u8) -> u8 {
    CLASS.get(usize::from(byte)).copied().unwrap_or(ENCODE)
}

fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// The octet that the escape at the start of `bytes` stands for.
fn escape(bytes: &[u8]) -> Option<u8> {
    match bytes {
        [b'%', high, low, ..] => Some(hex(*high)? << 4 | hex(*low)?),
        _ => None,
    }
}

/// Appends `%XX`.
pub(super) fn push_escape(out: &mut Vec<u8>, byte: u8) {
    let digit = |n: u8| if n < 10 { b'0' + n } else { b'A' + n - 10 };
    out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
}

/// Appends the comparison form of `bytes`.
fn normalise(bytes: &[u8], out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        if let Some(octet) = escape(rest) {
            if unreserved(octet) {
                out.push(octet);
            } else {
                push_escape(out, octet);
            }
            rest = rest.get(3..).unwrap_or_default();
            continue;
        }
        match class(byte) {
            // A stray `%` stays a `%`: servers take it literally.
            PLAIN | PERCENT => out.push(byte),
            _ => push_escape(out, byte),
        }
        rest = tail;
    }
}

/// The comparison form of a rule's pattern. `*` and a final `$` keep their meaning; any other `$` is a plain one.
pub(super) fn pattern(value: &[u8]) -> Vec<u8> {
    let (body, anchored) = match value.split_last() {
        Some((b'$', body)) => (body, true),
        _ => (value, false),
    };
    let mut out = Vec::with_capacity(value.len());
    for (i, part) in body.split(|b| *b == b'*').enumerate() {
        if i > 0 {
            out.push(b'*');
        }
        normalise(part, &mut out);
    }
    if anchored {
        out.push(b'$');
    }
    out
}

/// The comparison form of a URL's path and query, borrowed when it already has that form (nearly always).
pub(super) fn path(path: &[u8]) -> Cow<'_, [u8]> {
    let mut at = 0;
    let normal = loop {
        let Some(rest) = path.get(at..) else { break true };
        let Some(skip) = rest.iter().position(|b| class(*b) != PLAIN) else { break true };
        match rest.get(skip..) {
            Some([b'%', high, low, ..]) if canonical(*high, *low) => at += skip + 3,
            _ => break false,
        }
    };
    if normal {
        return Cow::Borrowed(path);
    }
    let mut out = Vec::with_capacity(path.len() + 16);
    normalise(path, &mut out);
    Cow::Owned(out)
}

/// Whether `%{high}{low}` is how [`normalise`] would write it.
fn canonical(high: u8, low: u8) -> bool {
    let upper = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    upper(high) && upper(low) && escape(&[b'%', high, low]).is_some_and(|octet| !unreserved(octet))
}
