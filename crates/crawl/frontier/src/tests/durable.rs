//! What survives.

use super::*;
use trawl_io::fault::Loss;

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
