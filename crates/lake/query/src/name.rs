//! From what a person types to a registrable domain, a host and the beginning of a path.

use crate::QueryError;
use std::net::Ipv6Addr;
use trawl_url::{LakeUrl, SuffixList};

/// The registrable domain of a host name in any spelling: `www.X.com`, `X.COM.`, `bücher.example`, `[::1]`.
pub(crate) fn registrable(name: &str, suffixes: &SuffixList) -> Result<String, QueryError> {
    let plain = name.trim();
    if is_plain(plain) {
        return Ok(suffixes.registrable(plain).to_owned());
    }
    Ok(parse(name, suffixes)?.domain().to_owned())
}

/// A host name as rows have it, from any spelling.
pub(crate) fn host(name: &str, suffixes: &SuffixList) -> Result<String, QueryError> {
    Ok(parse(name, suffixes)?.host().to_owned())
}

/// The beginning of a path (and query) as rows have it, from any spelling; but parameters stay in the order that they have here,
/// since the last one may go on.
pub(crate) fn path_prefix(prefix: &str, suffixes: &SuffixList) -> String {
    // Text behind a fragment is not a parameter.
    let Some((path, query)) = prefix.split_once('?').filter(|_| !prefix.contains('#')) else {
        return one_prefix(prefix, suffixes);
    };
    let mut form = one_prefix(&format!("{path}?"), suffixes);
    // One by one, as nothing else keeps them in their order.
    let (before, last) = query.rsplit_once('&').unwrap_or(("", query));
    let whole = before.split('&').filter(|piece| !piece.is_empty()).map(|piece| (piece, "&"));
    for (piece, end) in whole.chain([(last, "")]) {
        let piece = one_prefix(&format!("{path}?{piece}"), suffixes);
        form.push_str(piece.split_once('?').map_or("", |(_, piece)| piece));
        form.push_str(end);
    }
    form
}

/// The same, of a path with one parameter at most.
fn one_prefix(prefix: &str, suffixes: &SuffixList) -> String {
    if prefix.is_empty() {
        return String::new();
    }
    let (head, cut) = split_cut_escape(prefix);
    let slash = if head.starts_with('/') { "" } else { "/" };
    let form = |after| {
        let url = LakeUrl::parse(&format!("http://host{slash}{head}{after}"), suffixes).ok()?;
        Some(url.path_query().to_owned())
    };
    // A path that goes on: `/a?` and `/a/..` alone would be read as `/a` and `/`. Where something is moved behind the tildes all
    // the same, the prefix is taken for a whole path.
    let going_on = form("~~~~").and_then(|path| path.strip_suffix("~~~~").map(str::to_owned));
    let Some(mut path) = going_on.or_else(|| form("")) else { return prefix.to_owned() };
    path.push_str(&cut.to_ascii_uppercase());
    path
}

/// Takes the beginning of an escape, `%` or `%4`, off the end.
fn split_cut_escape(text: &str) -> (&str, &str) {
    let is_cut = |at: &usize| text.as_bytes().get(*at) == Some(&b'%');
    let at = match text.as_bytes() {
        [.., last] if last.is_ascii_hexdigit() => text.len().checked_sub(2),
        _ => text.len().checked_sub(1),
    };
    at.filter(is_cut).and_then(|at| text.split_at_checked(at)).unwrap_or((text, ""))
}

fn parse(name: &str, suffixes: &SuffixList) -> Result<LakeUrl, QueryError> {
    let bad =
        |why: &dyn ToString| QueryError::BadDomain { found: name.chars().take(100).collect(), why: why.to_string() };
    let name = name.trim();
    if name.is_empty() {
        return Err(bad(&"it is empty"));
    }
    let ipv6 = name.trim_start_matches('[').trim_end_matches(']').parse::<Ipv6Addr>().is_ok();
    // A URL parser would take these as the end of the host, and answer for something else than what was asked.
    let cuts = |c: char| matches!(c, '/' | '\\' | '?' | '#' | '@') || c.is_whitespace() || c.is_control();
    if let Some(c) = name.chars().find(|c| cuts(*c) || (*c == ':' && !ipv6)) {
        return Err(bad(&format!("a host name cannot contain {c:?}")));
    }
    let host = if ipv6 && !name.starts_with('[') { format!("[{name}]") } else { name.to_owned() };
    LakeUrl::parse(&format!("http://{host}/"), suffixes).map_err(|reject| bad(&reject))
}

/// Whether a name is spelt already as the URL parser would spell it: most are, and asking it costs as much as the rest of
/// a lookup.
fn is_plain(name: &str) -> bool {
    let label = |label: &str| {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(fits) && !label.starts_with("xn--")
    };
    // A last label that begins with a digit may be part of an address.
    let named = |last: &str| last.starts_with(|c: char| c.is_ascii_lowercase());
    name.len() <= 253 && name.split('.').all(label) && name.rsplit('.').next().is_some_and(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn beginnings_of_paths_are_spelt_as_rows_are() {
        let of = |prefix: &str| path_prefix(prefix, SuffixList::builtin());
        for (prefix, expected) in [
            ("", ""),
            ("/", "/"),
            ("/%7Eme", "/~me"),
            ("//double", "/double"),
            ("/p q", "/p%20q"),
            ("/p ", "/p%20"),
            ("/ü", "/%C3%BC"),
            ("docs/", "/docs/"),
            ("/a/./b/../c", "/a/c"),
            ("/a/..", "/a/.."),
            ("/a?", "/a?"),
            ("/a?z=1&", "/a?z=1&"),
            ("/a?z=1&b=2", "/a?z=1&b=2"),
            ("/a?z=%7e&b=%c3%bc&c=%2", "/a?z=~&b=%C3%BC&c=%2"),
            ("?z=1&&b", "/?z=1&b"),
            ("a/../?z=1&b", "/?z=1&b"),
            ("/a#b", "/a"),
            ("/p%2", "/p%2"),
            ("/p%c", "/p%C"),
            ("/p%", "/p%"),
        ] {
            assert_eq!(of(prefix), expected, "{prefix:?}");
        }
    }

    proptest! {
        #[test]
        fn a_beginning_of_a_path_in_lake_form_stays_as_it_is(raw in "/[a%27Ee~ü./?&=z ]{0,20}") {
            let psl = SuffixList::builtin();
            let url = LakeUrl::parse(&format!("http://host{raw}"), psl).unwrap();
            let path = url.path_query();
            for end in 1..=path.len() {
                prop_assert_eq!(path_prefix(&path[..end], psl), &path[..end]);
            }
        }

        #[test]
        fn plain_names_are_what_the_parser_makes_of_them(name in "(xn--|[a-z0-9-]{1,4}|co|com|[0-9]){1,3}(\\.(xn--|[a-z0-9-]{1,4}|co|com|[0-9]|0x1)){0,4}") {
            prop_assume!(is_plain(&name));
            let psl = SuffixList::builtin();
            let url = LakeUrl::parse(&format!("http://{name}/"), psl).unwrap();
            prop_assert_eq!(registrable(&name, psl).unwrap(), url.domain());
        }
    }

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
