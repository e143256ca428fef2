//! URLs that are known and turn out to be wanted after all.

use super::*;

fn redirect(f: &mut F, url: &str, from: &Lease) -> Candidate {
    let target = web(url);
    let id = f.id_of_redirect(page(from.id), &target).unwrap();
    Candidate::redirect(id, target, &from.url().into(), from.depth, from.hops, None)
}

/// `restart` after the URL was refused, while it is being refused, or not at all.
#[test]
fn what_was_past_the_limit_of_redirects_is_fetched_when_it_is_linked() {
    for (settled, restart, files) in
        [(true, false, false), (true, true, false), (true, true, true), (false, false, false), (true, false, true)]
    {
        let mut f = F::new(Config { max_hops: 1, max_depth: 9, delay: Duration::ZERO, ..ignoring() });
        if files {
            f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
        }
        seed(&mut f, "http://a.example/0");
        let (first, mut now) = (lease(&mut f, 0), 0);
        done(&mut f, 0, &first, status(302));
        let second = redirect(&mut f, "http://a.example/1", &first);
        assert_eq!(f.discover(second), Admission::New);
        let second = lease(&mut f, 0);
        done(&mut f, 0, &second, status(302));
        let third = redirect(&mut f, "http://a.example/2", &second);
        assert_eq!(f.discover(third.clone()), Admission::New);
        let Step::Refuse(refused, class, _) = f.step(UnixMillis(0)) else { panic!() };
        assert_eq!(class, ErrorClass::RedirectLimit);
        if settled {
            assert!(!f.acknowledged(UnixMillis(0), page(refused.id), Answer::Failed(class), None));
        }
        assert_eq!(f.discover(third), Admission::Seen, "as far away as before");
        if restart {
            f.inner.sync().unwrap();
            f.flush().unwrap();
            f = f.crash(1);
            if files {
                f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
            }
            now = 1;
        }
        let deep = Lease { depth: 5, ..first.clone() };
        let candidate = link(&deep, &"http://a.example/0".into(), "http://a.example/2");
        let expected = if settled { Admission::InReach } else { Admission::Nearer };
        assert_eq!(f.discover(candidate.clone()), expected);
        if !settled {
            assert!(
                f.acknowledged(UnixMillis(now), page(refused.id), Answer::Failed(class), None),
                "to be tried again"
            );
        }
        assert_eq!(f.discover(candidate), Admission::Seen);
        let (at, again) = soonest(&mut f, now);
        assert_eq!((again.url(), again.hops), ("http://a.example/2", 0));
        done(&mut f, at, &again, OK);
        assert_eq!((f.step(UnixMillis(at)), f.pending()), (Step::Empty, 0));
    }
}

#[test]
fn a_seed_that_was_parked_as_a_link_is_fetched() {
    for (max_depth, restart) in [(3, false), (3, true), (u32::MAX, false), (u32::MAX, true)] {
        let mut f = F::new(Config { max_depth, trap_threshold: 4, delay: Duration::ZERO, ..ignoring() });
        seed(&mut f, "http://a.example/");
        let root = lease(&mut f, 0);
        done(&mut f, 0, &root, OK);
        for n in 0..10 {
            let candidate = link(&root, &root.url().into(), &format!("http://a.example/{}/05/", 2040 + n));
            f.discover(candidate);
        }
        assert_eq!(f.parked(), 6);
        if restart {
            f.inner.sync().unwrap();
            f.flush().unwrap();
            f = f.crash(1);
        }
        let again = link(&root, &root.url().into(), "http://a.example/2049/05/");
        assert_eq!(f.discover(again), Admission::Seen, "a link is still a trap's");
        assert_eq!(seed(&mut f, "http://a.example/2049/05/"), Admission::Unparked);
        assert_eq!(seed(&mut f, "http://a.example/2049/05/"), Admission::Seen);
        assert_eq!((f.parked(), f.host_report("a.example").unwrap().parked), (5, 5));
        let mut fetched = Vec::new();
        while let Step::Lease(l) = f.step(UnixMillis(2)) {
            done(&mut f, 2, &l, OK);
            fetched.push(l.url().to_owned());
        }
        assert_eq!(fetched.len(), 5);
        assert!(fetched.contains(&"http://a.example/2049/05/".to_owned()), "{fetched:?}");
        assert_eq!((f.pending(), f.parked()), (0, 5));
    }
}

/// A list may be read for longer than it takes to find some of its URLs.
#[test]
fn a_seed_that_was_found_as_a_link_is_a_seed() {
    for (restart, files) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut f = F::new(Config { max_depth: 3, max_pages: Some(4), delay: Duration::ZERO, ..ignoring() });
        seed(&mut f, "http://a.example/");
        let root = lease(&mut f, 0);
        done(&mut f, 0, &root, status(302));
        let mut known = vec![redirect(&mut f, "http://a.example/sent", &root)];
        known.extend((0..40).map(|n| link(&root, &root.url().into(), &format!("http://a.example/{n}"))));
        for candidate in known {
            assert_eq!(f.discover(candidate), Admission::New);
        }
        if restart {
            f.inner.sync().unwrap();
            f.flush().unwrap();
            f = f.crash(1);
        }
        if files {
            f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
        }
        let identity = f.config().identity;
        for path in ["sent", "33", "new"] {
            let url = format!("http://a.example/{path}");
            let candidate = Candidate::seed(identity, web(&url), Some(format!("{{\"p\":\"{path}\"}}").into()));
            let expected = if path == "new" { Admission::New } else { Admission::AskedFor };
            assert_eq!(f.discover(candidate.clone()), expected, "{path}");
            assert_eq!(f.discover(candidate), Admission::Seen, "{path}");
        }
        let mut fetched = Vec::new();
        while let Step::Lease(l) = f.step(UnixMillis(2)) {
            done(&mut f, 2, &l, OK);
            assert_eq!((l.depth, l.hops, l.source()), (0, 0, Source::Seed));
            fetched.push(format!("{} {}", l.url(), l.meta_json().unwrap_or_default()));
        }
        fetched.sort();
        let expected = ["33", "new", "sent"].map(|path| format!("http://a.example/{path} {{\"p\":\"{path}\"}}"));
        assert_eq!(fetched, expected, "{restart} {files}");
        assert_eq!(f.pending(), 39);
    }
}

/// A link brings it from depth 1 into the frontier, a redirect of a seed to depth 0, and then the list of seeds comes to it.
#[test]
fn a_seed_that_a_link_and_a_redirect_found_first_has_its_metadata() {
    for (restart, files) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut f = F::new(Config { max_depth: 3, delay: Duration::ZERO, ..ignoring() });
        for url in ["http://a.example/links", "http://b.example/redirects"] {
            seed(&mut f, url);
        }
        let (links, redirects) = (lease(&mut f, 0), lease(&mut f, 0));
        // Before its own host is asked again.
        f.pause(UnixMillis(0), "a.example", true).unwrap();
        done(&mut f, 0, &links, OK);
        done(&mut f, 0, &redirects, status(302));
        let found = link(&links, &links.url().into(), "http://a.example/wanted");
        assert_eq!(f.discover(found), Admission::New);
        let sent = redirect(&mut f, "http://a.example/wanted", &redirects);
        assert_eq!(f.discover(sent.clone()), Admission::Nearer);
        assert_eq!(f.discover(sent), Admission::Seen);
        // It is where a seed is, no more what a link led to.
        let row = f.recent_row(Identity::Key.of(&web("http://a.example/wanted"))).unwrap();
        assert_eq!((row.found, row.texts.via()), (crate::row::Found::Redirect, "http://b.example/redirects"));
        if restart {
            f.inner.sync().unwrap();
            f.flush().unwrap();
            f = f.crash(1);
        }
        if files {
            f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
        }
        let identity = f.config().identity;
        let wanted = Candidate::seed(identity, web("http://a.example/wanted"), Some("{\"k\":1}".into()));
        assert_eq!(f.discover(wanted.clone()), Admission::AskedFor, "{restart} {files}");
        assert_eq!(f.discover(wanted), Admission::Seen);
        f.pause(UnixMillis(2), "a.example", false).unwrap();
        let (_, l) = soonest(&mut f, 2);
        assert_eq!((l.url(), l.depth, l.source()), ("http://a.example/wanted", 0, Source::Seed));
        assert_eq!(l.meta_json(), Some("{\"k\":1}"));
    }
}

/// Refuses the only page that may be refused, and settles it.
fn refuse(f: &mut F, at: i64, url: &str) {
    let Step::Refuse(refused, class, _) = f.step(UnixMillis(at)) else { panic!("{url} is not refused") };
    assert_eq!((refused.url(), class), (url, ErrorClass::RobotsDenied));
    assert!(!f.acknowledged(UnixMillis(at), page(refused.id), Answer::Failed(class), None));
}

/// A list has both spellings, and its site closes the first one: nobody knows that before all of the list was read.
#[test]
fn the_plainer_spelling_stands_for_a_page_until_the_rules_are_known() {
    let (closed, open) = ("http://a.example/p?utm_source=x", "http://a.example/p");
    for files in [false, true] {
        let mut f = F::new(Config { max_depth: 9, delay: Duration::ZERO, ..Config::default() });
        if files {
            f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
        }
        let admissions = [closed, open, closed].map(|url| seed(&mut f, url));
        assert_eq!(admissions, [Admission::New, Admission::Seen, Admission::Seen]);
        // Another seed stays as it was asked for, whatever is linked.
        assert_eq!(seed(&mut f, "http://a.example/q?gclid=1"), Admission::New);
        let linked = web("http://a.example/q");
        let linked = Candidate::link(Identity::Key.of(&linked), linked, &"http://b.example/".into(), 0);
        assert_eq!(f.discover(linked), Admission::Seen);
        assert_eq!((f.pending(), f.known()), (2, 2));
        let robots = lease(&mut f, 0);
        done(&mut f, 0, &robots, OK);
        f.robots(UnixMillis(0), robots.id, rules("/p?utm", None));
        for url in [open, "http://a.example/q?gclid=1"] {
            let page = lease(&mut f, 0);
            assert_eq!(page.url(), url, "files {files}");
            done(&mut f, 0, &page, OK);
        }
        assert_eq!((f.step(UnixMillis(0)), f.pending(), f.known()), (Step::Empty, 0, 2));
    }
}

/// robots.txt closes tracked spellings, as those of many sites do, and one of them is found first: before the rules are known
/// (`early`), or after.
#[test]
fn a_spelling_that_robots_txt_closes_does_not_stand_for_the_page() {
    let (closed, open) = ("http://a.example/p?utm_source=x", "http://a.example/p");
    for (early, restart, files) in
        [(false, false, false), (false, true, true), (true, false, false), (true, true, false), (true, true, true)]
    {
        let mut f = F::new(Config { max_depth: 9, delay: Duration::ZERO, ..Config::default() });
        if files {
            f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
        }
        seed(&mut f, "http://a.example/");
        if early {
            seed(&mut f, closed);
            f.flush().unwrap();
        }
        let robots = lease(&mut f, 0);
        done(&mut f, 0, &robots, OK);
        f.robots(UnixMillis(0), robots.id, rules("/p?utm", None));
        let root = lease(&mut f, 0);
        assert_eq!(root.url(), "http://a.example/");
        done(&mut f, 0, &root, OK);
        let from: Arc<str> = root.url().into();
        let found = |f: &mut F, url: &str| f.discover(link(&root, &from, url));
        if early {
            refuse(&mut f, 0, closed);
        } else {
            // Both on one page.
            assert_eq!([found(&mut f, closed), found(&mut f, closed)], [Admission::New, Admission::Seen]);
        }
        let mut now = 0;
        if restart {
            f.inner.sync().unwrap();
            f.flush().unwrap();
            (f, now) = (f.crash(1), 1);
            if files {
                f.inner.seen = crate::frontier::Seen::Files(crate::seen::Recent::new(1));
            }
        }
        assert_eq!(found(&mut f, open), Admission::New, "early {early}, restart {restart}, files {files}");
        assert_eq!(found(&mut f, open), Admission::Seen, "early {early}, restart {restart}, files {files}");
        if restart {
            let (at, robots) = soonest(&mut f, now);
            done(&mut f, at, &robots, OK);
            f.robots(UnixMillis(at), robots.id, rules("/p?utm", None));
            now = at;
        }
        if !early {
            refuse(&mut f, now, closed);
        }
        assert_eq!(found(&mut f, closed), Admission::Seen, "early {early}, restart {restart}, files {files}");
        let fetched = lease(&mut f, now);
        assert_eq!(fetched.url(), open);
        done(&mut f, now, &fetched, OK);
        assert_eq!((f.step(UnixMillis(now)), f.pending()), (Step::Empty, 0));
    }
}
