//! From a row to the bytes of its capture.
//!
//! ```text
//! row ─ dataset's bases ─► file ─ format by magic ─► Archive ─ at its offset ─► the capture with the row's URL
//!                                                                               └ a revisit: the row it refers to, once
//! ```
//! What a row says of files is hostile input: a path that leads out of its base is refused, and a record is handed out only
//! if it is of the URL the row has.

use crate::answer::{UrlHit, UrlItem};
use crate::{Pinned, Principal, QueryError};
use bytes::Bytes;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use trawl_archive::{Found, Registry};
use trawl_io::Fs;
use trawl_model::{Advice, Archive, Capture, Digest, Entry, Outcome, Pick, Place, RawRecord, Revisit, UnixMillis};

/// Entries at one place that are looked at for the URL of a row: blocks of some containers hold thousands.
const MAX_ENTRIES: usize = 100_000;
/// Captures that are opened to find the one that a revisit refers to: rows do not have the ids of records, and their archives may
/// be gone.
const MAX_OPENED: usize = 64;

/// Where archives are read from, and in which formats.
pub struct Archives {
    fs: Arc<dyn Fs>,
    registry: Registry,
}

/// A capture, while its archive is open.
pub struct Replayed<'a> {
    /// The row that was asked for.
    pub row: &'a UrlHit,
    /// The row whose body it is, if that is another one: `row` is a revisit then.
    pub body_of: Option<&'a UrlHit>,
    /// The head of the HTTP response; `None` for a record that is not an exchange.
    pub head: Option<Bytes>,
    /// Media type as served.
    pub content_type: Option<String>,
    /// Bytes of the stored body, as far as its container says.
    pub len_bytes: u64,
    /// The stored body: content codings as received.
    pub body: &'a mut dyn Read,
}

/// Takes a capture.
pub type TakeCapture<'t> = dyn FnMut(Replayed<'_>) -> Result<(), QueryError> + 't;

impl Archives {
    /// Archives in `fs`, of every known format.
    pub fn new(fs: Arc<dyn Fs>) -> Self {
        Self { fs, registry: Registry::default() }
    }

    /// Where archives of a dataset lie: directories, and containers that are named themselves.
    fn places(bases: &[String]) -> Result<Vec<PathBuf>, QueryError> {
        // Servers are addressed as they are; the file layer knows which names those are.
        let place = |base: &String| match base.strip_prefix("file://") {
            Some(local) => Some(PathBuf::from(local)),
            None => trawl_store::is_remote(base).then(|| PathBuf::from(base)),
        };
        let places: Vec<PathBuf> = bases.iter().filter_map(place).collect();
        let none = QueryError::NoArchive { why: "its dataset names no directory of archives that can be read" };
        if places.is_empty() { Err(none) } else { Ok(places) }
    }

    /// The file that a row names, and the containers it is part of.
    fn named(&self, places: &[PathBuf], file: &str) -> Result<Vec<Found>, QueryError> {
        let inside = Path::new(file);
        if !inside.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(QueryError::NoArchive { why: "the row names a file outside of the archives" });
        }
        let mut found = Vec::new();
        for dir in places {
            for part in inside.ancestors().filter(|part| !part.as_os_str().is_empty()) {
                let path = dir.join(part);
                if self.fs.exists(&path).unwrap_or(false)
                    && let Ok(Some(format)) = self.registry.detect(&self.fs, &path)
                    && !format.is_index()
                {
                    // The file may be a part of a container that is a directory above it: both are tried.
                    found.push(Found { path, format });
                }
            }
        }
        Ok(found)
    }

    /// Opens the capture of a row.
    fn open(
        &self,
        bases: &[String],
        item: &UrlItem,
        take: &mut dyn FnMut(Entry<'_>) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        self.each_container(bases, item, &mut |archive, place| {
            // A place of a container that was cut to pieces leads to none of them: then its index by URL may know more.
            Ok(open_in(archive, Pick::At(place), item, take)? || open_in(archive, Pick::Newest(&item.url), item, take)?)
        })
    }

    /// Shows `look` the containers that may hold a row's record until it says that one does. An error of it ends the search.
    fn each_container(
        &self,
        bases: &[String],
        item: &UrlItem,
        look: &mut dyn FnMut(&dyn Archive, &Place) -> Result<bool, QueryError>,
    ) -> Result<(), QueryError> {
        let (Some(file), Some(offset)) = (&item.warc_file, item.warc_offset) else {
            return Err(QueryError::NoArchive { why: "the row does not say where its record is" });
        };
        let places = Self::places(bases)?;
        let mut look = |found: &[Found]| self.look_in(found, file, offset, item, look);
        let named = self.named(&places, file)?;
        if look(&named)? {
            return Ok(());
        }
        let mut any = !named.is_empty();
        // A row of a WACZ file names the WARC file inside it, and another file may have the same name. One place at a time: a
        // container that is named itself costs less to look at than a directory.
        for place in &places {
            let mut beside = self.registry.files_beside(&self.fs, place).unwrap_or_default();
            beside.retain(|found| !found.is_index());
            any |= !beside.is_empty();
            if look(&beside)? {
                return Ok(());
            }
        }
        let why = if any { "there is no record of this url at its place" } else { "its file is not there" };
        Err(QueryError::NoArchive { why })
    }

    /// Shows `look` these containers until it says that one has the record.
    fn look_in(
        &self,
        containers: &[Found],
        file: &str,
        offset: u64,
        item: &UrlItem,
        look: &mut dyn FnMut(&dyn Archive, &Place) -> Result<bool, QueryError>,
    ) -> Result<bool, QueryError> {
        let name = file.rsplit('/').next().unwrap_or(file);
        for (place, found) in containers.iter().flat_map(|found| [(file, found), (name, found)]) {
            let place = Place::new(place, offset, item.warc_length.unwrap_or(0));
            // A neighbour that is damaged, or is not an archive after all, must not hide the right one.
            let Ok(archive) = found.open(&self.fs) else { continue };
            match look(&*archive, &place) {
                Ok(false) => {}
                Ok(true) => return Ok(true),
                Err(error @ (QueryError::Cancelled | QueryError::NoArchive { .. } | QueryError::NoCapture { .. })) => {
                    return Err(error);
                }
                // Some of it may have been handed out already: another try would hand that out twice.
                Err(_) => return Err(QueryError::NoArchive { why: "its record cannot be read to the end" }),
            }
        }
        Ok(false)
    }
}

/// Hands the entry of a row to `take`; `false` if it is not where `pick` leads.
fn open_in(
    archive: &dyn Archive,
    pick: Pick<'_>,
    item: &UrlItem,
    take: &mut dyn FnMut(Entry<'_>) -> Result<(), QueryError>,
) -> Result<bool, QueryError> {
    let Ok(Some(mut source)) = archive.captures(pick) else { return Ok(false) };
    for _ in 0..MAX_ENTRIES {
        let (entry, at) = match source.next_entry() {
            Ok(Some(found)) => found,
            // A damaged record does not end its member: those behind it were ingested.
            Err(e) if e.advice == Advice::Skip => continue,
            Ok(None) | Err(_) => break,
        };
        if matches!(pick, Pick::At(place) if at.offset != place.offset) {
            break;
        }
        if is_of(&entry, item) {
            return take(entry).map(|()| true);
        }
    }
    Ok(false)
}

/// Whether an entry is the one a row speaks of: its URL, and of several captures at one place the one with its time.
fn is_of(entry: &Entry<'_>, item: &UrlItem) -> bool {
    match entry {
        Entry::Capture(capture) => {
            let time = |ts| is_time_of(ts, capture.started_at) || is_time_of(ts, capture.facts.fetched_at);
            capture.url == item.url && item.ts.is_none_or(time)
        }
        Entry::Other(record) => target_of(record).is_some_and(|target| target == item.url),
    }
}

/// Whether a row with this time may speak of a capture of that one. Rows of an index (CDX, CDXJ) have whole seconds where the
/// records have fractions.
fn is_time_of(row: UnixMillis, capture: UnixMillis) -> bool {
    let is_whole = row.0.rem_euclid(1000) == 0;
    row == capture || (is_whole && second(row) == second(capture))
}

fn second(ts: UnixMillis) -> i64 {
    ts.0.div_euclid(1000)
}

fn header_field(record: &RawRecord<'_>, name: &str) -> Option<String> {
    trawl_http::Head::new(&record.header).text(name)
}

fn target_of(record: &RawRecord<'_>) -> Option<String> {
    let target = header_field(record, "WARC-Target-URI")?;
    // WARC 1.0 as some wrote it has it in angle brackets.
    let target = target.trim();
    Some(target.strip_prefix('<').and_then(|t| t.strip_suffix('>')).unwrap_or(target).to_owned())
}

impl Pinned {
    /// The capture of a URL in a dataset whose time is nearest to `ts`; the newest, if none is given.
    pub fn capture(
        &self,
        dataset_id: Option<u32>,
        url: &str,
        ts: Option<UnixMillis>,
        who: &Principal,
    ) -> Result<UrlHit, QueryError> {
        // The row is looked up as it is stored: credentials are part of what its record is known by.
        let who = who.clone().with_credentials(true);
        let far = |hit: &UrlHit| match (ts, hit.item.ts) {
            // Names of captures have whole seconds: such a time is all of its second.
            (Some(UnixMillis(wanted)), Some(UnixMillis(found))) if wanted % 1000 == 0 && found > wanted => {
                i128::from(found.abs_diff(wanted).saturating_sub(999))
            }
            (Some(wanted), Some(found)) => i128::from(wanted.0.abs_diff(found.0)),
            (None, Some(found)) => -i128::from(found.0),
            (_, None) => i128::MAX,
        };
        // Of the same time, what a server sent comes before what else an archive has of the URL; one whose archives are known and
        // the very spelling that was asked for before others. Among datasets they do so at any time: neither the text of a page
        // nor an index of somebody else's archives hides a capture.
        let among = dataset_id.is_none();
        let rank = |hit: &UrlHit| {
            let (other, lost) = (!hit.item.is_memento(), !self.has_archives(hit.dataset_id));
            (among && other, among && lost, far(hit), other, lost, hit.item.url != url)
        };
        let best = self.best_with(dataset_id, url, &who, |hit| has_bytes(hit).then(|| rank(hit)))?;
        best.ok_or(match dataset_id {
            Some(dataset_id) => QueryError::NoCapture { dataset_id },
            None => QueryError::NoMemento { url: url.chars().take(200).collect() },
        })
    }

    /// The row that an answer's locator names.
    pub fn located(&self, locator: &crate::Locator, who: &Principal) -> Result<UrlHit, QueryError> {
        let who = who.clone().with_credentials(true);
        let is_it = |hit: &UrlHit| hit.item.ts == locator.ts && hit.item.warc_offset == Some(locator.offset);
        let found = self.best_with(Some(locator.dataset_id), &locator.url, &who, |hit| is_it(hit).then_some(()))?;
        found.ok_or(QueryError::NoCapture { dataset_id: locator.dataset_id })
    }

    /// Hands out a capture with the body it has or refers to.
    pub fn replay(
        &self,
        archives: &Archives,
        row: &UrlHit,
        who: &Principal,
        take: &mut TakeCapture<'_>,
    ) -> Result<(), QueryError> {
        let mut revisit = None;
        archives.open(&self.bases(row), &row.item, &mut |entry| match entry {
            Entry::Capture(capture) => match capture.outcome {
                Outcome::Revisit(found) => {
                    revisit = Some((found, capture.url));
                    Ok(())
                }
                _ => hand_out(row, None, None, *capture, take),
            },
            Entry::Other(record) => hand_out_record(row, record, take),
        })?;
        let Some((revisit, own_url)) = revisit else { return Ok(()) };
        let url = revisit.refers_to_url.as_deref().unwrap_or(&own_url);
        // A 304 has no head worth showing; one with the same body has its own.
        let own = trawl_http::Head::new(&revisit.head);
        let head = own.status().is_some_and(|status| status != 304).then(|| revisit.head.clone());
        let mut failed = None;
        for original in self.originals(archives, url, &revisit, row, who)? {
            // Each costs reads of an archive; an asker who has gone must not be served.
            self.is_enough()?;
            let mut given = false;
            let opened = archives.open(&self.bases(&original), &original.item, &mut |entry| match entry {
                Entry::Capture(capture) if matches!(capture.outcome, Outcome::Response { .. }) => {
                    given = true;
                    hand_out(row, Some(&original), head.clone(), *capture, take)
                }
                // A revisit of which its row does not say so: not every index does.
                _ => Ok(()),
            });
            match opened {
                opened if given => return opened,
                Ok(()) => {}
                // A copy elsewhere may be there.
                Err(error @ QueryError::NoArchive { .. }) => failed = failed.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let missing = QueryError::NoArchive { why: "the capture that has the body of this revisit is in no dataset" };
        Err(failed.unwrap_or(missing))
    }

    /// Hands out the stored WARC records of a capture, one after the other; `false` if its container keeps none.
    pub fn replay_records(
        &self,
        archives: &Archives,
        row: &UrlHit,
        take: &mut dyn FnMut(RawRecord<'_>) -> Result<(), QueryError>,
    ) -> Result<bool, QueryError> {
        let mut keeps = true;
        archives.each_container(&self.bases(row), &row.item, &mut |archive, place| {
            // Of several captures of the URL in one member the one of that time; the time of a row may be another one of its capture's.
            for exact in [true, false] {
                // A file of the same name elsewhere may have another capture of the URL at this very place.
                if !exact && !open_in(archive, Pick::At(place), &row.item, &mut |_| Ok(()))? {
                    break;
                }
                let Ok(found) = archive.records(Pick::At(place)) else { return Ok(false) };
                let Some(mut source) = found else {
                    keeps = !matches!(archive.captures(Pick::At(place)), Ok(Some(_)));
                    return Ok(!keeps);
                };
                for _ in 0..MAX_ENTRIES {
                    let event = match source.next_event() {
                        Ok(Some(event)) => event,
                        Err(e) if e.advice == Advice::Skip => continue,
                        Ok(None) | Err(_) => break,
                    };
                    if event.records.first().is_none_or(|(_, at)| at.offset != place.offset) {
                        break;
                    }
                    let is_its_time = match (row.item.ts, event.time) {
                        (Some(ts), Some(at)) => is_time_of(ts, at),
                        (ts, at) => ts == at,
                    };
                    if event.url.as_deref() == Some(&row.item.url) && (!exact || is_its_time) {
                        event.records.into_iter().try_for_each(|(record, _)| take(record))?;
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        })?;
        Ok(keeps)
    }

    /// Whether a dataset says where its archives are.
    pub fn has_archives(&self, dataset_id: u32) -> bool {
        self.manifest().dataset(dataset_id).is_some_and(|dataset| !dataset.info.archive_base.is_empty())
    }

    fn bases(&self, row: &UrlHit) -> Vec<String> {
        self.manifest().dataset(row.dataset_id).map(|dataset| dataset.info.archive_base.clone()).unwrap_or_default()
    }

    /// The captures that may have the body of a revisit, the likeliest first: those of the URL it names with the digest it names,
    /// by nearness to its date. If none has that digest, those of the date it names: many programs take the digest of a body in
    /// chunks, rows that of the body. If it names no date either, the one whose record it names: `wget --warc-dedup` says nothing
    /// else.
    fn originals(
        &self,
        archives: &Archives,
        url: &str,
        revisit: &Revisit,
        row: &UrlHit,
        who: &Principal,
    ) -> Result<Vec<UrlHit>, QueryError> {
        let (digest, date) = (revisit.payload_digest.as_ref(), revisit.refers_to_date);
        let who = &who.clone().with_credentials(true);
        let by_id = |id: &String| self.with_record_id(archives, url, id, row, who).map(Vec::from_iter);
        if let (None, None, Some(id)) = (digest, date, &revisit.refers_to_id) {
            // Its time alone would find a capture of the URL, but perhaps not the one that it names.
            return by_id(id);
        }
        let differs = |hit: &UrlHit| {
            let own = hit.item.digest.as_deref().and_then(|text| Digest::parse(text).ok());
            digest.is_some_and(|digest| own.as_ref() != Some(digest))
        };
        // Most dates have whole seconds.
        let is_named = |hit: &UrlHit| date.is_some_and(|date| hit.item.ts.map(second) == Some(second(date)));
        let fits = |hit: &UrlHit| has_bytes(hit) && !is_revisit(hit) && (!differs(hit) || is_named(hit));
        let wanted = date.or(row.item.ts).unwrap_or_default();
        let far = |hit: &UrlHit| hit.item.ts.map_or(u64::MAX, |ts| ts.0.abs_diff(wanted.0));
        // The same dataset first: copies elsewhere may be cut.
        let rank = |hit: &UrlHit| (differs(hit), far(hit), hit.dataset_id != row.dataset_id);
        let mut found = self.best_few_with(None, url, who, MAX_OPENED, |hit| fits(hit).then(|| rank(hit)))?;
        // Beside one that has the digest, another one with the date has another body.
        if let Some(odd) = found.first().map(differs) {
            found.retain(|hit| differs(hit) == odd);
        }
        match &revisit.refers_to_id {
            Some(id) if found.is_empty() => by_id(id),
            _ => Ok(found),
        }
    }

    /// The capture of a URL whose record has this id, among those nearest to a revisit, the ones before it first.
    fn with_record_id(
        &self,
        archives: &Archives,
        url: &str,
        id: &str,
        revisit: &UrlHit,
        who: &Principal,
    ) -> Result<Option<UrlHit>, QueryError> {
        let wanted = revisit.item.ts.unwrap_or_default();
        let rank = |hit: &UrlHit| {
            let far = hit.item.ts.map_or(u64::MAX, |ts| ts.0.abs_diff(wanted.0));
            (hit.item.ts > Some(wanted), far, hit.dataset_id != revisit.dataset_id)
        };
        let fits = |hit: &UrlHit| has_bytes(hit) && !is_revisit(hit);
        for hit in self.best_few_with(None, url, who, MAX_OPENED, |hit| fits(hit).then(|| rank(hit)))? {
            self.is_enough()?;
            let mut is_it = false;
            let opened = archives.open(&self.bases(&hit), &hit.item, &mut |entry| {
                is_it = matches!(&entry, Entry::Capture(capture) if capture.facts.record_id.as_deref() == Some(id));
                Ok(())
            });
            match opened {
                Ok(()) if is_it => return Ok(Some(hit)),
                // Another one may be it.
                Ok(()) | Err(QueryError::NoArchive { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

fn has_bytes(hit: &UrlHit) -> bool {
    hit.item.warc_file.is_some() && hit.item.warc_offset.is_some()
}

/// Whether a row says that it is a revisit: those of archives by the type of the record, those of indexes by that of the body.
fn is_revisit(hit: &UrlHit) -> bool {
    hit.item.record_type() == Some("revisit") || hit.item.content_type.as_deref() == Some("warc/revisit")
}

fn hand_out(
    row: &UrlHit,
    body_of: Option<&UrlHit>,
    head: Option<Bytes>,
    capture: Capture<'_>,
    take: &mut TakeCapture<'_>,
) -> Result<(), QueryError> {
    let Outcome::Response { message, .. } = capture.outcome else {
        return Err(QueryError::NoCapture { dataset_id: row.dataset_id });
    };
    let mut body = message.body;
    let stored = trawl_http::Head::new(&message.head);
    let content_type = stored.text("Content-Type");
    // Codings are those of the stored body, so its own head goes with it where they would differ.
    let codings = |head: &Bytes| trawl_http::Head::new(head).content_codings();
    let head = head.filter(|head| codings(head) == stored.content_codings()).unwrap_or_else(|| message.head.clone());
    let len_bytes = body.len_bytes();
    let mut reader = body.reader().map_err(QueryError::lake)?;
    take(Replayed { row, body_of, head: Some(head), content_type, len_bytes, body: &mut *reader })
}

fn hand_out_record(row: &UrlHit, record: RawRecord<'_>, take: &mut TakeCapture<'_>) -> Result<(), QueryError> {
    let content_type = header_field(&record, "Content-Type");
    let mut body = record.body;
    let len_bytes = body.len_bytes();
    let mut reader = body.reader().map_err(QueryError::lake)?;
    take(Replayed { row, body_of: None, head: None, content_type, len_bytes, body: &mut *reader })
}
