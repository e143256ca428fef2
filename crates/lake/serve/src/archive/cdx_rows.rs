//! Fields of a capture as CDX clients know them, and which captures they want.

use crate::failure::Failure;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use regex_lite::{Regex, RegexBuilder};
use serde_json::{Map, Value as Json};
use trawl_model::Digest;
use trawl_query::CdxRow;
use xxhash_rust::xxh3::xxh3_64;

/// Longest expression, and most bytes of it compiled: matching is linear in both.
const MAX_EXPRESSION: usize = 1000;
const MAX_COMPILED: usize = 1 << 20;

/// A field by the names of the Wayback Machine; those of pywb stand for the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Urlkey,
    Timestamp,
    Original,
    Mimetype,
    Statuscode,
    Digest,
    Length,
    Offset,
    Filename,
    Dataset,
}

/// Every name of a field that clients use.
pub(crate) const FIELD_NAMES: [&str; 13] = [
    "urlkey",
    "timestamp",
    "original",
    "url",
    "mimetype",
    "mime",
    "statuscode",
    "status",
    "digest",
    "length",
    "offset",
    "filename",
    "dataset",
];

impl Field {
    fn parse(name: &str) -> Result<Self, Failure> {
        Ok(match name {
            "urlkey" => Self::Urlkey,
            "timestamp" => Self::Timestamp,
            "original" | "url" => Self::Original,
            "mimetype" | "mime" => Self::Mimetype,
            "statuscode" | "status" => Self::Statuscode,
            "digest" => Self::Digest,
            "length" => Self::Length,
            "offset" => Self::Offset,
            "filename" => Self::Filename,
            "dataset" => Self::Dataset,
            _ => {
                let known = FIELD_NAMES.join(", ");
                let name: String = name.chars().take(40).collect();
                return Err(Failure::bad_request(format!("there is no field {name:?}; there are: {known}")));
            }
        })
    }

    /// Its text; `-` for what is not known.
    fn text(self, row: &CdxRow) -> String {
        self.known(row).unwrap_or_else(|| "-".to_owned())
    }

    fn known(self, row: &CdxRow) -> Option<String> {
        let item = &row.item;
        let number = |value: Option<u64>| value.map(|n| n.to_string());
        let text = match self {
            Self::Urlkey => Some(row.urlkey.clone()),
            Self::Timestamp => item.ts.map(|ts| ts.digits14()),
            // A URL has no tabs and line ends: parsers pass over them.
            Self::Original => Some(item.url.replace(['\t', '\n', '\r'], "")),
            Self::Mimetype => mime(row),
            Self::Statuscode => item.status.map(|status| status.to_string()),
            // As CDX files have it; what is no digest, as it is.
            Self::Digest => item.digest.as_ref().map(|d| Digest::parse(d).map_or_else(|_| d.clone(), |d| d.cdx())),
            Self::Length => number(item.warc_length),
            Self::Offset => number(item.warc_offset),
            Self::Filename => item.warc_file.clone(),
            Self::Dataset => Some(row.dataset_id.to_string()),
        };
        text.filter(|text| !text.is_empty()).map(one_field)
    }
}

/// A text in which nothing ends a field or a line, whatever a client takes for the end of one: a URL of a hostile list would be
/// two captures.
fn one_field(text: String) -> String {
    let ends = |c: char| c.is_whitespace() || c.is_control();
    if !text.contains(ends) {
        return text;
    }
    let escape = |c: char| match ends(c) {
        true => utf8_percent_encode(c.encode_utf8(&mut [0; 4]), NON_ALPHANUMERIC).to_string(),
        false => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// The type of a revisit says that it is one: clients look there.
fn mime(row: &CdxRow) -> Option<String> {
    if row.item.record_type() == Some("revisit") {
        return Some("warc/revisit".to_owned());
    }
    let kind = row.item.content_type.as_deref()?.split(';').next()?.trim();
    Some(kind.replace(' ', "")).filter(|kind| !kind.is_empty())
}

/// The fields asked for.
#[derive(Debug, Clone)]
pub(crate) struct Fields(Vec<(String, Field)>);

impl Fields {
    pub(crate) fn of(list: &str) -> Result<Self, Failure> {
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty()).take(20);
        let fields = names.map(|name| Ok((name.to_owned(), Field::parse(name)?)));
        Ok(Self(fields.collect::<Result<_, Failure>>()?))
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub(crate) fn texts(&self, row: &CdxRow) -> Vec<String> {
        self.0.iter().map(|(_, field)| field.text(row)).collect()
    }

    /// The fields that are known: a client takes a `-` for a number that cannot be read.
    pub(crate) fn object(&self, row: &CdxRow) -> Json {
        let known = self.0.iter().filter_map(|(name, field)| Some((name.clone(), field.known(row)?.into())));
        Json::Object(known.collect::<Map<_, _>>())
    }
}

/// `[!][=|~]field:value`.
#[derive(Debug)]
pub(crate) struct RowFilter {
    not: bool,
    field: Field,
    how: How,
}

#[derive(Debug)]
enum How {
    Text(String),
    Regex(Regex),
}

impl RowFilter {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let bad = |why: &str| Failure::bad_request(format!("parameter filter: {why}"));
        if text.len() > MAX_EXPRESSION {
            return Err(bad("it is too long"));
        }
        let (not, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let mark = rest.chars().next().filter(|mark| matches!(mark, '=' | '~'));
        let rest = if mark.is_some() { rest.get(1..).unwrap_or_default() } else { rest };
        let (field, value) = rest.split_once(':').ok_or_else(|| bad("expected [!][=|~]field:value"))?;
        let field = Field::parse(field)?;
        let compile = |text: &str| {
            let built = RegexBuilder::new(text).size_limit(MAX_COMPILED).build();
            built.map_err(|_| bad("its regular expression is not valid"))
        };
        let how = match mark {
            Some('=') => How::Text(value.to_owned()),
            Some(_) => How::Regex(compile(value)?),
            // By itself it has to be all of the field.
            None => How::Regex(compile(&format!("^(?:{value})$"))?),
        };
        Ok(Self { not, field, how })
    }

    fn takes(&self, row: &CdxRow) -> bool {
        let text = self.field.text(row);
        let fits = match &self.how {
            How::Text(wanted) => text == *wanted,
            How::Regex(wanted) => wanted.is_match(&text),
        };
        fits != self.not
    }
}

/// `field` or `field:N`.
#[derive(Debug)]
pub(crate) struct Collapse {
    field: Field,
    digits: usize,
    /// The hash of the text that came last; none before the first.
    last: Option<u64>,
}

impl Collapse {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let (field, digits) = text.split_once(':').unwrap_or((text, ""));
        let bad = |_| Failure::bad_request("parameter collapse: expected field or field:N");
        let digits = if digits.is_empty() { usize::MAX } else { digits.parse().map_err(bad)? };
        Ok(Self { field: Field::parse(field)?, digits, last: None })
    }

    fn takes(&mut self, row: &CdxRow) -> bool {
        let text: String = self.field.text(row).chars().take(self.digits).collect();
        let hash = Some(xxh3_64(text.as_bytes()));
        std::mem::replace(&mut self.last, hash) != hash
    }
}

/// Which captures are listed.
pub(crate) struct Pick {
    filters: Vec<RowFilter>,
    collapse: Vec<Collapse>,
}

impl Pick {
    pub(crate) fn new(filters: Vec<RowFilter>, collapse: Vec<Collapse>) -> Self {
        Self { filters, collapse }
    }

    /// What captures before this one left behind, for an answer that goes on here.
    pub(crate) fn marks(&self) -> Vec<Option<u64>> {
        self.collapse.iter().map(|one| one.last).collect()
    }

    /// Goes on from there; `false` if those are of another question.
    pub(crate) fn go_on(&mut self, marks: &[Option<u64>]) -> bool {
        self.collapse.iter_mut().zip(marks).for_each(|(one, mark)| one.last = *mark);
        self.collapse.len() == marks.len()
    }

    pub(crate) fn takes(&mut self, row: &CdxRow) -> bool {
        self.filters.iter().all(|filter| filter.takes(row)) && self.collapse.iter_mut().all(|one| one.takes(row))
    }
}
