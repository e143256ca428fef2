//! Pages of a domain with denied rows, against the rows left when they are taken out by hand.

mod common;

use common::Fixture;
use trawl_model::UrlRecord;
use trawl_query::{Filter, Lake, Options, Page, Principal};
use trawl_store::DatasetInfo;
use trawl_store::manifest::{Deny, DenyTarget};

fn is_denied(url: &str) -> bool {
    url.starts_with("http://b.x.com/1")
        || url == "http://a.x.com/0007"
        || url.contains("//c.x.com/")
        || url.contains(".c.x.com/")
}

#[test]
fn every_page_is_a_piece_of_what_is_shown() {
    let mut fixture = Fixture::new();
    let id = fixture.register(DatasetInfo::named("d"));
    // http and https alternate, so that denied rows lie between others; each part is a segment of its own.
    let url = |n: u64| {
        let host = ["a", "b", "c", "d.c", "cc"][(n % 5) as usize];
        format!("{}://{host}.x.com/{:04}", ["http", "https"][(n / 5 % 2) as usize], n / 10 * 7 % 2000)
    };
    let all: Vec<String> = (0..3000).map(url).chain(["http://a.x.com/0007".to_owned()]).collect();
    for part in all.chunks(1100) {
        fixture.ingest(id, part.iter().map(UrlRecord::bare).collect(), |s| s.page_rows = 64);
        fixture.publish();
    }
    let targets = [
        DenyTarget::Prefix("http://b.x.com/1".into()),
        DenyTarget::Url("http://a.x.com/0007".into()),
        DenyTarget::Domain("c.x.com".into()),
    ];
    let who = Principal::anyone();
    let lake = Lake::open(fixture.store.clone(), Options::default()).unwrap();
    let none = Filter::default();
    let before = lake.pin().unwrap();
    let whole = |filter: &Filter| {
        let (mut urls, mut page) = (Vec::new(), Page::at(0, 1000));
        loop {
            let answer = lake.pin().unwrap().urls("x.com", id, &page, filter, &who).unwrap();
            urls.extend(answer.items.into_iter().map(|item| item.url));
            let Some(cursor) = answer.next_cursor else { return urls };
            page.cursor = Some(cursor);
        }
    };
    let mut left = whole(&none);
    assert_eq!(left.len(), all.len());
    let old_cursor = before.urls("x.com", id, &Page::at(0, 300), &none, &who).unwrap().next_cursor;
    let rest_of_old = left.iter().skip(300).filter(|url| !is_denied(url)).count();
    left.retain(|url| !is_denied(url));
    assert!(left.len() < all.len() - 600, "the list denies many");

    for target in targets {
        let deny = Deny { target, since: fixture.now().to_string(), reason: None };
        let add = |m: &mut trawl_store::Manifest| {
            m.deny.push(deny.clone());
            Ok(())
        };
        fixture.lake.commit(fixture.now(), add).unwrap();
    }
    let pinned = lake.pin().unwrap();
    assert_eq!(whole(&none), left);
    for limit in [1, 7, 500, 1000] {
        for offset in [0, 1, 299, 300, left.len() - 1, left.len(), left.len() + 5] {
            let answer = pinned.urls("x.com", id, &Page::at(offset as u64, limit), &none, &who).unwrap();
            let urls: Vec<_> = answer.items.iter().map(|item| item.url.clone()).collect();
            let from = offset.min(left.len());
            let until = (from + limit as usize).min(left.len());
            assert_eq!(urls, left[from..until], "{offset} {limit}");
            assert_eq!(answer.total_est, left.len() as u64);
            assert_eq!(answer.next_offset, (until < left.len()).then_some(until as u64), "{offset} {limit}");
        }
    }
    let rest = pinned.urls("x.com", id, &Page { cursor: old_cursor, ..Page::at(0, 1000) }, &none, &who).unwrap();
    assert_eq!(rest.items.len(), rest_of_old.min(1000), "a cursor from before goes on among what is left");
    let of_host = Filter { host: Some("b.x.com".into()), ..none.clone() };
    let expected: Vec<_> = left.iter().filter(|url| url.contains("//b.x.com/")).cloned().collect();
    assert_eq!(whole(&of_host), expected);
    assert_eq!(pinned.domain("x.com", &who).unwrap().datasets[0].url_count_est, left.len() as u64);
}
