//! Rows of a crawl: hosts by Zipf's law, URLs as sites have them, a third of them fetched.
#![allow(dead_code)] // each part uses a part

use bytes::Bytes;
use trawl_meguri::schema::{HostRecord, UrlRecord};
use trawl_meguri::{HostRow, Row};
use trawl_url::key::{host_key, path_key};

/// Numbers from a seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n.max(1))) >> 64) as u64
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Small numbers more often than large ones.
    fn skewed(&mut self, n: u64) -> u64 {
        let a = self.below(n);
        self.below(a + 1)
    }
}

/// Words as languages have them: short ones often.
pub struct Words(Vec<String>);

impl Words {
    pub fn new() -> Words {
        let mut random = Random(7);
        let syllables: Vec<String> = "b c d f g k l m n p r s t v w st tr pl ch sh"
            .split(' ')
            .flat_map(|c| ["a", "e", "i", "o", "u", "ai", "er", "in", "on"].map(|v| format!("{c}{v}")))
            .collect();
        let mut word = || {
            let n = 1 + random.skewed(4);
            (0..=n).map(|_| syllables[random.below(syllables.len() as u64) as usize].as_str()).collect::<String>()
        };
        Words((0..4000).map(|_| word()).collect())
    }

    fn any(&self, random: &mut Random) -> &str {
        &self.0[random.skewed(self.0.len() as u64) as usize]
    }

    fn slug(&self, random: &mut Random, between: &str) -> String {
        let n = 2 + random.skewed(5);
        (0..=n).map(|_| self.any(random)).collect::<Vec<_>>().join(between)
    }
}

/// What a generated crawl is like.
#[derive(Clone, Copy)]
pub struct Shape {
    pub urls: u64,
    pub hosts: u64,
    pub seed: u64,
    /// Whether fetched rows have `content_fp` and `simhash`.
    pub fingerprints: bool,
    /// Share of rows that were fetched, in percent.
    pub fetched: u64,
}

/// Makes the rows of one host after another.
pub struct Generator {
    shape: Shape,
    words: Words,
    /// Hosts in the order of their keys: key, name, number of URLs, number.
    hosts: Vec<(u64, String, u64, u64)>,
}

impl Generator {
    pub fn new(shape: Shape) -> Generator {
        let words = Words::new();
        let mut random = Random(shape.seed);
        let harmonic: f64 = (1..=shape.hosts).map(|r| 1.0 / r as f64).sum();
        let mut hosts = Vec::new();
        for rank in 1..=shape.hosts {
            let share = (shape.urls as f64 / harmonic / rank as f64).round().max(1.0) as u64;
            let tld = ["com", "com", "com", "org", "net", "de", "co.uk", "fr", "io"][random.below(9) as usize];
            let www = if random.chance(60) { "www." } else { "" };
            // The number keeps names apart.
            let name = format!("{www}{}{rank:x}.{tld}", words.any(&mut random));
            hosts.push((host_key(&name), name, share, rank));
        }
        hosts.sort_unstable();
        Generator { shape, words, hosts }
    }

    /// The hosts in the order of their keys.
    pub fn host_rows(&self) -> impl Iterator<Item = HostRow> {
        self.hosts.iter().map(|(key, name, urls, rank)| {
            let mut random = Random(self.shape.seed ^ rank << 20);
            let registrable = name.strip_prefix("www.").unwrap_or(name);
            let mut ip = [0; 16];
            ip[10..12].copy_from_slice(&[255, 255]);
            ip[12..].copy_from_slice(&(random.next() as u32).to_le_bytes());
            let record = HostRecord {
                host_key: *key,
                grouping: 1,
                resolved_ip: ip,
                ip_expiry: 480_700,
                robots_fetched: 480_000 + random.below(600) as u32,
                robots_expiry: 480_900,
                crawl_delay: if random.chance(90) { 10 } else { 50 },
                url_count: *urls as u32,
                crawl_total: (*urls / 3) as u32,
                avg_latency: random.below(800) as u16,
                ..HostRecord::default()
            };
            let (host, registrable) = (Bytes::from(name.clone()), Bytes::copy_from_slice(registrable.as_bytes()));
            HostRow { record, host, registrable, ..HostRow::default() }
        })
    }

    /// Hands over the rows of every host, in the order of their keys, and the order in which they arrived.
    pub fn rows(&self, mut each: impl FnMut(Row, u64)) {
        for (key, name, urls, rank) in &self.hosts {
            let mut random = Random(self.shape.seed.wrapping_mul(31) ^ rank << 8);
            let site = Site::new(name, &mut random);
            let mut rows: Vec<(Row, u64)> = Vec::new();
            // Links are found in bursts, page by page.
            let mut burst = random.next();
            for n in 0..*urls {
                if n % 40 == 0 {
                    burst = random.next() >> 8 << 8;
                }
                let url = site.url(&self.words, &mut random);
                rows.push((self.row(*key, name, url, burst, &mut random), burst + n % 40));
            }
            rows.sort_by_key(|(row, _)| row.record.path_key);
            rows.dedup_by_key(|(row, _)| row.record.path_key);
            rows.into_iter().for_each(|(row, arrival)| each(row, arrival));
        }
    }

    fn row(&self, host: u64, name: &str, url: String, burst: u64, random: &mut Random) -> Row {
        // Hours of the crawl so far: a host's pages are fetched in sessions.
        let seen = 480_000 + (burst >> 40) as u32 % 600;
        let fetched = random.below(100) < self.shape.fetched;
        let mut record = UrlRecord {
            host_key: host,
            path_key: path_key(&url),
            status: 1,
            depth: 1 + random.skewed(8) as u16,
            discovery_source: if random.chance(90) { 1 } else { 2 },
            first_seen: seen,
            ..UrlRecord::default()
        };
        record.priority = 1.0 / f32::from(record.depth) + (host % 16) as f32 / 64.0;
        let mut row = Row { url: Bytes::from(url), ..Row::default() };
        if fetched {
            let ok = random.chance(92);
            let count = 1 + random.skewed(6) as u32;
            let changed = random.skewed(u64::from(count) + 1) as u32;
            let last = seen + 1 + random.skewed(90) as u32;
            record.status = if ok { 4 } else { 6 };
            record.http_status = if ok { 200 } else { [404, 301, 410, 500][random.below(4) as usize] };
            record.last_crawled = last;
            record.last_changed = last - random.skewed(60) as u32;
            record.next_due = if ok { last + 24 * [1, 2, 3, 7, 14, 30][random.below(6) as usize] } else { 0 };
            record.lambda = changed as f32 / (24 * count) as f32;
            (record.crawl_count, record.change_count) = (count, changed);
            record.nochange_streak = (count - changed.min(count)) as u16;
            if self.shape.fingerprints && ok {
                (record.content_fp, record.simhash) = (random.next(), random.next());
            }
            if ok && host % 5 < 2 {
                row.etag = Bytes::from(format!("\"{:x}-{:x}\"", random.below(1 << 20), random.next() >> 12));
            }
            if record.http_status == 301 {
                row.redirect = Bytes::from(format!("https://{name}/"));
            }
        }
        row.record = record;
        row
    }
}

/// How a site names its pages.
struct Site {
    root: String,
    style: u64,
    sections: Vec<String>,
}

impl Site {
    fn new(name: &str, random: &mut Random) -> Site {
        let words =
            ["news", "blog", "shop", "product", "en", "docs", "forum", "tag", "category", "archive", "media", "user"];
        let n = 2 + random.below(8);
        let sections = (0..n).map(|_| words[random.below(12) as usize].to_owned()).collect();
        Site { root: format!("https://{name}"), style: random.below(7), sections }
    }

    fn url(&self, words: &Words, random: &mut Random) -> String {
        let section = &self.sections[random.skewed(self.sections.len() as u64) as usize];
        let root = &self.root;
        let id = random.below(1 << 22);
        match self.style {
            0 => format!("{root}/{}/{:02}/{}/", 2010 + random.below(17), 1 + random.below(12), words.slug(random, "-")),
            1 => format!("{root}/{section}/{}/{}-{id}.html", words.any(random), words.slug(random, "-")),
            2 => format!("{root}/threads/{}.{id}/page-{}", words.slug(random, "-"), 1 + random.skewed(40)),
            3 => format!("{root}/wiki/{}", words.slug(random, "_")),
            4 => format!("{root}/index.php?id={id}&lang={}", ["en", "de", "fr"][random.below(3) as usize]),
            5 => format!("{root}/{section}/{}/{}", words.any(random), words.slug(random, "-")),
            _ => format!("{root}/{section}?v={:011x}", random.next() >> 20),
        }
    }
}
