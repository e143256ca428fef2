//! Records of a container that neither a capture nor a URL is made of, counted by what they are.

use super::fetch_list::{Room, digest};
use super::layout::{Kind, Layout};
use super::source::maps_of;
use crate::db::{PartedMap, entry, key};
use crate::legacy::{FetchListEntry, FetcherOutput};
use crate::segment::SegmentPart;
use crate::types::{CrawlDatum, whole};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trawl_hadoop::seq::{OpenOptions, Reader};

const REDIRECT_LINKS: &str = "links of redirects";
const NEVER_FETCHED: &str = "crawl_generate, never fetched";
const NOT_CARRIED: &str = "crawl_generate, whose facts take too much memory";
const NOT_DECODED: &str = "crawl_generate, of another class or damaged";
const NOT_COMPARED: &str = "crawl_generate, not compared with fetches that cannot be looked up";

/// Digests of URLs that are kept in memory, 128 MiB: Nutch fetches some hundred thousand URLs in a segment.
const MAX_DIGESTS: usize = 8 << 20;

/// Zero stays unsaid.
#[derive(Default)]
struct Counts(BTreeMap<String, u64>);

impl Counts {
    fn add(&mut self, name: &str, count: u64) {
        if count > 0 {
            *self.0.entry(name.to_owned()).or_default() += count;
        }
    }

    /// Counts all records of a file.
    fn whole(&mut self, name: &str, file: &Path, options: &OpenOptions) -> Result<()> {
        let mut records = 0;
        let damaged = each(file, options, |_| {
            records += 1;
            Ok(())
        })?;
        self.add(name, records);
        self.add(&format!("damaged places of {name}"), damaged);
        Ok(())
    }
}

/// What captures of a segment leave out.
pub(super) fn count(layout: &Layout, options: &OpenOptions) -> Result<BTreeMap<String, u64>> {
    let mut counts = Counts::default();
    match layout.kind {
        Kind::LegacySegment => legacy(layout, options, &mut counts)?,
        _ => segment(layout, options, &mut counts)?,
    }
    Ok(counts.0)
}

/// All records of files that are not sources of URLs, by the directory that holds them.
pub(super) fn count_files(layout: &Layout, files: &[PathBuf], options: &OpenOptions) -> Result<BTreeMap<String, u64>> {
    let mut counts = Counts::default();
    for file in files {
        let inside = layout.inside(file);
        let name = inside.split('/').next().unwrap_or(&inside);
        counts.whole(name, file, options)?;
    }
    Ok(counts.0)
}

fn segment(layout: &Layout, options: &OpenOptions, counts: &mut Counts) -> Result<()> {
    for part in [SegmentPart::CrawlParse, SegmentPart::ParseData, SegmentPart::ParseText] {
        for file in files(layout, part.name()) {
            counts.whole(part.name(), &file, options)?;
        }
    }
    for file in files(layout, SegmentPart::CrawlFetch.name()) {
        // Fetches that cannot be read are counted by those who make captures of them.
        each(&file, options, |reader| {
            let is_link = reader
                .value()
                .is_ok_and(|value| whole(value, CrawlDatum::decode).is_ok_and(|datum| !datum.status().is_fetch()));
            counts.add(REDIRECT_LINKS, is_link.into());
            Ok(())
        })?;
    }
    let lists = files(layout, SegmentPart::CrawlGenerate.name());
    if lists.is_empty() {
        return Ok(());
    }
    let mut fetched = Fetched::new(layout, options)?;
    let mut room = Room::default();
    for file in lists {
        let damaged = each(&file, options, |reader| {
            let seen = entry(reader).and_then(|record| {
                let carried = match room.takes(record.value) {
                    true => whole(record.value, CrawlDatum::decode).err().map(|_| NOT_DECODED),
                    false => Some(NOT_CARRIED),
                };
                counts.add(carried.unwrap_or_default(), carried.is_some().into());
                fetched.holds(record.key.as_bytes())
            });
            let name = match seen {
                Ok(true) => return Ok(()),
                Ok(false) => NEVER_FETCHED,
                // It may lie in a part that is lost.
                Err(error) if is_lost(&error) => NOT_COMPARED,
                Err(error) => return Err(error),
            };
            counts.add(name, 1);
            Ok(())
        })?;
        counts.add("damaged places of crawl_generate", damaged);
    }
    Ok(())
}

/// What parsing made of the pages of 0.4 to 0.7, and pages that were listed and never fetched.
fn legacy(layout: &Layout, options: &OpenOptions, counts: &mut Counts) -> Result<()> {
    for name in ["fetcher_text", "parse_text", "parse_data"] {
        for file in files(layout, name) {
            counts.whole(name, &file, options)?;
        }
    }
    let mut fetches = 0;
    for file in ["fetcher", "fetcher_output"].iter().flat_map(|name| files(layout, name)) {
        // The code that makes captures of these records reports damage.
        each(&file, options, |reader| {
            fetches += 1;
            if let Some(output) = reader.value().ok().and_then(|value| whole(value, FetcherOutput::decode).ok()) {
                // Up to 0.4 the fetcher parsed as well.
                counts.add("titles of pages", u64::from(!output.title.as_bytes().is_empty()));
                counts.add("links of pages", output.outlinks.len() as u64);
                counts.add("anchors of links to pages", output.entry.anchors.len() as u64);
                let page = &output.entry.page;
                let is_scored = page.num_outlinks != 0 || page.next_score.to_bits() != 0 || !output.entry.fetch;
                counts.add("numbers of links, next scores and fetch flags of listed pages", is_scored.into());
            }
            Ok(())
        })?;
    }
    let mut listed = 0u64;
    for file in files(layout, "fetchlist") {
        let damaged = each(&file, options, |reader| {
            listed += 1;
            // Record n is the same page in each file: those behind the last fetch were never fetched.
            if listed > fetches
                && let Some(entry) = reader.value().ok().and_then(|value| whole(value, FetchListEntry::decode).ok())
            {
                counts.add("anchors of links to pages", entry.anchors.len() as u64);
            }
            Ok(())
        })?;
        counts.add("damaged places of fetchlist", damaged);
    }
    counts.add("fetchlist, never fetched", listed.saturating_sub(fetches));
    Ok(())
}

fn files(layout: &Layout, part: &str) -> Vec<PathBuf> {
    let dir = layout.root.join(part);
    layout.files.iter().map(|file| file.path.clone()).filter(|path| path.starts_with(&dir)).collect()
}

/// Whether a file is damaged, or not there though its directory is.
pub(super) fn is_lost(error: &Error) -> bool {
    error.is_damage() || matches!(error, Error::Io(error) if error.is_not_found())
}

/// Calls `seen` at every record that can be read; the number of damaged places is returned.
fn each(file: &Path, options: &OpenOptions, mut seen: impl FnMut(&mut Reader) -> Result<()>) -> Result<u64> {
    let mut reader = match options.open(file) {
        Ok(reader) => reader,
        Err(error) if is_lost(&error) => return Ok(1),
        Err(error) => return Err(error),
    };
    let mut damaged = 0;
    loop {
        match reader.advance() {
            Ok(true) => seen(&mut reader)?,
            Ok(false) => return Ok(damaged),
            Err(error) if error.is_damage() => {
                reader.resync()?;
                damaged += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Digests of the URLs in some files: 16 bytes each.
#[derive(Default)]
struct Digests {
    sorted: Vec<[u8; 16]>,
    /// Some could not be read, or did not fit into memory: one that is not here may be there.
    incomplete: bool,
}

impl Digests {
    fn read(files: &[PathBuf], options: &OpenOptions) -> Result<Self> {
        let mut found = Digests::default();
        for file in files {
            let damaged = each(file, options, |reader| {
                match key(reader) {
                    Ok(url) if found.sorted.len() < MAX_DIGESTS => found.sorted.push(digest(url.as_bytes())),
                    Ok(_) => found.incomplete = true,
                    Err(error) if error.is_damage() => found.incomplete = true,
                    Err(error) => return Err(error),
                }
                Ok(())
            })?;
            found.incomplete |= damaged > 0;
        }
        found.sorted.sort_unstable();
        Ok(found)
    }

    fn has(&self, digest: &[u8; 16]) -> bool {
        self.sorted.binary_search(digest).is_ok()
    }
}

/// The URLs that captures are made of. A list of what was to be fetched is not sorted, so that both cannot be read side by side; and
/// to look each of its URLs up costs a block to unpack each, minutes for a segment that is read in seconds. So the keys are read
/// once, and looked up only is what they leave open.
struct Fetched {
    fetches: Digests,
    contents: Option<Digests>,
    content_files: Vec<PathBuf>,
    maps: Vec<PartedMap>,
    options: OpenOptions,
}

impl Fetched {
    fn new(layout: &Layout, options: &OpenOptions) -> Result<Self> {
        let listed = |part: SegmentPart| match layout.kind {
            Kind::Segment => files(layout, part.name()),
            _ => Vec::new(),
        };
        let (fetch_files, content_files) = (listed(SegmentPart::CrawlFetch), listed(SegmentPart::Content));
        let parts = [(SegmentPart::CrawlFetch, &fetch_files), (SegmentPart::Content, &content_files)];
        let there = parts.into_iter().filter(|(_, files)| !files.is_empty());
        let maps = there.map(|(part, files)| maps_of(&layout.root.join(part.name()), files, options)).collect();
        let fetches = Digests::read(&fetch_files, options)?;
        Ok(Fetched { fetches, contents: None, content_files, maps, options: options.clone() })
    }

    fn holds(&mut self, url: &[u8]) -> Result<bool> {
        let digest = digest(url);
        if self.fetches.has(&digest) {
            return Ok(true);
        }
        // Most segments have a fetch for each content, and the contents are most of their bytes.
        let contents = match &self.contents {
            Some(contents) => contents,
            None => &*self.contents.insert(Digests::read(&self.content_files, &self.options)?),
        };
        if contents.has(&digest) {
            return Ok(true);
        }
        if self.fetches.incomplete || contents.incomplete { self.look_up(url) } else { Ok(false) }
    }

    fn look_up(&mut self, url: &[u8]) -> Result<bool> {
        let mut lost = None;
        for map in &mut self.maps {
            match map.get(url) {
                Ok(Some(_)) => return Ok(true),
                Ok(None) => {}
                Err(error) if is_lost(&error) => lost = Some(error),
                Err(error) => return Err(error),
            }
        }
        lost.map_or(Ok(false), Err)
    }
}
