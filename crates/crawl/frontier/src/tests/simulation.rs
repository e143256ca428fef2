//! A crawl of a made-up web on a made-up clock: every page once, and politely.

use super::{F, OK, Step, link, rules, seed, web};
use crate::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use trawl_model::{ErrorClass, UnixMillis};

/// A small world of hosts, pages with links, delays and failures, crawled on a made-up clock.
fn simulate(links: &[Vec<usize>], hosts: usize, per_host: u32, fail_every: usize) {
    let url = |n: usize| format!("http://h{}.example/{n}", n % hosts);
    let delay = 1000;
    let config =
        Config { per_host, max_depth: 99, per_ip: Some(2), backoff: Duration::from_secs(3), ..Config::default() };
    let mut f = F::new(config);
    seed(&mut f, &url(0));
    let (mut now, mut busy): (i64, Vec<(i64, Lease)>) = (0, Vec::new());
    let mut last_end: BTreeMap<String, i64> = BTreeMap::new();
    let mut last_start: BTreeMap<String, i64> = BTreeMap::new();
    let (mut settled, mut robots, mut turns) = (BTreeSet::new(), BTreeSet::new(), 0usize);
    loop {
        turns += 1;
        assert!(turns < 100_000, "no end");
        let next = f.step(UnixMillis(now));
        let until = match next {
            Step::Lease(l) => {
                let host = web(l.url()).host().to_owned();
                let at_host = busy.iter().filter(|(_, b)| web(b.url()).host() == host).count();
                assert!(at_host < per_host as usize);
                if per_host == 1
                    && let Some(end) = last_end.get(&host)
                {
                    assert!(now >= end + delay, "{} at {now}, last ended {end}", l.url());
                }
                if let Some(start) = last_start.insert(host, now) {
                    assert!(now >= start + delay);
                }
                match l.id {
                    LeaseId::Robots(_) => assert!(robots.insert(l.url().to_owned()), "{} twice", l.url()),
                    LeaseId::Page(_) => assert!(robots.contains(web(l.url()).robots().as_str())),
                }
                busy.push((now + 1 + (turns as i64 * 37) % 2500, l));
                continue;
            }
            Step::Refuse(..) | Step::Lookup(..) => panic!("nothing is refused or looked up here"),
            Step::WaitUntil(at) => Some(at.0),
            Step::Blocked => None,
            Step::Empty => break,
        };
        let soonest = busy.iter().map(|(end, _)| *end).min();
        now = match (until, soonest) {
            (Some(a), Some(b)) => a.min(b),
            (Some(a), None) => a,
            (None, Some(b)) => b,
            (None, None) => panic!("blocked by nothing"),
        };
        while let Some(at) = busy.iter().position(|(end, _)| *end <= now) {
            let (_, l) = busy.remove(at);
            let host = web(l.url()).host().to_owned();
            last_end.insert(host.clone(), now);
            let ip = Ipv4Addr::new(192, 0, 2, u8::try_from(host.len() % 3).unwrap()).into();
            let n: usize = l.url().rsplit('/').next().unwrap().parse().unwrap_or(0);
            let failing = fail_every > 0 && n % fail_every == 1 && l.attempt == 1;
            let answer = if failing { Answer::Failed(ErrorClass::Reset) } else { OK };
            f.released(UnixMillis(now), l.id, answer, Some(ip));
            match l.id {
                LeaseId::Robots(_) => f.robots(UnixMillis(now), l.id, rules("/never", None)),
                LeaseId::Page(id) => {
                    if !f.acknowledged(UnixMillis(now), id, answer, None) {
                        assert!(settled.insert(n), "{n} twice");
                        let from: Arc<str> = l.url().into();
                        for to in &links[n] {
                            f.discover(link(&l, &from, &url(*to)));
                        }
                    }
                }
            }
        }
    }
    // What can be reached was fetched, once.
    let (mut reach, mut todo) = (BTreeSet::from([0]), vec![0]);
    while let Some(n) = todo.pop() {
        todo.extend(links[n].iter().filter(|to| reach.insert(**to)));
    }
    assert_eq!(settled, reach);
    assert_eq!((f.out(), f.pending()), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_page_once_and_politely(
        links in proptest::collection::vec(proptest::collection::vec(0usize..30, 0..6), 30),
        hosts in 1usize..8,
        per_host in 1u32..3,
        fail_every in 0usize..5,
    ) {
        simulate(&links, hosts, per_host, fail_every);
    }
}
