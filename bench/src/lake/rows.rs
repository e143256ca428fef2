//! Made URL rows for the lake's benchmarks: the same every time, streamed, never held.
//!
//! Domains follow a Zipf law; a domain's URLs share hosts, sections and word stock, as those of a site do; a tenth carry a
//! query. URLs are in normal form already, so that a peer that reads the finished Parquet has identical values.
#![allow(dead_code)] // each benchmark uses a part

use std::fmt::Write;
use trawl_model::{DoorError, Items, SourceIdentity, Split, UnixMillis, UrlRecord, UrlSource};

/// The same numbers every time.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = self.0 ^ (self.0 >> 33);
        x.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (x >> 29)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }

    /// A number of `0..n` whose chance falls as 1/(its rank + 1).
    pub fn zipf(&mut self, n: u64) -> u64 {
        let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((n as f64).powf(uniform) as u64).saturating_sub(1).min(n - 1)
    }
}

const SYLLABLES: [&str; 32] = [
    "ba", "co", "di", "fu", "ge", "hi", "jo", "ka", "lu", "me", "ni", "or", "pa", "qu", "ri", "so", "ta", "un", "vi",
    "wa", "xe", "yo", "za", "ster", "net", "shop", "land", "tech", "web", "line", "blog", "mart",
];
const ENDS: [&str; 8] = ["com", "com", "com", "net", "org", "de", "co.uk", "jp"];
const SECTIONS: [&str; 8] = ["news", "blog", "products", "wiki", "category", "archive/2024", "forum/thread", "img"];

/// A name of some 15 bytes made of syllables, as domains are. Different numbers may have one name.
pub fn name(n: u64) -> String {
    let mut dice = Dice(n);
    let mut name = word(&mut dice);
    if dice.next() % 3 == 0 {
        let _ = write!(name, "{}", dice.next() % 1000);
    }
    name + "." + ENDS[(dice.next() >> 20) as usize % ENDS.len()]
}

fn word(dice: &mut Dice) -> String {
    let mut word = String::new();
    for _ in 0..3 + dice.next() % 4 {
        word.push_str(SYLLABLES[(dice.next() >> 20) as usize % SYLLABLES.len()]);
    }
    word
}

/// The URL of row `n` of a dataset, and its time.
pub fn row(seed: u64, n: u64, domains: u64) -> (String, UnixMillis) {
    let mut dice = Dice(n ^ (seed << 40));
    let rank = dice.zipf(domains);
    let mut url = String::with_capacity(96);
    url.push_str(if rank % 5 == 0 { "http://" } else { "https://" });
    url.push_str(["www.", "www.", "", "m.", "www."][(rank % 5) as usize]);
    url.push_str(&name(rank));
    let section = SECTIONS[((rank + dice.below(3)) % 8) as usize];
    let stock = Dice(rank << 8 | dice.below(200)).next();
    let page = word(&mut Dice(stock));
    match dice.below(10) {
        0 => {
            let _ = write!(url, "/{section}/?id={}&page={}", dice.below(1_000_000), dice.below(40));
        }
        1..=2 => {
            let _ = write!(url, "/{section}/{page}/");
        }
        3..=5 => {
            let _ = write!(url, "/{section}/{}/{page}.html", dice.below(10_000));
        }
        _ => {
            let _ = write!(url, "/{section}/{page}-{}", dice.below(100_000));
        }
    }
    (url, UnixMillis(1_700_000_000_000 + (dice.next() >> 44) as i64 * 1000))
}

/// `count` rows over `domains` domains; `seed` tells datasets apart.
pub struct Rows {
    pub seed: u64,
    pub count: u64,
    pub domains: u64,
}

impl UrlSource for Rows {
    fn identity(&self) -> SourceIdentity {
        SourceIdentity { uri: format!("generated {}", self.seed), size: self.count * 60, tag: String::new() }
    }

    fn splits(&self, _: u64) -> Result<Vec<Split>, DoorError> {
        let parts = self.count.div_ceil(200_000).max(1);
        Ok((0..parts).map(|i| Split { start: self.count * i / parts, end: self.count * (i + 1) / parts }).collect())
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        for n in split.start..split.end {
            let (url, ts) = row(self.seed, n, self.domains);
            each(n, Ok(UrlRecord { ts: Some(ts), ..UrlRecord::bare(url) }))?;
        }
        Ok(())
    }
}
