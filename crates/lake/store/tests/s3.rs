//! The promises of a store on a real server: `TRAWL_TEST_S3=s3://bucket/prefix`, with the AWS variables of its endpoint. Without
//! it nothing runs here; `.ci/interop` starts a server and sets it.

use std::sync::Arc;
use std::time::Duration;
use trawl_store::{Error, RemoteSettings, RemoteStore, Retries, Store, conformance, probe};

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
        conformance::publishers(&store, 2, 8);
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
