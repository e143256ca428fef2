use std::collections::{BTreeSet, HashSet};

use super::*;

fn demo() -> World {
    World::new(&Config::default()).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_web_and_another_seed_another() {
    let (a, b) = (demo(), demo());
    let page = PageId { host: HostId(3), number: 0 };
    let html = |world: &World| {
        let mut out = String::new();
        world.render(page, &mut out);
        out
    };
    assert_eq!(html(&a), html(&b));
    assert_eq!(a.expected_pages(4), b.expected_pages(4));
    let other = World::new(&Config { seed: 2, ..Config::default() }).unwrap();
    assert_ne!(html(&a), html(&other));
}

#[test]
fn every_url_leads_back_to_its_page() {
    let world = demo();
    let mut seen = HashSet::new();
    for host in (0..).map(HostId).take(world.hosts().len()) {
        for page in world.pages(host) {
            let url = world.url(page);
            assert_eq!(world.outcome(&url), Outcome::Page(page), "{url}");
            assert_eq!(world.outcome(&format!("{url}#part")), Outcome::Page(page), "{url}");
            assert_eq!(world.outcome(&format!("{url}x")), Outcome::NotFound, "{url}");
            assert!(seen.insert(url));
        }
    }
    assert_eq!(seen.len() as u64, world.page_count());
    assert_eq!(world.outcome("http://nobody.example/"), Outcome::UnknownHost);
    assert_eq!(world.outcome("ftp://nobody.example/"), Outcome::NotAUrl);
}

#[test]
fn from_the_seeds_every_open_page_is_reached_within_the_depth_of_the_two_trees() {
    let world = demo();
    let all: BTreeSet<PageId> =
        (0..).map(HostId).take(world.hosts().len()).flat_map(|host| world.pages(host)).collect();
    let reached: BTreeSet<PageId> = world.walk(u32::MAX).into_iter().map(|(page, _)| page).collect();
    let open: BTreeSet<PageId> = all.iter().copied().filter(|&page| !world.is_closed(page)).collect();
    assert_eq!(reached, open);
    assert!(open.len() < all.len(), "some pages must be closed by robots.txt");
    assert!(world.full_depth() <= 10, "{}", world.full_depth());
    assert_eq!(world.expected_pages(world.full_depth()).len(), open.len());
    assert!(world.expected_pages(2).len() < open.len());
    assert_eq!(world.expected_pages(0).len(), world.seeds().len());
}

#[test]
fn page_counts_follow_a_zipf_law() {
    let world =
        World::new(&Config { pages: 20_000, max_pages_per_host: 20_000, zipf: 1.0, ..Config::default() }).unwrap();
    let mut counts: Vec<u32> = world.hosts().iter().map(|h| h.pages).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    assert!(world.page_count() > 19_000 && world.page_count() < 21_000, "{}", world.page_count());
    let ratio = f64::from(counts[0]) / f64::from(counts[9]);
    assert!((9.5..10.5).contains(&ratio), "{ratio}");
}

#[test]
fn html_holds_the_links_of_the_model_and_sizes_spread() {
    let world = demo();
    let mut sizes = Vec::new();
    for (page, _) in world.walk(u32::MAX).into_iter().step_by(7) {
        let mut html = String::new();
        world.render(page, &mut html);
        let hrefs: Vec<&str> = html.split("href=\"").skip(1).filter_map(|s| s.split('"').next()).collect();
        let base = format!("http://{}", world.host(page.host).unwrap().name);
        let found: Vec<String> =
            hrefs.iter().map(|h| if h.starts_with('/') { format!("{base}{h}") } else { (*h).to_owned() }).collect();
        let expected: Vec<String> = world.links(page).into_iter().map(|p| world.url(p)).collect();
        assert_eq!(found, expected);
        sizes.push(html.len());
    }
    sizes.sort_unstable();
    assert!(sizes[0] < 3_000 && sizes[sizes.len() - 1] > 30_000, "{sizes:?}");
    assert!((4_000..16_000).contains(&sizes[sizes.len() / 2]), "{}", sizes[sizes.len() / 2]);
}

#[test]
fn some_hosts_lack_robots_some_close_a_part_some_ask_for_a_delay() {
    let world = demo();
    let all: Vec<Option<Robots>> = (0..).map(HostId).take(world.hosts().len()).map(|h| world.robots(h)).collect();
    let some = |f: &dyn Fn(&Option<Robots>) -> bool| all.iter().filter(|r| f(r)).count();
    assert!(some(&|r| r.is_none()) > 10);
    assert!(some(&|r| r.as_ref().is_some_and(|r| r.crawl_delay_ms("x").is_some())) > 10);
    assert!(some(&|r| r.as_ref().is_some_and(|r| r.groups[0].rules.iter().any(|r| !r.pattern.is_empty()))) > 10);
}
