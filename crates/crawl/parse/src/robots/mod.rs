//! robots.txt as RFC 9309 has it, with the leniencies that the public parsers share.
//!
//! ```
//! # use trawl_parse::robots::Robots;
//! let robots = Robots::parse(b"User-agent: *\nDisallow: /private/\nAllow: /private/open$\nCrawl-delay: 2\n");
//! let rules = robots.agent("TrawlBot");
//! assert!(!rules.allows("/private/x").allowed);
//! assert!(rules.allows("/private/open").allowed);
//! assert_eq!(rules.crawl_delay(), Some(std::time::Duration::from_secs(2)));
//! ```
//!
//! [`Robots::parse`] keeps the lines, [`Robots::agent`] compiles those that concern one agent. Both are linear in the
//! file, of which at most [`MAX_BYTES`] are read.

mod escape;
mod lines;
mod matcher;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use lines::{Field, Lines};
use matcher::Matcher;
use memchr::memchr;

/// How much of a file is read: the 500 KiB that RFC 9309 asks parsers to take at least.
pub const MAX_BYTES: usize = 500 * 1024;

/// A robots.txt as text that [`Robots::parse`] reads as it reads the bytes, for where only text can be kept: UTF-16 is decoded, and
/// what is not UTF-8 is escaped, which is the same to rules.
///
/// ```
/// # use trawl_parse::robots::text_of;
/// assert_eq!(text_of(b"Disallow: /caf\xe9"), "Disallow: /caf%E9");
/// ```
pub fn text_of(bytes: &[u8]) -> String {
    trawl_url::text_of(&lines::text(bytes, MAX_BYTES, &mut false)).into_owned()
}

/// A parsed robots.txt, for any agent.
#[derive(Clone, Debug, Default)]
pub struct Robots {
    events: Vec<Event>,
    sitemaps: Vec<String>,
    truncated: bool,
}

/// One line that matters, in file order.
#[derive(Clone, Debug)]
enum Event {
    Agent(Box<[u8]>),
    Rule { allow: bool, pattern: Box<[u8]>, line: u32 },
    Delay(Duration),
}

impl Robots {
    /// Reads a robots.txt. Nothing in it is an error: lines that say nothing are passed over.
    pub fn parse(bytes: &[u8]) -> Robots {
        let mut this = Robots::default();
        let mut sitemaps = HashSet::new();
        let text = lines::text(bytes, MAX_BYTES, &mut this.truncated);
        for (field, value, line) in Lines::new(&text) {
            match field {
                Field::UserAgent => this.events.push(Event::Agent(value.into())),
                Field::Allow => this.events.push(Event::Rule { allow: true, pattern: value.into(), line }),
                Field::Disallow => this.events.push(Event::Rule { allow: false, pattern: value.into(), line }),
                Field::CrawlDelay => this.events.extend(delay(&value).map(Event::Delay)),
                Field::Sitemap => {
                    let url = trawl_url::text_of(&value).into_owned();
                    if !url.is_empty() && sitemaps.insert(url.clone()) {
                        this.sitemaps.push(url);
                    }
                }
            }
        }
        this
    }

    /// The rules for a product token such as `TrawlBot` (a version after `/` is ignored): all groups that name it,
    /// merged; if none does, all groups for `*`, merged.
    ///
    /// Case does not matter. A token with a space or any other character that a product token may not have matches
    /// no group by name; [`product_token`] cuts one out of a full `User-Agent` value.
    pub fn agent(&self, product_token: &str) -> AgentRules {
        let own = product_token.split('/').next().unwrap_or_default();
        // A name that ends where no product token goes on is what Google's parser sees of `trawl1` or `trawl.example`.
        let cut = |value: &[u8]| value.iter().position(|b| !(b.is_ascii_alphabetic() || matches!(b, b'_' | b'-')));
        let is_own = |name: &[u8]| name.eq_ignore_ascii_case(own.as_bytes());
        self.collect(|value| {
            let first = cut(value).and_then(|end| value.get(..end)).unwrap_or(value);
            !own.is_empty() && is_own(first) || names(value).any(is_own)
        })
        .or_else(|| self.collect(|value| names(value).next() == Some(b"*")))
        .unwrap_or_default()
    }

    /// The URLs of `Sitemap` lines as written, in file order, without repetition. They may be relative.
    pub fn sitemaps(&self) -> &[String] {
        &self.sitemaps
    }

    /// Whether the file was longer than [`MAX_BYTES`], so that its end was not read.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Merges the groups with an agent line that `matches`; `None` if there is no such line.
    ///
    /// Rules end the list of agents of a group. A crawl-delay does not (RFC 9309, 2.2.4: other records must not
    /// interfere with groups), but counts only for the agents right above it.
    fn collect(&self, matches: impl Fn(&[u8]) -> bool) -> Option<AgentRules> {
        let mut found = false;
        let (mut in_rules, mut in_delay) = (false, false);
        let (mut after_rule, mut after_delay) = (false, false);
        let mut rules = Vec::new();
        let mut crawl_delay: Option<Duration> = None;
        for event in &self.events {
            match event {
                Event::Agent(value) => {
                    in_rules &= !after_rule;
                    in_delay &= !after_rule && !after_delay;
                    (after_rule, after_delay) = (false, false);
                    if matches(value) {
                        (found, in_rules, in_delay) = (true, true, true);
                    }
                }
                Event::Rule { allow, pattern, line } => {
                    after_rule = true;
                    if in_rules {
                        rules.push((*allow, &**pattern, *line));
                    }
                }
                Event::Delay(delay) => {
                    after_delay = true;
                    if in_delay {
                        crawl_delay = crawl_delay.max(Some(*delay)); // of several, the politest
                    }
                }
            }
        }
        found.then(|| AgentRules { matcher: Matcher::new(rules.into_iter()), crawl_delay })
    }
}

/// What one agent may fetch from one host. The default allows everything.
#[derive(Clone, Debug, Default)]
pub struct AgentRules {
    matcher: Matcher,
    crawl_delay: Option<Duration>,
}

/// The answer for one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// Whether the path may be fetched.
    pub allowed: bool,
    /// The line of the rule that decided, counted from 1; `None` if no rule matched.
    pub line: Option<u32>,
}

impl AgentRules {
    /// Judges a URL by its path and query (`/a/b?c=d`). A fragment is ignored, a missing first slash supplied.
    /// `/robots.txt` itself is always allowed.
    pub fn allows(&self, path_and_query: impl AsRef<[u8]>) -> Verdict {
        let given = path_and_query.as_ref();
        let given = memchr(b'#', given).and_then(|end| given.get(..end)).unwrap_or(given);
        let rooted = match given.first() {
            Some(b'/') => Cow::Borrowed(given),
            _ => Cow::Owned([b"/", given].concat()),
        };
        if self.matcher.is_empty() || *rooted == *b"/robots.txt" {
            return Verdict { allowed: true, line: None };
        }
        match self.matcher.find(&rooted) {
            Some(hit) => Verdict { allowed: hit.allow, line: Some(hit.line) },
            None => Verdict { allowed: true, line: None },
        }
    }

    /// The delay the site asks for between requests, unbounded as written; the caller caps it.
    pub fn crawl_delay(&self) -> Option<Duration> {
        self.crawl_delay
    }
}

/// The product token of a `User-Agent` value: `TrawlBot` of `TrawlBot/1.0 (+https://…)`, and of
/// `Mozilla/5.0 (compatible; TrawlBot/1.0; +https://…)`.
///
/// RFC 9309 allows only letters, `_` and `-`; digits and dots occur and are taken too.
pub fn product_token(user_agent: &str) -> &str {
    let named = if user_agent.starts_with("Mozilla/") { name_behind_mozilla(user_agent) } else { None };
    leading_token(named.unwrap_or(user_agent))
}

fn leading_token(text: &str) -> &str {
    let end = text.bytes().position(|b| !in_token(&b));
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Nearly every program calls itself Mozilla first, and no robots.txt means a crawler by that. Site owners know it by the name that
/// follows `compatible`, or else by the one before the address of its page.
fn name_behind_mozilla(user_agent: &str) -> Option<&str> {
    let mut before = "";
    for part in user_agent.split(['(', ')', ';']).map(str::trim).filter(|part| !part.is_empty()) {
        if before.eq_ignore_ascii_case("compatible") {
            if !leading_token(part).is_empty() {
                return Some(part);
            }
            continue;
        }
        if part.starts_with('+') {
            return before.split_whitespace().next_back().filter(|word| !leading_token(word).is_empty());
        }
        before = part;
    }
    None
}

/// The path and query of an absolute URL, as [`AgentRules::allows`] wants them.
pub fn path_and_query(url: &str) -> Cow<'_, str> {
    let url = url.split('#').next().unwrap_or_default();
    let after_scheme = match url.find("://") {
        // A `://` further on belongs to a query.
        Some(at) if !url.get(..at).unwrap_or_default().contains(['/', '?']) => url.get(at + 3..),
        _ => url.strip_prefix("//").or(Some(url)),
    };
    let rest = after_scheme.unwrap_or_default();
    match rest.find(['/', '?']).and_then(|at| rest.get(at..)) {
        Some(path) if path.starts_with('/') => Cow::Borrowed(path),
        Some(query) => Cow::Owned(format!("/{query}")),
        None => Cow::Borrowed("/"),
    }
}

/// The agent names of a `User-agent` value: split at blanks and commas, each without version or trailing `*`. The
/// list ends where something else begins, such as the comment of a whole `User-Agent` header.
fn names(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|b| b.is_ascii_whitespace() || *b == b',')
        .filter(|name| !name.is_empty())
        .take_while(|name| name.first().is_some_and(|b| in_token(b) || *b == b'*'))
        .map(|name| match name.iter().position(|b| !in_token(b)) {
            Some(0) | None => name,
            Some(end) => name.get(..end).unwrap_or(name),
        })
}

fn in_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Seconds, with a fraction if any; what follows the number is ignored.
fn delay(value: &[u8]) -> Option<Duration> {
    let end = value.iter().position(|b| !(b.is_ascii_digit() || *b == b'.')).unwrap_or(value.len());
    let number = std::str::from_utf8(value.get(..end)?).ok()?;
    let seconds: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
