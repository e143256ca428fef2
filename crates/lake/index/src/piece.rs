//! A publish in two steps, by two processes: one makes the segment, the other the version.
//!
//! ```text
//! build_piece ── segment, and what it rests on ──► publish_piece ──still so──► a version that has the segment
//!                                                                ──otherwise─► the segment is made again, here
//! ```

use crate::build::{BuildOptions, build_segment, sort_files};
use crate::meta::SegmentMeta;
use crate::publish::{Plan, Published, Scope, publish_scope, tidy};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trawl_model::UnixMillis;
use trawl_store::{Lake, Progress};

/// A segment that no version has yet, and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// The segment; `None` if the dataset has no new files.
    pub segment: Option<SegmentMeta>,
    /// The commit of each dataset that was live when it was made; 0 for none.
    base: BTreeMap<u32, u64>,
    /// The commit of each dataset that a version with it serves.
    commits: BTreeMap<u32, u64>,
    /// The files that it indexes, in order.
    files: Vec<String>,
}

/// Makes a segment of the files of a dataset that the current version does not cover, under `id`. `None` if there is nothing to
/// publish. No manifest names the segment: a heartbeat must, until [`publish_piece`] has.
pub fn build_piece(
    lake: &Lake,
    dataset_id: u32,
    id: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Option<Piece>> {
    let plan = plan(lake, dataset_id)?;
    if plan.is_empty() {
        return Ok(None);
    }
    let segment = match plan.files.is_empty() {
        true => None,
        false => Some(build_segment(lake.store(), id, &plan.files, options, progress)?),
    };
    let files = paths(&plan);
    let Plan { base, commits, .. } = plan;
    Ok(Some(Piece { segment, base, commits, files }))
}

/// Makes a version that has a piece. If others changed meanwhile what it rests on, the segment is made again; if a version
/// serves the dataset's newest commit already, nothing happens. May be repeated, and called by several at once: `writer` is the
/// same each time, and refused if a collector gave it up; `attempt` is new each time, and names the segments made here.
#[expect(clippy::too_many_arguments, reason = "who, what, and the room of the machine")]
pub fn publish_piece(
    lake: &Lake,
    dataset_id: u32,
    piece: &Piece,
    now: &dyn Fn() -> UnixMillis,
    writer: &str,
    attempt: &str,
    options: &BuildOptions,
    progress: &dyn Fn(Progress),
) -> Result<Published> {
    let mut plan = plan(lake, dataset_id)?;
    let (waiting, damaged) = (std::mem::take(&mut plan.waiting), std::mem::take(&mut plan.damaged));
    let mut published = Published { waiting, damaged, ..Published::default() };
    if plan.is_empty() {
        return Ok(published);
    }
    if (&plan.base, &plan.commits, &paths(&plan)) == (&piece.base, &piece.commits, &piece.files) {
        for (dataset_id, sequence) in &plan.commits {
            lake.renew_commit_copy(*dataset_id, *sequence)?;
        }
        let reference = piece.segment.as_ref().map(|meta| meta.to_ref(0)).transpose()?;
        let committed = lake.commit(now(), writer, |manifest| Ok(plan.apply(manifest, now(), reference.clone())))?;
        if let Some(version) = committed.value {
            published.version = Some(version);
            published.segment.clone_from(&piece.segment);
            published.commits = plan.commits;
            tidy(lake, &mut published, now, attempt, options, progress);
            return Ok(published);
        }
    }
    publish_scope(lake, &Scope::Only(dataset_id), now, attempt, options, progress)
}

fn plan(lake: &Lake, dataset_id: u32) -> Result<Plan> {
    let manifest = lake.current()?;
    if manifest.dataset(dataset_id).is_none() {
        return Err(Error::Store(trawl_store::Error::UnknownDataset { found: dataset_id.to_string() }));
    }
    let mut plan = Plan::new(lake, &manifest, &Scope::Only(dataset_id), None)?;
    sort_files(&mut plan.files);
    Ok(plan)
}

fn paths(plan: &Plan) -> Vec<String> {
    plan.files.iter().map(|source| source.file.path.clone()).collect()
}
