//! What a purge does besides rewriting: counting beforehand, and the rejects.

use crate::Result;
use crate::rewrite::rows_that_stay;
use crate::source::LakeSource;
use serde::Serialize;
use trawl_model::UrlRecord;
use trawl_store::{DataFile, Lake, layout};

/// Largest rejects file that is read: a million lines of some kilobytes.
const MAX_REJECTS_BYTES: u64 = 4 << 30;

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
    each_rejects(lake, dataset_id, keep, &mut |n, path, kept| {
        if !kept.is_empty() {
            store.put(&layout::rejects(dataset_id, &format!("{writer}-{n}"))?, kept)?;
        }
        Ok(store.delete(path)?)
    })
}

/// Hears of a rejects file that loses lines: its number, its path, and the lines that stay.
type Losing<'a> = dyn FnMut(usize, &str, &[u8]) -> Result<()> + 'a;

/// Hands the number, path and kept lines of every rejects file that loses some to `each`; tells how many are lost.
fn each_rejects(lake: &Lake, dataset_id: u32, keep: &dyn Fn(&str) -> bool, each: &mut Losing<'_>) -> Result<u64> {
    let mut gone = 0;
    let dir = format!("{}/_rejects", layout::dataset_dir(dataset_id));
    for (n, listed) in lake.store().list(&dir)?.into_iter().enumerate() {
        let bytes = lake.store().get(&listed.path, MAX_REJECTS_BYTES)?;
        let (mut kept, mut lost) = (Vec::new(), 0);
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if keep(&String::from_utf8_lossy(line)) { kept.extend_from_slice(line) } else { lost += 1 }
        }
        if lost > 0 {
            each(n, &listed.path, &kept)?;
            gone += lost;
        }
    }
    Ok(gone)
}
