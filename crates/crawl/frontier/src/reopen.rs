//! A depth limit that grew. Links beyond the limit are turned away and not kept: most links of a crawl are at its edge. Pages at
//! the limit are, and a caller that noted their links can offer them again.

use crate::error::{Error, Result};
use crate::frontier::Frontier;
use crate::identity::UrlId;
use crate::row::small;
use crate::store::all::AllRows;
use std::path::Path;

/// A page at a depth limit that has grown since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtLimit {
    /// Which page.
    pub id: UrlId,
    /// Its depth; its links are one deeper.
    pub depth: u32,
    /// Where the caller keeps what it leads to: as it was settled.
    pub note: u64,
}

/// The pages at a depth limit that has grown since. Offer what they lead to, then call [`Frontier::reopened`].
pub struct Reopening {
    rows: AllRows,
    limit: u16,
}

impl Reopening {
    /// Up to `n` further pages; none at the end. Reads columns of all rows, not their texts.
    pub fn next(&mut self, n: usize) -> Result<Vec<AtLimit>> {
        let mut pages = Vec::new();
        while pages.len() < n {
            let Some(place) = self.rows.next_place()? else { break };
            let row = self.rows.head(place)?;
            // What still waits, or is leased, offers its links when it is settled.
            if row.note != 0 && row.depth >= self.limit && !row.status.waits() && row.robots_until == 0 {
                pages.push(AtLimit { id: row.id, depth: row.depth.into(), note: row.note });
            }
        }
        Ok(pages)
    }
}

impl Frontier {
    /// A link was turned away: remembered with the next batch, so that a larger limit is not taken for one that always was.
    pub(crate) fn turned_away(&mut self, limit: u32) {
        if self.turned_away_at.is_none_or(|known| limit < known) {
            self.turned_away_at = Some(limit);
            if self.store.is_some() {
                self.batch.depth(Some(limit));
            }
        }
    }

    /// Refuses a limit that would need links that were turned away.
    pub(crate) fn check_depth(&self, dir: &Path) -> Result<()> {
        match self.turned_away_at {
            Some(limit) if self.config.max_depth > limit && !self.config.reopens => Err(Error::Setting {
                path: dir.to_owned(),
                setting: "depth",
                expected: format!("{limit}, and deeper links were not kept"),
                found: self.config.max_depth.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// If links were turned away at a smaller limit than today's: the pages whose links those may have been. Needs
    /// [`crate::Config::reopens`]. After a crash before [`Frontier::reopened`] was durable they are named again.
    pub fn reopening(&mut self) -> Result<Option<Reopening>> {
        let Some(limit) = self.turned_away_at.filter(|limit| self.config.max_depth > *limit) else { return Ok(None) };
        Ok(self.all_rows(None)?.map(|rows| Reopening { rows, limit: small(limit) }))
    }

    /// What pages at the old limit lead to was offered: no link is missing any more, as of the next batch.
    pub fn reopened(&mut self) {
        if self.turned_away_at.take().is_some() && self.store.is_some() {
            self.batch.depth(None);
        }
    }
}
