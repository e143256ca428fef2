//! From named values to a record: known names fill its fields, all others go to the extras unchanged.
//!
//! The one place that knows what names mean, for lists and for archives.

use crate::{BadItem, Options, Purpose};
use trawl_model::{Digest, Place, UnixMillis, UrlRecord, date as time};

/// From here on a float stands for more than one whole number.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// A value as its source has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Null,
    /// A text.
    Text(&'a str),
    /// A number, as written.
    Number(&'a str),
    /// Any other JSON, compact.
    Json(&'a str),
}

/// What a named value is to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Url,
    /// A domain or host, where there is no URL.
    Host,
    Ts,
    Status,
    ContentType,
    Digest,
    BodyLength,
    WarcFile,
    WarcOffset,
    WarcLength,
    Extra,
}

/// A role, its names in general, and those it has besides where a CDX index speaks: in other lists `offset` or `length` may be
/// anything.
type Row = (Role, &'static [&'static str], &'static [&'static str]);

/// All are compared without regard to case.
const ROLES: &[Row] = &[
    (Role::Url, &["url"], &["original"]),
    (Role::Ts, &["ts", "timestamp", "fetch_time"], &[]),
    (
        Role::Status,
        &["status", "fetch_status", "status_code", "statuscode", "http_status", "http_status_code", "httpstatus"],
        &[],
    ),
    (Role::ContentType, &["content_type", "content_mime_type"], &["mime", "mimetype"]),
    (Role::Digest, &["digest", "content_digest"], &[]),
    (Role::BodyLength, &["body_length"], &[]),
    (Role::WarcFile, &["warc_file", "warc_filename"], &["filename"]),
    (Role::WarcOffset, &["warc_offset", "warc_record_offset"], &["offset"]),
    (Role::WarcLength, &["warc_length", "warc_record_length"], &["length"]),
];

/// Columns that hold a host, for tables without a URL column, the best first. `origin` is last because it can mean something
/// else, such as a country.
const HOSTS: &[&str] = &["host", "hostname", "domain", "origin"];
/// Columns in which a lake keeps its URLs. Taken for the URLs, its hosts would lose every path.
pub(crate) const PARTS_OF_LAKE: &[&str] = &["scheme", "host", "path_query"];
/// Every CDX index has this key, and nothing else calls its own so.
const CDX_KEY: &str = "urlkey";
/// Some servers leave the key out of their answers: all of these side by side say as much.
const CDX_PLACE: &[&str] = &["timestamp", "filename", "offset", "length"];

fn is_one_of(name: &str, known: &[&str]) -> bool {
    known.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn role_of(name: &str, is_cdx: bool) -> Role {
    let named = |row: &&Row| is_one_of(name, row.1) || is_cdx && is_one_of(name, row.2);
    ROLES.iter().find(named).map_or(Role::Extra, |row| row.0)
}

/// Whether a column of this name may hold the URLs.
pub(crate) fn may_be_url(name: &str) -> bool {
    role_of(name, false) == Role::Url || is_one_of(name, HOSTS)
}

/// Whether a name means something in any list.
pub(crate) fn is_known(name: &str) -> bool {
    role_of(name, true) != Role::Extra || is_one_of(name, HOSTS)
}

/// What each of some named values is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Roles {
    pub each: Vec<Role>,
    /// Whether `-` means that a value is not known.
    is_cdx: bool,
    purpose: Purpose,
}

impl Roles {
    /// Of the values of these names, which stand side by side in one item or one header.
    pub fn of<'n>(options: &Options, is_cdx: bool, names: impl Iterator<Item = &'n str> + Clone) -> Self {
        let has = |wanted: &str| names.clone().any(|name| name.eq_ignore_ascii_case(wanted));
        let is_cdx = is_cdx || has(CDX_KEY) || CDX_PLACE.iter().all(|name| has(name));
        let role = |name: &str| match role_of(name, is_cdx) {
            // Another column was named.
            Role::Url if options.url_column.is_some() => Role::Extra,
            Role::Ts if options.time_column.is_some() => Role::Extra,
            role if options.purpose == Purpose::Lake || role == Role::Url => role,
            _ => Role::Extra,
        };
        let mut each: Vec<Role> = names.clone().map(role).collect();
        let has_url = each.contains(&Role::Url);
        let position = |wanted: &str| names.clone().position(|name| name.eq_ignore_ascii_case(wanted));
        let mut set = |at: Option<usize>, role| {
            if let Some(slot) = at.and_then(|at| each.get_mut(at)) {
                *slot = role;
            }
        };
        if let Some(column) = &options.time_column {
            set(position(column), Role::Ts);
        }
        match &options.url_column {
            // A column of bare hosts may be asked for as well.
            Some(column) if is_one_of(column, HOSTS) => set(position(column), Role::Host),
            Some(column) => set(position(column), Role::Url),
            None if has_url || PARTS_OF_LAKE.iter().all(|part| has(part)) => {}
            None => set(HOSTS.iter().find_map(|name| position(name)), Role::Host),
        }
        Self { each, is_cdx, purpose: options.purpose }
    }

    /// Those that were found some other way.
    pub fn guessed(options: &Options, each: Vec<Role>) -> Self {
        Self { each, is_cdx: false, purpose: options.purpose }
    }

    /// Whether one of the values is a URL, or stands for one.
    pub fn has_url(&self) -> bool {
        self.each.iter().any(|role| matches!(role, Role::Url | Role::Host))
    }

    /// The column that `--time-column` names, if none of the values is the time: a misspelt name would cost all times in silence.
    pub fn missing_time<'a>(&self, options: &'a Options) -> Option<&'a str> {
        options.time_column.as_deref().filter(|_| !self.each.contains(&Role::Ts))
    }

    /// A record to which the values can be added.
    pub fn fields(&self) -> Fields {
        Fields { dash_is_none: self.is_cdx, purpose: self.purpose, ..Fields::default() }
    }
}

/// A record being gathered.
#[derive(Debug, Default)]
pub struct Fields {
    dash_is_none: bool,
    purpose: Purpose,
    record: UrlRecord,
    has_url: bool,
    warc_file: Option<String>,
    warc_offset: Option<u64>,
    warc_length: Option<u64>,
    extras: String,
}

impl Fields {
    /// Takes a value that is what its name says in general. Nothing is lost: what does not fit its field goes to the extras
    /// under its own name.
    pub fn take(&mut self, name: &str, value: Value<'_>) {
        self.put(role_of(name, false), name, value);
    }

    /// Takes a value whose role is known.
    pub(crate) fn put(&mut self, role: Role, name: &str, value: Value<'_>) {
        match role {
            _ if self.dash_is_none && value == Value::Text("-") => {}
            Role::Extra => push_member(&mut self.extras, name, value),
            _ if value == Value::Null || self.fill(role, value) => {}
            _ => push_member(&mut self.extras, name, value),
        }
    }

    /// Sets the URL.
    pub fn set_url(&mut self, url: &str) {
        self.has_url = true;
        url.clone_into(&mut self.record.url);
    }

    /// Sets the URL that a key of an index stands for, if nothing has set one. The key says neither scheme nor case, so it is kept
    /// beside it.
    pub(crate) fn set_url_of_key(&mut self, key: &str) {
        if self.has_url {
            return;
        }
        if let Ok(url) = trawl_url::surt::to_url(key, "http") {
            self.set_url(&url);
            push_member(&mut self.extras, CDX_KEY, Value::Text(key));
        }
    }

    /// Sets the time, if nothing has and it can be shown; tells whether it did.
    pub fn set_ts(&mut self, ts: UnixMillis) -> bool {
        set(&mut self.record.ts, time::in_range(ts))
    }

    /// Sets the time, whatever did before, if it can be shown; tells whether it did.
    pub fn replace_ts(&mut self, ts: UnixMillis) -> bool {
        let ts = time::in_range(ts);
        self.record.ts = ts.or(self.record.ts);
        ts.is_some()
    }

    /// Whether there is a URL, and so a record.
    pub fn has_url(&self) -> bool {
        self.has_url
    }

    /// The values that are no fields, as they would be in the extras.
    pub fn text(&self) -> String {
        if self.extras.is_empty() { String::new() } else { format!("{}}}", self.extras) }
    }

    /// Whether the value fits its field.
    fn fill(&mut self, role: Role, value: Value<'_>) -> bool {
        let text = match value {
            Value::Text(text) | Value::Number(text) => text,
            Value::Null | Value::Json(_) => return false,
        };
        match role {
            Role::Url | Role::Host if self.has_url || !matches!(value, Value::Text(_)) || is_null(text) => false,
            Role::Host if self.purpose == Purpose::Crawl && !text.contains("://") => {
                // A column of hosts may have paths behind them.
                let end = if text.contains(['/', '?', '#']) { "" } else { "/" };
                self.set_url(&format!("http://{}{end}", text.trim()));
                true
            }
            Role::Url | Role::Host => {
                self.set_url(text);
                true
            }
            Role::Extra => false,
            Role::Ts => {
                let ts =
                    if matches!(value, Value::Number(_)) { time::from_number(text) } else { time::from_text(text) };
                set(&mut self.record.ts, ts)
            }
            Role::Status => match small(text) {
                // How sources say that there is none.
                Some(0) => true,
                status => set(&mut self.record.status, status.and_then(|status| u16::try_from(status).ok())),
            },
            Role::ContentType => set(&mut self.record.content_type, Some(text.to_owned())),
            Role::Digest => set(&mut self.record.digest, Digest::parse(text).ok()),
            Role::BodyLength => set(&mut self.record.body_length, small(text)),
            Role::WarcFile => set(&mut self.warc_file, Some(text.to_owned())),
            Role::WarcOffset => set(&mut self.warc_offset, small(text)),
            Role::WarcLength => set(&mut self.warc_length, small(text)),
        }
    }

    /// The record; `None` if it has no URL.
    pub fn finish(mut self) -> Option<UrlRecord> {
        if !self.has_url {
            return None;
        }
        match (self.warc_file, self.warc_offset) {
            (Some(file), Some(offset)) => {
                self.record.place = Some(Place::new(file, offset, self.warc_length.unwrap_or(0)));
            }
            // How captures.parquet says that there is none.
            (None, Some(0)) if self.warc_length.unwrap_or(0) == 0 => {}
            // Half a place leads nowhere, but somebody may want it.
            (file, offset) => {
                if let Some(file) = &file {
                    push_member(&mut self.extras, "warc_file", Value::Text(file));
                }
                for (name, number) in [("warc_offset", offset), ("warc_length", self.warc_length)] {
                    if let Some(number) = number {
                        push_member(&mut self.extras, name, Value::Number(&number.to_string()));
                    }
                }
            }
        }
        if !self.extras.is_empty() {
            self.extras.push('}');
            self.record.extras = Some(self.extras);
        }
        Some(self.record)
    }
}

/// How programs write that there is no value where a text has to stand. As a host it would make a row of each.
fn is_null(text: &str) -> bool {
    const NULLS: &[&str] = &["null", "none", "nan", "n/a", "#n/a", "\\n", "nil", "undefined", "-"];
    NULLS.iter().any(|null| text.trim().eq_ignore_ascii_case(null))
}

/// Bytes of a scheme that are looked at.
const MAX_SCHEME: usize = 12;

/// Whether a URL with its scheme stands behind white space in a text: a URL parser would escape or drop the white space and make
/// one URL of both.
pub(crate) fn has_second_url(text: &str) -> bool {
    if is_one_word(text.as_bytes()) {
        return false;
    }
    memchr::memmem::find_iter(text.as_bytes(), b"://").any(|at| {
        let before = text.get(..at).unwrap_or_default();
        let letters = before.bytes().rev().take(MAX_SCHEME).take_while(u8::is_ascii_alphanumeric).count();
        let front = before.get(..at - letters).unwrap_or_default();
        letters > 0 && front.ends_with(char::is_whitespace) && !front.trim_start().is_empty()
    })
}

/// Whether a text is ASCII without blanks and control characters, as most URLs are.
pub(crate) fn is_one_word(text: &[u8]) -> bool {
    // Without an early end the loop is done many bytes at a time.
    text.iter().fold(true, |so_far, b| so_far & (*b > b' ') & (*b < 0x7f))
}

/// Whether a text holds one of the characters that separate fields, and items of a field, in ASCII and in the tables of Hive. As part of
/// a URL they would be escaped, and the fields behind it with them.
pub(crate) fn has_field_mark(text: &[u8]) -> bool {
    text.iter().any(|b| matches!(b, 0x01..=0x03 | 0x1c..=0x1f))
}

/// The record, if its URL is one. In a value of its own a URL may hold another one behind white space in its query.
pub(crate) fn one_url(record: UrlRecord) -> Result<UrlRecord, BadItem> {
    let path = || record.url.split('?').next().unwrap_or_default();
    if !is_one_word(record.url.as_bytes()) && has_second_url(path()) {
        let message = "expected one URL, found another behind white space";
        return Err(BadItem::new("several", message, record.url.as_bytes()));
    }
    Ok(record)
}

/// Fills a field that is empty, and tells whether it did.
fn set<T>(slot: &mut Option<T>, found: Option<T>) -> bool {
    let fits = slot.is_none() && found.is_some();
    if fits {
        *slot = found;
    }
    fits
}

/// A whole number that fits the lake's signed columns, also as columns of floating numbers write it: `200.0`.
fn small(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| of_float(text.parse().ok()?)).filter(|n| i64::try_from(*n).is_ok())
}

/// A float that is whole, and small enough to be no other one.
fn of_float(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..MAX_WHOLE).contains(&number)).then_some(number as u64)
}

fn push_member(out: &mut String, name: &str, value: Value<'_>) {
    out.push(if out.is_empty() { '{' } else { ',' });
    push_json_text(out, name);
    out.push(':');
    match value {
        Value::Null => out.push_str("null"),
        Value::Text(text) => push_json_text(out, text),
        Value::Number(json) | Value::Json(json) => out.push_str(json),
    }
}

/// Appends a JSON string.
pub(crate) fn push_json_text(out: &mut String, text: &str) {
    // A text always serialises.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gather(options: &Options, is_cdx: bool, values: &[(&str, Value<'_>)]) -> Option<UrlRecord> {
        let roles = Roles::of(options, is_cdx, values.iter().map(|(name, _)| *name));
        let mut fields = roles.fields();
        roles.each.iter().zip(values).for_each(|(role, (name, value))| fields.put(*role, name, *value));
        fields.finish()
    }

    fn general(values: &[(&str, Value<'_>)]) -> Option<UrlRecord> {
        gather(&Options::default(), false, values)
    }

    #[test]
    fn known_names_fill_fields_and_the_rest_is_kept() {
        let record = general(&[
            ("url", Value::Text("http://a.com/")),
            ("TS", Value::Number("5")),
            ("status", Value::Text("200")),
            ("content_mime_type", Value::Text("text/html")),
            ("digest", Value::Text("3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")),
            ("warc_filename", Value::Text("a.warc.gz")),
            ("warc_record_offset", Value::Number("7")),
            ("lang", Value::Text("d\"e")),
            ("score", Value::Number("1.50")),
            ("x", Value::Null),
            ("y", Value::Json("[1,{}]")),
            ("body_length", Value::Null),
        ])
        .unwrap();
        assert_eq!(record.ts, Some(UnixMillis(5000)));
        assert_eq!((record.status, record.content_type.as_deref()), (Some(200), Some("text/html")));
        assert_eq!(record.digest.unwrap().to_string(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(record.place, Some(Place::new("a.warc.gz", 7, 0)));
        assert_eq!(record.extras.as_deref(), Some(r#"{"lang":"d\"e","score":1.50,"x":null,"y":[1,{}]}"#));
    }

    #[test]
    fn what_does_not_fit_goes_to_the_extras() {
        let record = general(&[
            ("url", Value::Text("http://a.com/")),
            ("ts", Value::Text("soon")),
            ("timestamp", Value::Number("253402300800000")),
            ("fetch_time", Value::Number("-1e14")),
            ("status", Value::Number("99999")),
            ("digest", Value::Json("{}")),
            ("body_length", Value::Number("18446744073709551615")),
            ("warc_file", Value::Text("a")),
            ("warc_length", Value::Number("3")),
            ("url", Value::Text("http://b.com/")),
        ])
        .unwrap();
        assert_eq!(UrlRecord { extras: None, ..record.clone() }, UrlRecord::bare("http://a.com/"));
        let expected = concat!(
            r#"{"ts":"soon","timestamp":253402300800000,"fetch_time":-1e14,"status":99999,"digest":{},"body_length":18446744073709551615,"#,
            r#""url":"http://b.com/","warc_file":"a","warc_length":3}"#
        );
        assert_eq!(record.extras.as_deref(), Some(expected));
    }

    #[test]
    fn whole_numbers_as_floats_and_a_status_of_0() {
        let with = |values: &[(&str, Value<'_>)]| {
            general(&[&[("url", Value::Text("http://a.com/"))], values].concat()).unwrap()
        };
        for text in ["200", "200.0", "200.00", "2e2"] {
            for value in [Value::Text(text), Value::Number(text)] {
                let record = with(&[("fetch_status", value), ("body_length", value)]);
                assert_eq!(
                    (record.status, record.body_length, record.extras),
                    (Some(200), Some(200), None),
                    "{value:?}"
                );
            }
        }
        for text in ["200.5", "-200.0", "65536.0", "NaN", "inf"] {
            let record = with(&[("status", Value::Text(text))]);
            assert_eq!((record.status, record.extras), (None, Some(format!(r#"{{"status":"{text}"}}"#))));
        }
        let far = with(&[("body_length", Value::Number("9007199254740992.0"))]);
        assert_eq!((far.body_length, far.extras.is_some()), (None, true));
        for (name, value) in [
            ("status", Value::Number("0")),
            ("STATUS", Value::Text("0")),
            ("fetch_status", Value::Number("0")),
            ("fetch_status", Value::Number("0.0")),
        ] {
            let record = with(&[(name, value)]);
            assert_eq!((record.status, record.extras), (None, None), "{name} {value:?}");
        }
        let both = with(&[("status", Value::Number("0")), ("fetch_status", Value::Number("404"))]);
        assert_eq!(both.status, Some(404));
        // As crawlers, probes and their libraries call it.
        for name in ["status_code", "StatusCode", "http_status", "http_status_code"] {
            let record = with(&[("status", Value::Text("OK")), (name, Value::Text("301"))]);
            assert_eq!((record.status, record.extras.as_deref()), (Some(301), Some(r#"{"status":"OK"}"#)), "{name}");
        }
    }

    #[test]
    fn a_word_for_nothing_is_no_url() {
        for null in ["NULL", "None", "nan", " N/A", "\\N", "-"] {
            assert_eq!(general(&[("url", Value::Text(null))]), None, "{null}");
        }
        assert_eq!(general(&[("domain", Value::Text("com"))]).unwrap().url, "com");
    }

    #[test]
    fn one_value_is_one_url() {
        for (url, is_one) in [
            ("http://a.com/", true),
            (" http://a.com/ ", true),
            ("http://a.com/x\ny", true),
            ("http://a.com/http://b.com/", true),
            ("http://a.com/?u= http://b.com/", true),
            ("http://a.com/\nhttp://b.com/", false),
            ("http://a.com/ http://b.com/", false),
            ("a.com\u{2028}https://b.com/", false),
        ] {
            assert_eq!(one_url(UrlRecord::bare(url)).is_ok(), is_one, "{url:?}");
        }
    }

    #[test]
    fn a_record_needs_a_url() {
        assert_eq!(general(&[("uri", Value::Text("http://a.com/"))]), None);
        assert_eq!(general(&[("url", Value::Number("7"))]), None);
    }

    #[test]
    fn cdxj_names() {
        let values = [
            ("url", Value::Text("http://a.com/")),
            ("filename", Value::Text("f")),
            ("offset", Value::Text("1")),
            ("length", Value::Text("2")),
            ("mime", Value::Text("m")),
        ];
        let record = gather(&Options::default(), true, &values).unwrap();
        assert_eq!((record.place, record.content_type.as_deref()), (Some(Place::new("f", 1, 2)), Some("m")));
        let record = general(&values).unwrap();
        assert_eq!(record.place, None);
        assert!(record.extras.unwrap().contains("\"filename\":\"f\""));
        // What the index server of Common Crawl answers is no CDXJ line, but speaks as one.
        let answered =
            general(&[&values[..], &[("urlkey", Value::Text("com,a)/")), ("charset", Value::Text("-"))]].concat());
        let answered = answered.unwrap();
        assert_eq!((answered.place, answered.content_type.as_deref()), (Some(Place::new("f", 1, 2)), Some("m")));
        assert_eq!(answered.extras.as_deref(), Some(r#"{"urlkey":"com,a)/"}"#));
    }

    #[test]
    fn columns_that_were_asked_for() {
        let values =
            [("url", Value::Text("http://a.com/")), ("Link", Value::Text("http://b.com/")), ("ts", Value::Number("5"))];
        let options =
            Options { url_column: Some("link".into()), time_column: Some("seen".into()), ..Options::default() };
        let record = gather(&options, false, &values).unwrap();
        assert_eq!((record.url.as_str(), record.ts), ("http://b.com/", None));
        assert_eq!(record.extras.as_deref(), Some(r#"{"url":"http://a.com/","ts":5}"#));
        let record = gather(&options, false, &[values[1], ("Seen", Value::Text("1970-01-02"))]).unwrap();
        assert_eq!((record.ts, record.extras), (Some(UnixMillis(86_400_000)), None));
        assert_eq!(gather(&options, false, &values[..1]), None);
    }

    #[test]
    fn a_host_stands_for_a_url_where_there_is_none() {
        let (domain, host) = (("Domain", Value::Text("a.com")), ("host", Value::Text("www.a.com")));
        let of = |values: &[(&str, Value<'_>)]| {
            let record = general(values).unwrap();
            (record.url, record.extras.unwrap_or_default())
        };
        assert_eq!(of(&[domain]), ("a.com".into(), String::new()));
        assert_eq!(of(&[domain, host]), ("www.a.com".into(), r#"{"Domain":"a.com"}"#.into()));
        let parts = [("scheme", Value::Text("http")), host, ("path_query", Value::Text("/x"))];
        assert_eq!(general(&parts), None);
        let from = ("origin", Value::Text("US"));
        assert_eq!(of(&[from, domain]), ("a.com".into(), r#"{"origin":"US"}"#.into()));
        let url = ("url", Value::Text("http://b.com/"));
        assert_eq!(of(&[domain, url]), ("http://b.com/".into(), r#"{"Domain":"a.com"}"#.into()));
        let crawl = Options { purpose: Purpose::Crawl, ..Options::default() };
        assert_eq!(gather(&crawl, false, &[domain]).unwrap().url, "http://a.com/");
        let origin = ("origin", Value::Text("https://a.com"));
        assert_eq!(gather(&crawl, false, &[origin]).unwrap().url, "https://a.com");
    }
}
