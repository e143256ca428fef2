//! `readdb -url` and `-topN`, and which URLs a dump has.

use super::text;
use crate::types::{CrawlDatum, Status};
use regex_lite::Regex;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use trawl_hadoop::Text;

/// `readdb -url`: the URL and its state, or that it is not known.
pub fn write_url(url: &str, datum: Option<&CrawlDatum<'_>>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "URL: {url}")?;
    match datum {
        Some(datum) => writeln!(out, "{}", text::datum(datum)),
        None => writeln!(out, "not found"),
    }
}

/// Which URLs a dump has; everything that is set must hold.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Each URL with this probability only.
    pub sample: Option<Sample>,
    /// This status only.
    pub status: Option<Status>,
    /// At least so many retries.
    pub retries: Option<i8>,
    /// URLs that match as a whole.
    pub url: Option<UrlPattern>,
}

impl Filter {
    /// Whether a URL is wanted. A sample draws anew each time.
    pub fn wants(&mut self, url: &Text<'_>, datum: &CrawlDatum<'_>) -> bool {
        // Every URL draws, so that the same seed gives the same sample whatever else is asked for.
        let drawn = self.sample.as_mut().is_none_or(Sample::draw);
        drawn
            && self.retries.is_none_or(|retries| datum.retries >= retries)
            && self.status.is_none_or(|status| datum.status() == status)
            && self.url.as_ref().is_none_or(|pattern| pattern.matches(&url.to_str()))
    }
}

/// A regular expression that a whole URL must match, as `-regex` of the reference asks. Its classes (`\d`, `\w`, `(?i)`) are
/// those of ASCII, as in Java; look-around and back-references are refused.
#[derive(Debug, Clone)]
pub struct UrlPattern(Regex);

impl UrlPattern {
    /// Compiles an expression; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        // On its own first: a stray parenthesis must not close the group that anchors the expression.
        let wrong = |e: regex_lite::Error| format!("{e}; look-around and back-references are not supported");
        Regex::new(text).map_err(wrong)?;
        Regex::new(&format!("^(?:{text})$")).map(UrlPattern).map_err(wrong)
    }

    fn matches(&self, url: &str) -> bool {
        self.0.is_match(url)
    }
}

/// Draws URLs at random. The seed is the caller's, so that a test can repeat a sample.
#[derive(Debug, Clone)]
pub struct Sample {
    fraction: f64,
    state: u64,
}

impl Sample {
    /// Wants each URL with the probability `fraction`, from 0 to 1.
    pub fn new(fraction: f64, seed: u64) -> Self {
        Sample { fraction, state: seed }
    }

    /// SplitMix64: enough for a sample, and no other code has to be trusted for it.
    fn draw(&mut self) -> bool {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        unit < self.fraction
    }
}

/// `readdb -topN`: the URLs with the highest scores.
#[derive(Debug)]
pub struct TopN {
    most: usize,
    least_score: f32,
    /// The lowest of those kept is on top.
    kept: BinaryHeap<Ranked>,
}

/// Ordered so that the highest score, and of equal ones the first URL, is the least.
#[derive(Debug, PartialEq)]
struct Ranked {
    score: f32,
    url: String,
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.url.cmp(&other.url))
    }
}

impl TopN {
    /// Keeps `most` URLs whose score is at least `least_score`, 0 in the reference. A score that is not a number stays.
    pub fn new(most: usize, least_score: f32) -> Self {
        TopN { most, least_score, kept: BinaryHeap::new() }
    }

    /// Takes a URL.
    pub fn push(&mut self, url: &Text<'_>, score: f32) {
        if score < self.least_score || self.most == 0 {
            return;
        }
        let full = self.kept.len() >= self.most;
        if full && self.kept.peek().is_some_and(|lowest| score.total_cmp(&lowest.score) == Ordering::Less) {
            return;
        }
        self.kept.push(Ranked { score, url: url.to_string() });
        if full {
            self.kept.pop();
        }
    }

    /// Score and URL, the highest first; URLs of equal scores by name.
    pub fn finish(self) -> Vec<(f32, String)> {
        self.kept.into_sorted_vec().into_iter().map(|r| (r.score, r.url)).collect()
    }
}
