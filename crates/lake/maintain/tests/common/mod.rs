//! What tests of lakes share: days, a lake in memory, a file as commits name it.
#![allow(dead_code, reason = "not every test file needs all of it")]

use std::sync::Arc;
use trawl_io::fault::FaultFs;
use trawl_model::UnixMillis;
use trawl_store::{DataFile, DatasetInfo, DirStore, Lake, layout};

pub const DAY: i64 = 86_400_000;

pub fn day(n: i64) -> UnixMillis {
    UnixMillis(1_782_262_923_456 + n * DAY)
}

/// A lake with the dataset 1, which is empty.
pub fn new_lake() -> (Arc<DirStore>, Lake) {
    let store = Arc::new(DirStore::with_fs(FaultFs::new().shared(), "lake"));
    let lake = Lake::init(store.clone(), day(0), "n", b"com\n").unwrap();
    lake.register_dataset(day(0), "test", &DatasetInfo::named("d")).unwrap();
    (store, lake)
}

/// The file of a writer in dataset 1.
pub fn part(writer: &str) -> String {
    layout::part(1, "all", writer, 0).unwrap()
}

/// A file of one row.
pub fn data_file(path: String, bytes: u64, key: &str) -> DataFile {
    DataFile {
        path,
        prefix: "all".into(),
        added: 0,
        rows: 1,
        row_groups: 1,
        bytes,
        hash: String::new(),
        schema: 1,
        min_domain: "a.com".into(),
        max_domain: "a.com".into(),
        min_key: key.into(),
        max_key: key.into(),
        distinct_urls: 1,
    }
}
