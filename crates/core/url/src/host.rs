//! Host names and IP literals, the rules both forms share.
//!
//! - IDNA is UTS 46, non-transitional, with Bidi and joiner checks, no hyphen check and no DNS length check.
//! - The only ASCII a host name may hold is letters (lower-cased), digits, `-`, `_` and `.`; so a host is safe in a SURT, in a
//!   line of text and in a file name.
//! - Trailing dots go: all of them, because cutting one of two would not be idempotent.

use std::borrow::Cow;
use std::net::Ipv4Addr;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use crate::{MAX_HOST_LEN, Reject, raw};

/// Everything printable except letters, digits, `-`, `_` and `.`; the first argument adds controls, space and DEL.
const DENY: AsciiDenyList = AsciiDenyList::new(true, "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~");

/// The ASCII form of a name that is not an IP literal.
pub fn punycode(name: &[u8]) -> Result<Cow<'_, str>, Reject> {
    to_ascii(name, DENY)
}

/// As [`punycode`], with any ASCII let through.
pub fn punycode_of_any(name: &[u8]) -> Result<Cow<'_, str>, Reject> {
    to_ascii(name, AsciiDenyList::EMPTY)
}

fn to_ascii(name: &[u8], deny: AsciiDenyList) -> Result<Cow<'_, str>, Reject> {
    raw::check_host_len(name.len())?;
    Uts46::new().to_ascii(name, deny, Hyphens::Allow, DnsLength::Ignore).map_err(|_| name_fault(name))
}

/// Names the offending byte when there is one, so that the message says more than "IDNA".
fn name_fault(name: &[u8]) -> Reject {
    match name.iter().find(|&&b| b.is_ascii() && !is_name_byte(b)) {
        Some(&byte) => Reject::HostByte { byte },
        None => Reject::HostIdna,
    }
}

/// Letters of either case, digits, `-`, `_` and `.`.
pub fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Whether a host is an IP literal in canonical text: `192.0.2.1` or `[2001:db8::1]`.
pub fn is_ip_literal(host: &str) -> bool {
    match host.as_bytes() {
        [b'[', ..] => true,
        [b'0'..=b'9', .., b'0'..=b'9'] => host.parse::<Ipv4Addr>().is_ok(),
        _ => false,
    }
}

/// `[v6]` in its shortest text (RFC 5952, all in hex), from the literal with its brackets.
pub fn ipv6(literal: &str) -> Result<String, Reject> {
    match url::Host::parse(literal) {
        Ok(host @ url::Host::Ipv6(_)) => Ok(host.to_string()),
        _ => Err(Reject::HostIp),
    }
}

/// A name that IDNA would only lower-case: ASCII name bytes, no punycode label, of bearable length.
pub fn is_plain(name: &[u8]) -> bool {
    name.len() <= MAX_HOST_LEN
        && name.iter().all(|&b| is_name_byte(b))
        && !name.windows(4).any(|four| matches!(four, [b'x' | b'X', b'n' | b'N', b'-', b'-']))
}
