//! The forms in which rules and URL paths are compared.
//!
//! Two forms, since two things are wanted. As *text*, escapes are three characters like any others, as Google's parser has it: a
//! rule `/*2F` fits `/a%2Fb`. As *octets*, what RFC 9309 (2.2.2, 2.2.3) calls equal is equal: an escape of an octet that is
//! unreserved, or that may not stand in a URL, is that octet, and `%24` and `%2A` in a rule are the characters that cannot be
//! named otherwise. Escapes of reserved characters stay escapes, since `%2F` and `/` name different resources. A rule fits a path
//! if any of its forms fits any of the path's; nothing is ever escaped here, so that no rule fits digits that the path does not contain.

use std::borrow::Cow;

/// `*` and `$` where they mean themselves. No text has these octets: where it does, they stay escaped.
const STAR: u8 = 0xFF;
const DOLLAR: u8 = 0xFE;

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

/// Whether an escape of the octet means something else than the octet: RFC 3986's reserved characters but `*` and `$`, and `%`.
fn reserved(octet: u8) -> bool {
    b":/?#[]@!&'()+,;=%".contains(&octet)
}

/// Appends an octet that means itself.
fn push_octet(out: &mut Vec<u8>, octet: u8) {
    match octet {
        b'*' => out.push(STAR),
        b'$' => out.push(DOLLAR),
        STAR | DOLLAR => push_escape(out, octet),
        _ => out.push(octet),
    }
}

/// Appends one form of `bytes`. A rule's text has octets past ASCII escaped, as Google's parser does to rules and nobody to paths:
/// those are escaped wherever URLs come from.
fn push(bytes: &[u8], octets: bool, is_rule: bool, out: &mut Vec<u8>) {
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = match escape(rest) {
            Some(octet) => {
                if octets && !reserved(octet) {
                    push_octet(out, octet);
                } else {
                    push_escape(out, octet);
                }
                rest.get(3..).unwrap_or_default()
            }
            None => {
                if byte >= 0x80 && is_rule && !octets {
                    push_escape(out, byte);
                } else {
                    push_octet(out, byte);
                }
                tail
            }
        };
    }
}

/// Both forms of a rule's pattern, as text first; one, if they are the same. `*` and a final `$` keep their meaning; any other `$`
/// is a plain one.
pub(super) fn pattern(value: &[u8]) -> (Vec<u8>, Option<Vec<u8>>) {
    let (body, anchored) = match value.split_last() {
        Some((b'$', body)) => (body, true),
        _ => (value, false),
    };
    let form = |octets| {
        let mut out = Vec::with_capacity(value.len());
        for (i, part) in body.split(|b| *b == b'*').enumerate() {
            if i > 0 {
                out.push(b'*');
            }
            push(part, octets, true, &mut out);
        }
        if anchored {
            out.push(b'$');
        }
        out
    };
    let (text, octets) = (form(false), form(true));
    let differ = text != octets;
    (text, differ.then_some(octets))
}

/// How specific a rule is: its octets, those past ASCII escaped. So Google's parser counts.
pub(super) fn specificity(value: &[u8]) -> usize {
    value.len() + 2 * value.iter().filter(|byte| **byte >= 0x80).count()
}

/// Both forms of a URL's path and query, as text first; one, and that borrowed, for nearly all there are.
pub(super) fn path(path: &[u8]) -> (Cow<'_, [u8]>, Option<Vec<u8>>) {
    if !path.iter().any(|b| matches!(*b, b'%' | b'*' | b'$' | STAR | DOLLAR)) {
        return (Cow::Borrowed(path), None);
    }
    let form = |octets| {
        let mut out = Vec::with_capacity(path.len() + 16);
        push(path, octets, false, &mut out);
        out
    };
    let (text, octets) = (form(false), form(true));
    let differ = text != octets;
    (Cow::Owned(text), differ.then_some(octets))
}
