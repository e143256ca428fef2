//! What changed between two files: rows side by side in key order, streaming.

use crate::error::Result;
use crate::json;
use crate::reader::{HostRow, MeguriFile, Row, RowCursor};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use trawl_url::key::UrlKey;

/// A row that is not the same in both files.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Only the new file has it.
    Added {
        /// The row.
        row: Value,
    },
    /// Only the old file has it.
    Removed {
        /// The row.
        row: Value,
    },
    /// Both have it, with different facts.
    Changed {
        /// Its key, in hex.
        key: String,
        /// Its URL in the new file.
        url: String,
        /// Each fact that differs: the old value and the new.
        fields: BTreeMap<String, (Value, Value)>,
    },
    /// A host that only the new file has.
    HostAdded {
        /// The host.
        host: Value,
    },
    /// A host that only the old file has.
    HostRemoved {
        /// The host.
        host: Value,
    },
    /// A host that both have, with different facts.
    HostChanged {
        /// Its name in the new file.
        host: String,
        /// Each fact that differs: the old value and the new.
        fields: BTreeMap<String, (Value, Value)>,
    },
}

/// How many rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Differences {
    /// Of URLs.
    #[serde(flatten)]
    pub urls: Counts,
    /// Of hosts.
    pub hosts: Counts,
    /// Rows of either file whose key is not the one of their URL; they are compared as they are.
    pub wrong_keys: u64,
}

impl Differences {
    /// Whether the files say the same, and nothing wrong.
    pub fn is_empty(&self) -> bool {
        self.wrong_keys == 0
            && [&self.urls, &self.hosts].iter().all(|counts| counts.added + counts.removed + counts.changed == 0)
    }
}

/// How many rows of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Only in the new file.
    pub added: u64,
    /// Only in the old file.
    pub removed: u64,
    /// In both, different.
    pub changed: u64,
    /// In both, equal.
    pub same: u64,
    /// Changed rows by the fact that differs.
    pub fields: BTreeMap<String, u64>,
}

/// Compares two files: their URLs, then their hosts. References are not compared, the texts they lead to are; a fact that only
/// one file has a column for counts as 0 or empty in the other. Rows out of order are an error: they would count as added and
/// removed.
pub fn diff(old: &MeguriFile, new: &MeguriFile, each: &mut dyn FnMut(Change) -> Result<()>) -> Result<Differences> {
    let (mut left, mut right) = (Rows::new(old)?, Rows::new(new)?);
    let urls = side_by_side(
        &mut || left.next(),
        &mut || right.next(),
        &|a: &Row, b: &Row| a.key().cmp(&b.key()),
        &json::row,
        &mut |found| {
            each(match found {
                Found::Added(row) => Change::Added { row },
                Found::Removed(row) => Change::Removed { row },
                Found::Changed(new, fields) => {
                    let url = String::from_utf8_lossy(&new.url).into_owned();
                    Change::Changed { key: hex(new.key()), url, fields }
                }
            })
        },
    )?;
    let wrong_keys = left.wrong_keys + right.wrong_keys;
    let (mut left, mut right) = (old.hosts()?, new.hosts()?);
    let hosts = side_by_side(
        &mut || left.next_host(),
        &mut || right.next_host(),
        &|a: &HostRow, b: &HostRow| a.record.host_key.cmp(&b.record.host_key),
        &host_facts,
        &mut |found| {
            each(match found {
                Found::Added(host) => Change::HostAdded { host },
                Found::Removed(host) => Change::HostRemoved { host },
                Found::Changed(new, fields) => {
                    Change::HostChanged { host: String::from_utf8_lossy(&new.host).into_owned(), fields }
                }
            })
        },
    )?;
    Ok(Differences { urls, hosts, wrong_keys })
}

/// The rows of a file, each checked.
struct Rows<'a> {
    file: &'a MeguriFile,
    cursor: RowCursor,
    last: Option<UrlKey>,
    wrong_keys: u64,
}

impl<'a> Rows<'a> {
    fn new(file: &'a MeguriFile) -> Result<Self> {
        Ok(Rows { file, cursor: file.cursor()?, last: None, wrong_keys: 0 })
    }

    fn next(&mut self) -> Result<Option<Row>> {
        let Some(row) = self.cursor.next_row()? else { return Ok(None) };
        let (key, last) = (row.key(), self.last.replace(row.key()));
        if let Some(last) = last.filter(|last| key < *last) {
            return Err(self.file.unsorted(row.number, last, key));
        }
        self.wrong_keys += u64::from(self.file.key_fault(row.number, key, &row.url).is_some());
        Ok(Some(row))
    }
}

/// A row that is not the same in both tables, and its facts.
enum Found<'a, R> {
    Added(Value),
    Removed(Value),
    /// The new one, and what differs.
    Changed(&'a R, BTreeMap<String, (Value, Value)>),
}

type Next<'a, R> = dyn FnMut() -> Result<Option<R>> + 'a;

/// Walks over two sorted tables.
fn side_by_side<R>(
    old: &mut Next<'_, R>,
    new: &mut Next<'_, R>,
    order: &dyn Fn(&R, &R) -> Ordering,
    facts: &dyn Fn(&R) -> Value,
    each: &mut dyn FnMut(Found<'_, R>) -> Result<()>,
) -> Result<Counts> {
    let (mut a, mut b) = (old()?, new()?);
    let mut counts = Counts::default();
    loop {
        let side = match (&a, &b) {
            (None, None) => return Ok(counts),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => order(a, b),
        };
        let x = if side.is_le() { std::mem::replace(&mut a, old()?) } else { None };
        let y = if side.is_ge() { std::mem::replace(&mut b, new()?) } else { None };
        match (x, y) {
            (Some(x), None) => {
                counts.removed += 1;
                each(Found::Removed(facts(&x)))?;
            }
            (None, Some(y)) => {
                counts.added += 1;
                each(Found::Added(facts(&y)))?;
            }
            (Some(x), Some(y)) => {
                let fields = differing(&facts(&x), &facts(&y));
                if fields.is_empty() {
                    counts.same += 1;
                } else {
                    counts.changed += 1;
                    fields.keys().for_each(|name| *counts.fields.entry(name.clone()).or_default() += 1);
                    each(Found::Changed(&y, fields))?;
                }
            }
            (None, None) => return Ok(counts),
        }
    }
}

/// What is compared of a host: all that is shown of it, and its robots.txt.
fn host_facts(host: &HostRow) -> Value {
    let mut facts = json::host(host);
    if let Some(facts) = facts.as_object_mut().filter(|_| !host.robots.is_empty()) {
        facts.insert("robots".to_owned(), format!("crc32c:{:08x}", trawl_io::crc::crc32c(&host.robots)).into());
    }
    facts
}

/// A key as text: 32 hex digits, host first.
pub fn hex(key: UrlKey) -> String {
    format!("{:016x}{:016x}", key.host, key.path)
}

/// The facts that two rows of one key do not share.
fn differing(a: &Value, b: &Value) -> BTreeMap<String, (Value, Value)> {
    let mut fields = BTreeMap::new();
    let names = |v: &Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).into_iter().flatten();
    for name in names(a).chain(names(b)).filter(|name| name != "row") {
        let of = |v: &Value| v.get(&name).cloned().unwrap_or(Value::Null);
        let (x, y) = (of(a), of(b));
        // A file without the column says as much as one with nothing in it.
        if x != y && !(is_nothing(&x) && is_nothing(&y)) {
            fields.insert(name, (x, y));
        }
    }
    fields
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_u64() == Some(0) || value.as_str() == Some("")
}
