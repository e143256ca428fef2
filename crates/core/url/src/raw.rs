//! Raw text, before any parser sees it: what is cut, and what is refused unseen.

use std::borrow::Cow;

use crate::{MAX_HOST_LEN, MAX_URL_LEN, Reject};

/// Refuses what is longer than any form takes.
pub fn check_len(len: usize) -> Result<(), Reject> {
    if len > MAX_URL_LEN {
        return Err(Reject::TooLong { len, limit: MAX_URL_LEN });
    }
    Ok(())
}

/// Refuses a host longer than any form takes.
pub fn check_host_len(len: usize) -> Result<(), Reject> {
    if len > MAX_HOST_LEN {
        return Err(Reject::HostTooLong { len, limit: MAX_HOST_LEN });
    }
    Ok(())
}

/// What browsers do first: controls and spaces at both ends go, tabs and line ends inside too.
pub fn clean(raw: &str) -> Cow<'_, str> {
    let trimmed = raw.trim_matches(|c| c <= ' ');
    if trimmed.contains(['\t', '\n', '\r']) { trimmed.replace(['\t', '\n', '\r'], "").into() } else { trimmed.into() }
}

/// Splits at the colon of a scheme.
pub fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(legal)).then_some((scheme, rest))
}

/// Refuses a cleaned text whose host is absurdly long as written. Punycode costs the square of a label's length, and a URL has room
/// for twenty labels of a thousand letters each: 60 ms of work, a thousand times what others of that length take.
pub fn check_host(text: &str) -> Result<(), Reject> {
    // Three bytes may spell one: `%41`.
    const LIMIT: usize = 3 * MAX_HOST_LEN;
    if text.len() <= LIMIT {
        return Ok(());
    }
    let slash = |c| matches!(c, '/' | '\\');
    let authority = match split_scheme(text) {
        Some((_, rest)) => rest.trim_start_matches(slash),
        None if text.chars().take(2).filter(|&c| slash(c)).count() == 2 => text.trim_start_matches(slash),
        None => return Ok(()),
    };
    let authority = authority.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.len() > LIMIT {
        return Err(Reject::HostTooLong { len: host.len(), limit: MAX_HOST_LEN });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_host_is_refused() {
        let long = "a".repeat(4000);
        for ok in [
            format!("http://e.com/{long}"),
            format!("http://{long}@e.com/"),
            format!("http://e.com?{long}"),
            format!("/{long}"),
            long.clone(),
            format!("http://{}/", "a".repeat(3000)),
        ] {
            assert_eq!(check_host(&ok), Ok(()), "{}", &ok[..20]);
        }
        for bad in [
            format!("http://{long}"),
            format!("http:{long}/x"),
            format!("HTTPS:\\\\{long}\\x"),
            format!("//u@{long}:80/"),
            format!("/\\{long}"),
            format!("http:////{long}#f"),
        ] {
            assert_eq!(check_host(&bad).unwrap_err().code(), "host_too_long", "{}", &bad[..20]);
        }
    }
}
