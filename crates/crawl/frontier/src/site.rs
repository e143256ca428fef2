//! Scheme, host and port of a URL.

use crate::error::Error;

/// An origin: what has a robots.txt of its own. Its host, without the port, is what politeness counts by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Site {
    /// Whether the scheme is https.
    pub https: bool,
    /// The host as URLs write it: lower case, IPv6 in brackets.
    pub host: String,
    /// The port, the scheme's own where the URL has none.
    pub port: u16,
}

impl Site {
    /// Reads the site off a URL as [`trawl_url::as_found`] writes it.
    pub fn of(url: &str) -> Result<Self, Error> {
        Self::split(url).ok_or_else(|| Error::BadUrl { found: url.chars().take(200).collect() })
    }

    fn split(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let https = match scheme {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        let place = authority.rsplit('@').next()?;
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (place, if https { 443 } else { 80 }),
        };
        (!host.is_empty()).then(|| Self { https, host: host.to_owned(), port })
    }

    /// A URL of this site.
    pub fn url(&self, path: &str) -> String {
        let Self { https, host, port } = self;
        let scheme = if *https { "https" } else { "http" };
        match (https, port) {
            (true, 443) | (false, 80) => format!("{scheme}://{host}{path}"),
            _ => format!("{scheme}://{host}:{port}{path}"),
        }
    }
}

/// Path and query of a URL as [`trawl_url::as_found`] writes it.
pub(crate) fn path_and_query(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites() {
        for (url, https, host, port, robots) in [
            ("http://a.example/x?y", false, "a.example", 80, "http://a.example/robots.txt"),
            ("https://a.example:8443/", true, "a.example", 8443, "https://a.example:8443/robots.txt"),
            ("http://u:p@a.example:81/@x:9", false, "a.example", 81, "http://a.example:81/robots.txt"),
            ("https://[2001:db8::1]/", true, "[2001:db8::1]", 443, "https://[2001:db8::1]/robots.txt"),
            ("http://[::1]:8080/", false, "[::1]", 8080, "http://[::1]:8080/robots.txt"),
        ] {
            let site = Site::of(url).unwrap();
            assert_eq!((site.https, site.host.as_str(), site.port), (https, host, port), "{url}");
            assert_eq!(site.url("/robots.txt"), robots);
        }
        for url in ["", "a.example", "ftp://a/", "http://", "http:///x", "http://a:99999/"] {
            assert!(Site::of(url).is_err(), "{url}");
        }
        assert_eq!(path_and_query("http://a/b?c#d"), "/b?c#d");
        assert_eq!(path_and_query("http://a"), "/");
    }
}
