//! The grammar of the key form: RFC 3986 as the reference's URL library reads it.

use crate::Reject;
use crate::percent::{HOST, USERINFO, all_within, escape_at, well_formed};

/// A reference in parts, each checked for well-formedness, none decoded.
#[derive(Clone, Copy)]
pub struct Reference<'a> {
    pub scheme: Option<&'a str>,
    pub authority: Option<Authority<'a>>,
    pub path: &'a str,
    pub query: Option<&'a str>,
}

/// Host and port as written; user information is checked and dropped.
#[derive(Clone, Copy)]
pub struct Authority<'a> {
    pub empty: bool,
    pub host: &'a str,
    pub port: &'a str,
}

impl Authority<'_> {
    /// Nothing between `//` and the next `/`: counts as no authority at all.
    pub fn is_empty(&self) -> bool {
        self.empty
    }
}

impl Reference<'_> {
    /// Whether the host keeps to the grammar. A link's host is checked as a whole later; of a base only this is asked.
    pub fn host_is_sound(&self) -> bool {
        let Some(Authority { host, .. }) = self.authority else { return true };
        let bytes = host.as_bytes();
        let escapes = memchr::memchr_iter(b'%', bytes);
        bytes.iter().all(|&b| HOST.has(b) || !b.is_ascii())
            && escapes.into_iter().all(|at| escape_at(bytes, at).is_some_and(|byte| !byte.is_ascii()))
    }
}

impl<'a> Reference<'a> {
    pub fn parse(text: &'a str) -> Result<Reference<'a>, Reject> {
        let text = match memchr::memchr(b'#', text.as_bytes()) {
            Some(hash) => {
                if !well_formed(text.get(hash..).unwrap_or_default().as_bytes()) {
                    return Err(Reject::Escape);
                }
                text.get(..hash).unwrap_or_default()
            }
            None => text,
        };
        if !all_within(text.as_bytes(), b' ', b'~')
            && let Some(byte) = text.bytes().find(u8::is_ascii_control)
        {
            return Err(Reject::Control { byte });
        }
        let (scheme, rest) = split_scheme(text)?;
        let (rest, query) = match memchr::memchr(b'?', rest.as_bytes()) {
            Some(mark) => (rest.get(..mark).unwrap_or_default(), rest.get(mark + 1..)),
            None => (rest, None),
        };
        if !rest.starts_with('/') {
            if scheme.is_some() {
                // `mailto:x`, `http:x`: an opaque rest has neither host nor path.
                return Ok(Reference { scheme, authority: None, path: "", query });
            }
            if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
                return Err(Reject::Colon);
            }
        }
        let has_authority = rest.starts_with("//") && (scheme.is_some() || !rest.starts_with("///"));
        let (authority, path) = if has_authority {
            let after = rest.get(2..).unwrap_or_default();
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at_checked(end).unwrap_or((after, ""));
            (Some(Authority::parse(authority)?), path)
        } else {
            (None, rest)
        };
        if !well_formed(path.as_bytes()) {
            return Err(Reject::Escape);
        }
        Ok(Reference { scheme, authority, path, query })
    }
}

/// A text that starts with no scheme is all rest; a colon before anything else is an error.
fn split_scheme(text: &str) -> Result<(Option<&str>, &str), Reject> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err(Reject::NoScheme),
            b':' => return Ok((text.get(..at), text.get(at + 1..).unwrap_or_default())),
            _ => break,
        }
    }
    Ok((None, text))
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Result<Authority<'a>, Reject> {
        let host_port = match text.rsplit_once('@') {
            Some((userinfo, rest)) => {
                if !userinfo.bytes().all(|b| USERINFO.has(b)) || !well_formed(userinfo.as_bytes()) {
                    return Err(Reject::Userinfo);
                }
                rest
            }
            None => text,
        };
        let (host, port) = if host_port.starts_with('[') {
            let close = host_port.rfind(']').ok_or(Reject::HostIp)?;
            host_port.split_at_checked(close + 1).unwrap_or((host_port, ""))
        } else {
            host_port.split_at_checked(host_port.find(':').unwrap_or(host_port.len())).unwrap_or((host_port, ""))
        };
        let port = match port.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits,
            None if port.is_empty() => port,
            _ => return Err(Reject::Port),
        };
        Ok(Authority { empty: text.is_empty(), host, port })
    }
}
