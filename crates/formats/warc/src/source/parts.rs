//! Stretches of WARC records, one after another: whole files, files inside a WACZ file, events of a container.

use super::WarcSource;
use crate::limits::Limits;
use std::sync::Arc;
use trawl_io::ReadAt;
use trawl_model::{CaptureSource, DoorError, Entry, Place, RawEvent, RecordSource};

/// WARC records from `offset` to the end of `file`.
#[derive(Clone)]
pub struct Part {
    /// Named as the file that places name.
    pub file: Arc<dyn ReadAt>,
    /// Where its first record begins.
    pub offset: u64,
}

type Next<'a> = Box<dyn FnMut() -> Result<Option<Part>, DoorError> + 'a>;

/// Reads parts as one source.
pub struct Parts<'a> {
    /// `None` once it failed or ended.
    next: Option<Next<'a>>,
    current: Option<WarcSource>,
}

impl<'a> Parts<'a> {
    /// Reads what `next` gives until it gives nothing.
    pub fn new(next: impl FnMut() -> Result<Option<Part>, DoorError> + 'a) -> Self {
        Parts { next: Some(Box::new(next)), current: None }
    }

    fn each<T>(
        &mut self,
        read: impl Fn(&mut WarcSource) -> Result<Option<T>, DoorError>,
    ) -> Result<Option<T>, DoorError> {
        loop {
            if let Some(source) = &mut self.current
                && let Some(found) = read(source)?
            {
                return Ok(Some(found));
            }
            self.current = None;
            let Some(mut next) = self.next.take() else { return Ok(None) };
            let Some(Part { file, offset }) = next()? else { return Ok(None) };
            self.next = Some(next);
            self.current = Some(WarcSource::over_from(file, offset, Limits::default(), true));
        }
    }

    fn offset(&self) -> u64 {
        self.current.as_ref().map_or(0, CaptureSource::position)
    }
}

impl From<WarcSource> for Parts<'_> {
    fn from(source: WarcSource) -> Self {
        Parts { next: None, current: Some(source) }
    }
}

impl CaptureSource for Parts<'_> {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        self.each(|source| Ok(source.next_owned()?))
    }

    fn position(&self) -> u64 {
        self.offset()
    }

    fn beside(&self) -> &[&'static str] {
        self.current.as_ref().map_or(&[], |source| source.beside())
    }

    fn damaged_url(&self) -> Option<String> {
        self.current.as_ref().and_then(|source| source.damaged_url())
    }
}

impl RecordSource for Parts<'_> {
    fn next_event(&mut self) -> Result<Option<RawEvent<'static>>, DoorError> {
        self.each(WarcSource::next_event)
    }

    fn position(&self) -> u64 {
        self.offset()
    }
}
