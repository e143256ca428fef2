//! Why a text is not taken as a URL.

/// The reason a URL was refused. Every variant has a stable [`code`](Reject::code) for counters and logs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Reject {
    /// Nothing but white space.
    #[error("expected a url, found nothing")]
    Empty,
    /// Longer than [`MAX_URL_LEN`](crate::MAX_URL_LEN), either as given or once escaped.
    #[error("expected at most {limit} bytes, found {len}")]
    TooLong {
        /// Bytes in the text.
        len: usize,
        /// The limit it broke.
        limit: usize,
    },
    /// No scheme, and no base or default that would supply one.
    #[error("expected a scheme, found a relative reference without a base")]
    NoScheme,
    /// A scheme this form does not hold, such as `mailto` or `javascript`.
    #[error("expected a web scheme, found \"{scheme}\"")]
    Scheme {
        /// The scheme found, lower case, cut to 32 bytes.
        scheme: String,
    },
    /// A web scheme without a host after it.
    #[error("expected a host, found none")]
    NoHost,
    /// Longer than [`MAX_HOST_LEN`](crate::MAX_HOST_LEN), either as given or in punycode.
    #[error("expected a host of at most {limit} bytes, found {len}")]
    HostTooLong {
        /// Bytes in the host.
        len: usize,
        /// The limit it broke.
        limit: usize,
    },
    /// A byte no host name may hold.
    #[error("expected letters, digits, '-', '_' and '.' in the host, found byte {byte:#04x}")]
    HostByte {
        /// The first such byte.
        byte: u8,
    },
    /// IDNA refuses the name: bad punycode, a forbidden code point, a joiner or Bidi violation.
    #[error("expected a valid international host name (UTS 46)")]
    HostIdna,
    /// A host that looks like an IP address but is not one: `[::g]`, `1.2.3.4.5`, `256.0.0.1`.
    #[error("expected an ip address, found a malformed one")]
    HostIp,
    /// A port that is not a decimal number in range.
    #[error("expected a port number, found something else")]
    Port,
    /// A control character inside the text.
    #[error("expected printable text, found control byte {byte:#04x}")]
    Control {
        /// The first such byte.
        byte: u8,
    },
    /// A `%` that two hex digits do not follow, where the form insists on them.
    #[error("expected two hex digits after '%'")]
    Escape,
    /// A byte that user information may not hold.
    #[error("expected user information of rfc 3986 characters")]
    Userinfo,
    /// A first path segment with a colon, which looks like a scheme but is not one.
    #[error("expected a path, found a colon in its first segment")]
    Colon,
    /// The base of a relative link is itself no web URL.
    #[error("expected an http or https URL as base")]
    Base,
    /// A SURT without its closing parenthesis or with an impossible host part.
    #[error("expected a surt such as \"com,example)/\"")]
    Surt,
    /// Refused by the URL standard for another reason.
    #[error("expected a url, found something the url standard refuses")]
    Syntax,
}

impl Reject {
    /// A name for machines that never changes: counters, JSON, error files.
    pub fn code(&self) -> &'static str {
        match self {
            Reject::Empty => "empty",
            Reject::TooLong { .. } => "too_long",
            Reject::NoScheme => "no_scheme",
            Reject::Scheme { .. } => "scheme",
            Reject::NoHost => "no_host",
            Reject::HostTooLong { .. } => "host_too_long",
            Reject::HostByte { .. } => "host_byte",
            Reject::HostIdna => "host_idna",
            Reject::HostIp => "host_ip",
            Reject::Port => "port",
            Reject::Control { .. } => "control",
            Reject::Escape => "escape",
            Reject::Userinfo => "userinfo",
            Reject::Colon => "colon",
            Reject::Base => "base",
            Reject::Surt => "surt",
            Reject::Syntax => "syntax",
        }
    }

    pub(crate) fn scheme(scheme: &[u8]) -> Self {
        let scheme = scheme.iter().take(32).map(|b| char::from(b.to_ascii_lowercase())).collect();
        Reject::Scheme { scheme }
    }
}

/// What the `url` crate says, in our words.
impl From<url::ParseError> for Reject {
    fn from(error: url::ParseError) -> Self {
        use url::ParseError as E;
        match error {
            E::EmptyHost => Reject::NoHost,
            E::IdnaError => Reject::HostIdna,
            E::InvalidPort => Reject::Port,
            E::InvalidIpv4Address | E::InvalidIpv6Address => Reject::HostIp,
            E::InvalidDomainCharacter => Reject::HostIdna,
            E::RelativeUrlWithoutBase => Reject::NoScheme,
            _ => Reject::Syntax,
        }
    }
}
