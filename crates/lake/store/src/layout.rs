//! Where everything lies in a lake. All paths are relative to its root.
//!
//! ```text
//! urls/dataset_id=7/domain_prefix=all/part-<writer>-00000.parquet     rows, immutable
//! datasets/7/commits/0000000003.json                                  which of them are live
//! datasets/7/commit.json                                              copy of the newest of them, should that be lost
//! datasets/7/rejects/<writer>.jsonl                                   what an ingest could not take, and why
//! datasets/deny/0000000002.json                                       the deny list once more, should index/ be lost
//! datasets/suffix_lists/<hash>.dat.zst                                the suffix list once more
//! index/manifests/0000000012.json                                     commits: the n-th state of the lake
//! index/checkpoints/0000000008.json.zst                               the whole of a state that later ones differ from
//! index/deny/<hash>.json                                              a deny list too long to be repeated in manifests
//! index/manifest.json                                                 copy of a recent one, for people and simple readers
//! index/<segment>/...                                                 one immutable index segment
//! index/<segment>/0a/...                                              a piece of one that is split by prefix
//! index/heartbeats/<writer>.json                                      what a living writer is about to publish
//! index/suffix_lists/<hash>.dat                                       the suffix list of the lake
//! jobs/<job>/job.json                                                 an ingest that many processes share, while it goes on
//! jobs/<job>/<stage>/000003.json                                      what its third task of a stage has done
//! jobs/<job>/<stage>/000003-<attempt>.run                             what one attempt at that task hands on
//! jobs/<job>/rows/000000-<attempt>.parquet                            a table that an engine hands to the job
//! ```

use crate::{Error, Result, check_name};

/// Root of the Parquet files, as the manifest's `parquet_root` spells it.
pub const PARQUET_ROOT: &str = "urls/";
/// The same, as a directory.
pub const URLS: &str = "urls";
/// Directory of the records of the deny list.
pub const DENY: &str = "datasets/deny";
/// What is known of datasets besides their rows. Not below `urls/`: programs that scan a directory for Parquet trip over any
/// other file there (Polars), or over nothing else than it (pandas, Spark).
pub const DATASETS: &str = "datasets";
/// Directory of the numbered manifests.
pub const MANIFESTS: &str = "index/manifests";
/// The copy of a recent manifest under the seed's name.
pub const MANIFEST_COPY: &str = "index/manifest.json";
/// Directory of the checkpoints.
pub const CHECKPOINTS: &str = "index/checkpoints";
/// Directory of the suffix lists.
pub const SUFFIX_LISTS: &str = "index/suffix_lists";
/// Directory of the heartbeats.
pub const HEARTBEATS: &str = "index/heartbeats";
/// Directory of the jobs that are under way.
pub const JOBS: &str = "jobs";
/// Largest dataset id: the column is a signed 32-bit number.
pub const MAX_DATASET_ID: u32 = i32::MAX as u32;

/// Names below `index/` that no segment may have.
const RESERVED: [&str; 7] =
    ["manifests", "manifest.json", "checkpoints", "deny", "heartbeats", "suffix_lists", "probes"];

/// The whole state `n`.
pub fn checkpoint(n: u64) -> String {
    format!("{CHECKPOINTS}/{n:010}.json.zst")
}

/// The number in a path made by [`checkpoint`].
pub fn checkpoint_number(path: &str) -> Option<u64> {
    number_of(path.strip_prefix(CHECKPOINTS)?.strip_suffix(".zst")?)
}

/// A long deny list, named by the hash of its bytes.
pub fn deny_object(hash: &str) -> Result<String> {
    check_name(hash)?;
    Ok(format!("index/deny/{hash}.json"))
}

/// Directory of one dataset.
pub fn dataset_dir(dataset_id: u32) -> String {
    format!("urls/dataset_id={dataset_id}")
}

/// Directory of a dataset's commits.
pub fn commits_dir(dataset_id: u32) -> String {
    format!("datasets/{dataset_id}/commits")
}

/// The copy of a dataset's newest commit.
pub fn commit_copy(dataset_id: u32) -> String {
    format!("datasets/{dataset_id}/commit.json")
}

/// What one ingest of a dataset could not take.
pub fn rejects(dataset_id: u32, writer: &str) -> Result<String> {
    check_name(writer)?;
    Ok(format!("{}/{writer}.jsonl", rejects_dir(dataset_id)))
}

/// Directory of what ingests of a dataset could not take.
pub fn rejects_dir(dataset_id: u32) -> String {
    format!("datasets/{dataset_id}/rejects")
}

/// Directory of what is known of a dataset besides its rows.
pub fn records_dir(dataset_id: u32) -> String {
    format!("datasets/{dataset_id}")
}

/// The dataset that a path is of.
pub fn dataset_of(path: &str) -> Option<u32> {
    let rest = path.strip_prefix("urls/dataset_id=").or_else(|| path.strip_prefix("datasets/"))?;
    rest.split('/').next()?.parse().ok()
}

/// The `n`-th file of a numbered series.
pub fn numbered(dir: &str, n: u64) -> String {
    format!("{dir}/{n:010}.json")
}

/// The number in a path made by [`numbered`].
pub fn number_of(path: &str) -> Option<u64> {
    let digits = path.rsplit('/').next()?.strip_suffix(".json")?;
    (digits.len() >= 10 && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// A Parquet file. `prefix` is `all`, one or two lower-case hex digits.
pub fn part(dataset_id: u32, prefix: &str, writer: &str, number: u32) -> Result<String> {
    check_prefix(prefix)?;
    check_name(writer)?;
    Ok(format!("urls/dataset_id={dataset_id}/domain_prefix={prefix}/part-{writer}-{number:05}.parquet"))
}

/// Checks the value of `domain_prefix=`.
pub fn check_prefix(prefix: &str) -> Result<()> {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if prefix == "all" || (1..=2).contains(&prefix.len()) && prefix.bytes().all(hex) {
        Ok(())
    } else {
        Err(Error::bad_name("all, or one or two lower-case hex digits", prefix))
    }
}

/// Directory of an index segment, or, given `<segment>/<prefix>`, of a piece of one that is split.
pub fn segment_dir(segment: &str) -> Result<String> {
    let (whole, piece) = segment.split_once('/').map_or((segment, None), |(whole, piece)| (whole, Some(piece)));
    check_name(whole)?;
    if RESERVED.contains(&whole) {
        return Err(Error::bad_name("a segment id that is not a reserved name", segment));
    }
    if let Some(prefix) = piece {
        check_prefix(prefix)?;
        if prefix == "all" {
            return Err(Error::bad_name("one or two lower-case hex digits", prefix));
        }
    }
    Ok(format!("index/{segment}"))
}

/// A file of an index segment; `file` may have directories (`postings/0/postings.idx.zst`).
pub fn segment_file(segment: &str, file: &str) -> Result<String> {
    let path = format!("{}/{file}", segment_dir(segment)?);
    crate::check_path(&path)?;
    Ok(path)
}

/// Directory of a job.
pub fn job_dir(job: &str) -> Result<String> {
    check_name(job)?;
    Ok(format!("{JOBS}/{job}"))
}

/// What a job is.
pub fn job_file(job: &str) -> Result<String> {
    Ok(format!("{}/job.json", job_dir(job)?))
}

/// What a task of a job has done: there is one report, whichever attempt made it.
pub fn task_report(job: &str, stage: &str, task: u32) -> Result<String> {
    check_name(stage)?;
    Ok(format!("{}/{stage}/{task:06}.json", job_dir(job)?))
}

/// A file that one attempt at a task hands on; `end` is the ending of its name, `run` or `jsonl`.
pub fn task_file(job: &str, stage: &str, task: u32, attempt: &str, end: &str) -> Result<String> {
    check_name(stage)?;
    check_name(attempt)?;
    Ok(format!("{}/{stage}/{task:06}-{attempt}.{end}", job_dir(job)?))
}

/// Whether a path has a form that lakes give to their files. What has another is not a lake's to delete.
pub fn is_ours(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["datasets", "deny", _] | ["index", "manifests", _] => number_of(path).is_some(),
        ["datasets", _, "commits", _] => number_of(path).is_some() && dataset_of(path).is_some(),
        ["datasets", _, "commit.json"] => dataset_of(path).is_some(),
        ["datasets", "suffix_lists", name] => name.ends_with(".dat.zst"),
        ["datasets", _, "rejects", name] => name.ends_with(".jsonl") && dataset_of(path).is_some(),
        ["urls", dataset, prefix, name] => {
            let number = name.strip_suffix(".parquet").and_then(|name| name.rsplit_once('-')).map(|(_, number)| number);
            dataset.starts_with("dataset_id=")
                && prefix.starts_with("domain_prefix=")
                && name.starts_with("part-")
                && number.is_some_and(|n| n.len() >= 5 && n.bytes().all(|b| b.is_ascii_digit()))
        }
        ["jobs", _, "job.json"] => true,
        ["jobs", _, _, name] => [".json", ".run", ".jsonl", ".parquet"].iter().any(|end| name.ends_with(end)),
        ["index", "manifest.json"] => true,
        ["index", "checkpoints", _] => checkpoint_number(path).is_some(),
        ["index", "deny", name] => name.ends_with(".json"),
        ["index", "suffix_lists", name] => name.ends_with(".dat"),
        ["index", "heartbeats", name] => name.ends_with(".json"),
        ["index", "probes", _] => true,
        ["index", _, .., name] => {
            [".zst", ".bin", ".mphf", ".roar"].iter().any(|end| name.ends_with(end)) || *name == "segment.json"
        }
        _ => false,
    }
}

/// Whether an object under this path has the same bytes as long as it exists: one that may be kept by a cache.
pub fn never_changes(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["urls", .., name] => name.ends_with(".parquet"),
        ["index", "suffix_lists" | "checkpoints" | "deny", _] => true,
        ["index", dir, _, ..] => !RESERVED.contains(dir),
        _ => false,
    }
}

/// Whether a file below the directory of a dataset or a segment in which `writer` works is one that it has written. A
/// dataset has files of others; a segment has one writer.
pub fn is_written_by(path: &str, writer: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["datasets", _, "rejects", name] => name.strip_suffix(".jsonl") == Some(writer),
        ["urls", _, _, name] => {
            let number = name.strip_prefix("part-").and_then(|name| name.strip_prefix(writer)?.strip_prefix('-'));
            let number = number.and_then(|number| number.strip_suffix(".parquet"));
            number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
        }
        ["index", _, _, ..] => true,
        _ => false,
    }
}

/// A writer's heartbeat.
pub fn heartbeat(writer: &str) -> Result<String> {
    check_name(writer)?;
    Ok(format!("{HEARTBEATS}/{writer}.json"))
}

/// A suffix list, named by the hash of its bytes.
pub fn suffix_list(hash: &str) -> Result<String> {
    check_name(hash)?;
    Ok(format!("{SUFFIX_LISTS}/{hash}.dat"))
}

/// The same list once more, compressed, outside of `index/`.
pub fn suffix_list_copy(hash: &str) -> Result<String> {
    check_name(hash)?;
    Ok(format!("{DATASETS}/suffix_lists/{hash}.dat.zst"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_path;

    #[test]
    fn paths_are_the_documented_ones_and_pass_the_check() {
        let part = part(7, "0a", "w1", 3).unwrap();
        assert_eq!(part, "urls/dataset_id=7/domain_prefix=0a/part-w1-00003.parquet");
        assert_eq!(numbered(MANIFESTS, 12), "index/manifests/0000000012.json");
        assert_eq!(numbered(&commits_dir(7), 1), "datasets/7/commits/0000000001.json");
        assert_eq!(segment_file("s1", "postings/0/postings.idx.zst").unwrap(), "index/s1/postings/0/postings.idx.zst");
        for path in [part, numbered(MANIFESTS, u64::MAX), heartbeat("w").unwrap(), suffix_list("00ff").unwrap()] {
            check_path(&path).unwrap();
        }
    }

    #[test]
    fn what_others_put_into_a_lake_is_not_ours() {
        let files = ["segment.json", "counts.bin", "postings/0/postings.idx.zst", "domains.mphf", "x.roar"];
        let segment = files.map(|file| segment_file("s1", file).unwrap());
        let own = [
            part(7, "0a", "w-1", 3).unwrap(),
            numbered(MANIFESTS, 12),
            numbered(&commits_dir(7), 1),
            numbered(DENY, 1),
            rejects(7, "w").unwrap(),
            commit_copy(7),
            suffix_list_copy("00ff").unwrap(),
            heartbeat("w").unwrap(),
            suffix_list("00ff").unwrap(),
        ];
        for path in own.iter().chain(&segment) {
            assert!(is_ours(path), "{path}");
        }
        for path in [
            "index/notes.txt",
            "index/manifests/saved.json",
            "index/backup/notes.txt",
            "urls/readme.md",
            "urls/dataset_id=99/mine.parquet",
            "urls/dataset_id=99/domain_prefix=all/mine.parquet",
            "urls/dataset_id=99/domain_prefix=all/part-00000-c0ffee.snappy.parquet",
            "datasets/other/commits/0000000001.json",
            "urls/dataset_id=99/_commits/0000000001.json",
        ] {
            assert!(!is_ours(path), "{path}");
        }
    }

    #[test]
    fn a_writer_knows_its_files_among_those_of_others() {
        let own = [part(7, "0a", "w", 3).unwrap(), rejects(7, "w").unwrap(), segment_file("s1", "counts.bin").unwrap()];
        assert!(own.iter().all(|path| is_written_by(path, "w")));
        for path in
            [part(7, "0a", "w-1", 3), part(7, "0a", "ww", 3), rejects(7, "w-1"), Ok(numbered(&commits_dir(7), 1))]
        {
            assert!(!is_written_by(&path.unwrap(), "w"));
        }
    }

    #[test]
    fn files_of_jobs_are_known_again() {
        let report = task_report("j", "map", 3).unwrap();
        let run = task_file("j", "map", 3, "00ff", "run").unwrap();
        assert_eq!((report.as_str(), run.as_str()), ("jobs/j/map/000003.json", "jobs/j/map/000003-00ff.run"));
        assert!([&report, &run, &job_file("j").unwrap()].iter().all(|path| check_path(path).is_ok() && is_ours(path)));
        assert!(!is_ours("jobs/j/map/x.txt") && !is_ours("jobs/readme") && !is_ours("jobs/j/a/b/c.json"));
        assert!(task_report("../j", "map", 0).is_err() && task_file("j", "map", 0, "a/b", "run").is_err());
        assert!(!never_changes(&run) && !never_changes(&report), "a run is read once: not worth keeping");
    }

    #[test]
    fn numbers_come_back() {
        for n in [0, 1, 9_999_999_999, 10_000_000_000, u64::MAX] {
            assert_eq!(number_of(&numbered("a/b", n)), Some(n));
        }
        for other in ["a/1.json", "a/00000000x1.json", "a/0000000001", "", "a/99999999999999999999999.json"] {
            assert_eq!(number_of(other), None, "{other}");
        }
    }

    #[test]
    fn names_from_outside_are_checked() {
        assert!(part(1, "ALL", "w", 0).is_err() && part(1, "0A", "w", 0).is_err() && part(1, "", "w", 0).is_err());
        assert!(part(1, "all", "../w", 0).is_err());
        assert!(segment_dir("manifests").is_err() && segment_dir("..").is_err());
        assert_eq!(segment_dir("s/0a").unwrap(), "index/s/0a");
        for bad in ["s/", "s/all", "s/0A", "s/00a", "s/x", "s/0/1", "s/../x", "manifests/0a", "/0a"] {
            assert!(segment_dir(bad).is_err(), "{bad}");
        }
        assert!(segment_file("s", "../x").is_err() && segment_file("s", "/x").is_err());
    }
}
