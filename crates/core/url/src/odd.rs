//! Labels that begin with `xn--` and are not punycode. The URL standard takes an ASCII name as it is, in lower case, since such
//! names exist and resolve; the `url` crate still refuses them. It reads them under another prefix of the same length, which is
//! put right afterwards.

use std::borrow::Cow;

use url::{ParseError, Url};

const PREFIX: &str = "xn--";

/// What stands for [`PREFIX`] while the `url` crate reads: the first that the text does not have itself.
const MASKS: [&str; 4] = ["xq--", "xz--", "xj--", "xk--"];

/// What [`Url`]'s host has in place of `xn--`, if anything.
pub type Mask = Option<&'static str>;

/// Reads a text, against `base` if there is one.
pub fn parse(text: &str, base: Option<&Url>) -> Result<(Url, Mask), ParseError> {
    let options = Url::options();
    let options = options.base_url(base);
    match options.parse(text) {
        Err(ParseError::IdnaError) => {
            let (masked, mask) = mask(text).ok_or(ParseError::IdnaError)?;
            Ok((options.parse(&masked)?, Some(mask)))
        }
        read => Ok((read?, None)),
    }
}

/// The host as it was meant, of the same length.
pub fn unmask(host: &str, mask: Mask) -> Cow<'_, str> {
    let Some(mask) = mask else { return host.into() };
    let labels = host.split('.').map(|label| match label.strip_prefix(mask) {
        Some(rest) => format!("{PREFIX}{rest}"),
        None => label.to_owned(),
    });
    labels.collect::<Vec<_>>().join(".").into()
}

/// The text with other prefixes for `xn--` in its host, and which; `None` if its host has none, or is not ASCII.
fn mask(text: &str) -> Option<(String, &'static str)> {
    let is_slash = |c: char| matches!(c, '/' | '\\');
    let from = text.find(':').filter(|at| text.get(at + 1..).is_some_and(|rest| rest.starts_with(is_slash)));
    let from = from.map_or(0, |at| at + 1);
    let rest = text.get(from..)?;
    let start = from + (rest.len() - rest.trim_start_matches(is_slash).len());
    let authority = text.get(start..)?.split(['/', '\\', '?', '#']).next()?;
    let start = start + authority.rfind('@').map_or(0, |at| at + 1);
    let host = text.get(start..)?.split(['/', '\\', '?', '#']).next().filter(|host| host.is_ascii())?;
    let lower = host.to_ascii_lowercase();
    let mask = MASKS.into_iter().find(|mask| !lower.contains(mask))?;
    let is_odd = |label: &str| label.starts_with(PREFIX);
    if !lower.split('.').any(is_odd) {
        return None;
    }
    let labels = lower.split('.').map(|label| match label.strip_prefix(PREFIX) {
        Some(rest) => format!("{mask}{rest}"),
        None => label.to_owned(),
    });
    let masked = labels.collect::<Vec<_>>().join(".");
    Some((format!("{}{masked}{}", text.get(..start)?, text.get(start + host.len()..)?), mask))
}

#[cfg(test)]
mod tests {
    use crate::{Base, LakeUrl, SuffixList, WebUrl};

    #[test]
    fn names_that_are_not_punycode_are_names() {
        for (raw, wanted) in [
            ("http://xn--a.com/", "http://xn--a.com/"),
            ("HTTPS://u:p@A.XN--Q.Example:8443/x?y", "https://a.xn--q.example:8443/x?y"),
            ("http://xn--.example./", "http://xn--.example./"),
            ("http://xq--a.xn--a.com/", "http://xq--a.xn--a.com/"),
            ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
        ] {
            let url = WebUrl::parse(raw).unwrap();
            assert_eq!(url.as_str(), wanted, "{raw}");
            let lake = LakeUrl::parse(raw, SuffixList::builtin()).unwrap();
            assert_eq!(lake.host(), url.host().trim_end_matches('.'), "{raw}");
            // As a base, and as a link from elsewhere.
            let base = Base::new(raw).unwrap();
            assert_eq!(base.resolve("/z").unwrap().host(), url.host(), "{raw}");
            assert_eq!(base.resolve("//xq--b.example/").unwrap().host(), "xq--b.example");
            assert_eq!(Base::new("http://b.example/").unwrap().resolve(raw).unwrap().as_str(), wanted, "{raw}");
        }
        for bad in ["http://xn--a.é.com/", "http://a b/", "http://xn--a%20/"] {
            assert!(WebUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_number_of_slashes_begins_a_host() {
        let base = Base::new("https://b.example/dir/page").unwrap();
        for link in ["//h.example/p", "///h.example/p", "////h.example/p", "\\\\/h.example/p", "/\\h.example/p"] {
            assert_eq!(base.resolve(link).unwrap().as_str(), "https://h.example/p", "{link}");
        }
        assert_eq!(base.resolve("/h.example//p").unwrap().as_str(), "https://b.example/h.example//p");
    }
}
