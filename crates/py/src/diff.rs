//! Two datasets, compared.

use crate::feed::Sink;
use crate::lake::feed;
use crate::rows::Rows;
use crate::table::{Cell, Table, schema};
use crate::{error, json, work};
use arrow_schema::DataType;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use trawl_query::{Comparison, DiffEvent, Pinned, Principal, Side};
use trawl_store::Cancel;

/// Two datasets side by side. Each method compares anew.
#[pyclass(frozen, module = "trawl")]
pub struct Diff {
    pub(crate) pinned: Arc<Pinned>,
    pub(crate) who: Principal,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) domain: Option<String>,
}

fn side(side: Side) -> &'static str {
    match side {
        Side::A => "a",
        Side::B => "b",
        Side::Both => "both",
    }
}

impl Diff {
    fn rows(&self, columns: &[(&str, DataType, bool)], urls: bool, both: bool) -> Rows {
        let columns = schema(columns);
        let (pinned, who, a, b, domain) = (self.pinned.clone(), self.who.clone(), self.a, self.b, self.domain.clone());
        let told = columns.clone();
        Rows::new(columns, move |cancel| {
            let (pinned, who, domain, columns) = (pinned.clone(), who.clone(), domain.clone(), told.clone());
            feed(told.clone(), cancel, move |sink: &Sink| {
                let pinned = pinned.within(work::effort(&sink.cancel));
                let mut table = Table::new(&columns)?;
                let mut failed = None;
                let what = Comparison { a, b, domain: domain.as_deref(), urls: true };
                pinned
                    .diff(&what, &who, &mut |event| {
                        let pushed = match event {
                            DiffEvent::Url { domain, side: found, url } if urls && (both || found != Side::Both) => {
                                let cells = [domain, side(found), url];
                                table.push(cells.map(|text| Cell::Text(Some(text))))
                            }
                            DiffEvent::Domain(diff) if !urls => {
                                let tally = diff.urls.unwrap_or_default();
                                let counts = [diff.rows_a, diff.rows_b, tally.only_a, tally.only_b, tally.both];
                                let names = [diff.domain.as_str(), side(diff.side)].map(|text| Cell::Text(Some(text)));
                                table.push(names.into_iter().chain(counts.map(Cell::Count)))
                            }
                            _ => Ok(()),
                        };
                        let made = pushed.and_then(|()| Ok(!table.is_full() || sink.push(table.take()?)));
                        match made {
                            Ok(true) => ControlFlow::Continue(()),
                            Ok(false) => ControlFlow::Break(()),
                            Err(problem) => {
                                failed = Some(problem);
                                ControlFlow::Break(())
                            }
                        }
                    })
                    .map_err(|problem| pinned.explain(problem))?;
                if let Some(problem) = failed {
                    return Err(problem.into());
                }
                if table.rows() > 0 {
                    sink.push(table.take()?);
                }
                Ok(())
            })
        })
    }
}

#[pymethods]
impl Diff {
    /// URLs that only one dataset has (`in` is `a` or `b`); with `both=True` also those in both.
    #[pyo3(signature = (*, both=false))]
    fn urls(&self, both: bool) -> Rows {
        let columns =
            [("domain", DataType::Utf8, false), ("in", DataType::Utf8, false), ("url", DataType::Utf8, false)];
        self.rows(&columns, true, both)
    }

    /// Every domain of either dataset, with its rows and URLs.
    fn domains(&self) -> Rows {
        let count = |name| (name, DataType::UInt64, false);
        let text = |name| (name, DataType::Utf8, false);
        let columns = [
            text("domain"),
            text("in"),
            count("rows_a"),
            count("rows_b"),
            count("urls_only_a"),
            count("urls_only_b"),
            count("urls_both"),
        ];
        self.rows(&columns, false, true)
    }

    /// How many domains and URLs are where, as `trawl query diff --json` says at its end.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let what = Comparison { a: self.a, b: self.b, domain: self.domain.as_deref(), urls: true };
        let cancel = Cancel::default();
        let pinned = self.pinned.within(work::effort(&cancel));
        let found = work::run(py, &cancel, || {
            let found = pinned.diff(&what, &self.who, &mut |_| ControlFlow::Continue(()));
            found.map_err(|problem| pinned.explain(problem))
        })?;
        let found = found.map_err(|problem| error::of(&problem))?;
        json::answer(py, &found)
    }
}
