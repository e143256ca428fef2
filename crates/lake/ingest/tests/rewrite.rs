//! Rewriting and verifying what is there.

mod common;

use common::{NOW, all_rows, file, new_lake, quiet, settings, take, urls};
use trawl_ingest::{Files, IngestSettings, Mode, Rewrite, RewriteReport, rewrite};
use trawl_model::UrlRecord;
use trawl_rows::{Column, FilePages, verify_dataset};
use trawl_store::{CommitMode, DataFile, DatasetCommit, Fault, Lake};
use trawl_url::SuffixList;

fn keep_all(_: &UrlRecord) -> bool {
    true
}

fn run(lake: &Lake, what: &Rewrite<'_>, settings: &IngestSettings) -> trawl_ingest::Result<RewriteReport> {
    rewrite(lake, 1, what, settings, &|| NOW, &quiet)
}

fn faults(lake: &Lake, commit: &DatasetCommit, suffixes: &SuffixList) -> Vec<Fault> {
    let mut found = Vec::new();
    let verified = verify_dataset(&**lake.store(), commit, suffixes, &mut |fault| found.push(fault)).unwrap();
    assert_eq!(verified.faults, found.len() as u64);
    assert_eq!(verified.files, commit.files.len() as u64);
    found
}

const RICH: &str = concat!(
    r#"{"url":"HTTP://www.a.com/?b=1&a=2","ts":1,"status":200,"digest":"sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ","#,
    r#""warc_file":"x","warc_offset":7,"warc_length":9,"body_length":3,"content_type":"t","k":[1.0]}"#,
    "\n{\"url\":\"http://b.github.io/\"}\n{\"url\":\"http://a.com:8080/\"}\n"
);

#[test]
fn what_ingest_writes_verifies() {
    let (fs, lake) = new_lake();
    let lines: String = (0..5000).map(|i| format!("http://h{}.d{}.com/{}\n", i % 3, i % 41, i % 700)).collect();
    let small = IngestSettings { row_group_bytes: 20_000, file_bytes: 60_000, store_ids: true, ..settings(&fs, "w1") };
    take(&lake, vec![file(&fs, "a.txt", lines)], &small).unwrap();
    let two = IngestSettings { prefix_digits: Some(2), ..settings(&fs, "w2") };
    take(&lake, vec![file(&fs, "b.jsonl", RICH)], &two).unwrap();
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    assert!(commit.files.len() > 5);
    assert_eq!(faults(&lake, &commit, SuffixList::builtin()), []);
}

#[test]
fn every_lie_is_found() {
    let (fs, lake) = new_lake();
    // With the dataset in each row, which the path tells else.
    let with_ids = IngestSettings { store_ids: true, ..settings(&fs, "w1") };
    take(&lake, vec![file(&fs, "b.jsonl", RICH)], &with_ids).unwrap();
    let good = lake.dataset_newest(1).unwrap().unwrap();
    let lie = |change: &dyn Fn(&mut DatasetCommit)| {
        let mut commit = good.clone();
        change(&mut commit);
        let found = faults(&lake, &commit, SuffixList::builtin());
        found.into_iter().map(|f| f.expected).collect::<Vec<_>>()
    };
    assert_eq!(lie(&|_| ()), Vec::<&str>::new());
    assert_eq!(lie(&|c| c.files[0].min_key = "x".into()), ["the first domain and key of its commit"]);
    assert_eq!(lie(&|c| c.files[0].max_domain = "x".into()), ["the last domain and key of its commit"]);
    assert_eq!(lie(&|c| c.files[0].distinct_urls += 1), ["as many different urls as its commit says"]);
    assert_eq!(lie(&|c| c.files[0].rows += 1), ["a file as its commit says"]);
    assert_eq!(lie(&|c| c.files[0].hash = "0".into()), ["a file as its commit says"]);
    assert_eq!(lie(&|c| c.files[0].prefix = "ff".into()).len(), 3);
    assert_eq!(lie(&|c| c.dataset_id = 2).len(), 3);
    assert_eq!(lie(&|c| c.files.push(c.files[0].clone())), ["a range after that of the file before"]);
    // Under another suffix list the domain of one row is another.
    let icann = SuffixList::parse("com\nio\n").unwrap();
    assert_eq!(faults(&lake, &good, &icann)[0].expected, "the registrable domain of the host");
    // A damaged file.
    let path = &good.files[0].path;
    let mut bytes = lake.store().get(path, 1 << 20).unwrap().to_vec();
    bytes[100] ^= 1;
    lake.store().put(path, &bytes).unwrap();
    let found = faults(&lake, &good, SuffixList::builtin());
    assert!(found[0].to_string().contains("expected the hash of its commit"), "{}", found[0]);
    lake.store().delete(path).unwrap();
    assert_eq!(faults(&lake, &good, SuffixList::builtin()).len(), 1);
}

#[test]
fn a_rewrite_without_change_keeps_every_row() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "a.txt", "http://z.com/\n")], &settings(&fs, "w1")).unwrap();
    take(&lake, vec![file(&fs, "b.jsonl", RICH)], &settings(&fs, "w2")).unwrap();
    let mut before = all_rows(&lake);
    let what = Rewrite { keep: &keep_all, files: Files::All, suffix_list: None };
    let report = run(&lake, &what, &settings(&fs, "w3")).unwrap();
    assert_eq!((report.files_before, report.files_after), (2, 1));
    assert_eq!((report.rows_before, report.rows_after, report.commit), (4, 4, Some(3)));
    let mut after = all_rows(&lake);
    before.sort_by(|a, b| a.url.cmp(&b.url));
    after.sort_by(|a, b| a.url.cmp(&b.url));
    assert_eq!(after, before);
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!((commit.mode, commit.sources.len()), (CommitMode::Rewrite, 2), "sources stay known");
    let again = take(&lake, vec![file(&fs, "b.jsonl", RICH)], &settings(&fs, "w4")).unwrap();
    assert_eq!(again.skipped.len(), 1);
    assert_eq!(faults(&lake, &commit, SuffixList::builtin()), []);
}

#[test]
fn a_rewrite_keeps_stored_ids_and_the_level() {
    let (fs, lake) = new_lake();
    let small = IngestSettings { store_ids: true, zstd_level: 19, ..settings(&fs, "w1") };
    take(&lake, vec![file(&fs, "a.txt", "http://a.com/1\nhttp://a.com/2\n")], &small).unwrap();
    take(&lake, vec![file(&fs, "b.txt", "http://b.com/1\n")], &IngestSettings { writer: "w2".into(), ..small })
        .unwrap();
    take(&lake, vec![file(&fs, "c.txt", "http://c.com/1\n")], &settings(&fs, "w3")).unwrap();
    let kept = |lake: &Lake| {
        let commit = lake.dataset_newest(1).unwrap().unwrap();
        let read = |file: &DataFile| {
            let pages = FilePages::read(&**lake.store(), file).unwrap();
            let columns = pages.tables().next().unwrap().unwrap().columns();
            (columns.has(Column::DomainId), columns.has(Column::UrlId), pages.zstd_level)
        };
        let mut kept: Vec<_> = commit.files.iter().map(read).collect();
        kept.sort_unstable();
        kept
    };
    let plain = (false, false, Some(6));
    let rich = (true, true, Some(19));
    assert_eq!(kept(&lake), [plain, rich, rich]);
    // Neither a purge of the one nor of the other.
    for (writer, gone) in [("w4", "http://a.com/1"), ("w5", "http://c.com/none")] {
        let keep = |record: &UrlRecord| record.url != gone;
        let chosen = |file: &DataFile| gone.contains(&file.min_domain);
        let what = Rewrite { keep: &keep, files: Files::Chosen(&chosen), suffix_list: None };
        assert!(run(&lake, &what, &settings(&fs, writer)).unwrap().commit.is_some());
        assert_eq!(kept(&lake), [plain, rich, rich], "{gone}");
    }
    // One file of all of them has what the richest had.
    run(&lake, &Rewrite { keep: &keep_all, files: Files::All, suffix_list: None }, &settings(&fs, "w6")).unwrap();
    assert_eq!(kept(&lake), [rich]);
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!(faults(&lake, &commit, SuffixList::builtin()), []);
}

#[test]
fn a_purge_touches_only_files_with_such_rows() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "a.txt", "http://a.com/1\nhttp://a.com/2\n")], &settings(&fs, "w1")).unwrap();
    take(&lake, vec![file(&fs, "b.txt", "http://b.com/1\n")], &settings(&fs, "w2")).unwrap();
    let keep = |record: &UrlRecord| record.url != "http://a.com/1";
    let what = Rewrite { keep: &keep, files: Files::Losing(&|_| true), suffix_list: None };
    let report = run(&lake, &what, &settings(&fs, "w3")).unwrap();
    assert_eq!((report.files_before, report.rows_before, report.rows_after), (1, 2, 1));
    assert_eq!(urls(&lake), ["http://b.com/1", "http://a.com/2"], "the other file keeps its place");
    let again = run(&lake, &what, &settings(&fs, "w4")).unwrap();
    assert_eq!(again, RewriteReport::default());
    // A file that loses all its rows goes altogether.
    let none =
        Rewrite { keep: &|r: &UrlRecord| !r.url.contains("b.com"), files: Files::Losing(&|_| true), suffix_list: None };
    let report = run(&lake, &none, &settings(&fs, "w5")).unwrap();
    assert_eq!((report.files_before, report.files_after), (1, 0));
    assert_eq!(urls(&lake), ["http://a.com/2"]);
}

#[test]
fn another_suffix_list_cuts_other_domains() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "b.jsonl", RICH)], &settings(&fs, "w1")).unwrap();
    assert!(all_rows(&lake).iter().any(|r| r.domain == "b.github.io"));
    let text = "com\nio\n";
    let list = lake.put_suffix_list(text.as_bytes()).unwrap();
    let what = Rewrite { keep: &keep_all, files: Files::All, suffix_list: Some(&list) };
    run(&lake, &what, &settings(&fs, "w2")).unwrap();
    assert!(all_rows(&lake).iter().any(|r| r.domain == "github.io"));
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    assert_eq!(commit.suffix_list, list.hash);
    assert_eq!(faults(&lake, &commit, &SuffixList::parse(text).unwrap()), []);
}

#[test]
fn a_rewrite_of_files_that_were_replaced_meanwhile_is_refused() {
    let (fs, lake) = new_lake();
    take(&lake, vec![file(&fs, "a.txt", "http://a.com/1\n")], &settings(&fs, "w1")).unwrap();
    let once = std::sync::Once::new();
    let replace = IngestSettings { mode: Mode::Replace, ..settings(&fs, "w2") };
    let keep = |_: &UrlRecord| {
        once.call_once(|| {
            take(&lake, vec![file(&fs, "b.txt", "http://b.com/1\n")], &replace).unwrap();
        });
        true
    };
    let what = Rewrite { keep: &keep, files: Files::All, suffix_list: None };
    let error = run(&lake, &what, &settings(&fs, "w3")).unwrap_err();
    assert!(error.to_string().contains("replaced"), "{error}");
    assert_eq!(urls(&lake), ["http://b.com/1"]);
    assert!(lake.store().list("urls").unwrap().iter().all(|l| !l.path.contains("-w3-")));
}

#[test]
fn stored_ids_stay_stored() {
    let (fs, lake) = new_lake();
    let with_ids = IngestSettings { store_ids: true, ..settings(&fs, "w1") };
    take(&lake, vec![file(&fs, "a.txt", "http://a.com/1\n")], &with_ids).unwrap();
    take(&lake, vec![file(&fs, "b.txt", "http://a.com/2\n")], &settings(&fs, "w2")).unwrap();
    let what = Rewrite { keep: &keep_all, files: Files::All, suffix_list: None };
    run(&lake, &what, &settings(&fs, "w3")).unwrap();
    let commit = lake.dataset_newest(1).unwrap().unwrap();
    let pages = FilePages::read(&**lake.store(), &commit.files[0]).unwrap();
    let columns = pages.tables().next().unwrap().unwrap().columns();
    assert!(columns.has(Column::UrlId) && columns.has(Column::DomainId));
    assert_eq!(urls(&lake), ["http://a.com/1", "http://a.com/2"]);
}
