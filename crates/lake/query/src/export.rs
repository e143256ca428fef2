//! All rows, not a page of them: for exports.

use crate::answer::UrlItem;
use crate::hidden::runs_of;
use crate::postings::Postings;
use crate::urls::{WANTED, item, passes};
use crate::{Filter, Pinned, Principal, QueryError};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use trawl_index::postings::Run;
use trawl_rows::{Column, Columns};
use trawl_url::domain_id;

/// Rows of one domain read at a time.
const STEP: u64 = 5_000;
/// Rows of many small domains that are read together: pages hold thousands of rows, and a read for each domain would decode
/// every page as often as there are domains in it.
const BATCH: u64 = 50_000;
const WITH_DOMAIN: Columns = WANTED.and(Columns::of(&[Column::Domain]));

/// Hears of a row and its domain.
type EachItem<'a> = dyn FnMut(&str, UrlItem) -> ControlFlow<()> + 'a;

/// Runs of one dataset that wait to be read together.
#[derive(Default)]
struct Waiting {
    /// By segment: neighbouring domains are neighbours in a file, so that their runs become one.
    runs: BTreeMap<usize, Vec<(usize, Run)>>,
    rows: u64,
    /// Whether some of them may be denied.
    touched: bool,
}

impl Pinned {
    /// Every row of a domain in a dataset, in the order of pages.
    pub fn export_domain(
        &self,
        name: &str,
        dataset_id: u32,
        filter: &Filter,
        who: &Principal,
        each: &mut EachItem<'_>,
    ) -> Result<(), QueryError> {
        let domain = self.domain_of(name)?;
        let filter = self.spelt(filter)?;
        let selected = self.select(&domain, dataset_id, &filter, who)?;
        let mut at = Some(0);
        while let Some(start) = at {
            let mut items = Vec::new();
            let (_, next) = self.page(&selected.postings, start, STEP, &filter, &selected.lost, &mut |rows, i| {
                items.push(item(rows, i));
                Ok(())
            })?;
            for mut item in items {
                item.finish(dataset_id, who);
                if each(&domain, item).is_break() {
                    return Ok(());
                }
            }
            at = next;
        }
        Ok(())
    }

    /// Every row of a dataset, domain by domain; rows of several segments are not merged.
    pub fn export_dataset(
        &self,
        dataset_id: u32,
        filter: &Filter,
        who: &Principal,
        each: &mut EachItem<'_>,
    ) -> Result<(), QueryError> {
        self.export_part(dataset_id, (0, 1), filter, who, each)
    }

    /// One of several parts of a dataset, given as number and count (at most 256): the domains whose hashes begin alike, so that
    /// a part reads only files of its own where the dataset has files for each prefix.
    pub fn export_part(
        &self,
        dataset_id: u32,
        (part, parts): (u8, u16),
        filter: &Filter,
        who: &Principal,
        each: &mut EachItem<'_>,
    ) -> Result<(), QueryError> {
        if self.visible(dataset_id, who).is_none() {
            return Err(QueryError::NoDataset { dataset_id });
        }
        let filter = self.spelt(filter)?;
        let mut waiting = Waiting::default();
        let mut ended = false;
        self.each_name("", None, &mut |name, found| {
            let is_ours = || ((domain_id(name) >> 56) * u64::from(parts)) >> 8 == u64::from(part);
            if parts > 1 && !is_ours() || self.deny.domain(name) {
                return Ok(ControlFlow::Continue(()));
            }
            for (segment, run) in runs_of(found, dataset_id)?.runs {
                waiting.rows += run.row_count;
                join(waiting.runs.entry(segment).or_default(), segment, run);
            }
            waiting.touched |= self.deny.touches(name);
            if waiting.rows >= BATCH {
                ended = self.flush(dataset_id, std::mem::take(&mut waiting), &filter, who, each)?.is_break();
            }
            Ok(if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if !ended {
            let _ = self.flush(dataset_id, waiting, &filter, who, each)?;
        }
        Ok(())
    }

    fn flush(
        &self,
        dataset_id: u32,
        waiting: Waiting,
        filter: &Filter,
        who: &Principal,
        each: &mut EachItem<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        let mut flow = ControlFlow::Continue(());
        for runs in waiting.runs.into_values() {
            self.scan(&Postings { runs }, WITH_DOMAIN, &mut |_, rows, i| {
                if passes(rows, i, filter) && !(waiting.touched && self.is_denied(rows, i)) {
                    let mut item = item(rows, i);
                    item.finish(dataset_id, who);
                    flow = each(rows.domain(i).unwrap_or_default(), item);
                }
                flow
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(flow)
    }
}

/// Adds a run, as part of the last one where it goes on behind it.
fn join(runs: &mut Vec<(usize, Run)>, segment: usize, run: Run) {
    match runs.last_mut() {
        Some((_, last))
            if (last.file_id, last.row_group, last.first_row + last.row_count)
                == (run.file_id, run.row_group, run.first_row) =>
        {
            last.row_count += run.row_count;
        }
        _ => runs.push((segment, run)),
    }
}
