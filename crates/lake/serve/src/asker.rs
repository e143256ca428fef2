//! Who asks, and what their client understands.

use crate::failure::Failure;
use crate::server::State;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use std::net::IpAddr;
use std::sync::Arc;
use trawl_query::Principal;

/// Codings that answers may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    Gzip,
    Zstd,
}

impl Coding {
    /// The best one that a client takes: `Accept-Encoding` by RFC 9110, weights but zero taken as equal.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match (accepts(headers, "zstd"), accepts(headers, "gzip")) {
            (true, _) => Self::Zstd,
            (false, true) => Self::Gzip,
            (false, false) => Self::Plain,
        }
    }

    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

fn accepts(headers: &HeaderMap, coding: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
        let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
        named && !refused
    })
}

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) principal: Principal,
    /// The name of the principal, for logs; `None` for anyone.
    pub(crate) name: Option<Arc<str>>,
    /// Tells principals with different rights apart; 0 for anyone.
    pub(crate) mark: u64,
    /// The address of the peer, where connections have one.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) coding: Coding,
    pub(crate) takes_gzip: bool,
    /// `If-None-Match`, as sent.
    pub(crate) known: Option<String>,
}

/// The address a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

impl FromRequestParts<Arc<State>> for Asker {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<State>) -> Result<Self, Failure> {
        let identity = state.access().identify(token(&parts.headers)?)?;
        let known = parts.headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let peer = parts.extensions.get::<ConnectInfo<Peer>>().map(|info| info.0.0);
        Ok(Self {
            principal: identity.principal,
            name: identity.name,
            mark: identity.mark,
            peer,
            coding: Coding::of(&parts.headers),
            takes_gzip: accepts(&parts.headers, "gzip"),
            known,
        })
    }
}

/// The token of a request: a bearer token, or an API key.
fn token(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter().chain(headers.get_all("x-api-key"));
    let Some(value) = given.next() else { return Ok(None) };
    if given.next().is_some() {
        return Err(Failure::bad_request("more than one token is given"));
    }
    let text = value.to_str().map_err(|_| Failure::unauthorized())?;
    if headers.contains_key("x-api-key") {
        return Ok(Some(text));
    }
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim())),
        _ => Err(Failure::unauthorized()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn codings() {
        for (accept, coding) in [
            ("gzip", Coding::Gzip),
            ("br, GZIP;q=0.5", Coding::Gzip),
            ("gzip, zstd", Coding::Zstd),
            ("zstd;q=0, gzip", Coding::Gzip),
            ("identity", Coding::Plain),
            ("gzipped", Coding::Plain),
        ] {
            assert_eq!(Coding::of(&headers(&[("accept-encoding", accept)])), coding, "{accept}");
        }
    }

    #[test]
    fn tokens() {
        let of = |pairs: &[(&'static str, &str)]| token(&headers(pairs)).map(|t| t.map(str::to_owned));
        assert_eq!(of(&[]).unwrap(), None);
        assert_eq!(of(&[("authorization", "Bearer abc")]).unwrap().as_deref(), Some("abc"));
        assert_eq!(of(&[("x-api-key", "abc")]).unwrap().as_deref(), Some("abc"));
        assert!(of(&[("authorization", "Basic abc")]).is_err());
        assert!(of(&[("authorization", "Bearer abc"), ("x-api-key", "abc")]).is_err());
    }
}
