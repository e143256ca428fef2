//! What a cut source takes back is its own: whatever was denied, purged or brought by others in between, a dataset holds
//! what a simple model says.

mod common;

use common::{NOW, grown, new_lake, settings, take, urls};
use proptest::prelude::*;
use std::sync::Arc;
use trawl_ingest::{Files, Rewrite, Stage, rewrite};
use trawl_io::Fs;
use trawl_model::UrlRecord;
use trawl_store::Lake;
use trawl_store::manifest::{Deny, DenyTarget};

/// Only these domains are denied.
fn set_denied(lake: &Lake, domains: &[&str]) {
    let deny =
        |domain: &&str| Deny { target: DenyTarget::Domain((*domain).into()), since: NOW.to_string(), reason: None };
    lake.commit(NOW, "test", |manifest| {
        manifest.deny = domains.iter().map(deny).collect();
        Ok(())
    })
    .unwrap();
}

/// Writes all files again, without the rows of `domains`.
fn purge(fs: &Arc<dyn Fs>, lake: &Lake, domains: &[&str], writer: &str) {
    let keep = |record: &UrlRecord| !domains.iter().any(|domain| record.url.starts_with(&format!("http://{domain}/")));
    let all = Rewrite { keep: &keep, files: Files::All, suffix_list: None };
    rewrite(lake, 1, &all, &settings(fs, writer), &|| NOW, &common::quiet).unwrap();
}

/// Takes a file as it is now; tells how many rows were taken back.
fn put(fs: &Arc<dyn Fs>, lake: &Lake, name: &str, text: &str, writer: &str) -> u64 {
    take(lake, vec![grown(fs, lake, name, text).unwrap()], &settings(fs, writer)).unwrap().taken_back
}

#[test]
fn a_row_that_was_purged_is_not_taken_from_another_source() {
    let (fs, lake) = new_lake();
    put(&fs, &lake, "p.txt", "http://b.com/ab", "w1");
    purge(&fs, &lake, &["b.com"], "w2");
    put(&fs, &lake, "q.txt", "http://b.com/ab\n", "w3");
    assert_eq!(put(&fs, &lake, "p.txt", "http://b.com/abc\n", "w4"), 0);
    assert_eq!(urls(&lake), ["http://b.com/ab", "http://b.com/abc"]);
}

#[test]
fn a_row_that_was_denied_is_not_taken_from_another_source() {
    let (fs, lake) = new_lake();
    set_denied(&lake, &["b.com"]);
    put(&fs, &lake, "p.txt", "http://b.com/ab", "w1");
    set_denied(&lake, &[]);
    put(&fs, &lake, "q.txt", "http://b.com/ab\n", "w2");
    assert_eq!(put(&fs, &lake, "p.txt", "http://b.com/abc\n", "w3"), 0);
    assert_eq!(urls(&lake), ["http://b.com/ab", "http://b.com/abc"]);
}

#[test]
fn a_purge_of_other_rows_changes_nothing() {
    let (fs, lake) = new_lake();
    put(&fs, &lake, "p.txt", "http://b.com/ab", "w1");
    put(&fs, &lake, "q.txt", "http://b.com/ab\nhttp://a.com/\n", "w2");
    purge(&fs, &lake, &["a.com"], "w3");
    assert_eq!(put(&fs, &lake, "p.txt", "http://b.com/abc\n", "w4"), 1);
    assert_eq!(urls(&lake), ["http://b.com/ab", "http://b.com/abc"]);
}

/// A purge that began before the source grew by nothing that counts, and ended after.
#[test]
fn a_purge_forgets_what_grew_meanwhile() {
    let (fs, lake) = new_lake();
    put(&fs, &lake, "p.txt", "http://b.com/ab\t", "w1");
    let gone = Rewrite { keep: &|_| false, files: Files::All, suffix_list: None };
    rewrite(&lake, 1, &gone, &settings(&fs, "w2"), &|| NOW, &|progress| {
        if progress.stage == Stage::Committing {
            put(&fs, &lake, "p.txt", "http://b.com/ab\t ", "w3");
        }
    })
    .unwrap();
    put(&fs, &lake, "q.txt", "http://b.com/ab\n", "w4");
    assert_eq!(put(&fs, &lake, "p.txt", "http://b.com/ab\t 2026\n", "w5"), 0);
    assert_eq!(urls(&lake), ["http://b.com/ab", "http://b.com/ab"]);
}

#[test]
fn growing_by_nothing_that_counts_keeps_what_can_be_taken_back() {
    let (fs, lake) = new_lake();
    put(&fs, &lake, "p.txt", "http://b.com/ab\t", "w1");
    put(&fs, &lake, "p.txt", "http://b.com/ab\t ", "w2");
    assert_eq!(put(&fs, &lake, "p.txt", "http://b.com/ab\t 2026\n", "w3"), 1);
    assert_eq!(urls(&lake), ["http://b.com/ab"]);
}

#[test]
fn a_bad_last_line_is_rejected_once() {
    let (fs, lake) = new_lake();
    let take = |text: &str, writer: &str| {
        take(&lake, vec![grown(&fs, &lake, "p.jsonl", text).unwrap()], &settings(&fs, writer)).unwrap()
    };
    let good = "{\"url\":\"http://a.com/1\"}\n";
    assert_eq!(take(&format!("{good}{{\"bad\":1}}\n"), "w1").rejected, 1);
    let report = take(&format!("{good}{{\"bad\":1}}\n{good}{{\"url\":"), "w2");
    assert_eq!((report.rows, report.rejected), (1, 1), "the cut one, and not the old one again");
    let report = take(&format!("{good}{{\"bad\":1}}\n{good}{{\"url\":\"http://a.com/2\"}}"), "w3");
    assert_eq!((report.rows, report.rejected), (1, 0), "which is whole now");
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/1", "http://a.com/2"]);
}

const DOMAINS: [&str; 2] = ["a.com", "b.com"];
const SOURCES: [&str; 2] = ["p.txt", "q.txt"];

#[derive(Debug, Clone)]
enum Act {
    /// A source grows by so many lines, the last of them cut to so many letters if it is cut.
    Grow {
        source: usize,
        lines: Vec<(usize, usize)>,
        cut: Option<usize>,
    },
    Deny(Vec<&'static str>),
    Purge,
    Compact,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let line = (0..DOMAINS.len(), 1usize..3);
    let lines = prop::collection::vec(line, 1..3);
    let grow = (0..SOURCES.len(), lines, prop::option::weighted(0.7, 1usize..3))
        .prop_map(|(source, lines, cut)| Act::Grow { source, lines, cut });
    let deny = prop::sample::select(vec![vec![], vec!["b.com"], DOMAINS.to_vec()]).prop_map(Act::Deny);
    prop::collection::vec(prop_oneof![6 => grow, 3 => deny, 2 => Just(Act::Purge), 1 => Just(Act::Compact)], 4..20)
}

/// A source as the model has it: what its writer means to write, how much of that is there, and which of its items became
/// rows that are still in the dataset.
#[derive(Debug, Default)]
struct Model {
    /// What there is of it.
    text: String,
    /// What its writer has not written yet of the last line.
    rest: String,
    items: Vec<(String, bool)>,
}

impl Model {
    fn grow(&mut self, lines: &[(usize, usize)], cut: Option<usize>) {
        self.text.push_str(&std::mem::take(&mut self.rest));
        for (domain, letters) in lines {
            self.text.push_str(&format!("http://{}/{}\n", DOMAINS[*domain], &"xyz"[..*letters]));
        }
        if let Some(letters) = cut {
            let path = self.text.rfind('/').unwrap() + 1;
            let at = (path + letters).min(self.text.len() - 1);
            self.rest = self.text.split_off(at);
        }
    }

    /// The dataset takes it as it is.
    fn taken(&mut self, is_denied: impl Fn(&str) -> bool) {
        let now: Vec<String> = self.text.lines().map(str::to_owned).collect();
        let same = now.iter().zip(&self.items).take_while(|(now, (was, _))| *now == was).count();
        self.items.truncate(same);
        self.items.extend(now.into_iter().skip(same).map(|url| {
            let row = !is_denied(&url);
            (url, row)
        }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn a_dataset_holds_what_the_model_says(acts in acts()) {
        let (fs, lake) = new_lake();
        let mut models: [Model; SOURCES.len()] = Default::default();
        let mut denied: Vec<&str> = Vec::new();
        for (n, act) in acts.iter().enumerate() {
            let writer = format!("w{n}");
            let covers = |url: &str| denied.iter().any(|domain| url.starts_with(&format!("http://{domain}/")));
            match act {
                Act::Grow { source, lines, cut } => {
                    let model = &mut models[*source];
                    model.grow(lines, *cut);
                    model.taken(covers);
                    put(&fs, &lake, SOURCES[*source], &model.text, &writer);
                }
                Act::Deny(domains) => {
                    set_denied(&lake, domains);
                    denied.clone_from(domains);
                }
                Act::Purge => {
                    models.iter_mut().flat_map(|model| &mut model.items).for_each(|(url, row)| *row &= !covers(url));
                    if lake.dataset_newest(1).unwrap().is_some() {
                        purge(&fs, &lake, &denied, &writer);
                    }
                }
                Act::Compact if lake.dataset_newest(1).unwrap().is_some() => purge(&fs, &lake, &[], &writer),
                Act::Compact => {}
            }
            let mut expected: Vec<&str> =
                models.iter().flat_map(|model| &model.items).filter(|(_, row)| *row).map(|(url, _)| &**url).collect();
            expected.sort_unstable();
            let mut found = urls(&lake);
            found.sort_unstable();
            prop_assert_eq!(found, expected, "after step {}", n);
        }
    }
}
