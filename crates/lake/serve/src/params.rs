//! Parameters of requests: declared once, read, refused by name, and described in the OpenAPI document.

use crate::failure::Failure;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::{Value as Json, json};
use trawl_model::UnixMillis;

/// A kind of value that a parameter may have.
pub(crate) trait Value: Sized {
    /// What is expected, for messages.
    const EXPECTED: &'static str;

    fn parse(text: &str) -> Option<Self>;

    /// Takes a value that is given once more; `false` if a parameter can be given only once.
    fn more(&mut self, _: Self) -> bool {
        false
    }

    /// Its JSON Schema.
    fn schema() -> Json;
}

impl Value for String {
    const EXPECTED: &'static str = "a text";

    fn parse(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn schema() -> Json {
        json!({ "type": "string" })
    }
}

/// Texts with a meaning, which the OpenAPI document names; the lake itself says whether they are any good.
macro_rules! texts {
    ($($(#[$meta:meta])* $name:ident $format:literal;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(crate) struct $name(pub(crate) String);

        impl Value for $name {
            const EXPECTED: &'static str = "a text";

            fn parse(text: &str) -> Option<Self> {
                Some(Self(text.to_owned()))
            }

            fn schema() -> Json {
                json!({ "type": "string", "minLength": 1, "format": $format })
            }
        }
    )+};
}

texts! {
    /// A host name, in any spelling.
    Host "idn-hostname";
    /// A URL, in any spelling; the scheme may be left out.
    UrlText "trawl-url";
    /// A key from an earlier answer. Clients cannot make one up.
    Key "trawl-key";
}

macro_rules! numbers {
    ($($kind:ident $expected:literal $schema:expr;)+) => {$(
        impl Value for $kind {
            const EXPECTED: &'static str = $expected;

            // `+1` and `007` are numbers to the library, and two spellings of one page to a cache.
            fn parse(text: &str) -> Option<Self> {
                let plain = text.strip_prefix('-').unwrap_or(text);
                let fits = plain == "0" || plain.starts_with(|c: char| ('1'..='9').contains(&c));
                fits.then(|| text.parse().ok()).flatten()
            }

            fn schema() -> Json {
                $schema
            }
        }
    )+};
}

numbers! {
    u16 "a number from 0 to 65535" json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX });
    u32 "a number from 0 to 4294967295" json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    u64 "a number, 0 or more" json!({ "type": "integer", "minimum": 0, "maximum": i64::MAX });
    i64 "a number" json!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX });
}

impl Value for bool {
    const EXPECTED: &'static str = "true or false";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }

    fn schema() -> Json {
        json!({ "type": "boolean" })
    }
}

impl Value for UnixMillis {
    const EXPECTED: &'static str = "a time, such as 2026-01-31 or 2026-01-31T12:00:00Z";

    // Sources have seconds since 1970 and other spellings; a request that has `0.5` means something else.
    fn parse(text: &str) -> Option<Self> {
        let is_date = text.as_bytes().get(..5).is_some_and(|year| year.ends_with(b"-"));
        let is_digits = text.len() == 14 && text.bytes().all(|byte| byte.is_ascii_digit());
        (is_date || is_digits).then(|| trawl_model::date::parse(text).ok()).flatten()
    }

    fn schema() -> Json {
        json!({ "type": "string", "anyOf": [{ "format": "date" }, { "format": "date-time" }, { "pattern": "^(19|20)[0-9]{12}$", "format": "trawl-digits" }],
                "examples": ["2026-01-31", "2026-01-31T12:00:00Z", "20260131120000"] })
    }
}

/// Words of which a parameter is one.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$vmeta])* $variant),+ }

        impl $crate::params::Value for $name {
            const EXPECTED: &'static str = concat!("one of", $(" ", $text),+);

            fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "enum": [$($text),+] })
            }
        }
    };
}
pub(crate) use choice;

/// Parameters of one call.
pub(crate) trait Declared: Sized {
    fn read(pairs: Vec<(String, String)>) -> Result<Self, Failure>;

    /// As the OpenAPI document has them.
    fn describe() -> Vec<Json>;
}

/// Declares the parameters of a call: each may be given once, and no others.
macro_rules! params {
    ($(#[$meta:meta])* $name:ident { $(#[doc = $doc:literal] $field:ident: $kind:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default)]
        pub(crate) struct $name { $(#[doc = $doc] pub(crate) $field: Option<$kind>),* }

        impl $crate::params::Declared for $name {
            fn read(pairs: Vec<(String, String)>) -> Result<Self, $crate::failure::Failure> {
                let mut read = Self::default();
                for (name, text) in pairs {
                    match name.as_str() {
                        $(stringify!($field) => $crate::params::set(&mut read.$field, &name, &text)?,)*
                        _ => return Err($crate::params::unknown(&name, &[$(stringify!($field)),*])),
                    }
                }
                Ok(read)
            }

            fn describe() -> Vec<serde_json::Value> {
                vec![$(serde_json::json!({
                    "name": stringify!($field), "in": "query", "required": false, "description": $doc.trim(),
                    "schema": <$kind as $crate::params::Value>::schema(),
                })),*]
            }
        }
    };
}
pub(crate) use params;

pub(crate) fn set<T: Value>(field: &mut Option<T>, name: &str, text: &str) -> Result<(), Failure> {
    let value = T::parse(text);
    let bad = || Failure::bad_request(format!("parameter {name}: expected {}, found {:?}", T::EXPECTED, short(text)));
    let value = value.ok_or_else(bad)?;
    let Some(known) = field else {
        *field = Some(value);
        return Ok(());
    };
    if known.more(value) { Ok(()) } else { Err(Failure::bad_request(format!("parameter {name} is given twice"))) }
}

pub(crate) fn unknown(name: &str, known: &[&str]) -> Failure {
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Failure::bad_request(format!("there is no parameter {:?}; there are: {known}", short(name)))
}

fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The parameters of a request.
pub(crate) struct Params<T>(pub(crate) T);

impl<S: Send + Sync, T: Declared> FromRequestParts<S> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(Self(T::read(pairs(parts.uri.query().unwrap_or_default())?)?))
    }
}

/// Names and values of a query string.
pub(crate) fn pairs(query: &str) -> Result<Vec<(String, String)>, Failure> {
    let decode = |text: &str| {
        let bytes = text.replace('+', " ");
        let text = percent_encoding::percent_decode_str(&bytes).decode_utf8();
        let text = text.map_err(|_| Failure::bad_request("the query is not UTF-8"))?.into_owned();
        if text.contains('\0') { Err(Failure::bad_request("the query has a NUL")) } else { Ok(text) }
    };
    let pieces = query.split('&').filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

/// A call without parameters.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Declared for Nothing {
    fn read(pairs: Vec<(String, String)>) -> Result<Self, Failure> {
        pairs.first().map_or(Ok(Self), |(name, _)| Err(unknown(name, &[])))
    }

    fn describe() -> Vec<Json> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    params! {
        /// Some.
        Some3 {
            /// A number.
            limit: u32,
            /// A text.
            url: String,
            /// A flag.
            on: bool,
        }
    }

    #[test]
    fn what_is_declared_is_read_and_everything_else_refused() {
        let read = |query: &str| pairs(query).and_then(Some3::read);
        let good = read("limit=10&url=a%26b+c&&on=true").unwrap();
        assert_eq!((good.limit, good.url.as_deref(), good.on), (Some(10), Some("a&b c"), Some(true)));
        for bad in
            ["limit=+1", "limit=01", "limit=", "limit=-1", "limit=1&limit=1", "x=1", "url=%ff", "url=%00", "on=yes"]
        {
            assert_eq!(read(bad).unwrap_err().code(), "bad_request", "{bad}");
        }
        assert_eq!(Some3::describe().len(), 3);
    }
}
