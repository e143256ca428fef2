//! robots.txt against the public suites, kept as facts under `tests/data/robots`.
//!
//! ```text
//! case NAME            a new file; its lines follow, each after "| "
//! | LINE               with \r \n \xHH \uHHHH decoded; a final \ means no line feed
//! rule PATTERN         short for a file with "User-agent: *", "Disallow: PATTERN", "Allow: /", and "agent x"
//! agent NAME           the agent that the lines below are about; "-" for none
//! allow URL, deny URL  the verdict for a URL or path
//! line N PATH          the line that decides
//! delay SECONDS        the crawl-delay, or "none"
//! sitemap URL          the file's sitemaps, in order
//! ```

mod common;

use std::time::Duration;

use trawl_parse::robots::{AgentRules, Robots, path_and_query, product_token};

/// The case being read.
#[derive(Default)]
struct Case {
    name: String,
    file: Vec<u8>,
    agent: AgentRules,
    sitemaps: Vec<String>,
    checks: usize,
}

impl Case {
    fn finish(&mut self) {
        assert!(self.checks > 0 || self.name.is_empty(), "{}: nothing checked", self.name);
        if !self.sitemaps.is_empty() {
            assert_eq!(Robots::parse(&self.file).sitemaps(), self.sitemaps, "{}", self.name);
        }
    }

    fn check(&mut self, word: &str, rest: &str) {
        self.checks += 1;
        let context = format!("{}: {word} {rest}\n{}", self.name, String::from_utf8_lossy(&self.file));
        match word {
            "agent" => self.agent = Robots::parse(&self.file).agent(if rest == "-" { "" } else { rest }),
            "allow" => assert!(self.agent.allows(&*path_and_query(rest)).allowed, "{context}"),
            "deny" => assert!(!self.agent.allows(&*path_and_query(rest)).allowed, "{context}"),
            "line" => {
                let (line, path) = rest.split_once(' ').unwrap();
                assert_eq!(self.agent.allows(path).line, line.parse().ok(), "{context}");
            }
            "delay" => {
                let want = rest.parse().ok().map(Duration::from_secs_f64);
                assert_eq!(self.agent.crawl_delay(), want, "{context}");
            }
            "sitemap" => self.sitemaps.push(rest.to_owned()),
            _ => panic!("{context}: unknown word"),
        }
    }
}

/// Runs a file of cases; returns how many things it checked.
fn run(cases: &str) -> usize {
    let mut total = 0;
    let mut case = Case::default();
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "case" | "rule" => {
                case.finish();
                total += case.checks;
                case = Case { name: line.to_owned(), ..Case::default() };
                if word == "rule" {
                    case.file = format!("User-agent: *\r\nDisallow: {rest}\r\nAllow: /").into_bytes();
                    case.agent = Robots::parse(&case.file).agent("mybot");
                }
            }
            "|" => {
                assert_eq!(case.checks, 0, "{}: file after checks", case.name);
                case.file.extend(common::decode(rest));
            }
            _ => case.check(word, rest),
        }
    }
    case.finish();
    total + case.checks
}

#[test]
fn examples_of_the_rfc() {
    assert!(run(include_str!("data/robots/rfc9309.txt")) > 50);
}

#[test]
fn cases_of_google() {
    assert!(run(include_str!("data/robots/google.txt")) > 150);
}

#[test]
fn cases_of_crawler_commons() {
    assert!(run(include_str!("data/robots/commons.txt")) > 250);
}

#[test]
fn deviations_are_as_documented() {
    assert!(run(include_str!("data/robots/deviations.txt")) > 5);
}

#[test]
fn long_lines_are_cut_where_google_cuts_them() {
    const MAX: usize = 2083 * 8;
    let fill = |field: &str, byte: char| {
        let mut path = "/x/".to_owned();
        path.extend(std::iter::repeat_n(byte, MAX - path.len() - field.len() + 1 - path.len()));
        path
    };
    let path = fill("disallow: ", 'a');
    let rules = Robots::parse(format!("user-agent: FooBot\ndisallow: {path}/qux\n").as_bytes()).agent("FooBot");
    assert!(rules.allows("/fux").allowed);
    assert!(!rules.allows(format!("{path}/fux")).allowed);

    let (a, b) = (fill("allow: ", 'a'), fill("allow: ", 'b'));
    let file = format!("user-agent: FooBot\ndisallow: /\nallow: {a}/qux\nallow: {b}/qux\n");
    let rules = Robots::parse(file.as_bytes()).agent("FooBot");
    assert!(!rules.allows("/").allowed);
    assert!(rules.allows(format!("{a}/qux")).allowed);
    assert!(rules.allows(format!("{b}/fux")).allowed);
}

#[test]
fn product_tokens_of_user_agents() {
    for (user_agent, want) in [
        ("Foobot", "Foobot"),
        ("Foobot-Bar", "Foobot-Bar"),
        ("Foo_Bar", "Foo_Bar"),
        ("", ""),
        ("ツ", ""),
        ("Foobot*", "Foobot"),
        (" Foobot ", ""),
        ("Foobot/2.1", "Foobot"),
        ("Foobot Bar", "Foobot"),
        ("Mozilla/5.0 (compatible; Foobot/2.1; +http://www.example.com/bot.html)", "Foobot"),
        ("Mozilla/5.0 (compatible; Foobot/2.1 +http://www.example.com/bot.html)", "Foobot"),
        ("Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; Foo-bot/2.1; +http://a.example)", "Foo-bot"),
        ("Mozilla/5.0 (Linux; Android 6.0.1) Safari/537.36 (compatible; Foobot/2.1; +http://a.example)", "Foobot"),
        ("Mozilla/5.0 (Macintosh) Version/8.0.2 Safari/600.2.5 (Foobot/0.1; +http://a.example)", "Foobot"),
        ("Mozilla/5.0 (Macintosh) Safari/600.2.5 Foobot/0.1 (+http://a.example)", "Foobot"),
        ("Mozilla/5.0 (compatible; +http://a.example)", "Mozilla"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Mozilla"),
        ("Mozilla/5.0 (+http://a.example)", "Mozilla"),
        ("Mozilla/5.0 (compatible", "Mozilla"),
        ("Foobot/2.1 (compatible; Other/1.0)", "Foobot"),
    ] {
        assert_eq!(product_token(user_agent), want);
    }
}

#[test]
fn paths_of_urls() {
    for (url, want) in [
        ("", "/"),
        ("http://www.example.com", "/"),
        ("http://www.example.com/", "/"),
        ("http://www.example.com/a", "/a"),
        ("http://www.example.com/a/", "/a/"),
        ("http://www.example.com/a/b?c=http://d.e/", "/a/b?c=http://d.e/"),
        ("http://www.example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("example.com", "/"),
        ("example.com/", "/"),
        ("example.com/a", "/a"),
        ("example.com/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("a", "/"),
        ("a/", "/"),
        ("/a", "/a"),
        ("a/b", "/b"),
        ("example.com?a", "/?a"),
        ("example.com/a;b#c", "/a;b"),
        ("//a/b/c", "/b/c"),
    ] {
        assert_eq!(path_and_query(url), want, "{url}");
    }
}
