//! A container of Nutch's, opened.

use super::layout::{DataFile, Kind, Layout};
use super::legacy::LegacySource;
use super::source::{Lookup, Nothing, One, SegmentFiles, SegmentSource};
use super::urls::NutchUrls;
use crate::class::{CRAWL_DATUM, canonical};
use crate::db::text_key;
use crate::segment::SegmentPart;
use crate::types::{CrawlDatum, whole};
use crate::{RecordPrinter, Result};
use md5::Digest as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use trawl_hadoop::class as hadoop;
use trawl_hadoop::json::Detail;
use trawl_hadoop::map::MapReader;
use trawl_hadoop::seq::{OpenOptions, Reader};
use trawl_model::{
    Advice, Archive, CaptureSource, DoorError, Inspection, OnDamage, OnProgress, Pick, Progress, SourceIdentity, Split,
    UrlSource, Wanted,
};

/// How often progress is reported, in records.
const REPORT_EVERY: u64 = 1024;

pub(super) struct NutchArchive {
    layout: Arc<Layout>,
    options: OpenOptions,
    /// The maps that captures are looked up in, once any was asked for.
    lookup: Mutex<Option<Lookup>>,
}

impl NutchArchive {
    pub fn new(layout: Layout, options: OpenOptions) -> Self {
        NutchArchive { layout: Arc::new(layout), options, lookup: Mutex::new(None) }
    }

    fn files(&self) -> Result<Option<Arc<SegmentFiles>>> {
        Ok(SegmentFiles::of(&self.layout, &self.options)?.map(Arc::new))
    }

    /// Whether a lone file of fetches is all there is: its URLs say more than the captures of those that failed.
    fn is_lone_fetch(&self) -> bool {
        let dir = SegmentPart::CrawlFetch.name();
        self.layout.kind != Kind::Segment && self.layout.root.components().any(|part| part.as_os_str() == dir)
    }

    fn lookup(&self, files: &Arc<SegmentFiles>, url: &str) -> Result<One> {
        let mut lookup = self.lookup.lock().unwrap_or_else(PoisonError::into_inner);
        let lookup = match &mut *lookup {
            Some(lookup) => lookup,
            none => none.insert(Lookup::open(files, &self.options)?),
        };
        lookup.get(url).map(One)
    }

    /// Which container it is: names, lengths and markers of its files. A marker is random, so that a file that was written
    /// anew has another.
    fn tag(&self) -> Result<SourceIdentity> {
        let mut hash = md5::Md5::new();
        let mut size = 0;
        for file in self.layout.current_files() {
            let reader = self.options.open(&file.path)?;
            size += reader.file_len();
            hash.update(self.layout.inside(&file.path).as_bytes());
            hash.update(reader.file_len().to_be_bytes());
            match reader.header().marker {
                Some(marker) => hash.update(marker),
                // Version 1 has none: the contents themselves.
                None => hash.update(reader.file_sha256()?.as_bytes()),
            }
        }
        let tag = data_encoding::HEXLOWER.encode(&hash.finalize());
        Ok(SourceIdentity { uri: self.layout.root.display().to_string(), size, tag })
    }

    /// The same for a container with files that are missing or damaged: names and lengths alone.
    fn rough_tag(&self) -> SourceIdentity {
        let mut hash = md5::Md5::new();
        let mut size = 0;
        for file in self.layout.current_files() {
            let len = self.options.fs.metadata(&file.path).map_or(0, |metadata| metadata.len);
            size += len;
            hash.update(self.layout.inside(&file.path).as_bytes());
            hash.update(len.to_be_bytes());
        }
        let tag = format!("damaged-{}", data_encoding::HEXLOWER.encode(&hash.finalize()));
        SourceIdentity { uri: self.layout.root.display().to_string(), size, tag }
    }
}

impl Archive for NutchArchive {
    fn captures<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Box<dyn CaptureSource + 'a>>, DoorError> {
        let options = &self.options;
        if self.layout.kind == Kind::LegacySegment {
            return Ok(match pick {
                Pick::All => Some(Box::new(LegacySource::open(&self.layout, options, None)?)),
                Pick::At(place) => Some(Box::new(LegacySource::open(&self.layout, options, Some(place))?)),
                Pick::Newest(_) | Pick::Split(_) => None,
            });
        }
        let Some(files) = self.files()? else { return Ok(None) };
        Ok(match pick {
            Pick::All | Pick::Split(_) if self.is_lone_fetch() => None,
            Pick::All => Some(Box::new(SegmentSource::all(&files, options))),
            Pick::Split(split) => Some(Box::new(SegmentSource::split(&files, options, split)?)),
            Pick::At(place) => SegmentSource::at(&files, options, place).map(|source| Box::new(source) as _),
            Pick::Newest(url) => Some(Box::new(self.lookup(&files, url)?)),
        })
    }

    fn captures_to_convert(&self) -> Result<Option<Box<dyn CaptureSource + '_>>, DoorError> {
        if self.layout.kind != Kind::Segment {
            return self.captures(Pick::All);
        }
        let captures: Box<dyn CaptureSource + '_> = match self.files()? {
            Some(files) => Box::new(SegmentSource::all_listed(&files, &self.options)?),
            // It was generated and never fetched: what it has counts as left out, and does not keep those beside it from being
            // converted.
            None => Box::new(Nothing { faults: self.layout.emptied().collect() }),
        };
        Ok(Some(captures))
    }

    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        match self.files()? {
            Some(files) => Ok(files.splits(&self.options, target_bytes)?),
            None => Ok(Vec::new()),
        }
    }

    fn identity(&self) -> Option<SourceIdentity> {
        // What cannot be opened is identified by what is there: reading it says what is wrong.
        Some(self.tag().unwrap_or_else(|_| self.rough_tag()))
    }

    fn urls(&self, identity: &SourceIdentity) -> Result<Option<Box<dyn UrlSource>>, DoorError> {
        if self.captures(Pick::All)?.is_some() {
            return Ok(None);
        }
        let (layout, options, identity) = (self.layout.clone(), self.options.clone(), identity.clone());
        let urls = NutchUrls { layout, options, identity };
        Ok(urls.is_source()?.then(|| Box::new(urls) as _))
    }

    fn left_out(&self) -> Result<BTreeMap<String, u64>, DoorError> {
        Ok(super::left_out::count(&self.layout, &self.options)?)
    }

    fn inspect(&self, sample: usize, progress: OnProgress<'_>) -> Result<Vec<Inspection>, DoorError> {
        let mut all = Vec::new();
        let mut records = 0;
        for file in &self.layout.files {
            let mut seen = Inspection { format: "nutch".into(), ..Inspection::default() };
            seen.inside = (self.layout.kind != Kind::File).then(|| self.layout.inside(&file.path));
            match self.inspect_file(&file.path, sample, &mut records, &mut seen, progress) {
                Ok(()) => {}
                Err(error) if error.is_damage() => seen.damaged(error.to_string()),
                Err(error) => return Err(error.into()),
            }
            all.push(seen);
        }
        Ok(all)
    }

    /// Records of any class, one line each.
    fn list(
        &self,
        wanted: &Wanted<'_>,
        out: &mut dyn Write,
        on_damage: OnDamage<'_>,
    ) -> Result<Option<u64>, DoorError> {
        let alone = self.layout.current_files().len() == 1;
        if wanted.offset.is_some() && !alone {
            let why = format!("{}: an offset is one of a file: name the file inside", self.layout.root.display());
            return Err(DoorError::new(Advice::Stop, why));
        }
        let mut printed = 0;
        for file in self.layout.current_files() {
            let inside = (!alone).then(|| self.layout.inside(&file.path));
            printed += self.list_file(file, inside.as_deref(), wanted, out, on_damage)?;
        }
        Ok(Some(printed))
    }
}

/// A string as it is, anything else as JSON.
fn plain(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.escape_debug().to_string(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

impl NutchArchive {
    fn list_file(
        &self,
        file: &DataFile,
        inside: Option<&str>,
        wanted: &Wanted<'_>,
        out: &mut dyn Write,
        on_damage: OnDamage<'_>,
    ) -> Result<u64, DoorError> {
        let detail = if wanted.digests { Detail::Digest } else { Detail::Full };
        let mut reader = match self.start_list(file, wanted) {
            Ok(reader) => reader,
            Err(error) if error.is_damage() => {
                on_damage(error.into());
                return Ok(0);
            }
            Err(error) => return Err(error.into()),
        };
        let by_index = reader.has_record();
        let mut printer = RecordPrinter::new(reader.header(), detail);
        if let Some(offset) = wanted.offset {
            reader.seek(offset);
        }
        let mut printed = 0;
        let mut on_first = by_index;
        loop {
            let found = if std::mem::take(&mut on_first) { Ok(true) } else { reader.advance() };
            match found.and_then(|found| if found { reader.value().map(|_| true) } else { Ok(false) }) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.is_damage() => {
                    reader.resync()?;
                    on_damage(error.into());
                    // Who names a place wants what is there, not what is behind it.
                    if wanted.offset.is_some() {
                        break;
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let record = reader.loaded_record();
            if wanted.offset.is_some_and(|offset| record.at.offset != offset) {
                break;
            }
            let mut line = printer.print(&record);
            if wanted.url.is_some_and(|url| line.get("key").is_none_or(|key| key != url)) {
                if by_index {
                    break;
                }
                continue;
            }
            printed += 1;
            if let Some(why) = printer.damage() {
                let (file, offset) = (file.path.display(), record.at.offset);
                on_damage(DoorError::new(Advice::Skip, format!("{file}@{offset}: {why}")));
            }
            if let Some(object) = line.as_object_mut() {
                // Records are counted from the first: who begins elsewhere does not know the number.
                if by_index || wanted.offset.is_some() {
                    object.shift_remove("i");
                }
                if let Some(inside) = inside {
                    object.shift_insert(0, "file".into(), inside.into());
                }
            }
            if wanted.json {
                writeln!(out, "{line}")?;
            } else {
                writeln!(out, "{}\t{}", plain(line.get("key")), plain(line.get("value")))?;
            }
        }
        Ok(printed)
    }

    /// A reader at the first record that may be wanted; it stands on it if an index led there.
    fn start_list(&self, file: &DataFile, wanted: &Wanted<'_>) -> Result<Reader> {
        let (Some(url), Some(dir), None) = (wanted.url, &file.map, wanted.offset) else {
            return self.options.open(&file.path);
        };
        // A map finds the first record of a URL; those behind it may have the same.
        let map = MapReader::open(dir, &self.options)?;
        let class = map.header().key_class();
        match class.as_str() {
            hadoop::TEXT | hadoop::UTF8 => map.into_reader_at(&text_key(&class, url.as_bytes())),
            _ => self.options.open(&file.path),
        }
    }

    fn inspect_file(
        &self,
        path: &Path,
        sample: usize,
        records: &mut u64,
        seen: &mut Inspection,
        progress: OnProgress<'_>,
    ) -> Result<()> {
        let mut reader = self.options.open(path)?;
        let header = reader.header().clone();
        let class = canonical(&header.stored_value_class).into_owned();
        seen.format_note = Some(format!(
            "{}, version {}, {}{}",
            self.layout.kind.name(),
            header.version,
            header.compression.name(),
            header.codec_class.as_ref().map_or_else(String::new, |codec| format!(" {codec}")),
        ));
        seen.details.insert("kind".into(), self.layout.kind.name().into());
        seen.details.insert("version".into(), header.version.into());
        seen.details.insert("compression".into(), header.compression.name().into());
        seen.details.insert("codec".into(), json!(header.codec_class));
        seen.fact("key_class", header.stored_key_class.as_str());
        seen.fact("value_class", header.stored_value_class.as_str());
        let (mut count, mut value_bytes) = (0u64, 0u64);
        let mut printer = RecordPrinter::new(&header, Detail::Digest);
        loop {
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) if error.is_damage() => {
                    seen.damaged(error.to_string());
                    reader.resync()?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            count += 1;
            *records += 1;
            value_bytes += record.value.len() as u64;
            if seen.sample.len() < sample {
                let line = printer.print(&record);
                let entry = json!({ "offset": record.at.offset, "key": line.get("key"), "value": line.get("value") });
                seen.sample.extend(entry.as_object().cloned());
            }
            if class == CRAWL_DATUM
                && let Ok(datum) = whole(record.value, CrawlDatum::decode)
            {
                seen.tally("statuses", datum.status().name().into(), record.value.len() as u64);
            }
            if records.is_multiple_of(REPORT_EVERY) {
                progress(Progress { records: *records, bytes: record.at.offset, total_bytes: 0 });
            }
        }
        seen.fact("records", count);
        seen.fact("value_bytes", value_bytes);
        seen.fact("stored_bytes", reader.file_len());
        Ok(())
    }
}
