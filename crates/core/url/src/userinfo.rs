//! `user:password@` in URLs: kept in files as it was found, and left out where URLs are shown.

use crate::redact::{Printed, redact};
use std::borrow::Cow;

/// The URL without what stands before the `@` of its authority; as it is, if there is nothing.
///
/// ```
/// use trawl_url::without_userinfo;
///
/// assert_eq!(without_userinfo("https://me:secret@a.example/x@y"), "https://a.example/x@y");
/// assert_eq!(without_userinfo("https://a.example/x@y"), "https://a.example/x@y");
/// ```
pub fn without_userinfo(url: &str) -> Cow<'_, str> {
    // Browsers pass over these wherever they are, also inside a scheme.
    if url.contains(['\t', '\n', '\r']) {
        let joined = url.replace(['\t', '\n', '\r'], "");
        let has_any = userinfo(&joined).is_some();
        return if has_any { Cow::Owned(without_userinfo(&joined).into_owned()) } else { Cow::Borrowed(url) };
    }
    let Some((start, end)) = userinfo(url) else { return Cow::Borrowed(url) };
    let (Some(before), Some(after)) = (url.get(..start), url.get(end..)) else { return Cow::Borrowed(url) };
    Cow::Owned(format!("{before}{after}"))
}

/// A text as it is shown: without user names and passwords of URLs, whether it is one as a whole or has some inside.
///
/// ```
/// use trawl_url::without_credentials;
///
/// assert_eq!(without_credentials("see http://me:secret@a.example/ and"), "see http://a.example/ and");
/// assert_eq!(without_credentials("http://m\te:secret@a.example/"), "http://a.example/");
/// assert_eq!(without_credentials("me@a.example"), "me@a.example");
/// ```
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    if !text.contains('@') {
        return Cow::Borrowed(text);
    }
    let start = text.trim_start_matches(|c: char| c <= ' ');
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '\t' | '\n' | '\r');
    let rest = start.trim_start_matches(is_scheme);
    let is_slash = |rest: &str| rest.trim_start_matches(['\t', '\n', '\r']).starts_with(['/', '\\']);
    let is_url = rest.strip_prefix(':').is_some_and(is_slash) || start.starts_with("//");
    let whole = if is_url { without_userinfo(text) } else { Cow::Borrowed(text) };
    match redact(whole.as_bytes(), Printed::Text) {
        Cow::Borrowed(_) => whole,
        // Only bytes up to an `@` were left out, from one behind a slash on: what is left is text.
        Cow::Owned(shown) => Cow::Owned(String::from_utf8_lossy(&shown).into_owned()),
    }
}

/// Where the user information of a URL is, its `@` included. As browsers read it: any number of slashes of both kinds begin an
/// authority, and the last `@` in it ends the user information.
fn userinfo(url: &str) -> Option<(usize, usize)> {
    let is_slash = |c: char| matches!(c, '/' | '\\');
    let scheme = url.find(':').filter(|at| {
        url.get(..*at).is_some_and(|scheme| {
            let scheme = scheme.trim_start_matches(|c| c <= ' ');
            !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
        })
    });
    // `user:password@host` without a scheme looks as if it had one.
    let from = match scheme {
        Some(at) if url.get(at + 1..)?.starts_with(is_slash) => at + 1,
        _ => 0,
    };
    let rest = url.get(from..)?;
    let start = from + (rest.len() - rest.trim_start_matches(is_slash).len());
    let authority = url.get(start..)?.split(['/', '\\', '?', '#']).next()?;
    authority.rfind('@').map(|at| (start, start + at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_authority_loses_something() {
        for (url, expected) in [
            ("http://u:p@h/", "http://h/"),
            ("http://u@h", "http://h"),
            ("http://u:p@x@h:8/a?b#c", "http://h:8/a?b#c"),
            ("HTTP:\\\\u:p@h\\x", "HTTP:\\\\h\\x"),
            ("http:////u:p@h/", "http:////h/"),
            ("//u:p@h/", "//h/"),
            ("u:p@h/x", "h/x"),
            ("ftp://é:ü@h/", "ftp://h/"),
            (" http://u:p@h/", " http://h/"),
            ("ht\ntp:/\t/u:p@h/", "http://h/"),
            ("http://h/\t@", "http://h/\t@"),
            ("http://h/@", "http://h/@"),
            ("http://h?u@x", "http://h?u@x"),
            ("http://h#u@x", "http://h#u@x"),
            ("", ""),
            ("@", ""),
            ("mailto:x@y", "y"),
        ] {
            assert_eq!(without_userinfo(url), expected, "{url}");
        }
    }
}
