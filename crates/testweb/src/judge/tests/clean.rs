use super::*;
use crate::config::Addresses;

#[test]
fn clean_logs_of_every_profile_are_clean() {
    for profile in Profile::ALL {
        for seed in 1..=4 {
            let world = world(profile, seed);
            for depth in [0, 2, u32::MAX] {
                let settings = CrawlSettings { depth, ..CrawlSettings::default() };
                let simulation = Simulation::run(&world, &settings);
                let verdict = expect(&simulation, &[]);
                assert!(verdict.clean, "{verdict}");
                assert_eq!((verdict.fetched, verdict.requests), (verdict.expected, simulation.requests.len() as u64));
                let wanted = if depth == 0 { 8 } else { 100 };
                assert!(verdict.expected >= wanted, "{profile:?} {depth}: {verdict}");
            }
        }
    }
}

/// On loopback an answer may take less than a microsecond: it then ends when its own request begins, and is not an earlier one.
#[test]
fn clean_with_answers_that_take_no_time() {
    let (world, settings) = (world(Profile::Demo, 1), CrawlSettings::default());
    let mut simulation = Simulation::run(&world, &settings);
    for request in &mut simulation.requests {
        request.length_us = 0;
    }
    assert!(expect(&simulation, &[]).clean);
}

#[test]
fn clean_with_sitemaps() {
    for sitemap_depth in [Some(0), Some(2)] {
        let settings = CrawlSettings { sitemap_depth, depth: 4, ..CrawlSettings::default() };
        let world = world(Profile::Standard, 2);
        let verdict = expect(&Simulation::run(&world, &settings), &[]);
        let without = CrawlSettings { sitemap_depth: None, ..settings.clone() };
        assert!(verdict.expected > world.expect(&without).wanted().count() as u64);
    }
}

#[test]
fn clean_with_addresses_of_their_own() {
    let config =
        Config { addresses: Addresses::Many, domains_per_address: 3, ..world(Profile::Standard, 1).config().clone() };
    let world = World::new(&config).unwrap();
    let settings = CrawlSettings { ip_in_flight: 1, ip_interval_ms: 200, ..CrawlSettings::default() };
    assert!(expect(&Simulation::run(&world, &settings), &[]).clean);
}

fn tiny() -> World {
    World::new(&Config { domains: 4, seeds: 1, pages: 20, ..Config::default() }).unwrap()
}

#[test]
fn damaged_lines_are_faults_and_the_rest_is_judged() {
    let world = tiny();
    let settings = CrawlSettings::default();
    let (text, _) = Simulation::run(&world, &settings).render();
    let judge = |text: &str| judge_reader(text.as_bytes(), &world, &settings).unwrap();
    assert!(judge(&text).clean);
    let bad_lines =
        ["", "Z\t1", "R\t1", "C\tx\t1\t127.0.0.1:1\t127.0.0.1:2", "X\t1\t2\t3", "S\t1\t1\t\\q\t-", "T\t1\t2\tfast"];
    for bad in bad_lines {
        let verdict = judge(&format!("{text}{bad}\n"));
        assert_eq!((verdict.fault_count, verdict.clean, verdict.counts.len()), (1, false, 0), "{bad:?}");
        assert_eq!(verdict.faults[0].line, text.lines().count() as u64 + 1);
    }
    // Cut anywhere it still gives a verdict, clean only without the last line, which ends a connection.
    let last_line = text.trim_end().rfind('\n').unwrap() + 1;
    for cut in 0..text.len() {
        assert_eq!(judge(&text[..cut]).clean, cut == last_line, "{cut}");
    }
    assert_eq!(judge(&text[..text.len() - 1]).fault_count, 1);
    assert_eq!(judge("").requests, 0);
    assert!(judge("X\t1\t1\n").faults[0].detail.contains("testweb-log"));
    let other = judge_reader(text.replace("seed=1", "seed=2").as_bytes(), &world, &settings).unwrap();
    assert_eq!(other.fault_count, 1);
}

#[test]
fn flipped_bytes_never_break_the_judge() {
    let world = tiny();
    let settings = CrawlSettings::default();
    let (text, _) = Simulation::run(&world, &settings).render();
    let mut bytes = text.into_bytes();
    for at in 0..bytes.len().min(1_500) {
        for bit in 0..8 {
            bytes[at] ^= 1 << bit;
            let _ = judge_reader(&bytes[..], &world, &settings).unwrap();
            bytes[at] ^= 1 << bit;
        }
    }
}

#[test]
fn a_second_server_continues_the_same_log() {
    let world = world(Profile::Demo, 1);
    let settings = CrawlSettings { host_interval_ms: 10, max_crawl_delay_ms: 0, ..CrawlSettings::default() };
    let simulation = Simulation::run(&world, &settings);
    let (text, _) = simulation.render();
    // The second server starts with its own time zero and its own connection numbers, much later.
    let later = simulation.end_us() + 1_000_000_000;
    let second = text.replace("unix_us=1000", &format!("unix_us={}", 1_000 + later));
    let verdict = judge_reader(format!("{text}{second}").as_bytes(), &world, &settings).unwrap();
    assert_eq!(verdict.counts.keys().collect::<Vec<_>>(), [&Kind::FetchedTwice], "{verdict}");
    assert_eq!(verdict.count(Kind::FetchedTwice), verdict.expected);
}

#[test]
fn verdicts_are_json_with_line_numbers() {
    let world = world(Profile::Demo, 1);
    let settings = CrawlSettings::default();
    let mut simulation = Simulation::run(&world, &settings);
    let page = simulation.some_page();
    simulation.requests[page].agent = None;
    let json = serde_json::to_value(verdict(&simulation)).unwrap();
    assert_eq!(json["clean"], false);
    assert_eq!(json["counts"]["missing-agent"], 1);
    assert_eq!(json["violations"][0]["kind"], "missing-agent");
    assert_eq!(json["violations"][0]["line"], simulation.render().1[page]);
}
