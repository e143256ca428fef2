//! A reader has the lock of a writer for an instant, to see whether one lives. Writers wait that long.

use crate::tape::{Tape, harmed};
use crate::{bundles, captures, files, kvseq, map, path};
use std::sync::Arc;

/// Wherever somebody has one of the locks, the writer does the same.
fn explore_locks(record: fn() -> Arc<Tape>, locks: &[&str]) {
    let alone = record();
    for lock in locks {
        for at in 0..alone.len() {
            let beside = harmed(at, path(lock), record);
            assert!(beside.files == alone.files, "with {lock} held at {at}, {}", alone.name(at));
        }
    }
}

#[test]
fn writers_wait_for_readers_that_look_at_their_locks() {
    explore_locks(kvseq::changes, &["/a.kvseq.lock"]);
    explore_locks(kvseq::compaction, &["/a.kvseq.lock"]);
    explore_locks(map::sessions, &["/m.kvseq.lock", "/m.hindex.lock"]);
    explore_locks(bundles::few_changes, &["/b.kvseq.lock", "/b.one.lock", "/b.two.lock", "/b.perm.lock"]);
    explore_locks(bundles::compaction, &["/b.kvseq.lock", "/b.one.lock", "/b.perm.lock"]);
    explore_locks(files::sessions, &["/f.lock"]);
    explore_locks(files::compacted, &["/f.lock"]);
    explore_locks(captures::compaction, &["/p.lock"]);
    explore_locks(captures::cut, &["/p.lock"]);
}
