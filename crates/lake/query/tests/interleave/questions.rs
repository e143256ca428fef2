//! What readers ask, and what the answer must be at a moment.

use crate::truth::{Moment, Rows, Shelf};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trawl_query::{Comparison, DiffEvent, Filter, Page, Pinned, Principal, QueryError, Side};

#[derive(Debug, Clone, Copy)]
pub enum Question {
    /// Which datasets hold a domain.
    Domain(&'static str),
    /// Its URLs in a dataset.
    Urls(&'static str, u32),
    /// One URL in all datasets.
    Url(&'static str),
    /// Two datasets side by side.
    Diff(u32, u32),
    /// The lake in numbers, dataset by dataset.
    Stats,
    /// All domains.
    Names,
}

pub const QUESTIONS: [Question; 6] = [
    Question::Domain("sub.all.org"),
    Question::Urls("one.com", 2),
    Question::Url("http://one.com/bad"),
    Question::Diff(1, 2),
    Question::Stats,
    Question::Names,
];

const NOTHING: &str = "nothing";

/// What is not there is an answer too.
fn absent(error: QueryError) -> Result<String, QueryError> {
    if error.status() == 404 { Ok(NOTHING.to_owned()) } else { Err(error) }
}

impl Question {
    /// The answer, in words that do not tell in which order rows lie.
    pub fn ask(self, pinned: &Pinned) -> Result<String, QueryError> {
        let who = Principal::anyone();
        Ok(match self {
            Self::Domain(name) => match pinned.domain(name, &who) {
                Ok(answer) => {
                    let counts = answer.datasets.iter().map(|d| (d.dataset_id, d.url_count_est));
                    format!("{} {:?}", answer.domain, counts.collect::<Vec<_>>())
                }
                Err(error) => return absent(error),
            },
            Self::Urls(name, dataset) => match pinned.urls(name, dataset, &Page::default(), &Filter::default(), &who) {
                Ok(answer) => {
                    assert_eq!(answer.total_est, answer.items.len() as u64);
                    sorted(answer.items.into_iter().map(|item| item.url))
                }
                Err(error) => return absent(error),
            },
            Self::Url(url) => {
                let answer = pinned.url(url, 100, &who)?;
                sorted(answer.items.iter().map(|hit| hit.dataset_id.to_string()))
            }
            Self::Diff(a, b) => {
                let mut urls = Vec::new();
                let what = Comparison { a, b, domain: None, urls: true };
                let done = pinned.diff(&what, &who, &mut |event| {
                    if let DiffEvent::Url { side, url, .. } = event {
                        urls.push(format!("{side:?} {url}"));
                    }
                    ControlFlow::Continue(())
                });
                match done {
                    Ok(summary) => format!("{} {} {}", summary.rows_a, summary.rows_b, sorted(urls)),
                    Err(error) => return absent(error),
                }
            }
            Self::Stats => {
                let datasets = pinned.datasets(&who)?;
                // One that was registered and not published yet is listed without rows.
                let rows: Vec<_> = datasets.iter().filter(|d| d.rows > 0).map(|d| (d.dataset_id, d.rows)).collect();
                format!("{} {rows:?}", pinned.stats()?.rows)
            }
            Self::Names => sorted(pinned.domains("", None, 100, &who)?.into_iter().map(|summary| summary.domain)),
        })
    }

    /// What it must be.
    pub fn answer(self, shelf: &Shelf, moment: &Moment) -> String {
        let rows = moment.current(shelf);
        match self {
            Self::Domain(name) => {
                let domain = moment.domain_of(name);
                let count = |(id, rows): (&u32, &Vec<(String, String)>)| {
                    (*id, rows.iter().filter(|(of, _)| *of == domain).count())
                };
                let counts: Vec<_> = rows.iter().map(count).filter(|(_, rows)| *rows > 0).collect();
                if counts.is_empty() { NOTHING.to_owned() } else { format!("{domain} {counts:?}") }
            }
            Self::Urls(name, dataset) => {
                let found = urls_of(moment, &rows, name, dataset);
                if found.is_empty() { NOTHING.to_owned() } else { sorted(found) }
            }
            Self::Url(url) => {
                let hits =
                    rows.iter().flat_map(|(id, rows)| rows.iter().filter(|(_, u)| u == url).map(|_| id.to_string()));
                sorted(hits)
            }
            Self::Diff(a, b) => {
                let (Some(left), Some(right)) = (rows.get(&a), rows.get(&b)) else { return NOTHING.to_owned() };
                let mut sides: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
                left.iter().for_each(|(_, url)| sides.entry(url).or_default().0 = true);
                right.iter().for_each(|(_, url)| sides.entry(url).or_default().1 = true);
                let side = |sides| match sides {
                    (true, true) => Side::Both,
                    (true, false) => Side::A,
                    _ => Side::B,
                };
                let urls = sides.into_iter().map(|(url, sides)| format!("{:?} {url}", side(sides)));
                format!("{} {} {}", left.len(), right.len(), sorted(urls))
            }
            Self::Stats => {
                let counts = rows.iter().map(|(id, rows)| (*id, rows.len())).filter(|(_, rows)| *rows > 0);
                let counts: Vec<_> = counts.collect();
                format!("{} {counts:?}", rows.values().map(Vec::len).sum::<usize>())
            }
            Self::Names => {
                let mut names: Vec<_> = rows.values().flatten().map(|(domain, _)| domain.clone()).collect();
                names.sort();
                names.dedup();
                sorted(names)
            }
        }
    }
}

/// The URLs of a domain in a dataset.
pub fn urls_of(moment: &Moment, rows: &Rows, name: &str, dataset: u32) -> Vec<String> {
    let domain = moment.domain_of(name);
    let of = rows.get(&dataset).into_iter().flatten().filter(|(of, _)| *of == domain);
    of.map(|(_, url)| url.clone()).collect()
}

fn sorted(words: impl IntoIterator<Item = String>) -> String {
    let mut words: Vec<String> = words.into_iter().collect();
    words.sort();
    words.join(" ")
}
