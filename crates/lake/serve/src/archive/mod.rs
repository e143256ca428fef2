//! The lake as web-archive clients expect it: a CDX server, Memento, raw captures.

mod cdx;
mod cdx_resume;
mod cdx_rows;
mod memento;

pub(crate) use cdx::{CdxParams, cdx};
pub(crate) use memento::{memento, timegate, timemap};
