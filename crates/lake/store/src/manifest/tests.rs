use super::*;
use proptest::prelude::*;

const SEED: &[u8] = include_bytes!("../../tests/golden/seed-manifest.json");
const GOLDEN: &[u8] = include_bytes!("../../tests/golden/manifest-v3.json");
const FORMAT_2: &[u8] = include_bytes!("../../tests/golden/manifest-v2.json");
const FORMAT_1: &[u8] = include_bytes!("../../tests/golden/manifest-v1.json");

/// What a checksum over the golden text is.
const GOLDEN_CHECKSUM: u64 = 0x2f17_934f_dc41_28f7;

fn segment(id: &str) -> SegmentRef {
    let file = |key: &str, name: &str| (key.to_owned(), format!("index/{id}/{name}"));
    SegmentRef {
        id: id.into(),
        shards: 1,
        files: BTreeMap::from([
            file("domains_txt", "domains.txt.zst"),
            file("domains_mphf", "domains.mphf"),
            file("d2d_roar", "domain_to_datasets.roar"),
            file("postings_idx", "postings/{shard}/postings.idx.zst"),
            file("postings_dat", "postings/{shard}/postings.dat.zst"),
            file("files_tsv", "files.tsv.zst"),
        ]),
        ..SegmentRef::default()
    }
}

fn at(text: &str) -> UnixMillis {
    UnixMillis::parse(text).unwrap()
}

/// One of everything, so that the golden file pins every key.
fn rich() -> Manifest {
    let now = at("2026-01-02T03:04:05.006Z");
    let (written, writer) = (now.to_string(), "w".to_owned());
    let mut manifest = Manifest { sequence: 3, written, writer, ..Manifest::empty() };
    manifest.suffix_list = Some(SuffixListRef { path: "index/suffix_lists/00.dat".into(), hash: "00".into() });
    manifest.register(now, DatasetInfo::named("plain")).unwrap();
    let info = DatasetInfo {
        name: "full one".into(),
        source: Some("somewhere".into()),
        acl: Acl::Principals(vec!["alice".into()]),
        archive_base: vec!["s3://bucket/warc/".into()],
        extras_schema: Some(serde_json::json!({"type": "object"})),
    };
    manifest.register(now, info).unwrap();
    manifest.dataset_mut(1).unwrap().dropped = true;
    manifest.publish(now, vec![segment("a")], BTreeMap::from([(1, 1)]));
    let masked =
        SegmentRef { level: 1, domains: 2, rows: 3, bytes: 4, datasets: vec![1], masked: vec![1], ..segment("a") };
    let noted = SegmentRef { notes: serde_json::Map::from_iter([("k".to_owned(), 1.into())]), ..segment("b") };
    manifest.publish(now, vec![masked, noted], BTreeMap::from([(1, 2), (2, 1)]));
    let since = now.to_string();
    for target in [
        DenyTarget::Url("http://a.com/x".into()),
        DenyTarget::Prefix("http://a.com/".into()),
        DenyTarget::Domain("a.com".into()),
        DenyTarget::Dataset(1),
    ] {
        manifest.deny.push(Deny { target, since: since.clone(), reason: Some("asked".into()) });
    }
    manifest.revoked.push("dead-writer".into());
    manifest
}

#[test]
fn the_seeds_manifest_is_what_a_compacted_version_writes() {
    let seed = Manifest::parse("m", SEED).unwrap();
    assert_eq!(seed.current().unwrap().files.as_ref().unwrap().parquet_root, "urls/");

    let mut ours = Manifest::empty();
    ours.publish(at("2025-10-20T22:00:00Z"), vec![segment("2025-10-20")], BTreeMap::new());
    let ours: serde_json::Value = serde_json::from_slice(&ours.to_json()).unwrap();
    let seed: serde_json::Value = serde_json::from_slice(SEED).unwrap();
    let (ours, seed) = (&ours["versions"][0], seed["versions"][0].as_object().unwrap());
    for (key, value) in seed {
        if key == "version" {
            // Ours always has milliseconds, so that names sort as texts do.
            assert_eq!(at(ours[key].as_str().unwrap()), at(value.as_str().unwrap()));
        } else {
            assert_eq!(&ours[key], value, "{key}");
        }
    }
}

#[test]
fn only_one_whole_segment_carries_the_seeds_keys() {
    let mut manifest = Manifest::empty();
    let now = UnixMillis(0);
    manifest.publish(now, vec![segment("a"), segment("b")], BTreeMap::new());
    assert_eq!(manifest.current().unwrap().files, None);
    manifest.publish(now, vec![SegmentRef { masked: vec![1], ..segment("a") }], BTreeMap::new());
    assert_eq!(manifest.current().unwrap().files, None);
    let mut partial = segment("a");
    partial.files.remove("files_tsv");
    manifest.publish(now, vec![partial], BTreeMap::new());
    assert_eq!(manifest.current().unwrap().files, None);
    manifest.publish(now, vec![segment("a")], BTreeMap::new());
    assert!(manifest.current().unwrap().files.is_some());
}

#[test]
fn golden_bytes_do_not_move() {
    let sealed = String::from_utf8(GOLDEN.to_vec()).unwrap().replace("\n}\n", &seal(GOLDEN_CHECKSUM));
    assert_eq!(String::from_utf8(rich().to_json()).unwrap(), sealed);
    for golden in [GOLDEN, sealed.as_bytes()] {
        assert_eq!(Manifest::parse("m", golden).unwrap(), rich());
    }
    // What earlier programs wrote is read as ever.
    assert_eq!(Manifest::parse("m", FORMAT_2).unwrap(), Manifest { format: 2, ..rich() });
    assert_eq!(Manifest::parse("m", FORMAT_1).unwrap(), Manifest { format: 1, writer: String::new(), ..rich() });
}

#[test]
fn a_manifest_does_not_grow_by_all_that_was_ever_published() {
    let mut manifest = Manifest::empty();
    let mut sizes = Vec::new();
    for n in 0..200u32 {
        let mut segments = manifest.current().map(|v| v.segments.clone()).unwrap_or_default();
        segments.drain(..segments.len().saturating_sub(7));
        segments.push(segment(&format!("20260102030405-{n:032}-0")));
        manifest.publish(UnixMillis(i64::from(n)), segments, BTreeMap::from([(1, u64::from(n))]));
        let bytes = manifest.to_json();
        assert_eq!(Manifest::parse("m", &bytes).unwrap(), manifest);
        sizes.push(bytes.len());
    }
    assert_eq!(manifest.versions.len(), MAX_VERSIONS);
    assert!(sizes[199] < sizes[60] * 11 / 10 && sizes[199] < 80_000, "{sizes:?}");
}

#[test]
fn version_names_are_unique_and_rise() {
    let mut manifest = Manifest::empty();
    let times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2025-06-01T00:00:00Z", "2026-01-01T00:00:01Z"];
    let names: Vec<_> = times.iter().map(|t| manifest.publish(at(t), vec![], BTreeMap::new())).collect();
    assert_eq!(
        names,
        [
            "2026-01-01T00:00:00.000Z",
            "2026-01-01T00:00:00.001Z",
            "2026-01-01T00:00:00.002Z",
            "2026-01-01T00:00:01.000Z"
        ]
    );
    assert_eq!(manifest.current_version, names[3]);
}

#[test]
fn datasets_keep_their_ids() {
    let mut manifest = Manifest::empty();
    let register = |m: &mut Manifest, name: &str| m.register(UnixMillis(0), DatasetInfo::named(name));
    assert_eq!(register(&mut manifest, "a").unwrap(), 1);
    assert_eq!(register(&mut manifest, "b").unwrap(), 2);
    assert_eq!(register(&mut manifest, "a").unwrap(), 1);
    manifest.dataset_mut(1).unwrap().dropped = true;
    assert_eq!(register(&mut manifest, "a").unwrap(), 3, "a dropped dataset's id is not used again");
    for bad in ["", " a", "a\nb", &"x".repeat(201)] {
        assert!(register(&mut manifest, bad).is_err(), "{bad:?}");
    }
    manifest.next_dataset_id = crate::layout::MAX_DATASET_ID + 1;
    assert!(register(&mut manifest, "z").is_err());
}

#[test]
fn refused() {
    let cases = [
        (r#"{"format":5,"anything":1}"#, "expected format 3"),
        (r#"{"current_version":"x","versions":[]}"#, "current_version among"),
        (r#"{"current_version":""}"#, "versions"),
        (r#"{"current_version":"","versions":[{"version":"v","segments":[{"id":".."}]}]}"#, "inside the lake"),
        (
            r#"{"current_version":"","versions":[{"version":"v","segments":[{"id":"s","files":{"x":"/etc/passwd"}}]}]}"#,
            "inside the lake",
        ),
        (
            r#"{"current_version":"","versions":[],"next_dataset_id":1,"datasets":[{"id":1,"name":"a","created":""}]}"#,
            "next_dataset_id",
        ),
        ("", "eof"),
        ("[]", "json"),
    ];
    for (text, expected) in cases {
        let error = Manifest::parse("m.json", text.as_bytes()).unwrap_err().to_string().to_lowercase();
        assert!(error.contains(expected) && error.contains("m.json"), "{text}: {error}");
    }
}

#[test]
fn cut_and_flipped_manifests_give_errors_or_values() {
    for cut in 0..GOLDEN.len() - 2 {
        assert!(Manifest::parse("m", &GOLDEN[..cut]).is_err(), "cut at {cut}");
    }
    for bit in 0..GOLDEN.len() * 8 {
        let mut bytes = GOLDEN.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let _ = Manifest::parse("m", &bytes);
    }
}

/// No bit of a sealed manifest can turn without being noticed, but for those of the seal's own key and of white space.
#[test]
fn a_turned_bit_is_an_error_or_changes_nothing() {
    let bytes = rich().to_json();
    for bit in 0..bytes.len() * 8 {
        let mut turned = bytes.clone();
        turned[bit / 8] ^= 1 << (bit % 8);
        if let Ok(manifest) = Manifest::parse("m", &turned) {
            assert_eq!(manifest, rich(), "bit {bit}");
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    let error = Manifest::parse("m", text.replace("\"a.com\"", "\"b.com\"").as_bytes()).unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
    assert!(Manifest::parse("m", text.trim_end().as_bytes()).is_err(), "the line end belongs to it");
}

#[test]
fn json_errors_name_the_byte() {
    let text = b"{\n  \"current_version\": 7\n}";
    let Error::Corrupt { offset, .. } = Manifest::parse("m", text).unwrap_err() else { panic!("another error") };
    assert_eq!(text[offset as usize], b'7');
}

proptest! {
    #[test]
    fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::parse("m", &bytes);
    }

    #[test]
    fn acl_allows_only_its_principals(list in proptest::collection::vec("[a-c]", 0..3), who in proptest::collection::vec("[a-c]", 0..3)) {
        let shared = list.iter().any(|p| who.contains(p));
        prop_assert_eq!(Acl::Principals(list).allows(&who), shared);
        prop_assert!(Acl::Public.allows(&who));
    }
}
