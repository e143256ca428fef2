//! Any text, read by the `url` crate after the missing scheme is supplied.

use std::borrow::Cow;

use url::Host;

use super::Parts;
use crate::{Reject, host, odd, raw};

/// Reads a URL and hands its parts to `build`.
pub fn read(raw: &str, build: impl FnOnce(Parts<'_>) -> Result<(), Reject>) -> Result<(), Reject> {
    let cleaned = raw::clean(raw); // first, so that the look for a scheme sees what the parser will see
    let text = supply_scheme(&cleaned)?;
    raw::check_host(&text)?;
    let (url, mask) = odd::parse(&text, None)?;
    let host = match url.host() {
        None => return Err(Reject::NoHost),
        Some(Host::Domain(name)) => odd::unmask(&name_without_dots(name)?, mask).into_owned().into(),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => Cow::Borrowed(url.host_str().unwrap_or_default()),
    };
    raw::check_host_len(host.len())?;
    build(Parts { scheme: url.scheme(), host, port: url.port(), path: url.path(), query: url.query() })
}

/// Rule 2.
fn supply_scheme(text: &str) -> Result<Cow<'_, str>, Reject> {
    if text.is_empty() {
        return Err(Reject::Empty);
    }
    match raw::split_scheme(text) {
        Some((scheme, rest)) => {
            let lower = scheme.to_ascii_lowercase();
            if matches!(lower.as_str(), "http" | "https" | "ftp") {
                Ok(text.into())
            } else if (scheme.contains('.') || lower == "localhost") && starts_with_port(rest) {
                Ok(format!("http://{text}").into())
            } else {
                Err(Reject::scheme(scheme.as_bytes()))
            }
        }
        None => match text.as_bytes() {
            [b'/' | b'\\', b'/' | b'\\', ..] => Ok(format!("http:{text}").into()),
            [b'/' | b'\\' | b'?' | b'#', ..] => Err(Reject::NoHost),
            _ => match misspelt_scheme(text) {
                Some(scheme) => Err(Reject::scheme(scheme.as_bytes())),
                None => Ok(format!("http://{text}").into()),
            },
        },
    }
}

/// What stands where a scheme does, behind an invisible mark or a quote (`\u{feff}http://…`), or without its colon: as a host
/// it would make a URL that the source does not contain.
fn misspelt_scheme(text: &str) -> Option<&str> {
    let first = text.split(['/', '\\', '?', '#']).next()?;
    let slashes = text.get(first.len()..)?.starts_with("//");
    let bare = ["http", "https"].iter().any(|scheme| first.eq_ignore_ascii_case(scheme));
    first.strip_suffix(':').or(bare.then_some(first)).filter(|_| slashes)
}

/// Digits, then the end or what may follow a port.
fn starts_with_port(rest: &str) -> bool {
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    after.len() < rest.len() && matches!(after.as_bytes(), [] | [b'/' | b'\\' | b'?' | b'#', ..])
}

/// Rule 4 for names. What is left after the dots may read as an IPv4 address, so it is parsed again.
fn name_without_dots(name: &str) -> Result<Cow<'_, str>, Reject> {
    if let Some(byte) = name.bytes().find(|&b| !host::is_name_byte(b)) {
        return Err(Reject::HostByte { byte });
    }
    let trimmed = name.trim_end_matches('.');
    if trimmed.len() == name.len() {
        return Ok(name.into());
    }
    if trimmed.is_empty() {
        return Err(Reject::NoHost);
    }
    Ok(Host::parse(trimmed)?.to_string().into())
}
