//! Manifests, checkpoints and deny lists that are lost or damaged, written again from those that tell the same.

use crate::manifest::{Base, put_deny, stored_checkpoint, write_checkpoint};
use crate::object::claim;
use crate::series::MAX_STATE_BYTES;
use crate::{DenyRecord, Lake, Manifest, Result, layout};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use trawl_model::UnixMillis;

impl Lake {
    /// Writes the states of the lake again that are lost or damaged, and removes damaged ones that are not referred to. The
    /// newest manifest must be readable. Tells the paths. `writer` must be new.
    pub fn mend_states(&self, now: UnixMillis, writer: &str) -> Result<Vec<String>> {
        // Writes the copy and the record of the deny list, where the newest manifest has more than these.
        self.commit(now, writer, |_| Ok(()))?;
        let mut mended = Vec::new();
        let bases = self.mend_manifests(&mut mended)?;
        self.mend_checkpoints(&bases, &mut mended)?;
        self.mend_denials(&mut mended)?;
        Ok(mended)
    }

    /// A lost or damaged manifest gets what its successor has: readers must find no gap. Returns the checkpoints that are
    /// referred to, with their states, and stores long deny lists that are gone.
    fn mend_manifests(&self, mended: &mut Vec<String>) -> Result<BTreeMap<u64, (Base, Arc<Manifest>)>> {
        let series = self.series();
        let mut next = self.current()?;
        let first = series.listed()?.first().map_or(next.sequence, |(_, number)| *number);
        let (mut bases, mut denials) = (BTreeMap::new(), BTreeSet::new());
        for number in (first..=next.sequence).rev() {
            let path = series.path(number);
            match self.manifest_and_base(number) {
                Ok(Some((state, base))) if state.sequence == number => {
                    if let Some(base) = base
                        && let Some(known) = self.known_base(&base)
                    {
                        bases.insert(base.sequence, (base, known));
                    }
                    if let Some(object) = state.deny_object().filter(|object| denials.insert(object.clone()))
                        && self.stored_deny(&object)?.is_none()
                    {
                        put_deny(&**self.store(), &mut state.to_wire(None))?;
                        mended.push(object);
                    }
                    next = Arc::new(state);
                    continue;
                }
                // A collector takes the oldest first. What it took meanwhile would be the first side of a gap, written again.
                Ok(None) if series.listed()?.first().is_none_or(|(_, oldest)| *oldest > number) => break,
                Ok(None) => drop(claim(&**self.store(), &path, &renumbered(&next, number))?),
                // Readers never take a number for another state than the one they have read: no reader has read this one.
                Ok(Some(_)) | Err(_) => self.store().put(&path, &renumbered(&next, number))?,
            }
            mended.push(path);
        }
        Ok(bases)
    }

    fn mend_checkpoints(&self, bases: &BTreeMap<u64, (Base, Arc<Manifest>)>, mended: &mut Vec<String>) -> Result<()> {
        for (base, state) in bases.values() {
            if stored_checkpoint(&**self.store(), base).is_err() {
                write_checkpoint(&**self.store(), state)?;
                mended.push(layout::checkpoint(base.sequence));
            }
        }
        for object in self.store().list(layout::CHECKPOINTS)? {
            let Some(number) = layout::checkpoint_number(&object.path) else { continue };
            let whole = || -> Result<Manifest> {
                let packed = self.store().get(&object.path, MAX_STATE_BYTES)?;
                self.parse_manifest(&object.path, &crate::manifest::unpack_checkpoint(&object.path, &packed)?)
            };
            if !bases.contains_key(&number) && whole().is_err() {
                self.store().delete(&object.path)?;
                mended.push(object.path);
            }
        }
        Ok(())
    }

    fn mend_denials(&self, mended: &mut Vec<String>) -> Result<()> {
        for object in self.store().list("index/deny")? {
            // Those that manifests refer to are whole by now.
            if layout::is_ours(&object.path) && self.stored_deny(&object.path)?.is_none() {
                self.store().delete(&object.path)?;
                mended.push(object.path);
            }
        }
        let newest = crate::deny_record(&**self.store())?.map_or(0, |record| record.sequence);
        for object in self.store().list(layout::DENY)? {
            let Some(number) = layout::number_of(&object.path).filter(|number| *number < newest) else { continue };
            let bytes = self.store().get(&object.path, MAX_STATE_BYTES)?;
            if DenyRecord::parse(&object.path, &bytes).map_or(true, |record| record.sequence != number) {
                // A later one has the whole list.
                self.store().delete(&object.path)?;
                mended.push(object.path);
            }
        }
        Ok(())
    }

    /// A long deny list by its path, if it is there and whole.
    fn stored_deny(&self, path: &str) -> Result<Option<bytes::Bytes>> {
        let bytes = match self.store().get(path, MAX_STATE_BYTES) {
            Err(error) if error.is_not_found() => return Ok(None),
            bytes => bytes?,
        };
        let own = layout::deny_object(&crate::suffix_list_hash(&bytes))?;
        Ok(Some(bytes).filter(|_| own == path))
    }
}

fn renumbered(manifest: &Manifest, sequence: u64) -> Vec<u8> {
    Manifest { sequence, ..manifest.clone() }.to_json()
}
