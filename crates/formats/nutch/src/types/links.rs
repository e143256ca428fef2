//! `parse.Outlink`, `crawl.Inlink` and `crawl.Inlinks`.
//!
//! ```text
//! Outlink, Inlink   URL, anchor, and since 1.8 (Outlink) and 1.21 (Inlink) a flag and, if it is set, a MapWritable
//! Inlinks           i32 count, Inlink …
//! ```
//! The flag came without a version. Every value has its exact length, so the form that reads it whole is the right one:
//! see [`crate::Dialect`].

use super::StringForm;
use crate::class::NutchClasses;
use trawl_hadoop::{Decoded, Decoder, Encode, MapWritable, Text};

/// How links are stored in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkForm {
    /// `Text`, with a flag for metadata.
    WithMetadata,
    /// `Text`, nothing behind the anchor.
    Plain,
    /// `UTF8`, up to 0.8.
    Utf8,
}

impl Default for LinkForm {
    /// What is written today.
    fn default() -> Self {
        LinkForm::WithMetadata
    }
}

impl LinkForm {
    /// Every form, the newest first.
    pub const ALL: [LinkForm; 3] = [LinkForm::WithMetadata, LinkForm::Plain, LinkForm::Utf8];

    fn strings(self) -> StringForm {
        if self == LinkForm::Utf8 { StringForm::Utf8 } else { StringForm::Text }
    }
}

/// A link from a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlink<'a> {
    /// Where it leads.
    pub to_url: Text<'a>,
    /// What it says.
    pub anchor: Text<'a>,
    /// What else is known; `None` where there is nothing.
    pub metadata: Option<MapWritable<'a>>,
    /// The form it was read from.
    pub form: LinkForm,
}

/// A link to a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inlink<'a> {
    /// Where it comes from.
    pub from_url: Text<'a>,
    /// What it says.
    pub anchor: Text<'a>,
    /// What else is known; `None` where there is nothing.
    pub metadata: Option<MapWritable<'a>>,
    /// The form it was read from.
    pub form: LinkForm,
}

/// All links to a page, in the order they are stored in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inlinks<'a>(pub Vec<Inlink<'a>>);

type Parts<'a> = (Text<'a>, Text<'a>, Option<MapWritable<'a>>);

fn decode<'a>(d: &mut Decoder<'a>, form: LinkForm) -> Decoded<Parts<'a>> {
    let url = form.strings().read(d, "URL of a link")?;
    let anchor = form.strings().read(d, "anchor of a link")?;
    let flagged = form == LinkForm::WithMetadata && link_flag(d)?;
    let metadata = if flagged { Some(MapWritable::decode(d, &NutchClasses)?) } else { None };
    Ok((url, anchor, metadata))
}

/// Writers put 0 or 1. Anything else means that no flag is here, which tells the forms apart.
fn link_flag(d: &mut Decoder<'_>) -> Decoded<bool> {
    let before = d.clone();
    match d.u8("whether there are metadata")? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(before.error("0 or 1", other.to_string())),
    }
}

fn encode(url: &Text<'_>, anchor: &Text<'_>, metadata: Option<&MapWritable<'_>>, out: &mut Vec<u8>) {
    out.put_text(url.as_bytes());
    out.put_text(anchor.as_bytes());
    out.put_bool(metadata.is_some());
    if let Some(metadata) = metadata {
        metadata.encode(out);
    }
}

impl<'a> Outlink<'a> {
    /// The same link with bytes of its own.
    pub fn into_owned(self) -> Outlink<'static> {
        Outlink {
            to_url: self.to_url.into_owned(),
            anchor: self.anchor.into_owned(),
            metadata: self.metadata.map(MapWritable::into_owned),
            form: self.form,
        }
    }

    /// A link without metadata.
    pub fn new(to_url: impl Into<Text<'a>>, anchor: impl Into<Text<'a>>) -> Self {
        Outlink { to_url: to_url.into(), anchor: anchor.into(), metadata: None, form: LinkForm::default() }
    }

    /// Reads a link.
    pub fn decode(d: &mut Decoder<'a>, form: LinkForm) -> Decoded<Self> {
        let (to_url, anchor, metadata) = decode(d, form)?;
        Ok(Outlink { to_url, anchor, metadata, form })
    }

    /// Reads links with their number before them.
    pub fn decode_list(d: &mut Decoder<'a>, form: LinkForm) -> Decoded<Vec<Self>> {
        let count = d.count(2, "number of links")?;
        (0..count).map(|_| Self::decode(d, form)).collect()
    }

    /// Writes a link with its flag.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode(&self.to_url, &self.anchor, self.metadata.as_ref(), out);
    }

    /// Writes a link as 0.4 to 0.8 did.
    pub fn encode_utf8(&self, out: &mut Vec<u8>) {
        out.put_utf8(self.to_url.as_bytes());
        out.put_utf8(self.anchor.as_bytes());
    }
}

impl<'a> Inlink<'a> {
    /// The same link with bytes of its own.
    pub fn into_owned(self) -> Inlink<'static> {
        Inlink {
            from_url: self.from_url.into_owned(),
            anchor: self.anchor.into_owned(),
            metadata: self.metadata.map(MapWritable::into_owned),
            form: self.form,
        }
    }

    /// A link without metadata.
    pub fn new(from_url: impl Into<Text<'a>>, anchor: impl Into<Text<'a>>) -> Self {
        Inlink { from_url: from_url.into(), anchor: anchor.into(), metadata: None, form: LinkForm::default() }
    }

    /// Reads a link.
    pub fn decode(d: &mut Decoder<'a>, form: LinkForm) -> Decoded<Self> {
        let (from_url, anchor, metadata) = decode(d, form)?;
        Ok(Inlink { from_url, anchor, metadata, form })
    }

    /// Writes a link with its flag.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode(&self.from_url, &self.anchor, self.metadata.as_ref(), out);
    }
}

impl<'a> Inlinks<'a> {
    /// Reads links with their number before them.
    pub fn decode(d: &mut Decoder<'a>, form: LinkForm) -> Decoded<Self> {
        let count = d.count(2, "number of links")?;
        (0..count).map(|_| Inlink::decode(d, form)).collect::<Decoded<_>>().map(Inlinks)
    }

    /// Writes links in their order.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_len(self.0.len());
        for link in &self.0 {
            link.encode(out);
        }
    }
}
