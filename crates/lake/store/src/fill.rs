//! Numbered manifests that are gone although later records of them are there: the copy, or a record of the deny list.
//!
//! ```text
//! manifests 7  8  ·  ·       copy: 10      the copy counts: readers go on from it
//!           7  8  9' 10  11  copy: 11      the next commit first fills the gap with what the copy has
//! ```
//! No gap is left, since a reader takes a number without a successor for the newest.

use crate::object::claim;
use crate::series::State;
use crate::{Error, Lake, Manifest, Result, deny_record, layout};
use trawl_model::UnixMillis;

/// Lost numbers that are written anew at most: each is a file.
const MAX_FILLED: u64 = 10_000;

/// Why no process commits after `newest`, while the deny list of manifest `recorded` is known.
pub(crate) fn lost_manifest(newest: u64, recorded: u64) -> Error {
    let path = layout::numbered(layout::MANIFESTS, recorded);
    let reason = format!(
        "{path}: expected the manifest whose deny list is recorded in {}, or a later one, found none after {newest}: \
         restore it from a copy, or `trawl lake rebuild` continues with that list",
        layout::DENY
    );
    Error::Refused { reason }
}

impl Lake {
    /// Writes the manifests up to `newest` that are gone, if that is the copy.
    pub(crate) fn fill_up(&self, newest: &State) -> Result<()> {
        let series = self.series();
        if self.store().exists(&series.path(newest.number))? {
            return Ok(());
        }
        let from = series.highest_listed()?.unwrap_or(0).saturating_add(1);
        self.fill(&self.parse_manifest(layout::MANIFEST_COPY, &newest.bytes)?, from, newest.number)
    }

    /// Writes `manifest` under each of these numbers that is not there. From the first on: there is never a gap.
    pub(crate) fn fill(&self, manifest: &Manifest, from: u64, last: u64) -> Result<()> {
        if last.saturating_sub(from) > MAX_FILLED {
            let reason = format!(
                "{}: expected numbers up to {last}, found none from {from} on: put the others back from a copy, or move those that \
                 are left out of the lake and run `trawl lake rebuild`",
                layout::MANIFESTS
            );
            return Err(Error::Refused { reason });
        }
        for sequence in from..=last {
            let bytes = Manifest { sequence, ..manifest.clone() }.to_json();
            // A faster process has filled it with the same.
            claim(&**self.store(), &self.series().path(sequence), &bytes)?;
        }
        Ok(())
    }

    /// Takes the deny list from its record, if the manifest of that is gone. What the manifest has that is left stays denied,
    /// too. Tells how many entries there are then.
    pub fn recover_deny(&self, now: UnixMillis, writer: &str) -> Result<Option<usize>> {
        let record = match deny_record(&**self.store()) {
            // The manifest has the list, and the next commit records it.
            Err(Error::Corrupt { .. }) => None,
            record => record?,
        };
        let newest = self.newest(None)?;
        let Some(record) = record.filter(|record| record.manifest > newest.number) else { return Ok(None) };
        let series = self.series();
        let left = self.parse_manifest(&series.path(newest.number), &newest.bytes)?;
        self.fill_up(&newest)?;
        let manifest =
            Manifest { deny: record.deny.clone(), written: now.to_string(), writer: writer.to_owned(), ..left.clone() };
        self.fill(&manifest, newest.number.saturating_add(1), record.manifest)?;
        self.refresh_copy(self.newest(None)?)?;
        let committed = self.commit(now, writer, |manifest| {
            for deny in record.deny.iter().chain(&left.deny) {
                if !manifest.deny.iter().any(|other| other.target == deny.target) {
                    manifest.deny.push(deny.clone());
                }
            }
            Ok(manifest.deny.len())
        })?;
        Ok(Some(committed.value))
    }
}
