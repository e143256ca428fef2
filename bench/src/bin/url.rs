//! What a URL form costs beside a bare `url::Url::parse` of the same URLs.
//!
//! `cargo run --release --bin url [count]`: one thread, the same generated URLs for every row, best of three rounds. Targets: lake
//! form with its registrable domain at most 2x, key form with its key at most 3x. Exits with 1 when a target is missed.

use std::hint::black_box;
use std::time::Instant;

use trawl_url::key::{self, HostGroup, Policy};
use trawl_url::{LakeUrl, SuffixList, WebUrl};

fn main() {
    let count = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    let urls = generate(count);
    let bytes: usize = urls.iter().map(String::len).sum();
    println!("{count} urls, {:.1} bytes on average, for example:", bytes as f64 / count as f64);
    for url in urls.iter().take(8) {
        println!("  {url}");
    }
    let psl = SuffixList::builtin();
    let policy = Policy::default();
    println!("suffix list {} ({} rules)\n", psl.snapshot(), psl.rules());

    let mut lake = LakeUrl::default();
    let mut text = String::new();
    let hosts: Vec<String> =
        urls.iter().filter_map(|url| LakeUrl::parse(url, psl).ok()).map(|url| url.host().to_owned()).collect();
    let refused = urls.iter().filter(|url| LakeUrl::parse(url, psl).is_err()).count();
    println!("{refused} refused by the lake form\n");

    let mut best = [f64::MAX; 7];
    for _ in 0..3 {
        let rounds = [
            time(&urls, |url| drop(black_box(url::Url::parse(url)))),
            time(&urls, |url| drop(black_box(LakeUrl::parse(url, psl)))),
            time(&urls, |url| {
                if lake.assign(url, psl).is_ok() {
                    black_box(lake.domain());
                }
            }),
            time(&urls, |url| {
                if let Ok(form) = key::canonical(url.as_bytes(), None, &policy) {
                    black_box(key::of(&form, HostGroup::Registrable, psl));
                }
            }),
            time(&urls, |url| {
                if key::canonical_into(url.as_bytes(), None, &policy, &mut text).is_ok() {
                    black_box(key::of(&text, HostGroup::Registrable, psl));
                }
            }),
            time(&urls, |url| drop(black_box(WebUrl::parse(url)))),
            time(&hosts, |host| {
                black_box(psl.registrable(host));
            }),
        ];
        for (best, round) in best.iter_mut().zip(rounds) {
            *best = best.min(round);
        }
    }
    let names = [
        ("url::Url::parse", None),
        ("lake form + domain", Some(2.0)),
        ("lake form + domain, buffer reused", Some(2.0)),
        ("key form + key", Some(3.0)),
        ("key form + key, buffer reused", Some(3.0)),
        ("as found", None),
        ("registrable domain of a host", None),
    ];
    let mut missed = false;
    println!("{:36} {:>8} {:>7}  target", "", "ns/url", "ratio");
    for ((name, target), nanos) in names.iter().zip(best) {
        let ratio = nanos / best[0];
        let verdict = match target {
            Some(limit) if ratio <= *limit => format!("<= {limit} met"),
            Some(limit) => {
                missed = true;
                format!("<= {limit} MISSED")
            }
            None => String::new(),
        };
        println!("{name:36} {nanos:>8.0} {ratio:>6.2}x  {verdict}");
    }
    std::process::exit(i32::from(missed));
}

/// Nanoseconds for one text.
fn time(texts: &[String], mut work: impl FnMut(&str)) -> f64 {
    let started = Instant::now();
    for text in texts {
        work(text);
    }
    started.elapsed().as_nanos() as f64 / texts.len() as f64
}

/// splitmix64: the same URLs on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in `percent` of 1000 throws.
    fn per_mille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }
}

const WORDS: [&str; 32] = [
    "news",
    "shop",
    "blog",
    "article",
    "product",
    "image",
    "category",
    "world",
    "data",
    "archive",
    "user",
    "profile",
    "forum",
    "thread",
    "photo",
    "music",
    "travel",
    "food",
    "house",
    "garden",
    "python",
    "tag",
    "2024",
    "07",
    "en",
    "de",
    "about",
    "team",
    "long-title-of-some-story",
    "how-to-build-a-boat",
    "index.html",
    "view.php",
];
const SUFFIXES: [&str; 20] = [
    "com",
    "com",
    "com",
    "com",
    "com",
    "org",
    "org",
    "net",
    "de",
    "fr",
    "ru",
    "co.uk",
    "com.br",
    "co.jp",
    "it",
    "nl",
    "github.io",
    "blogspot.com",
    "info",
    "edu.au",
];
const KEYS: [&str; 12] =
    ["id", "page", "q", "utm_source", "utm_medium", "sort", "lang", "p", "ref", "session", "view", "cat"];
const INTERNATIONAL: [&str; 6] =
    ["münchen.de", "bücher.example", "пример.рф", "日本語.jp", "xn--mnchen-3ya.de", "faß.de"];

fn generate(count: usize) -> Vec<String> {
    let mut dice = Dice(7);
    (0..count).map(|_| url(&mut dice)).collect()
}

fn url(dice: &mut Dice) -> String {
    let mut url = String::with_capacity(120);
    url.push_str(if dice.per_mille(780) { "https://" } else { "http://" });
    host(dice, &mut url);
    if dice.per_mille(15) {
        url.push_str(dice.pick(&[":8080", ":443", ":80", ":8443"]));
    }
    path(dice, &mut url);
    if dice.per_mille(300) {
        query(dice, &mut url);
    }
    if dice.per_mille(15) {
        url.push_str("#section");
    }
    url
}

fn host(dice: &mut Dice, url: &mut String) {
    match dice.below(1000) {
        0..12 => url.push_str(dice.pick(&INTERNATIONAL)),
        12..15 => url.push_str("192.0.2.17"),
        kind => {
            let start = url.len();
            url.push_str(dice.pick(&["www.", "www.", "www.", "", "", "", "m.", "blog.", "en.", "static.cdn."]));
            url.push_str(dice.pick(&WORDS[..28]));
            url.push_str(dice.pick(&["", "-online", "24", "hub", "world"]));
            url.push_str(&dice.below(20_000).to_string());
            url.push('.');
            url.push_str(dice.pick(&SUFFIXES));
            if kind < 25 {
                let upper = url.split_off(start).to_uppercase();
                url.push_str(&upper);
            }
        }
    }
}

fn path(dice: &mut Dice, url: &mut String) {
    for _ in 0..dice.below(6) {
        url.push('/');
        url.push_str(dice.pick(&WORDS));
        if dice.per_mille(250) {
            url.push('-');
            url.push_str(&dice.below(1_000_000).to_string());
        }
        match dice.below(1000) {
            0..15 => url.push_str("%20x"),
            15..22 => url.push_str("%7Eme"),
            22..30 => url.push_str("/../up"),
            30..35 => url.push('/'),
            35..40 => url.push_str("-straße"),
            _ => {}
        }
    }
    if dice.per_mille(500) || url.len() < 20 {
        url.push('/');
    }
}

fn query(dice: &mut Dice, url: &mut String) {
    let mut mark = '?';
    for _ in 0..=dice.below(4) {
        url.push(mark);
        url.push_str(dice.pick(&KEYS));
        url.push('=');
        match dice.below(10) {
            0 => url.push_str("a%20b+c"),
            1 => url.push_str(dice.pick(&WORDS)),
            _ => url.push_str(&dice.below(100_000).to_string()),
        }
        mark = '&';
    }
}
