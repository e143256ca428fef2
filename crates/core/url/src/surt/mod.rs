//! SURT: a URL with its host labels reversed, so that sorting groups a domain with all its hosts.
//!
//! | function | `https://www.example.com:8443/a?b` | used for |
//! | --- | --- | --- |
//! | [`LakeUrl::surt`](crate::LakeUrl::surt) | `com,example,www)/a?b` | row order in a lake; scheme and port are columns of their own |
//! | [`from_url`] | `com,example,www:8443)/a?b` | a key that keeps hosts with different ports apart |
//! | [`with_scheme`] | `https://(com,example,www,:8443)/a?b` | the long form, the only one that says everything |
//! | [`cdxj`] | `com,example:8443)/a?b` | the key pywb and cdxj-indexer write into CDXJ files |
//!
//! IP literals are not reversed: `192.0.2.1)/`, `[2001:db8::1])/`. [`to_url`] reads the first three. (In CDXJ
//! keys, IPv4 addresses are reversed and IPv6 addresses lose their brackets.)

mod cdxj;
mod session;

pub use cdxj::cdxj;

use crate::{LakeUrl, Reject, SuffixList, host};

/// Appends the host part: labels reversed and joined by commas, IP literals as they are.
pub fn host_into(host: &str, out: &mut String) {
    if host::is_ip_literal(host) {
        out.push_str(host);
        return;
    }
    // Labels are short: a search that is fast over long texts takes twice as long here.
    let mut end = host.len();
    for (at, byte) in host.bytes().enumerate().rev() {
        if byte == b'.' {
            out.push_str(host.get(at + 1..end).unwrap_or_default());
            out.push(',');
            end = at;
        }
    }
    out.push_str(host.get(..end).unwrap_or_default());
}

/// The SURT of any URL the lake form takes, with a port that is not the scheme's own: `com,example:8080)/path?query`.
pub fn from_url(url: &str) -> Result<String, Reject> {
    Ok(of(&LakeUrl::parse(url, SuffixList::builtin())?))
}

/// As [`from_url`], of a URL in lake form.
pub fn of(url: &LakeUrl) -> String {
    let mut out = String::with_capacity(url.as_str().len());
    host_into(url.host(), &mut out);
    push_port(url.port(), &mut out);
    out.push(')');
    out.push_str(url.path_query());
    out
}

/// The long SURT, with the scheme and a comma after every label: `http://(com,example,:8080)/path?query`.
pub fn with_scheme(url: &str) -> Result<String, Reject> {
    let url = LakeUrl::parse(url, SuffixList::builtin())?;
    let mut out = String::with_capacity(url.as_str().len() + 4);
    out.push_str(url.scheme());
    out.push_str("://(");
    host_into(url.host(), &mut out);
    if !host::is_ip_literal(url.host()) {
        out.push(',');
    }
    push_port(url.port(), &mut out);
    out.push(')');
    out.push_str(url.path_query());
    Ok(out)
}

fn push_port(port: Option<u16>, out: &mut String) {
    if let Some(port) = port {
        out.push(':');
        out.push_str(&port.to_string());
    }
}

/// The URL a SURT stands for. A short SURT does not say its scheme: `scheme` supplies it.
pub fn to_url(surt: &str, scheme: &str) -> Result<String, Reject> {
    let (long, scheme, rest) = match surt.split_once("://(") {
        Some((own, rest)) if own.bytes().all(|b| b.is_ascii_alphanumeric()) => (true, own, rest),
        _ => (false, scheme, surt),
    };
    let (authority, path_query) = rest.split_once(')').ok_or(Reject::Surt)?;
    let (name, port) = split_port(authority)?;
    // Only the long form ends its labels with a comma; in the short one it is the empty label of a host such as ".com".
    let name = if long { name.strip_suffix(',').unwrap_or(name) } else { name };
    if name.is_empty() || !(path_query.is_empty() || path_query.starts_with('/') || path_query.starts_with('?')) {
        return Err(Reject::Surt);
    }
    let mut url = String::with_capacity(surt.len() + 8);
    url.push_str(scheme);
    url.push_str("://");
    if host::is_ip_literal(name) {
        url.push_str(name);
    } else {
        for (index, label) in name.rsplit(',').enumerate() {
            if index > 0 {
                url.push('.');
            }
            url.push_str(label);
        }
    }
    push_port(port, &mut url);
    url.push_str(if path_query.is_empty() { "/" } else { path_query });
    Ok(url)
}

/// Cuts `:port` off; colons inside brackets belong to the address.
fn split_port(authority: &str) -> Result<(&str, Option<u16>), Reject> {
    let tail = authority.rfind(']').map_or(0, |bracket| bracket + 1);
    match authority.get(tail..).and_then(|rest| rest.find(':')) {
        None => Ok((authority, None)),
        Some(colon) => {
            let (name, port) = authority.split_at_checked(tail + colon).ok_or(Reject::Surt)?;
            let port = port.strip_prefix(':').and_then(|digits| digits.parse().ok()).ok_or(Reject::Surt)?;
            Ok((name, Some(port)))
        }
    }
}
