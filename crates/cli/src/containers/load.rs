//! A new container of captures, filled with events.

use super::settings;
use crate::system;
use anyhow::Context;
use std::io::Read;
use std::path::{Path, PathBuf};
use trawl_model::UnixMillis;
use trawl_seqdb::pages::{nameable, url_index_path};
use trawl_seqdb::{CreatePages, Form, FsPaths, Pages, Settings, SyncPolicy};
use trawl_warc::convert::RawEvent;

/// Events up to this size are appended in one step.
const WHOLE_BYTES: u64 = 4 << 20;

/// A container under construction: it has another name until it is complete.
pub struct Loader {
    pages: Option<Pages>,
    aside: FsPaths,
    target: FsPaths,
    settings: Settings,
}

/// The files of a container, the one that speaks for the others last.
fn files(paths: &FsPaths) -> [PathBuf; 4] {
    [paths.index(), paths.time(), url_index_path(paths), paths.data()]
}

impl Loader {
    /// Starts the container whose data file will be `target`.
    pub fn create(target: &Path) -> anyhow::Result<Self> {
        let settings =
            Settings { sync: SyncPolicy::Data, data_caching: false, index_caching: false, ..settings("trawl convert") };
        let target = FsPaths::of(target)?;
        let data = target.data();
        let name = data.file_stem().unwrap_or_default().to_string_lossy();
        let aside = FsPaths::new(target.base(), &format!("{name}.part"))?;
        remove(&aside)?;
        let fsgen = i64::try_from(u128::from_be_bytes(system::random_bytes()?) >> 66).unwrap_or(0).max(1);
        let pages = CreatePages::new(fsgen).create(&aside, &settings)?;
        Ok(Loader { pages: Some(pages), aside, target, settings })
    }

    /// Stores the records of an event, called by URL and time where they say so.
    pub fn put(&mut self, event: &RawEvent) -> anyhow::Result<()> {
        let Some(pages) = &mut self.pages else { return Ok(()) };
        let url = event.url.as_deref().unwrap_or_default();
        let (url, time) = nameable(url.as_bytes(), event.date.unwrap_or(UnixMillis(0)));
        if event.len_bytes() > WHOLE_BYTES {
            pages.append_from(url, time, Form::Gzip, &mut event.reader())?;
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(event.len_bytes()).unwrap_or(0));
        event.reader().read_to_end(&mut bytes)?;
        pages.append(url, time, Form::Gzip, &bytes)?;
        Ok(())
    }

    /// Completes it under its own name; returns the bytes of its files.
    pub fn finish(mut self) -> anyhow::Result<u64> {
        if let Some(pages) = self.pages.take() {
            pages.close()?;
        }
        let mut bytes = 0;
        for (from, to) in files(&self.aside).iter().zip(files(&self.target)) {
            bytes += std::fs::metadata(from)?.len();
            std::fs::rename(from, &to).with_context(|| format!("cannot make {}", to.display()))?;
        }
        self.settings.fs.sync_dir(self.target.base())?;
        Ok(bytes)
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        self.pages = None;
        // What is complete has left this name; nobody is there to tell about the rest.
        let _ = remove(&self.aside);
    }
}

fn remove(paths: &FsPaths) -> std::io::Result<()> {
    for path in files(paths).into_iter().chain([paths.lock()]) {
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}
