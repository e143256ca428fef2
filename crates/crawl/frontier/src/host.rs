//! A queue as it stays in memory: gates, counts, the best rows, what robots.txt said. Usually of one host name.

use crate::absence::Away;
use crate::candidate::Rules;
use crate::policy::trap::Trap;
use crate::row::Row;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use trawl_io::slice::{SliceError, SliceReader};
use trawl_io::varint::put_uvarint;
use trawl_model::ErrorClass;

/// Never: no row outside the window.
pub(crate) const NEVER: i64 = i64::MAX;
/// Not before a limit on pages lets go: the rows outside the window are held back by one.
pub(crate) const HELD: i64 = i64::MAX - 1;

/// A host that asked for patience so many times in a row may have a section that is always busy.
pub(crate) const PLEAS_IN_DOUBT: u16 = 2;
/// With this many ready rows that were never tried, or fewer, a window is refilled together with others.
const LOW_WINDOW: usize = 2;
/// With more ready rows than this, all of them tried, it is not: tried rows on disk would fill the memory.
const CROWDED: usize = 64;
/// Rows among which one is taken by chance. Every link that is found of such a host looks at them.
const CHANCES: usize = 64;

/// At most 400 bytes with an ordinary name, so that a million stay in memory.
pub(crate) struct Host {
    pub key: u64,
    pub name: Box<str>,
    /// The best of its waiting rows. Rows that wait and are not here are on disk or among the recent changes.
    pub window: Window,
    pub sites: Vec<Site>,
    #[expect(clippy::box_collection, reason = "few hosts have errands, and the box is a quarter of the deque")]
    pub errands: Option<Box<VecDeque<Errand>>>,
    /// Rows that wait, those in the window included, those leased not.
    pub waiting: u32,
    /// Rows that are leased, and those of them that were never before.
    pub out: u32,
    pub fresh_out: u32,
    /// When the first row outside the window is due: [`NEVER`] without any, [`HELD`] if limits hold back all of them.
    pub outside_due: i64,
    /// Rows known.
    pub urls: u32,
    /// Pages ever handed out.
    pub admitted: u32,
    /// Rows parked as a trap's.
    pub parked: u32,
    pub crawls: u32,
    pub errors: u32,
    pub in_flight: u32,
    /// Not before this moment, in milliseconds.
    pub next_ms: i64,
    /// When the last fetch ended.
    pub ended_ms: i64,
    /// 429s and 503s, and troubles of this machine's own, in a row.
    pub backoffs: u16,
    pub troubles: u16,
    pub orders: Orders,
    pub trap: Trap,
    pub crawl_delay_ms: u32,
    pub extra_delay_ms: u32,
    pub slowed_ms: u32,
    /// Set once none of its origins is asked any more: why.
    pub given_up: Option<Box<str>>,
    pub ip: Option<IpAddr>,
    pub name_state: NameState,
    pub placed: Placed,
    pub marks: Marks,
}

/// What the operator asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Orders {
    pub paused: bool,
    pub blocked: bool,
}

/// What is to be done about a host besides fetching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// Changed since the last batch of the log.
    pub unlogged: bool,
    /// Changed since the last flush.
    pub unflushed: bool,
    /// Its name is in the log or in a run.
    pub named: bool,
    /// Its window is to be refilled; it is being refilled.
    pub to_refill: bool,
    pub refilling: bool,
    /// In the list of those whose window is nearly empty; in that of those that wait for it.
    pub listed: bool,
    pub idle: bool,
    /// Rows that were tried may be outside the window: they are looked for even when the limits on pages are reached.
    pub tried_outside: bool,
    /// Rows went outside the window since the refill that is under way began.
    pub outside_changed: bool,
    /// Its robots.txt may be on disk: it is read from there, with the window, before the host is asked.
    pub rules_away: bool,
    /// It used up what the caller grants it: its rows wait. Not kept on disk: the caller counts, and says so again.
    pub held: bool,
    /// The log or a file says that origins of it are away.
    pub away_kept: bool,
}

/// What is known of a host's address: until when `ip` holds. A number, not an enum, which would be twice as large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NameState(i64);

impl NameState {
    pub const UNKNOWN: NameState = NameState(i64::MIN);
    /// A lookup is under way.
    pub const ASKED: NameState = NameState(i64::MIN + 1);

    pub fn known_until(at: i64) -> Self {
        NameState(at)
    }

    pub fn is_known(self, now: i64) -> bool {
        self != Self::ASKED && self.0 > now
    }
}

/// Where a host stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// Busy, or without work it may do.
    Nowhere,
    /// In the wait heap until this moment; whether that is because something failed.
    Waiting(i64, bool),
    /// Waiting until fewer names are looked up.
    Name,
    /// Waiting for its window to be refilled.
    Refill,
    /// Among the ready, in this class, since this turn.
    Ready(u16, u64),
    /// Waiting for its address to become free.
    Address(IpAddr),
}

/// The best waiting rows of a host: ready ones by rank, the best last; later ones by when they are due, the first last.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub ready: VecDeque<(u64, Row)>,
    pub later: Vec<Row>,
}

impl Window {
    pub fn len(&self) -> usize {
        self.ready.len() + self.later.len()
    }

    /// Makes room for further rows. Most hosts have one or two: a deque that starts with four, and doubles, took half of all
    /// memory where a million hosts wait.
    pub fn reserve(&mut self, rows: usize) {
        let free = self.ready.capacity() - self.ready.len();
        if rows > free {
            self.ready.reserve_exact(rows.max(self.ready.len() / 4));
        }
    }

    /// Gives back room that is not needed.
    pub fn fit(&mut self) {
        if self.ready.capacity() > 2 * self.ready.len() + 1 {
            self.ready.shrink_to(self.ready.len() + self.ready.len() / 4);
        }
        if self.later.is_empty() {
            self.later = Vec::new();
        }
    }

    /// Adds a row that may be fetched now.
    pub fn add_ready(&mut self, rank: u64, row: Row) {
        self.reserve(1);
        let at = self.ready.partition_point(|(other, _)| *other > rank);
        self.ready.insert(at, (rank, row));
    }

    pub fn add_later(&mut self, row: Row) {
        let at = self.later.partition_point(|other| other.due_ms > row.due_ms);
        self.later.insert(at, row);
    }

    /// Whether few rows are left that were never tried. Tried rows come back as long as they have attempts left: a section that is
    /// always busy would keep the window full, and the rest of its host out of it.
    pub fn is_low(&self) -> bool {
        let fresh = self.ready.iter().filter(|(_, row)| !row.is_admitted());
        self.ready.len() <= CROWDED && fresh.take(LOW_WINDOW + 1).count() <= LOW_WINDOW
    }

    /// The place of a ready row that was never tried, by chance: the hash of its path decides. Those of the lowest rank are looked at,
    /// because rows that came in by chance ([`crate::refill`]) are among them.
    pub fn by_chance(&self, may_go: impl Fn(&Row) -> bool) -> Option<usize> {
        let fresh = self.ready.iter().enumerate().filter(|(_, (_, row))| !row.is_admitted() && may_go(row));
        fresh.take(CHANCES).min_by_key(|(_, (_, row))| row.id.path()).map(|(at, _)| at)
    }

    /// Takes out the row of a key.
    pub fn remove(&mut self, id: crate::UrlId) -> Option<Row> {
        if let Some(at) = self.ready.iter().position(|(_, row)| row.id == id) {
            let row = self.ready.remove(at).map(|(_, row)| row);
            self.fit();
            return row;
        }
        let at = self.later.iter().position(|row| row.id == id)?;
        Some(self.later.remove(at))
    }
}

/// A robots.txt to fetch, for a site that may be another host's.
#[derive(Debug, Clone)]
pub(crate) struct Errand {
    pub url: Arc<str>,
    /// Whose rules it brings.
    pub host: u32,
    pub site: Arc<str>,
    pub hops: u32,
}

/// Scheme, host and port: what a robots.txt is for, and what is there or away.
pub(crate) struct Site {
    /// `http://a.example:8080`.
    pub name: Arc<str>,
    pub robots: Robots,
    pub away: Option<Box<Away>>,
}

/// ```text
/// Unknown --errand--> Fetching --rules--> Known --ttl--> (errand again)
///                        └──5xx, no answer──> Resting --time--> (errand again)      after the last attempt: GivenUp
/// ```
/// `old` are rules whose time is over. They count once more where the last attempt fails: RFC 9309, 2.4.
#[derive(Clone)]
pub(crate) enum Robots {
    Unknown { attempts: u32, old: Option<Arc<dyn Rules>> },
    Fetching { attempts: u32, old: Option<Arc<dyn Rules>> },
    Known { rules: Arc<dyn Rules>, until: i64 },
    Resting { attempts: u32, old: Option<Arc<dyn Rules>>, until: i64 },
    GivenUp { class: ErrorClass, message: Arc<str> },
}

impl Robots {
    pub fn attempts(&self) -> u32 {
        match self {
            Self::Unknown { attempts, .. } | Self::Fetching { attempts, .. } | Self::Resting { attempts, .. } => {
                *attempts
            }
            Self::Known { .. } | Self::GivenUp { .. } => 0,
        }
    }

    /// The rules that were known last.
    pub fn last_rules(&self) -> Option<Arc<dyn Rules>> {
        match self {
            Self::Unknown { old, .. } | Self::Fetching { old, .. } | Self::Resting { old, .. } => old.clone(),
            Self::Known { rules, .. } => Some(rules.clone()),
            Self::GivenUp { .. } => None,
        }
    }
}

/// Splits a URL as stored into site and path.
pub(crate) fn split_site(url: &str) -> (&str, &str) {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(host..).and_then(|rest| rest.find('/')).map_or(url.len(), |at| host + at);
    url.split_at_checked(end).unwrap_or((url, ""))
}

impl Host {
    pub fn new(key: u64, name: &str, next_ms: i64) -> Self {
        Self {
            key,
            name: name.into(),
            window: Window::default(),
            sites: Vec::new(),
            errands: None,
            waiting: 0,
            out: 0,
            fresh_out: 0,
            outside_due: NEVER,
            urls: 0,
            admitted: 0,
            parked: 0,
            crawls: 0,
            errors: 0,
            in_flight: 0,
            next_ms,
            ended_ms: i64::MIN,
            backoffs: 0,
            troubles: 0,
            orders: Orders::default(),
            trap: Trap::default(),
            crawl_delay_ms: 0,
            extra_delay_ms: 0,
            slowed_ms: 0,
            given_up: None,
            ip: None,
            name_state: NameState::UNKNOWN,
            placed: Placed::Nowhere,
            marks: Marks::default(),
        }
    }

    /// A row waits outside the window, and is due then.
    pub fn goes_outside(&mut self, due_ms: i64) {
        self.outside_due = self.outside_due.min(due_ms);
        self.marks.outside_changed = true;
    }

    /// The same of a row that is among the recent changes and held back by a limit. A refill that is under way will see it there: to be
    /// looked for again, once for each link that is found of a host at its limit, would cost far more than the link.
    pub fn is_held_outside(&mut self) {
        self.outside_due = self.outside_due.min(HELD);
    }

    /// A limit was lifted: what it held back is looked for again.
    pub fn is_let_go(&mut self) {
        if self.outside_due == HELD {
            self.outside_due = 0;
        }
    }

    /// Whether rows wait that are not in the window.
    pub fn has_outside(&self) -> bool {
        self.waiting as usize > self.window.len()
    }

    pub fn site(&mut self, name: &str) -> &mut Site {
        let at = self.sites.iter().position(|site| *site.name == *name).unwrap_or_else(|| {
            self.sites.push(Site { name: name.into(), robots: Robots::Unknown { attempts: 0, old: None }, away: None });
            self.sites.len() - 1
        });
        &mut self.sites[at]
    }

    /// Whether it is asked no more.
    pub fn is_dead(&self) -> bool {
        self.given_up.is_some()
    }

    /// Whether it waits because something failed, and not for politeness alone.
    pub fn is_in_backoff(&self) -> bool {
        self.backoffs > 0 || self.troubles > 0
    }

    /// It answered: whatever failed before is past.
    pub fn is_back(&mut self) {
        (self.backoffs, self.troubles) = (0, 0);
    }

    pub fn has_errand(&self) -> bool {
        self.errands.as_ref().is_some_and(|errands| !errands.is_empty())
    }

    /// When the first of its waiting rows is due, whatever the limits on pages: they may be other ones after a restart.
    pub fn earliest_due(&self) -> i64 {
        let later = self.window.later.last().map_or(NEVER, |row| row.due_ms);
        let due = if self.outside_due == HELD { 0 } else { later.min(self.outside_due) };
        if self.window.ready.is_empty() && self.out == 0 { due.max(0) } else { 0 }
    }

    /// Appends the host as the log has it. What is leased waits again after a crash.
    pub fn encode(&self, with_name: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.key.to_le_bytes());
        let name = if with_name { &*self.name } else { "" };
        let given_up = self.given_up.as_deref().unwrap_or_default();
        for text in [name, given_up] {
            put_uvarint(out, text.len() as u64);
            out.extend_from_slice(text.as_bytes());
        }
        for value in self.numbers() {
            put_uvarint(out, value);
        }
    }

    /// What is kept of it beside its texts.
    pub fn numbers(&self) -> [u64; 15] {
        let bits = u64::from(self.orders.paused) | u64::from(self.orders.blocked) << 1;
        [
            u64::from(self.waiting) + u64::from(self.out),
            u64::from(self.urls),
            u64::from(self.admitted.saturating_sub(self.fresh_out)),
            u64::from(self.parked),
            u64::from(self.crawls),
            u64::from(self.errors),
            self.next_ms.max(0) as u64,
            // Origins are away, not hosts; these two had their place here.
            0,
            u64::from(self.backoffs) | u64::from(self.troubles) << 32,
            bits,
            u64::from(self.trap.pack()),
            u64::from(self.crawl_delay_ms),
            u64::from(self.extra_delay_ms),
            u64::from(self.slowed_ms),
            self.earliest_due() as u64,
        ]
    }

    /// Takes over what [`Host::encode`] or a file kept of a host; the numbers were checked by [`check_numbers`].
    pub fn restore(&mut self, numbers: [u64; 15], given_up: &str) {
        let [waiting, urls, admitted, parked, crawls, errors, next, _, backoff, bits, trap, delay, extra, slowed, due] =
            numbers;
        (self.waiting, self.urls, self.admitted) = (waiting as u32, urls as u32, admitted as u32);
        (self.parked, self.crawls, self.errors) = (parked as u32, crawls as u32, errors as u32);
        self.next_ms = if next == 0 { i64::MIN } else { next as i64 };
        (self.backoffs, self.troubles) = (backoff as u16, (backoff >> 32) as u16);
        self.orders = Orders { paused: bits & 1 != 0, blocked: bits & 2 != 0 };
        self.trap = Trap::unpack(trap as u32);
        (self.crawl_delay_ms, self.extra_delay_ms, self.slowed_ms) = (delay as u32, extra as u32, slowed as u32);
        self.given_up = (!given_up.is_empty()).then(|| given_up.into());
        self.outside_due = if waiting == 0 { NEVER } else { due as i64 };
    }
}

/// The numbers of a host, in the order of [`Host::numbers`], and the largest value of each.
const NUMBERS: [(&str, u64); 15] = [
    ("a host's waiting URLs", u32::MAX as u64),
    ("a host's URLs", u32::MAX as u64),
    ("a host's admitted URLs", u32::MAX as u64),
    ("a host's parked URLs", u32::MAX as u64),
    ("a host's responses", u32::MAX as u64),
    ("a host's failures", u32::MAX as u64),
    ("when a host may be asked", i64::MAX as u64),
    ("since when a host is away", i64::MAX as u64),
    ("a host's backoffs", (1 << 48) - 1),
    ("a host's orders", 3),
    ("a host's trap flags", u32::MAX as u64),
    ("a host's crawl-delay", u32::MAX as u64),
    ("a host's ordered delay", u32::MAX as u64),
    ("a host's earned interval", u32::MAX as u64),
    ("when a host's first URL is due", i64::MAX as u64),
];

/// Whether all numbers of a host are in their range; if not, which one is not, its value and its limit.
pub(crate) fn check_numbers(numbers: &[u64; 15]) -> Result<(), (&'static str, u64, u64)> {
    let wrong = numbers.iter().zip(NUMBERS).find(|(number, (_, limit))| *number > limit);
    wrong.map_or(Ok(()), |(number, (what, limit))| Err((what, *number, limit)))
}

/// A host as the log has it.
pub(crate) struct LoggedHost {
    pub key: u64,
    pub name: String,
    pub given_up: String,
    pub numbers: [u64; 15],
}

impl LoggedHost {
    pub fn decode(r: &mut SliceReader<'_>) -> Result<Self, SliceError> {
        let key = u64::from_le_bytes(r.array("a host's key")?);
        let mut text = |what| Ok(String::from_utf8_lossy(r.prefixed(1 << 20, what)?).into_owned());
        let (name, given_up) = (text("a host's name")?, text("why a host was given up")?);
        let mut numbers = [0; 15];
        for number in &mut numbers {
            *number = r.uvarint("a host's number")?;
        }
        let at = r.offset();
        check_numbers(&numbers).map_err(|(what, claimed, limit)| SliceError::OverLimit { at, what, claimed, limit })?;
        Ok(LoggedHost { key, name, given_up, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_hosts_fit() {
        // With a name of thirty bytes, one site and its place in the index: what the settings promise.
        let host = size_of::<Host>() + 30 + size_of::<Site>() + 24 + 16;
        assert!(host <= 400, "{host}");
    }
}
