//! Lakes on a server that misbehaves: thousands of operations of three writers and a reader, by fixed seeds.
//!
//! The server here is in memory and the trouble is made in front of it: requests that fail before or after they were done,
//! answers that are cut, late or of a moment ago. `.ci/interop` does the same to a real server through a proxy.

#[path = "doubles/faulty.rs"]
mod faulty;

use faulty::Faulty;
use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use trawl_model::UnixMillis;
use trawl_store::{
    DatasetInfo, Error, Lake, RemoteSettings, RemoteStore, Retries, Series, Sizes, Store, conformance, layout,
};

const NOW: UnixMillis = UnixMillis(1_782_262_923_456);

fn remote(faulty: &Arc<Faulty>, attempts: u32) -> Arc<dyn Store> {
    let retries = Retries {
        attempts,
        first_pause: Duration::from_micros(10),
        longest_pause: Duration::from_micros(100),
        budget: 1_000_000,
        ..Retries::default()
    };
    let settings = RemoteSettings { retries, ..RemoteSettings::default() };
    let root = object_store::path::Path::from("lake");
    Arc::new(RemoteStore::new(faulty.clone(), Some(faulty.clone()), root, "faulty".into(), settings))
}

/// Retried until it is settled, as whoever runs a command again.
fn settle<T>(mut act: impl FnMut() -> Result<T, Error>) -> T {
    for _ in 0..1000 {
        match act() {
            Ok(done) => return done,
            Err(Error::Unsettled { .. } | Error::Remote { .. } | Error::Contended { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("not within 1000 attempts")
}

#[test]
fn no_commit_is_lost_or_made_twice() {
    let mut operations = 0;
    for seed in 0..6 {
        // A third of all requests is in trouble; with two attempts each many errors reach the writers.
        let faulty = Arc::new(Faulty::new(seed, 30));
        let calm = remote(&Arc::new(faulty.calm()), 1);
        Lake::init(calm.clone(), NOW, "probe", b"com\n").unwrap();
        let sizes = Sizes { whole: 1000, relative: 1500 };
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let store = remote(&faulty, 2);
                scope.spawn(move || {
                    let lake = settle(|| Lake::open(store.clone())).with_sizes(sizes);
                    for n in 0..20 {
                        let name = format!("d-{writer}-{n}");
                        // The same name finds the dataset that an unsettled attempt made.
                        let mut attempt = 0;
                        let id = settle(|| {
                            attempt += 1;
                            lake.register_dataset(NOW, &format!("w-{name}-{attempt}"), &DatasetInfo::named(&name))
                        });
                        let mut attempt = 0;
                        settle(|| {
                            attempt += 1;
                            lake.commit_dataset(id, NOW, &format!("c-{name}-{attempt}"), |commit| {
                                Ok(commit.sequence == 0)
                            })
                        });
                    }
                });
            }
            let store = remote(&faulty, 8);
            scope.spawn(move || {
                let lake = settle(|| Lake::open(store.clone()));
                let mut last = 0;
                for _ in 0..50 {
                    let seen = settle(|| lake.current()).sequence;
                    assert!(seen >= last, "a reader never goes back");
                    last = seen;
                }
            });
        });
        operations += faulty.count();
        let manifest = Lake::open(calm.clone()).unwrap().current().unwrap();
        let names: BTreeSet<_> = manifest.datasets.iter().map(|dataset| dataset.info.name.clone()).collect();
        assert_eq!((names.len(), manifest.datasets.len()), (60, 60), "each once, seed {seed}");
        assert_eq!(Series::new(&*calm, layout::MANIFESTS).listed().unwrap().len() as u64, manifest.sequence, "no gaps");
        for dataset in &manifest.datasets {
            let commits = Series::of_dataset(&*calm, dataset.id).listed().unwrap();
            assert_eq!(commits.len(), 1, "dataset {} was committed to once", dataset.id);
        }
    }
    assert!(operations > 5000, "{operations}");
}

#[test]
fn what_is_read_is_right_or_an_error() {
    for seed in 0..4 {
        let faulty = Arc::new(Faulty::new(seed, 40));
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n * 7) as u8).collect();
        remote(&Arc::new(faulty.calm()), 1).put("a/b", &bytes).unwrap();
        let store = remote(&faulty, 3);
        let (mut right, mut errors) = (0, 0);
        for n in 0..400u64 {
            let start = n * 371 % 190_000;
            match store.get_ranges("a/b", &[start..start + 900, 0..10]) {
                Ok(found) => {
                    assert_eq!(found, [bytes[start as usize..start as usize + 900].to_vec(), bytes[..10].to_vec()]);
                    right += 1;
                }
                Err(Error::Remote { attempts, .. }) => {
                    assert_eq!(attempts, 3, "retries are bounded");
                    errors += 1;
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(right > 200 && errors > 0, "{right} right, {errors} errors");
    }
}

#[test]
fn uploads_are_whole_or_not_there() {
    for seed in 0..3 {
        let faulty = Arc::new(Faulty::new(seed, 25));
        let (store, calm) = (remote(&faulty, 4), remote(&Arc::new(faulty.calm()), 1));
        let bytes: Vec<u8> = (0..11_000_000u32).map(|n| (n >> 3) as u8).collect();
        for n in 0..4 {
            let path = format!("u/{n}");
            let done = store.upload(&path).and_then(|mut upload| {
                let written = bytes.chunks(1 << 20).try_for_each(|piece| upload.write_all(piece));
                written.map_err(|e| Error::Refused { reason: e.to_string() })?;
                upload.finish()
            });
            match (done, calm.get(&path, 1 << 30)) {
                (_, Ok(found)) => assert_eq!(found, bytes),
                (Ok(()), Err(error)) => panic!("{path} was finished: {error}"),
                (Err(_), Err(error)) => assert!(error.is_not_found()),
            }
        }
    }
}

#[test]
fn with_enough_attempts_a_bad_server_is_a_good_store() {
    let faulty = Arc::new(Faulty::new(9, 15));
    let store = remote(&faulty, 30);
    conformance::publishers(&store, &remote(&Arc::new(faulty.calm()), 1), 3, 4);
}
