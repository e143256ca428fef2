//! The door to a container that is there: [`Archive`].

use crate::{CaptureSource, DoorError, Place, RecordSource, SourceIdentity, Split, UnixMillis, UrlSource};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// One container, opened for reading: a file, or the files that make one.
pub trait Archive: Send + Sync {
    /// Captures, in the order they are stored. `None` if it holds something else, or has no way to pick them so.
    fn captures<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Box<dyn CaptureSource + 'a>>, DoorError>;

    /// The same as WARC records, byte for byte; `None` if it does not keep such records.
    fn records<'a>(&'a self, _pick: Pick<'_>) -> Result<Option<Box<dyn RecordSource + 'a>>, DoorError> {
        Ok(None)
    }

    /// Parts of about `target_bytes` that together are all captures, each read by [`Pick::Split`]. Empty: it has no parts.
    fn splits(&self, _target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        Ok(Vec::new())
    }

    /// Which container it is, if it says so itself and need not be read whole to be recognised.
    fn identity(&self) -> Option<SourceIdentity> {
        None
    }

    /// Its URLs, if it holds URLs without captures.
    fn urls(&self, _identity: &SourceIdentity) -> Result<Option<Box<dyn UrlSource>>, DoorError> {
        Ok(None)
    }

    /// What it holds that no capture carries, by name, and how many records of it.
    fn left_out(&self) -> Result<BTreeMap<String, u64>, DoorError> {
        Ok(BTreeMap::new())
    }

    /// Files that it says it has, and does not have: what was in them cannot be read.
    fn missing(&self) -> &[String] {
        &[]
    }

    /// All captures, with everything that only another container has a place for: a lake, which reads parts of an archive,
    /// has none.
    fn captures_to_convert(&self) -> Result<Option<Box<dyn CaptureSource + '_>>, DoorError> {
        self.captures(Pick::All)
    }

    /// What is in it, with `sample` entries: one description for each file inside. Empty: the captures say it all.
    fn inspect(&self, _sample: usize, _progress: OnProgress<'_>) -> Result<Vec<Inspection>, DoorError> {
        Ok(Vec::new())
    }

    /// Prints entries that are not captures and says how many; `None` if it holds none of such. Damaged places are reported to
    /// `on_damage` and passed over where what is behind them can be found.
    fn list(
        &self,
        _wanted: &Wanted<'_>,
        _out: &mut dyn Write,
        _on_damage: OnDamage<'_>,
    ) -> Result<Option<u64>, DoorError> {
        Ok(None)
    }

    /// Whether [`Archive::list`] prints contents, byte for byte, rather than lines about entries.
    fn lists_contents(&self, _wanted: &Wanted<'_>) -> bool {
        false
    }

    /// Whether [`Archive::list`] obeys [`Wanted::rows`]. Others are not asked for rows.
    fn has_rows(&self) -> bool {
        false
    }
}

/// Hears of damage that is passed over.
pub type OnDamage<'a> = &'a mut dyn FnMut(DoorError);

/// Which captures.
#[derive(Debug, Clone, Copy)]
pub enum Pick<'a> {
    /// All of them.
    All,
    /// Those of one of [`Archive::splits`].
    Split(Split),
    /// From the one at this place on: it is the first.
    At(&'a Place),
    /// The newest of this URL, for containers with an index by URL.
    Newest(&'a str),
}

/// How far a long walk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Records, rows or entries seen.
    pub records: u64,
    /// Stored bytes read.
    pub bytes: u64,
    /// Stored bytes there are; 0 where unknown.
    pub total_bytes: u64,
}

/// Hears of progress now and then.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress);

/// Which entries are printed, and how.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Only those with this URL, key or name.
    pub url: Option<&'a str>,
    /// Only the one at this stored offset.
    pub offset: Option<u64>,
    /// As JSON, one object a line.
    pub json: bool,
    /// With digests in place of contents.
    pub digests: bool,
    /// Only these rows of a frontier.
    pub rows: WantedRows<'a>,
}

/// Which rows of a frontier are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WantedRows<'a> {
    /// Only those of this host: its name, or its key as `0x` and hex digits.
    pub host: Option<&'a str>,
    /// Only those that are due at this time.
    pub due_before: Option<UnixMillis>,
    /// Only those in this state, by name, or whose last fetch had this HTTP status.
    pub status: Option<&'a str>,
}

impl WantedRows<'_> {
    /// Whether nothing is left out.
    pub fn is_all(&self) -> bool {
        *self == WantedRows::default()
    }
}

/// What a check works with.
pub struct Check<'a> {
    /// Takes what does not fit into memory.
    pub temp_dir: &'a Path,
    /// Memory for comparing records with each other.
    pub memory_bytes: usize,
    /// Hears of everything that is not as it should be.
    pub on_finding: &'a mut dyn FnMut(Finding),
    /// Hears of progress now and then.
    pub progress: OnProgress<'a>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The archive is wrong.
    Fault,
    /// Worth knowing; nothing is lost.
    Note,
}

/// Something that is not as it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// How bad.
    #[serde(rename = "type")]
    pub severity: Severity,
    /// The file, or the capture an index row is about.
    pub file: String,
    /// Where in the file, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// What kind, for machines: `payload-digest`, `duplicate-id`.
    pub kind: &'static str,
    /// What exactly, for people.
    pub detail: String,
}

/// What was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checked {
    /// Files with records or captures in them.
    pub files: u64,
    /// Records or captures.
    pub records: u64,
    /// Stored bytes of those files.
    pub bytes: u64,
    /// Digests that were computed and compared.
    pub digests: u64,
    /// Containers whose own structure was checked.
    pub containers: u64,
    /// Entries of those.
    pub entries: u64,
    /// Faults beyond those that findings were made of.
    pub unlisted: u64,
}

/// How many different names of a breakdown are kept apart; further ones count as `other`.
const MAX_NAMES: usize = 100_000;
/// Damaged places that are listed.
const MAX_DAMAGE: usize = 100;

/// Entries and bytes under one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// What is in one file. As JSON it is one flat object.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct Inspection {
    /// The file inside the container, where it has several.
    #[serde(skip)]
    pub inside: Option<String>,
    /// The format.
    pub format: String,
    /// What is printed beside the format, for people.
    #[serde(skip)]
    pub format_note: Option<String>,
    /// What only `--json` prints.
    #[serde(flatten)]
    pub details: Map<String, Value>,
    /// Numbers and texts in the order they are shown. A name that ends in `_bytes` is a size.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
    /// What only the text for people has.
    #[serde(skip)]
    pub remarks: Vec<String>,
    /// Counts by something: `statuses`, `hosts`.
    #[serde(flatten)]
    pub breakdowns: BTreeMap<&'static str, BTreeMap<String, Tally>>,
    /// The first entries.
    pub sample: Vec<Map<String, Value>>,
    /// Places where nothing could be read: the message of each, the first hundred.
    pub damage: Vec<String>,
}

impl Inspection {
    /// Adds a number or text.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Counts one more under `name`.
    pub fn tally(&mut self, breakdown: &'static str, name: String, bytes: u64) {
        let map = self.breakdowns.entry(breakdown).or_default();
        let known = map.len() < MAX_NAMES || map.contains_key(&name);
        let tally = map.entry(if known { name } else { "other".into() }).or_default();
        tally.count += 1;
        tally.bytes += bytes;
    }

    /// Counts a response: by status, media type without parameters, and host.
    pub fn tally_response(&mut self, status: Option<u16>, content_type: Option<&str>, url: &str, bytes: u64) {
        if let Some(status) = status {
            self.tally("statuses", status.to_string(), bytes);
        }
        if let Some(text) = content_type {
            let bare = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            self.tally("content_types", if bare.is_empty() { "unknown".into() } else { bare }, bytes);
        }
        self.tally("hosts", host_of(url), bytes);
    }

    /// Notes a damaged place.
    pub fn damaged(&mut self, message: String) {
        if self.damage.len() < MAX_DAMAGE {
            self.damage.push(message);
        }
    }
}

/// The host of a URL, as far as it has one: for counting, not for fetching.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = if host.starts_with('[') {
        host.find(']').map_or(host.len(), |i| i + 1)
    } else {
        host.find(':').unwrap_or(host.len())
    };
    host.get(..end).unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_cut_out() {
        for (url, host) in
            [("http://U@A.example:80/x", "a.example"), ("http://[::1]:8/", "[::1]"), ("dns:x", ""), ("http://a?b", "a")]
        {
            assert_eq!(host_of(url), host, "{url}");
        }
    }

    #[test]
    fn an_inspection_is_one_flat_object() {
        let mut seen = Inspection { format: "x".into(), ..Inspection::default() };
        seen.fact("stored_bytes", 7);
        seen.tally_response(Some(200), Some("Text/HTML; charset=x"), "http://a.example/", 5);
        let json = serde_json::to_string(&seen).unwrap();
        assert_eq!(
            json,
            r#"{"format":"x","stored_bytes":7,"content_types":{"text/html":{"count":1,"bytes":5}},"hosts":{"a.example":{"count":1,"bytes":5}},"statuses":{"200":{"count":1,"bytes":5}},"sample":[],"damage":[]}"#
        );
    }
}
