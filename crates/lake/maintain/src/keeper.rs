//! Who looks after a lake.

use crate::event::Event;
use crate::{Error, Result, temp};
use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;
use trawl_index::{BuildOptions, Published};
use trawl_ingest::{IngestSettings, Rewrite, RewriteReport, rewrite};
use trawl_model::UnixMillis;
use trawl_store::{Cancel, Lake, Manifest, Progress};
use trawl_url::SuffixList;

/// What every act of upkeep works with: time, names and room come from the caller, and it hears what happens. Of clones only one
/// may be used: they give out the same names.
#[derive(Clone)]
pub struct Keeper<'a> {
    /// How the names of its writers begin: new for every keeper, and a name by [`trawl_store::check_name`].
    pub name: String,
    /// Directory for temporary files, made when it is needed.
    pub temp_dir: PathBuf,
    /// Memory for sorting and encoding.
    pub memory_bytes: usize,
    /// Threads that make the pieces of large index segments, 2. No byte depends on it.
    pub threads: usize,
    /// The clock.
    pub now: &'a dyn Fn() -> UnixMillis,
    /// Waits: what others may be at the middle of is looked at twice.
    pub wait: &'a dyn Fn(Duration),
    /// Hears what happens, on the calling thread.
    pub tell: &'a dyn Fn(Event),
    /// Bytes that a verification fetches of rows and index at most; without, all there are. For lakes whose bytes cost money.
    pub max_read_bytes: Option<u64>,
    /// Ends the work early.
    pub cancel: Cancel,
    /// Names given out.
    pub names: Cell<u32>,
}

impl<'a> Keeper<'a> {
    /// A keeper with 1 GiB of memory and without interruption.
    pub fn new(
        name: impl Into<String>,
        temp_dir: impl Into<PathBuf>,
        now: &'a dyn Fn() -> UnixMillis,
        tell: &'a dyn Fn(Event),
    ) -> Self {
        Self {
            name: name.into(),
            temp_dir: temp_dir.into(),
            memory_bytes: 1 << 30,
            threads: 2,
            now,
            wait: &|_| (),
            tell,
            max_read_bytes: None,
            cancel: Cancel::default(),
            names: Cell::new(0),
        }
    }

    /// The name of a writer: another each time.
    pub(crate) fn writer(&self) -> String {
        self.names.set(self.names.get() + 1);
        format!("{}-{}", self.name, self.names.get())
    }

    pub(crate) fn begins(&self, what: impl Into<String>) {
        (self.tell)(Event::Begins(what.into()));
    }

    /// Tells what is looked at now; an error if the work is to end.
    pub(crate) fn at(&self, what: impl Into<String>) -> Result<()> {
        (self.tell)(Event::At(what.into()));
        Ok(self.cancel.check()?)
    }

    /// Tells a fact; an error if the work is to end.
    pub(crate) fn fact(&self, fact: Event) -> Result<()> {
        (self.tell)(fact);
        Ok(self.cancel.check()?)
    }

    /// Settings of a writer that writes files of the lake again.
    fn rewrite_settings(&self) -> Result<IngestSettings> {
        temp::make_dir(&self.temp_dir)?;
        Ok(IngestSettings {
            memory_bytes: self.memory_bytes,
            cancel: self.cancel.clone(),
            ..IngestSettings::new(self.writer(), &self.temp_dir)
        })
    }

    /// Writes files of a dataset again; nothing, if it was dropped meanwhile.
    pub(crate) fn rewrite(&self, lake: &Lake, dataset_id: u32, what: &Rewrite<'_>) -> Result<RewriteReport> {
        use trawl_store::Error::{Dropped, UnknownDataset};
        match rewrite(lake, dataset_id, what, &self.rewrite_settings()?, self.now, &|p| self.progress(p)) {
            Err(trawl_ingest::Error::Store(Dropped { .. } | UnknownDataset { .. })) => Ok(RewriteReport::default()),
            done => Ok(done?),
        }
    }

    /// Settings of a writer that makes index segments: they need less than rows do, and are made after them.
    pub(crate) fn build_options(&self) -> Result<BuildOptions> {
        temp::make_dir(&self.temp_dir)?;
        let mut options = BuildOptions::new(&self.temp_dir);
        options.memory_bytes = options.memory_bytes.min(self.memory_bytes);
        options.threads = self.threads;
        options.cancel = self.cancel.clone();
        Ok(options)
    }

    pub(crate) fn progress(&self, progress: Progress) {
        (self.tell)(Event::Progress(progress));
    }

    /// Makes a version of everything that is committed. What could not be brought in is remarked.
    pub fn publish(&self, lake: &Lake) -> Result<Published> {
        self.begins("index");
        let options = self.build_options()?;
        let published = trawl_index::publish(lake, self.now, &self.writer(), &options, &|p| self.progress(p))?;
        Ok(self.remarked(published))
    }

    /// Makes a version of what these datasets have committed, and of those that no version serves yet.
    pub fn publish_datasets(&self, lake: &Lake, datasets: &[u32]) -> Result<Published> {
        self.begins("index");
        let (options, writer) = (self.build_options()?, self.writer());
        let progress = |p| self.progress(p);
        let published = trawl_index::publish_datasets(lake, datasets, self.now, &writer, &options, &progress)?;
        Ok(self.remarked(published))
    }

    fn remarked(&self, published: Published) -> Published {
        let remark = |text| (self.tell)(Event::Remark(text));
        for id in &published.waiting {
            remark(format!(
                "dataset {id} has rows cut by another suffix list than the lake's: `trawl lake rebuild` brings them in"
            ));
        }
        for (id, error) in &published.damaged {
            remark(format!(
                "dataset {id} is served as it was, since its newest commit is damaged: {error}; put that file back from a \
                 backup, or drop the dataset and ingest it again"
            ));
        }
        if let Some(error) = &published.tidy_error {
            remark(format!("published, but index segments could not be merged: {error}"));
        }
        published
    }
}

/// The suffix list that the lake's domains are cut by.
pub(crate) fn suffixes(lake: &Lake, manifest: &Manifest) -> Result<SuffixList> {
    parse_list(&lake.suffix_list(manifest)?)
}

/// A suffix list, if it is one.
pub(crate) fn parse_list(bytes: &[u8]) -> Result<SuffixList> {
    let refused =
        |error: &dyn ToString| Error::Refused(format!("the file is not a public suffix list: {}", error.to_string()));
    SuffixList::parse(std::str::from_utf8(bytes).map_err(|e| refused(&e))?).map_err(|e| refused(&e))
}

/// The datasets that are there, or only this one: ids and names.
pub(crate) fn datasets(manifest: &Manifest, only: Option<u32>) -> Vec<(u32, String)> {
    let live = manifest.datasets.iter().filter(|dataset| !dataset.dropped);
    let wanted = live.filter(|dataset| only.is_none_or(|id| dataset.id == id));
    wanted.map(|dataset| (dataset.id, dataset.info.name.clone())).collect()
}
