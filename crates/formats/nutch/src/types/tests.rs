use super::*;
use crate::Dialect;
use crate::class::{self, NutchClasses};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use trawl_hadoop::json::{Detail, JsonClasses as _};
use trawl_hadoop::seq::Reader;
use trawl_hadoop::{Any, Encode, MapWritable};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

fn values(path: &str) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(&fixture(path)).unwrap();
    let mut all = Vec::new();
    while let Some(r) = reader.next_record().unwrap() {
        all.push(r.value.to_vec());
    }
    all
}

/// Decodes a value of a class and writes it again in its current form.
fn again(class: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut dialect = Dialect::default();
    Some(encoded(|out| match class {
        "CrawlDatum" => whole(bytes, CrawlDatum::decode).unwrap().encode(out),
        "Content" => whole(bytes, Content::decode).unwrap().encode(out),
        "HostDatum" => whole(bytes, HostDatum::decode).unwrap().encode(out),
        "Inlink" => dialect.inlink(bytes).unwrap().encode(out),
        "Inlinks" => dialect.inlinks(bytes).unwrap().encode(out),
        "LinkDatum" => whole(bytes, LinkDatum::decode).unwrap().encode(out),
        "MetaWrapper" => assert!(whole(bytes, MetaWrapper::decode).unwrap().encode(out)),
        "Metadata" => dialect.metadata(bytes).unwrap().encode(out),
        "Node" => whole(bytes, Node::decode).unwrap().encode(out),
        "NutchDocument" => whole(bytes, NutchDocument::decode).unwrap().encode(out),
        "NutchWritable" => assert!(whole(bytes, NutchWritable::decode).unwrap().encode(out)),
        "Outlink" => dialect.outlink(bytes).unwrap().encode(out),
        "ParseData" => dialect.parse_data(bytes).unwrap().encode(out),
        "ParseImpl" => whole(bytes, |d| ParseImpl::decode(d, true, Default::default())).unwrap().encode(out),
        "ParseStatus" => whole(bytes, ParseStatus::decode).unwrap().encode(out),
        "ParseText" => whole(bytes, ParseText::decode).unwrap().encode(out),
        "ProtocolStatus" => whole(bytes, ProtocolStatus::decode).unwrap().encode(out),
        "SelectorEntry" => whole(bytes, SelectorEntry::decode).unwrap().encode(out),
        _ => panic!("{class}"),
    }))
}

const CLASSES: [&str; 18] = [
    "Content",
    "CrawlDatum",
    "HostDatum",
    "Inlink",
    "Inlinks",
    "LinkDatum",
    "MetaWrapper",
    "Metadata",
    "Node",
    "NutchDocument",
    "NutchWritable",
    "Outlink",
    "ParseData",
    "ParseImpl",
    "ParseStatus",
    "ParseText",
    "ProtocolStatus",
    "SelectorEntry",
];

#[test]
fn current_values_are_written_as_nutch_wrote_them() {
    for class in CLASSES {
        for (n, value) in values(&format!("types/{class}.seq")).iter().enumerate() {
            assert_eq!(again(class, value).as_ref(), Some(value), "{class} {n}");
        }
    }
}

#[test]
fn old_values_are_written_in_todays_form_and_mean_the_same() {
    for release in ["0.8.1", "0.9", "1.7"] {
        for class in ["Content", "Inlinks", "ParseData", "ParseStatus", "ParseText", "ProtocolStatus"] {
            let full = format!(
                "org.apache.nutch.{}.{class}",
                match class {
                    "Content" | "ProtocolStatus" => "protocol",
                    "Inlinks" => "crawl",
                    _ => "parse",
                }
            );
            let mut dialect = Dialect::default();
            for value in values(&format!("legacy/nutch-{release}/{class}.seq")) {
                let before = dialect.json(&full, &value, Detail::Full).unwrap();
                let written = again(class, &value).unwrap();
                let after = Dialect::default().json(&full, &written, Detail::Full).unwrap();
                // Links gain a place for metadata.
                let strip = |v: serde_json::Value| v.to_string().replace(",\"metadata\":null", "");
                assert_eq!(strip(before), strip(after), "{release} {class}");
                assert_eq!(again(class, &written).unwrap(), written);
            }
        }
    }
}

#[test]
fn an_old_datum_gains_todays_codes_and_seconds() {
    let datum = |release: &str, n: usize| {
        let bytes = values(&format!("legacy/nutch-{release}/CrawlDatum.seq")).swap_remove(n);
        whole(&bytes, CrawlDatum::decode).unwrap().into_owned()
    };
    let old = datum("0.8.1", 0);
    assert_eq!((old.version, old.stored_status, old.status()), (4, 0, Status::SIGNATURE));
    assert_eq!(old.interval, Interval::Days(1.5));
    let bytes = encoded(|out| old.encode(out));
    let new = whole(&bytes, CrawlDatum::decode).unwrap();
    assert_eq!((new.version, new.status(), new.interval), (7, Status::SIGNATURE, Interval::Seconds(129_600)));
    assert_eq!((new.score.to_bits(), &new.signature), (old.score.to_bits(), &old.signature));
    // Metadata of every class come along.
    let old = datum("0.8.1", 3);
    let bytes = encoded(|out| old.encode(out));
    let new = whole(&bytes, CrawlDatum::decode).unwrap();
    assert_eq!(new.metadata.entries().len(), old.metadata.entries().len());
    assert_eq!(new.metadata.get("k1").unwrap().as_text().unwrap().to_str(), "gamma segment");
}

#[test]
fn versions_that_no_fixture_has() {
    let head = |version: u8, interval: &[u8]| {
        let mut out = vec![version, 5];
        out.put_i64(1000);
        out.put_u8(2);
        out.put(interval);
        out
    };
    let days = 30f32.to_be_bytes();
    let mut v1 = head(1, &days);
    v1.put_i32(17);
    let datum = whole(&v1, CrawlDatum::decode).unwrap();
    assert_eq!((datum.link_count, datum.status()), (Some(17), Status::FETCH_SUCCESS));
    let mut v2 = head(2, &days);
    v2.put_f32(0.5);
    assert_eq!(whole(&v2, CrawlDatum::decode).unwrap().score, 0.5);
    let mut v3 = head(3, &days);
    v3.put_f32(0.5);
    v3.put_i64(7);
    v3.put(&[2, 0xab, 0xcd]);
    assert_eq!(whole(&v3, CrawlDatum::decode).unwrap().signature[..], [0xab, 0xcd]);
    let mut v6 = head(6, &86_400i32.to_be_bytes());
    v6.put_f32(0.5);
    v6.put_i64(7);
    v6.put(&[0, 1]);
    v6.put_i32(1);
    v6.put(&[0, (-125i8).cast_unsigned(), (-126i8).cast_unsigned()]);
    v6.put_text(b"k");
    v6.put_i64(9);
    let datum = whole(&v6, CrawlDatum::decode).unwrap();
    assert_eq!(datum.interval.seconds(), 86_400);
    assert_eq!(datum.metadata.get("k").unwrap().class, trawl_hadoop::class::LONG);
    assert!(whole(&head(8, &days), CrawlDatum::decode).is_err());
    let mut link_nodes = Vec::new();
    let node = LinkNode { url: "http://a/".into(), node: Node { num_inlinks: 1, ..Node::default() } };
    LinkNode::encode_list(&[node.clone(), node], &mut link_nodes);
    assert_eq!(whole(&link_nodes, LinkNode::decode_list).unwrap().len(), 2);
    assert_eq!(whole(b"", LinkNode::decode_list).unwrap(), []);
}

#[test]
fn every_cut_and_every_flipped_bit_of_a_value_is_an_error_or_a_value() {
    for class in CLASSES {
        let full = match class {
            "SelectorEntry" => class::SELECTOR_ENTRY.to_owned(),
            _ => Reader::open(&fixture(&format!("types/{class}.seq"))).unwrap().header().value_class(),
        };
        let mut seen = 0;
        for value in values(&format!("types/{class}.seq")).into_iter().filter(|v| v.len() < 400).take(6) {
            seen += 1;
            for cut in 0..value.len() {
                assert!(whole(&value[..cut], |d| NutchClasses.json(&full, d, Detail::Full)).is_err(), "{class} {cut}");
            }
            for bit in 0..value.len() * 8 {
                let mut flipped = value.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                let _ = Dialect::default().json(&full, &flipped, Detail::Full);
            }
        }
        assert!(seen > 0, "{class}");
    }
}

#[test]
fn maps_inside_maps_end_somewhere() {
    let mut bytes = Vec::new();
    for _ in 0..100_000 {
        bytes.put(&[0, 0, 0, 0, 1]);
        bytes.put_u8((-119i8).cast_unsigned());
        bytes.put_u8((-121i8).cast_unsigned());
    }
    let error = whole(&bytes, |d| MapWritable::decode(d, &NutchClasses)).unwrap_err();
    assert!(error.to_string().contains("at most 16 levels"), "{error}");
}

#[test]
fn the_form_of_links_is_decided_once() {
    let mut dialect = Dialect::default();
    let plain = encoded(|out| {
        out.put_i32(1);
        out.put_text(b"http://a/");
        out.put_text(b"anchor");
    });
    let none = encoded(|out| out.put_i32(0));
    assert_eq!(dialect.inlinks(&none).unwrap().0.len(), 0, "an empty list decides nothing");
    assert_eq!(dialect.inlinks(&plain).unwrap().0[0].form, LinkForm::Plain);
    let flagged = encoded(|out| Inlinks(vec![Inlink::new("http://b/", "x")]).encode(out));
    assert!(dialect.inlinks(&flagged).is_err(), "the file has plain links");
    assert!(Dialect::default().inlinks(&flagged).is_ok());
}

fn any_text() -> impl Strategy<Value = trawl_hadoop::Text<'static>> {
    "\\PC{0,20}".prop_map(trawl_hadoop::Text::from)
}

proptest! {
    #[test]
    fn datums_come_back(
        status in any::<u8>(), fetch_time in any::<i64>(), retries in any::<i8>(), interval in any::<i32>(),
        score in any::<u32>(), modified_time in any::<i64>(), signature in prop::collection::vec(any::<u8>(), 0..127),
        entries in prop::collection::vec((any_text(), any::<i64>()), 0..5),
    ) {
        let entry = |(k, v): (trawl_hadoop::Text<'static>, i64)| {
            (Any::text(k.as_bytes()), Any::new(trawl_hadoop::class::LONG, |out| out.put_i64(v)))
        };
        let datum = CrawlDatum {
            version: 7, stored_status: status, fetch_time, retries, interval: Interval::Seconds(interval),
            score: f32::from_bits(score), modified_time, signature: signature.into(),
            metadata: MapWritable::new(entries.into_iter().map(entry).collect()), link_count: None,
        };
        let bytes = encoded(|out| datum.encode(out));
        let back = whole(&bytes, CrawlDatum::decode).unwrap();
        prop_assert_eq!(&encoded(|out| back.encode(out)), &bytes);
        prop_assert_eq!(back.score.to_bits(), score);
        prop_assert_eq!(&back.metadata, &datum.metadata);
    }

    #[test]
    fn parse_data_come_back(
        title in any_text(), links in prop::collection::vec((any_text(), any_text()), 0..5),
        meta in prop::collection::vec((any_text(), prop::collection::vec(any_text(), 0..3)), 0..4),
    ) {
        let outlinks = links.into_iter().map(|(url, anchor)| Outlink::new(url, anchor)).collect();
        let data = ParseData::new(title, outlinks, Metadata(meta));
        let bytes = encoded(|out| data.encode(out));
        prop_assert_eq!(whole(&bytes, |d| ParseData::decode(d, LinkForm::WithMetadata)).unwrap(), data);
    }
}
