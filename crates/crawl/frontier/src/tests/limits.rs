//! Limits on pages: what they hold back is not in the way of what they let go.

use super::*;

/// Pages that had an error are on disk behind others that the limit holds back: more of them than a window keeps, or all of them after a
/// restart.
#[test]
fn tried_pages_are_tried_again_whatever_a_limit_holds_back() {
    for restart in [false, true] {
        for config in
            [Config { max_pages: Some(100), ..ignoring() }, Config { max_pages_per_host: Some(100), ..ignoring() }]
        {
            let mut f = F::new(Config { delay: Duration::ZERO, ..config });
            for n in 0..300 {
                seed(&mut f, &format!("http://a.example/{n}"));
            }
            for _ in 0..100 {
                let l = lease(&mut f, 0);
                done(&mut f, 0, &l, status(500));
            }
            let mut now = 0;
            if restart {
                f = f.crash_synced(now);
            }
            for tried in 0..100 {
                let (at, l) = soonest(&mut f, now);
                assert_eq!(l.attempt, 2, "{tried} of 100, after a restart: {restart}");
                done(&mut f, at, &l, OK);
                now = at;
            }
            assert_eq!((f.step(UnixMillis(now)), f.pending()), (Step::Empty, 200));
            // A larger limit finds what the smaller one held back.
            f.inner.sync().unwrap();
            let disk = f.disk.reboot(trawl_io::fault::Loss::All);
            let config = Config { memory_bytes: 16 << 10, background: false, delay: Duration::ZERO, ..ignoring() };
            let mut f = F::on(disk, config, now);
            for _ in 0..200 {
                let (at, l) = soonest(&mut f, now);
                assert_eq!(l.attempt, 1);
                done(&mut f, at, &l, OK);
                now = at;
            }
            assert_eq!((f.step(UnixMillis(now)), f.pending()), (Step::Empty, 0));
        }
    }
}

#[test]
fn links_of_a_better_priority_do_not_hide_seeds_that_have_room() {
    let mut f = F::new(Config { max_pages: Some(50), max_depth: 5, delay: Duration::ZERO, ..ignoring() });
    let from: Arc<str> = "http://b.example/".into();
    for n in 0..40 {
        let url = web(&format!("http://a.example/link/{n}"));
        let link = Candidate::link(Identity::Key.of(&url), url, &from, 0);
        f.discover(Candidate { priority: 0.9, ..link });
    }
    for n in 0..20 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    let (mut links, mut seeds) = (0, 0);
    while let Step::Lease(l) = f.step(UnixMillis(0)) {
        done(&mut f, 0, &l, OK);
        *(if l.source() == Source::Seed { &mut seeds } else { &mut links }) += 1;
    }
    assert_eq!((links, seeds, f.pending()), (30, 20, 10));
}

/// Links that are held back while seeds are read are found when their list ends.
#[test]
fn what_was_held_back_is_found_when_the_list_ends() {
    let mut f = F::new(Config { max_pages: Some(80), max_depth: 1, delay: Duration::ZERO, ..ignoring() });
    f.set_seeds_open(true);
    seed(&mut f, "http://a.example/");
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, OK);
    let from: Arc<str> = first.url().into();
    for n in 0..100 {
        f.discover(link(&first, &from, &format!("http://a.example/{n}")));
    }
    assert_eq!(f.step(UnixMillis(0)), Step::Empty);
    f.set_seeds_open(false);
    let mut fetched = 1;
    while let Step::Lease(l) = f.step(UnixMillis(0)) {
        done(&mut f, 0, &l, OK);
        fetched += 1;
    }
    assert_eq!((fetched, f.pending()), (80, 21));
}

/// The log says how many seeds are left: a lease that a crash ended was none.
#[test]
fn room_for_seeds_is_kept_over_a_restart() {
    let mut f = F::new(Config { max_pages: Some(30), max_depth: 1, ..ignoring() });
    for n in 0..20 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    let first = lease(&mut f, 0);
    done(&mut f, 0, &first, OK);
    let (at, _) = soonest(&mut f, 0);
    for flush in [false, true] {
        if flush {
            f.flush().unwrap();
        }
        f = f.crash_synced(at);
        assert_eq!(f.totals.seeds_waiting, 19, "{flush}");
    }
    let from: Arc<str> = first.url().into();
    for n in 0..40 {
        f.discover(link(&first, &from, &format!("http://h{n}.example/")));
    }
    let mut links = 0;
    let mut now = at;
    loop {
        match f.step(UnixMillis(now)) {
            Step::Lease(l) => {
                links += u32::from(l.source() != Source::Seed);
                done(&mut f, now, &l, OK);
            }
            Step::WaitUntil(at) => now = at.0,
            Step::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((links, f.admitted()), (10, 30));
}

#[test]
fn more_attempts_than_are_counted_end() {
    let mut f = F::new(Config { max_attempts: 1000, backoff: Duration::ZERO, delay: Duration::ZERO, ..ignoring() });
    seed(&mut f, "http://a.example/");
    let mut attempts = 0;
    while let Step::Lease(l) = f.step(UnixMillis(0)) {
        done(&mut f, 0, &l, status(500));
        attempts += 1;
        assert!(attempts <= 255);
    }
    assert_eq!((attempts, f.pending()), (255, 0));
}

/// A row that was tried stands at the end of the window, and every row that is offered is better.
#[test]
fn a_window_stays_small_behind_a_tried_row() {
    let config =
        Config { max_depth: 5, backoff: Duration::ZERO, memory_bytes: 1 << 20, background: false, ..ignoring() };
    let mut f = F::on(FaultFs::new(), config, 0);
    let from: Arc<str> = "http://b.example/".into();
    let url = web("http://a.example/deep");
    f.discover(Candidate::link(Identity::Key.of(&url), url, &from, 2));
    let deep = lease(&mut f, 0);
    done(&mut f, 0, &deep, status(500));
    for n in 0..200 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    assert!(f.hosts[0].window.len() <= 18, "{}", f.hosts[0].window.len());
    let (mut now, mut fetched) = (0, Vec::new());
    while f.pending() > 0 {
        let (at, l) = soonest(&mut f, now);
        done(&mut f, at, &l, OK);
        now = at;
        fetched.push(l.url().to_owned());
    }
    assert_eq!((fetched.len(), fetched.last().map(String::as_str)), (201, Some("http://a.example/deep")));
}
