//! A lake whose rows and index are split by prefix answers as one whose are not.

mod common;

use common::{Dice, Fixture, hosts, records};
use trawl_index::{Compaction, SegmentMeta, compact, rebuild, verify_segment};
use trawl_ingest::Mode;
use trawl_query::{DiffEvent, Filter, Lake, NamesQuery, Options, Page, Pinned, Principal};
use trawl_store::DatasetInfo;

/// Three datasets of several publishes; one is replaced on the way, so that old segments are masked.
fn fixture(digits: u8, split: Option<u8>) -> Fixture {
    let mut fixture = Fixture::new();
    fixture.split = Some(digits);
    let mut dice = Dice(5);
    let hosts = hosts(&mut dice, 120);
    let ids: Vec<u32> = ["a", "b", "c"].map(|n| fixture.register(DatasetInfo::named(n))).into();
    for round in 0..5 {
        let more = records(&mut dice, &hosts[round * 10..round * 10 + 80], 300, round % 2 == 0);
        fixture.ingest(ids[round % 3], more, |s| s.mode = if round == 3 { Mode::Replace } else { Mode::Append });
        publish(&fixture, split);
    }
    fixture
}

fn options(fixture: &Fixture, split: Option<u8>) -> trawl_index::BuildOptions {
    let mut options = fixture.build_options();
    options.piece_rows = if split.is_some() { 1 } else { u64::MAX };
    options
}

fn publish(fixture: &Fixture, split: Option<u8>) {
    let options = options(fixture, split);
    trawl_index::publish(&fixture.lake, &|| fixture.now(), &fixture.writer(), &options, &|_| ()).unwrap();
}

/// Everything there is to ask, but for the names of versions.
fn answers(pinned: &Pinned, fixture: &Fixture) -> Vec<String> {
    let who = Principal::anyone();
    let mut told = Vec::new();
    for domain in fixture.domains() {
        let answer = pinned.domain(&domain, &who).unwrap();
        told.push(format!("{:?}", answer.datasets));
        for dataset in answer.datasets.iter().map(|dataset| dataset.dataset_id) {
            let (mut page, limit) = (Page::at(0, 7), 7);
            loop {
                let urls = pinned.urls(&domain, dataset, &page, &Filter::default(), &who).unwrap();
                told.push(format!("{:?} {:?}", urls.items, urls.next_offset));
                let Some(next) = urls.next_cursor else { break };
                page = Page::from_cursor(next, limit);
            }
        }
        let of_domain = fixture.rows.iter().find(|((_, of), _)| *of == domain).unwrap().1;
        let url = &of_domain[0].record.url;
        told.push(format!("{:?}", pinned.url(url, 50, &who).unwrap().items));
    }
    assert!(pinned.domain("stranger.example", &who).is_err());
    for (prefix, suffix) in [("", ""), ("s", ""), ("site1", ".com"), ("", ".de"), ("example", "")] {
        let mut after: Option<String> = None;
        loop {
            let query = NamesQuery { prefix, suffix, after: after.as_deref(), limit: 9, ..NamesQuery::default() };
            let names = pinned.names(&query, &who).unwrap();
            told.push(format!("{:?}", names.domains));
            after = names.next_after;
            if after.is_none() {
                break;
            }
        }
    }
    let stats = pinned.stats_for(&who).unwrap();
    told.push(format!("{:?}", (stats.datasets, stats.domains, stats.rows, stats.files, stats.domains_exact)));
    let datasets = pinned.datasets(&who).unwrap();
    told.extend(datasets.iter().map(|d| format!("{} {} {} {}", d.name, d.rows, d.domains, d.domains_exact)));
    told
}

fn check(fixture: &Fixture) {
    let manifest = fixture.lake.current().unwrap();
    for segment in &manifest.current().unwrap().segments {
        let mut faults = Vec::new();
        verify_segment(&fixture.store, segment, &mut |e| faults.push(e.to_string())).unwrap();
        assert_eq!(faults, [""; 0]);
    }
}

fn splits(fixture: &Fixture) -> Vec<u8> {
    fixture.lake.current().unwrap().current().unwrap().segments.iter().map(|s| s.split).collect()
}

#[test]
fn answers_of_split_and_unsplit_segments_are_the_same() {
    for digits in [1, 2] {
        let (plain, split) = (fixture(digits, None), fixture(digits, Some(digits)));
        assert!(splits(&plain).iter().all(|split| *split == 0) && splits(&split).iter().all(|split| *split == digits));
        check(&split);
        let open = |fixture: &Fixture| Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap();
        assert_eq!(answers(&open(&plain), &plain), answers(&open(&split), &split), "{digits} digits");
        let diff = |pinned: &Pinned| {
            let mut events = Vec::new();
            let what = trawl_query::Comparison { a: 1, b: 2, urls: true, domain: None };
            let mut each = |event: DiffEvent<'_>| {
                events.push(format!("{event:?}"));
                std::ops::ControlFlow::Continue(())
            };
            pinned.diff(&what, &Principal::anyone(), &mut each).unwrap();
            events
        };
        assert_eq!(diff(&open(&plain)), diff(&open(&split)));
        // Some merged, all merged and still split, all in one set of files: each time the answers of the other lake.
        for how in [Compaction::Masked, Compaction::Full, Compaction::Single] {
            for (fixture, split) in [(&plain, None), (&split, Some(digits))] {
                let options = options(fixture, split);
                compact(&fixture.lake, &|| fixture.now(), &fixture.writer(), how, &options, &|_| ()).unwrap();
                check(fixture);
            }
            assert_eq!(answers(&open(&plain), &plain), answers(&open(&split), &split), "{digits} digits, {how:?}");
            let expected = if how == Compaction::Single { vec![0] } else { vec![digits; splits(&split).len()] };
            assert_eq!(splits(&split), expected);
        }
        let version = split.lake.current().unwrap().current().unwrap().clone();
        assert!(version.files.is_some(), "the seed's keys");
    }
}

/// What a rebuild into one set of files writes, a compaction of pieces writes too.
#[test]
fn a_single_set_of_files_is_that_of_a_rebuild() {
    let mut fixture = Fixture::new();
    fixture.split = Some(1);
    let mut dice = Dice(9);
    let hosts = hosts(&mut dice, 120);
    for name in ["a", "b"] {
        let id = fixture.register(DatasetInfo::named(name));
        fixture.ingest(id, records(&mut dice, &hosts, 500, true), |_| ());
        publish(&fixture, Some(1));
    }
    let files = || {
        let manifest = fixture.lake.current().unwrap();
        let [only] = manifest.current().unwrap().segments.as_slice() else { panic!("one segment") };
        (only.split, SegmentMeta::read(&*fixture.store, only).unwrap().files)
    };
    let compact = |how, split| {
        let options = options(&fixture, split);
        compact(&fixture.lake, &|| fixture.now(), &fixture.writer(), how, &options, &|_| ()).unwrap().unwrap();
        files()
    };
    let rebuild = |split| {
        let options = options(&fixture, split);
        rebuild(&fixture.lake, None, &|| fixture.now(), &fixture.writer(), &options, &|_| ()).unwrap();
        files()
    };
    let single = compact(Compaction::Single, Some(1));
    assert_eq!((single.0, single.1.len()), (0, 10));
    assert_eq!(single, rebuild(None));
    let pieces = rebuild(Some(1));
    assert_eq!(pieces.0, 1);
    assert_eq!(compact(Compaction::Single, Some(1)), single);
}
