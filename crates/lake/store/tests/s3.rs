//! The promises of a store on a real server: `TRAWL_TEST_S3=s3://bucket/prefix`, with the AWS variables of its endpoint. Without
//! it nothing runs here; `.ci/interop` starts a server and sets it.

use std::sync::Arc;
use std::time::Duration;
use trawl_io::Fs;
use trawl_store::{Error, RemoteFs, RemoteSettings, RemoteStore, Retries, Store, conformance, probe};

fn server() -> Option<String> {
    std::env::var("TRAWL_TEST_S3").ok()
}

fn store(part: &str) -> Option<Arc<dyn Store>> {
    let place = format!("{}/{part}", server()?);
    let env: Vec<_> = std::env::vars().collect();
    Some(Arc::new(RemoteStore::open(&place, &env, RemoteSettings::default()).unwrap()))
}

#[test]
fn basics() {
    if let Some(store) = store("basics") {
        conformance::basics(&*store);
    }
}

#[test]
fn volume() {
    if let Some(store) = store("volume") {
        conformance::volume(&*store, 1100);
    }
}

#[test]
fn races() {
    if let Some(store) = store("races") {
        conformance::races(&store, 10, 24);
        conformance::publishers(&store, &store, 2, 8);
    }
}

#[test]
fn a_store_that_overwrites_is_refused() {
    // Servers that ignore the condition are told from others by a probe; see `Liar` in store.rs for one that does.
    if let Some(store) = store("probe") {
        probe(&*store, "n1").unwrap();
    }
}

#[test]
fn wrong_credentials_are_told() {
    let Some(place) = server() else { return };
    if std::env::var("TRAWL_TEST_S3_OPEN").is_ok() {
        return; // a server that checks no credentials
    }
    let mut env: Vec<_> = std::env::vars().collect();
    env.push(("AWS_SECRET_ACCESS_KEY".into(), "wrong".into()));
    let retries = Retries { attempts: 2, first_pause: Duration::from_millis(1), ..Retries::default() };
    let store = RemoteStore::open(&place, &env, RemoteSettings { retries, ..RemoteSettings::default() }).unwrap();
    let error = store.get("index/manifest.json", 10).unwrap_err();
    assert!(matches!(&error, Error::Remote { attempts: 1, .. }), "{error}");
    assert!(error.to_string().contains("credentials"), "{error}");
}

/// Containers that are directories, and files beside each other, are found in a bucket as on a disk.
#[test]
fn what_has_objects_below_it_is_a_directory() {
    let (Some(place), Some(store)) = (server(), store("dirs")) else { return };
    for path in ["seg/content/part-r-00000/data", "a.wacz"] {
        store.put(path, b"x").unwrap();
    }
    let local: Arc<dyn Fs> = Arc::new(trawl_io::RealFs);
    let fs = RemoteFs::new(local, std::env::vars().collect(), RemoteSettings::default());
    let is_dir = |path: &str| fs.metadata(format!("{place}/dirs/{path}").as_ref()).map(|found| found.is_dir).ok();
    assert_eq!(
        ["", "seg", "seg/content/", "a.wacz", "se", "seg/none"].map(is_dir),
        [Some(true), Some(true), Some(true), Some(false), None, None]
    );
}
