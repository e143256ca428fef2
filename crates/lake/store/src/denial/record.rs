//! The deny list beside the datasets: `datasets/deny/<n>.json` has what the manifest's `deny` has, so that a lake whose
//! `index/` is lost still knows what it must not answer.
//!
//! ```text
//! manifest n with another list ─► record of it, naming n ─► acknowledged
//! ```
//! Records follow the manifest. A writer that was cut between the two has acknowledged nothing, and the next commit of
//! anybody writes the record. Each names the manifest it was taken of, and these numbers rise: a writer that comes late with an
//! older list finds a newer one and leaves it.

use crate::manifest::{Deny, Manifest, check_head, json_error, to_sealed_json};
use crate::series::{Known, Series};
use crate::{Error, Lake, Result, Store, layout};
use serde::{Deserialize, Serialize};

/// The format number this program writes, and the newest it reads.
pub const DENY_FORMAT: u32 = 1;

/// One state of the deny list, whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenyRecord {
    /// Format number.
    pub format: u32,
    /// Its number in `datasets/deny/`.
    pub sequence: u64,
    /// The manifest it was taken of.
    pub manifest: u64,
    /// When that was committed, RFC 3339.
    pub written: String,
    /// Who wrote the record; empty in those of earlier programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub writer: String,
    /// What must not be answered.
    pub deny: Vec<Deny>,
}

impl DenyRecord {
    /// Reads the JSON text of `path`.
    pub fn parse(path: &str, bytes: &[u8]) -> Result<Self> {
        check_head(path, bytes, DENY_FORMAT)?;
        let record: Self = serde_json::from_slice(bytes).map_err(|e| json_error(path, bytes, &e))?;
        if layout::number_of(path).is_some_and(|number| number != record.sequence) {
            let (expected, found) = ("the number of its name as its sequence", record.sequence.to_string());
            return Err(Error::Corrupt { path: path.to_owned(), offset: 0, expected, found });
        }
        Ok(record)
    }

    /// As it is stored.
    pub fn to_json(&self) -> Vec<u8> {
        to_sealed_json(self)
    }
}

/// The newest record of the deny list. `None`: nothing was ever denied.
pub fn deny_record(store: &dyn Store) -> Result<Option<DenyRecord>> {
    let series = Series::new(store, layout::DENY);
    let newest = series.newest(Known::Nothing)?;
    newest.map(|state| DenyRecord::parse(&series.path(state.number), &state.bytes)).transpose()
}

/// A recorded list that `is_it` takes for the one it looks for, the newest first. Records that cannot be read say nothing.
pub(crate) fn recorded(store: &dyn Store, is_it: &dyn Fn(&[Deny]) -> bool) -> Result<Option<Vec<Deny>>> {
    let series = Series::new(store, layout::DENY);
    for (path, number) in series.listed()?.into_iter().rev() {
        let Some(state) = series.get(number)? else { continue };
        if let Ok(record) = DenyRecord::parse(&path, &state.bytes)
            && is_it(&record.deny)
        {
            return Ok(Some(record.deny));
        }
    }
    Ok(None)
}

impl Lake {
    /// Makes sure that the newest record is of `manifest` or a later one. With `changed` its list is another than that of
    /// the manifest before; else a record is only written if somebody was cut before they could.
    pub(crate) fn record_deny(&self, manifest: &Manifest, writer: &str, changed: bool) -> Result<()> {
        let series = Series::new(&**self.store(), layout::DENY);
        series.append(Known::Nothing, 0, |newest| {
            // One that cannot be read says nothing: the next takes its place.
            let parsed = newest.and_then(|state| DenyRecord::parse(&series.path(state.number), &state.bytes).ok());
            let known = match (&parsed, newest) {
                (Some(record), _) if record.manifest >= manifest.sequence => true,
                // Equal lists do not do after a change: a late writer of a list between them must find a newer number.
                (Some(record), _) => !changed && record.deny == manifest.deny,
                (None, Some(_)) => false,
                (None, None) => !changed && manifest.deny.is_empty(),
            };
            let record = || DenyRecord {
                format: DENY_FORMAT,
                sequence: newest.map_or(0, |state| state.number).saturating_add(1),
                manifest: manifest.sequence,
                written: manifest.written.clone(),
                writer: writer.to_owned(),
                deny: manifest.deny.clone(),
            };
            Ok((!known).then(|| record().to_json()))
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DirStore;
    use crate::manifest::DenyTarget;
    use std::sync::Arc;
    use trawl_model::UnixMillis;

    const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

    fn lake() -> (tempfile::TempDir, Lake) {
        let dir = tempfile::tempdir().unwrap();
        let lake = Lake::init(Arc::new(DirStore::new(dir.path())), NOW, "n", b"com\n").unwrap();
        (dir, lake)
    }

    /// Makes the list consist of these domains.
    fn set(lake: &Lake, domains: &[&str]) -> Arc<Manifest> {
        let deny = |domain: &&str| {
            let target = DenyTarget::Domain((*domain).into());
            Deny { target, since: NOW.to_string(), reason: None }
        };
        let deny: Vec<_> = domains.iter().map(deny).collect();
        let change = |manifest: &mut Manifest| {
            manifest.deny.clone_from(&deny);
            Ok(())
        };
        lake.commit(NOW, "w", change).unwrap().manifest
    }

    fn newest(lake: &Lake) -> DenyRecord {
        deny_record(&**lake.store()).unwrap().unwrap()
    }

    #[test]
    fn whoever_comes_late_does_not_undo_a_newer_list() {
        let (_dir, lake) = lake();
        assert_eq!(deny_record(&**lake.store()).unwrap(), None);
        set(&lake, &["a.com"]);
        let without = set(&lake, &[]);
        let again = set(&lake, &["a.com"]);
        // The one that took it off was slow to record it; so was one that knows of no change at all.
        for changed in [true, false] {
            lake.record_deny(&without, "late", changed).unwrap();
            assert_eq!((newest(&lake).manifest, newest(&lake).deny), (again.sequence, again.deny.clone()));
        }
        assert_eq!(newest(&lake).sequence, 3);
    }

    #[test]
    fn what_was_not_recorded_is_by_the_next_commit_and_what_was_is_not_again() {
        let (_dir, lake) = lake();
        let manifest = set(&lake, &["a.com"]);
        let path = layout::numbered(layout::DENY, 1);
        lake.store().delete(&path).unwrap();
        // A change that changes nothing is a commit too.
        set(&lake, &["a.com"]);
        assert_eq!(newest(&lake).deny, manifest.deny);
        lake.store().put(&path, b"{").unwrap();
        assert!(deny_record(&**lake.store()).is_err());
        lake.register_dataset(NOW, "w", &crate::DatasetInfo::named("d")).unwrap();
        lake.register_dataset(NOW, "w", &crate::DatasetInfo::named("e")).unwrap();
        assert_eq!((newest(&lake).sequence, newest(&lake).deny), (2, manifest.deny.clone()));
    }

    #[test]
    fn cut_and_turned_records_are_errors_or_change_nothing() {
        let (_dir, lake) = lake();
        set(&lake, &["a.com", "b.org"]);
        let (record, path) = (newest(&lake), layout::numbered(layout::DENY, 1));
        let bytes = record.to_json();
        assert_eq!(DenyRecord::parse(&path, &bytes).unwrap(), record);
        assert!(DenyRecord::parse(&layout::numbered(layout::DENY, 2), &bytes).is_err());
        for cut in 0..bytes.len() {
            assert!(DenyRecord::parse(&path, &bytes[..cut]).is_err(), "cut at {cut}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut turned = bytes.clone();
            turned[bit / 8] ^= 1 << (bit % 8);
            if let Ok(found) = DenyRecord::parse(&path, &turned) {
                assert_eq!(found, record, "bit {bit}");
            }
        }
    }
}
