//! Exports, in every form, and what happens to them when somebody leaves.

use crate::fixture::{Fixture, connect, get, request};
use std::io::{Read, Write};
use trawl_serve::Config;

#[test]
fn every_form_has_every_row() {
    let fixture = Fixture::new();
    let mut urls: Vec<String> = (0..9000).map(|n| format!("http://big.com/{n:05}?q=a,\"b\"")).collect();
    urls.extend((0..50).map(|n| format!("http://small{n}.org/")));
    fixture.add("all", &urls.join("\n"));
    let server = fixture.serve(Config::default());
    let at = server.address();

    let lines = get(at, "/v1/datasets/all/export").text();
    let mut found: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["url"].as_str().unwrap().into())
        .collect();
    found.sort();
    urls.sort();
    assert_eq!(found, urls);

    let csv = get(at, "/v1/domain/big.com/datasets/all/export?format=csv").text();
    assert!(csv.starts_with("dataset_id,domain,url_id,url,"));
    assert_eq!(csv.lines().count(), 9001);
    assert!(csv.contains(",\"http://big.com/00000?q=a,\"\"b\"\"\","), "{}", &csv[..300]);

    let arrow = get(at, "/v1/domain/big.com/datasets/all/export?format=arrow&path_prefix=/000").body;
    let batches = arrow_ipc::reader::StreamReader::try_new(std::io::Cursor::new(arrow), None).unwrap();
    let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 100);

    let file = get(at, "/v1/datasets/all/export?format=parquet");
    assert_eq!(file.header("content-disposition"), Some("attachment; filename=\"urls.parquet\""));
    let path = fixture.path("export.parquet");
    std::fs::write(&path, &file.body).unwrap();
    let reader =
        parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(path).unwrap());
    let rows: usize = reader.unwrap().build().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 9050);

    let packed = request(at, "GET", "/v1/datasets/all/export", "Accept-Encoding: gzip\r\n");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut plain = String::new();
    let codings = ["gzip".to_owned()];
    trawl_http::decode_content(&packed.body[..], &codings, 1 << 30).unwrap().read_to_string(&mut plain).unwrap();
    assert_eq!(plain, lines);
    // An error comes before the first byte.
    assert_eq!(get(at, "/v1/datasets/absent/export?format=parquet").json()["error"], "unknown_dataset");
}

#[test]
fn whoever_leaves_an_export_frees_its_place() {
    let fixture = Fixture::new();
    let urls: String = (0..60_000).map(|n| format!("http://big.com/{n:060}\n")).collect();
    fixture.add("all", &urls);
    let server = fixture.serve(Config { max_streams: 1, ..Config::default() });
    let mut slow = connect(server.address());
    slow.write_all(b"GET /v1/datasets/all/export HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    slow.read_exact(&mut [0; 1000]).unwrap();
    // The only place is taken, and kept while the client takes nothing.
    let refused = get(server.address(), "/v1/datasets/all/export");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    for other in ["/v1/stats", "/cdx?url=big.com/1"] {
        assert_eq!(get(server.address(), other).status, 200, "{other}: others have places of their own");
    }
    drop(slow);
    let begun = std::time::Instant::now();
    while get(server.address(), "/v1/domain/big.com/datasets/all/export?path_prefix=/x").status == 503 {
        assert!(begun.elapsed().as_secs() < 20, "the place was never freed");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
