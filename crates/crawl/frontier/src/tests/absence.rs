//! Origins that are away beside others of their host that are not.

use super::*;

const REFUSED: Answer = Answer::Failed(ErrorClass::ConnectRefused);

/// Serves a host with one closed port until nothing is left: what was fetched, what was refused, and when.
fn serve(f: &mut F, closed: &str, mut now: i64) -> (Vec<String>, usize, i64) {
    let (mut fetched, mut refused) = (Vec::new(), 0);
    loop {
        match f.step(UnixMillis(now)) {
            Step::Lease(l) => {
                let answer = if l.url().starts_with(closed) { REFUSED } else { OK };
                done(f, now, &l, answer);
                match (l.id, answer) {
                    (LeaseId::Robots(_), OK) => f.robots(UnixMillis(now), l.id, rules("", None)),
                    (LeaseId::Robots(_), _) => {
                        let failed = RobotsAnswer::Unavailable(ErrorClass::ConnectRefused, "refused".into());
                        f.robots(UnixMillis(now), l.id, failed);
                    }
                    (LeaseId::Page(_), OK) => fetched.push(l.url().to_owned()),
                    (LeaseId::Page(_), _) => {}
                }
            }
            Step::Refuse(l, class, _) => {
                assert_eq!((class, l.url().starts_with(closed)), (ErrorClass::DeadHost, true), "{}", l.url());
                f.acknowledged(UnixMillis(now), page(l.id), Answer::Failed(class), None);
                refused += 1;
            }
            Step::WaitUntil(at) => now = at.0,
            Step::Empty => return (fetched, refused, now),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_closed_port_does_not_hold_the_others_of_its_host() {
    for robots in [RobotsPolicy::Ignore, RobotsPolicy::Honour] {
        let mut f = F::new(Config { give_up_after: Duration::from_secs(600), robots, ..Config::default() });
        // More of the closed one than a window holds, and all of them first.
        for n in 0..100 {
            seed(&mut f, &format!("http://a.example:81/{n}"));
        }
        for n in 0..100 {
            seed(&mut f, &format!("http://a.example/{n}"));
        }
        let mut live = Vec::new();
        let mut now = 0;
        while live.len() < 100 {
            match f.step(UnixMillis(now)) {
                Step::WaitUntil(at) => now = at.0,
                Step::Lease(l) => {
                    let answer = if l.url().starts_with("http://a.example:81/") { REFUSED } else { OK };
                    done(&mut f, now, &l, answer);
                    match l.id {
                        LeaseId::Robots(_) if answer == OK => f.robots(UnixMillis(now), l.id, rules("", None)),
                        LeaseId::Robots(_) => {
                            let failed = RobotsAnswer::Unavailable(ErrorClass::ConnectRefused, "refused".into());
                            f.robots(UnixMillis(now), l.id, failed);
                        }
                        LeaseId::Page(_) if answer == OK => live.push(l.url().to_owned()),
                        LeaseId::Page(_) => {}
                    }
                }
                other => panic!("{other:?} after {} pages", live.len()),
            }
        }
        assert!(now < 130_000, "{now}: a second each, and one for each attempt at the closed port");
        let (fetched, refused, at) = serve(&mut f, "http://a.example:81/", now);
        assert_eq!((fetched.len(), refused, f.pending()), (0, 100, 0));
        assert!((600_000..=1_900_000).contains(&at), "{at}");
    }
}

#[test]
fn a_robots_txt_that_fails_holds_its_own_origin_only() {
    let mut f = F::new(Config { robots_attempts: 3, ..Config::default() });
    for n in 0..40 {
        seed(&mut f, &format!("https://a.example/{n}"));
    }
    for n in 0..40 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    let (mut now, mut live) = (0, 0);
    while live < 40 {
        match f.step(UnixMillis(now)) {
            Step::WaitUntil(at) => now = at.0,
            Step::Lease(l) => {
                let sick = l.url().starts_with("https:");
                done(&mut f, now, &l, if sick { status(500) } else { OK });
                match l.id {
                    LeaseId::Robots(_) if sick => {
                        let failed = RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, "status 500".into());
                        f.robots(UnixMillis(now), l.id, failed);
                    }
                    LeaseId::Robots(_) => f.robots(UnixMillis(now), l.id, rules("", None)),
                    LeaseId::Page(_) => live += 1,
                }
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(now < 60_000, "{now}: nobody waited for the robots.txt of the other origin");
}

#[test]
fn an_origin_that_is_away_is_so_after_a_restart() {
    let mut f = F::new(Config { give_up_after: Duration::from_secs(600), delay: Duration::ZERO, ..ignoring() });
    for n in 0..50 {
        seed(&mut f, &format!("http://a.example:81/{n}"));
        seed(&mut f, &format!("http://a.example:82/{n}"));
    }
    let mut now = 0;
    // Port 82 is given up, port 81 went away later.
    while f.host_report("a.example").unwrap().given_up.is_none() {
        let (at, l) = soonest(&mut f, now);
        let answer = if l.url().contains(":82/") || at > 500_000 { REFUSED } else { status(500) };
        f.released(UnixMillis(at), l.id, answer, None);
        f.acknowledged(UnixMillis(at), page(l.id), answer, None);
        now = at;
    }
    let report = f.host_report("a.example").unwrap();
    assert!(report.given_up.as_ref().is_some_and(|why| why.starts_with("http://a.example:82: ")), "{report:?}");
    f.inner.sync().unwrap();
    for flush in [false, true, false] {
        if flush {
            f.flush().unwrap();
        }
        f = f.crash(now);
        assert_eq!(f.host_report("a.example").unwrap().given_up, report.given_up, "flushed: {flush}");
        assert_eq!(f.host_report("a.example").unwrap().failures, report.failures, "flushed: {flush}");
    }
    let mut refused = 0;
    while refused < 50 {
        match f.step(UnixMillis(now)) {
            Step::WaitUntil(at) => now = at.0,
            Step::Refuse(l, class, _) => {
                assert!(l.url().contains(":82/"), "{}", l.url());
                f.acknowledged(UnixMillis(now), page(l.id), Answer::Failed(class), None);
                refused += 1;
            }
            Step::Lease(l) => {
                assert!(l.url().contains(":81/"), "{}", l.url());
                done(&mut f, now, &l, OK);
            }
            other => panic!("{other:?}"),
        }
    }
    // Taken up again, it is asked.
    seed(&mut f, "http://a.example:82/new");
    assert!(f.take_up(UnixMillis(now), "a.example").unwrap());
    loop {
        let (at, l) = soonest(&mut f, now);
        done(&mut f, at, &l, OK);
        now = at;
        if l.url().ends_with(":82/new") {
            break;
        }
    }
}

/// Months later the server may be there again: what was fetched of it then must not be refused unasked.
#[test]
fn a_recrawl_asks_again_who_was_given_up() {
    let mut f = F::new(Config { give_up_after: Duration::from_secs(600), ..ignoring() });
    seed(&mut f, "http://a.example/first");
    seed(&mut f, "http://a.example/later");
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, OK);
    let (fetched, refused, now) = serve(&mut f, "http://a.example/", 0);
    assert_eq!((fetched.len(), refused), (0, 1));
    let mut f = f.crash_synced(now);
    assert!(f.host_report("a.example").unwrap().given_up.is_some());
    let crawled = Recrawl { before: UnixMillis(now), host: None, gone: false };
    assert_eq!(f.inner.recrawl(UnixMillis(now), &crawled).unwrap(), 1);
    let (fetched, refused, _) = serve(&mut f, "http://nobody.example/", now);
    assert_eq!((fetched, refused), (vec!["http://a.example/first".to_owned()], 0));

    // A robots.txt that was given up is asked for again, too; also when its host is taken up.
    for taken_up in [false, true] {
        let mut f = F::new(Config { robots_attempts: 1, delay: Duration::ZERO, ..Config::default() });
        seed(&mut f, "http://a.example/x");
        let robots = lease(&mut f, 0);
        done(&mut f, 0, &robots, status(500));
        let failed = RobotsAnswer::Unavailable(ErrorClass::RobotsUnavailable, "status 500".into());
        f.robots(UnixMillis(0), robots.id, failed);
        let again = match taken_up {
            true => f.take_up(UnixMillis(0), "a.example").unwrap(),
            false => {
                let Step::Refuse(l, class, _) = f.step(UnixMillis(0)) else { panic!() };
                f.acknowledged(UnixMillis(0), page(l.id), Answer::Failed(class), None);
                let gone = Recrawl { before: UnixMillis(0), host: None, gone: true };
                f.inner.recrawl(UnixMillis(0), &gone).unwrap() == 1
            }
        };
        assert!(again);
        let (_, robots) = soonest(&mut f, 0);
        assert_eq!(robots.url(), "http://a.example/robots.txt");
    }
}

#[test]
fn robots_txt_that_a_redirect_leads_to_nowhere_is_unavailable() {
    let mut f = F::new(Config { robots_attempts: 2, delay: Duration::ZERO, ..Config::default() });
    seed(&mut f, "http://a.example/x");
    let mut now = 0;
    for _ in 0..2 {
        let (at, own) = soonest(&mut f, now);
        assert_eq!(own.url(), "http://a.example/robots.txt");
        done(&mut f, at, &own, status(301));
        f.robots(UnixMillis(at), own.id, RobotsAnswer::Redirect(web("http://nowhere.example/robots.txt")));
        let (at, other) = soonest(&mut f, at);
        assert_eq!(other.url(), "http://nowhere.example/robots.txt");
        done(&mut f, at, &other, Answer::Failed(ErrorClass::DnsNxdomain));
        f.robots(UnixMillis(at), other.id, RobotsAnswer::Unavailable(ErrorClass::DnsNxdomain, "no such name".into()));
        now = at;
    }
    assert!(now >= 30_000, "{now}: it was tried again later");
    assert!(matches!(f.step(UnixMillis(now)), Step::Refuse(_, ErrorClass::RobotsUnavailable, _)));
}

/// Without a pause it would be ready again at once, and the crawl would never count as waiting for it.
#[test]
fn an_absent_host_rests_whatever_the_settings() {
    for (backoff, delay) in [(0, 0), (0, 1_000), (1, 0)] {
        let [backoff, delay] = [backoff, delay].map(Duration::from_millis);
        let mut f = F::new(Config { backoff, delay, ..ignoring() });
        seed(&mut f, "http://a.example/");
        let first = lease(&mut f, 0);
        done(&mut f, 0, &first, REFUSED);
        assert!(f.only_backoff(), "{backoff:?} {delay:?}");
        assert!(wait(&mut f, 0) >= 100, "{backoff:?} {delay:?}");
    }
}

#[test]
fn what_a_host_answered_is_not_hidden_by_giving_it_up() {
    let mut f = F::new(ignoring());
    for n in 0..3 {
        seed(&mut f, &format!("http://busy.example/{n}"));
    }
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, status(503));
    assert!(f.only_backoff());
    // Its own 503 is the last that is recorded of it; the pages that nobody asked for are refused with their host.
    assert_eq!(f.give_up(UnixMillis(5), "waited 5 s").unwrap(), Forgotten { answered: 1, unanswered: 0 });
    assert_eq!(refuse_all(&mut f, 5), 2);
    assert_eq!((f.step(UnixMillis(5)), f.pending()), (Step::Empty, 0));
}

#[test]
fn a_lookup_that_fails_is_recorded_and_new_names_go_first() {
    let ip: IpAddr = Ipv4Addr::new(192, 0, 2, 1).into();
    for robots in [RobotsPolicy::Ignore, RobotsPolicy::Honour] {
        let mut f = F::new(Config { lookups: 4, give_up_after: Duration::from_secs(300), robots, ..Config::default() });
        for n in 0..6 {
            seed(&mut f, &format!("http://dead{n}.example/"));
        }
        // Each failure is an outcome of its page, which waits; no fetch is made.
        let (mut failed, mut out, mut now) = (0, Vec::new(), 0);
        while failed < 6 {
            match f.step(UnixMillis(now)) {
                Step::Lookup(id, site) => out.push((id, site)),
                Step::Refuse(l, class, message) => {
                    assert_eq!((class, message.as_str()), (ErrorClass::DnsTimeout, "no answer"));
                    assert!(
                        f.acknowledged(UnixMillis(now), page(l.id), Answer::Failed(class), None),
                        "to be tried again"
                    );
                    failed += 1;
                }
                Step::Blocked | Step::WaitUntil(_) => {
                    assert!(out.len() <= 4);
                    let (id, _) = out.pop().unwrap();
                    f.unresolved(UnixMillis(now), id, ErrorClass::DnsTimeout, "no answer".into()).unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(f.only_backoff());
        // Once all may be asked again, a new name does not stand behind them, and half of the lookups are kept for such.
        now = 120_000;
        let mut asked = Vec::new();
        while let Step::Lookup(id, site) = f.step(UnixMillis(now)) {
            asked.push((id, site));
        }
        assert_eq!(asked.len(), 2, "{asked:?}");
        seed(&mut f, "http://new.example/");
        let Step::Lookup(id, site) = f.step(UnixMillis(now)) else { panic!() };
        assert_eq!(site, "http://new.example");
        f.ready(UnixMillis(now), id, Ok(Some((ip, Duration::from_secs(60)))));
        assert!(lease(&mut f, now).url().starts_with("http://new.example/"));
    }
}
