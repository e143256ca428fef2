use super::*;
use crate::{Fs, RealFs};
use std::sync::Arc;

#[test]
fn what_is_committed_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let journal = Journal::create(&fs, &path, b"tag", Options::default()).unwrap();
    journal.commit([&b"a"[..], b"", b"ccc"]).unwrap();
    journal.commit([&b"d"[..]]).unwrap();
    drop(journal);
    let mut seen = Vec::new();
    let (journal, recovery) = Journal::recover(&fs, &path, Options::default(), &mut |_, batch| {
        seen.push(batch.records().map(<[u8]>::to_vec).collect::<Vec<_>>());
        Ok(())
    })
    .unwrap();
    assert_eq!(seen, [vec![b"a".to_vec(), b"".to_vec(), b"ccc".to_vec()], vec![b"d".to_vec()]]);
    assert_eq!((recovery.batches, recovery.tail), (2, Tail::Clean));
    assert_eq!(journal.header().tag, b"tag");
}
