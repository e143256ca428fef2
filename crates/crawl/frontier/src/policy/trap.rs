//! URLs that a machine makes without end: calendar pages far ahead, session ids (in the query, or as `;jsessionid=…` in the path),
//! combined filters.
//!
//! A host that has shown [`crate::Config::trap_threshold`] distinct links of a kind is flagged for that kind, and further links
//! of it are parked; of session ids and of combined filters, that many distinct ones on a path. Seeds are never parked.

use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A kind of trap, as a bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Calendar = 1,
    Session = 2,
    Facets = 4,
}

/// Counts and flags of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Trap {
    pub calendar: u8,
    /// Bits of [`Kind`].
    pub flags: u8,
    /// Set by the operator: nothing of this host is parked any more.
    pub released: bool,
    /// Which generation of [`Sessions`] knows all combinations of filters that this host had before it was flagged; 0 for none.
    /// Not kept on disk, as those are not.
    pub generation: u8,
}

impl Trap {
    pub fn pack(self) -> u32 {
        // The second byte was a count once.
        u32::from_le_bytes([self.calendar, 0, self.flags, u8::from(self.released)])
    }

    pub fn unpack(value: u32) -> Self {
        let [calendar, _, flags, released] = value.to_le_bytes();
        Trap { calendar, flags, released: released != 0, generation: 0 }
    }

    /// Whether a URL combines filters on a host that was flagged for that, and the combinations that it had before are unknown: a
    /// restart lost some of them, or [`Sessions`] started over. They are to be counted again by [`recall`].
    pub fn forgot(self, sessions: &Sessions, url: &str, month: u32) -> bool {
        let flagged = self.flags & Kind::Facets as u8 != 0 && !self.released;
        flagged && self.generation != sessions.generation && matches!(look_of(url, month), Some(Look::Facets { .. }))
    }
}

/// Session ids and combinations of filters seen, by host and path. Bounded: when it is full it starts over, as another generation,
/// which only delays a verdict.
#[derive(Debug)]
pub(crate) struct Sessions {
    ids: HashSet<u64>,
    counts: HashMap<u64, u8>,
    /// From 1 to 255, and again from 1.
    pub generation: u8,
}

impl Default for Sessions {
    fn default() -> Self {
        Sessions { ids: HashSet::new(), counts: HashMap::new(), generation: 1 }
    }
}

const SESSIONS: usize = 1 << 17;

impl Sessions {
    /// The number of distinct ids seen on this path. Ids are counted, not URLs: a forum that repeats one id in the links of
    /// all its topics has many pages on a path and no trap; nor has a site of Joomla, whose pages all have
    /// `?option=com_content&view=category&layout=blog&id=7`.
    fn count(&mut self, host: u64, base: &str, id: &str) -> u8 {
        if self.ids.len() >= SESSIONS {
            self.ids.clear();
            self.counts.clear();
            self.generation = self.generation % u8::MAX + 1;
        }
        let path = host ^ xxh3_64(base.as_bytes());
        let is_new = self.ids.insert(xxh3_64_with_seed(id.as_bytes(), path));
        let count = self.counts.entry(path).or_default();
        *count = count.saturating_add(u8::from(is_new));
        *count
    }

    /// Whether an id was counted on this path.
    fn has(&self, host: u64, base: &str, id: &str) -> bool {
        self.ids.contains(&xxh3_64_with_seed(id.as_bytes(), host ^ xxh3_64(base.as_bytes())))
    }
}

/// Takes note of a new link of a host and tells whether it is to be parked. `month` counts from year 0.
pub(crate) fn observe(
    trap: &mut Trap,
    sessions: &mut Sessions,
    (host, threshold): (u64, u8),
    url: &str,
    month: u32,
) -> bool {
    let Some(look) = look_of(url, month) else { return false };
    let kind = look.kind();
    let flagged = trap.flags & kind as u8 != 0;
    let count = match look {
        Look::Calendar => {
            trap.calendar = trap.calendar.saturating_add(1);
            trap.calendar
        }
        // It is parked whatever its id is, and ids that are not counted leave room for others.
        Look::Session { .. } if flagged => return !trap.released,
        Look::Session { base, id } => sessions.count(host, base, id),
        // Pages of what was there before the host was flagged are still its pages.
        Look::Facets { base, choice } if flagged => return !trap.released && !sessions.has(host, base, &choice),
        Look::Facets { base, choice } => sessions.count(host, base, &choice),
    };
    if count >= threshold {
        trap.flags |= kind as u8;
    }
    flagged && !trap.released
}

/// Counts the combination of filters of a page that was not parked.
pub(crate) fn recall(sessions: &mut Sessions, host: u64, url: &str, month: u32) {
    if let Some(Look::Facets { base, choice }) = look_of(url, month) {
        sessions.count(host, base, &choice);
    }
}

/// What makes a URL look like part of a trap.
enum Look<'a> {
    Calendar,
    Session {
        base: &'a str,
        id: &'a str,
    },
    /// With what is chosen of them, in one order.
    Facets {
        base: &'a str,
        choice: String,
    },
}

impl Look<'_> {
    fn kind(&self) -> Kind {
        match self {
            Look::Calendar => Kind::Calendar,
            Look::Session { .. } => Kind::Session,
            Look::Facets { .. } => Kind::Facets,
        }
    }
}

fn look_of(url: &str, month: u32) -> Option<Look<'_>> {
    let (base, query) = url.split_once('?').unwrap_or((url, ""));
    let path = base.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..))).unwrap_or("");
    let pairs = || query.split('&').filter_map(|piece| piece.split_once('='));
    let far = |found: Option<u32>| found.is_some_and(|found| found > month.saturating_add(12));
    if far(month_in_path(path)) || far(month_in_query(&mut pairs())) {
        return Some(Look::Calendar);
    }
    if let Some((base, id)) = session_in_path(base) {
        return Some(Look::Session { base, id });
    }
    if query.is_empty() {
        return None;
    }
    if let Some((_, id)) = pairs().find(|(name, value)| is_in(&SESSION_NAMES, name) && is_opaque(value)) {
        return Some(Look::Session { base, id });
    }
    let mut facets: Vec<&str> = query.split('&').filter(|piece| is_in(&FACET_NAMES, &name_of(piece))).collect();
    facets.sort_unstable();
    let names: HashSet<String> = facets.iter().map(|piece| name_of(piece)).collect();
    (names.len() >= 3).then(|| Look::Facets { base, choice: facets.join("&") })
}

/// A session id among the parameters of a path (`/topic;jsessionid=…`), and what stands before it.
fn session_in_path(base: &str) -> Option<(&str, &str)> {
    base.match_indices(';').find_map(|(at, _)| {
        let (before, rest) = base.split_at_checked(at)?;
        let (name, id) = rest.get(1..)?.split(['/', ';']).next()?.split_once('=')?;
        (is_in(&SESSION_NAMES, name) && is_opaque(id)).then_some((before, id))
    })
}

/// The name in a piece of a query, in lower case.
fn name_of(piece: &str) -> String {
    piece.split('=').next().unwrap_or_default().to_ascii_lowercase()
}

const SESSION_NAMES: [&str; 18] = [
    "sid",
    "sessionid",
    "session_id",
    "sessid",
    "sess",
    "jsessionid",
    "phpsessid",
    "aspsessionid",
    "aspxauth",
    "cfid",
    "cftoken",
    "sessiontoken",
    "session_token",
    "sessionkey",
    "bsessionid",
    "zenid",
    "oscsid",
    "ssid",
];

const FACET_NAMES: [&str; 32] = [
    "filter",
    "facet",
    "refine",
    "narrow",
    "color",
    "colour",
    "size",
    "brand",
    "price",
    "price_min",
    "price_max",
    "minprice",
    "maxprice",
    "pricerange",
    "sort",
    "sortby",
    "order",
    "orderby",
    "view",
    "mode",
    "layout",
    "category",
    "cat",
    "tag",
    "tags",
    "style",
    "material",
    "rating",
    "availability",
    "instock",
    "attr",
    "option",
];

const DATE_NAMES: [&str; 7] = ["date", "day", "from", "to", "start", "end", "when"];

fn is_in(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// A long value of letters and digits that no person chose.
fn is_opaque(value: &str) -> bool {
    let bytes = value.as_bytes();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let others = bytes.len() - letters - digits;
    let known = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.%".contains(b));
    bytes.len() >= 12 && known && letters >= 2 && digits >= 1 && others * 4 <= bytes.len()
}

fn year(text: &str) -> Option<u32> {
    text.parse().ok().filter(|year| text.len() == 4 && (1990..=2099).contains(year))
}

fn month(text: &str) -> Option<u32> {
    text.parse().ok().filter(|month| text.len() <= 2 && (1..=12).contains(month))
}

fn month_in_path(path: &str) -> Option<u32> {
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        if let Some(year) = year(segment)
            && let Some(month) = segments.peek().and_then(|next| month(next))
        {
            return Some(year * 12 + month);
        }
    }
    None
}

fn month_in_query<'a>(pairs: &mut dyn Iterator<Item = (&'a str, &'a str)>) -> Option<u32> {
    let (mut found_year, mut found_month) = (None, None);
    for (name, value) in pairs {
        if name.eq_ignore_ascii_case("year") {
            found_year = year(value);
        } else if name.eq_ignore_ascii_case("month") {
            found_month = month(value);
        } else if is_in(&DATE_NAMES, name)
            && let Some((first, rest)) = value.split_once(['-', '/'])
            && let Some(year) = year(first)
        {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            if let Some(month) = rest.get(..end).and_then(month) {
                return Some(year * 12 + month);
            }
        }
    }
    // A year alone is its first month: the earliest it can mean.
    found_year.map(|year| year * 12 + found_month.unwrap_or(1))
}

/// Months since year 0 of a time.
pub(crate) fn month_of(now_ms: i64) -> u32 {
    // Months of 30.44 days are near enough for a rule that begins a year ahead.
    u32::try_from(1970 * 12 + now_ms.max(0) / 2_629_746_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u32 = 2026 * 12 + 11;

    #[test]
    fn kinds() {
        let kind = |url: &str| look_of(url, NOW).map(|look| look.kind());
        for (url, expected) in [
            ("http://a/2031/04/", Some(Kind::Calendar)),
            ("http://a/2026/04/", None),
            ("http://a/2031/page", None),
            ("http://a/x?year=2031&month=4", Some(Kind::Calendar)),
            ("http://a/x?year=2031", Some(Kind::Calendar)),
            ("http://a/x?from=2031-04-01", Some(Kind::Calendar)),
            ("http://a/x?from=2031/04", Some(Kind::Calendar)),
            ("http://a/x?name=2031-04-01", None),
            ("http://a/x?PHPSESSID=a8f5f167f44f4964", Some(Kind::Session)),
            ("http://a/x;jsessionid=A8F5F167F44F4964", Some(Kind::Session)),
            ("http://a/x;v=2;JSESSIONID=a8f5f167f44f4964.node1?t=7", Some(Kind::Session)),
            ("http://a/x;jsessionid=12/y", None),
            ("http://a/x;y/jsessionid", None),
            ("http://a/x?sid=12", None),
            ("http://a/x?sid=abcdefghijklmnop", None),
            ("http://a/x?color=red&size=1&sort=up", Some(Kind::Facets)),
            ("http://a/x?color=red&Color=blue&sort=up", None),
            ("http://a/", None),
        ] {
            assert_eq!(kind(url), expected, "{url}");
        }
        assert_eq!(month_of(1_794_873_600_000), 2026 * 12 + 10, "November 2026, counted from 0");
    }

    #[test]
    fn a_host_is_flagged_for_what_it_showed() {
        let (mut trap, mut sessions) = (Trap::default(), Sessions::default());
        let mut see = |trap: &mut Trap, url: &str| observe(trap, &mut sessions, (1, 3), url, NOW);
        let parked: Vec<bool> = (0..5).map(|n| see(&mut trap, &format!("http://a/{}/01/", 2031 + n))).collect();
        assert_eq!(parked, [false, false, false, true, true]);
        assert!(!see(&mut trap, "http://a/x?color=1&size=2&sort=3"), "another kind");
        assert!(!see(&mut trap, "http://a/plain"));
        assert_eq!(Trap::unpack(trap.pack()), trap);
        trap.released = true;
        assert!(!see(&mut trap, "http://a/2040/01/"));
        // Sessions are counted by path: a site that puts one on every page is not a trap at once.
        let session = |n: u32, path: u32| format!("http://a/{path}?sid=a8f5f167f44f49{n:02}");
        let mut trap = Trap::default();
        assert!((0..40).all(|n| !see(&mut trap, &session(n, n))));
        let topics = (0..40).map(|n| format!("http://a/99?t={n}&sid=a8f5f167f44f4900"));
        assert!(topics.into_iter().all(|url| !see(&mut trap, &url)), "one id on all topics of a forum");
        assert!((0..4).all(|n| !see(&mut trap, &session(n, 99)) || n == 3));
        // In the path they are counted by what stands before them.
        let session = |n: u32| format!("http://a/topic;jsessionid=A8F5F167F44F49{n:02}?t={n}");
        let mut trap = Trap::default();
        let parked: Vec<bool> = (0..5).map(|n| see(&mut trap, &session(n))).collect();
        assert_eq!(parked, [false, false, false, true, true]);
        // Filters by what is chosen: pages that differ in something else are pages.
        let blog = |n: u32| format!("http://a/?option=com_content&view=category&layout=blog&id={n}");
        let mut trap = Trap::default();
        assert!((0..40).all(|n| !see(&mut trap, &blog(n))), "pages of Joomla");
        let shop = |n: u32| format!("http://a/?size=1&color={n}&brand=x");
        let parked: Vec<bool> = (0..5).map(|n| see(&mut trap, &shop(n))).collect();
        assert_eq!(parked, [false, false, true, true, true], "the third combination on this path flags the host");
        assert!(see(&mut trap, "http://a/?brand=x&color=4&size=1&page=2"), "what was parked does not become known");
        assert!(!see(&mut trap, "http://a/?brand=x&color=0&size=1&page=2") && !see(&mut trap, &blog(41)));
    }
}
