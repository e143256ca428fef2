//! What upkeep tells while it works.

use serde::Serialize;
use trawl_ingest::RewriteReport;
use trawl_store::Progress;

/// What happens: progress, remarks, and facts. A fact serialises to one JSON object whose `type` names it.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A piece of work begins.
    #[serde(skip)]
    Begins(String),
    /// What of it is looked at now.
    #[serde(skip)]
    At(String),
    /// How far it is.
    #[serde(skip)]
    Progress(Progress),
    /// Something a person may want to know.
    #[serde(skip)]
    Remark(String),
    /// Something is wrong with the lake.
    Fault {
        /// With what.
        #[serde(flatten)]
        of: Part,
        /// Where, what was expected, what was found.
        fault: String,
    },
    /// The files of a commit were checked.
    Dataset {
        /// Its name.
        dataset: String,
        /// Its id.
        dataset_id: u32,
        /// The commit.
        commit: u64,
        /// Whether it brings what no version shows yet.
        waits: bool,
        /// Files read.
        files: u64,
        /// Rows of the commit.
        rows: u64,
        /// Bytes of the commit.
        #[serde(skip)]
        bytes: u64,
        /// Faults found.
        faults: u64,
    },
    /// A segment was checked.
    Segment {
        /// Its id.
        segment: String,
        /// What was gone through.
        #[serde(flatten)]
        checked: trawl_index::Verified,
    },
    /// What a verification did not read, since it was to fetch no more: of these, only names and lengths were checked.
    Unread {
        /// Files.
        files: u64,
        /// Their bytes.
        bytes: u64,
        /// Bytes that might be fetched.
        max_read: u64,
    },
    /// Files of a dataset were written again, or would be.
    Files {
        /// Its name.
        dataset: String,
        /// Its id.
        dataset_id: u32,
        /// Whether nothing was changed.
        dry_run: bool,
        /// What went in and what came out.
        report: RewriteReport,
        /// Whether they were cut by another suffix list; else they were many and small.
        #[serde(skip)]
        recut: bool,
    },
    /// Index segments were merged.
    Segments {
        /// Whether nothing was changed: then only `segments` is known.
        dry_run: bool,
        /// Segments there are.
        #[serde(skip_serializing_if = "Option::is_none")]
        segments: Option<usize>,
        /// What was merged.
        #[serde(flatten)]
        merged: Option<Merged>,
    },
    /// A dataset was dropped, or would be.
    Dropped(Dropped),
    /// Rows were taken out of a dataset, or would be.
    Purged {
        /// Its name.
        dataset: String,
        /// Its id.
        dataset_id: u32,
        /// What goes.
        #[serde(flatten)]
        losses: crate::Losses,
        /// Lines of its rejects.
        rejects: u64,
        /// Whether nothing was changed.
        dry_run: bool,
    },
    /// The deny list was taken from its record.
    DenyRecovered {
        /// Entries it has.
        deny: usize,
    },
    /// A record that was lost or damaged was written again from others.
    Mended {
        /// Its path.
        path: String,
        /// From what: `manifest`, `copy`, `commit`, `index`.
        from: &'static str,
        /// Whether a dataset no longer knows which sources its rows came from: the same source would come in twice.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        sources_forgotten: bool,
    },
    /// A dataset goes on without commits that are lost.
    Lost {
        /// Its name.
        dataset: String,
        /// Its id.
        dataset_id: u32,
        /// The commit that was served.
        served: u64,
        /// The newest that was left.
        left: u64,
        /// The one it goes on with.
        commit: u64,
        /// Rows of that.
        rows: u64,
        /// Files that are gone too.
        files_gone: u64,
    },
    /// The manifest of a lake was made anew.
    Restored {
        /// What the registry was taken from: `manifest` or `commits`.
        from: &'static str,
        /// When that manifest was written.
        #[serde(skip)]
        written: Option<String>,
        /// Datasets that live, by id and name.
        #[serde(serialize_with = "names")]
        datasets: Vec<(u32, String)>,
        /// Those that were given a name.
        nameless: Vec<u32>,
        /// Those registered after that manifest was written.
        younger: Vec<u32>,
        /// Entries of the deny list.
        deny: usize,
        /// What is lost for good.
        lost: &'static [&'static str],
    },
}

fn names<S: serde::Serializer>(datasets: &[(u32, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(datasets.iter().map(|(_, name)| name))
}

/// A part of a lake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// All of it, by its place.
    Lake(String),
    /// A dataset, by its name.
    Dataset(String),
    /// A segment, by its id.
    Segment(String),
}

/// What segments became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Which were merged.
    pub merged: Vec<String>,
    /// What they became.
    pub segment: String,
    /// Its domains.
    pub domains: u64,
    /// Its rows.
    pub rows: u64,
    /// The version readers use now.
    pub version: String,
}

/// A dataset that goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// Its name.
    pub dataset: String,
    /// Its id.
    pub dataset_id: u32,
    /// Rows of its newest commit.
    pub rows: u64,
    /// Files of it.
    pub files: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Whether it goes because it is denied.
    #[serde(skip)]
    pub denied: bool,
    /// What is wrong with its newest commit, so that nothing is known of what it holds.
    #[serde(skip)]
    pub damage: Option<String>,
}
