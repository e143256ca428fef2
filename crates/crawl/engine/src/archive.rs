//! Where captures go: WARC files, or a container with the same records in it. One set of steps for both.

use crate::config::Format;
use crate::pages::{PagesSink, Stamped};
use std::path::Path;
use std::sync::Arc;
use trawl_io::Fs;
use trawl_model::{CaptureSink, Clock, DoorError, Durable, Place, Summary, UnixMillis};
use trawl_warc::{IdSource, Prepared, Preparer, SinkOptions, WarcSink};

/// An archive being written.
pub(crate) enum Archive {
    Warc(Box<WarcSink>),
    Seqdb(Box<PagesSink>),
}

/// What an archive is opened with.
pub(crate) struct Opening<'a> {
    pub fs: &'a Arc<dyn Fs>,
    pub dir: &'a Path,
    pub format: Format,
    pub options: SinkOptions,
    /// What the container is called; WARC files have names of their own.
    pub name: String,
    pub ids: &'a Arc<dyn IdSource>,
    pub clock: &'a Clock,
}

impl Opening<'_> {
    /// The archive before anything was written.
    pub(crate) fn nothing(&self) -> Durable {
        let file = match self.format {
            Format::Warc => self.options.names.name(0),
            Format::Seqdb => PagesSink::file_name(&self.name),
        };
        Durable { file, end: 0 }
    }

    pub(crate) fn create(self) -> Result<Archive, DoorError> {
        let Opening { fs, dir, format, options, name, ids, clock } = self;
        Ok(match format {
            Format::Warc => {
                let sink = WarcSink::create(fs.clone(), dir, options, ids.clone(), clock.clone())?;
                Archive::Warc(Box::new(sink))
            }
            Format::Seqdb => Archive::Seqdb(Box::new(PagesSink::create(fs, dir, &name, &options, ids, clock)?)),
        })
    }

    /// Keeps exactly what `committed` says.
    pub(crate) fn resume(self, committed: Option<&Durable>) -> Result<Archive, DoorError> {
        let Opening { fs, dir, format, options, name, ids, clock } = self;
        Ok(match format {
            Format::Warc => {
                let sink = WarcSink::resume(fs.clone(), dir, options, ids.clone(), clock.clone(), committed)?;
                Archive::Warc(Box::new(sink))
            }
            Format::Seqdb => {
                Archive::Seqdb(Box::new(PagesSink::resume(fs, dir, &name, &options, ids, clock, committed)?))
            }
        })
    }
}

impl Archive {
    pub(crate) fn preparer(&self) -> Preparer {
        match self {
            Archive::Warc(sink) => sink.preparer(),
            Archive::Seqdb(sink) => sink.preparer(),
        }
    }

    pub(crate) fn commit(&mut self, url: &str, time: UnixMillis, prepared: Prepared) -> Result<Place, DoorError> {
        match self {
            Archive::Warc(sink) => sink.commit(prepared),
            Archive::Seqdb(sink) => sink.commit(Stamped { url: url.to_owned(), time, prepared }),
        }
    }

    pub(crate) fn sync(&mut self) -> Result<Durable, DoorError> {
        match self {
            Archive::Warc(sink) => sink.sync(),
            Archive::Seqdb(sink) => sink.sync(),
        }
    }

    pub(crate) fn finish(self) -> Result<Summary, DoorError> {
        match self {
            Archive::Warc(sink) => sink.finish(),
            Archive::Seqdb(sink) => sink.finish(),
        }
    }
}
