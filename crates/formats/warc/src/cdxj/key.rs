//! The sort key of a URL in CDX indexes: the form that web-archive tools agree on, so that their indexes and ours merge.
//!
//! It is looser than any URL standard: `www.` goes, case goes, session ids go, parameters are sorted, escapes are undone and
//! redone. Only hashed, compared and searched; never fetched.
//!
//! ```text
//! https://www2.Example.com:443/A/../B/?y=2&x=1#f    com,example)/b?x=1&y=2
//! ```

use super::session;
use std::net::Ipv4Addr;

/// The key of `url`. What is not understood as a URL is its own key.
pub fn surt_key(url: &str) -> String {
    if url.is_empty() {
        return "-".into();
    }
    if url.starts_with("filedesc") {
        return url.into();
    }
    match key_of(url.as_bytes()) {
        // Everything but ASCII has been escaped by then.
        Some(key) => String::from_utf8(key).unwrap_or_else(|_| url.into()),
        None => url.into(),
    }
}

/// The parts of a URL by RFC 2396's regular expression, fragment dropped.
struct Parts<'a> {
    scheme: &'a [u8],
    netloc: &'a [u8],
    path: &'a [u8],
    query: &'a [u8],
}

fn key_of(url: &[u8]) -> Option<Vec<u8>> {
    let mut url: Vec<u8> = url.trim_ascii().iter().copied().filter(|b| !matches!(b, b'\n' | b'\r' | b'\t')).collect();
    if scheme_len(&url).is_none() {
        url.splice(0..0, *b"http://");
    }
    let parts = split(last_protocol(&url))?;
    let (mut host, port) = host_and_port(parts.netloc)?;
    let mut path = parts.path.to_vec();
    if parts.scheme.starts_with(b"http") && host.is_empty() && !path.is_empty() {
        let rest = path.iter().position(|b| *b != b'/').and_then(|at| path.get(at..)).unwrap_or_default().to_vec();
        let slash = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
        host = rest.get(..slash)?.to_vec();
        path = [b"/", rest.get(slash + 1..).unwrap_or_default()].concat();
    }
    let has_host = !host.is_empty();
    let mut out = Vec::with_capacity(url.len() + 8);
    if has_host {
        let host = canonical_host(&host, parts.scheme != b"dns");
        let mut labels: Vec<&[u8]> = host.split(|b| *b == b'.').collect();
        labels.reverse();
        out.extend_from_slice(&labels.join(&b','));
        let default = match parts.scheme.to_ascii_lowercase().as_slice() {
            b"http" => 80,
            b"https" => 443,
            _ => 0,
        };
        if port != 0 && port != default {
            out.extend_from_slice(format!(":{port}").as_bytes());
        }
        out.push(b')');
    } else {
        out.extend_from_slice(parts.scheme);
        out.push(b':');
    }
    let query = canonical_query(parts.query);
    let path = canonical_path(&path, has_host);
    if path.is_empty() && query.is_some() {
        out.push(b'/');
    }
    out.extend_from_slice(&path);
    if let Some(query) = query {
        out.push(b'?');
        out.extend_from_slice(&query);
    }
    Some(out)
}

fn scheme_len(url: &[u8]) -> Option<usize> {
    let colon = url.iter().position(|b| *b == b':')?;
    let (first, rest) = url.get(..colon)?.split_first()?;
    let fits = first.is_ascii_alphabetic() && rest.iter().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b));
    fits.then_some(colon)
}

/// `http://https://x` means the last of them.
fn last_protocol(url: &[u8]) -> &[u8] {
    let mut from = 0;
    let mut rest = url;
    loop {
        let next = rest.strip_prefix(b"http://").or_else(|| rest.strip_prefix(b"https://"));
        match next {
            Some(next) => {
                from = url.len() - rest.len();
                rest = next;
            }
            None => return url.get(from..).unwrap_or(url),
        }
    }
}

fn split(url: &[u8]) -> Option<Parts<'_>> {
    let colon = scheme_len(url)?;
    let (scheme, rest) = (url.get(..colon)?, url.get(colon + 1..)?);
    let rest = rest.split(|b| *b == b'#').next()?;
    let (front, query) = match rest.iter().position(|b| *b == b'?') {
        Some(at) => (rest.get(..at)?, rest.get(at + 1..)?),
        None => (rest, &[][..]),
    };
    let (netloc, path) = match front.strip_prefix(b"//") {
        Some(front) => front.split_at(front.iter().position(|b| *b == b'/').unwrap_or(front.len())),
        None => (&[][..], front),
    };
    Some(Parts { scheme, netloc, path, query })
}

/// Host without user, brackets and port, and the port (0 for none); `None` for a port that is no number.
fn host_and_port(netloc: &[u8]) -> Option<(Vec<u8>, u16)> {
    let end = netloc.iter().rposition(|b| *b != b':').map_or(0, |at| at + 1);
    let netloc = netloc.get(..end)?;
    let info = netloc.rsplit(|b| *b == b'@').next()?;
    let (host, port) = match info.iter().position(|b| *b == b'[') {
        Some(open) => {
            let inner = info.get(open + 1..)?;
            let close = inner.iter().position(|b| *b == b']').unwrap_or(inner.len());
            let after = inner.get(close..)?;
            let colon = after.iter().position(|b| *b == b':').map_or(after.len(), |at| at + 1);
            (inner.get(..close)?, after.get(colon..)?)
        }
        None => {
            let colon = info.iter().position(|b| *b == b':').unwrap_or(info.len());
            (info.get(..colon)?, info.get(colon + 1..).unwrap_or_default())
        }
    };
    let port = if port.is_empty() {
        0
    } else if port.iter().all(u8::is_ascii_digit) {
        std::str::from_utf8(port).ok()?.parse().ok()?
    } else {
        return None;
    };
    Some((host.to_vec(), port))
}

fn canonical_host(host: &[u8], massage: bool) -> Vec<u8> {
    let mut host = unescape(host);
    if !host.is_ascii()
        && let Some(ascii) = to_idna(&String::from_utf8_lossy(&host))
    {
        host = ascii.into_bytes();
    }
    host = join_double_dots(&host);
    let trimmed = host.iter().position(|b| *b != b'.').unwrap_or(host.len());
    let end = host.iter().rposition(|b| *b != b'.').map_or(trimmed, |at| at + 1);
    host = host.get(trimmed..end).unwrap_or_default().to_vec();
    host = match ip_of(&host) {
        Some(ip) => ip.to_string().into_bytes(),
        None => escape(&host.to_ascii_lowercase()).to_ascii_lowercase(),
    };
    if massage && let Some(rest) = host.strip_prefix(b"www") {
        let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        if let Some((b'.', rest)) = rest.get(digits..).and_then(<[u8]>::split_first) {
            return rest.to_vec();
        }
    }
    host
}

/// `..` becomes `.`, each pair once.
fn join_double_dots(host: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(host.len());
    let mut rest = host;
    while let Some((first, after)) = rest.split_first() {
        out.push(*first);
        rest = if *first == b'.' { after.strip_prefix(b".").unwrap_or(after) } else { after };
    }
    out
}

/// IDNA as of 2003, in which `ß` is `ss` and joiners are nothing.
fn to_idna(host: &str) -> Option<String> {
    let old: String = host
        .replace('ß', "ss")
        .replace('ς', "σ")
        .chars()
        .filter(|c| !matches!(*c, '\u{200c}' | '\u{200d}' | char::REPLACEMENT_CHARACTER))
        .collect();
    idna::domain_to_ascii(&old).ok()
}

/// An IPv4 address in any form the C library takes: one number, or two to four, decimal or octal.
fn ip_of(host: &[u8]) -> Option<Ipv4Addr> {
    let text = std::str::from_utf8(host).ok()?;
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    if !text.contains('.') {
        // A number of any length counts modulo 2^32.
        let low = text.bytes().fold(0u32, |n, b| n.wrapping_mul(10).wrapping_add(u32::from(b - b'0')));
        return Some(low.into());
    }
    let parts: Vec<&str> = text.split('.').collect();
    let (last, front) = parts.split_last()?;
    if front.len() > 3 {
        return None;
    }
    let number = |part: &str| -> Option<u32> {
        match part.strip_prefix('0') {
            Some("") => Some(0),
            Some(octal) => u32::from_str_radix(octal, 8).ok(),
            None => part.parse().ok(),
        }
    };
    let mut ip = 0u32;
    for (i, part) in front.iter().enumerate() {
        let n = number(part).filter(|n| *n < 256)?;
        ip |= n << (24 - 8 * i);
    }
    let left = 32 - 8 * u32::try_from(front.len()).ok()?;
    let n = number(last).filter(|n| left == 32 || u64::from(*n) < 1u64 << left)?;
    Some((ip | n).into())
}

fn canonical_path(path: &[u8], has_host: bool) -> Vec<u8> {
    let path = unescape(path);
    let path = if has_host { normal_path(&path) } else { path };
    let path = session::strip_path(&escape(&path).to_ascii_lowercase());
    match path.split_last() {
        Some((b'/', rest)) if !rest.is_empty() => rest.to_vec(),
        _ => path,
    }
}

/// Dot segments resolved, double slashes joined.
fn normal_path(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/').skip(1) {
        match part {
            b"." => {}
            b".." if !kept.is_empty() => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    let mut out = vec![b'/'];
    if let Some((last, front)) = kept.split_last() {
        for part in front.iter().filter(|p| !p.is_empty()) {
            out.extend_from_slice(part);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

fn canonical_query(query: &[u8]) -> Option<Vec<u8>> {
    if query.is_empty() {
        return None;
    }
    let query = session::strip_query(&escape(&unescape(query))).to_ascii_lowercase();
    let query = sorted_query(query);
    (!query.is_empty()).then_some(query)
}

fn sorted_query(query: Vec<u8>) -> Vec<u8> {
    if query.len() <= 1 {
        return query;
    }
    let mut args: Vec<Vec<&[u8]>> =
        query.split(|b| *b == b'&').map(|arg| arg.splitn(2, |b| *b == b'=').collect()).collect();
    args.sort();
    let joined: Vec<Vec<u8>> = args.iter().map(|arg| arg.join(&b'=')).collect();
    joined.join(&b'&')
}

/// Percent escapes undone until none is left.
fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut now = bytes.to_vec();
    loop {
        let next = unescape_once(&now);
        if next == now {
            return now;
        }
        now = next;
    }
}

fn unescape_once(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let hex = |b: u8| char::from(b).to_digit(16).and_then(|d| u8::try_from(d).ok());
        if let (b'%', [high, low, tail @ ..]) = (first, after)
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            out.push(high << 4 | low);
            rest = tail;
        } else {
            out.push(*first);
            rest = after;
        }
    }
    out
}

/// Escapes what is not printable ASCII, and `#`, `%` and the blank.
fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for b in bytes {
        if b.is_ascii_graphic() && !matches!(b, b'#' | b'%') {
            out.push(*b);
        } else {
            out.extend_from_slice(format!("%{b:02X}").as_bytes());
        }
    }
    out
}
