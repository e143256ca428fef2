//! Regaining space: a copy without deleted entries.

use super::Kvseq;
use crate::{Access, OnProgress, Progress, Result, aside};
use std::path::Path;

/// Bytes of a large value copied at once.
const PART: usize = 1 << 20;

/// Copies the entries not deleted to a new file like the old one. Returns where that ends.
pub(crate) fn copy_live(old: &Kvseq, to: &Path, progress: OnProgress<'_>) -> Result<u64> {
    let settings = &old.file.settings;
    let sb = old.file.sb.emptied(to, settings);
    aside::publish_new(&sb, sb.sbsize(), settings)?;
    let mut new = Kvseq::open_as(to, Access::Write, settings, false)?;
    let mut scan = old.scan();
    while let Some(item) = scan.next_entry()? {
        progress(Progress { stage: "copying", done: item.ptr, total: old.end() });
        match item.value {
            Some(value) => new.append(item.key, value)?,
            None => copy_large(old, item.ptr, item.key, &mut new)?,
        };
        new.settle()?;
    }
    new.checkpoint()?;
    Ok(new.end())
}

/// Copies an entry whose value is too large for memory.
fn copy_large(old: &Kvseq, ptr: u64, key: &[u8], new: &mut Kvseq) -> Result<u64> {
    let to = new.append(key, b"")?;
    let (mut buf, mut offset) = (vec![0; PART], 0);
    loop {
        let n = old.read_value(ptr, offset, &mut buf)?;
        if n == 0 {
            return Ok(to);
        }
        new.extend_last_value(to, buf.split_at(n).0)?;
        offset += n as u64;
    }
}
