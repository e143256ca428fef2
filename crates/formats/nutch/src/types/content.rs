//! `protocol.Content`: what a server sent.
//!
//! ```text
//! current   i32 -1, Text url, Text base, i32 length, bytes, Text content type, Metadata
//! 0.8, 0.9  i32 length, one zlib stream: u8 version (0, 1: strings are UTF8; 2: Text), then as above
//! 0.5-0.7   u8 1, UTF8 url, UTF8 base, gzip member with its length, UTF8 content type, properties
//! ```
//! A value has its exact length, so the three cannot be taken for each other: a zlib stream fills its value.

use super::{Metadata, StringForm, whole};
use std::borrow::Cow;
use trawl_hadoop::{Decoded, Decoder, Encode, EncodeStrings, Text, inflate_zlib};

/// What a server sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content<'a> {
    /// The URL that was asked for.
    pub url: Text<'a>,
    /// The URL that links are relative to.
    pub base: Text<'a>,
    /// The body, decoded as Nutch's protocol plugins do.
    pub content: Cow<'a, [u8]>,
    /// Media type, detected.
    pub content_type: Text<'a>,
    /// Headers and what Nutch adds to them.
    pub metadata: Metadata<'a>,
}

impl<'a> Content<'a> {
    /// Reads any version.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let start = d.clone();
        let first = d.i32("version or length of a Content")?;
        let rest = d.rest().len();
        match first {
            -1 => Self::fields(d, StringForm::Text),
            n if usize::try_from(n).is_ok_and(|n| n == rest) => {
                let stream = d.take(rest, "a zlib stream")?;
                let inner = inflate_zlib(stream).map_err(|found| start.error("a zlib stream", found))?;
                let inside = |d: &mut Decoder<'_>| {
                    let form = match d.u8("version of a Content")? {
                        0 | 1 => StringForm::Utf8,
                        2 => StringForm::Text,
                        other => return Err(d.error("a Content of version 0 to 2", other.to_string())),
                    };
                    Content::fields(d, form).map(Content::into_owned)
                };
                whole(&inner, inside).map_err(|mut e| {
                    e.expected = format!("{} (at {} of the inflated value)", e.expected, e.at).into();
                    e.at = start.at();
                    e
                })
            }
            0x0100_0000..=0x01ff_ffff => {
                *d = start;
                Self::version_1(d)
            }
            other => Err(start.error("a Content: -1, its own length or version 1", other.to_string())),
        }
    }

    fn fields(d: &mut Decoder<'a>, form: StringForm) -> Decoded<Self> {
        let url = form.read(d, "URL")?;
        let base = form.read(d, "base URL")?;
        let content = Cow::Borrowed(d.bytes("content")?);
        let content_type = form.read(d, "content type")?;
        let metadata = Metadata::decode(d, form)?;
        Ok(Content { url, base, content, content_type, metadata })
    }

    /// The form of 0.5 to 0.7.
    fn version_1(d: &mut Decoder<'a>) -> Decoded<Self> {
        d.u8("version of a Content")?;
        let url = d.utf8("URL")?;
        let base = d.utf8("base URL")?;
        let content = Cow::Owned(d.compressed_bytes("content")?.unwrap_or_default());
        let content_type = d.utf8("content type")?;
        let metadata = Metadata::decode_properties(d)?;
        Ok(Content { url, base, content, content_type, metadata })
    }

    /// Writes the current form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_i32(-1);
        out.put_text(self.url.as_bytes());
        out.put_text(self.base.as_bytes());
        out.put_bytes(&self.content);
        out.put_text(self.content_type.as_bytes());
        self.metadata.encode(out);
    }

    /// Writes the form of 0.5 to 0.7.
    pub fn encode_version_1(&self, out: &mut Vec<u8>) {
        out.put_u8(1);
        out.put_utf8(self.url.as_bytes());
        out.put_utf8(self.base.as_bytes());
        out.put_compressed(&self.content);
        out.put_utf8(self.content_type.as_bytes());
        self.metadata.encode_properties(out);
    }

    /// The same content with bytes of its own.
    pub fn into_owned(self) -> Content<'static> {
        Content {
            url: self.url.into_owned(),
            base: self.base.into_owned(),
            content: Cow::Owned(self.content.into_owned()),
            content_type: self.content_type.into_owned(),
            metadata: self.metadata.into_owned(),
        }
    }
}
