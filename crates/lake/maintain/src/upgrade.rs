//! Lakes of earlier programs: their commits, rejects and denials lay among the Parquet files.
//!
//! ```text
//! urls/dataset_id=7/_commits/0000000001.json  ─►  datasets/7/commits/0000000001.json
//! urls/dataset_id=7/_rejects/<writer>.jsonl   ─►  datasets/7/rejects/<writer>.jsonl
//! urls/_deny/0000000001.json                  ─►  datasets/deny/0000000001.json
//! ```
//! Copied first; then one manifest says that the lake is of this program, and the old ones go. Interrupted, it is repeated. Then
//! the copies of commits and of the suffix list are made, which earlier programs had not.

use crate::Result;
use std::sync::Arc;
use trawl_model::UnixMillis;
use trawl_store::manifest::MANIFEST_FORMAT;
use trawl_store::{Lake, MAX_STATE_BYTES, Store, commit_copy, layout, newest_commit};

/// What an upgrade did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Upgraded {
    /// Whether the lake was one of an earlier program.
    pub was_old: bool,
    /// Files moved.
    pub moved: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where a file of an earlier program belongs.
fn new_path(path: &str) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let new = match parts.as_slice() {
        ["urls", "_deny", name] => format!("{}/{name}", layout::DENY),
        ["urls", dataset, "_commits", name] => {
            format!("datasets/{}/commits/{name}", dataset.strip_prefix("dataset_id=")?)
        }
        ["urls", dataset, "_rejects", name] => {
            format!("datasets/{}/rejects/{name}", dataset.strip_prefix("dataset_id=")?)
        }
        _ => return None,
    };
    layout::is_ours(&new).then_some(new)
}

/// Makes a lake of an earlier program one of this. No other process may write to it meanwhile. `writer` must be new.
pub fn upgrade(store: &Arc<dyn Store>, now: UnixMillis, writer: &str) -> Result<Upgraded> {
    let lake = Lake::open_old(store.clone())?;
    let mut done = Upgraded { was_old: lake.current()?.format < MANIFEST_FORMAT, ..Upgraded::default() };
    let old: Vec<_> = store.list(layout::URLS)?.into_iter().filter_map(|o| Some((new_path(&o.path)?, o))).collect();
    for (new, object) in &old {
        let bytes = store.get(&object.path, MAX_STATE_BYTES)?;
        store.put(new, &bytes)?;
        done.moved += 1;
        done.bytes += object.len;
    }
    lake.commit(now, writer, |manifest| {
        manifest.format = MANIFEST_FORMAT;
        Ok(())
    })?;
    for (_, object) in &old {
        store.delete(&object.path)?;
    }
    // Earlier programs wrote some records only once.
    let manifest = lake.current()?;
    for dataset in &manifest.datasets {
        let Some(newest) = newest_commit(&**store, dataset.id)? else { continue };
        if commit_copy(&**store, dataset.id)?.is_none_or(|copy| copy.number < newest.number) {
            store.put(&layout::commit_copy(dataset.id), &newest.bytes)?;
        }
    }
    if manifest.suffix_list.is_some() {
        lake.put_suffix_list(&lake.suffix_list(&manifest)?)?;
    }
    Ok(done)
}
