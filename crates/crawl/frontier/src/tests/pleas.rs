//! Hosts that ask for patience: 429 and 503.

use super::*;

#[test]
fn a_host_that_asked_for_patience_is_asked_for_another_page() {
    let mut f = F::new(Config { delay: Duration::ZERO, max_attempts: 3, ..ignoring() });
    for n in 0..6 {
        seed(&mut f, &format!("http://a.example/{n}"));
    }
    let (mut now, mut asked) = (0, Vec::new());
    while f.pending() > 0 {
        let (at, l) = soonest(&mut f, now);
        let path = l.url().trim_start_matches("http://a.example/").to_owned();
        // Two pages never have another answer.
        done(&mut f, at, &l, if matches!(path.as_str(), "0" | "1") { status(503) } else { OK });
        now = at;
        asked.push(path);
    }
    assert!(asked[0] == "0" && asked[1] != "0", "{asked:?}");
    let pleas = asked.iter().map(|path| matches!(path.as_str(), "0" | "1"));
    let in_a_row = pleas
        .scan(0, |n, plea| {
            *n = if plea { *n + 1 } else { 0 };
            Some(*n)
        })
        .max();
    assert!(asked.iter().filter(|path| *path == "0").count() == 3 && in_a_row < Some(6), "{asked:?}");
}

/// More pages of a section that is always busy than a window has rows. The run would give the host up after five pleas or so in a row.
#[test]
fn a_busy_section_larger_than_a_window_does_not_hide_the_rest() {
    let config = Config { delay: Duration::ZERO, max_attempts: 3, ..ignoring() };
    for (flushed, first) in [(false, "busy"), (true, "busy"), (true, "page")] {
        let config = Config { memory_bytes: 1 << 20, background: false, ..config.clone() };
        let mut f = F::on(FaultFs::new(), config, 0);
        let count = |name: &str| if name == "busy" { 24 } else { 60 };
        for name in [first, if first == "busy" { "page" } else { "busy" }, "more"] {
            for n in 0..count(name) {
                seed(&mut f, &format!("http://a.example/{name}/{n}"));
            }
        }
        if flushed {
            f.flush().unwrap();
        }
        let (mut now, mut fetched, mut in_a_row) = (0, 0, 0);
        while fetched < 120 {
            let (at, l) = soonest(&mut f, now);
            let busy = l.url().contains("/busy/");
            done(&mut f, at, &l, if busy { status(503) } else { OK });
            (now, in_a_row) = (at, if busy { in_a_row + 1 } else { 0 });
            fetched += usize::from(!busy);
            assert!(in_a_row < 8, "{fetched} of 120 fetched when the host seems to be down");
        }
    }
}

#[test]
fn a_burst_of_pleas_counts_once() {
    for retry_after_ms in [None, Some(20_000)] {
        let plea = Answer::Response { status: 503, retry_after_ms, cut: false };
        let mut f = F::new(Config { per_host: 8, delay: Duration::ZERO, max_attempts: 9, ..ignoring() });
        for n in 0..8 {
            seed(&mut f, &format!("http://a.example/{n}"));
        }
        let mut now = 0;
        for burst in 1..=3 {
            let (at, first) = soonest(&mut f, now);
            let mut leases = vec![first];
            while let Step::Lease(l) = f.step(UnixMillis(at)) {
                leases.push(l);
            }
            assert!(burst > 1 || leases.len() == 8, "{}", leases.len());
            for (n, l) in leases.iter().enumerate() {
                done(&mut f, at + 5 + i64::try_from(n).unwrap(), l, plea);
            }
            assert_eq!(f.host_report("a.example").unwrap().backoffs, burst);
            now = at + 20;
        }
        // An answer ends it, and the next plea is a first one again.
        let (at, l) = soonest(&mut f, now);
        done(&mut f, at, &l, OK);
        let (at, l) = soonest(&mut f, at);
        done(&mut f, at, &l, plea);
        assert_eq!(f.host_report("a.example").unwrap().backoffs, 1);
    }
}
