//! `user:password@` in URLs: kept in files as it was found, and left out where URLs are shown.

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
