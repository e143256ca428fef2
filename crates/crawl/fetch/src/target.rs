//! What connections are pooled by.

use trawl_url::WebUrl;

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub https: bool,
    /// Lower case; an IPv6 literal without brackets.
    pub host: String,
    pub port: u16,
}

impl Origin {
    pub(crate) fn of(url: &WebUrl) -> Self {
        let host = url.host().trim_matches(['[', ']']).to_owned();
        Self { https: url.is_https(), host, port: url.port() }
    }
}
