//! One fetch, succeeded or failed.

use crate::{Body, Digest, UnixMillis};
use bytes::Bytes;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// One request/response exchange, or one failure. Each hop of a redirect is a capture of its own.
#[derive(Debug)]
pub struct Capture<'a> {
    /// The URL that was asked for, as it is stored and fetched.
    pub url: String,
    /// When the fetch began: `WARC-Date`.
    pub started_at: UnixMillis,
    /// The request as sent; absent where a container does not keep it.
    pub request: Option<Message<'a>>,
    /// What came back.
    pub outcome: Outcome<'a>,
    /// What only the index would know.
    pub facts: CaptureFacts,
}

/// An HTTP message: its head as on the wire, up to and including the empty line, and its body.
#[derive(Debug)]
pub struct Message<'a> {
    /// Start line and header lines, each with its line end, and the empty line.
    pub head: Bytes,
    /// De-chunked; content codings as received.
    pub body: Body<'a>,
}

/// What came back.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// A response with its body.
    Response {
        /// Head and stored body.
        message: Message<'a>,
        /// Digest of the stored body, once known.
        payload_digest: Option<Digest>,
        /// Why the stored body is shorter than what the server had, if it is.
        truncated: Option<Truncated>,
    },
    /// A response whose body is stored elsewhere. Resolving it is a service of its own, never part of iteration.
    Revisit(Revisit),
    /// Nothing usable came back.
    Failed(Failure),
}

/// A response that repeats an earlier one.
#[derive(Debug, Clone)]
pub struct Revisit {
    /// The head that was received, status line and all.
    pub head: Bytes,
    /// Why the body was left out.
    pub profile: RevisitProfile,
    /// Digest of the body that was left out; the first profile demands it.
    pub payload_digest: Option<Digest>,
    /// Target of the capture that holds the body.
    pub refers_to_url: Option<String>,
    /// Date of the capture that holds the body.
    pub refers_to_date: Option<UnixMillis>,
    /// Record id of the capture that holds the body.
    pub refers_to_id: Option<String>,
    /// Length of the body that was left out, where known.
    pub body_length: u64,
}

/// Why a revisit has no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisitProfile {
    /// The body came and was the same.
    IdenticalPayloadDigest,
    /// The server said 304.
    ServerNotModified,
}

/// A fetch without a usable response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind, for machines.
    pub class: ErrorClass,
    /// What happened, for people.
    pub message: String,
}

/// What only the index would know of a capture: written into its `metadata` record, so that the index can be rebuilt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CaptureFacts {
    /// Id of the record that holds the response (`urn:uuid:…`, without brackets). A sink gives one where there is none.
    pub record_id: Option<String>,
    /// The run that made the capture.
    pub run_id: Option<String>,
    /// When the fetch completed.
    pub fetched_at: UnixMillis,
    /// Address of the peer.
    pub ip: Option<IpAddr>,
    /// `http/1.1`, `h2`.
    pub protocol: Option<String>,
    /// The URL whose redirect led here.
    pub redirect_of: Option<String>,
    /// The URL on which the link was found.
    pub via: Option<String>,
    /// Links followed from a seed.
    pub depth: u32,
    /// Which attempt this was, from 1.
    pub attempt: u32,
    /// What robots.txt said.
    pub robots: Option<RobotsVerdict>,
    /// How long each part took.
    pub timings: Timings,
    /// What was agreed and believed of an https connection.
    pub tls: Option<TlsFacts>,
    /// Digest of the decoded body, so that a change of coding is not a change of page.
    pub body_digest: Option<Digest>,
    /// The seed's own metadata: a JSON object, as it came.
    pub meta_json: Option<String>,
}

/// What was agreed on an https connection, and whether its certificate would have been believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// `TLSv1.3`, `TLSv1.2`.
    pub version: String,
    /// Cipher suite by its IANA name.
    pub cipher_suite: String,
    /// Why the certificate would be refused; `None` when it is good.
    pub refused: Option<String>,
}

/// How long each part of a fetch took, in milliseconds; absent where it did not happen (a reused connection).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timings {
    /// TCP.
    pub connect_ms: Option<u32>,
    /// TLS handshake.
    pub tls_ms: Option<u32>,
    /// Request sent until first byte.
    pub ttfb_ms: Option<u32>,
    /// All of it.
    pub total_ms: Option<u32>,
}

/// Gives an enum its names in files: `as_str`, `Display` and `FromStr` from one list.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every value, in the order of the contract.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                Self::ALL.iter().copied().find(|v| v.as_str() == text)
                    .ok_or_else(|| format!("expected one of {}, found {text:?}", [$($text),+].join(", ")))
            }
        }
    };
}

pub(crate) use named;

named! {
    /// Why a stored body is shorter than what the server had.
    Truncated {
        /// The limit on body bytes.
        Length = "length",
        /// The limit on time.
        Time = "time",
        /// The connection ended early.
        Disconnect = "disconnect",
        /// Some other reason, found in others' files.
        Unspecified = "unspecified",
    }
}

named! {
    /// What robots.txt said about a fetch.
    RobotsVerdict {
        /// It may be fetched.
        Allowed = "allowed",
        /// It may not.
        Denied = "denied",
        /// robots.txt could not be had, so nothing may be fetched for now.
        Unavailable = "unavailable",
        /// Not asked, because the operator named the host.
        Ignored = "ignored",
    }
}

named! {
    /// The kinds of failure.
    ErrorClass {
        /// The name does not exist.
        DnsNxdomain = "dns_nxdomain",
        /// No answer about the name in time.
        DnsTimeout = "dns_timeout",
        /// A name server said that it could not find out (SERVFAIL).
        DnsServfail = "dns_servfail",
        /// A name server refused to answer (REFUSED).
        DnsRefused = "dns_refused",
        /// Any other trouble with the name.
        DnsFailure = "dns_failure",
        /// The port is closed.
        ConnectRefused = "connect_refused",
        /// No connection in time.
        ConnectTimeout = "connect_timeout",
        /// No way there.
        NoRoute = "no_route",
        /// Only addresses outside the public web, which are not allowed for this host.
        PrivateAddress = "private_address",
        /// The handshake failed, or `--tls verify` refused the certificate.
        TlsFailure = "tls_failure",
        /// No response head in time.
        HeaderTimeout = "header_timeout",
        /// Nothing of the body in time.
        BodyTimeout = "body_timeout",
        /// The peer dropped the connection.
        Reset = "reset",
        /// What came is not HTTP.
        ProtocolError = "protocol_error",
        /// Too many redirects.
        RedirectLimit = "redirect_limit",
        /// A redirect to nowhere.
        RedirectBad = "redirect_bad",
        /// robots.txt forbids it.
        RobotsDenied = "robots_denied",
        /// robots.txt could not be had.
        RobotsUnavailable = "robots_unavailable",
        /// The host failed too often.
        DeadHost = "dead_host",
        /// Not a URL.
        BadUrl = "bad_url",
        /// Not http or https.
        BadScheme = "bad_scheme",
        /// Over a limit, before anything worth storing came.
        TooLarge = "too_large",
        /// This machine ran out of something.
        LocalResource = "local_resource",
        /// Stopped by the operator.
        Cancelled = "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for class in ErrorClass::ALL {
            assert_eq!(class.as_str().parse::<ErrorClass>(), Ok(*class));
        }
        assert_eq!(ErrorClass::ALL.len(), 24);
        assert!("nonsense".parse::<Truncated>().unwrap_err().contains("length, time"));
    }
}
