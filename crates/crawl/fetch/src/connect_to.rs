//! `--connect-to HOST:PORT:ADDR:PORT`: where a connection goes instead of where its name points.

use std::fmt;
use std::str::FromStr;

/// One rule. An empty host or port on the left matches any; on the right it keeps the original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectTo {
    host: Option<String>,
    port: Option<u16>,
    to_host: Option<String>,
    to_port: Option<u16>,
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected HOST:PORT:ADDR:PORT (IPv6 in brackets, parts may be empty), found {found:?}")]
pub struct ConnectToError {
    /// The text.
    pub found: String,
}

impl ConnectTo {
    /// Whether it sends connections to another host, not only to another port.
    pub fn moves_host(&self) -> bool {
        self.to_host.is_some()
    }

    /// Where a connection for `host` and `port` goes, if this rule is about it.
    pub fn apply(&self, host: &str, port: u16) -> Option<(String, u16)> {
        let host_fits = self.host.as_deref().is_none_or(|h| h.eq_ignore_ascii_case(host));
        let port_fits = self.port.is_none_or(|p| p == port);
        (host_fits && port_fits)
            .then(|| (self.to_host.clone().unwrap_or_else(|| host.to_owned()), self.to_port.unwrap_or(port)))
    }
}

impl FromStr for ConnectTo {
    type Err = ConnectToError;

    fn from_str(text: &str) -> Result<Self, ConnectToError> {
        let error = || ConnectToError { found: text.to_owned() };
        let (host, rest) = host(text).ok_or_else(error)?;
        let (port, rest) = rest.split_once(':').ok_or_else(error)?;
        let (to_host, to_port) = self::host(rest).ok_or_else(error)?;
        let number = |text: &str| match text {
            "" => Ok(None),
            digits if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().map(Some).map_err(|_| error()),
            _ => Err(error()),
        };
        let name = |text: &str| (!text.is_empty()).then(|| text.to_ascii_lowercase());
        Ok(Self { host: name(host), port: number(port)?, to_host: name(to_host), to_port: number(to_port)? })
    }
}

/// The host at the start of `text`, without brackets, and what follows its colon.
fn host(text: &str) -> Option<(&str, &str)> {
    match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner.split_once(']')?;
            Some((host, rest.strip_prefix(':')?))
        }
        None => text.split_once(':'),
    }
}

impl fmt::Display for ConnectTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |h: &Option<String>| match h {
            Some(h) if h.contains(':') => format!("[{h}]"),
            Some(h) => h.clone(),
            None => String::new(),
        };
        let port = |p: &Option<u16>| p.map(|p| p.to_string()).unwrap_or_default();
        let Self { host: from, port: from_port, to_host, to_port } = self;
        write!(f, "{}:{}:{}:{}", host(from), port(from_port), host(to_host), port(to_port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_in_curl() {
        let all: ConnectTo = "::127.0.0.1:8080".parse().unwrap();
        assert_eq!(all.apply("www.example.com", 80), Some(("127.0.0.1".into(), 8080)));
        let one: ConnectTo = "Example.com:443:[::1]:".parse().unwrap();
        assert_eq!(one.apply("example.COM", 443), Some(("::1".into(), 443)));
        assert_eq!(one.apply("example.com", 80), None);
        assert_eq!(one.apply("www.example.com", 443), None);
        let port_only: ConnectTo = ":80::8080".parse().unwrap();
        assert_eq!(port_only.apply("a", 80), Some(("a".into(), 8080)));
        for text in ["::127.0.0.1:8080", "example.com:443:[::1]:", ":80::8080", ":::"] {
            assert_eq!(text.parse::<ConnectTo>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refused() {
        for text in ["", "a", "a:b", "a:1:b", "a:x:b:1", "a:70000:b:1", "[::1:80:a:1", "a:1:b:1:2", "a:-1:b:1"] {
            assert!(text.parse::<ConnectTo>().is_err(), "{text}");
        }
    }
}
