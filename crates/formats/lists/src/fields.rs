//! From named values to a record: known names fill its fields, all others go to the extras unchanged.
//!
//! The one place that knows what names mean, for lists and for archives.

use trawl_model::date as time;
use trawl_model::{Digest, Place, UnixMillis, UrlRecord};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Url,
    Ts,
    Status,
    ContentType,
    Digest,
    BodyLength,
    WarcFile,
    WarcOffset,
    WarcLength,
}

/// Which names mean which field. All are compared in lower case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Names {
    /// Trawl's own names, with those of captures.parquet and of the Common Crawl columnar index.
    #[default]
    General,
    /// The JSON of a CDXJ line, where `filename`, `offset` and `length` are the archive's, and `-` means "not known".
    Cdxj,
    /// Only the URL: all else is metadata, byte for byte.
    Url,
}

impl Names {
    /// Whether a name means the URL.
    pub fn is_url(self, name: &str) -> bool {
        self.field(name) == Some(Field::Url)
    }

    /// Whether a name means the time.
    pub fn is_ts(self, name: &str) -> bool {
        self.field(name) == Some(Field::Ts)
    }

    fn field(self, name: &str) -> Option<Field> {
        let matches = |known: &[&str]| known.iter().any(|k| name.eq_ignore_ascii_case(k));
        // The field, its names in general, and its name in CDXJ.
        const TABLE: &[(Field, &[&str], &[&str])] = &[
            (Field::Url, &["url"], &["url"]),
            (Field::Ts, &["ts", "timestamp", "fetch_time"], &[]),
            (Field::Status, &["status", "fetch_status"], &["status"]),
            (Field::ContentType, &["content_type", "content_mime_type"], &["mime"]),
            (Field::Digest, &["digest", "content_digest"], &["digest"]),
            (Field::BodyLength, &["body_length"], &[]),
            (Field::WarcFile, &["warc_file", "warc_filename"], &["filename"]),
            (Field::WarcOffset, &["warc_offset", "warc_record_offset"], &["offset"]),
            (Field::WarcLength, &["warc_length", "warc_record_length"], &["length"]),
        ];
        let named = |row: &&(Field, &[&str], &[&str])| match self {
            Names::General => matches(row.1),
            Names::Cdxj => matches(row.2),
            Names::Url => row.0 == Field::Url && matches(row.1),
        };
        TABLE.iter().find(named).map(|row| row.0)
    }
}

/// A record being gathered.
#[derive(Debug, Default)]
pub struct Fields {
    /// Which names mean which field.
    pub names: Names,
    record: UrlRecord,
    has_url: bool,
    warc_file: Option<String>,
    warc_offset: Option<u64>,
    warc_length: Option<u64>,
    extras: String,
}

impl Fields {
    /// A record without any.
    pub fn new(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    /// Takes one named value. Nothing is lost: what does not fit its field goes to the extras under its own name.
    pub fn take(&mut self, name: &str, value: Value<'_>) {
        match self.names.field(name) {
            Some(_) if value == Value::Null => {}
            _ if self.names == Names::Cdxj && value == Value::Text("-") => {}
            Some(field) if self.fill(field, value) => {}
            _ => push_member(&mut self.extras, name, value),
        }
    }

    /// Sets the URL.
    pub fn set_url(&mut self, url: &str) {
        self.has_url = true;
        url.clone_into(&mut self.record.url);
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
    fn fill(&mut self, field: Field, value: Value<'_>) -> bool {
        let text = match value {
            Value::Text(text) | Value::Number(text) => text,
            Value::Null | Value::Json(_) => return false,
        };
        match field {
            Field::Url if self.has_url || !matches!(value, Value::Text(_)) => false,
            Field::Url => {
                self.set_url(text);
                true
            }
            Field::Ts => {
                let ts =
                    if matches!(value, Value::Number(_)) { time::from_number(text) } else { time::from_text(text) };
                set(&mut self.record.ts, ts)
            }
            Field::Status => match small(text) {
                // How sources say that there is none.
                Some(0) => true,
                status => set(&mut self.record.status, status.and_then(|status| u16::try_from(status).ok())),
            },
            Field::ContentType => set(&mut self.record.content_type, Some(text.to_owned())),
            Field::Digest => set(&mut self.record.digest, Digest::parse(text).ok()),
            Field::BodyLength => set(&mut self.record.body_length, small(text)),
            Field::WarcFile => set(&mut self.warc_file, Some(text.to_owned())),
            Field::WarcOffset => set(&mut self.warc_offset, small(text)),
            Field::WarcLength => set(&mut self.warc_length, small(text)),
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

    fn gather(names: Names, values: &[(&str, Value<'_>)]) -> Option<UrlRecord> {
        let mut fields = Fields::new(names);
        values.iter().for_each(|(name, value)| fields.take(name, *value));
        fields.finish()
    }

    #[test]
    fn known_names_fill_fields_and_the_rest_is_kept() {
        let record = gather(
            Names::General,
            &[
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
            ],
        )
        .unwrap();
        assert_eq!(record.ts, Some(UnixMillis(5000)));
        assert_eq!((record.status, record.content_type.as_deref()), (Some(200), Some("text/html")));
        assert_eq!(record.digest.unwrap().to_string(), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(record.place, Some(Place::new("a.warc.gz", 7, 0)));
        assert_eq!(record.extras.as_deref(), Some(r#"{"lang":"d\"e","score":1.50,"x":null,"y":[1,{}]}"#));
    }

    #[test]
    fn what_does_not_fit_goes_to_the_extras() {
        let record = gather(
            Names::General,
            &[
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
            ],
        )
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
            gather(Names::General, &[&[("url", Value::Text("http://a.com/"))], values].concat()).unwrap()
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
    }

    #[test]
    fn a_record_needs_a_url() {
        assert_eq!(gather(Names::General, &[("uri", Value::Text("http://a.com/"))]), None);
        assert_eq!(gather(Names::General, &[("url", Value::Number("7"))]), None);
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
        let record = gather(Names::Cdxj, &values).unwrap();
        assert_eq!((record.place, record.content_type.as_deref()), (Some(Place::new("f", 1, 2)), Some("m")));
        let record = gather(Names::General, &values).unwrap();
        assert_eq!(record.place, None);
        assert!(record.extras.unwrap().contains("\"filename\":\"f\""));
    }
}
