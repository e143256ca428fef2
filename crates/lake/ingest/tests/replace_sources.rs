//! Sources that have changed take the place of what they were; the rest of the dataset stays.

mod common;

use common::{NOW, file, grown, new_lake, quiet, settings, take, urls};
use std::sync::Arc;
use trawl_ingest::{Files, IngestReport, IngestSettings, Mode, Rewrite, rewrite};
use trawl_io::Fs;
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{CommitMode, Lake};

/// `a` and `b` came in together, `c` alone.
fn three() -> (Arc<dyn Fs>, Lake) {
    let (fs, lake) = new_lake();
    let both = vec![file(&fs, "a", "http://a.com/1\nhttp://a.com/2\n"), file(&fs, "b", "http://b.com/1\n")];
    take(&lake, both, &settings(&fs, "w1")).unwrap();
    take(&lake, vec![file(&fs, "c", "http://c.com/1\n")], &settings(&fs, "w2")).unwrap();
    (fs, lake)
}

fn replace(fs: &Arc<dyn Fs>, lake: &Lake, writer: &str, files: &[(&str, &str)]) -> trawl_ingest::Result<IngestReport> {
    let settings = IngestSettings { mode: Mode::ReplaceSources, ..settings(fs, writer) };
    take(lake, files.iter().map(|(name, text)| file(fs, name, text)).collect(), &settings)
}

fn sources(lake: &Lake) -> Vec<(String, u64, Option<Vec<u64>>)> {
    let sources = lake.dataset_newest(1).unwrap().unwrap().sources;
    sources.into_iter().map(|known| (known.identity.uri, known.identity.size, known.commits)).collect()
}

fn known(uri: &str, size: u64, commits: &[u64]) -> (String, u64, Option<Vec<u64>>) {
    (uri.to_owned(), size, Some(commits.to_vec()))
}

#[test]
fn one_changed_source_takes_the_place_of_what_it_was() {
    let (fs, lake) = three();
    assert_eq!(sources(&lake), [known("a", 30, &[1]), known("b", 15, &[1]), known("c", 15, &[2])]);
    let report = replace(&fs, &lake, "w3", &[("c", "http://c.com/two\nhttp://d.com/\n")]).unwrap();
    assert_eq!((report.rows, report.replaced.len(), report.skipped.len()), (2, 1, 0));
    let expected = ["http://a.com/1", "http://a.com/2", "http://b.com/1", "http://c.com/two", "http://d.com/"];
    assert_eq!(urls(&lake), expected);
    assert_eq!(sources(&lake), [known("a", 30, &[1]), known("b", 15, &[1]), known("c", 31, &[3])]);
    assert_eq!(lake.dataset_newest(1).unwrap().unwrap().mode, CommitMode::Replace);
    // The same once more is nothing to do.
    let again = replace(&fs, &lake, "w4", &[("c", "http://c.com/two\nhttp://d.com/\n")]).unwrap();
    assert_eq!((again.commit, again.skipped.len()), (None, 1));
}

#[test]
fn sources_in_the_same_files_are_read_again_or_asked_for() {
    let (fs, lake) = three();
    let before = urls(&lake);
    let refused = replace(&fs, &lake, "w3", &[("a", "http://a.com/new\n")]).unwrap_err().to_string();
    assert!(refused.contains("rows of b are in the same files"), "{refused}");
    assert_eq!(urls(&lake), before);
    // What is named and has not changed is read again only where it must be; what is new comes in as always.
    let named =
        [("a", "http://a.com/new\n"), ("b", "http://b.com/1\n"), ("c", "http://c.com/1\n"), ("d", "http://d.com/1\n")];
    let report = replace(&fs, &lake, "w4", &named).unwrap();
    assert_eq!((report.sources, report.skipped.len(), report.replaced.len()), (3, 1, 2));
    // Files are by age: those of the second commit are older.
    assert_eq!(urls(&lake), ["http://c.com/1", "http://a.com/new", "http://b.com/1", "http://d.com/1"]);
    let expected = [known("a", 17, &[3]), known("b", 15, &[3]), known("c", 15, &[2]), known("d", 15, &[3])];
    assert_eq!(sources(&lake), expected);
}

#[test]
fn files_that_were_merged_have_the_rows_of_all_their_sources() {
    let (fs, lake) = three();
    let all = Rewrite { keep: &|_| true, files: Files::All, suffix_list: None };
    rewrite(&lake, 1, &all, &settings(&fs, "w3"), &|| NOW, &quiet).unwrap();
    assert_eq!(sources(&lake), [known("a", 30, &[3]), known("b", 15, &[3]), known("c", 15, &[3])]);
    let refused = replace(&fs, &lake, "w4", &[("c", "http://c.com/2\n")]).unwrap_err().to_string();
    assert!(refused.contains("rows of a, b are"), "{refused}");
    let named = [("a", "http://a.com/1\nhttp://a.com/2\n"), ("b", "http://b.com/1\n"), ("c", "http://c.com/2\n")];
    replace(&fs, &lake, "w5", &named).unwrap();
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2", "http://b.com/1", "http://c.com/2"]);
}

#[test]
fn one_that_has_grown_is_replaced_with_all_it_brought() {
    let (fs, lake) = three();
    let longer = grown(&fs, &lake, "c", "http://c.com/1\nhttp://c.com/2\n").unwrap();
    take(&lake, vec![longer], &settings(&fs, "w3")).unwrap();
    assert_eq!(sources(&lake)[2], known("c", 30, &[2, 3]));
    replace(&fs, &lake, "w4", &[("c", "http://c.com/other\n")]).unwrap();
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2", "http://b.com/1", "http://c.com/other"]);
    // Rows are not replaced by none by mistake.
    let refused = replace(&fs, &lake, "w5", &[("c", "")]).unwrap_err().to_string();
    assert!(refused.contains("no rows"), "{refused}");
    let settings = IngestSettings { mode: Mode::ReplaceSources, allow_empty: true, ..settings(&fs, "w6") };
    take(&lake, vec![file(&fs, "c", "")], &settings).unwrap();
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2", "http://b.com/1"]);
    assert_eq!(sources(&lake)[2], known("c", 0, &[]));
}

/// Taken again as a whole, a source stands beside what it was, until that is replaced.
#[test]
fn what_a_source_was_goes_also_where_the_dataset_has_what_it_is() {
    let (fs, lake) = three();
    take(&lake, vec![file(&fs, "c", "http://c.com/2\n")], &settings(&fs, "w3")).unwrap();
    assert_eq!(urls(&lake).len(), 5);
    // All that is named is known: nothing is read.
    let report = replace(&fs, &lake, "w4", &[("c", "http://c.com/2\n")]).unwrap();
    assert_eq!((report.rows, report.skipped.len(), report.replaced.len()), (0, 1, 1));
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2", "http://b.com/1", "http://c.com/2"]);
    // One that shares files with what it was is read again beside it.
    take(&lake, vec![file(&fs, "a", "http://a.com/3\n")], &settings(&fs, "w5")).unwrap();
    let report = replace(&fs, &lake, "w6", &[("a", "http://a.com/3\n"), ("b", "http://b.com/1\n")]).unwrap();
    assert_eq!((report.sources, report.skipped.len(), report.replaced.len()), (1, 1, 2));
    assert_eq!(urls(&lake), ["http://c.com/2", "http://a.com/3", "http://b.com/1"]);
    assert_eq!(sources(&lake), [known("a", 15, &[5]), known("b", 15, &[6]), known("c", 15, &[3])]);
}

#[test]
fn commits_of_earlier_programs_do_not_tell() {
    let (fs, lake) = three();
    let path = trawl_store::layout::numbered(&trawl_store::layout::commits_dir(1), 2);
    let mut old: serde_json::Value = serde_json::from_slice(&lake.store().get(&path, 1 << 20).unwrap()).unwrap();
    old.as_object_mut().unwrap().remove("checksum");
    for source in old["sources"].as_array_mut().unwrap() {
        source.as_object_mut().unwrap().remove("commits");
    }
    lake.store().put(&path, old.to_string().as_bytes()).unwrap();
    lake.store().delete(&trawl_store::layout::commit_copy(1)).unwrap();
    let refused = replace(&fs, &lake, "w3", &[("c", "http://c.com/2\n")]).unwrap_err().to_string();
    assert!(refused.contains("--replace"), "{refused}");
    // Ingested anew it is known.
    let named: Vec<_> =
        [("a", "http://a.com/1\n"), ("c", "http://c.com/1\n")].map(|(name, text)| file(&fs, name, text)).into();
    take(&lake, named, &IngestSettings { mode: Mode::Replace, ..settings(&fs, "w4") }).unwrap();
    assert_eq!(sources(&lake), [known("a", 15, &[3]), known("c", 15, &[3])]);
}

/// All rows of `d` are denied when it comes in, and no longer when it is read again.
#[test]
fn a_source_that_brought_no_row_at_first_loses_what_it_brought_later() {
    let (fs, lake) = three();
    let deny = Deny { target: DenyTarget::Domain("d.com".into()), since: NOW.to_string(), reason: None };
    lake.commit(NOW, "deny", |manifest| {
        manifest.deny.push(deny.clone());
        Ok(())
    })
    .unwrap();
    take(&lake, vec![file(&fs, "d", "http://d.com/1\n")], &settings(&fs, "w3")).unwrap();
    assert_eq!(sources(&lake)[3], known("d", 15, &[]));
    lake.commit(NOW, "allow", |manifest| {
        manifest.deny.clear();
        Ok(())
    })
    .unwrap();
    let all = IngestSettings { mode: Mode::Replace, ..settings(&fs, "w4") };
    let files = vec![file(&fs, "c", "http://c.com/1\n"), file(&fs, "d", "http://d.com/1\n")];
    take(&lake, files, &all).unwrap();
    assert_eq!(sources(&lake), [known("c", 15, &[4]), known("d", 15, &[4])]);
    replace(&fs, &lake, "w5", &[("c", "http://c.com/1\n"), ("d", "http://d.com/new\n")]).unwrap();
    assert_eq!(urls(&lake), ["http://c.com/1", "http://d.com/new"]);
}
