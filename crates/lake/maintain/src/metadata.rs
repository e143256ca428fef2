//! How much a lake takes besides rows and index: what its states cost.

use crate::Result;
use trawl_store::{Store, layout};

/// Objects that are neither rows nor index segments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Metadata {
    /// Manifests, checkpoints, dataset commits, heartbeats and records of the deny list.
    pub metadata_objects: u64,
    /// Their bytes.
    pub metadata_bytes: u64,
    /// What ingests could not take.
    pub reject_bytes: u64,
}

/// Lists and sums up.
pub fn metadata(store: &dyn Store) -> Result<Metadata> {
    let mut sum = Metadata::default();
    let dirs = [layout::MANIFESTS, layout::CHECKPOINTS, layout::HEARTBEATS, "index/deny", layout::DATASETS];
    let copy = store.len(layout::MANIFEST_COPY).ok().map(|len| (layout::MANIFEST_COPY.to_owned(), len));
    let mut objects: Vec<_> = copy.into_iter().collect();
    for dir in dirs {
        objects.extend(store.list(dir)?.into_iter().map(|object| (object.path, object.len)));
    }
    for (path, len) in objects {
        if path.contains("/rejects/") {
            sum.reject_bytes += len;
        } else {
            sum.metadata_objects += 1;
            sum.metadata_bytes += len;
        }
    }
    Ok(sum)
}
