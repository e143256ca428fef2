//! What a segment says of a fetch and a capture has no place for: score, interval, retries, signature, times, metadata.
//!
//! It travels as the object `nutch` in the capture's `meta_json`, so that every container carries it and a segment gets it
//! back. Only what differs from the datum that [`super::capture::fetch_datum`] makes of the capture itself is said:
//!
//! ```json
//! {"nutch":{"status":"fetch_gone","interval":7776000,"retries":1,"score":0.25,"modified_time":1731657842000,
//!           "signature":"c8756f…","metadata":[["_rs_",{"class":"org.apache.hadoop.io.IntWritable","hex":"0000000c"}]],
//!           "content":false}}
//! ```
//! The head has the metadata of a content, except names that are Nutch's own (`content_metadata`). `"headers":false` says
//! that there was no head as received, so that the one that was made is not taken for one; where the head cannot give back
//! all lines as they were, they are in `all_content_metadata`.
//! `generate` is the same of the entry on the list of URLs to fetch, as far as it differs from the one that
//! [`super::capture::list_datum`] makes of the fetch, with its `fetch_time`; `false` if the URL was not on the list.
//! Values of metadata that are `Text` in UTF-8 are strings, others their class and bytes.

use super::capture::{HEADERS, SEGMENT_NAME};
use super::fetch_list::Listed;
use crate::types::{Content, CrawlDatum, Interval, Metadata, Status};
use data_encoding::HEXLOWER_PERMISSIVE as HEX;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use trawl_hadoop::{Any, MapWritable, Text, class as hadoop, java_text};

/// The name in `meta_json`.
pub(super) const KEY: &str = "nutch";
/// Whether there is content.
const CONTENT: &str = "content";
const CONTENT_URL: &str = "content_url";
const BASE: &str = "base";
const CONTENT_TYPE: &str = "content_type";
const CONTENT_METADATA: &str = "content_metadata";
const ALL_METADATA: &str = "all_content_metadata";
const HAS_HEADERS: &str = "headers";
const GENERATE: &str = "generate";
const FETCH_TIME: &str = "fetch_time";

/// What `datum` says beyond `derived`.
pub(super) fn of_datum(datum: &CrawlDatum<'_>, derived: &CrawlDatum<'_>) -> Map<String, Value> {
    let mut said = Map::new();
    let mut put = |name: &str, differs: bool, value: Value| {
        if differs {
            said.insert(name.to_owned(), value);
        }
    };
    put("status", datum.status() != derived.status(), status(datum.status()));
    let seconds = datum.interval.seconds();
    put("interval", seconds != derived.interval.seconds(), seconds.into());
    put("retries", datum.retries != derived.retries, datum.retries.into());
    put("score", datum.score.to_bits() != derived.score.to_bits(), number(datum.score));
    put("modified_time", datum.modified_time != derived.modified_time, datum.modified_time.into());
    put("signature", datum.signature != derived.signature, HEX.encode(&datum.signature).into());
    let pairs = datum.metadata.entries().iter().map(|(key, value)| json!([any(key), any(value)]));
    put("metadata", datum.metadata.entries() != derived.metadata.entries(), pairs.collect());
    if let Some(links) = datum.link_count {
        put("link_count", true, links.into());
    }
    said
}

/// What the list of URLs to fetch says beyond `derived`.
pub(super) fn of_listed(listed: &Listed<'_>, derived: &CrawlDatum<'_>, said: &mut Map<String, Value>) {
    match listed {
        Listed::Unknown => {}
        Listed::Absent => drop(said.insert(GENERATE.into(), false.into())),
        Listed::Entry(datum) => {
            let mut more = of_datum(datum, derived);
            if datum.fetch_time != derived.fetch_time {
                more.insert(FETCH_TIME.into(), datum.fetch_time.into());
            }
            if !more.is_empty() {
                said.insert(GENERATE.into(), more.into());
            }
        }
    }
}

/// What a content says beyond the head and body that were made of it. `own` tells names that are Nutch's.
pub(super) fn of_content(
    content: &Content<'_>,
    url: &str,
    derived_type: &str,
    own: impl Fn(&str) -> bool,
    said: &mut Map<String, Value>,
) {
    if content.url != *url {
        said.insert(CONTENT_URL.into(), content.url.to_str().into());
    }
    if content.base != *url {
        said.insert(BASE.into(), content.base.to_str().into());
    }
    if content.content_type != *derived_type {
        said.insert(CONTENT_TYPE.into(), content.content_type.to_str().into());
    }
    let mut metadata = Map::new();
    for (name, values) in content.metadata.0.iter().filter(|(name, _)| own(&name.to_str())) {
        let values: Vec<Value> = values.iter().map(|value| value.to_str().into()).collect();
        metadata.insert(name.to_str().into_owned(), values.into());
    }
    if !metadata.is_empty() {
        said.insert(CONTENT_METADATA.into(), metadata.into());
    }
}

/// What the metadata of a content say beyond those that a segment would get back of its head, `derived`, and of what is said.
pub(super) fn of_metadata(original: &Metadata<'_>, derived: Metadata<'static>, said: &mut Map<String, Value>) {
    let mut again = Content { metadata: derived, ..Content::default() };
    Carried { said: said.clone(), more: false }.complete_content(&mut again);
    // The name of the segment is that of the one they are written to; the order of names is a hash table's.
    let told = |metadata: &Metadata<'_>, but: &str| -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut all: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for (name, values) in metadata.0.iter().filter(|(name, _)| *name != *SEGMENT_NAME && *name != *but) {
            let values = values.iter().map(|value| value.as_bytes().to_vec());
            all.entry(name.as_bytes().to_vec()).or_default().extend(values);
        }
        all.retain(|_, values| !values.is_empty());
        all
    };
    let wanted = told(original, "");
    if wanted == told(&again.metadata, "") {
        return;
    }
    if original.get(HEADERS).is_none() && wanted == told(&again.metadata, HEADERS) {
        said.insert(HAS_HEADERS.into(), false.into());
        return;
    }
    let pair = |(name, values): &(Text<'_>, Vec<Text<'_>>)| {
        json!([name.to_str(), values.iter().map(Text::to_str).collect::<Vec<_>>()])
    };
    let pairs = original.0.iter().filter(|(name, _)| *name != *SEGMENT_NAME).map(pair);
    said.insert(ALL_METADATA.into(), pairs.collect());
    said.remove(CONTENT_METADATA);
}

/// Says that there is no content.
pub(super) fn without_content(said: &mut Map<String, Value>) {
    said.insert(CONTENT.into(), false.into());
}

/// As `meta_json`; nothing where nothing is said.
pub(super) fn to_meta(said: Map<String, Value>) -> Option<String> {
    (!said.is_empty()).then(|| json!({ KEY: said }).to_string())
}

/// What a capture carries for a segment.
#[derive(Debug, Default)]
pub(super) struct Carried {
    said: Map<String, Value>,
    /// Whether `meta_json` holds anything that a segment has no place for.
    pub more: bool,
}

impl Carried {
    pub fn of(meta_json: Option<&str>) -> Self {
        let Some(text) = meta_json else { return Carried::default() };
        match serde_json::from_str(text) {
            Ok(Value::Object(mut all)) => match all.remove(KEY) {
                Some(Value::Object(said)) => Carried { said, more: !all.is_empty() },
                _ => Carried { said: Map::new(), more: true },
            },
            _ => Carried { said: Map::new(), more: true },
        }
    }

    /// Whether the segment had content of this capture.
    pub fn has_content(&self) -> bool {
        self.said.get(CONTENT) != Some(&Value::Bool(false))
    }

    /// Puts back what was said of the datum. A value of another type than [`of_datum`] writes counts as more.
    pub fn complete(&mut self, datum: &mut CrawlDatum<'_>) {
        let mut more = false;
        for (name, value) in &self.said {
            let understood = match name.as_str() {
                "status" => of_status(value).map(|status| datum.set_status(status)),
                "interval" => of_i64(value).map(|seconds| datum.interval = Interval::Seconds(seconds)),
                "retries" => of_i64(value).map(|retries| datum.retries = retries),
                "score" => of_number(value).map(|score| datum.score = score),
                "modified_time" => value.as_i64().map(|time| datum.modified_time = time),
                "signature" => of_hex(value).map(|bytes| datum.signature = Cow::Owned(bytes)),
                "metadata" => of_pairs(value).map(|metadata| datum.metadata = metadata),
                // The version that is written has no place for it.
                "link_count" => None,
                CONTENT_URL | BASE | CONTENT_TYPE | CONTENT_METADATA => Some(()),
                ALL_METADATA | HAS_HEADERS | CONTENT | GENERATE => Some(()),
                _ => None,
            };
            more |= understood.is_none();
        }
        self.more |= more;
    }

    /// Puts back what was said of the entry on the list of URLs to fetch; `false` if there was none.
    pub fn complete_listed(&mut self, datum: &mut CrawlDatum<'_>) -> bool {
        match self.said.get(GENERATE) {
            None => true,
            Some(Value::Bool(false)) => false,
            Some(Value::Object(said)) => {
                let mut listed = Carried { said: said.clone(), more: false };
                match listed.said.remove(FETCH_TIME).map(|time| time.as_i64()) {
                    Some(Some(time)) => datum.fetch_time = time,
                    Some(None) => listed.more = true,
                    None => {}
                }
                listed.complete(datum);
                self.more |= listed.more;
                true
            }
            Some(_) => {
                self.more = true;
                true
            }
        }
    }

    /// Puts back what was said of the content.
    pub fn complete_content(&mut self, content: &mut Content<'_>) {
        let mut more = false;
        let mut text = |name: &str, into: &mut Text<'_>| match self.said.get(name) {
            Some(Value::String(text)) => *into = Text::from(text.clone()),
            Some(_) => more = true,
            None => {}
        };
        text(CONTENT_URL, &mut content.url);
        text(BASE, &mut content.base);
        text(CONTENT_TYPE, &mut content.content_type);
        match self.said.get(CONTENT_METADATA) {
            Some(Value::Object(metadata)) => {
                for (name, values) in metadata {
                    more |= !add_values(&mut content.metadata, name, values);
                }
            }
            Some(_) => more = true,
            None => {}
        }
        match self.said.get(HAS_HEADERS) {
            Some(Value::Bool(false)) => content.metadata.0.retain(|(name, _)| *name != *HEADERS),
            Some(_) => more = true,
            None => {}
        }
        match self.said.get(ALL_METADATA) {
            Some(Value::Array(pairs)) => {
                content.metadata.0.retain(|(name, _)| *name == *SEGMENT_NAME);
                for pair in pairs {
                    more |= match pair.as_array().map(Vec::as_slice) {
                        Some([Value::String(name), values]) => !add_values(&mut content.metadata, name, values),
                        _ => true,
                    };
                }
            }
            Some(_) => more = true,
            None => {}
        }
        self.more |= more;
    }
}

/// Adds the values of a name; `false` if any is not a text.
fn add_values(metadata: &mut Metadata<'_>, name: &str, values: &Value) -> bool {
    let Some(values) = values.as_array() else { return false };
    for value in values {
        let Some(value) = value.as_str() else { return false };
        metadata.add(name, value.to_owned());
    }
    true
}

/// By name; a code without one as a number.
fn status(status: Status) -> Value {
    match Status::of_name(status.name()) {
        Some(known) if known == status => status.name().into(),
        _ => status.0.into(),
    }
}

fn of_status(value: &Value) -> Option<Status> {
    match value {
        Value::String(name) => Status::of_name(name),
        _ => of_i64(value).map(Status),
    }
}

fn of_i64<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    T::try_from(value.as_i64()?).ok()
}

/// JSON has no infinities: they are texts, as Java prints them.
pub(super) fn number(v: f32) -> Value {
    if v.is_finite() { json!(v) } else { java_text::float(v).into() }
}

fn of_number(value: &Value) -> Option<f32> {
    match value {
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f32::NAN),
            "Infinity" => Some(f32::INFINITY),
            "-Infinity" => Some(f32::NEG_INFINITY),
            _ => None,
        },
        _ => value.as_f64().map(|v| v as f32),
    }
}

fn of_hex(value: &Value) -> Option<Vec<u8>> {
    // The length of a signature is one byte with a sign.
    HEX.decode(value.as_str()?.as_bytes()).ok().filter(|bytes| bytes.len() <= i8::MAX as usize)
}

fn any(value: &Any<'_>) -> Value {
    let text = value.as_text().filter(|_| value.class == hadoop::TEXT);
    match text.as_ref().and_then(|text| std::str::from_utf8(text.as_bytes()).ok()) {
        Some(text) => text.into(),
        None => json!({ "class": &*value.class, "hex": HEX.encode(&value.bytes) }),
    }
}

fn of_any(value: &Value) -> Option<Any<'static>> {
    match value {
        Value::String(text) => Some(Any::text(text.as_bytes())),
        Value::Object(typed) => {
            let class = typed.get("class")?.as_str()?.to_owned();
            let bytes = HEX.decode(typed.get("hex")?.as_str()?.as_bytes()).ok()?;
            Some(Any { class: class.into(), bytes: bytes.into() })
        }
        _ => None,
    }
}

fn of_pairs(value: &Value) -> Option<MapWritable<'static>> {
    let pair = |pair: &Value| match pair.as_array()?.as_slice() {
        [key, value] => Some((of_any(key)?, of_any(value)?)),
        _ => None,
    };
    value.as_array()?.iter().map(pair).collect::<Option<Vec<_>>>().map(MapWritable::new)
}
