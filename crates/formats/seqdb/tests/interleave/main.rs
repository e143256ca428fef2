//! Readers beside a writer in every order of their file operations.
//!
//! A writer's script is recorded once ([`tape`]); then a reader runs on the disk as it was after each of the writer's
//! operations, and between any two of its own operations the writer goes on by any number of them ([`explore`]). Each
//! answer must have been true at a moment between the reader's begin and end. With two switches all schedules are run
//! where there are few, and a sample where there are many; with more switches a sample.

mod beside;
mod bundles;
mod captures;
mod explore;
mod files;
mod kvseq;
mod locks;
mod look;
mod map;
mod tape;

use std::path::Path;
use tape::Model;
use trawl_io::fault::FaultFs;
use trawl_model::UnixMillis;
use trawl_seqdb::{Clock, Error, Settings};

/// Settings to make a disk with.
fn plain(disk: &FaultFs) -> Settings {
    tape::settings(disk.shared(), Clock::fixed(UnixMillis(0)))
}

/// A value that can be told from all others, and a part of it from the whole.
fn value(key: &str, version: usize, len: usize) -> Vec<u8> {
    let mut bytes = format!("{key}.{version}:").into_bytes();
    while bytes.len() < len {
        bytes.push(b'a' + (bytes.len() % 26) as u8);
    }
    bytes
}

fn model(entries: &[(&str, usize, usize)]) -> Model {
    entries.iter().map(|(key, version, len)| (key.as_bytes().to_vec(), value(key, *version, *len))).collect()
}

fn put(key: &str, version: usize, len: usize) -> impl FnOnce(&mut Model) {
    let (key, value) = (key.as_bytes().to_vec(), value(key, version, len));
    move |model| drop(model.insert(key, value))
}

fn gone(key: &str) -> impl FnOnce(&mut Model) {
    let key = key.as_bytes().to_vec();
    move |model| drop(model.remove(&key))
}

/// No error is allowed.
fn none(_: &Error) -> bool {
    false
}

fn path(name: &str) -> &Path {
    Path::new(name)
}
