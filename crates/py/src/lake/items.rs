//! Rows of a lake as a table that a thread makes, batch by batch.

use super::Lake;
use crate::feed::{Feed, Outcome, Sink};
use crate::rows::{Reader, Rows};
use crate::{error, work};
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use trawl_query::{ItemTable, Pinned, Principal, QueryError};
use trawl_store::Cancel;

impl Lake {
    /// Rows that `push` makes, item by item.
    pub(super) fn items(
        &self,
        dataset_id: u32,
        limit: Option<u64>,
        run: impl Fn(&Pinned, &Principal, &mut Each<'_>) -> Result<(), QueryError> + Send + Sync + 'static,
    ) -> Rows {
        let (pinned, who) = (self.pin(), self.who.clone());
        let run = Arc::new(run);
        let schema = ItemTable::new().schema();
        let told = schema.clone();
        Rows::new(schema, move |cancel| {
            let (pinned, who, run) = (pinned.clone(), who.clone(), run.clone());
            feed(told.clone(), cancel, move |sink| {
                let pinned = pinned.within(work::effort(&sink.cancel));
                let (mut table, mut left, mut failed) = (ItemTable::new(), limit.unwrap_or(u64::MAX), None);
                let ended = run(&pinned, &who, &mut |domain, item| {
                    if left == 0 {
                        return ControlFlow::Break(());
                    }
                    left -= 1;
                    table.push(dataset_id, domain, &item);
                    if !table.is_full() {
                        return ControlFlow::Continue(());
                    }
                    match table.take().map(|batch| sink.push(batch)) {
                        Ok(true) => ControlFlow::Continue(()),
                        Ok(false) => ControlFlow::Break(()),
                        Err(problem) => {
                            failed = Some(problem);
                            ControlFlow::Break(())
                        }
                    }
                });
                if let Some(problem) = failed {
                    return Err(problem.into());
                }
                ended.map_err(|problem| pinned.explain(problem))?;
                if table.rows() > 0 {
                    sink.push(table.take()?);
                }
                Ok(())
            })
        })
    }
}

type Each<'a> = dyn FnMut(&str, trawl_query::UrlItem) -> ControlFlow<()> + 'a;

/// Batches that a thread makes.
pub fn feed(
    schema: SchemaRef,
    cancel: Cancel,
    make: impl FnOnce(&Sink) -> Outcome + Send + 'static,
) -> PyResult<Reader> {
    let feed = Feed::start(schema, cancel, make).map_err(|problem| error::of(&problem))?;
    Ok(Box::new(feed))
}
