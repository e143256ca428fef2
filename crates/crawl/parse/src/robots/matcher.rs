//! The compiled rules of one agent, and the search for the most specific one.
//!
//! Plain prefixes (nearly all rules) sit in a sorted list in which each knows the next shorter prefix of itself, so
//! that one binary search finds every rule that is a prefix of the path. Rules with `*` or `$` are tried from the
//! most specific down and only as long as they could still win; a 64-bit digest of the letter pairs they need
//! rejects most without looking at the path.

use std::cmp::Reverse;

use memchr::{memchr, memmem};

use super::escape;

/// How many bytes of path the wildcard rules of one file may look at for one verdict: some milliseconds. A thousand
/// such rules and a path of 200 bytes need a hundredth of it; a file made to cost more is obeyed as if it forbade.
const SCAN_BYTES: usize = 16 << 20;

/// Where a rule stands in the order: length in octets, then allow before disallow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Rank(u64);

impl Rank {
    fn new(octets: usize, allow: bool) -> Self {
        Rank(u64::try_from(octets).unwrap_or(u64::MAX >> 1) << 1 | u64::from(allow))
    }
}

/// The rule that decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Hit {
    rank: Rank,
    pub(super) allow: bool,
    pub(super) line: u32,
}

/// A rule without wildcard: it matches every path that starts with it.
#[derive(Clone, Debug)]
struct Prefix {
    text: Box<[u8]>,
    /// Index of the longest other prefix of this text, plus one; 0 if there is none.
    parent: usize,
    /// The best rule among this one and its parents.
    best: Hit,
}

/// A rule with `*` inside or `$` at its end.
#[derive(Clone, Debug)]
struct Wild {
    /// The texts between the stars.
    parts: Box<[Box<[u8]>]>,
    anchored: bool,
    pairs: u64,
    hit: Hit,
}

/// All rules of one agent.
#[derive(Clone, Debug, Default)]
pub(super) struct Matcher {
    prefixes: Vec<Prefix>,
    wild: Vec<Wild>,
}

impl Matcher {
    /// Compiles `(allow, value, line)` rules; a rule with an empty value says nothing and is left out.
    pub(super) fn new<'a>(rules: impl Iterator<Item = (bool, &'a [u8], u32)>) -> Self {
        let mut this = Matcher::default();
        for (allow, value, line) in rules {
            if value.is_empty() {
                continue;
            }
            let hit = Hit { rank: Rank::new(escape::specificity(value), allow), allow, line };
            let (text, octets) = escape::pattern(value);
            for pattern in std::iter::once(text).chain(octets) {
                if let Some(encoded) = encoded_query(&pattern) {
                    this.add(&encoded, hit);
                }
                if allow && let Some(directory) = index_directory(&pattern) {
                    this.add(&directory, Hit { rank: Rank::new(directory.len(), true), ..hit });
                }
                this.add(&pattern, hit);
            }
        }
        this.finish();
        this
    }

    fn add(&mut self, pattern: &[u8], hit: Hit) {
        let (body, anchored) = match pattern.split_last() {
            Some((b'$', body)) => (body, true),
            _ => (pattern, false),
        };
        // A star at the end adds nothing to a match that may end anywhere.
        let open = body.iter().rposition(|b| *b != b'*').map_or(0, |last| last + 1);
        let (body, anchored) = match body.get(..open) {
            Some(head) if head.len() < body.len() => (head, false),
            _ => (body, anchored),
        };
        if !anchored && !body.contains(&b'*') {
            self.prefixes.push(Prefix { text: body.into(), parent: 0, best: hit });
            return;
        }
        let parts: Box<[Box<[u8]>]> = body.split(|b| *b == b'*').map(Into::into).collect();
        let pairs = parts.iter().fold(0, |all, part| all | pairs(part));
        self.wild.push(Wild { parts, anchored, pairs, hit });
    }

    fn finish(&mut self) {
        self.prefixes.sort_by(|a, b| a.text.cmp(&b.text).then(b.best.rank.cmp(&a.best.rank)));
        self.prefixes.dedup_by(|later, first| later.text == first.text);
        let mut chain: Vec<usize> = Vec::new(); // the prefixes of the current text, shortest first
        for i in 0..self.prefixes.len() {
            let Some((before, [current, ..])) = self.prefixes.split_at_mut_checked(i) else { break };
            while let Some(top) = chain.last().and_then(|&top| before.get(top)) {
                if current.text.starts_with(&top.text) {
                    if top.best.rank > current.best.rank {
                        current.best = top.best;
                    }
                    break;
                }
                chain.pop();
            }
            current.parent = chain.last().map_or(0, |top| top + 1);
            chain.push(i);
        }
        self.wild.sort_by_key(|rule| Reverse(rule.hit.rank));
    }

    /// Whether no rule can ever match.
    pub(super) fn is_empty(&self) -> bool {
        self.prefixes.is_empty() && self.wild.is_empty()
    }

    /// The most specific rule that matches any form of `path`.
    pub(super) fn find(&self, path: &[u8]) -> Option<Hit> {
        let (text, octets) = escape::path(path);
        let found = self.find_form(&text);
        match octets.and_then(|octets| self.find_form(&octets)) {
            Some(other) if found.is_none_or(|hit| other.rank > hit.rank) => Some(other),
            _ => found,
        }
    }

    fn find_form(&self, path: &[u8]) -> Option<Hit> {
        let mut best = self.find_prefix(path);
        let mut path_pairs = None;
        let mut left = SCAN_BYTES;
        for rule in &self.wild {
            if best.is_some_and(|hit| hit.rank >= rule.hit.rank) {
                break;
            }
            let have = *path_pairs.get_or_insert_with(|| match self.wild.len() {
                0..8 => u64::MAX, // trying so few is quicker than looking at every pair
                _ => pairs(path),
            });
            if rule.pairs & !have != 0 {
                continue;
            }
            left = match left.checked_sub(path.len()) {
                Some(left) => left,
                None => return Some(Hit { allow: false, ..rule.hit }),
            };
            if rule.matches(path) {
                best = Some(rule.hit);
                break;
            }
        }
        best
    }

    fn find_prefix(&self, path: &[u8]) -> Option<Hit> {
        // The last text at or before the path shares the longest start with it, so every prefix of the path is
        // that text or one of its parents.
        let after = self.prefixes.partition_point(|p| *p.text <= *path);
        let mut at = after;
        let mut common = None;
        while let Some(prefix) = at.checked_sub(1).and_then(|i| self.prefixes.get(i)) {
            let shared = *common.get_or_insert_with(|| {
                prefix.text.iter().zip(path).take_while(|(a, b)| a == b).count() // once: parents are shorter
            });
            if prefix.text.len() <= shared {
                return Some(prefix.best);
            }
            at = prefix.parent;
        }
        None
    }
}

impl Wild {
    fn matches(&self, path: &[u8]) -> bool {
        let Some((first, more)) = self.parts.split_first() else { return false };
        let Some(mut rest) = path.strip_prefix(&**first) else { return false };
        let (inner, last) = match more.split_last() {
            None => return !self.anchored || rest.is_empty(),
            Some((last, inner)) if self.anchored => (inner, Some(last)),
            Some(_) => (more, None),
        };
        if let Some(last) = last {
            match rest.strip_suffix(&**last) {
                Some(middle) => rest = middle,
                None => return false,
            }
        }
        // Leftmost is enough: whatever a later position allows, an earlier one allows too.
        for part in inner {
            match find(rest, part) {
                Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
                None => return false,
            }
        }
        true
    }
}

/// The first position of `part`. Most paths are short, and then the plain way is several times quicker than setting up
/// the search that stays linear for any input.
fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if text.len() > 128 {
        return memmem::find(text, part);
    }
    let Some(first) = part.first() else { return Some(0) };
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let at = memchr(*first, rest)?;
        if rest.get(at..)?.starts_with(part) {
            return Some(from + at);
        }
        from += at + 1;
    }
}

/// One bit per pair of neighbouring octets: a text holds a part only if it holds the part's bits.
fn pairs(text: &[u8]) -> u64 {
    text.windows(2).fold(0, |bits, pair| match pair {
        [a, b] => bits | 1 << ((a.wrapping_mul(31) ^ b.wrapping_mul(35)) & 63),
        _ => bits,
    })
}

/// The same pattern with `:/?@` of its query percent-encoded, which is how browsers send a URL inside a query
/// (second row of RFC 9309's table in 2.2.2).
fn encoded_query(pattern: &[u8]) -> Option<Vec<u8>> {
    let query = pattern.iter().position(|b| *b == b'?')? + 1;
    let (head, tail) = pattern.split_at_checked(query)?;
    let encode = |b: &u8| matches!(b, b':' | b'/' | b'?' | b'@');
    if !tail.iter().any(encode) {
        return None;
    }
    let mut out = head.to_vec();
    for byte in tail {
        if encode(byte) {
            escape::push_escape(&mut out, *byte);
        } else {
            out.push(*byte);
        }
    }
    Some(out)
}

/// `Allow: /dir/index.html` also allows `/dir/` itself, as Google's parser has it.
fn index_directory(pattern: &[u8]) -> Option<Vec<u8>> {
    let slash = pattern.iter().rposition(|b| *b == b'/')?;
    let (directory, file) = pattern.split_at_checked(slash + 1)?;
    file.starts_with(b"index.htm").then(|| [directory, b"$"].concat())
}
