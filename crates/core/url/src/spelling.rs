//! URLs as people type and read them: looked for in any spelling, host names shown in their own script.

use crate::{LakeUrl, SuffixList};
use std::borrow::Cow;

/// A URL to look for, in any spelling: two URLs are the same if their lake forms are.
#[derive(Debug, Clone)]
pub struct AnySpelling {
    typed: String,
    /// The lake form, if it is a URL at all.
    form: Option<String>,
}

impl AnySpelling {
    /// The URL as it was typed; `example.com/a` means `http://example.com/a`.
    pub fn new(typed: &str) -> Self {
        Self { typed: typed.to_owned(), form: form(typed) }
    }

    /// Whether a URL is the one that is looked for.
    pub fn matches(&self, url: &str) -> bool {
        url == self.typed || self.form.is_some() && form(url) == self.form
    }

    /// The spellings that are worth trying where URLs can only be found exactly.
    pub fn candidates(&self) -> impl Iterator<Item = &str> {
        [Some(&self.typed), self.form.as_ref().filter(|form| **form != self.typed)]
            .into_iter()
            .flatten()
            .map(|url| &**url)
    }
}

fn form(url: &str) -> Option<String> {
    LakeUrl::parse(url, SuffixList::builtin()).ok().map(|url| url.as_str().to_owned())
}

/// A host name in its own script, for people: `bücher.example` for `xn--bcher-kva.example`. A name that cannot be shown so, or
/// need not be, stays as it is.
pub fn shown_host(host: &str) -> Cow<'_, str> {
    if !host.split('.').any(|label| label.starts_with("xn--")) {
        return Cow::Borrowed(host);
    }
    match idna::domain_to_unicode(host) {
        (shown, Ok(())) => Cow::Owned(shown),
        (_, Err(_)) => Cow::Borrowed(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_found_in_any_spelling() {
        let wanted = AnySpelling::new("HTTP://Example.COM:80/a/../b#top");
        assert!(wanted.matches("http://example.com/b") && wanted.matches("HTTP://Example.COM:80/a/../b#top"));
        assert!(!wanted.matches("https://example.com/b") && !wanted.matches("http://example.com/B"));
        assert_eq!(wanted.candidates().nth(1), Some("http://example.com/b"));
        assert!(AnySpelling::new("example.com").matches("http://example.com/"));
        // What is no URL matches only itself.
        let key = AnySpelling::new("http://");
        assert!(key.matches("http://") && !key.matches("http:///") && key.candidates().count() == 1);
    }

    #[test]
    fn host_names_in_their_own_script() {
        assert_eq!(shown_host("xn--bcher-kva.example"), "bücher.example");
        assert_eq!(shown_host("example.com"), "example.com");
        assert_eq!(shown_host("xn--a.example"), "xn--a.example");
    }
}
