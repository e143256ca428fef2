//! From what a person types to a registrable domain.

use crate::QueryError;
use std::net::Ipv6Addr;
use trawl_url::{LakeUrl, SuffixList};

/// The registrable domain of a host name in any spelling: `www.X.com`, `X.COM.`, `bücher.example`, `[::1]`.
pub(crate) fn registrable(name: &str, suffixes: &SuffixList) -> Result<String, QueryError> {
    let bad =
        |why: &dyn ToString| QueryError::BadDomain { found: name.chars().take(100).collect(), why: why.to_string() };
    let name = name.trim();
    if name.is_empty() {
        return Err(bad(&"it is empty"));
    }
    let ipv6 = name.trim_start_matches('[').trim_end_matches(']').parse::<Ipv6Addr>().is_ok();
    // A URL parser would take these as the end of the host, and answer for something else than what was asked.
    let cuts = |c: char| matches!(c, '/' | '\\' | '?' | '#' | '@') || c.is_whitespace() || c.is_control();
    if name.contains(cuts) || (name.contains(':') && !ipv6) {
        return Err(bad(&"only a host name is wanted, without scheme, port or path"));
    }
    let host = if ipv6 && !name.starts_with('[') { format!("[{name}]") } else { name.to_owned() };
    let url = LakeUrl::parse(&format!("http://{host}/"), suffixes).map_err(|reject| bad(&reject))?;
    Ok(url.domain().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let psl = SuffixList::builtin();
        for (name, domain) in [
            ("example.com", "example.com"),
            ("www.Example.COM", "example.com"),
            ("X.COM.", "x.com"),
            (" a.b.c.co.uk ", "c.co.uk"),
            ("bücher.example.com", "example.com"),
            ("www.bücher.com", "xn--bcher-kva.com"),
            ("xn--bcher-kva.com", "xn--bcher-kva.com"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("co.uk", "co.uk"),
            ("com", "com"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(registrable(name, psl).unwrap(), domain, "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in
            ["", "  ", "http://x.com", "x.com/a", "x.com?b", "u@x.com", "x.com:80", "a b.com", "a\\b", "x.com#", "..."]
        {
            let error = registrable(name, SuffixList::builtin()).unwrap_err();
            assert_eq!(error.code(), "bad_domain", "{name}");
        }
    }
}
