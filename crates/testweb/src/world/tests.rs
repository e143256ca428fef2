use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::*;
use crate::character::Axis;
use crate::profiles::Profile;
use crate::settings::CrawlSettings;

fn demo() -> World {
    World::new(&Config::default()).unwrap()
}

fn of(profile: Profile) -> World {
    World::new(&Config { domains: 600, pages: 12_000, ..Config::profile(profile) }).unwrap()
}

fn html(world: &World, node: Node, now_s: u64) -> String {
    let mut out = String::new();
    world.render(node, now_s, &mut out);
    out
}

fn all_pages(world: &World) -> impl Iterator<Item = PageId> {
    world.host_ids().flat_map(|host| world.pages(host))
}

#[test]
fn the_same_seed_gives_the_same_web_and_another_seed_another() {
    let (a, b) = (of(Profile::Hostile), of(Profile::Hostile));
    let node = a.node(HostId(3), Resource::Page(0));
    assert_eq!(html(&a, node, 0), html(&b, node, 0));
    assert_eq!(a.expected_pages(4), b.expected_pages(4));
    let other = World::new(&Config { seed: 2, ..a.config.clone() }).unwrap();
    assert_ne!(html(&a, node, 0), html(&other, node, 0));
}

#[test]
fn every_url_leads_back_to_its_node() {
    for profile in Profile::ALL {
        let world = of(profile);
        let mut seen = HashSet::new();
        for page in all_pages(&world) {
            let url = world.url(page);
            let node = world.node(page.host, Resource::Page(page.number));
            assert_eq!(world.find(&url), Some(node), "{url}");
            assert_eq!(world.find(&format!("{url}#part")), Some(node), "{url}");
            assert_eq!(world.find(&format!("{url}x")), None, "{url}");
            assert!(seen.insert(url));
            for link in world.links(node) {
                let url = world.url_of(link.to);
                assert_eq!(world.find(&url), Some(link.to), "{url}");
            }
            if let Outcome::Redirect { to, .. } = world.outcome_of(node) {
                assert_eq!(world.find(&world.url_of(to)), Some(to));
            }
        }
        assert_eq!(seen.len() as u64, world.page_count());
        assert_eq!(world.outcome("http://nobody.example/"), Outcome::UnknownHost);
        assert_eq!(world.outcome("ftp://nobody.example/"), Outcome::NotAUrl);
    }
}

#[test]
fn the_demo_has_only_plain_pages_and_all_open_ones_are_expected() {
    let world = demo();
    let expected = world.expected_pages(u32::MAX);
    let open: BTreeSet<String> =
        all_pages(&world).filter(|&page| !world.is_closed(page)).map(|page| world.url(page)).collect();
    assert_eq!(expected, open);
    assert!((open.len() as u64) < world.page_count(), "some pages must be closed by robots.txt");
    assert!(expected.iter().all(|url| url.starts_with("http://") && matches!(world.outcome(url), Outcome::Content(_))));
    assert!(world.full_depth() <= 10, "{}", world.full_depth());
    assert_eq!(world.expected_pages(world.full_depth()), open);
    assert!(world.expected_pages(2).len() < open.len());
    assert_eq!(world.expected_pages(0).len(), world.seeds().len());
}

#[test]
fn in_every_profile_all_pages_are_reached_that_nothing_keeps_away() {
    for profile in [Profile::Standard, Profile::Hostile] {
        let world = of(profile);
        let settings = CrawlSettings { sitemap_depth: Some(1), ..CrawlSettings::default() };
        let expected = world.expect(&settings);
        let (mut wanted, mut closed) = (0u64, 0u64);
        for page in all_pages(&world) {
            let host = world.host(page.host).unwrap();
            let node = world.node(page.host, Resource::Page(page.number));
            let mut path = String::new();
            world.push_target(node, &mut path);
            let kept_away = world.robots_unreachable(page.host)
                || host.robots == Some(Character::RobotsLoop)
                || !world.allows(page.host, "trawl", &path);
            let want = expected.want(node);
            assert_eq!(want.is_none_or(|w| w == Want::May), kept_away, "{} {want:?}", world.url(page));
            wanted += u64::from(!kept_away);
            closed += u64::from(kept_away);
        }
        assert!(closed > wanted / 100 && wanted > closed, "{wanted} {closed}");
        // Without sitemaps, the orphans are not found.
        let plain = CrawlSettings::default();
        assert!(world.expect(&plain).wanted().count() < expected.wanted().count());
    }
}

#[test]
fn every_character_occurs_about_as_often_as_asked() {
    let mut occurred = std::collections::BTreeSet::new();
    for profile in [Profile::Hostile, Profile::Trouble] {
        let world = World::new(&Config { domains: 4_000, pages: 60_000, ..Config::profile(profile) }).unwrap();
        let description = world.describe();
        assert_eq!(description.characters.len(), Character::ALL.len());
        for entry in &description.characters {
            let share = u64::from(world.config.shares.get(entry.character));
            assert_eq!(entry.count > 0, share > 0, "{:?} in {profile:?}", entry.character);
            if matches!(entry.axis, Axis::Robots | Axis::Trap | Axis::Absence | Axis::Announcement | Axis::Name) {
                let asked = share * description.hosts / 1000;
                assert!(
                    entry.count >= asked * 7 / 10 && entry.count < asked * 13 / 10 + 10,
                    "{entry:?}, asked {asked}"
                );
            }
            occurred.extend((entry.count > 0).then_some(entry.character));
        }
    }
    assert_eq!(occurred.len(), Character::ALL.len(), "{occurred:?}");
    let demo = demo().describe();
    assert!(demo.characters.iter().all(|c| c.axis == Axis::Robots || c.count == 0));
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
fn html_holds_the_links_of_the_model_in_every_profile() {
    for profile in Profile::ALL {
        let world = of(profile);
        for page in all_pages(&world).step_by(3) {
            let node = world.node(page.host, Resource::Page(page.number));
            let html = html(&world, node, 0);
            let base = url::Url::parse(&world.url(page)).unwrap();
            let found: Vec<Option<Node>> = html
                .split("<a href=\"")
                .skip(1)
                .filter_map(|s| s.split('"').next())
                .map(|h| h.replace("&amp;", "&").replace("&#x2F;", "/").replace("&#47;", "/"))
                .map(|href| world.find(base.join(&href).unwrap().as_str()))
                .collect();
            let expected: Vec<Option<Node>> = world.links(node).into_iter().map(|l| Some(l.to)).collect();
            assert_eq!(found, expected, "{base}");
            let says_nofollow = html.contains("content=\"nofollow\"");
            assert!(!says_nofollow || world.is_nofollow(page));
        }
    }
}

#[test]
fn sizes_spread_between_their_limits() {
    let world = demo();
    let size = |p: PageId| html(&world, world.node(p.host, Resource::Page(p.number)), 0).len();
    let mut sizes: Vec<usize> = all_pages(&world).step_by(7).map(size).collect();
    sizes.sort_unstable();
    assert!(sizes[0] < 3_000 && sizes[sizes.len() - 1] > 30_000, "{sizes:?}");
    assert!((4_000..16_000).contains(&sizes[sizes.len() / 2]), "{}", sizes[sizes.len() / 2]);
}

#[test]
fn odd_spellings_resolve_to_the_link() {
    let world = of(Profile::Hostile);
    let mut spellings = BTreeMap::new();
    for page in all_pages(&world).take(4_000) {
        let node = world.node(page.host, Resource::Page(page.number));
        for link in world.links(node).into_iter().filter(|l| l.spelling.is_some()) {
            let mut href = String::new();
            world.push_href(page.host, &link, &mut href);
            let decoded = href.replace("&amp;", "&").replace("&#x2F;", "/").replace("&#47;", "/");
            let base = url::Url::parse(&world.url(page)).unwrap();
            let mut resolved = base.join(&decoded).unwrap();
            resolved.set_fragment(None);
            assert_eq!(resolved.as_str(), world.url_of(link.to), "{href:?}");
            *spellings.entry(link.spelling).or_insert(0) += 1;
        }
    }
    assert_eq!(spellings.len(), 9, "{spellings:?}");
}

#[test]
fn pages_change_at_their_rates_and_only_then() {
    let world = of(Profile::Standard);
    let start = world.config.epoch_s;
    let mut changing = 0;
    for page in all_pages(&world).take(300) {
        let node = world.node(page.host, Resource::Page(page.number));
        let (version, since) = world.version(page, start);
        assert!(since <= start);
        match world.change_period(page) {
            None => {
                assert_eq!(html(&world, node, start), html(&world, node, start + 100_000_000));
                assert_eq!(world.version(page, start + 100_000_000).0, version);
            }
            Some(period) => {
                changing += 1;
                assert_eq!(html(&world, node, since), html(&world, node, since + period - 1));
                assert_ne!(html(&world, node, since), html(&world, node, since + period));
                assert_eq!(world.version(page, since + period), (version + 1, since + period));
                assert!(
                    world.etag(page, version).is_none() || world.etag(page, version) != world.etag(page, version + 1)
                );
            }
        }
    }
    assert!(changing > 30, "{changing}");
}

#[test]
fn duplicates_have_equal_bytes_and_near_duplicates_almost() {
    let world = of(Profile::Hostile);
    let (mut same, mut near) = (0, 0);
    for page in all_pages(&world) {
        let before = PageId { number: page.number.saturating_sub(1), ..page };
        let body = |p: PageId| html(&world, world.node(p.host, Resource::Page(p.number)), world.config.epoch_s);
        match world.text_character(page) {
            Some(Character::Duplicate) => {
                assert_eq!(body(page), body(before));
                same += 1;
            }
            Some(Character::NearDuplicate) => {
                assert_ne!(body(page), body(before));
                near += 1;
            }
            _ => {}
        }
    }
    assert!(same > 100 && near > 100);
}

#[test]
fn traps_go_on_and_on() {
    let world = of(Profile::Hostile);
    for trap in [Character::CalendarTrap, Character::SessionTrap, Character::FacetTrap] {
        let host = world.host_ids().find(|&id| world.host(id).unwrap().trap == Some(trap)).unwrap();
        let mut seen = HashSet::from([world.node(host, Resource::Page(0))]);
        let mut queue: Vec<Node> = seen.iter().copied().collect();
        while let Some(node) = queue.pop().filter(|_| seen.len() < 2_000) {
            assert_eq!(world.find(&world.url_of(node)), Some(node));
            for link in
                world.links(node).into_iter().filter(|l| l.to.host == host && !matches!(l.to.what, Resource::Page(_)))
            {
                if seen.insert(link.to) {
                    queue.insert(0, link.to);
                }
            }
        }
        assert!(seen.len() >= 2_000, "{trap:?} ended after {}", seen.len());
    }
}

#[test]
fn redirect_chains_end_at_content_except_loops() {
    let world = of(Profile::Hostile);
    let mut lengths = BTreeMap::new();
    for page in all_pages(&world) {
        let mut node = world.node(page.host, Resource::Page(page.number));
        let mut hops = 0;
        while let Outcome::Redirect { to, status } = world.outcome_of(node) {
            assert!([301, 302, 303, 307, 308].contains(&status));
            (node, hops) = (to, hops + 1);
            if hops > 40 {
                break;
            }
        }
        if hops > 0 {
            let fate = world.fate(page).unwrap();
            assert_eq!(hops > 40, fate == Character::RedirectLoop, "{fate:?}");
            *lengths.entry((fate, hops)).or_insert(0) += 1;
        }
    }
    let has = |fate, hops| lengths.contains_key(&(fate, hops));
    assert!(has(Character::Redirect, 1) && has(Character::RedirectChain, 4) && has(Character::RedirectLong, 30));
}

#[test]
fn sitemaps_list_every_page_once_through_nested_indexes() {
    let world =
        World::new(&Config { pages: 60_000, max_pages_per_host: 3_000, ..Config::profile(Profile::Standard) }).unwrap();
    for kind in [Character::Sitemap, Character::SitemapIndex] {
        let host = world.host_ids().filter(|&id| world.host(id).unwrap().announcement == Some(kind));
        let host = host.max_by_key(|&id| world.host(id).unwrap().pages).unwrap();
        let mut found = BTreeSet::new();
        let mut todo = vec![world.node(host, Resource::Sitemap(0))];
        let mut files = 0;
        while let Some(node) = todo.pop() {
            let Resource::Sitemap(number) = node.what else { panic!("{node:?}") };
            files += 1;
            for loc in world.sitemap(host, number, 0).split("<loc>").skip(1).filter_map(|s| s.split('<').next()) {
                let node = world.find(&loc.replace("&amp;", "&")).unwrap();
                match node.what {
                    Resource::Page(number) => assert!(found.insert(number)),
                    _ => todo.push(node),
                }
            }
        }
        assert_eq!(found.len(), index(world.host(host).unwrap().pages));
        assert_eq!(files > 3, kind == Character::SitemapIndex, "{files}");
        assert!(world.robots(host).is_none_or(|r| r.sitemaps.len() == 1));
    }
}

#[test]
fn addresses_differ_by_domain_and_are_all_loopback() {
    let config = Config { domains: 70_000, addresses: Addresses::Many, domains_per_address: 2, ..Config::default() };
    let world = World::new(&config).unwrap();
    let mut by_address = BTreeMap::<Ipv4Addr, BTreeSet<&str>>::new();
    for (id, host) in world.host_ids().zip(world.hosts()) {
        by_address.entry(world.address(id)).or_default().insert(host.registrable());
    }
    assert_eq!(by_address.len(), 35_000);
    assert!(by_address.iter().all(|(ip, domains)| ip.is_loopback() && domains.len() == 2));
    assert_eq!(world.hosts_file().lines().count(), world.hosts().len());
}
