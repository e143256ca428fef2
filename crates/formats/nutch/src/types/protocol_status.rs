//! `protocol.ProtocolStatus`: how a fetch ended.

use std::fmt;
use trawl_hadoop::{Decoded, Decoder, Encode, EncodeStrings, Strings, Text};

/// How a fetch ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolStatus<'a> {
    /// 1 success, 11 gone, 12 moved …; see [`ProtocolStatus::name`].
    pub code: i8,
    /// Milliseconds since 1970 by the server's word; 0 = unknown.
    pub last_modified: i64,
    /// A message, or where a redirect leads.
    pub args: Option<Strings<'a>>,
}

const NAMES: [(i8, &str); 16] = [
    (1, "success"),
    (2, "failed"),
    (10, "proto_not_found"),
    (11, "gone"),
    (12, "moved"),
    (13, "temp_moved"),
    (14, "notfound"),
    (15, "retry"),
    (16, "exception"),
    (17, "access_denied"),
    (18, "robots_denied"),
    (19, "redir_exceeded"),
    (20, "notfetching"),
    (21, "notmodified"),
    (22, "wouldblock"),
    (23, "blocked"),
];

impl<'a> ProtocolStatus<'a> {
    /// A status with one argument or none.
    pub fn new(code: i8, last_modified: i64, arg: Option<String>) -> Self {
        ProtocolStatus { code, last_modified, args: arg.map(|arg| vec![Some(Text::from(arg))]) }
    }

    /// Nutch's name of the code; `None` for one it does not have.
    pub fn name(&self) -> Option<&'static str> {
        NAMES.iter().find(|(code, _)| *code == self.code).map(|(_, name)| *name)
    }

    /// The same status with bytes of its own.
    pub fn into_owned(self) -> ProtocolStatus<'static> {
        ProtocolStatus { code: self.code, last_modified: self.last_modified, args: own_args(self.args) }
    }

    /// Reads version 1 (0.7 to 0.9) or 2.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a ProtocolStatus")?;
        let code = d.i8("code")?;
        let last_modified = d.i64("last modified")?;
        let args = versioned_args(d, version)?;
        Ok(ProtocolStatus { code, last_modified, args })
    }

    /// Writes version 2.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(2);
        out.put_u8(self.code.cast_unsigned());
        out.put_i64(self.last_modified);
        out.put_strings(self.args.as_deref());
    }
}

pub(super) fn own_args(args: Option<Strings<'_>>) -> Option<Strings<'static>> {
    args.map(|args| args.into_iter().map(|arg| arg.map(Text::into_owned)).collect())
}

/// Arguments of a status: plain in version 2, compressed in version 1.
pub(super) fn versioned_args<'a>(d: &mut Decoder<'a>, version: u8) -> Decoded<Option<Strings<'a>>> {
    match version {
        2 => d.strings("arguments"),
        1 => d.compressed_strings("arguments"),
        _ => Err(d.error("a status of version 1 or 2", version.to_string())),
    }
}

/// `: argument` if there is one, else `, args[0]=…` for each that is not null.
pub(super) fn write_args(args: Option<&[Option<Text<'_>>]>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match args {
        Some([only]) => write!(f, ": {}", only.as_ref().map_or("null".into(), Text::to_str)),
        Some(args) => {
            for (n, arg) in args.iter().enumerate() {
                if let Some(arg) = arg {
                    write!(f, ", args[{n}]={arg}")?;
                }
            }
            Ok(())
        }
        None => Ok(()),
    }
}

/// `success(1), lastModified=0`.
impl fmt::Display for ProtocolStatus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({}), lastModified={}", self.name().unwrap_or("null"), self.code, self.last_modified)?;
        write_args(self.args.as_deref(), f)
    }
}
