//! What survives.

use super::*;
use trawl_io::fault::{FaultFs, Loss};

#[test]
fn limits_hold_back_and_let_go() {
    let mut f = F::new(Config { max_pages: Some(3), max_pages_per_host: Some(2), delay: Duration::ZERO, ..ignoring() });
    for url in
        ["http://a.example/1", "http://a.example/2", "http://a.example/3", "http://b.example/1", "http://c.example/"]
    {
        assert_eq!(seed(&mut f, url), Admission::New);
    }
    let mut fetched = Vec::new();
    while let Step::Lease(l) = f.step(UnixMillis(1)) {
        done(&mut f, 1, &l, OK);
        fetched.push(l.url().to_owned());
    }
    assert_eq!(fetched, ["http://a.example/1", "http://b.example/1", "http://c.example/"]);
    assert_eq!((f.step(UnixMillis(2)), f.pending()), (Step::Empty, 2));
    // With a larger limit it goes on where it was.
    f.inner.sync().unwrap();
    let disk = f.disk.reboot(Loss::All);
    let mut f = F::on(disk, Config { max_pages: Some(9), ..f.config().clone() }, 3);
    let l = lease(&mut f, 3);
    assert_eq!(l.url(), "http://a.example/2");
    done(&mut f, 3, &l, OK);
    assert_eq!((f.step(UnixMillis(4)), f.pending()), (Step::Empty, 1), "two of a host");
}

#[test]
fn seeds_come_before_links_under_a_limit() {
    let mut f = F::new(Config { max_pages: Some(2), max_depth: 1, delay: Duration::ZERO, ..ignoring() });
    f.set_seeds_open(true);
    seed(&mut f, "http://a.example/");
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, OK);
    let from: Arc<str> = first.url().into();
    f.discover(link(&first, &from, "http://b.example/link"));
    assert_eq!(f.step(UnixMillis(0)), Step::Empty, "links wait");
    seed(&mut f, "http://c.example/");
    f.set_seeds_open(false);
    assert_eq!(lease(&mut f, 1).url(), "http://c.example/");
    assert_eq!(f.step(UnixMillis(1)), Step::Blocked);
}

/// Which pages a host has among the seeds is known when their list ends.
#[test]
fn seeds_come_before_links_under_a_limit_of_a_host() {
    let mut f = F::new(Config { max_pages_per_host: Some(3), max_depth: 1, delay: Duration::ZERO, ..ignoring() });
    f.set_seeds_open(true);
    seed(&mut f, "http://a.example/");
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, status(302));
    let from: Arc<str> = first.url().into();
    let sent = web("http://a.example/sent");
    let id = f.id_of_redirect(page(first.id), &sent).unwrap();
    f.discover(Candidate::redirect(id, sent, &from, 0, 0, None));
    for n in 0..5 {
        f.discover(link(&first, &from, &format!("http://a.example/link/{n}")));
    }
    assert_eq!(f.step(UnixMillis(0)), Step::Empty, "links and redirects wait");
    for url in ["http://a.example/1", "http://b.example/"] {
        seed(&mut f, url);
    }
    f.set_seeds_open(false);
    let mut fetched = Vec::new();
    while let Step::Lease(l) = f.step(UnixMillis(1)) {
        done(&mut f, 1, &l, OK);
        fetched.push(l.url().trim_start_matches("http://").to_owned());
    }
    fetched.sort();
    assert_eq!(fetched, ["a.example/1", "a.example/sent", "b.example/"]);
}

#[test]
fn a_limit_on_pages_keeps_room_for_every_seed() {
    let config = Config { max_pages: Some(4), max_depth: 1, delay: Duration::from_secs(9), ..ignoring() };
    let mut f = F::new(Config { max_pages_per_host: Some(2), ..config });
    f.set_seeds_open(true);
    for url in ["http://a.example/", "http://b.example/1", "http://b.example/2", "http://b.example/3"] {
        seed(&mut f, url);
    }
    f.set_seeds_open(false);
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, OK);
    let from: Arc<str> = first.url().into();
    f.discover(link(&first, &from, "http://c.example/link"));
    assert_eq!(lease(&mut f, 1).url(), "http://b.example/1");
    // c.example is idle and free, but every page that is left of the limit belongs to a seed.
    assert!(matches!(f.step(UnixMillis(2)), Step::Blocked | Step::WaitUntil(_)), "the link waits");
    // The third of b.example is over the limit of its host: nobody needs its room any more.
    f.inner.sync().unwrap();
    let mut f = F::on(f.disk.reboot(Loss::All), f.config().clone(), 3);
    f.set_seeds_waiting(3);
    for (at, url) in [(20_000, "http://b.example/1"), (40_000, "http://b.example/2")] {
        let l = lease(&mut f, at);
        assert_eq!(l.url(), url);
        done(&mut f, at, &l, OK);
    }
    assert_eq!(f.step(UnixMillis(60_000)), Step::Empty);
    assert!(f.release_seed_room());
    assert_eq!(lease(&mut f, 60_001).url(), "http://c.example/link");
    assert!(!f.release_seed_room(), "nothing is kept any more");
}

/// Windows that get few rows at a time: links among the recent changes take no place that belongs to seeds in the files.
#[test]
fn a_limit_on_pages_keeps_room_for_seeds_where_windows_are_short_of_memory() {
    let config = Config { max_pages: Some(91), max_depth: 1, delay: Duration::ZERO, ..ignoring() };
    let config = Config { memory_bytes: 64 << 10, background: false, ..config };
    let mut f = F::on(FaultFs::new(), config, 0);
    // These have all the memory for windows.
    for n in 0..50 {
        seed(&mut f, &format!("http://h{n}.example/"));
        f.pause(UnixMillis(0), &format!("h{n}.example"), true).unwrap();
    }
    for n in 0..41 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    f.flush().unwrap();
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, OK);
    let from: Arc<str> = first.url().into();
    for n in 0..20 {
        f.discover(link(&first, &from, &format!("http://a.example/link/{n}")));
    }
    let mut fetched = 1;
    while let Step::Lease(l) = f.step(UnixMillis(1)) {
        assert_eq!(l.source(), Source::Seed, "{}", l.url());
        done(&mut f, 1, &l, OK);
        fetched += 1;
    }
    assert_eq!((fetched, f.pending()), (41, 70));
}

#[test]
fn after_a_crash_hosts_rest_and_nothing_is_lost() {
    let mut f = F::new(Config { delay: Duration::from_secs(7), ..ignoring() });
    for n in 0..3 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, OK);
    let _lost_in_the_crash = lease(&mut f, 7000);
    f.inner.sync().unwrap();
    seed(&mut f, "http://a.example/never-acknowledged");
    let mut f = f.crash(100_000);
    assert_eq!(wait(&mut f, 100_000), 107_000);
    assert_eq!(lease(&mut f, 107_000).url(), "http://a.example/1");
    assert_eq!((f.pending(), f.known()), (2, 3));
}

#[test]
fn a_restart_remembers_robots_trouble_and_orders() {
    let config = Config { parse_robots: Arc::new(|_| Arc::new(Deny("/no", Some(3000)))), ..Config::default() };
    let mut f = F::new(config);
    seed(&mut f, "http://a.example/x");
    seed(&mut f, "http://a.example/no");
    seed(&mut f, "http://b.example/");
    seed(&mut f, "http://c.example/");
    let robots = lease(&mut f, 0);
    done(&mut f, 0, &robots, OK);
    let site = f.errand_site(robots.id).unwrap().to_owned();
    f.robots(UnixMillis(0), robots.id, rules("/no", Some(3000)));
    f.keep_robots(UnixMillis(0), &site, "Disallow: /no").unwrap();
    let b = lease(&mut f, 0);
    done(&mut f, 0, &b, Answer::Failed(ErrorClass::ConnectRefused));
    f.robots(UnixMillis(0), b.id, RobotsAnswer::Unavailable(ErrorClass::ConnectRefused, "nobody".into()));
    f.pause(UnixMillis(0), "c.example", true).unwrap();
    f.inner.sync().unwrap();
    for flush in [false, true] {
        if flush {
            f.flush().unwrap();
        }
        f = f.crash(1000);
        let report = |host| f.host_report(host).unwrap();
        assert_eq!((report("b.example").failures, report("b.example").state), (1, "backoff"));
        assert_eq!(report("c.example").state, "paused");
    }
    let x = lease(&mut f, 4000);
    assert_eq!((x.url(), x.robots), ("http://a.example/x", RobotsVerdict::Allowed));
    done(&mut f, 4000, &x, OK);
    assert!(matches!(f.step(UnixMillis(7000)), Step::Refuse(_, ErrorClass::RobotsDenied, _)));
    let at = wait(&mut f, 7000);
    assert!((30_000..=60_000).contains(&at), "{at}");
    f.pause(UnixMillis(7000), "c.example", false).unwrap();
    assert_eq!(lease(&mut f, 7000).url(), "http://c.example/robots.txt");
}

#[test]
fn a_clock_that_was_set_back_holds_nobody_up() {
    let hour = 3_600_000;
    let mut f = F::new(ignoring());
    seed(&mut f, "http://a.example/x");
    seed(&mut f, "http://a.example/y");
    let x = lease(&mut f, hour);
    done(&mut f, hour, &x, status(500));
    f.inner.sync().unwrap();
    let mut f = f.crash(0);
    let (at, y) = soonest(&mut f, 0);
    assert_eq!((at, y.url()), (1000, "http://a.example/y"));
    done(&mut f, at, &y, OK);
    let (at, x) = soonest(&mut f, at);
    assert!(at <= 61_000 && x.url() == "http://a.example/x", "{at}");
}

#[test]
fn more_rows_than_fit_are_fetched_once_each() {
    let mut f = F::new(Config { delay: Duration::ZERO, ..ignoring() });
    let mut expected = std::collections::BTreeSet::new();
    for n in 0..3000 {
        let url = format!("http://h{}.example/{n}", n % 7);
        assert_eq!(seed(&mut f, &url), Admission::New);
        assert_eq!(seed(&mut f, &url), Admission::Seen);
        expected.insert(url);
        f.inner.commit().unwrap();
    }
    assert!(f.store_stats().flushes > 10 && f.store_stats().merges > 1, "{:?}", f.store_stats());
    let mut crashes = 0;
    let mut now = 1;
    while !expected.is_empty() {
        match f.step(UnixMillis(now)) {
            Step::Lease(l) => {
                assert!(expected.remove(l.url()), "{} again", l.url());
                done(&mut f, now, &l, OK);
            }
            Step::WaitUntil(at) => now = at.0,
            other => panic!("{other:?}, {} left", expected.len()),
        }
        if expected.len() % 500 == 77 && crashes < 5 {
            crashes += 1;
            f.inner.sync().unwrap();
            f = f.crash(now);
        }
    }
    assert_eq!((f.step(UnixMillis(now)), f.pending(), f.known()), (Step::Empty, 0, 3000));
}

#[test]
fn what_does_not_fit_the_set_is_looked_up() {
    let mut f = F::new(Config { max_depth: 0, ..ignoring() });
    f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
    for round in 0..2 {
        for n in 0..600 {
            let expected = if round == 0 { Admission::New } else { Admission::Seen };
            assert_eq!(seed(&mut f, &format!("http://h{}.example/{n}", n % 5)), expected, "{n}");
            f.inner.commit().unwrap();
        }
    }
    assert!(f.store_stats().flushes > 3);
    // A link that is too deep is not remembered.
    let url = web("http://x.example/");
    let id = Identity::Key.of(&url);
    assert_eq!(f.discover(Candidate::link(id, url, &"http://p/".into(), 0)), Admission::TooDeep);
    assert_eq!(seed(&mut f, "http://x.example/"), Admission::New);
}

#[test]
fn traps_are_parked_listed_and_let_go() {
    let mut f = F::new(Config { max_depth: 3, trap_threshold: 4, delay: Duration::ZERO, ..ignoring() });
    seed(&mut f, "http://a.example/");
    let root = lease(&mut f, 0);
    let from: Arc<str> = root.url().into();
    done(&mut f, 0, &root, OK);
    let mut admitted = 0;
    for n in 0..10 {
        let candidate = link(&root, &from, &format!("http://a.example/{}/05/", 2040 + n));
        admitted += usize::from(f.discover(candidate) == Admission::New);
    }
    assert_eq!((admitted, f.parked()), (4, 6));
    // A list is never touched.
    assert_eq!(seed(&mut f, "http://a.example/2090/05/"), Admission::New);
    let report = f.host_report("a.example").unwrap();
    assert_eq!((report.parked, report.traps.as_slice()), (6, &["calendar"][..]));
    f.inner.sync().unwrap();
    let mut f = f.crash(1);
    assert_eq!(f.parked(), 6);
    let mut fetched = 0;
    while let Step::Lease(l) = f.step(UnixMillis(2)) {
        done(&mut f, 2, &l, OK);
        fetched += 1;
    }
    assert_eq!(fetched, 5);
    assert!(f.release(UnixMillis(3), "a.example").unwrap());
    while let Step::Lease(l) = f.step(UnixMillis(3)) {
        done(&mut f, 3, &l, OK);
        fetched += 1;
    }
    assert_eq!((fetched, f.parked(), f.pending()), (11, 0, 0));
}

/// A forum that gives every visit another session id, in a parameter of the path.
#[test]
fn session_ids_in_paths_are_parked_and_counted() {
    let mut f = F::new(Config { max_depth: 3, trap_threshold: 4, delay: Duration::ZERO, ..ignoring() });
    seed(&mut f, "http://a.example/");
    let root = lease(&mut f, 0);
    done(&mut f, 0, &root, OK);
    let from: Arc<str> = root.url().into();
    for n in 0..10 {
        let url = format!("http://a.example/topic;jsessionid=A8F5F167F44F496{n}?t={n}");
        let expected = if n < 4 { Admission::New } else { Admission::Parked };
        assert_eq!(f.discover(link(&root, &from, &url)), expected, "{url}");
    }
    let report = f.host_report("a.example").unwrap();
    assert_eq!((f.parked(), report.parked, report.traps), (6, 6, vec!["session"]));
}

/// Which combinations of filters a host had when it was flagged is known after a restart, too.
#[test]
fn pages_of_known_filters_are_no_trap_after_a_restart() {
    for (restart, flush) in [(false, false), (true, false), (true, true)] {
        let config = Config { max_depth: 3, trap_threshold: 4, delay: Duration::ZERO, ..ignoring() };
        let mut f = F::on(FaultFs::new(), Config { memory_bytes: 1 << 20, background: false, ..config }, 0);
        seed(&mut f, "http://a.example/");
        let root = lease(&mut f, 0);
        done(&mut f, 0, &root, OK);
        let from: Arc<str> = root.url().into();
        let offer = |f: &mut F, color: u32, page: u32| {
            let url = format!("http://a.example/shop?color={color}&size=1&sort=up&page={page}");
            f.discover(link(&root, &from, &url))
        };
        let first: Vec<_> = (0..6).map(|color| offer(&mut f, color, 1)).collect();
        let (new, parked) = (Admission::New, Admission::Parked);
        assert_eq!(first, [new, new, new, new, parked, parked]);
        if restart {
            if flush {
                f.flush().unwrap();
            }
            f = f.crash_synced(1);
        }
        let second: Vec<_> = (0..6).rev().map(|color| offer(&mut f, color, 2)).collect();
        assert_eq!(second, [parked, parked, new, new, new, new], "{restart} {flush}");
        assert_eq!((f.parked(), f.host_report("a.example").unwrap().traps), (4, vec!["facets"]));
    }
}

#[test]
fn leases_expire() {
    let mut f = F::new(Config { lease_ttl: Some(Duration::from_secs(60)), ..ignoring() });
    seed(&mut f, "http://a.example/");
    let first = lease(&mut f, 0);
    assert_eq!(wait(&mut f, 10), 60_000);
    let (at, again) = soonest(&mut f, 10);
    assert_eq!((at, again.url()), (61_000, first.url()));
    let late = f.settle(UnixMillis(61_001), &[Outcome { id: page(first.id), answer: OK, note: None }]).unwrap();
    // The same page: whoever answers first settles it.
    assert_eq!(late, [Settled::Done { depth: 0 }]);
    assert_eq!(f.step(UnixMillis(61_001)), Step::Empty);
}

#[test]
fn a_pack_is_the_same_whatever_was_flushed() {
    let pack = |often: bool| {
        let mut f = F::new(Config { delay: Duration::ZERO, ..ignoring() });
        for n in 0..500 {
            seed(&mut f, &format!("http://h{}.example/{n}", n % 5));
            f.inner.commit().unwrap();
            if often && n % 50 == 0 {
                f.flush().unwrap();
            }
        }
        for _ in 0..40 {
            let l = lease(&mut f, 5);
            done(&mut f, 5, &l, OK);
        }
        f.pack(std::path::Path::new("/pack.meguri"), false, &mut |_| ()).unwrap();
        f.disk.files().remove(std::path::Path::new("/pack.meguri")).unwrap()
    };
    assert!(pack(false) == pack(true));
}

#[test]
fn it_conforms_durable_and_in_memory() {
    let on_disk = crate::conformance::run(&mut |config| Ok(Box::new(F::new(config).inner)));
    assert!(on_disk.is_empty(), "{on_disk:?}");
    let in_memory = crate::conformance::run(&mut |config| Ok(Box::new(Frontier::in_memory(config))));
    assert!(in_memory.is_empty(), "{in_memory:?}");
}

/// A frontier that forgets what it knows is found out.
#[test]
fn the_suite_finds_faults() {
    let faults = crate::conformance::run(&mut |config| {
        Ok(Box::new(Frontier::in_memory(Config { delay: Duration::ZERO, max_attempts: 1, max_pages: None, ..config })))
    });
    assert!(faults.len() >= 3, "{faults:?}");
}

/// Fetches all that may be fetched, and tells what that was.
fn drain(f: &mut F, now: i64) -> Vec<String> {
    let mut fetched = Vec::new();
    let mut now = now;
    loop {
        match f.step(UnixMillis(now)) {
            Step::Lease(l) => {
                done(f, now, &l, OK);
                fetched.push(l.url().to_owned());
            }
            Step::WaitUntil(at) => now = at.0,
            Step::Empty => return fetched,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn after_the_end_seeds_are_added_and_a_recrawl_begins() {
    let hour = 3_600_000;
    let mut f = F::new(Config { delay: Duration::ZERO, max_pages: Some(450), ..ignoring() });
    for n in 0..300 {
        seed(&mut f, &format!("http://h{}.example/{n}", n % 3));
    }
    assert_eq!(drain(&mut f, 10).len(), 300);
    let mut f = f.crash_synced(hour);
    // What is known stays known, what is new is fetched.
    assert_eq!(seed(&mut f, "http://h0.example/0"), Admission::Seen);
    assert_eq!(seed(&mut f, "http://new.example/"), Admission::New);
    assert_eq!(drain(&mut f, hour), ["http://new.example/"]);
    // Another round, of the pages of the first hour only; one host was given up meanwhile.
    f.inner.hosts[1].given_up = Some("long ago".into());
    let which = Recrawl { before: UnixMillis(hour - 1), host: None, gone: false };
    assert_eq!(f.inner.recrawl(UnixMillis(2 * hour), &which).unwrap(), 300);
    assert_eq!((f.pending(), f.inner.recrawl(UnixMillis(2 * hour), &which).unwrap()), (300, 0));
    let mut f = f.crash_synced(2 * hour);
    // 301 pages were handed out, the limit is 450, and each page of a recrawl counts.
    let again = drain(&mut f, 2 * hour);
    assert_eq!((again.len(), f.pending()), (149, 151));
    assert_eq!(again.iter().collect::<std::collections::BTreeSet<_>>().len(), 149, "none of them twice");
    f.inner.sync().unwrap();
    f = F::on(f.disk.reboot(Loss::All), Config { max_pages: None, ..f.config().clone() }, 3 * hour);
    assert_eq!(drain(&mut f, 3 * hour).len(), 151);
    assert_eq!((f.pending(), f.known()), (0, 301));
    // One host.
    let one = Recrawl { before: UnixMillis(9 * hour), host: Some("H2.example"), gone: true };
    assert_eq!(f.inner.recrawl(UnixMillis(9 * hour), &one).unwrap(), 100);
    let fetched = drain(&mut f, 9 * hour);
    assert!(fetched.len() == 100 && fetched.iter().all(|url| url.starts_with("http://h2.")), "{fetched:?}");
    assert_eq!(f.inner.recrawl(UnixMillis(9 * hour), &Recrawl { host: Some("nobody.example"), ..one }).unwrap(), 0);
}

#[test]
fn a_recrawl_in_memory() {
    let config = Config { delay: Duration::ZERO, ..ignoring() };
    let mut f = Frontier::in_memory(config);
    let url = web("http://a.example/");
    f.offer(UnixMillis(0), &[Candidate::seed(Identity::Key, url, None)]).unwrap();
    for round in 0..3 {
        let mut work = Vec::new();
        f.lease(UnixMillis(round), 1, &mut work).unwrap();
        let [Work::Fetch(lease)] = &work[..] else { panic!("{work:?}") };
        assert_eq!(lease.attempt, round as u32 + 1);
        f.settle(UnixMillis(round), &[Outcome { id: page(lease.id), answer: OK, note: None }]).unwrap();
        let which = Recrawl { before: UnixMillis(round), host: None, gone: false };
        assert_eq!(f.recrawl(UnixMillis(round), &which).unwrap(), 1);
    }
}

#[test]
fn a_larger_depth_is_refused_or_brings_links_back() {
    let mut f = F::new(Config { max_depth: 1, delay: Duration::ZERO, ..ignoring() });
    let open = |f: &F, max_depth, reopens| {
        let dir = std::path::Path::new("/frontier");
        let config = Config { max_depth, reopens, ..f.config().clone() };
        Frontier::open(&f.disk.reboot(Loss::All).shared(), dir, config, UnixMillis(9), "test")
    };
    seed(&mut f, "http://a.example/");
    f.inner.sync().unwrap();
    assert!(open(&f, 5, false).is_ok(), "nothing was turned away yet");
    let root = lease(&mut f, 0);
    f.acknowledged(UnixMillis(0), page(root.id), OK, Some(70));
    let from: Arc<str> = root.url().into();
    for n in 0..200 {
        assert_eq!(f.discover(link(&root, &from, &format!("http://a.example/{n}"))), Admission::New);
    }
    for n in 0..200 {
        let near = lease(&mut f, 1);
        f.acknowledged(UnixMillis(1), page(near.id), OK, Some(100 + n));
        assert_eq!(f.discover(link(&near, &near.url().into(), "http://far.example/")), Admission::TooDeep);
    }
    f.inner.sync().unwrap();
    for flushed in [false, true] {
        if flushed {
            f.flush().unwrap();
        }
        let refused = open(&f, 2, false).map(|_| ()).unwrap_err().to_string();
        assert!(
            refused.contains("created with depth 1, and deeper links were not kept, but opened with 2"),
            "{refused}"
        );
        assert!(open(&f, 1, false).is_ok() && open(&f, 0, false).is_ok());
    }
    let mut f = F::on(f.disk.reboot(Loss::All), Config { max_depth: 2, reopens: true, ..f.config().clone() }, 9);
    let mut pages = f.inner.reopening().unwrap().unwrap();
    let (mut notes, mut some) = (std::collections::BTreeSet::new(), pages.next(64).unwrap());
    while !some.is_empty() {
        assert!(some.iter().all(|page| page.depth == 1) && some.len() <= 64);
        notes.extend(some.iter().map(|page| page.note));
        some = pages.next(64).unwrap();
    }
    assert_eq!(notes, (100..300).collect());
    let far = web("http://far.example/");
    let far = Candidate::link(Identity::Key.of(&far), far, &"http://a.example/7".into(), 1);
    assert_eq!(f.discover(far), Admission::New);
    f.inner.reopened();
    f.inner.sync().unwrap();
    assert!(open(&f, 9, false).is_ok(), "nothing is missing any more");
    assert!(f.inner.reopening().unwrap().is_none());
}

/// Depths beyond what the set of known URLs tells apart.
#[test]
fn a_shorter_way_counts_however_deep() {
    for flush in [false, true] {
        let mut f = F::new(Config { max_depth: 1000, ..ignoring() });
        let deep = |depth: u32| {
            let url = web("http://a.example/deep");
            Candidate::link(Identity::Key.of(&url), url, &"http://a.example/".into(), depth - 1)
        };
        assert_eq!(f.discover(deep(1001)), Admission::TooDeep);
        assert_eq!(f.discover(deep(900)), Admission::New);
        if flush {
            f.flush().unwrap();
        }
        assert_eq!(f.discover(deep(901)), Admission::Seen);
        assert_eq!(f.discover(deep(400)), Admission::Nearer);
        assert_eq!(f.discover(deep(400)), Admission::Seen);
        assert_eq!(f.discover(deep(200)), Admission::Nearer);
        assert_eq!((f.discover(deep(200)), f.discover(deep(900))), (Admission::Seen, Admission::Seen));
        assert_eq!(lease(&mut f, 0).depth, 200);
    }
}

/// A lease ends with the process, and the page that named the shorter way is not asked for again.
#[test]
fn a_shorter_way_to_a_leased_page_survives() {
    for flush in [false, true] {
        let mut f = F::new(Config { max_depth: 2, ..ignoring() });
        let found = |depth: u32| {
            let url = web("http://a.example/page");
            Candidate::link(Identity::Key.of(&url), url, &"http://b.example/".into(), depth - 1)
        };
        assert_eq!(f.discover(found(2)), Admission::New);
        if flush {
            f.flush().unwrap();
        }
        assert_eq!(lease(&mut f, 0).depth, 2);
        assert_eq!(f.discover(found(1)), Admission::Nearer);
        if flush {
            f.flush().unwrap();
        }
        let mut f = f.crash_synced(1_000_000);
        assert_eq!((f.known(), f.pending(), f.out()), (1, 1, 0));
        let (at, again) = soonest(&mut f, 1_000_000);
        assert_eq!((again.url(), again.depth), ("http://a.example/page", 1));
        done(&mut f, at, &again, OK);
        assert_eq!((f.step(UnixMillis(at + 10_000)), f.pending()), (Step::Empty, 0));
    }
}

#[test]
fn an_earned_interval_survives_a_flush() {
    let mut f = F::new(Config { delay: Duration::from_secs(1), ..ignoring() });
    seed(&mut f, "http://a.example/1");
    for n in 0..4 {
        let (at, l) = soonest(&mut f, n * 1_000_000);
        let plea = Answer::Response { status: 503, retry_after_ms: Some(0), cut: false };
        done(&mut f, at, &l, if n < 3 { plea } else { OK });
        seed(&mut f, &format!("http://a.example/more-{n}"));
    }
    let before = f.host_report("a.example").unwrap().delay_ms;
    assert!(before > 1000, "{before}");
    f.flush().unwrap();
    let f = f.crash_synced(9_000_000);
    assert_eq!(f.host_report("a.example").unwrap().delay_ms, before);
}

/// What a flush and the end of a run read and write depends on what changed, not on what there is.
#[test]
fn a_flush_and_the_end_cost_what_changed() {
    let cost = |urls: u64| {
        let config = Config { delay: Duration::ZERO, ..ignoring() };
        let config = Config { memory_bytes: 64 << 20, background: false, ..config };
        let mut f = F::on(FaultFs::new(), config, 0);
        let offer = |f: &mut F, from: u64, to: u64| {
            let urls = (from..to).map(|n| web(&format!("http://h{}.example/page/{n}", n % 64)));
            let seeds: Vec<_> = urls.map(|url| Candidate::seed(Identity::Key, url, None)).collect();
            f.offer(UnixMillis(0), &seeds).unwrap();
        };
        offer(&mut f, 0, urls);
        f.inner.compact().unwrap();
        // The same few changes: offers, a fetch of each host.
        offer(&mut f, urls, urls + 500);
        for n in 0..64 {
            let l = lease(&mut f, 10 + n);
            done(&mut f, 10 + n, &l, OK);
        }
        f.inner.sync().unwrap();
        let before = f.disk.counts();
        f.inner.flush().unwrap();
        let flushed = f.disk.counts();
        f.inner.close().unwrap();
        let ended = f.disk.counts();
        let bytes = |from: trawl_io::fault::Counts, to: trawl_io::fault::Counts| {
            (to.bytes_read - from.bytes_read, to.bytes_written - from.bytes_written)
        };
        (bytes(before, flushed), bytes(flushed, ended))
    };
    let ((small_read, small_written), small_end) = cost(2_000);
    let ((large_read, large_written), large_end) = cost(64_000);
    assert!(small_written > 10_000, "{small_written}");
    // A base of 32 times as many rows: names of files, varints of arrivals, nothing more.
    assert!(
        large_read <= small_read * 11 / 10 && large_written <= small_written * 11 / 10,
        "{large_read} {large_written}, {small_read} {small_written}"
    );
    assert_eq!((small_end, large_end), ((0, 0), (0, 0)), "nothing is left to do at the end");
}

/// Files are read, written and merged aside while leases go on, come back unused, expire and are settled.
#[test]
fn work_aside_loses_nothing() {
    let config = Config { delay: Duration::ZERO, max_depth: 1, lease_ttl: Some(Duration::from_secs(60)), ..ignoring() };
    let mut f = F::on(FaultFs::new(), Config { memory_bytes: 64 << 10, ..config }, 0);
    let mut expected = std::collections::BTreeSet::new();
    for n in 0..6000u32 {
        let url = format!("http://h{}.example/{n}", n % 40);
        assert_eq!(seed(&mut f, &url), Admission::New);
        expected.insert(url);
        f.inner.commit().unwrap();
    }
    let (mut now, mut dice, mut aside) = (1, 5u32, 0);
    while !expected.is_empty() {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        match f.step(UnixMillis(now)) {
            Step::Lease(l) => match dice >> 28 {
                0 => f.inner.returned(UnixMillis(now), l.id).unwrap(),
                // Never answered: it expires.
                1 => {}
                _ => {
                    assert!(expected.remove(l.url()), "{} again", l.url());
                    done(&mut f, now, &l, OK);
                    let url = format!("{}/link", l.url());
                    if dice >> 28 == 2 && l.depth == 0 {
                        assert_eq!(f.discover(link(&l, &l.url().into(), &url)), Admission::New);
                        expected.insert(url);
                    }
                }
            },
            Step::WaitUntil(at) => {
                aside += usize::from(f.inner.refilling.is_some());
                now = now.max(at.0).max(now + 1);
                std::thread::yield_now();
            }
            other => panic!("{other:?}, {} left, {} pending", expected.len(), f.pending()),
        }
    }
    assert!(aside > 0 && f.store_stats().flushes > 10 && f.store_stats().merges > 1, "{aside} {:?}", f.store_stats());
    while let Step::WaitUntil(at) = f.step(UnixMillis(now)) {
        now = at.0;
    }
    assert_eq!((f.step(UnixMillis(now)), f.pending()), (Step::Empty, 0));
    f.inner.close().unwrap();
}

/// Opening reads the log, the key columns and the hosts. What a row has besides, its texts most of all, stays on disk.
#[test]
fn a_resume_reads_keys_and_hosts_and_no_texts() {
    let cost = |meta_len: usize| {
        let config = Config { delay: Duration::ZERO, ..ignoring() };
        let mut f = F::on(FaultFs::new(), Config { memory_bytes: 64 << 20, background: false, ..config }, 0);
        let mut dice = 1u64;
        let mut seeds = Vec::new();
        for n in 0..4000 {
            let mut meta = String::new();
            while meta.len() < meta_len {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                meta.push_str(&format!("{:x}", dice >> 8));
            }
            let url = web(&format!("http://h{}.example/{n}", n % 50));
            seeds.push(Candidate::seed(Identity::Key, url, Some(format!("{{\"x\":\"{meta}\"}}").into())));
        }
        f.offer(UnixMillis(0), &seeds).unwrap();
        f.inner.compact().unwrap();
        f.inner.sync().unwrap();
        let base: usize = f.disk.files().values().map(Vec::len).sum();
        let disk = f.disk.reboot(Loss::All);
        let f = F::on(disk, f.config().clone(), 9);
        assert_eq!((f.known(), f.pending()), (4000, 4000));
        (base as u64, f.disk.counts().bytes_read)
    };
    let ((small, small_read), (large, large_read)) = (cost(10), cost(1000));
    assert!(large > 10 * small, "{large} {small}");
    assert!(large_read < small_read + small_read / 10 + 4096, "{large_read} of {large}, {small_read} of {small}");
}
