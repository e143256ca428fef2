//! The answers, as the API writes them.
//!
//! Field names are the seed's where it has them; `_est` fields carry exact row counts. Ids are 64 bits wide, which
//! JavaScript numbers cannot hold:
//!
//! | id | JSON | why |
//! | --- | --- | --- |
//! | `domain_id` | number, all 64 bits, and `domain_id_hex` (`"0x"` + 16 digits) | the seed shows a number; clients whose numbers are doubles use the hex form |
//! | `url_id` | string, `"0x"` + 16 hex digits | the seed shows `0x9bc…`, which in JSON can only be a string |
//!
//! Times are RFC 3339 strings in UTC with milliseconds. A value that the source did not know is left out.

use crate::locator::Locator;
use crate::{Principal, json};
use serde::{Serialize, Serializer};
use trawl_model::UnixMillis;
use trawl_store::Acl;
use trawl_url::{without_credentials, without_userinfo};
use utoipa::ToSchema;

/// `GET /v1/domain/{domain}`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DomainAnswer {
    /// The registrable domain, in punycode.
    pub domain: String,
    /// xxh3_64 of the domain.
    pub domain_id: u64,
    /// The same in hex, for clients without 64-bit integers.
    #[serde(serialize_with = "hex")]
    #[schema(value_type = String, pattern = "^0x[0-9a-f]{16}$")]
    pub domain_id_hex: u64,
    /// The version that answered.
    pub version: String,
    /// The datasets that hold it, by id.
    pub datasets: Vec<DomainDataset>,
}

/// One dataset's share of a domain.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DomainDataset {
    /// The dataset.
    pub dataset_id: u32,
    /// Its name.
    pub name: String,
    /// Rows of the domain in the dataset: exact.
    pub url_count_est: u64,
    /// Different URLs among them.
    pub distinct_urls: u64,
    /// Whether `distinct_urls` is exact. Until segments are merged it is an upper bound: a URL counts once per segment.
    pub distinct_exact: bool,
    /// The earliest time of any row.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub first_ts: Option<UnixMillis>,
    /// The latest time of any row.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_ts: Option<UnixMillis>,
    /// The first path segments with the most rows, most first.
    pub top_paths: Vec<TopPath>,
}

/// One dataset's share of a domain, in numbers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct DatasetCount {
    /// The dataset.
    pub dataset_id: u32,
    /// Rows of the domain in the dataset: exact.
    pub rows: u64,
    /// Different URLs among them.
    pub distinct_urls: u64,
    /// Whether `distinct_urls` is exact; an upper bound if not.
    pub distinct_exact: bool,
    /// The earliest time of any row.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub first_ts: Option<UnixMillis>,
    /// The latest time of any row.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_ts: Option<UnixMillis>,
}

/// A first path segment and how many rows have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TopPath {
    /// The segment with its slashes: `/news/`; `/` for what has none.
    pub path: String,
    /// Rows, a lower bound when the domain has very many first segments.
    pub rows: u64,
}

/// `GET /v1/domain/{domain}/datasets/{dataset_id}/urls`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct UrlsAnswer {
    /// The registrable domain, in punycode.
    pub domain: String,
    /// The dataset.
    pub dataset_id: u32,
    /// The version that answered.
    pub version: String,
    /// Rows of the domain in the dataset, before any filter and without denied ones: exact.
    pub total_est: u64,
    /// Rows under the filter, exact, where it is a host and perhaps a path of it (without parameters).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_filtered: Option<u64>,
    /// With a filter, how far the search for its rows got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The rows of this page.
    pub items: Vec<UrlItem>,
    /// The offset of the next page; none at the end, none with a filter, and none where a cursor led to an older version.
    pub next_offset: Option<u64>,
    /// Where the next page begins; none at the end.
    pub next_cursor: Option<String>,
}

/// How far a search among rows got, since its first page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Progress {
    /// Rows looked at.
    pub seen: u64,
    /// Rows there are to look at, once host and path were looked up.
    pub of: u64,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct UrlItem {
    /// xxh3_64 of the raw URL.
    #[serde(serialize_with = "hex")]
    #[schema(value_type = String, pattern = "^0x[0-9a-f]{16}$")]
    pub url_id: u64,
    /// The URL, raw: as the source spelt it, without `user:password@` unless that was asked for.
    pub url: String,
    /// When it was seen or captured.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ts: Option<UnixMillis>,
    /// HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Media type as served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Digest of the stored body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Stored body bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_length: Option<u64>,
    /// The archive file of the capture, relative to the dataset's archive base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warc_file: Option<String>,
    /// Its first byte there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warc_offset: Option<u64>,
    /// Its stored length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warc_length: Option<u64>,
    /// Names this capture to `/v1/capture`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locator: Option<String>,
    /// Everything else the source knew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extras: Option<serde_json::Value>,
}

impl UrlItem {
    /// The type of the record in its archive, where the row names it: `revisit`, `resource`, `conversion`.
    pub fn record_type(&self) -> Option<&str> {
        self.extras.as_ref()?.get("record_type")?.as_str()
    }

    /// Whether its record is what a program made of a capture, not what a server sent: the text of a page (WET), or facts about
    /// it (WAT). Such a record has the URL and the time of the capture.
    pub fn is_derived(&self) -> bool {
        matches!(self.record_type(), Some("conversion" | "metadata"))
    }

    /// Whether it leads to what a server sent. Indexes of all records do not say which ones are requests and which are facts:
    /// those have no status, and no type or that of fields.
    pub fn is_memento(&self) -> bool {
        let kind = self.content_type.as_deref();
        let is_said = self.status.is_some() || self.record_type().is_some();
        let has_place = self.warc_file.is_some() && self.warc_offset.is_some();
        has_place && !self.is_derived() && (is_said || kind.is_some_and(|kind| kind != "application/warc-fields"))
    }

    /// Gives a capture its locator, and leaves out what is not shown to `who`.
    pub(crate) fn finish(&mut self, dataset_id: u32, who: &Principal) {
        if let (Some(_), Some(offset)) = (&self.warc_file, self.warc_offset) {
            self.locator = Some(Locator::encode(dataset_id, self.ts, offset, &without_userinfo(&self.url)));
        }
        self.show_to(who);
    }

    /// Leaves out user names and passwords in URLs, unless `who` asked for them. The id stays that of the URL as it is stored.
    pub(crate) fn show_to(&mut self, who: &Principal) {
        if who.wants_credentials() {
            return;
        }
        hide(&mut self.url);
        if let Some(extras) = &mut self.extras {
            hide_in(extras);
        }
    }
}

/// `extras` of a row: JSON, or a text that is shown as one.
pub(crate) fn extras(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::String(text.to_owned()))
}

/// The same without what is not shown to `who`.
pub(crate) fn shown_extras(text: &str, who: &Principal) -> serde_json::Value {
    let mut extras = extras(text);
    if !who.wants_credentials() {
        hide_in(&mut extras);
    }
    extras
}

fn hide(url: &mut String) {
    if let std::borrow::Cow::Owned(shown) = without_userinfo(url) {
        *url = shown;
    }
}

/// The same of URLs in every text.
fn hide_in(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            if let std::borrow::Cow::Owned(shown) = without_credentials(text) {
                *text = shown;
            }
        }
        serde_json::Value::Array(list) => list.iter_mut().for_each(hide_in),
        serde_json::Value::Object(members) => members.values_mut().for_each(hide_in),
        _ => {}
    }
}

/// `GET /v1/url`: one URL across datasets.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct UrlAnswer {
    /// The URL asked for.
    pub url: String,
    /// xxh3_64 of it.
    #[serde(serialize_with = "hex")]
    #[schema(value_type = String, pattern = "^0x[0-9a-f]{16}$")]
    pub url_id: u64,
    /// The form by which rows were compared.
    pub normalised: String,
    /// Its registrable domain, in punycode.
    pub domain: String,
    /// The version that answered.
    pub version: String,
    /// The rows with this URL.
    pub items: Vec<UrlHit>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// A row of some dataset.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct UrlHit {
    /// The dataset.
    pub dataset_id: u32,
    /// Its name.
    pub dataset: String,
    /// The row.
    #[serde(flatten)]
    pub item: UrlItem,
}

/// One line of the search box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DomainSummary {
    /// The registrable domain, in punycode.
    pub domain: String,
    /// Datasets that hold it, of those the asker may see.
    pub datasets: u64,
    /// Rows in all of them.
    pub rows: u64,
}

/// `GET /v1/domains` and `GET /v1/datasets/{dataset}/domains`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct NamesAnswer {
    /// The version that answered.
    pub version: String,
    /// Names, in order.
    pub domains: Vec<DomainSummary>,
    /// Where the next page begins: the last name looked at; none at the end.
    pub next_after: Option<String>,
    /// Names looked at for this page.
    pub seen: u64,
}

/// A dataset of the catalogue.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DatasetInfo {
    /// The dataset.
    pub dataset_id: u32,
    /// Its name.
    pub name: String,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When it was registered.
    #[serde(serialize_with = "time_of")]
    #[schema(value_type = String, format = DateTime)]
    pub created: UnixMillis,
    /// Rows in this version, without denied ones: exact.
    pub rows: u64,
    /// Rows that are denied and still in its files, until a purge; told to the operator alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_rows: Option<u64>,
    /// Domains in this version of which something is shown; a domain counts once per segment until segments are merged.
    pub domains: u64,
    /// Whether `domains` is exact; an upper bound if not.
    pub domains_exact: bool,
    /// Bytes of its Parquet files, denied rows among them.
    pub bytes: u64,
    /// Where its archives are.
    pub archive_base: Vec<String>,
    /// Who may see it; told to the operator alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub acl: Option<Acl>,
    /// A JSON Schema of `extras`, if its owner gave one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extras_schema: Option<serde_json::Value>,
}

/// The whole lake in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct LakeStats {
    /// The version counted.
    pub version: String,
    /// Domains of which something is shown; a domain counts once per segment until segments are merged.
    pub domains: u64,
    /// Whether `domains` is exact; an upper bound if not.
    pub domains_exact: bool,
    /// Datasets registered.
    pub datasets: u64,
    /// Rows, without denied ones: exact.
    pub rows: u64,
    /// Rows that are denied and still in the files, until a purge; told to the operator alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied_rows: Option<u64>,
    /// Bytes of Parquet files and index.
    pub bytes: u64,
    /// Bytes of the index alone.
    pub index_bytes: u64,
    /// Index segments.
    pub segments: u64,
    /// Parquet files.
    pub files: u64,
}

fn hex<S: Serializer>(id: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match std::str::from_utf8(&json::hex(*id)) {
        Ok(text) => serializer.serialize_str(text),
        Err(error) => Err(serde::ser::Error::custom(error)),
    }
}

fn time<S: Serializer>(at: &Option<UnixMillis>, serializer: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => time_of(at, serializer),
        None => serializer.serialize_none(),
    }
}

fn time_of<S: Serializer>(at: &UnixMillis, serializer: S) -> Result<S::Ok, S::Error> {
    let text = json::time(*at);
    match text.as_ref().map(|text| std::str::from_utf8(text)) {
        Some(Ok(text)) => serializer.serialize_str(text),
        _ => serializer.collect_str(at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_shown_to_who_asks_for_them() {
        let item = || UrlItem {
            url_id: 1,
            url: "http://me:secret@a.com/@x".into(),
            ts: None,
            status: None,
            content_type: None,
            digest: None,
            body_length: None,
            warc_file: None,
            warc_offset: None,
            warc_length: None,
            locator: None,
            extras: Some(serde_json::json!({"to": ["http://me:secret@b.com/"], "mail": "me@b.com"})),
        };
        for who in [Principal::anyone(), Principal::operator()] {
            let mut shown = item();
            shown.show_to(&who);
            assert_eq!((shown.url.as_str(), shown.url_id), ("http://a.com/@x", 1));
            assert_eq!(shown.extras, Some(serde_json::json!({"to": ["http://b.com/"], "mail": "me@b.com"})));
            let mut shown = item();
            shown.show_to(&who.with_credentials(true));
            assert_eq!(shown, item());
        }
    }

    #[test]
    fn times_and_ids_are_written_as_they_are_shown() {
        #[derive(Serialize)]
        struct Both(#[serde(serialize_with = "hex")] u64, #[serde(serialize_with = "time_of")] UnixMillis);
        for (id, at) in [
            (0, UnixMillis(0)),
            (0x9bc, UnixMillis(1_782_262_923_456)),
            (u64::MAX, UnixMillis(253_402_300_799_999)),
            (1, UnixMillis(253_402_300_800_000)),
            (0xabcd_ef01_2345_6789, UnixMillis(-1)),
            (2, UnixMillis(-62_167_219_200_001)),
        ] {
            let written = serde_json::to_string(&Both(id, at)).unwrap();
            assert_eq!(written, format!("[\"{id:#018x}\",\"{at}\"]"));
        }
    }

    #[test]
    fn the_json_of_the_seed() {
        let answer = DomainAnswer {
            domain: "example.com".into(),
            domain_id: 0xf000_0000_0000_0001,
            domain_id_hex: 0xf000_0000_0000_0001,
            version: "v1".into(),
            datasets: vec![DomainDataset {
                dataset_id: 17,
                name: "cc".into(),
                url_count_est: 15823,
                distinct_urls: 15000,
                distinct_exact: true,
                first_ts: Some(UnixMillis(0)),
                last_ts: None,
                top_paths: vec![TopPath { path: "/a/".into(), rows: 3 }],
            }],
        };
        assert_eq!(
            serde_json::to_string(&answer).unwrap(),
            r#"{"domain":"example.com","domain_id":17293822569102704641,"domain_id_hex":"0xf000000000000001","version":"v1","#
                .to_owned()
                + r#""datasets":[{"dataset_id":17,"name":"cc","url_count_est":15823,"distinct_urls":15000,"#
                + r#""distinct_exact":true,"first_ts":"1970-01-01T00:00:00.000Z","top_paths":[{"path":"/a/","rows":3}]}]}"#
        );
    }

    #[test]
    fn rows_leave_out_what_is_unknown() {
        let item = UrlItem {
            url_id: 0x9bc,
            url: "https://example.com/a/b?x=1".into(),
            ts: Some(UnixMillis(1_718_323_200_000)),
            status: None,
            content_type: None,
            digest: None,
            body_length: None,
            warc_file: None,
            warc_offset: None,
            warc_length: None,
            locator: None,
            extras: None,
        };
        let answer = UrlsAnswer {
            domain: "example.com".into(),
            dataset_id: 17,
            version: "v1".into(),
            total_est: 1,
            total_filtered: None,
            progress: None,
            items: vec![item],
            next_offset: None,
            next_cursor: None,
        };
        assert_eq!(
            serde_json::to_string(&answer).unwrap(),
            r#"{"domain":"example.com","dataset_id":17,"version":"v1","total_est":1,"items":[{"url_id":"0x00000000000009bc","#
                .to_owned()
                + r#""url":"https://example.com/a/b?x=1","ts":"2024-06-14T00:00:00.000Z"}],"next_offset":null,"next_cursor":null}"#
        );
    }
}
