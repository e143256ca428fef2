//! Plain ASCII `http` and `https` URLs, read without the full parser.
//!
//! Takes a URL only if every rule that needs the full parser has nothing to do: no white space, control or non-ASCII byte, no
//! user information, no backslash in the path, a host that is a name (no escapes, no punycode, no trailing dot, a last label
//! that starts with a letter and so is no number), and a port of 1 to 5 digits in range.

use std::borrow::Cow;

use super::Parts;
use crate::host::{self, is_name_byte};
use crate::percent::all_within;

pub fn read(raw: &str) -> Option<Parts<'_>> {
    let (scheme, default_port, rest) = match raw.strip_prefix("http") {
        Some(rest) => match rest.strip_prefix("://") {
            Some(rest) => ("http", 80, rest),
            None => ("https", 443, rest.strip_prefix("s://")?),
        },
        None => return None,
    };
    if !all_within(rest.as_bytes(), b'!', b'~') {
        return None;
    }
    let bytes = rest.as_bytes();
    let host_end = bytes.iter().position(|&b| !is_name_byte(b)).unwrap_or(bytes.len());
    let host = rest.get(..host_end)?;
    if !is_plain_name(host.as_bytes()) {
        return None;
    }
    let (port, tail) = split_port(rest.get(host_end..)?)?;
    let tail = match memchr::memchr(b'#', tail.as_bytes()) {
        Some(hash) => tail.get(..hash)?,
        None => tail,
    };
    let (path, query) = match memchr::memchr(b'?', tail.as_bytes()) {
        Some(mark) => (tail.get(..mark)?, Some(tail.get(mark + 1..)?)),
        None => (tail, None),
    };
    if memchr::memchr(b'\\', path.as_bytes()).is_some() {
        return None;
    }
    let port = port.filter(|&port| port != default_port);
    Some(Parts { scheme, host: Cow::Borrowed(host), port, path, query })
}

/// A name that needs no IDNA and whose last label starts with a letter.
fn is_plain_name(name: &[u8]) -> bool {
    let last = memchr::memrchr(b'.', name).map_or(0, |dot| dot + 1);
    name.get(last).is_some_and(u8::is_ascii_alphabetic) && host::is_plain(name)
}

/// The port and what follows, if what follows the host is a port, a path, a query, a fragment or nothing.
fn split_port(rest: &str) -> Option<(Option<u16>, &str)> {
    match rest.as_bytes() {
        [] | [b'/' | b'?' | b'#', ..] => Some((None, rest)),
        [b':', after @ ..] => {
            let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
            let tail = rest.get(1 + digits..)?;
            let ends = matches!(tail.as_bytes(), [] | [b'/' | b'?' | b'#', ..]);
            if digits > 5 || !ends {
                return None;
            }
            Some((Some(rest.get(1..=digits)?.parse().ok()?), tail))
        }
        _ => None,
    }
}
