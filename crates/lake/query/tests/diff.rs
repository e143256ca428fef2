//! Two datasets side by side equal what sets of their URLs say, whatever files the rows are in; and what is denied is in
//! neither.

mod common;

use common::{Dice, Fixture, hosts, records};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use trawl_query::{Comparison, DenyList, DiffEvent, Lake, Options, Pinned, Principal, QueryError, Side};
use trawl_store::DatasetInfo;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_url::{LakeUrl, SuffixList};

type Urls = BTreeMap<String, BTreeSet<String>>;

fn fixture() -> (Fixture, u32, u32) {
    let mut fixture = Fixture::new();
    let mut dice = Dice(9);
    let hosts = hosts(&mut dice, 200);
    let (a, b) = (fixture.register(DatasetInfo::named("a")), fixture.register(DatasetInfo::named("b")));
    let shared = records(&mut dice, &hosts[50..150], 1500, true);
    fixture.ingest(a, [records(&mut dice, &hosts[..120], 2000, false), shared.clone()].concat(), |s| {
        s.page_rows = 16;
        s.row_group_bytes = 4096;
        s.file_bytes = 16 << 10;
    });
    fixture.ingest(b, [records(&mut dice, &hosts[80..], 1500, true), shared].concat(), |s| s.prefix_digits = Some(1));
    fixture.publish();
    fixture.ingest(b, records(&mut dice, &hosts, 1000, false), |s| s.prefix_digits = Some(2));
    fixture.publish();
    (fixture, a, b)
}

/// The normalised URLs of a dataset by domain.
fn urls(fixture: &Fixture, dataset: u32) -> Urls {
    let mut urls = Urls::new();
    for ((id, domain), rows) in &fixture.rows {
        if *id == dataset {
            let of = |url: &str| LakeUrl::parse(url, SuffixList::builtin()).unwrap().as_str().to_owned();
            urls.insert(domain.clone(), rows.iter().map(|row| of(&row.record.url)).collect());
        }
    }
    urls
}

fn pin(fixture: &Fixture) -> std::sync::Arc<Pinned> {
    Lake::open(fixture.store.clone(), Options::default()).unwrap().pin().unwrap()
}

/// What a comparison tells, checked for order and against the summary.
fn told(pinned: &Pinned, what: &Comparison<'_>) -> BTreeMap<(String, String), Side> {
    let mut found = BTreeMap::new();
    let mut of_domain = (0, 0, 0);
    let mut last = String::new();
    let summary = pinned.diff(what, &Principal::operator(), &mut |event| {
        match event {
            DiffEvent::Url { domain, side, url } => {
                assert!(domain > last.as_str(), "{domain} after {last}");
                match side {
                    Side::A => of_domain.0 += 1,
                    Side::B => of_domain.1 += 1,
                    Side::Both => of_domain.2 += 1,
                }
                assert_eq!(found.insert((domain.to_owned(), url.to_owned()), side), None, "{url} twice");
            }
            DiffEvent::Domain(diff) => {
                let urls = diff.urls.unwrap();
                assert_eq!((urls.only_a, urls.only_b, urls.both), of_domain);
                assert!(diff.rows_a >= urls.only_a + urls.both && diff.rows_b >= urls.only_b + urls.both);
                of_domain = (0, 0, 0);
                last.clone_from(&diff.domain);
            }
        }
        ControlFlow::Continue(())
    });
    let urls = summary.unwrap().urls.unwrap();
    let count = |side| found.values().filter(|found| **found == side).count() as u64;
    assert_eq!((urls.only_a, urls.only_b, urls.both), (count(Side::A), count(Side::B), count(Side::Both)));
    found
}

fn expected(a: &Urls, b: &Urls) -> BTreeMap<(String, String), Side> {
    let mut all = BTreeMap::new();
    for (side, urls) in [(Side::A, a), (Side::B, b)] {
        for (domain, url) in urls.iter().flat_map(|(domain, urls)| urls.iter().map(move |url| (domain, url))) {
            all.entry((domain.clone(), url.clone())).and_modify(|known| *known = Side::Both).or_insert(side);
        }
    }
    all
}

#[test]
fn equals_sets_before_and_after_compaction() {
    let (fixture, a, b) = fixture();
    let (in_a, in_b) = (urls(&fixture, a), urls(&fixture, b));
    let all = expected(&in_a, &in_b);
    assert!([Side::A, Side::B, Side::Both].iter().all(|side| all.values().filter(|s| *s == side).count() > 100));
    let what = Comparison { a, b, domain: None, urls: true };
    assert_eq!(told(&pin(&fixture), &what), all);
    let (now, options) = (|| fixture.now(), fixture.build_options());
    trawl_index::compact(&fixture.lake, &now, "c", trawl_index::Compaction::Full, &options, &|_| ()).unwrap().unwrap();
    let pinned = pin(&fixture);
    assert_eq!(told(&pinned, &what), all);
    assert_eq!(told(&pinned, &Comparison { a: b, b: a, ..what }).len(), all.len());
    assert!(told(&pinned, &Comparison { b: a, ..what }).values().all(|side| *side == Side::Both));

    let is_name = |domain: &str| domain.ends_with(".com");
    let one = in_a.keys().find(|domain| is_name(domain) && in_b.contains_key(*domain)).unwrap();
    let host = format!("WWW.{one}");
    let of_one = told(&pinned, &Comparison { domain: Some(&host), ..what });
    let expected_of_one: BTreeMap<_, _> = all.into_iter().filter(|((domain, _), _)| domain == one).collect();
    assert_eq!(of_one, expected_of_one);
}

#[test]
fn domains_alone_and_what_is_not_there() {
    let (fixture, a, b) = fixture();
    let pinned = pin(&fixture);
    let what = Comparison { a, b, domain: None, urls: false };
    let who = Principal::operator();
    let mut events = 0;
    let summary = pinned.diff(&what, &who, &mut |event| {
        assert!(matches!(event, DiffEvent::Domain(diff) if diff.urls.is_none()));
        events += 1;
        ControlFlow::Continue(())
    });
    let summary = summary.unwrap();
    let (in_a, in_b) = (urls(&fixture, a), urls(&fixture, b));
    let both = in_a.keys().filter(|domain| in_b.contains_key(*domain)).count() as u64;
    let domains = summary.domains;
    assert_eq!(domains.both, both);
    assert_eq!((domains.only_a + both, domains.only_b + both), (in_a.len() as u64, in_b.len() as u64));
    assert_eq!((events, summary.urls), (domains.only_a + domains.only_b + both, None));
    let mut stopped = 0;
    let early = pinned.diff(&what, &who, &mut |_| {
        stopped += 1;
        ControlFlow::Break(())
    });
    assert!(early.is_ok() && stopped == 1);
    let mut none = |_: DiffEvent<'_>| ControlFlow::Continue(());
    let missing = pinned.diff(&Comparison { b: 9, ..what }, &who, &mut none);
    assert!(matches!(missing, Err(QueryError::NoDataset { dataset_id: 9 })));
    let stranger = pinned.diff(&Comparison { domain: Some("nobody.example"), ..what }, &who, &mut none);
    assert!(matches!(stranger, Err(QueryError::UnknownDomain { .. })));
}

#[test]
fn what_is_denied_is_in_neither_and_not_counted() {
    let (fixture, a, b) = fixture();
    let all = expected(&urls(&fixture, a), &urls(&fixture, b));
    let ((domain, url), _) = all.iter().find(|(_, side)| **side == Side::Both).unwrap();
    let ((other, _), _) = all.iter().find(|((d, _), side)| d != domain && **side == Side::Both).unwrap();
    let ((third, at), _) = all.iter().find(|((d, _), side)| d != domain && d != other && **side == Side::A).unwrap();
    let prefix = &at[..at.find('/').unwrap() + 2 + at[at.find('/').unwrap() + 2..].find('/').unwrap() + 1];
    let targets =
        [DenyTarget::Url(url.clone()), DenyTarget::Domain(other.clone()), DenyTarget::Prefix(prefix.to_owned())];
    let before = pin(&fixture);
    fixture
        .lake
        .commit(fixture.now(), &fixture.writer(), |manifest| {
            manifest.deny = targets.clone().map(|target| Deny { target, since: String::new(), reason: None }).into();
            Ok(())
        })
        .unwrap();
    let pinned = pin(&fixture);
    let is_left = |d: &str, u: &str| d != other && u != url && !u.starts_with(prefix);
    let left: BTreeMap<_, _> = all.iter().filter(|((d, u), _)| is_left(d, u)).map(|(k, v)| (k.clone(), *v)).collect();
    assert!(left.len() < all.len());
    assert_eq!(told(&pinned, &Comparison { a, b, domain: None, urls: true }), left);

    let list = DenyList::new(pinned.manifest(), SuffixList::builtin());
    assert!(list.touches(domain) && list.touches(third) && list.domains().eq([other.as_str()]));
    let who = Principal::operator();
    for dataset in [a, b] {
        let Some(rows) = fixture.rows.get(&(dataset, domain.clone())) else { continue };
        let lake_url = |u: &str| LakeUrl::parse(u, SuffixList::builtin()).unwrap().as_str().to_owned();
        let shown = rows.iter().filter(|row| lake_url(&row.record.url) != *url).count() as u64;
        let count = |pinned: &Pinned| {
            let answer = pinned.domain(domain, &who).ok()?;
            Some(answer.datasets.iter().find(|d| d.dataset_id == dataset)?.url_count_est)
        };
        assert_eq!(count(&before), Some(rows.len() as u64), "a pinned version does not change");
        assert_eq!(count(&pinned).unwrap_or(0), shown);
    }
    assert!(matches!(pinned.domain(other, &who), Err(QueryError::UnknownDomain { .. })));
}
