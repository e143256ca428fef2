//! What a purge does besides rewriting: counting beforehand, and the rejects.

use crate::Result;
use crate::rewrite::rows_that_stay;
use crate::source::LakeSource;
use serde::Serialize;
use std::io::Write;
use trawl_model::UrlRecord;
use trawl_store::{DataFile, Lake, Listed, Store, layout};

/// Bytes of a rejects file that are read at a time.
const STEP_BYTES: u64 = 4 << 20;
/// Bytes of a line at most: a text of some kilobytes, all of it escaped, with its reason and the name of its source.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// What a purge of a dataset would take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Files that hold rows which do not stay.
    pub files: u64,
    /// Those rows.
    pub rows: u64,
}

/// Counts the rows of a dataset's newest commit that do not stay. Only files of which `may` says yes are read.
pub fn losses(
    lake: &Lake,
    dataset_id: u32,
    keep: &(dyn Fn(&UrlRecord) -> bool + Sync),
    may: &dyn Fn(&DataFile) -> bool,
) -> Result<Losses> {
    let mut losses = Losses::default();
    let Some(commit) = lake.dataset_newest(dataset_id)? else { return Ok(losses) };
    for file in commit.files.iter().filter(|file| may(file)) {
        let stay = rows_that_stay(&LakeSource::open(&**lake.store(), file, keep)?)?;
        losses.files += u64::from(stay < file.rows);
        losses.rows += file.rows.saturating_sub(stay);
    }
    Ok(losses)
}

/// Counts the lines of a dataset's rejects files that `keep` does not want.
pub fn lost_rejects(lake: &Lake, dataset_id: u32, keep: &dyn Fn(&str) -> bool) -> Result<u64> {
    each_rejects(lake, dataset_id, keep, &mut |_, _, _| Ok(()))
}

/// Takes lines of a dataset's rejects files away: those that `keep` does not want. A file that loses lines is written
/// anew under the name of `writer`, then the old one is deleted. Tells how many lines went.
pub fn purge_rejects(lake: &Lake, dataset_id: u32, writer: &str, keep: &dyn Fn(&str) -> bool) -> Result<u64> {
    let store = lake.store();
    each_rejects(lake, dataset_id, keep, &mut |n, listed, stay| {
        if stay > 0 {
            let path = layout::rejects(dataset_id, &format!("{writer}-{n}"))?;
            let mut file = store.upload(&path)?;
            each_line(&**store, listed, &mut |line| {
                let kept = if keep(&String::from_utf8_lossy(line)) { line } else { &[] };
                file.write_all(kept).map_err(|e| trawl_io::Error::io(trawl_io::Op::Write, &path, e).into())
            })?;
            // Nothing is lost with the new one while the old one is there; left behind, its lines would be there twice.
            file.finish().inspect_err(|_| drop(store.delete(&path)))?;
        }
        Ok(store.delete(&listed.path)?)
    })
}

/// Hears of a rejects file that loses lines: its number, itself, and how many lines stay.
type Losing<'a> = dyn FnMut(usize, &Listed, u64) -> Result<()> + 'a;

/// Hands every rejects file that loses lines to `each`; tells how many are lost.
fn each_rejects(lake: &Lake, dataset_id: u32, keep: &dyn Fn(&str) -> bool, each: &mut Losing<'_>) -> Result<u64> {
    let mut gone = 0;
    let dir = format!("{}/_rejects", layout::dataset_dir(dataset_id));
    for (n, listed) in lake.store().list(&dir)?.into_iter().enumerate() {
        let (mut stay, mut lost) = (0, 0);
        each_line(&**lake.store(), &listed, &mut |line| {
            if keep(&String::from_utf8_lossy(line)) {
                stay += 1
            } else {
                lost += 1
            }
            Ok(())
        })?;
        if lost > 0 {
            each(n, &listed, stay)?;
            gone += lost;
        }
    }
    Ok(gone)
}

/// Hands over the lines of a file with their line ends, a part of the file at a time.
fn each_line(store: &dyn Store, file: &Listed, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let (mut at, mut rest) = (0, Vec::new());
    while at < file.len {
        let end = file.len.min(at + STEP_BYTES);
        for bytes in store.get_ranges(&file.path, std::slice::from_ref(&(at..end)))? {
            rest.extend_from_slice(&bytes);
        }
        at = end;
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |last| last + 1);
        for line in rest.get(..whole).unwrap_or_default().split_inclusive(|byte| *byte == b'\n') {
            each(line)?;
        }
        rest.drain(..whole);
        if rest.len() as u64 > MAX_LINE_BYTES {
            let reason = format!("{}: a line above {MAX_LINE_BYTES} bytes is none of a rejects file", file.path);
            return Err(trawl_store::Error::Refused { reason }.into());
        }
    }
    if rest.is_empty() { Ok(()) } else { each(&rest) }
}
