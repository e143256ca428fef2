//! The 128-bit URL key, and the two forms it is made of: the identity of a crawl ([`identity`], rules in `lake/mod.rs`) and the
//! key form of `.meguri` files that the reference wrote ([`canonical`], rules below).
//!
//! The key form is only hashed. It drops what seldom changes a page (tracking parameters, parameter order), so nothing is ever
//! fetched by it. It follows the reference's rules, except where those lose URLs or are not idempotent; the deviations are
//! listed in `docs/urls.md`, one test each. The rules, in order:
//!
//! 1. Trim Unicode white space. Cut the fragment; its escapes must be well-formed. No control byte may remain.
//! 2. Split by the grammar of RFC 3986 (no browser leniency): a scheme without `//host` has no host; a relative link may not
//!    have a colon in its first segment.
//! 3. User information must be well-formed; it is dropped. At most one `:port`, of digits.
//! 4. Resolve against the base, if one is given and is well-formed.
//! 5. Path: every `%` must start an escape. Escapes of unreserved bytes are decoded, others upper-cased; RFC 3986 path characters
//!    and `[]` stay, all else is escaped. Then dot segments are resolved. An empty path is `/`.
//! 6. Scheme `http` or `https`.
//! 7. Host: IPv6 literals in shortest text; names by UTS 46 (lower case, punycode), trailing dots cut, not empty.
//!    Escapes in a host may only encode non-ASCII bytes. IPv4 addresses stay as written.
//! 8. The port goes when it is empty or exactly the scheme's own; others stay as written.
//! 9. Policy, where it opts in: lower-case the path; collapse `/`; cut index files and trailing slashes until none is left.
//! 10. Query: split at `&`, at most 10,000 pieces, else none. A piece that is empty, holds `;` or a malformed escape is skipped.
//!     Decode `+` and escapes; drop tracking keys (or keep only the policy's). Sort by decoded key, then value. Write unreserved
//!     bytes, `+` for space, escapes for all else; no `=` before an empty value.
//! 11. Output `scheme://host[:port]path[?query]`.

mod policy;
mod query;
mod split;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use xxhash_rust::xxh64::{Xxh64, xxh64};

use crate::lake::Form;
use crate::percent::{self, KEY_PATH};
use crate::{LakeUrl, MAX_URL_LEN, Reject, SuffixList, WebUrl, dots, host, raw};
pub use policy::Policy;
use split::Reference;

/// The 128-bit identity of a URL: its host group, then the URL itself. Ordered by host, then path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UrlKey {
    /// [`host_key`] of the host group.
    pub host: u64,
    /// [`path_key`] of the whole canonical URL.
    pub path: u64,
}

impl UrlKey {
    /// The 16 bytes of the wire form: host, then path, little-endian.
    pub fn to_bytes(self) -> [u8; 16] {
        ((u128::from(self.path) << 64) | u128::from(self.host)).to_le_bytes()
    }

    /// Reads the wire form.
    pub fn from_bytes(bytes: [u8; 16]) -> UrlKey {
        let both = u128::from_le_bytes(bytes);
        UrlKey { host: both as u64, path: (both >> 64) as u64 }
    }

    /// The pseudo-key of a host group's robots.txt.
    pub fn robots(host: u64) -> UrlKey {
        UrlKey { host, path: path_key("/robots.txt") }
    }
}

/// What counts as one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostGroup {
    /// All hosts of a registrable domain together.
    #[default]
    Registrable,
    /// Each host name by itself, without its port.
    FullHost,
}

/// XXH64 of a host group.
pub fn host_key(group: &str) -> u64 {
    xxh64(group.as_bytes(), 0)
}

/// XXH64 of a salt and the text, so that a host and an equal path differ.
pub fn path_key(text: &str) -> u64 {
    const SALT: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = Xxh64::new(0);
    hash.update(&SALT.to_le_bytes());
    hash.update(text.as_bytes());
    hash.digest()
}

/// The key of a canonical URL: the host half from its host group, the path half from the whole text.
pub fn of(canonical: &str, group: HostGroup, psl: &SuffixList) -> UrlKey {
    let host = host_of(canonical);
    let group = match group {
        HostGroup::Registrable => psl.registrable(host),
        HostGroup::FullHost => host,
    };
    UrlKey { host: host_key(group), path: path_key(canonical) }
}

/// The key as the reference's seed commands compute it, from raw text without canonicalisation: the host half from `host`, or else
/// from what stands between `://` and the first `/`, `?` or `#`; the path half from there to the end, `/` if nothing is there.
/// Only for matching files written that way.
pub fn legacy(url: &str, host: Option<&str>) -> UrlKey {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (found, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let path = if path.is_empty() { "/" } else { path };
    UrlKey { host: host_key(host.unwrap_or(found)), path: path_key(path) }
}

/// The identity of a URL in Trawl's own frontier: the lake form ([`crate::LakeUrl`]) with runs of `/` kept and without query
/// keys of the documented tracking list (`utm_*`, `gclid`, `fbclid`, `msclkid`, `mc_eid`, `igshid`, `yclid`, `_ga`). It is only
/// hashed, and never makes two pages one: pieces with `;`, malformed escapes and the order of repeated keys stay.
///
/// ```
/// use trawl_url::{SuffixList, key};
/// let same = key::identity("HTTP://Example.com:80/a//b?utm_source=x&p=tree;f=src&id=7&ref=main#top", SuffixList::builtin())?;
/// assert_eq!(same, "http://example.com/a//b?id=7&p=tree;f=src&ref=main");
/// # Ok::<(), trawl_url::Reject>(())
/// ```
pub fn identity(url: &str, psl: &SuffixList) -> Result<String, Reject> {
    let mut form = LakeUrl::with_capacity(url.len());
    form.assign_as(url, psl, Form::Identity)?;
    Ok(form.into())
}

/// The key halves of [`identity`]: `group` names the queue of a host, whose [`host_key`] is the first; the [`path_key`] of the
/// whole text is the second. `scratch` spares an allocation for each URL.
pub fn identity_key<'a>(
    url: &str,
    scratch: &'a mut LakeUrl,
    group: impl FnOnce(&'a str) -> &'a str,
) -> Result<(UrlKey, &'a str), Reject> {
    scratch.assign_as(url, SuffixList::builtin(), Form::Identity)?;
    let scratch: &'a LakeUrl = scratch;
    let host = group(scratch.host());
    Ok((UrlKey { host: host_key(host), path: path_key(scratch.as_str()) }, host))
}

/// The host of a canonical URL, without its port.
pub fn host_of(canonical: &str) -> &str {
    let rest = canonical.split_once("://").map_or(canonical, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or(rest);
    let bracket = authority.rfind(']').unwrap_or(0);
    match authority.rfind(':') {
        Some(colon) if colon > bracket => authority.get(..colon).unwrap_or(authority),
        _ => authority,
    }
}

/// Brings a link into key form, resolved against `base` when it is relative.
///
/// ```
/// use trawl_url::key::{Policy, canonical};
/// let key = canonical(b"../c?utm_source=x&id=7#top", Some(b"HTTP://Example.com:80/a/b/"), &Policy::default())?;
/// assert_eq!(key, "http://example.com/a/c?id=7");
/// # Ok::<(), trawl_url::Reject>(())
/// ```
pub fn canonical(raw: &[u8], base: Option<&[u8]>, policy: &Policy) -> Result<String, Reject> {
    let mut out = String::with_capacity(raw.len().min(MAX_URL_LEN) + 8);
    canonical_into(raw, base, policy, &mut out)?;
    Ok(out)
}

/// As [`canonical`], into a buffer that is cleared first. After an error its content means nothing.
pub fn canonical_into(raw: &[u8], base: Option<&[u8]>, policy: &Policy, out: &mut String) -> Result<(), Reject> {
    out.clear();
    raw::check_len(raw.len())?;
    let text = percent::text_of(raw);
    if matches!(text, Cow::Owned(_)) {
        // Escaping has hidden bytes that user information may not hold; a replacement character shows them again.
        Reference::parse(String::from_utf8_lossy(raw).trim())?;
    }
    let link = Reference::parse(text.trim())?;
    let base_text = base.filter(|base| base.len() <= MAX_URL_LEN).map(percent::text_of);
    // An absolute link needs no base, so that its base is not even looked at.
    let base = match &base_text {
        Some(text) if link.scheme.is_none() => Reference::parse(text).ok().filter(Reference::host_is_sound),
        _ => None,
    };
    write(&resolve(link, base)?, policy, out)?;
    raw::check_len(out.len())
}

/// As [`canonical`], of a URL that is parsed already.
pub fn canonical_web(url: &WebUrl, policy: &Policy) -> Result<String, Reject> {
    let (path, query) = url.path_query().split_once('?').map_or((url.path_query(), None), |(p, q)| (p, Some(q)));
    if !percent::well_formed(path.as_bytes()) {
        return Err(Reject::Escape);
    }
    let port = url.authority().get(url.host().len()..).and_then(|rest| rest.strip_prefix(':')).unwrap_or_default();
    let authority = Some(split::Authority { empty: false, host: url.host(), port });
    let mut out = String::with_capacity(url.len() + 8);
    write(&Resolved { scheme: url.scheme(), authority, directory: "", path, query }, policy, &mut out)?;
    raw::check_len(out.len())?;
    Ok(out)
}

/// A reference after rule 4; the path is in two pieces so that joining copies nothing.
struct Resolved<'a> {
    scheme: &'a str,
    authority: Option<split::Authority<'a>>,
    directory: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

fn resolve<'a>(link: Reference<'a>, base: Option<Reference<'a>>) -> Result<Resolved<'a>, Reject> {
    let own =
        |scheme| Resolved { scheme, authority: link.authority, directory: "", path: link.path, query: link.query };
    if let Some(scheme) = link.scheme {
        return Ok(own(scheme));
    }
    let Some(base) = base else { return Err(Reject::NoScheme) };
    let scheme = base.scheme.ok_or(Reject::NoScheme)?;
    if link.authority.is_some_and(|authority| !authority.is_empty()) {
        return Ok(own(scheme));
    }
    let (directory, path) = match link.path.as_bytes() {
        [] => ("", base.path),
        [b'/', ..] => ("", link.path),
        _ => (base.path.rfind('/').and_then(|slash| base.path.get(..=slash)).unwrap_or_default(), link.path),
    };
    let query = if link.path.is_empty() && link.query.is_none() { base.query } else { link.query };
    Ok(Resolved { scheme, authority: base.authority, directory, path, query })
}

fn write(url: &Resolved<'_>, policy: &Policy, out: &mut String) -> Result<(), Reject> {
    let (scheme, own_port) = if url.scheme.eq_ignore_ascii_case("http") {
        ("http", "80")
    } else if url.scheme.eq_ignore_ascii_case("https") {
        ("https", "443")
    } else {
        return Err(Reject::scheme(url.scheme.as_bytes()));
    };
    let authority = url.authority.ok_or(Reject::NoHost)?;
    out.push_str(scheme);
    out.push_str("://");
    push_host(authority.host, out)?;
    if !authority.port.is_empty() && authority.port != own_port {
        out.push(':');
        out.push_str(authority.port);
    }
    let start = out.len();
    push_path(url.directory, url.path, out);
    policy.fold_path(start, out);
    if let Some(query) = url.query {
        query::push(query, policy, out);
    }
    Ok(())
}

/// Rule 5.
fn push_path(directory: &str, path: &str, out: &mut String) {
    let start = out.len();
    percent::normalise(directory, KEY_PATH, out);
    percent::normalise(path, KEY_PATH, out);
    let written = out.get(start..).unwrap_or_default();
    if written.is_empty() {
        out.push('/');
    } else if !written.starts_with('/') || dots::look(written).0 {
        let written = written.to_owned();
        out.truncate(start);
        dots::remove(&written, out);
    }
}

/// Rule 7.
fn push_host(name: &str, out: &mut String) -> Result<(), Reject> {
    if name.starts_with('[') {
        out.push_str(&host::ipv6(name)?);
        return Ok(());
    }
    let start = out.len();
    if host::is_plain(name.as_bytes()) {
        out.push_str(name);
        if let Some(written) = out.get_mut(start..) {
            written.make_ascii_lowercase();
        }
    } else {
        out.push_str(&host::punycode(&decode_host(name)?)?);
    }
    while out.len() > start && out.ends_with('.') {
        out.pop();
    }
    match out.len() - start {
        0 => Err(Reject::NoHost),
        len => raw::check_host_len(len),
    }
}

/// Decodes the escapes of a host, which may only stand for non-ASCII bytes.
fn decode_host(name: &str) -> Result<Cow<'_, [u8]>, Reject> {
    let bytes = name.as_bytes();
    if memchr::memchr(b'%', bytes).is_none() {
        return Ok(bytes.into());
    }
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte == b'%' {
            match percent::escape_at(bytes, at) {
                Some(byte) if !byte.is_ascii() => decoded.push(byte),
                _ => return Err(Reject::HostByte { byte }),
            }
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    Ok(decoded.into())
}
