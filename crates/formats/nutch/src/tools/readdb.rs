//! `readdb -url` and `-topN`, and which URLs a dump has.

use super::text;
use crate::types::{CrawlDatum, Status};
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
    /// This status only.
    pub status: Option<Status>,
    /// At least so many retries.
    pub retries: Option<i8>,
    /// URLs that begin so.
    pub prefix: Option<String>,
}

impl Filter {
    /// Whether a URL is wanted.
    pub fn wants(&self, url: &Text<'_>, datum: &CrawlDatum<'_>) -> bool {
        self.status.is_none_or(|status| datum.status() == status)
            && self.retries.is_none_or(|retries| datum.retries >= retries)
            && self.prefix.as_ref().is_none_or(|prefix| url.as_bytes().starts_with(prefix.as_bytes()))
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
