//! The captures of a segment of 0.4 to 0.7.

use super::capture::{capture, set_protocol_status};
use super::fetch_list::Listed;
use super::layout::Layout;
use crate::legacy::{FetcherStatus, LegacyPage, LegacySegment};
use crate::types::{CrawlDatum, Interval, ProtocolStatus, Status};
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::VecDeque;
use trawl_hadoop::seq::OpenOptions;
use trawl_model::{Capture, CaptureSource, DoorError, Entry, Place};

/// Reads pages in their order. A place is that of the fetcher's record; the other files are read beside it from their
/// beginning, since they have nothing but the number of a page in common.
pub(super) struct LegacySource {
    pages: LegacySegment,
    file: String,
    /// Where the first capture lies that is wanted.
    from: u64,
    /// The segment cannot be read on.
    broken: bool,
    /// Directories without their file, to be reported before the first capture.
    faults: VecDeque<Error>,
}

impl LegacySource {
    pub fn open(layout: &Layout, options: &OpenOptions, from: Option<&Place>) -> Result<Self> {
        let pages = LegacySegment::open(&layout.root, options)?.contents_only();
        let file = layout.named(pages.path());
        let faults = layout.emptied().filter(|_| from.is_none()).collect();
        Ok(LegacySource { pages, file, from: from.map_or(0, |place| place.offset), broken: false, faults })
    }
}

impl CaptureSource for LegacySource {
    fn next_entry(&mut self) -> Result<Option<(Entry<'_>, Place)>, DoorError> {
        if let Some(fault) = self.faults.pop_front() {
            return Err(fault.into());
        }
        while !self.broken {
            let page = self.pages.next_page().inspect_err(|error| self.broken = !error.is_damage())?;
            let Some(page) = page else { return Ok(None) };
            let at = self.pages.at().offset;
            if let Some(capture) = of_page(page).filter(|_| at >= self.from) {
                return Ok(Some((Entry::Capture(Box::new(capture)), Place::new(self.file.as_str(), at, 0))));
            }
        }
        Ok(None)
    }

    fn position(&self) -> u64 {
        self.pages.at().offset
    }
}

fn of_page(page: LegacyPage) -> Option<Capture<'static>> {
    let (status, protocol) = match page.output.status {
        FetcherStatus::Protocol(said) => {
            (if said.code == 1 { Status::FETCH_SUCCESS } else { Status::FETCH_GONE }, said)
        }
        // 4: fetched, but not parsed.
        FetcherStatus::Code(1 | 4) => (Status::FETCH_SUCCESS, ProtocolStatus::new(1, 0, None)),
        FetcherStatus::Code(2) => (Status::FETCH_GONE, ProtocolStatus::new(14, 0, None)),
        FetcherStatus::Code(_) => (Status::FETCH_RETRY, ProtocolStatus::new(15, 0, None)),
    };
    // Every page has a content; of one that was not fetched it is empty.
    let fetched = protocol.code == 1;
    let mut datum = CrawlDatum::new(status, page.output.fetch_date, page.output.entry.page.score);
    let listed = &page.output.entry.page;
    datum.retries = listed.retries;
    datum.interval = Interval::Days(f32::from(listed.fetch_interval));
    datum.signature = Cow::Borrowed(&page.output.md5);
    set_protocol_status(&mut datum, &protocol);
    let mut entry = CrawlDatum::new(Status::DB_UNFETCHED, listed.next_fetch, listed.score);
    entry.retries = listed.retries;
    entry.interval = datum.interval;
    entry.signature = Cow::Borrowed(&listed.md5);
    let content = page.content.filter(|content| fetched || !content.content.is_empty());
    capture(&page.output.entry.page.url.to_string(), Some(&datum), content, &Listed::Entry(entry))
}
