//! Every published vector, both ways.

mod common;

use common::{golden, small};
use std::sync::Arc;
use trawl_io::crc::crc32c;
use trawl_meguri::footer::RegionId;
use trawl_meguri::settings::Settings;
use trawl_meguri::{Codec, MeguriFile, Partition, ReadSettings};

const V1: &[u8] = include_bytes!("data/v1.meguri");
const V2: &[u8] = include_bytes!("data/v2.meguri");

fn pin(bytes: &[u8]) -> (usize, u32) {
    (bytes.len(), crc32c(bytes))
}

#[test]
fn the_data_are_the_published_ones() {
    assert_eq!(pin(V1), (5648, 0x1db0_4a1e));
    assert_eq!(pin(V2), (5258, 0x98ca_5279));
}

#[test]
fn codec_0_gives_the_published_bytes() {
    let none = Settings::reference(Codec::None);
    assert!(golden().encode(&none).unwrap() == V2);
    let split = golden().encode(&Settings { page_rows: 2, ..none }).unwrap();
    assert_eq!(pin(&split), (11_586, 0xa8f9_42fc), "V3");
    let mut full = golden();
    full.schedule = true;
    full.filter = Some(b"opaque-filter-blob".to_vec());
    assert_eq!(pin(&full.encode(&none).unwrap()), (5683, 0xd22c_1b2b), "V4");
    let empty = Partition { id: 1, ..Partition::default() };
    assert_eq!(pin(&empty.encode(&none).unwrap()), (4458, 0x93fa_8c60), "V5");
    let bytes = small().encode(&none).unwrap();
    assert_eq!(pin(&bytes), (5024, 0xcef1_5bd1), "V6");
    let empty = empty.encode(&Settings::reference(Codec::Zstd)).unwrap();
    assert_eq!(pin(&empty), (4458, 0xae71_43f3), "V7: no frame is written for nothing");
}

#[test]
fn published_files_decode_to_their_rows() {
    assert_eq!(Partition::decode(V1).unwrap(), golden());
    assert_eq!(Partition::decode(V2).unwrap(), golden());
    let mut full = golden();
    full.schedule = true;
    full.filter = Some(b"opaque-filter-blob".to_vec());
    for codec in [Codec::None, Codec::Zstd] {
        for page_rows in [0, 1, 2, 4, 100] {
            let settings = Settings { page_rows, ..Settings::reference(codec) };
            for partition in [golden(), full.clone(), small(), Partition { id: 1, ..Partition::default() }] {
                let bytes = partition.encode(&settings).unwrap();
                let back = Partition::decode(bytes.clone()).unwrap();
                assert_eq!(back, partition, "{codec:?}, {page_rows} rows a page");
                assert!(back.encode(&settings).unwrap() == bytes);
            }
        }
    }
}

#[test]
fn the_facts_of_the_published_files() {
    let open = |bytes: &'static [u8]| {
        MeguriFile::open(Arc::new(bytes::Bytes::from_static(bytes)), ReadSettings::default()).unwrap()
    };
    let regions =
        |file: &MeguriFile| -> Vec<_> { file.footer().regions.iter().map(|r| (r.id, r.offset, r.length)).collect() };
    let v2 = open(V2);
    assert_eq!(regions(&v2), [(0, 64, 1087), (1, 1151, 769), (4, 1920, 259)]);
    let stats = v2.footer().stats;
    assert_eq!((stats.total_compressed, stats.total_uncompressed), (480, 909));
    assert_eq!(stats.bytes_per_url, 363.166_66);
    assert_eq!((stats.due_min, stats.due_max, stats.scheduled_count), (400, 405, 0));
    let v1 = open(V1);
    assert_eq!(regions(&v1), [(0, 64, 1326), (1, 1390, 1009), (4, 2399, 170)]);
    assert_eq!(v1.footer().stats.total_compressed, 959);
    let chosen = |file: &MeguriFile| -> Vec<_> {
        let columns = file.footer().urls.iter().chain(&file.footer().hosts);
        columns.map(|c| c.pages[0].encoding).collect()
    };
    let urls = [4, 0, 0, 0, 3, 0, 2, 2, 2, 2, 2, 0, 3, 3, 3, 2, 2, 0, 0, 0, 0, 3, 3];
    let hosts = [0, 2, 0, 2, 0, 2, 2, 2, 2, 0, 2, 2, 3, 3, 0, 0, 3, 3, 3, 1];
    for file in [&v1, &v2] {
        assert_eq!(chosen(file), [&urls[..], &hosts].concat());
        assert_eq!(file.header().flag_names(), ["sorted", "blob"]);
    }
}

#[test]
fn the_published_schedule_region() {
    let bytes = small().encode(&Settings::reference(Codec::None)).unwrap();
    let file = MeguriFile::open(Arc::new(bytes::Bytes::from(bytes.clone())), ReadSettings::default()).unwrap();
    let region = file.footer().region(RegionId::Schedule).unwrap().range();
    let region = &bytes[region.start as usize..region.end as usize];
    assert_eq!(region.len(), 328);
    let head = "05000000030000002801000028010000000000006400000000000000d35d4e9064000000040000009b02010000000000";
    let found: String = region[..48].iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(found, head);
    let mut schedule = file.schedule().unwrap().unwrap();
    let mut filled = Vec::new();
    while let Some((bucket, rows)) = schedule.next_bucket().unwrap() {
        if !rows.is_empty() {
            filled.push((bucket, rows));
        }
    }
    assert_eq!(filled, [(0, vec![0]), (75, vec![3]), (150, vec![2])]);
}
