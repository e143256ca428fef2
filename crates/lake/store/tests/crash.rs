//! The power goes at every step of a commit: afterwards the lake is as before or as after.

use std::sync::Arc;
use trawl_io::fault::{FaultFs, Loss};
use trawl_model::UnixMillis;
use trawl_store::{DatasetInfo, DirStore, Lake};

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

fn store(fs: &FaultFs) -> Arc<DirStore> {
    Arc::new(DirStore::with_fs(fs.shared(), "lake"))
}

#[test]
fn a_cut_at_any_step_of_a_commit() {
    let fs = FaultFs::new();
    Lake::init(store(&fs), NOW, "n", b"com\n")
        .unwrap()
        .register_dataset(NOW, "test", &DatasetInfo::named("a"))
        .unwrap();
    for step in 0.. {
        let disk = fs.reboot(Loss::None);
        let lake = Lake::open(store(&disk)).unwrap();
        disk.cut_after(step);
        let done = lake.commit(NOW, "test", |manifest| manifest.register(NOW, DatasetInfo::named("b")));
        let finished = !disk.is_cut();
        for loss in Loss::variants(6) {
            let after = Lake::open(store(&disk.reboot(loss))).unwrap();
            let names: Vec<_> = after.current().unwrap().datasets.iter().map(|d| d.info.name.clone()).collect();
            assert!(names == ["a"] || names == ["a", "b"], "step {step}, {loss:?}: {names:?}");
            if done.is_ok() {
                assert_eq!(names, ["a", "b"], "step {step}, {loss:?}: reported as done and lost");
            }
            assert_eq!(after.register_dataset(NOW, "test", &DatasetInfo::named("b")).unwrap(), 2);
            assert_eq!(after.register_dataset(NOW, "test", &DatasetInfo::named("c")).unwrap(), 3);
        }
        if finished {
            assert!(done.unwrap().copy_error.is_none());
            break;
        }
    }
}

#[test]
fn a_cut_at_any_step_of_making_a_lake() {
    for step in 0.. {
        let disk = FaultFs::new();
        disk.cut_after(step);
        let done = Lake::init(store(&disk), NOW, "n1", b"com\n");
        let finished = !disk.is_cut();
        for loss in Loss::variants(6) {
            let disk = disk.reboot(loss);
            // Either there is a lake, or one can be made.
            let lake = match Lake::open(store(&disk)) {
                Ok(lake) => lake,
                Err(trawl_store::Error::NotALake { .. }) => {
                    assert!(done.is_err(), "step {step}, {loss:?}: reported as done and lost");
                    Lake::init(store(&disk), NOW, "n2", b"com\n").unwrap()
                }
                Err(error) => panic!("step {step}, {loss:?}: {error}"),
            };
            assert_eq!(lake.suffix_list(&lake.current().unwrap()).unwrap(), "com\n");
        }
        if finished {
            done.unwrap();
            break;
        }
    }
}
