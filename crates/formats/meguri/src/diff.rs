//! What changed between two files: rows side by side in key order, streaming.

use crate::error::Result;
use crate::json;
use crate::reader::{MeguriFile, Row};
use serde_json::Value;
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
}

/// How many rows.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Differences {
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

/// Compares two files. References are not compared, the texts they lead to are; a fact that only one file has a column for
/// counts as 0 or empty in the other.
pub fn diff(old: &MeguriFile, new: &MeguriFile, each: &mut dyn FnMut(Change) -> Result<()>) -> Result<Differences> {
    let (mut left, mut right) = (old.cursor()?, new.cursor()?);
    let (mut a, mut b) = (left.next_row()?, right.next_row()?);
    let mut found = Differences::default();
    loop {
        let order = match (&a, &b) {
            (None, None) => return Ok(found),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.key().cmp(&b.key()),
        };
        if order.is_lt() {
            if let Some(row) = std::mem::replace(&mut a, left.next_row()?) {
                found.removed += 1;
                each(Change::Removed { row: json::row(&row) })?;
            }
        } else if order.is_gt() {
            if let Some(row) = std::mem::replace(&mut b, right.next_row()?) {
                found.added += 1;
                each(Change::Added { row: json::row(&row) })?;
            }
        } else {
            let (x, y) = (std::mem::replace(&mut a, left.next_row()?), std::mem::replace(&mut b, right.next_row()?));
            if let (Some(x), Some(y)) = (x, y) {
                compare(&x, &y, &mut found, each)?;
            }
        }
    }
}

/// A key as text: 32 hex digits, host first.
pub fn hex(key: UrlKey) -> String {
    format!("{:016x}{:016x}", key.host, key.path)
}

fn compare(old: &Row, new: &Row, found: &mut Differences, each: &mut dyn FnMut(Change) -> Result<()>) -> Result<()> {
    let (a, b) = (json::row(old), json::row(new));
    let mut fields = BTreeMap::new();
    let names = |v: &Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).into_iter().flatten();
    for name in names(&a).chain(names(&b)).filter(|name| name != "row") {
        let of = |v: &Value| v.get(&name).cloned().unwrap_or(Value::Null);
        let (x, y) = (of(&a), of(&b));
        // A file without the column says as much as one with nothing in it.
        if x != y && !(is_nothing(&x) && is_nothing(&y)) {
            fields.insert(name, (x, y));
        }
    }
    if fields.is_empty() {
        found.same += 1;
        return Ok(());
    }
    found.changed += 1;
    fields.keys().for_each(|name| *found.fields.entry(name.clone()).or_default() += 1);
    let url = String::from_utf8_lossy(&new.url).into_owned();
    each(Change::Changed { key: hex(new.key()), url, fields })
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_u64() == Some(0) || value.as_str() == Some("")
}
