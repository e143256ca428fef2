//! Answers that lead on to others, or are none yet: redirects by way of other pages, sitemaps without end, robots.txt and pages
//! that are there at the second request.

mod common;

use common::{any_port, check, clock, config, ids, page, serve};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use trawl_engine::{Config, Report, Scope, Stop, run};
use trawl_fetch::TypeLimit;

fn crawl(config: Config) -> Report {
    let report = run(config, clock(), ids(), &Stop::new(), &mut |_| {}).unwrap();
    assert!(report.complete && report.urls.add_up(), "{report:?}");
    report
}

fn moved(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

fn missing() -> String {
    "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".into()
}

/// How often each page answered with a status, without those of robots.txt errands.
fn answers(out: &Path, status: i32) -> BTreeMap<String, u32> {
    let mut answers = BTreeMap::new();
    for row in check(out).into_iter().filter(|row| row.status == status && row.robots.is_some()) {
        *answers.entry(row.url.trim_start_matches("http://a.example").to_owned()).or_default() += 1;
    }
    answers
}

/// Sites that set a cookie first send a visitor round, and drop what tracks him on the way. Both spellings are one page by
/// their identity, but only the second one has it.
#[test]
fn a_redirect_leads_to_another_spelling_by_way_of_other_pages() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, request| match path {
        "/robots.txt" => missing(),
        "/" => page("", "<a href=/p?utm_source=x>p</a><a href=/q?utm_source=y>q</a><a href=/r?gclid=1>r</a>"),
        "/p?utm_source=x" => moved("http://b.example/cookies"),
        "/cookies" => moved("http://a.example/p"),
        "/q?utm_source=y" => moved("/q?utm_source=y&_ga=1"),
        "/q?utm_source=y&_ga=1" => moved("/q"),
        "/r?gclid=1" => moved("/round"),
        "/round" => moved("/r?gclid=1"),
        "/p" | "/q" if request.contains("Host: a.example") => page("", "what was asked for"),
        _ => missing(),
    });
    crawl(config(&out, addr, vec!["http://a.example/".into()], 3));
    assert_eq!(answers(&out, 200), BTreeMap::from([("/", 1), ("/p", 1), ("/q", 1)].map(|(url, n)| (url.into(), n))));
    // A round of redirects is gone once.
    assert!(answers(&out, 302).values().all(|n| *n == 1), "{:?}", answers(&out, 302));
}

/// Every sitemap names another one: the crawl ends all the same.
#[test]
fn sitemaps_that_name_sitemaps_end() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, _| match path.strip_prefix("/s").and_then(|n| n.parse::<u32>().ok()) {
        _ if path == "/robots.txt" => page("", "Sitemap: http://a.example/s0\n"),
        Some(3) => page("", "<urlset><url><loc>http://a.example/listed</loc></url></urlset>").replace("html", "xml"),
        Some(n) => {
            let (next, third) = (n + 1, if n == 0 { "<sitemap><loc>http://a.example/s3</loc></sitemap>" } else { "" });
            let next = if next == 3 { 4 } else { next };
            let named = format!("<sitemap><loc>http://a.example/s{next}</loc></sitemap>{third}");
            page("", &format!("<sitemapindex>{named}</sitemapindex>")).replace("html", "xml")
        }
        None => page("", "a page"),
    });
    let mut config = config(&out, addr, vec!["http://a.example/".into()], 1);
    (config.sitemaps, config.frontier.max_hops) = (true, 5);
    crawl(config);
    let fetched = answers(&out, 200);
    assert!(fetched.contains_key("/listed") && fetched.len() < 12, "{fetched:?}");
    let refused: Vec<_> =
        check(&out).into_iter().filter(|row| row.error_class.as_deref() == Some("redirect_limit")).collect();
    assert_eq!(refused.len(), 1);
}

/// A link led to a sitemap at the limit of depth, so that what it lists was too deep. Then a robots.txt names it.
#[test]
fn a_sitemap_that_a_robots_txt_names_late_is_as_near_as_a_seed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, request| match path {
        "/robots.txt" if request.contains("Host: b.example") => {
            std::thread::sleep(Duration::from_millis(500));
            page("", "Sitemap: http://a.example/map.xml\n")
        }
        "/robots.txt" => missing(),
        "/" => page("", "<a href=/map.xml>map</a><a href=http://b.example/x>b</a>"),
        "/map.xml" => page("", "<urlset><url><loc>http://a.example/listed</loc></url></urlset>").replace("html", "xml"),
        _ => page("", "a page"),
    });
    let mut config = config(&out, addr, vec!["http://a.example/".into()], 1);
    config.sitemaps = true;
    crawl(config);
    assert!(answers(&out, 200).contains_key("/listed"), "{:?}", answers(&out, 200));
}

/// Scripts send their sitemaps as HTML or without a type, and rules about pages say nothing of sitemaps.
#[test]
fn a_sitemap_is_read_whatever_its_type_and_wherever_it_lies() {
    for (n, fields) in
        ["Content-Type: text/html; charset=utf-8\r\n", "", "Content-Type: application/xml\r\n"].into_iter().enumerate()
    {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let addr = serve(any_port(), move |path, _| match path {
            "/robots.txt" => page("", "Sitemap: http://a.example/sitemap.php\n"),
            "/sitemap.php" => {
                let xml = "<?xml version='1.0'?><urlset><url><loc>http://a.example/docs/listed</loc></url>\
                           <url><loc>http://a.example/news/1</loc></url></urlset>";
                page(fields, xml).replacen("Content-Type: text/html\r\n", "", 1)
            }
            _ => page("", "a page"),
        });
        let mut config = config(&out, addr, vec!["http://a.example/docs/".into()], 1);
        config.sitemaps = true;
        match n {
            0 => config.rules.no_parent = true,
            1 => config.rules.include = vec![regex_lite::Regex::new("/docs/").unwrap()],
            _ => config.fetch.limits.body_bytes_of = vec![TypeLimit { media_type: "application/xml".into(), bytes: 0 }],
        }
        let report = crawl(config);
        let expected: &[&str] = if n < 2 {
            &["/docs/", "/docs/listed", "/sitemap.php"]
        } else {
            &["/docs/", "/docs/listed", "/news/1", "/sitemap.php"]
        };
        assert_eq!(answers(&out, 200).into_keys().collect::<Vec<_>>(), expected, "{fields:?}");
        assert_eq!(report.counts.refused.values().sum::<u64>(), u64::from(n < 2), "{:?}", report.counts.refused);
    }
}

/// A sitemap that a robots.txt names is as near as a seed, but nobody asked for it: where it moves to may be another site.
#[test]
fn a_sitemap_that_moves_away_brings_no_other_site() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, request| match path {
        "/robots.txt" if request.contains("Host: a.example") => {
            page("", "Sitemap: http://a.example/away.xml\nSitemap: http://a.example/near.xml\n")
        }
        "/robots.txt" => missing(),
        "/away.xml" => moved("/away2.xml"),
        "/away2.xml" => moved("http://b.example/map.xml"),
        "/near.xml" => moved("/near2.xml"),
        "/near2.xml" | "/map.xml" => page("", "<urlset><url><loc>/listed</loc></url></urlset>").replace("html", "xml"),
        _ => page("", "a page"),
    });
    let mut config = config(&out, addr, vec!["http://a.example/".into()], 1);
    (config.sitemaps, config.scope) = (true, Scope::Host);
    let report = crawl(config);
    assert_eq!(answers(&out, 200).into_keys().collect::<Vec<_>>(), ["/", "/listed", "/near2.xml"]);
    assert_eq!(report.counts.outside, 1);
}

/// The same if a link led there first: the page that redirects was no sitemap then, and it is fetched before the robots.txt is known,
/// or at the same time.
#[test]
fn a_link_that_is_named_as_a_sitemap_late_brings_no_other_site() {
    for in_flight in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let late = Duration::from_millis(500);
        let addr = serve(any_port(), move |path, request| match path {
            "/robots.txt" if request.contains("Host: www.a.example") => {
                std::thread::sleep(if in_flight { Duration::ZERO } else { late });
                page("", "Sitemap: http://a.example/away\n")
            }
            "/robots.txt" => missing(),
            "/" => page("", "<a href=/away>away</a><a href=http://www.a.example/x>x</a>"),
            "/away" => {
                std::thread::sleep(if in_flight { late } else { Duration::ZERO });
                moved("http://b.example/map.xml")
            }
            "/map.xml" => page("", "<urlset><url><loc>/listed</loc></url></urlset>").replace("html", "xml"),
            _ => page("", "a page"),
        });
        let mut config = config(&out, addr, vec!["http://a.example/".into()], 1);
        (config.sitemaps, config.scope) = (true, Scope::Domain);
        crawl(config);
        assert_eq!(answers(&out, 200).into_keys().collect::<Vec<_>>(), ["/", "http://www.a.example/x"], "{in_flight}");
    }
}

/// What a site announces and the crawl does not read is missing from it, and the report says so.
#[test]
fn what_is_wrong_with_sitemaps_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let xml = |text: &str| page("", text).replace("text/html", "text/xml");
    let addr = serve(any_port(), move |path, _| match path {
        "/robots.txt" => {
            let names = ["missing.xml", "page.xml", "cut.xml", "private/map.xml", "index.xml"];
            let lines = names.map(|name| format!("Sitemap: http://a.example/{name}\n")).concat();
            page("", &format!("User-agent: *\nDisallow: /private/\nSitemap: http://\n{lines}"))
        }
        "/missing.xml" | "/later.xml" => missing(),
        "/cut.xml" => xml("<urlset><url><loc>/half</loc></url><url><loc>http://a.exa"),
        "/index.xml" => {
            let named = ["/map.xml", "/later.xml", "mailto:map@a.example"];
            let named = named.map(|url| format!("<sitemap><loc>{url}</loc></sitemap>")).concat();
            xml(&format!("<sitemapindex>{named}</sitemapindex>"))
        }
        "/map.xml" => xml("<urlset><url><loc>/listed</loc></url><url><loc>not a URL</loc></url></urlset>"),
        // A link is not an announcement.
        "/" => page("", "<a href=/sitemap>Our site</a><a href=/gone/sitemap.xml>old</a>"),
        path if path.starts_with("/gone/") => missing(),
        _ => page("", "a page"),
    });
    let mut config = config(&out, addr, vec!["http://a.example/".into()], 1);
    config.sitemaps = true;
    let report = crawl(config);
    let unread = [("damaged", 1), ("not_a_sitemap", 1), ("robots_denied", 1), ("status_404", 2)];
    assert_eq!(report.counts.sitemaps_unread, BTreeMap::from(unread.map(|(why, n)| (why.to_owned(), n))));
    assert_eq!(report.counts.sitemap_rejects, 3);
    let fetched = answers(&out, 200);
    assert!(fetched.contains_key("/listed") && fetched.contains_key("/half"), "{fetched:?}");
}

/// A link found it first, so that it had the looks of a sitemap, which leads nowhere else.
#[test]
fn where_a_seed_moves_to_is_wanted_also_by_way_of_a_linked_page() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, request| match path {
        "/robots.txt" => missing(),
        "/" => page("", "<a href=/slow>slow</a><a href=/login>login</a>"),
        "/slow" => {
            // Meanwhile the redirect is taken in.
            std::thread::sleep(Duration::from_millis(300));
            page("", "a page")
        }
        "/start" => moved("/login"),
        "/login" => moved("http://b.example/asked-for"),
        "/asked-for" if request.contains("Host: b.example") => page("", "what was asked for"),
        _ => page("", "a page"),
    });
    let seeds = ["http://a.example/", "http://a.example/start"].map(str::to_owned);
    let mut config = config(&out, addr, seeds.into(), 1);
    config.scope = Scope::Host;
    crawl(config);
    assert!(answers(&out, 200).contains_key("http://b.example/asked-for"), "{:?}", answers(&out, 200));
}

/// Whatever a page answers is an answer, also if the run does not wait for a better one.
#[test]
fn a_page_that_answered_and_is_given_up_counts_as_fetched() {
    let dir = tempfile::tempdir().unwrap();
    let addr = serve(any_port(), |path, _| match path {
        "/robots.txt" => missing(),
        _ => missing().replace("404 Not Found", "503 Busy"),
    });
    let mut config = config(&dir.path().join("out"), addr, vec!["http://a.example/".into()], 0);
    (config.wait, config.frontier.backoff) = (Duration::ZERO, Duration::from_secs(60));
    let report = crawl(config);
    assert_eq!((report.urls.fetched, report.urls.failed, report.counts.given_up), (1, 0, 1), "{report:?}");
}

/// A spelling that robots.txt closes is not the page: it is found first, and the page is fetched all the same.
#[test]
fn a_page_is_fetched_whose_tracked_spellings_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, _| match path {
        "/robots.txt" => page("", "User-agent: *\nDisallow: /*?utm_\n"),
        "/" => page("", "<a href=/p?utm_source=x>p</a><a href=/p>p</a><a href=http://b.example/q?utm_source=y>q</a>"),
        // Of the other host nothing was known when it was linked.
        "/p" => page("", "<a href=http://b.example/r>r</a>"),
        "/r" => page("", "<a href=/q>q</a>"),
        _ => page("", "a page"),
    });
    let report = crawl(config(&out, addr, vec!["http://a.example/".into()], 3));
    let fetched: Vec<_> = answers(&out, 200).into_keys().collect();
    assert_eq!(fetched, ["/", "/p", "http://b.example/q", "http://b.example/r"]);
    assert_eq!((report.urls.fetched, report.urls.excluded, report.urls.offered), (4, 2, 6));
}

/// A site may ask crawlers to follow no link of its pages, as many do by accident. Whoever crawls it is told so.
#[test]
fn links_of_a_page_that_says_nofollow_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let addr = serve(any_port(), |path, _| match path {
        "/robots.txt" => missing(),
        "/" => page("", "<meta name=robots content='noindex, nofollow'><a href=/a>a</a><a href=/b>b</a>"),
        "/h" => page("X-Robots-Tag: none\r\n", "<a href=/c>c</a>"),
        _ => page("", "a page"),
    });
    let seeds = ["http://a.example/", "http://a.example/h"].map(String::from);
    let report = crawl(config(&out, addr, seeds.into(), 1));
    assert_eq!(report.counts.refused, BTreeMap::from([("nofollow".to_owned(), 3)]));
    assert_eq!(report.urls.fetched, 2);
}

/// Rules that are old before the delay is over are used once all the same.
#[test]
fn a_robots_txt_that_ages_faster_than_the_delay_holds_for_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let asked = Arc::new(AtomicU32::new(0));
    let counted = asked.clone();
    let addr = serve(any_port(), move |path, _| match path {
        "/robots.txt" => {
            // Without an end the test would not end either.
            let n = counted.fetch_add(1, Ordering::Relaxed);
            if n < 20 { page("", "User-agent: *\nCrawl-delay: 0.2\n") } else { missing() }
        }
        _ => page("", "a page"),
    });
    let urls = (0..3).map(|n| format!("http://a.example/{n}")).collect();
    let mut config = config(&out, addr, urls, 0);
    config.frontier.robots_ttl = Duration::from_millis(50);
    crawl(config);
    assert_eq!(answers(&out, 200).len(), 3);
    assert!(asked.load(Ordering::Relaxed) <= 4, "{asked:?}");
}

/// "Not now" said of a robots.txt allows nothing, and an answer that is not HTTP is none: both are asked for again.
#[test]
fn what_is_no_answer_yet_is_asked_for_again() {
    for busy in ["408 Request Timeout", "425 Too Early"] {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out");
        let asked = Arc::new(AtomicU32::new(0));
        let addr = serve(any_port(), move |path, _| {
            let is_first = |bit: u32| asked.fetch_or(bit, Ordering::Relaxed) & bit == 0;
            match path {
                "/robots.txt" if is_first(1) => missing().replace("404 Not Found", busy),
                "/robots.txt" => page("", "User-agent: *\nDisallow: /private\n"),
                "/page" if is_first(2) => "\u{1}\u{2} this is not HTTP\r\n\r\n".into(),
                _ => page("", "a page"),
            }
        });
        let urls = ["http://a.example/page", "http://a.example/private"].map(String::from);
        let report = crawl(config(&out, addr, urls.into(), 0));
        assert_eq!(answers(&out, 200).into_keys().collect::<Vec<_>>(), ["/page"], "{busy}");
        assert_eq!((report.counts.given_up, report.urls.excluded), (0, 1), "{busy}");
    }
}
