//! How fast links and robots.txt are read, beside the peers: one thread, one run, the same input.
//!
//! ```text
//! cargo run --release --features parse --bin parse [DIRECTORY OF HTML]
//! ```
//!
//! Without a directory the input is 50 MB of generated pages. Questions: is a tokenizer of our own worth it over
//! `lol_html` alone, how much does a full HTML parser cost, and what does one robots.txt verdict cost? And does the
//! tokenizer find what the parser finds? `parse --compare DIRECTORY` lists the pages where it does not.

use std::cell::Cell;
use std::hint::black_box;
use std::path::Path;

use lol_html::html_content::Element;
use lol_html::{HtmlRewriter, Settings, element};
use scraper::{Html, Selector};
use trawl_parse::links::{Kind, LinkExtractor, Options, links};
use trawl_parse::robots::Robots;

const BASE: &str = "https://www.example.com/section/page.html";

fn main() {
    let mut arguments = std::env::args().skip(1);
    if std::env::args().nth(1).as_deref() == Some("--compare") {
        return compare(&read(Path::new(&arguments.nth(1).unwrap_or_default())));
    }
    let pages = match arguments.next() {
        Some(directory) => read(Path::new(&directory)),
        None => (0..640).map(page).collect(),
    };
    let bytes: usize = pages.iter().map(Vec::len).sum();
    println!("links: {} pages, {:.1} MB", pages.len(), bytes as f64 / 1e6);
    let ours = time("trawl, found", bytes, None, || pages.iter().map(|page| extract(page)).sum());
    time("trawl, found and resolved", bytes, Some(ours), || {
        pages.iter().map(|page| links(page, BASE, None, &Options::default()).links.len()).sum()
    });
    time("lol_html, found", bytes, Some(ours), || pages.iter().map(|page| by_lol_html(page)).sum());
    time("scraper (html5ever), found", bytes, Some(ours), || pages.iter().map(|page| by_scraper(page)).sum());
    robots();
    memory();
}

/// Prints MB/s and how much faster `ours` is; returns the seconds.
fn time(name: &str, bytes: usize, ours: Option<f64>, run: impl Fn() -> usize) -> f64 {
    black_box(run());
    let start = cpu_seconds();
    let found = black_box(run());
    let seconds = cpu_seconds() - start;
    let ratio = ours.map(|ours| format!(", {:.2} x the first", seconds / ours)).unwrap_or_default();
    println!("  {name:28} {:7.0} MB/s, {found} links{ratio}", bytes as f64 / 1e6 / seconds);
    seconds
}

/// Seconds this thread has spent on a processor: other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn extract(page: &[u8]) -> usize {
    let mut extractor = LinkExtractor::new(Options::default(), Some("text/html; charset=utf-8"));
    extractor.push(page);
    extractor.found()
}

/// The same tags and attributes, as `lol_html` offers them.
const TAGS: [(&str, &[&str]); 14] = [
    ("a", &["href"]),
    ("area", &["href"]),
    ("img", &["src", "srcset"]),
    ("link", &["href"]),
    ("script", &["src"]),
    ("iframe", &["src"]),
    ("frame", &["src"]),
    ("source", &["src", "srcset"]),
    ("video", &["src", "poster"]),
    ("audio", &["src"]),
    ("track", &["src"]),
    ("embed", &["src"]),
    ("object", &["data"]),
    ("base", &["href"]),
];

fn by_lol_html(page: &[u8]) -> usize {
    let count = Cell::new(0);
    let found = &count;
    let mut settings = Settings::new();
    for (tag, attributes) in TAGS {
        settings = settings.append_element_content_handler(element!(tag, move |element: &mut Element| {
            for attribute in attributes {
                if let Some(value) = element.get_attribute(attribute) {
                    black_box(value);
                    found.set(found.get() + 1);
                }
            }
            Ok(())
        }));
    }
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    if rewriter.write(page).is_ok() {
        let _ = rewriter.end();
    }
    found.get()
}

fn by_scraper(page: &[u8]) -> usize {
    let document = Html::parse_document(&String::from_utf8_lossy(page));
    let list = TAGS.iter().map(|(tag, _)| *tag).collect::<Vec<_>>().join(",");
    let Ok(selector) = Selector::parse(&list) else { return 0 };
    let mut found = 0;
    for element in document.select(&selector) {
        let name = element.value().name();
        for attribute in TAGS.iter().filter(|(tag, _)| *tag == name).flat_map(|(_, attributes)| *attributes) {
            if let Some(value) = element.value().attr(attribute) {
                black_box(value);
                found += 1;
            }
        }
    }
    found
}

/// Prints the pages of which the parser sees other links than the tokenizer.
fn compare(pages: &[Vec<u8>]) {
    let (mut different, mut total) = (0, 0);
    for page in pages {
        // The parser takes scripts to be on and so `<noscript>` for text; refreshes are not its business.
        let text = String::from_utf8_lossy(page).replace("<noscript>", "").replace("</noscript>", "");
        let found = links(text.as_bytes(), BASE, None, &Options::default()).links;
        let kept = found.into_iter().filter(|link| link.kind != Kind::Refresh);
        let mut ours: Vec<String> = kept.map(|link| link.url.to_string()).collect();
        let mut theirs = parsed_links(&text);
        ours.sort();
        theirs.sort();
        total += theirs.len();
        if ours != theirs {
            different += 1;
            let missing: Vec<_> = theirs.iter().filter(|url| !ours.contains(url)).take(3).collect();
            let extra: Vec<_> = ours.iter().filter(|url| !theirs.contains(url)).take(3).collect();
            let surplus = ours.len().wrapping_sub(theirs.len()) as isize;
            println!("{surplus:+} {:60.60} missing {missing:?}, extra {extra:?}", text.replace('\n', " "));
        }
    }
    println!("{} pages, {total} links, {different} pages differ", pages.len());
}

/// The links of a page as the full parser finds them, resolved the same way. Frames and `srcset` are left to the tests.
fn parsed_links(text: &str) -> Vec<String> {
    let document = Html::parse_document(text);
    let base = Selector::parse("base[href]").ok().and_then(|selector| {
        let href = document.select(&selector).next()?.value().attr("href")?;
        trawl_url::Base::new(BASE).ok()?.resolve(href).ok()
    });
    let base = trawl_url::Base::new(base.as_deref().unwrap_or(BASE)).expect("a web URL");
    let Ok(selector) = Selector::parse("*") else { return Vec::new() };
    let mut found = Vec::new();
    for element in document.select(&selector) {
        let attributes: &[&str] = match element.value().name() {
            "a" | "area" => &["href"],
            "img" | "script" | "iframe" | "frame" | "audio" | "track" | "embed" | "source" => &["src"],
            "video" => &["src", "poster"],
            "object" => &["data"],
            "link" if element.value().attr("rel").is_some_and(fetched) => &["href"],
            "body" | "table" | "td" | "th" => &["background"],
            _ => &[],
        };
        // By local name, so that `xlink:href` counts.
        let value = |name: &&str| element.value().attrs().find(|(known, _)| known == name).map(|(_, value)| value);
        for value in attributes.iter().filter_map(value) {
            let value = value.trim_matches(|c: char| c.is_ascii_whitespace());
            if !value.is_empty() && !value.starts_with('#') {
                found.extend(base.resolve(value).map(String::from));
            }
        }
    }
    found
}

/// Whether a `rel` names something to fetch.
fn fetched(rel: &str) -> bool {
    let hint = |word: &str| word.eq_ignore_ascii_case("preconnect") || word.eq_ignore_ascii_case("dns-prefetch");
    !rel.is_empty() && !rel.split_ascii_whitespace().any(hint)
}

/// What a page costs when it is nothing but nesting: 200 MB as a stream.
fn memory() {
    let piece = b"<div><a href='/x'><b class=\"y z\">".repeat(2000);
    let mut extractor = LinkExtractor::new(Options::default(), None);
    let before = resident_kib();
    let start = cpu_seconds();
    let mut bytes = 0;
    while bytes < 200_000_000 {
        extractor.push(&piece);
        bytes += piece.len();
    }
    let seconds = cpu_seconds() - start;
    println!("nested tags: {:.0} MB/s, {} links kept", bytes as f64 / 1e6 / seconds, extractor.found());
    println!("  resident memory {} KiB before, {} KiB after {} MB", before, resident_kib(), bytes / 1_000_000);
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS"));
    line.and_then(|line| line.split_whitespace().nth(1)).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Every HTML file below a directory, up to 64 MB.
fn read(directory: &Path) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    let mut left = 64_000_000usize;
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let mut paths: Vec<_> =
            std::fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "html")
                && let Ok(bytes) = std::fs::read(&path)
                && bytes.len() <= left
            {
                left -= bytes.len();
                pages.push(bytes);
            }
        }
    }
    pages
}

/// A generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn words(&mut self, count: u64) -> String {
        const WORDS: [&str; 16] = [
            "the",
            "river",
            "of",
            "news",
            "and",
            "a",
            "market",
            "is",
            "people",
            "who",
            "écoutent",
            "in",
            "early",
            "morning",
            "light",
            "today",
        ];
        (0..count).map(|_| WORDS[self.below(16) as usize]).collect::<Vec<_>>().join(" ")
    }
}

/// A page of about 50 KB, built like a news site: head, navigation, scripts, articles, footer.
fn page(seed: u64) -> Vec<u8> {
    let mut random = Random(seed + 1);
    let mut html = String::from("<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>News</title>\n");
    for i in 0..12 {
        html += &format!("<link rel=\"stylesheet\" href=\"/assets/css/{i}.css?v={seed}\" media=\"all\">\n");
        html += &format!("<meta property=\"og:tag{i}\" content=\"{}\">\n", random.words(8));
    }
    html += &format!("<script>var data = {{{}}};</script>\n", "\"k\": [1, 2, 3 < 4], ".repeat(500));
    html += "</head><body class=\"home page-template\">\n<!-- navigation -->\n<nav><ul>\n";
    for i in 0..60 {
        html += &format!(
            "<li class=\"menu-item menu-item-{i}\" id=\"item{i}\"><a class=\"nav-link\" href=\"/topic/{}/{i}\">{}</a></li>\n",
            random.below(1000),
            random.words(2)
        );
    }
    html += "</ul></nav><main>\n";
    for i in 0..25 {
        let id = random.below(1_000_000);
        html += &format!(
            "<article class=\"card card--wide\" data-id=\"{id}\"><h2><a href=\"https://www.example.com/a/{id}?utm_source=x&amp;r={i}\" rel=\"bookmark\">{}</a></h2>\n\
             <figure><img src=\"/img/{id}.jpg\" srcset=\"/img/{id}-640.jpg 640w, /img/{id}-1280.jpg 1280w\" alt=\"{}\" loading=\"lazy\"></figure>\n",
            random.words(7),
            random.words(4)
        );
        for _ in 0..4 {
            html += &format!("<p>{}, <em>{}</em> {}.</p>\n", random.words(35), random.words(3), random.words(30));
        }
        html += "<div class=\"meta\"><span class=\"author\">A. Writer</span> &middot; <time datetime=\"2026-01-01\">1 Jan</time></div></article>\n";
    }
    html += &format!(
        "</main><script async src=\"/js/app.js\"></script><script>{}</script>",
        "function f(a){return a<b}".repeat(300)
    );
    html += "<footer>";
    for i in 0..40 {
        html += &format!("<a href=\"/about/{i}\" target=\"_blank\" rel=\"nofollow noopener\">{}</a> ", random.words(2));
    }
    html += "</footer></body></html>\n";
    html.into_bytes()
}

/// Verdicts a second, for a small file and for one with a thousand rules.
fn robots() {
    let small = "User-agent: *\nDisallow: /search\nDisallow: /cart\nAllow: /search/about\nDisallow: /*?sort=\nDisallow: /private/\n\
                 Disallow: /*.pdf$\nAllow: /private/open\nDisallow: /tmp/\nCrawl-delay: 1\n";
    let mut large = String::from("User-agent: *\n");
    let mut random = Random(7);
    for i in 0..1000 {
        large += &match i % 10 {
            0 => format!("Disallow: /*/{}/print$\n", random.below(500)),
            1 => format!("Disallow: /*?p{}=\n", random.below(500)),
            2 => format!("Allow: /section{}/open/\n", random.below(500)),
            _ => format!("Disallow: /section{}/{}/\n", random.below(500), random.words(1)),
        };
    }
    let paths: Vec<String> = (0..10_000)
        .map(|i| match i % 4 {
            0 => format!("/section{}/{}/page{i}.html", random.below(500), random.words(1)),
            1 => format!("/section{}/open/doc?id={i}&p{}=1", random.below(500), random.below(600)),
            2 => format!("/a/b/c/{}/print", random.below(500)),
            _ => format!("/search/results/{}?q={}", random.below(500), random.words(1)),
        })
        .collect();
    let urls: Vec<String> = paths.iter().map(|path| format!("https://www.example.com{path}")).collect();
    for (name, file) in [("10 rules", small), ("1000 rules", &large)] {
        println!("robots.txt, {name}: 10,000 paths");
        let rules = Robots::parse(file.as_bytes()).agent("TrawlBot");
        let ours = verdicts("trawl", None, || paths.iter().filter(|path| rules.allows(path.as_str()).allowed).count());
        let plain = Plain::new(file);
        verdicts("every rule in turn", Some(ours), || {
            paths.iter().filter(|path| plain.allows(path.as_bytes())).count()
        });
        if let Ok(peer) = texting_robots::Robot::new("TrawlBot", file.as_bytes()) {
            verdicts("texting_robots", Some(ours), || urls.iter().filter(|url| peer.allowed(url)).count());
        }
        let peer = robotxt::Robots::parse(file.as_bytes(), "TrawlBot");
        verdicts("robotxt", Some(ours), || paths.iter().filter(|path| peer.is_allowed(path)).count());
    }
}

fn verdicts(name: &str, ours: Option<f64>, run: impl Fn() -> usize) -> f64 {
    let mut allowed = black_box(run());
    let start = cpu_seconds();
    let mut rounds = 0;
    while rounds < 10 || cpu_seconds() - start < 0.2 {
        allowed = black_box(run());
        rounds += 1;
    }
    let nanos = (cpu_seconds() - start) * 1e9 / 10_000.0 / f64::from(rounds);
    let ratio = ours.map(|ours| format!(", {:.1} x the first", nanos / ours)).unwrap_or_default();
    println!("  {name:28} {nanos:9.0} ns a verdict, {allowed} allowed{ratio}");
    nanos
}

/// The straightforward way: keep the rules, try each, remember the longest.
struct Plain(Vec<(bool, Vec<u8>)>);

impl Plain {
    fn new(file: &str) -> Self {
        let rules = file.lines().filter_map(|line| line.split_once(": ")).filter_map(|(field, value)| match field {
            "Allow" => Some((true, value.as_bytes().to_vec())),
            "Disallow" => Some((false, value.as_bytes().to_vec())),
            _ => None,
        });
        Plain(rules.collect())
    }

    fn allows(&self, path: &[u8]) -> bool {
        let best = self
            .0
            .iter()
            .filter(|(_, pattern)| matches(pattern, path))
            .map(|(allow, pattern)| (pattern.len(), *allow))
            .max();
        best.is_none_or(|(_, allow)| allow)
    }
}

/// The matcher of the first drafts: all positions the pattern may have reached.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let mut reached = vec![0];
    for (i, &byte) in pattern.iter().enumerate() {
        match byte {
            b'$' if i + 1 == pattern.len() => return reached.last() == Some(&path.len()),
            b'*' => reached = (reached[0]..=path.len()).collect(),
            _ => reached = reached.into_iter().filter(|at| path.get(*at) == Some(&byte)).map(|at| at + 1).collect(),
        }
        if reached.is_empty() {
            return false;
        }
    }
    true
}
