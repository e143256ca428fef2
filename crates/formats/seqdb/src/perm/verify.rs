//! Checking a perm file against its container.

use super::Perm;
use crate::findings::Findings;
use crate::open::dir_of;
use crate::superblock::Name;
use crate::{Access, Keys, Kvseq, Result, Settings};
use std::path::Path;
use trawl_sort::{Sorted, Sorter};

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
    let mut sorter = Sorter::builder(dir_of(path))
        .memory_bytes(settings.sort_memory_bytes)
        .threads(1)
        .fs(settings.fs.clone())
        .holder(settings.holder.clone())
        .build()?;
    let mut grouped = true;
    let mut last: Option<super::Pair> = None;
    perm.for_each(0, &mut |index, pair| {
        let value: Vec<u8> = index.to_be_bytes().into_iter().chain(pair.hash.to_be_bytes()).collect();
        sorter.push(&pair.ptr.to_be_bytes(), &value)?;
        if let Some(last) = last.replace(pair).filter(|_| grouped) {
            grouped = in_order(container, last, pair);
        }
        Ok(true)
    })?;
    compare(&perm, container, sorter.finish()?, findings)?;
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
fn compare(perm: &Perm, container: &Kvseq, mut pairs: Sorted, findings: &mut Findings) -> Result<()> {
    let number = |bytes: &[u8], i: usize| {
        bytes.get(8 * i..).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_be_bytes(*b))
    };
    let mut read = || -> Result<Option<(u64, u64, u64)>> {
        Ok(pairs.next_record()?.map(|r| (number(r.key, 0), number(r.value, 0), number(r.value, 1))))
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
