//! One test for each kind of violation.

use super::simulation::Request;
use super::*;
use crate::character::{Character, Shares};
use crate::config::Addresses;
use crate::world::{Node, Outcome, PageId, Resource};

/// A standard crawl with these settings, changed by `plant`, must show exactly `kind`, at the request that `plant` names.
fn plant(kind: Kind, settings: &CrawlSettings, plant: impl FnOnce(&mut Simulation<'_>) -> usize) {
    let world = world(Profile::Standard, 1);
    let mut simulation = Simulation::run(&world, settings);
    expect(&simulation, &[]);
    let at = plant(&mut simulation);
    expect_at(&simulation, kind, at);
}

/// A web of one character, besides some.
fn only(characters: &[(Character, u16)]) -> World {
    let mut shares = Shares::default();
    for &(character, share) in characters {
        shares.set(character, share);
    }
    World::new(&Config { domains: 40, seeds: 2, pages: 800, shares, ..Config::default() }).unwrap()
}

/// Two consecutive requests to one host, after `from`.
fn neighbours(simulation: &Simulation<'_>, wanted: impl Fn(&Request) -> bool) -> (usize, usize) {
    let host = |n: usize| simulation.requests[n].host.clone();
    for first in 0..simulation.requests.len() {
        if !wanted(&simulation.requests[first]) {
            continue;
        }
        let mut later: Vec<usize> = (0..simulation.requests.len())
            .filter(|&n| {
                host(n) == host(first) && simulation.requests[n].start_us > simulation.requests[first].start_us
            })
            .collect();
        later.sort_by_key(|&n| simulation.requests[n].start_us);
        // The last two of a host, so that moving one leaves no other pair too close.
        if let [next] = later[..] {
            return (first, next);
        }
    }
    panic!("no neighbours");
}

fn is_page(request: &Request) -> bool {
    matches!(request.node.map(|n| n.what), Some(Resource::Page(_))) && request.status == 200
}

#[test]
fn host_concurrency() {
    let settings = CrawlSettings {
        host_interval_ms: 0,
        max_crawl_delay_ms: 0,
        tolerance_ms: 0,
        notice_ms: 0,
        ..CrawlSettings::default()
    };
    plant(Kind::HostConcurrency, &settings, |s| {
        let (first, next) = neighbours(s, is_page);
        s.requests[next].start_us = s.requests[first].start_us + 1_999;
        next
    });
}

#[test]
fn host_spacing() {
    plant(Kind::HostSpacing, &CrawlSettings::default(), |s| {
        let (first, next) = neighbours(s, is_page);
        s.requests[next].start_us = s.requests[first].start_us + 979_000;
        next
    });
}

#[test]
fn crawl_delay() {
    let world = only(&[(Character::RobotsDelay, 1000)]);
    let settings = CrawlSettings { host_interval_ms: 50, ..CrawlSettings::default() };
    let mut simulation = Simulation::run(&world, &settings);
    expect(&simulation, &[]);
    let (first, next) = neighbours(&simulation, is_page);
    let delay = world.robots(simulation.requests[first].node.unwrap().host).unwrap().crawl_delay_ms("trawl").unwrap();
    simulation.requests[next].start_us = simulation.requests[first].start_us + delay * 1000 - 21_000;
    expect_at(&simulation, Kind::CrawlDelay, next);
}

#[test]
fn retry_after() {
    for fate in [Character::Busy, Character::Unavailable] {
        let world = only(&[(fate, 500)]);
        let settings = CrawlSettings { host_interval_ms: 0, tolerance_ms: 0, notice_ms: 0, ..CrawlSettings::default() };
        let mut simulation = Simulation::run(&world, &settings);
        expect(&simulation, &[]);
        // On an odd host, where Retry-After is a number and not a date.
        let refused = |r: &Request| matches!(r.status, 429 | 503) && r.node.unwrap().host.0 % 2 == 1;
        let at = simulation.find(refused);
        let end = simulation.requests[at].start_us + simulation.requests[at].length_us;
        let host = simulation.requests[at].host.clone();
        let next = simulation.find(|r| r.host == host && r.start_us > end);
        simulation.requests[next].start_us = end + 900_000;
        expect_at(&simulation, Kind::RetryAfter, next);
    }
}

fn many_addresses() -> World {
    let config = world(Profile::Demo, 1).config().clone();
    World::new(&Config { addresses: Addresses::Many, domains_per_address: 4, ..config }).unwrap()
}

#[test]
fn ip_concurrency_and_spacing() {
    let world = many_addresses();
    for (kind, shift) in [(Kind::IpConcurrency, 500), (Kind::IpSpacing, 150_000)] {
        let (ip_in_flight, ip_interval_ms) = if kind == Kind::IpConcurrency { (1, 0) } else { (0, 200) };
        let settings = CrawlSettings { ip_in_flight, ip_interval_ms, ..CrawlSettings::default() };
        let mut simulation = Simulation::run(&world, &settings);
        expect(&simulation, &[]);
        // The last request of all, moved close to the last one of a neighbour at its address.
        let last = simulation.requests.len() - 1;
        let (address, host) = (simulation.requests[last].local, simulation.requests[last].host.clone());
        let before = simulation.requests.iter().rposition(|r| r.local == address && r.host != host).unwrap();
        let mut moved = simulation.requests[before].clone();
        moved.start_us = simulation.end_us() + 10_000_000;
        let start = moved.start_us;
        simulation.requests[before] = moved;
        simulation.requests[last].start_us = start + shift;
        expect_at(&simulation, kind, last);
    }
}

#[test]
fn robots_not_fetched() {
    plant(Kind::RobotsNotFetched, &CrawlSettings::default(), |s| {
        // A host of which one page was fetched, over its own scheme.
        let of = |host: &Option<String>| s.requests.iter().filter(|r| r.host == *host).count();
        let robots = s.find(|r| r.target == "/robots.txt" && matches!(r.status, 200 | 404) && of(&r.host) == 2);
        let host = s.requests[robots].host.clone();
        let page = s.find(|r| r.host == host && r.target != "/robots.txt");
        s.requests[robots].start_us = s.requests[page].start_us + 50_000_000;
        page
    });
}

#[test]
fn robots_redirect_not_followed() {
    let world = only(&[(Character::RobotsRedirect, 1000)]);
    let settings = CrawlSettings::default();
    let mut simulation = Simulation::run(&world, &settings);
    expect(&simulation, &[]);
    let host = simulation.requests[simulation.some_page()].host.clone();
    simulation.requests.retain(|r| r.host != host || !r.target.starts_with("/robots/"));
    let pages = simulation.requests.iter().filter(|r| r.host == host && r.target != "/robots.txt").count();
    let verdict = expect(&simulation, &[(Kind::RobotsNotFetched, pages as u64)]);
    assert!(verdict.violations.iter().all(|v| v.with_line.is_some() && v.url.contains(host.as_deref().unwrap())));
}

#[test]
fn robots_cut_short() {
    let world = only(&[(Character::RobotsHuge, 1000)]);
    let settings = CrawlSettings::default();
    let mut simulation = Simulation::run(&world, &settings);
    let host = simulation.requests[simulation.some_page()].host.clone();
    let robots = simulation.find(|r| r.host == host && r.target == "/robots.txt");
    (simulation.requests[robots].whole, simulation.requests[robots].bytes) = (false, 500 << 10);
    expect(&simulation, &[]);
    simulation.requests[robots].bytes -= 1;
    let pages = simulation.requests.iter().filter(|r| r.host == host).count() - 1;
    expect(&simulation, &[(Kind::RobotsNotFetched, pages as u64)]);
}

#[test]
fn robots_stale() {
    plant(Kind::RobotsStale, &CrawlSettings::default(), |s| {
        let (_, last) = neighbours(s, is_page);
        s.requests[last].start_us += 86_500_000_000;
        last
    });
}

#[test]
fn robots_unreachable() {
    for character in [Character::RobotsError, Character::Silent] {
        let world = only(&[(character, 400)]);
        let settings = CrawlSettings::default();
        let mut simulation = Simulation::run(&world, &settings);
        expect(&simulation, &[]);
        let host = world.host_ids().find(|&id| world.robots_unreachable(id)).unwrap();
        let request = simulation.request(world.node(host, Resource::Page(0)));
        let at = simulation.append(request);
        expect_at(&simulation, Kind::RobotsUnreachable, at);
    }
}

#[test]
fn robots_disallowed() {
    use Character::*;
    for kind in
        [RobotsPartial, RobotsMerged, RobotsWildcard, RobotsOdd, RobotsBom, RobotsHuge, RobotsRedirect, RobotsClosed]
    {
        let world = only(&[(kind, 500)]);
        let settings = CrawlSettings::default();
        let mut simulation = Simulation::run(&world, &settings);
        expect(&simulation, &[]);
        let closed = world.host_ids().flat_map(|id| world.pages(id)).find(|&page| {
            let node = world.node(page.host, Resource::Page(page.number));
            !world.allows_node(&settings, node)
        });
        let page = closed.unwrap();
        let request = simulation.request(world.node(page.host, Resource::Page(page.number)));
        let at = simulation.append(request);
        expect_at(&simulation, Kind::RobotsDisallowed, at);
    }
}

#[test]
fn robots_refetched() {
    plant(Kind::RobotsRefetched, &CrawlSettings::default(), |s| {
        let host = s.requests[s.some_page()].host.clone();
        let robots = s.find(|r| r.host == host && r.target == "/robots.txt" && r.status != 301);
        let mut again = s.requests[robots].clone();
        again.start_us = s.requests.iter().filter(|r| r.host == host).map(|r| r.start_us).max().unwrap() + 1_500_000;
        assert!(again.start_us < s.requests[robots].start_us + 60_000_000);
        s.requests.push(again);
        s.requests.len() - 1
    });
}

#[test]
fn fetched_twice() {
    plant(Kind::FetchedTwice, &CrawlSettings::default(), |s| {
        let again = s.requests[s.some_page()].clone();
        s.append(again)
    });
    // The same page by another name: tracking parameters do not make another page.
    plant(Kind::FetchedTwice, &CrawlSettings::default(), |s| {
        let mut again = s.requests[s.some_page()].clone();
        again.target.push_str(if again.target.contains('?') { "&utm_source=x" } else { "?utm_source=x" });
        s.append(again)
    });
    // What does not exist is not to be asked for again either.
    plant(Kind::FetchedTwice, &CrawlSettings::default(), |s| {
        let missing = s.find(|r| r.status == 404 && r.target != "/robots.txt");
        let again = s.requests[missing].clone();
        s.append(again)
    });
}

#[test]
fn never_fetched() {
    let world = world(Profile::Standard, 1);
    let settings = CrawlSettings::default();
    let mut simulation = Simulation::run(&world, &settings);
    let dropped = simulation.some_page();
    let url = world.url_of(simulation.requests.remove(dropped).node.unwrap());
    let verdict = expect(&simulation, &[(Kind::NeverFetched, 1)]);
    assert_eq!((&verdict.violations[0].url, verdict.violations[0].line), (&url, None));
    assert_eq!(verdict.fetched + 1, verdict.expected);
    // A crawl that was stopped half-way owes nothing.
    let stopped = CrawlSettings { complete: false, ..settings.clone() };
    assert!(judge_reader(simulation.render().0.as_bytes(), &world, &stopped).unwrap().clean);
}

#[test]
fn given_up() {
    let world = only(&[(Character::Busy, 500)]);
    let settings = CrawlSettings::default();
    let mut simulation = Simulation::run(&world, &settings);
    let refused = simulation.find(|r| r.status == 429);
    let target = (simulation.requests[refused].host.clone(), simulation.requests[refused].target.clone());
    simulation.requests.retain(|r| (r.host.clone(), r.target.clone()) != target || r.status == 429);
    let last = simulation.requests.iter().rposition(|r| (r.host.clone(), r.target.clone()) == target).unwrap();
    expect_at(&simulation, Kind::GivenUp, last);
}

#[test]
fn too_many_retries() {
    let settings = CrawlSettings::default();
    let world = only(&[(Character::ServerError, 500)]);
    let mut simulation = Simulation::run(&world, &settings);
    let failed = simulation.find(|r| r.status == 500);
    let again = simulation.requests[failed].clone();
    for _ in 0..3 {
        simulation.append(again.clone());
    }
    expect(&simulation, &[]);
    let at = simulation.append(again);
    expect_at(&simulation, Kind::TooManyRetries, at);
}

#[test]
fn redirect_limit() {
    let world = only(&[(Character::RedirectLong, 200)]);
    let settings = CrawlSettings { max_redirects: 5, ..CrawlSettings::default() };
    let mut simulation = Simulation::run(&world, &settings);
    expect(&simulation, &[]);
    let last = simulation.find(|r| matches!(r.node.unwrap().what, Resource::Hop { hop: 5, .. }));
    let Outcome::Redirect { to, .. } = world.outcome_of(simulation.requests[last].node.unwrap()) else { panic!() };
    let request = simulation.request(to);
    let at = simulation.append(request);
    expect_at(&simulation, Kind::RedirectLimit, at);
}

#[test]
fn robots_loop_has_a_limit_too() {
    let world = only(&[(Character::RobotsLoop, 300)]);
    let settings = CrawlSettings::default();
    let mut simulation = Simulation::run(&world, &settings);
    expect(&simulation, &[]);
    let looping = simulation.find(|r| r.target.starts_with("/robots/"));
    let again = simulation.requests[looping].clone();
    for _ in 0..18 {
        simulation.append(again.clone());
    }
    expect(&simulation, &[]);
    let at = simulation.append(again);
    expect_at(&simulation, Kind::RedirectLimit, at);
}

#[test]
fn beyond_depth() {
    let settings = CrawlSettings { depth: 2, ..CrawlSettings::default() };
    let world = world(Profile::Demo, 1);
    let mut simulation = Simulation::run(&world, &settings);
    let expected = world.expect(&settings);
    let robots_known =
        |node: Node| simulation.requests.iter().any(|r| r.node.unwrap() == Node { what: Resource::Robots, ..node });
    let pages = world.host_ids().flat_map(|id| world.pages(id));
    let far = pages
        .map(|page| world.node(page.host, Resource::Page(page.number)))
        .find(|&node| expected.depth(node) == Some(3) && robots_known(node) && world.allows_node(&settings, node));
    let request = simulation.request(far.unwrap());
    let at = simulation.append(request);
    expect_at(&simulation, Kind::BeyondDepth, at);
}

#[test]
fn not_linked() {
    // A path that does not exist, as a relative link resolved wrongly would give.
    plant(Kind::NotLinked, &CrawlSettings::default(), |s| {
        let mut request = s.requests[s.some_page()].clone();
        request.target = format!("/stories{}", request.target);
        request.status = 404;
        s.append(request)
    });
    // A link of a page that asked not to be followed.
    plant(Kind::NotLinked, &CrawlSettings::default(), |s| {
        let page = s.find(|r| {
            let node = r.node.unwrap();
            matches!(node.what, Resource::Page(number) if s.world.is_nofollow(PageId { host: node.host, number })
                && s.world.outcome_of(node) == Outcome::Content(node))
        });
        let links = s.world.links(s.requests[page].node.unwrap());
        let hidden = links.into_iter().find(|l| matches!(l.to.what, Resource::Missing(_))).unwrap();
        let request = s.request(hidden.to);
        s.append(request)
    });
}

#[test]
fn trap_overrun() {
    for trap in [Character::CalendarTrap, Character::SessionTrap, Character::FacetTrap] {
        let world = only(&[(trap, 200)]);
        let settings = CrawlSettings { trap_budget: 20, ..CrawlSettings::default() };
        let mut simulation = Simulation::run(&world, &settings);
        expect(&simulation, &[]);
        let is_trap = |n: Node| matches!(n.what, Resource::Calendar(_) | Resource::Session { .. } | Resource::Facet(_));
        let last = simulation.requests.iter().rposition(|r| is_trap(r.node.unwrap())).unwrap();
        let node = simulation.requests[last].node.unwrap();
        let fetched = |n: Node| simulation.requests.iter().any(|r| r.node == Some(n));
        let next = world.links(node).into_iter().map(|l| l.to).find(|&n| is_trap(n) && !fetched(n)).unwrap();
        let request = simulation.request(next);
        let at = simulation.append(request);
        expect_at(&simulation, Kind::TrapOverrun, at);
    }
}

#[test]
fn validators_ignored_and_wrong() {
    for character in [Character::Etag, Character::LastModified, Character::BothValidators] {
        let world = only(&[(character, 1000)]);
        let settings = CrawlSettings { recrawl: true, ..CrawlSettings::default() };
        let mut simulation = Simulation::run(&world, &settings);
        let at = simulation.some_page();
        let page = match simulation.requests[at].node.unwrap() {
            Node { host, what: Resource::Page(number), .. } => PageId { host, number },
            other => panic!("{other:?}"),
        };
        let again = simulation.requests[at].clone();
        let tag = world.etag(page, world.version(page, world.config().epoch_s).0);
        let date = world.last_modified(page, world.config().epoch_s).map(crate::date::http);
        let good = Request { status: 304, if_none_match: tag, if_modified_since: date, ..again.clone() };
        simulation.append(good);
        expect(&simulation, &[]);
        let wrong = Some("\"0000\"".to_owned());
        let at = simulation.append(Request { if_none_match: wrong.clone(), if_modified_since: wrong, ..again.clone() });
        expect_at(&simulation, Kind::ValidatorWrong, at);
        simulation.requests.pop();
        let at = simulation.append(again);
        expect_at(&simulation, Kind::ValidatorIgnored, at);
    }
}

#[test]
fn requests_that_are_wrong_in_themselves() {
    let change = |kind, change: fn(&mut Request)| {
        plant(kind, &CrawlSettings::default(), |s| {
            let page = s.some_page();
            change(&mut s.requests[page]);
            page
        });
    };
    change(Kind::MissingAgent, |r| r.agent = None);
    change(Kind::MissingAgent, |r| r.agent = Some(String::new()));
    change(Kind::WrongAgent, |r| r.agent = Some("Mozilla/5.0".into()));
    change(Kind::BadMethod, |r| r.method = "POST");
    change(Kind::BodyOverrun, |r| r.bytes = 100 << 20);
    // These hide the fetch itself, so it is done once more.
    let repeat = |kind, change: fn(&mut Request)| {
        plant(kind, &CrawlSettings::default(), |s| {
            let mut request = s.requests[s.some_page()].clone();
            change(&mut request);
            s.append(request)
        });
    };
    repeat(Kind::MissingHost, |r| r.host = None);
    repeat(Kind::WrongHost, |r| r.host = Some("nobody.example".into()));
    repeat(Kind::WrongHost, |r| r.host.as_mut().unwrap().push_str(":8080"));
    repeat(Kind::BadRequest, |r| (r.status, r.host, r.agent, r.target) = (400, None, None, "nonsense".into()));
}

#[test]
fn wrong_server_name() {
    for name in [None, Some("somebody-else.example".to_owned())] {
        plant(Kind::WrongServerName, &CrawlSettings::default(), |s| {
            let page = s.find(|r| r.secure && is_page(r));
            s.requests[page].name = name;
            page
        });
    }
}

#[test]
fn wrong_address() {
    let world = many_addresses();
    let settings = CrawlSettings::default();
    let mut simulation = Simulation::run(&world, &settings);
    expect(&simulation, &[]);
    let page = simulation.some_page();
    simulation.requests[page].local = std::net::Ipv4Addr::new(127, 0, 0, 1);
    expect_at(&simulation, Kind::WrongAddress, page);
}

#[test]
fn certificate_ignored() {
    let world = only(&[(Character::Https, 1000), (Character::CertExpired, 300)]);
    let lax = CrawlSettings::default();
    let settings = CrawlSettings { verify_tls: true, ..CrawlSettings::default() };
    let mut simulation = Simulation::run(&world, &lax);
    expect(&simulation, &[]);
    let faulty = |r: &Request| r.secure && world.host(r.node.unwrap().host).unwrap().certificate.is_some();
    simulation.requests.retain(|r| !faulty(r));
    simulation.settings = &settings;
    expect(&simulation, &[]);
    let host = world.host_ids().find(|&id| world.host(id).unwrap().certificate.is_some()).unwrap();
    let request = simulation.request(world.node(host, Resource::Robots));
    let at = simulation.append(request);
    expect_at(&simulation, Kind::CertificateIgnored, at);
}

#[test]
fn every_kind_is_tested_here() {
    let source = include_str!("planted.rs");
    for kind in Kind::ALL {
        assert!(source.contains(&format!("Kind::{kind:?}")), "no test plants {kind:?}");
        assert!(!kind.about().is_empty());
    }
}
