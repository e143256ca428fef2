//! Where a CDX answer that a limit ended goes on.

use crate::failure::Failure;
use data_encoding::BASE64URL_NOPAD;
use std::cmp::Ordering;
use trawl_model::UnixMillis;
use trawl_query::CdxRow;

/// The capture that an answer goes on with: what it is sorted by, and how many with the same were told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) stretch: u64,
    told: usize,
    dataset_id: u32,
    ts: Option<UnixMillis>,
    urlkey: String,
}

impl Next {
    /// The capture at a place of a stretch.
    pub(super) fn of(stretch: u64, rows: &[CdxRow], at: usize) -> Option<Self> {
        let row = rows.get(at)?;
        let told = rows.iter().take(at).rev().take_while(|other| order_of(other) == order_of(row)).count();
        let (dataset_id, ts, urlkey) = (row.dataset_id, row.item.ts, row.urlkey.clone());
        Some(Self { stretch, told, dataset_id, ts, urlkey })
    }

    /// Whether it is found by counting captures, and not only by what they are sorted by.
    pub(super) fn is_counted(&self) -> bool {
        self.told > 0
    }

    /// Its place among these, by what they are sorted by: others may have been denied since.
    pub(super) fn place(&self, rows: &[CdxRow], reverse: bool) -> usize {
        let wanted = (self.urlkey.as_str(), self.ts, self.dataset_id);
        let before = if reverse { Ordering::Greater } else { Ordering::Less };
        rows.partition_point(|row| order_of(row).cmp(&wanted) == before).saturating_add(self.told)
    }
}

/// By what captures are sorted.
fn order_of(row: &CdxRow) -> (&str, Option<UnixMillis>, u32) {
    (&row.urlkey, row.item.ts, row.dataset_id)
}

/// Where an answer goes on, in the version it began with, and what [`Pick`](super::cdx_rows::Pick) knew of the captures before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resume {
    pub(super) version: String,
    /// The rows it was counted over: [`CdxRows::mark`](trawl_query::CdxRows::mark).
    pub(super) rows: u64,
    pub(super) next: Next,
    pub(super) marks: Vec<Option<u64>>,
}

impl Resume {
    pub(super) fn encode(&self) -> String {
        let Next { stretch, told, dataset_id, ts, urlkey } = &self.next;
        let ts = ts.map(|ts| ts.0.to_string()).unwrap_or_default();
        let mut text = format!("{stretch} {told} {dataset_id} {ts} {} {:x}", self.version, self.rows);
        for mark in &self.marks {
            text.push(' ');
            text.push_str(&mark.map(|mark| format!("{mark:x}")).unwrap_or_default());
        }
        // In letters that pass through addresses unescaped.
        BASE64URL_NOPAD.encode(format!("{text}\n{urlkey}").as_bytes())
    }

    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let bad = || Failure::bad_request("parameter resumeKey: expected the key of an answer before");
        Self::decode(text).ok_or_else(bad)
    }

    fn decode(text: &str) -> Option<Self> {
        let text = String::from_utf8(BASE64URL_NOPAD.decode(text.as_bytes()).ok()?).ok()?;
        let (text, urlkey) = text.split_once('\n')?;
        let mut parts = text.split(' ');
        let (stretch, told) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let dataset_id = parts.next()?.parse().ok()?;
        let ts = parts.next().filter(|ts| !ts.is_empty()).map(|ts| ts.parse().map(UnixMillis)).transpose().ok()?;
        let version = parts.next()?.to_owned();
        let rows = u64::from_str_radix(parts.next()?, 16).ok()?;
        let mark = |mark: &str| if mark.is_empty() { Some(None) } else { u64::from_str_radix(mark, 16).ok().map(Some) };
        let marks = parts.map(mark).collect::<Option<Vec<_>>>()?;
        Some(Self { version, rows, next: Next { stretch, told, dataset_id, ts, urlkey: urlkey.to_owned() }, marks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_and_others_are_refused() {
        for (ts, marks, urlkey) in [
            (None, vec![], "com,a)/"),
            (Some(UnixMillis(-5)), vec![None, Some(u64::MAX), Some(0)], "com,a)/x y?b"),
            (Some(UnixMillis(1 << 40)), vec![None], ""),
        ] {
            let next = Next { stretch: 3, told: 7, dataset_id: 9, ts, urlkey: urlkey.into() };
            let resume = Resume { version: "2026-06-24T01:02:03.456Z".into(), rows: u64::MAX - 1, next, marks };
            assert_eq!(Resume::parse(&resume.encode()).unwrap(), resume);
        }
        for bad in ["", "0-1", "AAAA", "ü"] {
            assert!(Resume::parse(bad).is_err(), "{bad}");
        }
    }
}
