//! The URL as found: as browsers resolve it (the WHATWG URL standard), without the fragment.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::{Position, Url};

use crate::{Reject, odd, plain, raw};

/// An absolute `http` or `https` URL as it is stored, fetched and archived. Parsed once, on its way into a crawl; code
/// that gets it after that also gets the positions of its parts.
///
/// ```
/// use trawl_url::WebUrl;
/// let url = WebUrl::parse(" HTTP://user@Example.com:8080/a/../b?c#d")?;
/// assert_eq!(url.as_str(), "http://example.com:8080/b?c");
/// assert_eq!((url.host(), url.port(), url.path_query()), ("example.com", 8080, "/b?c"));
/// assert_eq!(url.join("/robots.txt")?.as_str(), "http://example.com:8080/robots.txt");
/// assert_eq!(url.join("mailto:x@y").unwrap_err().code(), "scheme");
/// # Ok::<(), trawl_url::Reject>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WebUrl {
    pub(crate) text: Box<str>,
    pub(crate) host_start: u32,
    pub(crate) host_end: u32,
    pub(crate) path_start: u32,
    pub(crate) port: u16,
}

impl WebUrl {
    /// Reads a text that needs no base, normalised as browsers do, without its fragment and without `user:password@`.
    pub fn parse(raw: &str) -> Result<WebUrl, Reject> {
        raw::check_len(raw.len())?;
        if let Some(url) = plain::read(raw) {
            return Ok(url);
        }
        let text = raw::clean(raw);
        if text.is_empty() {
            return Err(Reject::Empty);
        }
        raw::check_host(&text)?;
        let (url, mask) = odd::parse(&text, None)?;
        WebUrl::of(url, mask)
    }

    fn of(mut url: Url, mask: odd::Mask) -> Result<WebUrl, Reject> {
        let port = port_of(&url).ok_or_else(|| Reject::scheme(url.scheme().as_bytes()))?;
        raw::check_host_len(url.host_str().map_or(0, str::len))?;
        url.set_fragment(None);
        // A password belongs into no request, archive, journal or screen. Neither call fails where there is a host.
        if !url.username().is_empty() || url.password().is_some() {
            let _ = (url.set_password(None), url.set_username(""));
        }
        raw::check_len(url.as_str().len())?;
        let place = |position| u32::try_from(url[..position].len()).map_err(|_| Reject::Syntax);
        let (host_start, host_end) = (place(Position::BeforeHost)?, place(Position::AfterHost)?);
        let path_start = place(Position::BeforePath)?;
        let mut text = String::from(url);
        if mask.is_some()
            && let Some(host) = text.get(host_start as usize..host_end as usize)
        {
            let host = odd::unmask(host, mask).into_owned();
            text.replace_range(host_start as usize..host_end as usize, &host);
        }
        Ok(WebUrl { text: text.into_boxed_str(), host_start, host_end, path_start, port })
    }

    /// Where a link on this page leads to. For the many links of one page, [`Base`] is faster.
    pub fn join(&self, link: &str) -> Result<WebUrl, Reject> {
        Base::new(self)?.resolve(link)
    }

    /// The root of its site: same scheme, host and port, no user information, path `/`.
    pub fn root(&self) -> WebUrl {
        self.at_site("/")
    }

    /// The robots.txt of its site.
    pub fn robots(&self) -> WebUrl {
        self.at_site("/robots.txt")
    }

    fn at_site(&self, path: &'static str) -> WebUrl {
        let text = format!("{}://{}{path}", self.scheme(), self.authority()).into_boxed_str();
        // What goes is user information, in front of the host.
        let cut = self.host_start - if self.is_https() { 8 } else { 7 };
        let [host_start, host_end, path_start] = [self.host_start, self.host_end, self.path_start].map(|at| at - cut);
        WebUrl { text, host_start, host_end, path_start, port: self.port }
    }

    fn part(&self, from: u32, to: u32) -> &str {
        self.text.get(from as usize..to as usize).unwrap_or_default()
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the scheme is https.
    pub fn is_https(&self) -> bool {
        self.text.starts_with("https:")
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.is_https() { "https" } else { "http" }
    }

    /// The host: lower case, punycode; IPv6 in brackets.
    pub fn host(&self) -> &str {
        self.part(self.host_start, self.host_end)
    }

    /// The port, the scheme's own where none is written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host, and port if it is not the scheme's own: the value of a `Host` field.
    pub fn authority(&self) -> &str {
        self.part(self.host_start, self.path_start)
    }

    /// Path and query; begins with `/`.
    pub fn path_query(&self) -> &str {
        self.text.get(self.path_start as usize..).unwrap_or_default()
    }

    /// Whether two URLs have scheme, host and port in common, and so a robots.txt.
    pub fn same_site(&self, other: &WebUrl) -> bool {
        (self.is_https(), self.port, self.host()) == (other.is_https(), other.port, other.host())
    }
}

/// The effective port of a web URL; `None` for other schemes.
fn port_of(url: &Url) -> Option<u16> {
    match url.scheme() {
        "http" => Some(url.port().unwrap_or(80)),
        "https" => Some(url.port().unwrap_or(443)),
        _ => None,
    }
}

impl Deref for WebUrl {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl From<WebUrl> for String {
    fn from(url: WebUrl) -> String {
        url.text.into()
    }
}

impl Serialize for WebUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for WebUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WebUrl, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        WebUrl::parse(&text).map_err(|reject| serde::de::Error::custom(format!("{text:?}: {reject}")))
    }
}

/// A page's base, parsed once for all its links.
#[derive(Debug, Clone)]
pub struct Base {
    url: Url,
    mask: odd::Mask,
}

impl Base {
    /// Takes the page's URL, or what its `<base href>` resolves to.
    pub fn new(base: &str) -> Result<Base, Reject> {
        raw::check_len(base.len())?;
        let text = raw::clean(base);
        raw::check_host(&text)?;
        let (url, mask) = odd::parse(&text, None).map_err(|_| Reject::Base)?;
        port_of(&url).map(|_| Base { url, mask }).ok_or(Reject::Base)
    }

    /// The absolute URL a link on the page leads to.
    pub fn resolve(&self, link: &str) -> Result<WebUrl, Reject> {
        raw::check_len(link.len())?;
        // An absolute link needs no base.
        if let Some(url) = plain::read(link) {
            return Ok(url);
        }
        let text = raw::clean(link);
        raw::check_host(&text)?;
        // Browsers pass over slashes of either kind at the start of a host, however many; the `url` crate takes two.
        let rest = text.trim_start_matches(['/', '\\']);
        let (url, mask) = match text.len() - rest.len() {
            0..=2 => odd::parse(&text, Some(&self.url))?,
            _ => odd::parse(&format!("//{rest}"), Some(&self.url))?,
        };
        let own = self.mask.filter(|_| mask.is_none() && url.host_str() == self.url.host_str());
        WebUrl::of(url, mask.or(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        for (url, host, port, authority, path, root) in [
            ("http://a.example/x?y", "a.example", 80, "a.example", "/x?y", "http://a.example/"),
            ("https://a.example:8443", "a.example", 8443, "a.example:8443", "/", "https://a.example:8443/"),
            ("http://u:p@a.example:81/@x:9", "a.example", 81, "a.example:81", "/@x:9", "http://a.example:81/"),
            ("https://[2001:DB8::1]:443?q", "[2001:db8::1]", 443, "[2001:db8::1]", "/?q", "https://[2001:db8::1]/"),
            ("http://[::1]:8080/", "[::1]", 8080, "[::1]:8080", "/", "http://[::1]:8080/"),
            (
                "http://Bücher.example/ä",
                "xn--bcher-kva.example",
                80,
                "xn--bcher-kva.example",
                "/%C3%A4",
                "http://xn--bcher-kva.example/",
            ),
        ] {
            let url = WebUrl::parse(url).unwrap();
            assert_eq!((url.host(), url.port(), url.authority(), url.path_query()), (host, port, authority, path));
            assert_eq!(url.root(), WebUrl::parse(root).unwrap());
            assert_eq!(url.robots(), WebUrl::parse(&format!("{root}robots.txt")).unwrap());
            assert!(url.same_site(&url.root()));
            assert_eq!(serde_json::to_string(&url).unwrap(), format!("\"{url}\""));
            assert_eq!(serde_json::from_str::<WebUrl>(&format!("\"{url}\"")).unwrap(), url);
        }
        for (a, b) in [("http://a/", "https://a/"), ("http://a/", "http://a:81/"), ("http://a/", "http://b/")] {
            assert!(!WebUrl::parse(a).unwrap().same_site(&WebUrl::parse(b).unwrap()));
        }
        for (url, code) in [
            ("", "empty"),
            ("a.example", "no_scheme"),
            ("ftp://a/", "scheme"),
            ("http://", "no_host"),
            ("http://a:99999/", "port"),
        ] {
            assert_eq!(WebUrl::parse(url).unwrap_err().code(), code, "{url}");
        }
        assert!(serde_json::from_str::<WebUrl>("\"mailto:x\"").unwrap_err().to_string().starts_with("\"mailto:x\""));
    }
}
