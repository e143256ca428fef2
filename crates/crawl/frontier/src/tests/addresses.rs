//! Queues by address, and addresses without a limit.

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The delay counts from the end of a fetch, also where another host of the address made it.
#[test]
fn a_queue_of_an_address_rests_after_each_fetch() {
    let mut f = F::new(Config { queue: QueueBy::Ip, delay: Duration::from_secs(5), ..ignoring() });
    for host in ["a", "b"] {
        for n in 0..4 {
            seed(&mut f, &format!("http://{host}.example/{n}"));
        }
    }
    // Nobody's address is known before the first fetch.
    let first = [lease(&mut f, 0), lease(&mut f, 0)];
    for l in &first {
        f.released(UnixMillis(100), l.id, OK, Some(HERE));
        f.acknowledged(UnixMillis(100), page(l.id), OK, None);
    }
    let (mut ended, mut hosts) = (100, Vec::new());
    for _ in 0..6 {
        let (at, l) = soonest(&mut f, ended);
        assert_eq!(at, ended + 5000, "{}", l.url());
        assert!(matches!(f.step(UnixMillis(at)), Step::Blocked | Step::WaitUntil(_)), "one at a time");
        ended = at + 8000;
        f.released(UnixMillis(ended), l.id, OK, Some(HERE));
        f.acknowledged(UnixMillis(ended), page(l.id), OK, None);
        hosts.push(web(l.url()).host().to_owned());
    }
    assert!(hosts.iter().any(|host| host == "a.example") && hosts.iter().any(|host| host == "b.example"), "{hosts:?}");
    assert_eq!((f.step(UnixMillis(ended + 5000)), f.pending()), (Step::Empty, 0));
}

#[test]
fn hosts_of_a_domain_are_one_queue() {
    let mut f = F::new(Config { queue: QueueBy::Domain, delay: Duration::from_secs(5), ..ignoring() });
    for host in ["a.example.co.uk", "b.example.co.uk"] {
        let url = web(&format!("http://{host}/"));
        let id = Identity::Key.in_queue(&url, QueueBy::Domain).0;
        f.discover(Candidate { id, ..Candidate::seed(Identity::Key, url, None) });
    }
    let first = lease(&mut f, 0);
    assert_eq!(f.step(UnixMillis(9000)), Step::Blocked);
    done(&mut f, 9000, &first, OK);
    assert_eq!(soonest(&mut f, 9000).0, 14_000);
    assert_eq!(f.host_report("example.co.uk").unwrap().urls, 2);
}

#[test]
fn an_exempt_address_has_no_limit() {
    for (exempt, at_once) in [(vec![], 1), (vec![HERE], 4)] {
        let mut f = F::new(Config { per_ip: Some(1), exempt, lookups: 9, delay: Duration::ZERO, ..ignoring() });
        for host in 0..4 {
            seed(&mut f, &format!("http://h{host}.example/"));
        }
        let mut leases = 0;
        loop {
            match f.step(UnixMillis(0)) {
                Step::Lookup(id, _) => f.ready(UnixMillis(0), id, Ok(Some((HERE, Duration::from_secs(60))))),
                Step::Lease(_) => leases += 1,
                _ => break,
            }
        }
        assert_eq!(leases, at_once);
    }
}
