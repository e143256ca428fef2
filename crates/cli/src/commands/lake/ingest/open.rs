//! Opening the sources of an ingest, and registering the dataset that they are for.

use super::Added;
use super::done::Beside;
use crate::commands::copies;
use crate::commands::lake::covered;
use crate::commands::lake::sources::{Expanded, STDIN, expand};
use crate::output::Output;
use crate::progress::Progress;
use crate::{lake_dir, system};
use anyhow::Context;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use trawl_ingest::source::{self, Format, Opening, Source};
use trawl_ingest::{IngestSettings, Mode};
use trawl_maintain::temp::Spool;
use trawl_model::{Advice, DoorError, SourceIdentity, UrlSource};
use trawl_store::{Dataset, DatasetInfo, KnownSource, Lake};

/// Items of a source that are read to see whether it can be read at all.
const TASTED: u32 = 100;

/// Sources that are open, and what else was found where they lie.
pub(in crate::commands::lake) struct OpenSources {
    pub sources: Vec<Source>,
    pub beside: Beside,
    bases: Vec<String>,
    /// What came through pipes; it lasts as long as this.
    _spools: Vec<Spool>,
}

/// Opens what is to be brought into a dataset, and finds what is wrong with it from the beginning.
pub(in crate::commands::lake) fn open_sources(
    lake: &Lake,
    added: &Added,
    settings: &IngestSettings,
    out: &Output,
) -> anyhow::Result<OpenSources> {
    let fs = lake_dir::files()?;
    let Expanded { files, not_files, mut bases, indexed, incomplete, spools } =
        expand(&added.paths, Some(&settings.temp_dir))?;
    let before = match settings.mode {
        Mode::Append | Mode::ReplaceSources => known_sources(lake, &added.name)?,
        Mode::Replace => Vec::new(),
    };
    // Whatever they were, sources that replace others are read whole.
    let known = if settings.mode == Mode::Append { &before[..] } else { &[] };
    let told = (settings.mode == Mode::Append).then_some(known);
    let options = Some(&added.options);
    let all = Opening { known: told, now: system::now(), rehash: added.rehash, options, ..Opening::default() };
    let by_index = covered::taken_by_index(&before, &files);
    let bar = Progress::start("open", None, out.quiet());
    let (mut sources, mut ignored, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
    for (n, file) in files.iter().enumerate() {
        bar.report(n as u64, || format!("{} of {}", n + 1, files.len()));
        let format = match file.format.or(added.format) {
            None => file.detect(&fs)?,
            told => told,
        };
        // What is only found lying in a directory may be something else altogether.
        if file.found && format.is_none() {
            ignored.push(file.path.display().to_string());
            continue;
        }
        let opened = source::open_as(&fs, &file.path, &Opening { format, name: file.name.as_deref(), ..all });
        let tasted = opened.and_then(|source| {
            // What was taken was good, and so was the beginning of what has grown.
            let identity = source.identity();
            if source.grown.is_none() && !is_known(known, &identity) {
                let items = taste(&source, settings.split_bytes)?;
                // A list may be empty on purpose; an archive without a capture, or without a byte, is something else, or broken.
                if items == 0 && format.is_some_and(Format::is_archive) {
                    unreadable.push(file.shown());
                }
            }
            Ok(source)
        });
        let source = match tasted {
            Err(error) if file.found && error.is_without_urls() => {
                ignored.push(file.path.display().to_string());
                continue;
            }
            tasted => tasted.with_context(|| format!("cannot take {}", file.shown()))?,
        };
        if !is_known(&before, &source.identity()) {
            covered::refuse_again(&before, &file.path, &indexed, settings.mode == Mode::ReplaceSources)?;
            covered::refuse_indexed(&by_index, &file.path)?;
        }
        sources.push(source);
        let archive = format.is_some_and(Format::is_archive) && file.name.is_none();
        if archive && format.is_some_and(Format::holds_files) {
            // On a server it may be all that can be found: not every one lists what is beside it.
            bases.extend(file.path.to_str().filter(|path| trawl_store::is_remote(path)).map(str::to_owned));
        }
        bases.extend(file.path.parent().filter(|_| archive).map(base_uri));
    }
    let beside = Beside { ignored, not_files, indexed, incomplete, unreadable };
    Ok(OpenSources { sources, beside, bases, _spools: spools })
}

impl OpenSources {
    /// The dataset they are for, and whether it was made just now.
    pub(in crate::commands::lake) fn register(
        &self,
        lake: &Lake,
        added: &Added,
        mode: Mode,
        out: &Output,
    ) -> anyhow::Result<(Dataset, bool)> {
        let (dataset, is_new) = register(lake, added, &self.bases)?;
        if mode != Mode::ReplaceSources {
            remark_copies(lake, dataset.id, &self.sources, out)?;
        }
        Ok((dataset, is_new))
    }
}

/// The sources that a dataset has, if it is there.
fn known_sources(lake: &Lake, name: &str) -> anyhow::Result<Vec<KnownSource>> {
    let manifest = lake.current()?;
    let Some(dataset) = manifest.dataset_named(name) else { return Ok(Vec::new()) };
    Ok(lake.dataset_newest(dataset.id)?.map(|commit| commit.sources).unwrap_or_default())
}

fn is_known(known: &[KnownSource], identity: &SourceIdentity) -> bool {
    known.binary_search_by(|known| known.identity.cmp(identity)).is_ok()
}

/// Reads the first items of a source, and tells how many those are: what is wrong from the beginning is found before a dataset is
/// made for it.
fn taste(source: &dyn UrlSource, split_bytes: u64) -> Result<u32, DoorError> {
    let mut items = 0;
    for split in source.splits(split_bytes)? {
        let read = source.read(split, &mut |_, _| {
            items += 1;
            if items < TASTED { Ok(()) } else { Err(DoorError::new(Advice::Stop, "enough")) }
        });
        if items < TASTED {
            read?;
        }
        if items > 0 {
            break;
        }
    }
    Ok(items)
}

/// Says of new sources that they have the same bytes as one the dataset has, perhaps only its name changed, or the same
/// name and other bytes, perhaps only some were added.
fn remark_copies(lake: &Lake, id: u32, sources: &[Source], out: &Output) -> anyhow::Result<()> {
    let Some(commit) = lake.dataset_newest(id)? else { return Ok(()) };
    let known: BTreeMap<_, _> =
        commit.sources.iter().map(|known| &known.identity).map(|s| ((s.size, &s.tag), &s.uri)).collect();
    let uris: BTreeSet<_> = commit.sources.iter().map(|known| &known.identity.uri).collect();
    let unpacked: BTreeMap<_, _> = uris.iter().map(|uri| (copies::unpacked(Path::new(uri)), *uri)).collect();
    let new = sources.iter().filter(|source| source.grown.is_none());
    for identity in new.map(|source| source.identity()).filter(|identity| !commit.has_source(identity)) {
        if let Some(uri) = known.get(&(identity.size, &identity.tag)).filter(|_| identity.size > 0) {
            out.remark(&format!(
                "{} has the same bytes as {uri}, which the dataset already has: its rows are added again",
                identity.uri
            ));
        } else if !is_piped(&identity.uri) && uris.contains(&identity.uri) {
            out.remark(&format!(
                "{} has changed since it was ingested: all its rows are added again; --replace-sources replaces the \
                 old ones instead",
                identity.uri
            ));
        } else if let Some(uri) =
            unpacked.get(&copies::unpacked(Path::new(&identity.uri))).filter(|_| !is_piped(&identity.uri))
        {
            out.remark(&format!(
                "{} has the name of {uri}, which the dataset already has, but for how it is packed: its rows are added, also those that \
                 both have",
                identity.uri
            ));
        }
    }
    Ok(())
}

/// Whether a source is what came through a pipe: each time something else, under one name.
fn is_piped(uri: &str) -> bool {
    uri == STDIN
}

/// `file://` and the path of a directory that holds archives.
pub(in crate::commands::lake) fn base_uri(dir: &Path) -> String {
    let shown = dir.display().to_string();
    if trawl_store::is_remote(&shown) { format!("{shown}/") } else { format!("file://{shown}/") }
}

/// The dataset, and whether it was made just now because it was not there; it hears of directories that hold more of its
/// archives.
fn register(lake: &Lake, added: &Added, bases: &[String]) -> anyhow::Result<(Dataset, bool)> {
    let committed = lake.commit(system::now(), &system::nonce()?, |manifest| {
        let is_new = manifest.dataset_named(&added.name).is_none();
        let info = DatasetInfo { source: added.source.clone(), ..DatasetInfo::named(&added.name) };
        let id = manifest.register(system::now(), info)?;
        if let Some(dataset) = manifest.dataset_mut(id) {
            let known = &mut dataset.info.archive_base;
            for base in bases {
                if !known.contains(base) {
                    known.push(base.clone());
                }
            }
        }
        Ok((id, is_new))
    })?;
    let (id, is_new) = committed.value;
    let dataset = committed.manifest.dataset(id).cloned();
    Ok((dataset.with_context(|| format!("dataset {id} is gone"))?, is_new))
}
