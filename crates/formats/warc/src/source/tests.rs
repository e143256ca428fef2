use super::*;
use crate::testing::{captures, describe, options, sink_with};
use trawl_model::CaptureSink;

#[test]
fn what_was_written_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut sink = sink_with(dir.path(), options());
    let mut places = Vec::new();
    for capture in captures() {
        let prepared = sink.prepare(capture).unwrap();
        places.push(sink.commit(prepared).unwrap());
    }
    let summary = sink.finish().unwrap();
    assert_eq!(summary.files.len(), 1);
    let path = dir.path().join(&summary.files[0].0);
    let mut source = WarcSource::open(&path, Limits::default(), false).unwrap();
    let mut found = Vec::new();
    while let Some((entry, place)) = source.next_entry().unwrap() {
        match entry {
            Entry::Capture(capture) => found.push((describe(*capture), place)),
            Entry::Other(record) => assert_eq!(record.kind, "warcinfo"),
        }
    }
    assert_eq!(found.len(), places.len());
    for (found, wanted) in found.into_iter().zip(captures().into_iter().map(describe).zip(places)) {
        assert_eq!(found, wanted);
    }
}
