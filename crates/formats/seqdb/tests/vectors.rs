//! The format's test vectors, byte for byte, both directions.

mod common;

use common::{FILES, settings, vector};
use trawl_io::fault::FaultFs;
use trawl_seqdb::{Access, CreateKvseq, Kvseq, Purpose, Repr};

#[test]
fn v1_kvseq() {
    let fs = FaultFs::new();
    let path = "/v1".as_ref();
    let create = CreateKvseq {
        sbsize: 256,
        purpose: Purpose::new("TEST").unwrap(),
        value: Repr::Int16,
        fileincr: 0,
        ..CreateKvseq::default()
    };
    let mut kv = create.create(path, &settings(&fs)).unwrap();
    assert_eq!(kv.add(b"apple", b"red").unwrap(), 256);
    assert_eq!(kv.add(b"pear", b"green").unwrap(), 268);
    assert_eq!(kv.add(b"fig", b"").unwrap(), 281);
    kv.delete(268).unwrap();
    kv.close().unwrap();
    assert_eq!(fs.files()[path], vector("v1.kvseq"));

    let fs = common::disk_with(&[("/v1", "v1.kvseq")]);
    let kv = Kvseq::open(path, Access::Write, &settings(&fs)).unwrap();
    assert_eq!((kv.entries(), kv.live_entries()), (Some(3), Some(2)));
    let mut scan = kv.scan().with_deleted();
    let mut seen = Vec::new();
    while let Some(item) = scan.next_entry().unwrap() {
        seen.push((item.ptr, item.deleted, item.key.to_vec(), item.value.unwrap().to_vec()));
    }
    let row = |ptr, deleted, key: &str, value: &str| (ptr, deleted, key.into(), value.into());
    assert_eq!(seen, [row(256, false, "apple", "red"), row(268, true, "pear", "green"), row(281, false, "fig", "")]);
    assert_eq!(FILES.len(), 7);
}
