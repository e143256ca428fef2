//! Nutch 0.4 to 0.7: values and layouts from before Hadoop.
//!
//! ```text
//! segments/YYYYMMDDhhmmss/     ArrayFiles: record n is the same page in each
//!   0.4       fetchlist  fetcher  fetcher_content  fetcher_text
//!   0.5-0.7   fetchlist  fetcher  content  parse_text  parse_data
//! db/webdb/                    MapFiles with orders of their own
//!   pagesByURL  UTF8 -> Page             pagesByMD5  Page -> null, by (MD5, URL)
//!   linksByURL  Link -> null, by (URL, from)   linksByMD5  Link -> null, by (from, URL)
//! ```
//! SequenceFiles have version 1 up to 0.6 and version 2 in 0.7; nothing is compressed except texts and contents, each as a
//! gzip member of its own; strings are `UTF8`.

pub(crate) mod json;
mod segment;
mod webdb;

pub use segment::{Era, LegacyPage, LegacySegment, LegacySegmentWriter};
pub use webdb::{link_order_by_md5, link_order_by_url, page_order_by_md5, webdb_order};

use crate::types::{Outlink, ProtocolStatus};
use std::borrow::Cow;
use trawl_hadoop::{Decoded, Decoder, Encode, EncodeStrings, Text};

/// A page of the web database.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<'a> {
    /// 1 to 4; 4 is written.
    pub version: u8,
    /// The URL.
    pub url: Text<'a>,
    /// MD5 of its content.
    pub md5: [u8; 16],
    /// Milliseconds since 1970 when to fetch next.
    pub next_fetch: i64,
    /// Failed attempts.
    pub retries: i8,
    /// Days between two fetches.
    pub fetch_interval: i8,
    /// Links from it; from version 3 on.
    pub num_outlinks: i32,
    /// Score; from version 2 on.
    pub score: f32,
    /// Score of the next round; from version 4 on.
    pub next_score: f32,
}

impl<'a> Page<'a> {
    /// Reads version 1 to 4.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a Page")?;
        if !(1..=4).contains(&version) {
            return Err(d.error("a Page of version 1 to 4", version.to_string()));
        }
        Ok(Page {
            version,
            url: d.utf8("URL")?,
            md5: d.array("MD5")?,
            next_fetch: d.i64("next fetch")?,
            retries: d.i8("retries")?,
            fetch_interval: d.i8("fetch interval")?,
            num_outlinks: if version >= 3 { d.i32("number of outlinks")? } else { 0 },
            score: if version >= 2 { d.f32("score")? } else { 0.0 },
            next_score: if version >= 4 { d.f32("next score")? } else { 0.0 },
        })
    }

    /// The same page with bytes of its own.
    pub fn into_owned(self) -> Page<'static> {
        Page { url: self.url.into_owned(), ..self }
    }

    /// Writes version 4.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(4);
        out.put_utf8(self.url.as_bytes());
        out.put(&self.md5);
        out.put_i64(self.next_fetch);
        out.put_u8(self.retries.cast_unsigned());
        out.put_u8(self.fetch_interval.cast_unsigned());
        out.put_i32(self.num_outlinks);
        out.put_f32(self.score);
        out.put_f32(self.next_score);
    }
}

/// An entry of a fetch list.
#[derive(Debug, Clone, PartialEq)]
pub struct FetchListEntry<'a> {
    /// Whether to fetch it, or to take it as fetched before.
    pub fetch: bool,
    /// The page.
    pub page: Page<'a>,
    /// What links to it say; from version 2 on.
    pub anchors: Vec<Text<'a>>,
}

impl<'a> FetchListEntry<'a> {
    /// Reads version 1 or 2.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a FetchListEntry")?;
        let fetch = d.bool("whether to fetch")?;
        let page = Page::decode(d)?;
        let mut anchors = Vec::new();
        if version >= 2 {
            for _ in 0..d.count(2, "number of anchors")? {
                anchors.push(d.utf8("an anchor")?);
            }
        }
        Ok(FetchListEntry { fetch, page, anchors })
    }

    /// The same entry with bytes of its own.
    pub fn into_owned(self) -> FetchListEntry<'static> {
        let anchors = self.anchors.into_iter().map(Text::into_owned).collect();
        FetchListEntry { fetch: self.fetch, page: self.page.into_owned(), anchors }
    }

    /// Writes version 2.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(2);
        out.put_bool(self.fetch);
        self.page.encode(out);
        out.put_len(self.anchors.len());
        for anchor in &self.anchors {
            out.put_utf8(anchor.as_bytes());
        }
    }
}

/// How a fetch ended, by release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetcherStatus<'a> {
    /// Up to 0.6: 0 retry, 1 success, 2 not found, 4 cannot be parsed.
    Code(i8),
    /// 0.7.
    Protocol(ProtocolStatus<'a>),
}

/// What the fetcher says of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct FetcherOutput<'a> {
    /// 1 to 5; 3 in 0.4, 4 in 0.5, 5 in 0.7.
    pub version: u8,
    /// What it was asked to fetch.
    pub entry: FetchListEntry<'a>,
    /// MD5 of the content.
    pub md5: [u8; 16],
    /// How it ended.
    pub status: FetcherStatus<'a>,
    /// Title; up to version 3.
    pub title: Text<'a>,
    /// Links from the page; up to version 3.
    pub outlinks: Vec<Outlink<'a>>,
    /// Milliseconds since 1970; from version 2 on.
    pub fetch_date: i64,
}

impl<'a> FetcherOutput<'a> {
    /// Reads version 1 to 5.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a FetcherOutput")?;
        if !(1..=5).contains(&version) {
            return Err(d.error("a FetcherOutput of version 1 to 5", version.to_string()));
        }
        let entry = FetchListEntry::decode(d)?;
        let md5 = d.array("MD5")?;
        let status = match version {
            5 => FetcherStatus::Protocol(ProtocolStatus::decode(d)?),
            _ => FetcherStatus::Code(d.i8("status")?),
        };
        let (mut title, mut outlinks) = (Text::default(), Vec::new());
        if version <= 3 {
            title = d.utf8("title")?;
            outlinks = Outlink::decode_list(d, crate::types::LinkForm::Utf8)?;
        }
        let fetch_date = if version >= 2 { d.i64("fetch date")? } else { 0 };
        Ok(FetcherOutput { version, entry, md5, status, title, outlinks, fetch_date })
    }

    /// The same output with bytes of its own.
    pub fn into_owned(self) -> FetcherOutput<'static> {
        let status = match self.status {
            FetcherStatus::Code(code) => FetcherStatus::Code(code),
            FetcherStatus::Protocol(status) => FetcherStatus::Protocol(status.into_owned()),
        };
        FetcherOutput {
            version: self.version,
            entry: self.entry.into_owned(),
            md5: self.md5,
            status,
            title: self.title.into_owned(),
            outlinks: self.outlinks.into_iter().map(Outlink::into_owned).collect(),
            fetch_date: self.fetch_date,
        }
    }

    /// Writes version 3 for 0.4 or 4 for 0.5 and 0.6.
    pub fn encode(&self, era: Era, out: &mut Vec<u8>) {
        let version = if era == Era::V0_4 { 3 } else { 4 };
        out.put_u8(version);
        self.entry.encode(out);
        out.put(&self.md5);
        out.put_u8(self.status_code().cast_unsigned());
        if version <= 3 {
            out.put_utf8(self.title.as_bytes());
            out.put_len(self.outlinks.len());
            for link in &self.outlinks {
                link.encode_utf8(out);
            }
        }
        out.put_i64(self.fetch_date);
    }

    /// The status by the codes of 0.6: 0 retry, 1 success, 2 not found.
    pub fn status_code(&self) -> i8 {
        match &self.status {
            FetcherStatus::Code(code) => *code,
            FetcherStatus::Protocol(status) => match status.code {
                1 => 1,
                11 | 14 => 2,
                _ => 0,
            },
        }
    }
}

/// A link of the web database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link<'a> {
    /// MD5 of the page that it is on.
    pub from_id: [u8; 16],
    /// Where it leads.
    pub url: Text<'a>,
    /// Hash of the domain that it is on; from version 5 on.
    pub domain_id: i64,
    /// What it says.
    pub anchor: Text<'a>,
    /// Whether its target has links itself; from version 4 on.
    pub target_has_outlink: bool,
}

impl<'a> Link<'a> {
    /// Reads version 1 to 5.
    pub fn decode(d: &mut Decoder<'a>) -> Decoded<Self> {
        let version = d.u8("version of a Link")?;
        if !(1..=5).contains(&version) {
            return Err(d.error("a Link of version 1 to 5", version.to_string()));
        }
        Ok(Link {
            from_id: d.array("MD5")?,
            url: d.utf8("URL")?,
            domain_id: if version >= 5 { d.i64("domain")? } else { 0 },
            anchor: d.utf8("anchor")?,
            target_has_outlink: version >= 4 && d.bool("whether the target has links")?,
        })
    }

    /// Writes version 5.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(5);
        out.put(&self.from_id);
        out.put_utf8(self.url.as_bytes());
        out.put_i64(self.domain_id);
        out.put_utf8(self.anchor.as_bytes());
        out.put_bool(self.target_has_outlink);
    }
}

/// Reads a `FetcherContent` of 0.4: a version and a gzip member.
pub fn decode_fetcher_content(d: &mut Decoder<'_>) -> Decoded<Cow<'static, [u8]>> {
    expect_version_1(d)?;
    Ok(Cow::Owned(d.compressed_bytes("content")?.unwrap_or_default()))
}

/// Writes a `FetcherContent` of 0.4.
pub fn encode_fetcher_content(content: &[u8], out: &mut Vec<u8>) {
    out.put_u8(1);
    out.put_compressed(content);
}

/// Reads a `FetcherText` of 0.4: a version and a gzip member.
pub fn decode_fetcher_text(d: &mut Decoder<'_>) -> Decoded<Text<'static>> {
    expect_version_1(d)?;
    Ok(d.compressed_string("text")?.unwrap_or_default())
}

fn expect_version_1(d: &mut Decoder<'_>) -> Decoded<()> {
    match d.u8("version")? {
        1 => Ok(()),
        other => Err(d.error("version 1", other.to_string())),
    }
}
