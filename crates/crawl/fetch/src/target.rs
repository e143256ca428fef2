//! What a URL asks of the network: whom to call and what to say.

use crate::error::failure;
use std::net::IpAddr;
use trawl_model::{ErrorClass, Failure};

/// Scheme, host and port: what connections are pooled by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub https: bool,
    /// Lower case; an IPv6 literal without brackets.
    pub host: String,
    pub port: u16,
}

/// A URL taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub origin: Origin,
    /// `Host`: brackets and a port that is not the scheme's own included.
    pub host_header: String,
    /// Path and query.
    pub path: String,
    /// The host, where it is an address.
    pub literal: Option<IpAddr>,
}

impl Target {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let url = url::Url::parse(text).map_err(|e| failure(ErrorClass::BadUrl, e.to_string()))?;
        let https = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(failure(ErrorClass::BadScheme, format!("expected http or https, found {other}"))),
        };
        let (host, literal) = match url.host() {
            Some(url::Host::Domain(name)) => (name.to_owned(), None),
            Some(url::Host::Ipv4(ip)) => (ip.to_string(), Some(IpAddr::V4(ip))),
            Some(url::Host::Ipv6(ip)) => (ip.to_string(), Some(IpAddr::V6(ip))),
            None => return Err(failure(ErrorClass::BadUrl, "no host")),
        };
        let port = url.port_or_known_default().unwrap_or(if https { 443 } else { 80 });
        let name = url.host_str().unwrap_or_default();
        let host_header = match url.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        Ok(Self { origin: Origin { https, host, port }, host_header, path, literal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_apart() {
        let t = Target::parse("http://Example.com:8080/a%20b?x=1&utm_source=y#frag").unwrap();
        assert_eq!(t.origin, Origin { https: false, host: "example.com".into(), port: 8080 });
        assert_eq!((t.host_header.as_str(), t.path.as_str()), ("example.com:8080", "/a%20b?x=1&utm_source=y"));
        let t = Target::parse("https://[2001:db8::1]:443?q").unwrap();
        assert_eq!(t.host_header, "[2001:db8::1]");
        assert_eq!((t.path.as_str(), t.origin.port), ("/?q", 443));
        assert!(t.literal.is_some());
    }

    #[test]
    fn refused_with_a_class() {
        assert_eq!(Target::parse("ftp://a/").unwrap_err().class, ErrorClass::BadScheme);
        assert_eq!(Target::parse("http://").unwrap_err().class, ErrorClass::BadUrl);
        assert_eq!(Target::parse("nonsense").unwrap_err().class, ErrorClass::BadUrl);
    }
}
