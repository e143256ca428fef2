//! A toy container, and all that a format has to say of itself.
//!
//! ```text
//! "TOY1\n"                                                            then, for each response
//! u32 length, big-endian | JSON {"url":…,"time":…,"head":…,"body":…}  head and body in Base64
//! ```
//! It carries responses, any number for a URL, and nothing else.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use trawl_io::format::{Candidate, Creation, Format, Opening, Role, Target};
use trawl_io::read_at::FileReader;
use trawl_io::{AtomicFile, FileWriter, Mode, ReadAt};
use trawl_model::*;

const MAGIC: &[u8] = b"TOY1\n";
const CARRIES: Carries = Carries::only(&[Capability::ManyPerUrl]);

pub struct Toy;

impl Format for Toy {
    fn name(&self) -> &'static str {
        "toy"
    }

    fn carries(&self) -> Carries {
        CARRIES
    }

    fn detect(&self, candidate: &Candidate<'_>) -> bool {
        candidate.head.is_some_and(|head| head.starts_with(MAGIC))
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Archive>, DoorError> {
        Ok(Box::new(ToyArchive(Arc::new(FileReader::open_in(&**opening.fs, opening.path)?))))
    }

    fn targets(&self) -> &'static [&'static str] {
        &[".toy"]
    }

    fn is_crawlable(&self) -> bool {
        true
    }

    fn create(&self, creation: Creation) -> Result<Box<dyn CaptureSink>, DoorError> {
        let (path, out) = match &creation.target {
            Target::File(path) => (path.clone(), Out::Whole(AtomicFile::create(&creation.fs, path)?)),
            Target::Run { dir, prefix, run, .. } => {
                let path = dir.join(format!("{prefix}-{run}.toy"));
                let file = creation.fs.open(&path, Mode::CreateNew)?;
                creation.fs.sync_dir(dir)?;
                (path, Out::Run(FileWriter::new(file, 0)))
            }
        };
        let mut sink = ToySink { name: name_of(&path), out, summary: Summary::default() };
        sink.put(MAGIC)?;
        Ok(Box::new(sink))
    }

    fn resume(&self, creation: Creation, committed: Option<&Durable>) -> Result<Box<dyn CaptureSink>, DoorError> {
        let Target::Run { dir, prefix, run, .. } = &creation.target else { return self.create(creation) };
        let path = dir.join(format!("{prefix}-{run}.toy"));
        let Some((_, end)) = committed.and_then(|durable| durable.files.last()) else {
            if creation.fs.exists(&path)? {
                creation.fs.remove_file(&path)?;
            }
            return self.create(creation);
        };
        let file = creation.fs.open(&path, Mode::Write)?;
        file.set_len(*end)?;
        let out = Out::Run(FileWriter::new(file, *end));
        Ok(Box::new(ToySink { name: name_of(&path), out, summary: Summary::default() }))
    }

    fn role(&self, name: &str, _all: &[String]) -> Option<Role> {
        name.ends_with(".toy").then_some(Role::Growing)
    }
}

fn name_of(path: &Path) -> Arc<str> {
    path.file_name().unwrap().to_string_lossy().into()
}

struct ToySink {
    name: Arc<str>,
    out: Out,
    summary: Summary,
}

enum Out {
    Whole(AtomicFile),
    Run(FileWriter),
}

impl ToySink {
    fn put(&mut self, bytes: &[u8]) -> trawl_io::Result<()> {
        match &mut self.out {
            Out::Whole(file) => file.put(bytes),
            Out::Run(file) => file.put(bytes),
        }
    }

    fn position(&self) -> u64 {
        match &self.out {
            Out::Whole(file) => file.position(),
            Out::Run(file) => file.position(),
        }
    }
}

struct ToyPreparer;

impl Preparer for ToyPreparer {
    fn prepare(&self, mut capture: Capture<'_>) -> Result<Prepared, DoorError> {
        let losses = CARRIES.losses(&capture);
        let Outcome::Response { message, .. } = &mut capture.outcome else { panic!("not asked for") };
        let body = message.body.read_to_bytes(u64::MAX).map_err(|e| DoorError::new(Advice::Stop, e))?;
        let base64 = |bytes: &[u8]| data_encoding::BASE64.encode(bytes);
        let json = json!({ "url": capture.url, "time": capture.started_at.0, "head": base64(&message.head), "body": base64(&body) });
        let json = json.to_string().into_bytes();
        let entry = [&u32::try_from(json.len()).unwrap().to_be_bytes()[..], &json].concat();
        let mut prepared = Prepared::new(capture.url, capture.started_at, entry.len() as u64, entry);
        prepared.losses = losses;
        Ok(prepared)
    }
}

impl CaptureSink for ToySink {
    fn preparer(&self) -> Arc<dyn Preparer> {
        Arc::new(ToyPreparer)
    }

    fn commit(&mut self, prepared: Prepared) -> Result<Option<Place>, DoorError> {
        self.summary.add(&prepared);
        self.summary.records += 1;
        let entry: Vec<u8> = prepared.into_contents()?;
        let place = Place::new(self.name.clone(), self.position(), entry.len() as u64);
        self.put(&entry)?;
        Ok(Some(place))
    }

    fn sync(&mut self) -> Result<Durable, DoorError> {
        if let Out::Run(file) = &mut self.out {
            file.sync()?;
        }
        Ok(Durable::one(&*self.name, self.position()))
    }

    fn finish(mut self: Box<Self>) -> Result<Summary, DoorError> {
        self.sync()?;
        self.summary.files = vec![(self.name.to_string(), self.position())];
        if let Out::Whole(file) = self.out {
            file.publish()?;
        }
        Ok(self.summary)
    }

    fn carries(&self) -> Carries {
        CARRIES
    }
}

struct ToyArchive(Arc<dyn ReadAt>);

impl Archive for ToyArchive {
    fn captures<'a>(&'a self, pick: Pick<'_>) -> Result<Option<Box<dyn CaptureSource + 'a>>, DoorError> {
        Ok(match pick {
            Pick::All => Some(Box::new(ToySource { file: &self.0, at: MAGIC.len() as u64 })),
            Pick::At(place) => Some(Box::new(ToySource { file: &self.0, at: place.offset })),
            Pick::Split(_) | Pick::Newest(_) => None,
        })
    }
}

struct ToySource<'a> {
    file: &'a Arc<dyn ReadAt>,
    at: u64,
}

impl CaptureSource for ToySource<'_> {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        if self.at >= self.file.len() {
            return Ok(None);
        }
        let mut len = [0; 4];
        self.file.read_at(self.at, &mut len)?;
        let length = 4 + u64::from(u32::from_be_bytes(len));
        let place = Place::new(name_of(self.file.name()), self.at, length);
        let json = self.file.read_range(self.at + 4..self.at + length);
        self.at += length;
        let bad =
            |found: String| DoorError::new(Advice::Skip, format!("expected an entry, found {found}")).at(place.clone());
        let json: Value = serde_json::from_slice(&json?).map_err(|e| bad(e.to_string()))?;
        let bytes = |name: &str| -> Result<bytes::Bytes, DoorError> {
            let text = json[name].as_str().ok_or_else(|| bad(format!("no {name}")))?;
            Ok(data_encoding::BASE64.decode(text.as_bytes()).map_err(|e| bad(e.to_string()))?.into())
        };
        let message = Message { head: bytes("head")?, body: Body::Memory(bytes("body")?) };
        let url = json["url"].as_str().ok_or_else(|| bad("no url".into()))?.to_owned();
        let started_at = UnixMillis(json["time"].as_i64().ok_or_else(|| bad("no time".into()))?);
        let outcome = Outcome::Response { message, payload_digest: None, truncated: None };
        let facts = CaptureFacts { fetched_at: started_at, ..CaptureFacts::default() };
        let capture = Capture { url, started_at, request: None, outcome, facts };
        Ok(Some((Entry::Capture(Box::new(capture)), place)))
    }

    fn position(&self) -> u64 {
        self.at
    }
}
