//! `parse.ParseStatus`, `ParseText`, `ParseData` and `ParseImpl`: what parsing found.

use super::protocol_status::{own_args, versioned_args, write_args};
use super::{LinkForm, Metadata, Outlink, StringForm};
use std::fmt;
use trawl_hadoop::{Decoded, Decoder, Encode, EncodeStrings, Strings, Text};

/// How parsing ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseStatus<'a> {
    /// 0 not parsed, 1 success, 2 failed.
    pub major: i8,
    /// 0, 100 a redirect in the page, 200 and up kinds of failure.
    pub minor: i16,
    /// A message, or where a redirect leads and after how many seconds.
    pub args: Option<Strings<'a>>,
}

impl<'a> ParseStatus<'a> {
    /// Parsed.
    pub const SUCCESS: ParseStatus<'static> = ParseStatus { major: 1, minor: 0, args: None };

    /// The same status with bytes of its own.
    pub fn into_owned(self) -> ParseStatus<'static> {
        ParseStatus { major: self.major, minor: self.minor, args: own_args(self.args) }
    }

    /// Nutch's name of the major code.
    pub fn name(&self) -> &'static str {
        match self.major {
            0 => "notparsed",
            1 => "success",
            2 => "failed",
            _ => "unknown",
        }
    }

    /// Reads version 1 (0.7 to 0.9) or 2.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a ParseStatus")?;
        let major = d.i8("major code")?;
        let minor = d.i16("minor code")?;
        Ok(ParseStatus { major, minor, args: versioned_args(d, version)? })
    }

    /// Writes version 2.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(2);
        out.put_u8(self.major.cast_unsigned());
        out.put_i16(self.minor);
        out.put_strings(self.args.as_deref());
    }
}

/// `success(1,0)`.
impl fmt::Display for ParseStatus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({},{})", self.name(), self.major, self.minor)?;
        write_args(self.args.as_deref(), f)
    }
}

/// Text of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParseText<'a>(pub Text<'a>);

impl<'a> ParseText<'a> {
    /// Reads version 1 (up to 0.9, compressed) or 2.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        match d.u8("version of a ParseText")? {
            2 => d.text("text").map(ParseText),
            1 => Ok(ParseText(d.compressed_string("text")?.unwrap_or_default())),
            other => Err(d.error("a ParseText of version 1 or 2", other.to_string())),
        }
    }

    /// Writes version 2.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(2);
        out.put_text(self.0.as_bytes());
    }

    /// Writes version 1, as 0.5 to 0.9 did; also the `FetcherText` of 0.4.
    pub fn encode_version_1(&self, out: &mut Vec<u8>) {
        out.put_u8(1);
        out.put_compressed(self.0.as_bytes());
    }
}

/// Title, links and metadata of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseData<'a> {
    /// The version it was read from: 5 today.
    pub version: u8,
    /// How parsing ended; version 1 does not say.
    pub status: Option<ParseStatus<'a>>,
    /// Title.
    pub title: Text<'a>,
    /// Links from the page.
    pub outlinks: Vec<Outlink<'a>>,
    /// What came with the content. Versions 1 and 2 have these only.
    pub content_meta: Metadata<'a>,
    /// What parsing found; not in versions 1 to 3.
    pub parse_meta: Metadata<'a>,
}

impl<'a> ParseData<'a> {
    /// Data of a page that was parsed.
    pub fn new(title: impl Into<Text<'a>>, outlinks: Vec<Outlink<'a>>, content_meta: Metadata<'a>) -> Self {
        ParseData {
            version: 5,
            status: Some(ParseStatus::SUCCESS),
            title: title.into(),
            outlinks,
            content_meta,
            parse_meta: Metadata::default(),
        }
    }

    /// Reads any version; `form` says how the links of version 5 are stored.
    pub fn decode(d: &mut Decoder<'a>, form: LinkForm) -> Decoded<Self> {
        let version = d.u8("version of a ParseData")?;
        if !(1..=5).contains(&version) {
            return Err(d.error("a ParseData of version 1 to 5", version.to_string()));
        }
        let (strings, links) = if version == 5 { (StringForm::Text, form) } else { (StringForm::Utf8, LinkForm::Utf8) };
        let status = if version >= 2 { Some(ParseStatus::decode(d)?) } else { None };
        let title = strings.read(d, "title")?;
        let outlinks = Outlink::decode_list(d, links)?;
        let content_meta = if version <= 2 { Metadata::decode_properties(d)? } else { Metadata::decode(d, strings)? };
        let parse_meta = if version >= 4 { Metadata::decode(d, strings)? } else { Metadata::default() };
        Ok(ParseData { version, status, title, outlinks, content_meta, parse_meta })
    }

    /// Writes version 5.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(5);
        self.status.as_ref().unwrap_or(&ParseStatus::SUCCESS).encode(out);
        out.put_text(self.title.as_bytes());
        out.put_len(self.outlinks.len());
        for link in &self.outlinks {
            link.encode(out);
        }
        self.content_meta.encode(out);
        self.parse_meta.encode(out);
    }

    /// The same data with bytes of their own.
    pub fn into_owned(self) -> ParseData<'static> {
        ParseData {
            version: self.version,
            status: self.status.map(ParseStatus::into_owned),
            title: self.title.into_owned(),
            outlinks: self.outlinks.into_iter().map(Outlink::into_owned).collect(),
            content_meta: self.content_meta.into_owned(),
            parse_meta: self.parse_meta.into_owned(),
        }
    }

    /// Writes version 1, as 0.5 and 0.6 did.
    pub fn encode_version_1(&self, out: &mut Vec<u8>) {
        out.put_u8(1);
        out.put_utf8(self.title.as_bytes());
        out.put_len(self.outlinks.len());
        for link in &self.outlinks {
            link.encode_utf8(out);
        }
        self.content_meta.encode_properties(out);
    }
}

/// Text and data of a page together; only inside a NutchWritable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseImpl<'a> {
    /// Whether the page stands for itself; not stored before 1.0.
    pub canonical: bool,
    /// Text.
    pub text: ParseText<'a>,
    /// Title, links and metadata.
    pub data: ParseData<'a>,
}

impl<'a> ParseImpl<'a> {
    /// Reads text and data; `flagged` says whether the canonical flag is stored.
    pub fn decode(d: &mut Decoder<'a>, flagged: bool, form: LinkForm) -> Decoded<Self> {
        let canonical = !flagged || d.bool("whether it is canonical")?;
        let text = ParseText::decode(d)?;
        Ok(ParseImpl { canonical, text, data: ParseData::decode(d, form)? })
    }

    /// Writes the form of 1.0 and later.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_bool(self.canonical);
        self.text.encode(out);
        self.data.encode(out);
    }
}
