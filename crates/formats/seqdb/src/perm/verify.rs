//! Checking a perm file against its container.

use super::Perm;
use crate::findings::Findings;
use crate::open::dir_of;
use crate::sorting::{InOrder, Sort, number, pair};
use crate::superblock::Name;
use crate::{Access, Keys, Kvseq, Result, Settings};
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
    let perm = match Perm::open_anyway(path, Access::Read, settings) {
        Ok(perm) => perm,
        Err(e) => return findings.take(e).map(|()| PermFindings::default()),
    };
    if perm.sb.length(Name::SYNCSIZE)?.is_some_and(|synced| synced != perm.end()) {
        findings.fault(path, 0, "SYNCSIZE equal to FILESIZE, as after a proper close", "another value");
    }
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
    compare(&perm, container, sort.finish()?, findings)?;
    Ok(PermFindings { pairs: perm.len, grouped })
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

/// Goes through container and pointers side by side.
fn compare(perm: &Perm, container: &Kvseq, mut pairs: InOrder, findings: &mut Findings) -> Result<()> {
    let mut read = || -> Result<Option<(u64, u64, u64)>> {
        Ok(pairs.next_record()?.map(|(k, v)| (number(k, 0), number(v, 0), number(v, 1))))
    };
    let at = |index: u64| perm.sb.sbsize() + super::PAIR * index;
    let mut next = read()?;
    let mut scan = container.scan().with_deleted().keys_only();
    loop {
        let item = match scan.next_entry() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(e) => {
                findings.take(e)?;
                break;
            }
        };
        while let Some((ptr, index, hash)) = next.filter(|n| n.0 <= item.ptr) {
            next = read()?;
            if ptr < item.ptr {
                findings.fault(perm.path(), at(index), "a pointer to the start of an entry", ptr.to_string());
            } else if hash != perm.hash(item.key) {
                let expected = format!("hash {:016x}", perm.hash(item.key));
                findings.fault(perm.path(), at(index) + 8, expected, format!("{hash:016x}"));
            }
        }
    }
    while let Some((ptr, index, _)) = next {
        next = read()?;
        findings.fault(perm.path(), at(index), "a pointer to an entry", ptr.to_string());
    }
    Ok(())
}
