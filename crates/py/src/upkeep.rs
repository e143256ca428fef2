//! Looking after a lake: each act is that of the command line, its facts are dicts, its remarks are Python's warnings.

use crate::lake::Lake;
use crate::{error, json, place, work};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use trawl_ingest::IngestSettings;
use trawl_maintain::{Compact, Event, GcSettings, Keeper, Named, Resolver, collect as collect_all, temp};
use trawl_store::manifest::{Deny, DenyTarget};
use trawl_store::{Cancel, is_remote};

type Fallible<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Bytes that a verification fetches from a server unless told otherwise: about a dollar where providers charge most.
const MAX_REMOTE_BYTES: u64 = 10 << 30;

/// Shows remarks as Python's warnings.
pub fn warn(py: Python<'_>, remarks: &[String]) -> PyResult<()> {
    let warn = py.import("warnings")?.getattr("warn")?;
    remarks.iter().try_for_each(|remark| warn.call1((remark,)).map(|_| ()))
}

/// Does an act on a thread; Ctrl-C ends it. Gives what it gave and what it remarked.
pub fn kept<T: Send>(
    py: Python<'_>,
    lake: &Lake,
    cancel: &Cancel,
    settings: &IngestSettings,
    act: impl FnOnce(&Keeper<'_>, &trawl_store::Lake) -> Fallible<T> + Send,
) -> PyResult<(T, Vec<String>)> {
    let name = place::nonce()?;
    let remarks = RefCell::new(Vec::new());
    let done = work::run(py, cancel, move || -> Fallible<(T, Vec<String>)> {
        let tell = |event| {
            if let Event::Remark(text) = event {
                remarks.borrow_mut().push(text);
            }
        };
        let keeper = Keeper {
            cancel: cancel.clone(),
            memory_bytes: settings.memory_bytes,
            wait: &std::thread::sleep,
            ..Keeper::new(name, &settings.temp_dir, &place::now, &tell)
        };
        let done = act(&keeper, &trawl_store::Lake::open(lake.store.clone())?)?;
        drop(keeper);
        Ok((done, remarks.take()))
    })?;
    done.map_err(|problem| error::of(&*problem))
}

/// The same with the usual settings, and with the facts that were told.
fn keep<T: Send>(
    py: Python<'_>,
    lake: &Lake,
    act: impl FnOnce(&Keeper<'_>, &trawl_store::Lake) -> trawl_maintain::Result<T> + Send,
) -> PyResult<(T, Vec<Value>)> {
    let settings = IngestSettings::new("upkeep", place::temp(&lake.uri));
    let ((done, facts), remarks) = kept(py, lake, &Cancel::default(), &settings, |keeper, lake| {
        let facts = RefCell::new(Vec::new());
        let done = {
            let tell = |event| match event {
                remark @ Event::Remark(_) => (keeper.tell)(remark),
                Event::Begins(_) | Event::At(_) | Event::Progress(_) => {}
                fact => facts.borrow_mut().push(serde_json::to_value(&fact)),
            };
            act(&Keeper { tell: &tell, ..keeper.clone() }, lake)?
        };
        Ok((done, facts.into_inner().into_iter().collect::<Result<Vec<_>, _>>()?))
    })?;
    warn(py, &remarks)?;
    Ok((done, facts))
}

/// Makes a version of what is committed.
pub fn publish<'py>(py: Python<'py>, lake: &Lake) -> PyResult<Bound<'py, PyAny>> {
    let (published, _) = keep(py, lake, |keeper, lake| keeper.publish(lake))?;
    lake.moved_on(py)?;
    let damaged: Vec<_> = published.damaged.iter().map(|(id, _)| id).collect();
    json::answer(
        py,
        &json!({
            "version": published.version, "commits": published.commits, "waiting": published.waiting, "damaged": damaged,
        }),
    )
}

/// Fewer and larger files.
pub fn compact<'py>(py: Python<'py>, lake: &Lake, what: &Compact) -> PyResult<Bound<'py, PyAny>> {
    let (_, facts) = keep(py, lake, |keeper, lake| keeper.compact(lake, what))?;
    lake.moved_on(py)?;
    json::answer(py, &facts)
}

/// Deletes what no kept version needs.
pub fn collect<'py>(
    py: Python<'py>,
    lake: &Lake,
    dry_run: bool,
    keep_versions: usize,
    keep_states: u64,
    grace_seconds: f64,
) -> PyResult<Bound<'py, PyAny>> {
    if !(0.0..1e15).contains(&grace_seconds) {
        return Err(error::refused(format!("grace_seconds: expected 0 or more, found {grace_seconds}")));
    }
    let grace_ms = (grace_seconds * 1000.0) as i64;
    let (mut report, gone) = keep(py, lake, |keeper, store| {
        let settings = GcSettings {
            keep_versions,
            keep_states,
            grace_ms,
            dry_run,
            cancel: keeper.cancel.clone(),
            ..GcSettings::new(format!("{}-gc", keeper.name))
        };
        let mut report = collect_all(store, place::now(), &settings)?;
        report.leftovers += temp::leftovers(&keeper.temp_dir, !dry_run)?;
        let gone: Vec<_> = report.gone.iter().map(|object| json!({"path": object.path, "bytes": object.len})).collect();
        Ok((report, gone))
    })
    .map(|((report, gone), _)| (serde_json::to_value(&report), gone))?;
    if let Ok(Value::Object(report)) = &mut report {
        report.insert("dry_run".into(), dry_run.into());
        report.insert("gone".into(), gone.into());
    }
    lake.moved_on(py)?;
    json::to_python(py, &report.map_err(|problem| error::of(&problem))?)
}

/// Looks at everything.
pub fn verify<'py>(
    py: Python<'py>,
    lake: &Lake,
    index_only: bool,
    max_read_bytes: Option<u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let max_read_bytes = max_read_bytes.or(is_remote(&lake.uri).then_some(MAX_REMOTE_BYTES));
    let (verified, facts) = keep(py, lake, |keeper, lake| {
        let manifest = lake.current()?;
        Keeper { max_read_bytes, ..keeper.clone() }.verify(lake, &manifest, index_only)
    })?;
    let faults: Vec<_> = facts.iter().filter_map(|fact| fact.get("fault")).collect();
    json::answer(
        py,
        &json!({
            "faults": faults, "damaged": verified.damaged, "unread_files": verified.unread_files,
            "unread_bytes": verified.unread_bytes,
        }),
    )
}

/// The one thing that is named.
pub fn named(
    url: Option<String>,
    prefix: Option<String>,
    domain: Option<String>,
    dataset: Option<String>,
) -> PyResult<Named> {
    match (url, prefix, domain, dataset) {
        (Some(text), None, None, None) => Ok(Named::Url(text)),
        (None, Some(text), None, None) => Ok(Named::Prefix(text)),
        (None, None, Some(text), None) => Ok(Named::Domain(text)),
        (None, None, None, Some(text)) => Ok(Named::Dataset(text)),
        _ => Err(error::refused("expected one of url=, prefix=, domain= and dataset=")),
    }
}

fn entries<'py>(py: Python<'py>, lake: &Lake, changed: HashMap<DenyTarget, Deny>) -> PyResult<Bound<'py, PyAny>> {
    lake.moved_on(py)?;
    json::answer(py, &changed.into_values().collect::<Vec<_>>())
}

/// Puts an entry on the deny list.
pub fn deny<'py>(
    py: Python<'py>,
    lake: &Lake,
    named: &Named,
    reason: Option<&str>,
    suffix: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let (new, _) = keep(py, lake, |keeper, lake| {
        let target = Resolver::new(lake, &*lake.current()?)?.to_add(named, suffix)?;
        keeper.deny(lake, &[target], reason)
    })?;
    entries(py, lake, new)
}

/// Takes an entry off the deny list.
pub fn allow<'py>(py: Python<'py>, lake: &Lake, named: &Named) -> PyResult<Bound<'py, PyAny>> {
    let (gone, _) = keep(py, lake, |keeper, lake| {
        let target = Resolver::new(lake, &*lake.current()?)?.to_remove(named)?;
        keeper.allow(lake, &[target])
    })?;
    entries(py, lake, gone)
}

/// The deny list.
pub fn denied<'py>(py: Python<'py>, lake: &Lake) -> PyResult<Bound<'py, PyAny>> {
    let (all, _) = keep(py, lake, |_, lake| Ok(lake.current()?.deny.clone()))?;
    json::answer(py, &all)
}

/// Removes denied rows from the files.
pub fn purge<'py>(py: Python<'py>, lake: &Lake, dataset: Option<u32>, dry_run: bool) -> PyResult<Bound<'py, PyAny>> {
    let (_, facts) = keep(py, lake, |keeper, lake| keeper.purge(lake, dataset, dry_run))?;
    lake.moved_on(py)?;
    json::answer(py, &facts)
}

/// Drops a dataset, or reports what that would remove.
pub fn drop_dataset<'py>(py: Python<'py>, lake: &Lake, dataset: u32, dry_run: bool) -> PyResult<Bound<'py, PyAny>> {
    let (dropped, _) = keep(py, lake, |keeper, lake| {
        let dropped = keeper.would_drop(lake, dataset)?;
        if !dry_run {
            keeper.drop_dataset(lake, dataset)?;
        }
        Ok(trawl_maintain::Dropped { dry_run, ..dropped })
    })?;
    lake.moved_on(py)?;
    json::answer(py, &dropped)
}
