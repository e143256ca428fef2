//! When what a call reported is safe: the three levels, texts that no file can have, and memory while only offers come.

use super::*;

fn durable(durability: Durability) -> F {
    F::new(Config { durability, delay: Duration::ZERO, ..ignoring() })
}

/// Every power cut here loses all that was not synced.
#[test]
fn each_batch_is_durable_when_its_call_returns() {
    let mut f = durable(Durability::EachBatch);
    seed(&mut f, "http://a.example/1");
    let mut f = f.crash(0);
    assert_eq!((f.known(), f.pending()), (1, 1), "an offer");
    let l = lease(&mut f, 0);
    let settled = f.inner.settle(UnixMillis(0), &[Outcome { id: page(l.id), answer: OK, note: None }]).unwrap();
    assert_eq!(settled, [Settled::Done { depth: 0 }]);
    let mut f = f.crash(0);
    assert_eq!((f.known(), f.pending()), (1, 0), "an outcome");
    assert!(f.inner.block(UnixMillis(0), "a.example", true).unwrap());
    assert_eq!(f.crash(0).host_report("a.example").unwrap().state, "blocked", "an order");
}

#[test]
fn an_interval_bounds_what_a_power_cut_takes() {
    let mut f = durable(Durability::Interval(Duration::from_secs(10)));
    let offer = |f: &mut F, now: i64, url: &str| {
        f.inner.offer(UnixMillis(now), &[Candidate::seed(Identity::Key, web(url), None)]).unwrap();
    };
    offer(&mut f, 1000, "http://a.example/1");
    offer(&mut f, 9000, "http://a.example/2");
    // Any call after the interval will do, also one that changes nothing.
    f.inner.lease(UnixMillis(10_000), 0, &mut Vec::new()).unwrap();
    offer(&mut f, 11_000, "http://a.example/3");
    let f = f.crash(12_000);
    assert!(f.known() >= 2, "{}", f.known());
}

#[test]
fn a_ticket_that_was_waited_for_is_durable() {
    let mut f = durable(Durability::Explicit);
    seed(&mut f, "http://a.example/1");
    let ticket = f.inner.commit().unwrap().unwrap();
    ticket.wait().unwrap();
    assert_eq!(f.crash(0).known(), 1);
}

#[test]
fn changes_that_are_only_synced_are_flushed() {
    let mut f = F::new(ignoring());
    for n in 0..500 {
        seed(&mut f, &format!("http://a.example/{n}"));
        f.inner.sync().unwrap();
    }
    assert!(f.store_stats().flushes > 5, "{:?}", f.store_stats());
    assert_eq!(f.crash(0).known(), 500);
}

/// A row that no file takes would let every later flush fail.
#[test]
fn texts_that_no_file_takes_are_refused_or_cut() {
    let mut f = F::new(Config { robots: RobotsPolicy::Honour, ..ignoring() });
    let long = "x".repeat((16 << 20) + 1);
    let seed_of = |url: &str, meta: Option<&str>| Candidate::seed(Identity::Key, web(url), meta.map(Into::into));
    let refused =
        f.inner.offer(UnixMillis(0), &[seed_of("http://b.example/", None), seed_of("http://a.example/", Some(&long))]);
    assert!(matches!(refused, Err(Error::Order { .. })), "{refused:?}");
    assert_eq!(f.known(), 0, "nothing of it was taken");
    seed(&mut f, "http://a.example/");
    let errand = lease(&mut f, 0);
    f.released(UnixMillis(0), errand.id, OK, None);
    f.robots(UnixMillis(0), errand.id, rules("", None));
    f.inner.keep_robots(UnixMillis(0), "http://a.example", &"ü".repeat(9 << 20)).unwrap();
    f.flush().unwrap();
    assert_eq!(f.crash_synced(1).known(), 1);
}

#[test]
fn numbers_of_robots_files_do_not_come_again_after_a_restart() {
    let mut f = F::new(Config { robots: RobotsPolicy::Honour, ..ignoring() });
    seed(&mut f, "http://a.example/");
    let before = lease(&mut f, 0).id;
    let mut f = f.crash_synced(5);
    let (_, after) = soonest(&mut f, 5);
    assert!(matches!(before, LeaseId::Robots(_)) && after.id > before, "{before:?} {:?}", after.id);
}

/// A clock was ahead, was set right, and all that was fetched is to be fetched again.
#[test]
fn a_recrawl_finds_what_a_clock_that_was_ahead_dated() {
    let ahead = 5 * 3_600_000;
    let mut f = F::on(FaultFs::new(), Config { memory_bytes: 16 << 10, background: false, ..ignoring() }, ahead);
    seed(&mut f, "http://a.example/");
    let l = lease(&mut f, ahead);
    done(&mut f, ahead, &l, OK);
    let mut f = f.crash_synced(1000);
    let all = Recrawl { before: UnixMillis(2000), host: None, gone: false };
    assert_eq!(f.inner.recrawl(UnixMillis(2000), &all).unwrap(), 1);
}

/// What lies in the directory and is not the frontier's stays there.
#[test]
fn only_files_of_the_frontier_are_removed() {
    let mut f = F::new(ignoring());
    seed(&mut f, "http://a.example/");
    f.inner.sync().unwrap();
    let disk = f.disk.reboot(trawl_io::fault::Loss::All);
    let dir = std::path::Path::new("/frontier");
    let left = ["log-00000099", "run-00000098.meguri"];
    let kept = ["log-of-today.txt", "base-notes.md", "run-1"];
    for name in left.iter().chain(&kept) {
        trawl_io::publish(&disk.shared(), &dir.join(name), b"x").unwrap();
    }
    let f = F::on(disk, f.config().clone(), 0);
    let files = f.disk.files();
    assert!(kept.iter().all(|name| files.contains_key(&dir.join(name))), "{:?}", files.keys());
    assert!(!left.iter().any(|name| files.contains_key(&dir.join(name))), "{:?}", files.keys());
}

/// Without `CURRENT` nobody knows which files count, but they are what is left of a frontier.
#[test]
fn a_frontier_that_lost_its_list_of_files_is_not_replaced_by_an_empty_one() {
    let (dir, config) = (std::path::Path::new("/frontier"), ignoring());
    for flush in [false, true] {
        let mut f = F::new(config.clone());
        seed(&mut f, "http://a.example/");
        f.inner.sync().unwrap();
        if flush {
            f.flush().unwrap();
        }
        let disk = f.disk.reboot(trawl_io::fault::Loss::All);
        let fs = disk.shared();
        fs.remove_file(&dir.join("CURRENT")).unwrap();
        let before = disk.files();
        let error = Frontier::open(&fs, dir, config.clone(), UnixMillis(0), "test").err().unwrap().to_string();
        assert!(error.contains("CURRENT: expected the names of the frontier's files"), "{error}");
        assert_eq!(disk.files().len(), before.len());
    }
    // A crash while it was begun leaves an empty log, which is nothing.
    let f = F::new(config.clone());
    let fs = f.disk.shared();
    fs.remove_file(&dir.join("CURRENT")).unwrap();
    fs.sync_dir(dir).unwrap();
    let f = F::on(f.disk.reboot(trawl_io::fault::Loss::All), config, 0);
    assert_eq!(f.known(), 0);
}
