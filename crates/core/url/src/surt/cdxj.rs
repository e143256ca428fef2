//! The key of a CDXJ line as pywb, cdxj-indexer and the Wayback Machine compute it by default.
//!
//! A canonicalisation of its own, coarser than the lake form: files sorted by this key must be searchable by those tools, so it
//! follows them to the letter, odd corners included. The rules, in order:
//!
//! 1. Trim white space, drop tabs and line ends; a missing scheme is `http`; of `http://https://` only the last counts.
//! 2. Split by RFC 2396. User information and fragment go. A port that is not a number up to 65535 is refused.
//! 3. Host: unescape until nothing changes, IDNA 2003, `..` to `.`, dots at the ends go; numbers are IPv4 addresses; lower case;
//!    a leading `www.` or `www7.` goes. Labels reversed, also those of an IPv4 address; brackets of an IPv6 address go.
//! 4. Path: unescape until nothing changes, resolve dot segments (`..` at the root stays), collapse `/`, escape what is not
//!    printable ASCII or is `%`, `#` or space; lower case; session ids go; one trailing `/` goes.
//! 5. Query: unescape and escape likewise, lower case, session ids go, pieces sorted by key and value. An empty query goes.
//! 6. The default port of `http` and `https` goes.
//! 7. A URL without a host is `scheme:path`; nothing at all is `-`.
//!
//! Of any length, as those tools take it, in time linear in it but for the sorting of 5.

use std::borrow::Cow;

use super::session;
use crate::percent::{decode_fully, push_escaped};
use crate::{Reject, host, raw};

/// The CDXJ key of a URL: `com,example)/path?a=1&b=2`.
///
/// ```
/// let key = trawl_url::surt::cdxj("http://www.Example.com:80/A//b/?z=1&a=%7E#top")?;
/// assert_eq!(key, "com,example)/a/b?a=~&z=1");
/// # Ok::<(), trawl_url::Reject>(())
/// ```
pub fn cdxj(url: &str) -> Result<String, Reject> {
    if url.is_empty() {
        return Ok("-".to_owned());
    }
    if url.starts_with("filedesc") {
        return Ok(url.to_owned()); // the first record of an ARC file
    }
    let text = prepare(url)?;
    let parts = split(&text)?;
    let mut key = String::with_capacity(text.len());
    let host = canonical_host(parts.host.as_bytes(), parts.scheme);
    if host.is_empty() {
        key.push_str(parts.scheme);
        key.push(':');
    } else {
        for (index, label) in host.rsplit('.').enumerate() {
            if index > 0 {
                key.push(',');
            }
            key.push_str(label);
        }
        super::push_port(parts.port, &mut key);
        key.push(')');
    }
    push_path(&parts.path, !host.is_empty(), &mut key);
    let query = canonical_query(parts.query);
    if !query.is_empty() {
        if parts.path.is_empty() && host.is_empty() {
            key.push('/');
        }
        key.push('?');
        key.push_str(&query);
    }
    Ok(key)
}

/// Rule 1.
fn prepare(url: &str) -> Result<String, Reject> {
    let trimmed = url.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let mut text = trimmed.replace(['\t', '\n', '\r'], "");
    if text.is_empty() {
        return Err(Reject::Empty);
    }
    if raw::split_scheme(&text).is_none() {
        text.insert_str(0, "http://");
    }
    let mut last = 0;
    while let Some(rest) = text.get(last..) {
        let protocol = ["http://", "https://"].into_iter().find(|protocol| rest.starts_with(protocol));
        let Some(protocol) = protocol else { break };
        let after = rest.get(protocol.len()..).unwrap_or_default();
        if !after.starts_with("http://") && !after.starts_with("https://") {
            break;
        }
        last += protocol.len();
    }
    text.drain(..last);
    Ok(text)
}

struct Parts<'a> {
    scheme: &'a str,
    host: &'a str,
    port: Option<u16>,
    path: Cow<'a, str>,
    query: &'a str,
}

/// Rule 2.
fn split(text: &str) -> Result<Parts<'_>, Reject> {
    let (scheme, rest) = raw::split_scheme(text).ok_or(Reject::NoScheme)?;
    let rest = rest.split('#').next().unwrap_or_default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(after) => after.split_at_checked(after.find('/').unwrap_or(after.len())).unwrap_or((after, "")),
        None => ("", rest),
    };
    let authority = authority.trim_end_matches(':');
    let host_port = authority.rsplit_once('@').map_or(authority, |(_, host_port)| host_port);
    let (host, port) = match host_port.split_once('[') {
        Some((_, bracketed)) => {
            let (host, after) = bracketed.split_once(']').unwrap_or((bracketed, ""));
            (host, after.split_once(':').map(|(_, port)| port))
        }
        None => host_port.split_once(':').map_or((host_port, None), |(host, port)| (host, Some(port))),
    };
    let own = if scheme.eq_ignore_ascii_case("http") {
        80
    } else if scheme.eq_ignore_ascii_case("https") {
        443
    } else {
        0
    };
    let port = match port {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            Some(digits.trim_start_matches('0')).filter(|digits| !digits.is_empty())
        }
        Some(_) => return Err(Reject::Port),
        None => None,
    };
    let port: Option<u16> = port.map(|digits| digits.parse().map_err(|_| Reject::Port)).transpose()?;
    let port = port.filter(|&port| port != own);
    if host.is_empty() && scheme.starts_with("http") && !path.is_empty() {
        // `http:///example.com/x`: slashes too many.
        let (host, path) = path.trim_start_matches('/').split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
        return Ok(Parts { scheme, host, port, path: format!("/{path}").into(), query });
    }
    Ok(Parts { scheme, host, port, path: path.into(), query })
}

/// Rule 3, up to the reversal.
fn canonical_host(raw: &[u8], scheme: &str) -> String {
    let mut name = decode_fully(raw);
    if !name.is_ascii()
        && let Some(ascii) = idna_2003(&name)
    {
        name = ascii.into_bytes();
    }
    let name = undot(&name);
    let mut host = match ipv4(&name) {
        Some(address) => address,
        None => escape(&name),
    };
    host.make_ascii_lowercase();
    if scheme != "dns"
        && let Some((www, rest)) = host.split_once('.')
        && let Some(digits) = www.strip_prefix("www")
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        return rest.to_owned();
    }
    host
}

/// IDNA 2003, label by label: UTS 46 after the four characters the older standard maps away; only some mixes of right-to-left
/// letters and digits differ. A name it refuses is left as it is.
fn idna_2003(name: &[u8]) -> Option<String> {
    let text: String = name.utf8_chunks().map(|chunk| chunk.valid()).collect();
    let (text, end) = match text.strip_suffix(FULL_STOPS) {
        Some(text) => (text, "."),
        None => (text.as_str(), ""),
    };
    if text.is_empty() {
        return end.is_empty().then(String::new);
    }
    let mut ascii = String::with_capacity(text.len() + 8);
    for (index, label) in text.split(FULL_STOPS).enumerate() {
        if index > 0 {
            ascii.push('.');
        }
        let start = ascii.len();
        if label.is_ascii() {
            ascii.push_str(label);
        } else {
            let label = label.replace('ß', "ss").replace('ς', "σ").replace(['\u{200c}', '\u{200d}'], "");
            ascii.push_str(&host::punycode_of_any(label.as_bytes()).ok()?);
        }
        if !(1..64).contains(&(ascii.len() - start)) {
            return None;
        }
    }
    ascii.push_str(end);
    Some(ascii)
}

/// What IDNA 2003 takes for a dot.
const FULL_STOPS: [char; 4] = ['.', '\u{3002}', '\u{ff0e}', '\u{ff61}'];

/// Every `..` becomes `.` once, and dots at both ends go.
fn undot(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    loop {
        match rest {
            [b'.', b'.', tail @ ..] => {
                out.push(b'.');
                rest = tail;
            }
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
            [] => break,
        }
    }
    let start = out.iter().take_while(|&&b| b == b'.').count();
    let end = out.len() - out.iter().rev().take_while(|&&b| b == b'.').count();
    out.get(start..end.max(start)).unwrap_or_default().to_vec()
}

/// A number, or up to four of them, read as an IPv4 address the way C libraries do.
fn ipv4(name: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(name).ok()?;
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let low = text.bytes().fold(0u32, |low, digit| low.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
        return Some(std::net::Ipv4Addr::from_bits(low).to_string());
    }
    let digits = text.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    if !digits || text.split('.').count() > 4 {
        return None;
    }
    match url::Host::parse(text) {
        Ok(url::Host::Ipv4(address)) => Some(address.to_string()),
        _ => None,
    }
}

/// Rule 4.
fn push_path(raw: &str, with_host: bool, key: &mut String) {
    let decoded = decode_fully(raw.as_bytes());
    let mut path = escape(&if with_host { resolve_dots(&decoded) } else { decoded });
    path.make_ascii_lowercase();
    session::cut_from_path(&mut path);
    if path.len() > 1 && path.ends_with('/') {
        path.pop();
    }
    key.push_str(&path);
}

/// Dot segments as these tools see them: what cannot be popped stays, empty segments go, the last one included only as a slash.
fn resolve_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&b| b == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut out = vec![b'/'];
    if let Some((last, inner)) = kept.split_last() {
        for segment in inner.iter().filter(|segment| !segment.is_empty()) {
            out.extend_from_slice(segment);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

/// Everything but printable ASCII, and of that not `%`, `#` and space.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_graphic() && !matches!(byte, b'%' | b'#') {
            out.push(char::from(byte));
        } else {
            push_escaped(byte, &mut out);
        }
    }
    out
}

/// Rule 5.
fn canonical_query(raw: &str) -> String {
    let mut query = escape(&decode_fully(raw.as_bytes()));
    query.make_ascii_lowercase();
    session::cut_from_query(&mut query);
    if query.len() <= 1 {
        return query;
    }
    let mut pieces: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|piece| piece.split_once('=').map_or((piece, None), |(key, value)| (key, Some(value))))
        .collect();
    pieces.sort_unstable();
    let mut sorted = String::with_capacity(query.len());
    for (index, (key, value)) in pieces.into_iter().enumerate() {
        if index > 0 {
            sorted.push('&');
        }
        sorted.push_str(key);
        if let Some(value) = value {
            sorted.push('=');
            sorted.push_str(value);
        }
    }
    sorted
}
