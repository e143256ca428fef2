//! What the integration tests share.
#![allow(dead_code)]

use std::path::Path;
use trawl_io::fault::FaultFs;
use trawl_io::{Fs, Mode};
use trawl_model::UnixMillis;
use trawl_seqdb::{Clock, Settings};

/// The moment all vectors were synced at.
pub const SYNCTIME: i64 = 1_200_913_506;

/// The vectors.
pub const FILES: [(&str, &[u8]); 7] = [
    ("v1.kvseq", include_bytes!("../data/v1.kvseq")),
    ("v2.hindex", include_bytes!("../data/v2.hindex")),
    ("v3.hindex", include_bytes!("../data/v3.hindex")),
    ("v4.perm", include_bytes!("../data/v4.perm")),
    ("v5.data", include_bytes!("../data/v5.data")),
    ("v6.idx", include_bytes!("../data/v6.idx")),
    ("v7.time", include_bytes!("../data/v7.time")),
];

/// The bytes of a vector.
pub fn vector(name: &str) -> Vec<u8> {
    FILES.iter().find(|(n, _)| *n == name).unwrap().1.to_vec()
}

/// Settings on a faulty disk, at the vectors' moment.
pub fn settings(fs: &FaultFs) -> Settings {
    Settings::new(Clock::fixed(UnixMillis(SYNCTIME * 1000)), "test").on(fs.shared())
}

/// A disk that holds vectors under the paths given.
pub fn disk_with(files: &[(&str, &str)]) -> FaultFs {
    let fs = FaultFs::new();
    for (path, name) in files {
        put(&fs, path, &vector(name));
    }
    fs
}

/// Writes a file.
pub fn put(fs: &FaultFs, path: &str, bytes: &[u8]) {
    let file = fs.open(Path::new(path), Mode::Truncate).unwrap();
    file.write_at(0, bytes).unwrap();
}

/// Cases of a property test: as many as PROPTEST_CASES says, for long runs.
pub fn cases(usual: u32) -> proptest::test_runner::Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    proptest::test_runner::Config::with_cases(cases)
}
