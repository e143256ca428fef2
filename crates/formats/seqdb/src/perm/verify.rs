//! Checking a perm file against its container.

use super::Perm;
use crate::aside::dir_of;
use crate::findings::Findings;
use crate::hindex::side_by_side;
use crate::sorting::{Sort, pair};
use crate::{Keys, Kind, Kvseq, Result, Settings, kvseq};
use std::path::Path;

/// What the verification of a perm file found besides faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PermFindings {
    /// Pairs.
    pub pairs: u64,
    /// Whether they are in order.
    pub grouped: bool,
}

/// Checks the perm file at `path` against `container`; faults go to `findings`.
pub fn verify(path: &Path, container: &Kvseq, settings: &Settings, findings: &mut Findings) -> Result<PermFindings> {
    let (_, kv) = kvseq::verify_kind(path, Kind::Perm, settings, findings)?;
    let Some(kv) = kv else { return Ok(PermFindings::default()) };
    let perm = match Perm::over(kv) {
        Ok(perm) => perm,
        Err(e) => return findings.take(e).map(|()| PermFindings::default()),
    };
    let mut sort = Sort::new(settings, dir_of(path), 1);
    let mut grouped = true;
    let mut last: Option<super::Pair> = None;
    perm.for_each(0, &mut |index, element| {
        sort.push(&element.ptr.to_be_bytes(), &pair(index, element.hash))?;
        if let Some(last) = last.replace(element).filter(|_| grouped) {
            grouped = in_order(container, last, element);
        }
        Ok(true)
    })?;
    let offset = |index| perm.kv.first() + super::PAIR * index;
    side_by_side(container, sort.finish()?, path, &offset, findings, &mut |entry, pointer, findings| {
        if let Some(pointer) = pointer.filter(|pointer| pointer.hash != perm.hash(entry.key)) {
            let (expected, found) = (perm.hash(entry.key), format!("{:016x}", pointer.hash));
            findings.fault(path, offset(pointer.from) + 8, format!("hash {expected:016x}"), found);
        }
        Ok(())
    })?;
    Ok(PermFindings { pairs: perm.len(), grouped })
}

/// Whether two neighbours are in the order of a grouped file. Pointers that lead nowhere are in no order.
fn in_order(container: &Kvseq, a: super::Pair, b: super::Pair) -> bool {
    if a.hash != b.hash {
        return a.hash < b.hash;
    }
    match (container.key_at(a.ptr), container.key_at(b.ptr)) {
        (Ok(first), Ok(second)) => (first, a.ptr) <= (second, b.ptr),
        _ => false,
    }
}
