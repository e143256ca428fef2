//! The power goes after every operation of the disk.

use crate::world::*;
use trawl_ingest::Mode;
use trawl_io::fault::{FaultFs, Loss};
use trawl_store::layout;
use trawl_store::manifest::DenyTarget;

/// Cuts `act` after each of its operations, with what was not synced lost in several ways.
fn cut_everywhere(base: &FaultFs, act: &dyn Fn(&Disk, &str) -> Outcome) {
    cut_with(base, act, &|_, _, _| false);
}

/// The same for an act of two commits: `between` knows the state between them, given those before and after.
fn cut_with(base: &FaultFs, act: &dyn Fn(&Disk, &str) -> Outcome, between: &dyn Fn(&State, &State, &State) -> bool) {
    let before = state(&disk(base));
    let clean = disk(&base.reboot(Loss::None));
    act(&clean, "clean").unwrap();
    let after = state(&clean);
    let mut seen = [0u32; 2];
    for step in 0.. {
        let cut = base.reboot(Loss::None);
        cut.cut_after(step);
        let done = act(&disk(&cut), "first");
        let finished = !cut.is_cut();
        let torn = Loss::Torn { seed: step, unit: if step % 2 == 0 { 512 } else { 1 } };
        for loss in [Loss::All, Loss::None, torn] {
            let what = format!("step {step}, {loss:?}");
            let store = disk(&cut.reboot(loss));
            let found = state(&store);
            let known = found == before || found == after || between(&found, &before, &after);
            assert!(known, "{what}: neither the old state nor the new one: {found:#?}");
            if done.is_ok() {
                assert_eq!(found, after, "{what}: reported as done and lost");
            }
            seen[usize::from(found == after)] += 1;
            // A collector may come first, or whoever was cut tries again at once.
            if step % 2 == 0 {
                collect(&store, "gc1", LATER).unwrap();
                assert_eq!(state(&store), found, "{what}: collected");
            }
            act(&store, "again").unwrap_or_else(|e| panic!("{what}: again: {e}"));
            assert_eq!(state(&store), after, "{what}: again");
            collect(&store, "gc2", MUCH_LATER).unwrap();
            assert_eq!(state(&store), after, "{what}: again, collected");
            assert_tidy(&store, &what);
        }
        if finished {
            done.unwrap();
            break;
        }
    }
    assert!(seen[1] > 0 && (before == after || seen[0] > 10), "both states were seen: {seen:?}");
}

#[test]
fn ingest_appends() {
    let urls = ["http://new.com/1", "http://one.com/1", "http://one.com/7"];
    cut_everywhere(&base(), &|store, writer| ingest(store, writer, 1, Mode::Append, "day 2", &urls));
}

#[test]
fn ingest_replaces() {
    let urls = ["http://all.org/z"];
    cut_everywhere(&base(), &|store, writer| ingest(store, writer, 2, Mode::Replace, "other", &urls));
}

/// An ingest that nobody has published yet.
fn unpublished(mode: Mode) -> FaultFs {
    let fs = base();
    ingest(&disk(&fs), "w6", 1, mode, "day 2", &["http://new.com/1", "http://one.com/1", "http://all.org/a"]).unwrap();
    fs.reboot(Loss::None)
}

#[test]
fn publish_of_more() {
    cut_everywhere(&unpublished(Mode::Append), &publish);
}

#[test]
fn publish_of_something_else() {
    cut_everywhere(&unpublished(Mode::Replace), &publish);
}

#[test]
fn publish_of_less() {
    let fs = base();
    drop_dataset(&disk(&fs), "w6", 1).unwrap();
    cut_everywhere(&fs.reboot(Loss::None), &publish);
}

#[test]
fn compaction_of_segments() {
    cut_everywhere(&base(), &compact);
}

#[test]
fn rebuild_of_the_index() {
    cut_everywhere(&base(), &rebuild);
}

#[test]
fn compaction_of_files() {
    cut_everywhere(&base(), &|store, writer| compact_files(store, writer, 1));
}

#[test]
fn purge_of_rows() {
    cut_everywhere(&base(), &|store, writer| purge(store, writer, 2, "bad"));
}

#[test]
fn publish_of_a_purge() {
    let fs = base();
    purge(&disk(&fs), "w6", 2, "bad").unwrap();
    cut_everywhere(&fs.reboot(Loss::None), &publish);
}

#[test]
fn drop_of_a_dataset() {
    // Its own commit is first: then nothing can be brought into it, while readers have what they had.
    let drop = |store: &Disk, writer: &str| drop_dataset(store, writer, 1);
    let seen = std::cell::Cell::new(false);
    cut_with(&base(), &drop, &|found, before, after| {
        let between = found.answers == before.answers && found.rows == after.rows;
        seen.set(seen.get() || between);
        between
    });
    assert!(seen.get(), "a cut between the two commits");
}

#[test]
fn collection() {
    // Old versions, a replaced dataset, a dead writer and its files: all there is to collect.
    let fs = base();
    let dying = fs.reboot(Loss::None);
    dying.cut_after(60);
    assert!(compact(&disk(&dying), "dies").is_err());
    let left = dying.reboot(Loss::None);
    assert!(!lake(&disk(&left)).unwrap().heartbeats().unwrap().is_empty());
    cut_everywhere(&left, &|store, writer| collect(store, writer, LATER));
}

#[test]
fn a_denial() {
    cut_everywhere(&base(), &|store, _| deny(store, "w8", "http://all.org/bad", true));
}

#[test]
fn the_end_of_a_denial() {
    let fs = base();
    deny(&disk(&fs), "w7", "http://all.org/bad", true).unwrap();
    cut_everywhere(&fs.reboot(Loss::None), &|store, _| deny(store, "w8", "http://all.org/bad", false));
}

/// Whatever was acknowledged of the deny list is known without `index/`, and nothing else but what was about to be.
#[test]
fn a_lost_index_loses_no_denial() {
    let (first, second, third) = ("http://all.org/bad", "http://one.com/1", "http://six.com/1");
    let list = |urls: &[&str]| urls.iter().map(|url| DenyTarget::Url((*url).into())).collect::<Vec<_>>();
    let fs = base();
    assert_eq!(lose_index(&disk(&fs.reboot(Loss::None)), "n0"), list(&[]));
    deny(&disk(&fs), "w7", first, true).unwrap();
    let fs = fs.reboot(Loss::None);
    for (adds, after) in [(true, list(&[first, second])), (false, list(&[]))] {
        let act = |store: &Disk| if adds { deny(store, "w8", second, true) } else { deny(store, "w8", first, false) };
        for step in 0.. {
            let cut = fs.reboot(Loss::None);
            cut.cut_after(step);
            let done = act(&disk(&cut)).is_ok();
            let finished = !cut.is_cut();
            for loss in [Loss::All, Loss::None, Loss::Torn { seed: step, unit: 1 }] {
                let what = format!("step {step}, {loss:?}, adds: {adds}");
                let again = || disk(&cut.reboot(loss));
                let found = lose_index(&again(), "n1");
                assert!(found == after || (!done && found == list(&[first])), "{what}: {found:?}");
                // Anybody's commit records what another did not get to; a collector keeps it.
                let store = again();
                let served = denied(&store);
                assert!(served == after || (!done && served == list(&[first])), "{what}: {served:?}");
                collect(&store, "gc", LATER).unwrap();
                assert_eq!(lose_index(&store, "n2"), served, "{what}");
                // Repeated, and then more: records go on where they were, also in the lake that was made anew.
                act(&store).unwrap();
                assert_eq!(lose_index(&store, "n3"), after, "{what}");
                deny(&store, "w9", third, true).unwrap();
                assert_eq!(lose_index(&store, "n4"), [after.clone(), list(&[third])].concat(), "{what}");
            }
            if finished {
                assert!(done);
                break;
            }
        }
    }
}

/// A copy of the manifest that is older than the last denial does not undo it.
#[test]
fn an_old_copy_of_the_manifest_undoes_no_denial() {
    let fs = base();
    let store = disk(&fs);
    let copy = store.get(layout::MANIFEST_COPY, 1 << 20).unwrap();
    deny(&store, "w9", "http://all.org/bad", true).unwrap();
    for object in store.list(layout::MANIFESTS).unwrap() {
        store.delete(&object.path).unwrap();
    }
    store.put(layout::MANIFEST_COPY, &copy).unwrap();
    let remains = trawl_maintain::remains(&*store).unwrap();
    trawl_maintain::restore(store.clone(), NOW, "n1", b"com\norg\n", &remains).unwrap();
    assert_eq!(denied(&store), [DenyTarget::Url("http://all.org/bad".into())]);
    deny(&store, "w9", "http://all.org/bad", false).unwrap();
    assert_eq!(lose_index(&store, "n2"), []);
}
