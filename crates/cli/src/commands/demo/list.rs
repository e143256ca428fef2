//! The demo's second dataset: a URL list that somebody else might have made of the same web.

use trawl_testweb::{HostId, World};

/// Milliseconds in a day.
const DAY: i64 = 86_400_000;
/// When the list was begun: fixed, so that the demo is the same every day.
const BEGUN: i64 = 1_760_000_000_000;

/// A line of the list, with the answer that a lake must give for it.
pub struct Listed {
    /// As the list spells it.
    pub url: String,
    /// Its registrable domain, as the web's model knows it.
    pub domain: String,
    /// When it was seen.
    pub ts: i64,
}

/// Two of three hosts of the web, their pages spelt in several ways, and domains the crawl never saw.
pub fn make(world: &World) -> Vec<Listed> {
    let mut list = Vec::new();
    for (i, host) in world.hosts().iter().enumerate() {
        if i % 3 == 2 {
            continue;
        }
        let id = HostId(u32::try_from(i).unwrap_or(u32::MAX));
        for (n, page) in world.pages(id).enumerate() {
            let url = world.url(page);
            let at = BEGUN + DAY * (n as i64 % 40) + i as i64;
            let mut push = |url: String| list.push(Listed { url, domain: host.registrable().to_owned(), ts: at });
            match n % 4 {
                0 => push(url),
                1 => push(format!("{url}?utm_source=list&id={n}")),
                2 => push(url.replacen(&host.name, &host.name.to_uppercase(), 1)),
                _ => push(format!("{url}#part-{n}")),
            }
        }
    }
    for n in 0..500i64 {
        let domain = format!("only-in-list-{}.example", n % 25);
        list.push(Listed { url: format!("https://www.{domain}/item/{n}"), domain, ts: BEGUN + n * 1000 });
    }
    list
}

/// The list as JSONL.
pub fn jsonl(list: &[Listed]) -> String {
    let line = |listed: &Listed| serde_json::json!({ "url": listed.url, "ts": listed.ts, "found_by": "list" });
    list.iter().map(|listed| format!("{}\n", line(listed))).collect()
}
