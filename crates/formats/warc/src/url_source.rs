//! The URLs of a WARC or ARC file, for the lake: the door [`UrlSource`].

use crate::container::Compression;
use crate::error::Error;
use crate::limits::Limits;
use crate::reader::RecordFile;
use crate::source::WarcSource;
use std::sync::Arc;
use trawl_http::Head;
use trawl_io::ReadAt;
use trawl_model::{
    Advice, Body, Capture, DoorError, Entry, Items, Outcome, Place, SourceIdentity, Split, UrlRecord, UrlSource,
};

/// A file as a source of URLs. Captures that failed are URLs too, without a status.
#[derive(Clone)]
pub struct WarcUrls {
    file: Arc<dyn ReadAt>,
    identity: SourceIdentity,
    limits: Limits,
}

impl WarcUrls {
    /// The URLs of `file`, which is known as `identity`.
    pub fn new(file: Arc<dyn ReadAt>, identity: SourceIdentity, limits: Limits) -> Self {
        WarcUrls { file, identity, limits }
    }
}

impl UrlSource for WarcUrls {
    fn identity(&self) -> SourceIdentity {
        self.identity.clone()
    }

    /// Compressed members can be told apart from their middle on; in an uncompressed file anything may look like a record.
    fn splits(&self, target_bytes: u64) -> Result<Vec<Split>, DoorError> {
        let len = self.file.len();
        let mut magic = [0; 4];
        let magic = magic.get_mut(..usize::try_from(len).unwrap_or(4).min(4)).unwrap_or_default();
        self.file.read_at(0, magic).map_err(Error::from)?;
        if Compression::detect(magic) == Compression::None {
            return Ok(vec![Split { start: 0, end: len }]);
        }
        let step = target_bytes.max(1 << 20);
        let starts = (0..len.div_ceil(step).max(1)).map(|i| i * step);
        Ok(starts.map(|start| Split { start, end: (start + step).min(len) }).collect())
    }

    fn read(&self, split: Split, each: &mut Items<'_>) -> Result<(), DoorError> {
        let records = RecordFile::new(self.file.clone()).limits(self.limits).lenient(true);
        let mut reader = records.reader_at(0, 0)?;
        if split.start > 0 {
            // The first record of a split is the first that begins in it.
            reader.seek_record(split.start)?;
        }
        let mut source = WarcSource::from_reader(reader, records);
        loop {
            match source.next_owned() {
                Ok(Some((_, place))) if place.offset >= split.end => return Ok(()),
                Ok(Some((Entry::Capture(capture), place))) => each(place.offset, Ok(to_record(&capture, place)))?,
                Ok(Some((Entry::Other(_), _))) => {}
                Ok(None) => return Ok(()),
                Err(e) => {
                    let e = DoorError::from(e);
                    if e.advice != Advice::Skip {
                        return Err(e);
                    }
                    each(e.at.as_ref().map_or(0, |at| at.offset), Err(e))?;
                }
            }
        }
    }
}

fn to_record(capture: &Capture<'_>, place: Place) -> UrlRecord {
    let mut record = UrlRecord {
        url: capture.url.clone(),
        ts: Some(capture.started_at),
        extras: capture.facts.meta_json.clone(),
        ..UrlRecord::default()
    };
    let head = match &capture.outcome {
        Outcome::Response { message, payload_digest, .. } => {
            record.digest = payload_digest.clone();
            record.body_length = Some(Body::len_bytes(&message.body));
            record.place = Some(place);
            &message.head
        }
        Outcome::Revisit(revisit) => {
            record.digest = revisit.payload_digest.clone();
            record.body_length = Some(revisit.body_length);
            record.place = Some(place);
            &revisit.head
        }
        Outcome::Failed(_) => return record,
    };
    let head = Head::new(head);
    record.status = head.status();
    record.content_type = head.text("Content-Type");
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{options, response, sink_with, text};
    use trawl_io::read_at::FileReader;
    use trawl_model::CaptureSink;

    #[test]
    fn splits_of_any_size_give_every_url_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut sink = sink_with(dir.path(), options());
        for n in 0..60 {
            let capture = response(n, text(n, 200_000 + usize::try_from(n).unwrap() * 5000));
            let prepared = sink.prepare(capture).unwrap();
            sink.commit(prepared).unwrap();
        }
        let summary = sink.finish().unwrap();
        let file = Arc::new(FileReader::open(&dir.path().join(&summary.files[0].0)).unwrap());
        let identity = SourceIdentity { uri: "a".into(), size: file.len(), tag: "1".into() };
        let source = WarcUrls::new(file.clone(), identity, Limits::default());
        let read = |splits: Vec<Split>| {
            let mut urls = Vec::new();
            for split in splits {
                let mut each = |_, r: Result<UrlRecord, DoorError>| {
                    urls.push(r?);
                    Ok(())
                };
                source.read(split, &mut each).unwrap();
            }
            urls
        };
        let wanted = read(vec![Split { start: 0, end: file.len() }]);
        assert_eq!(wanted.len(), 60);
        assert_eq!((wanted[7].status, wanted[7].content_type.as_deref()), (Some(200), Some("text/html")));
        assert!(source.splits(1 << 20).unwrap().len() > 1);
        assert_eq!(read(source.splits(1 << 20).unwrap()), wanted);
        for step in [1000, 33_333, 100_000] {
            let ends = (1..=file.len().div_ceil(step)).map(|i| (i * step).min(file.len()));
            let splits = ends.map(|end| Split { start: (end - 1) / step * step, end }).collect();
            assert_eq!(read(splits), wanted, "{step}");
        }
    }
}
