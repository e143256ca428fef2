//! Times as Python gives them.

use crate::error;
use pyo3::prelude::*;
use trawl_model::{UnixMillis, date};

/// A moment: text in any form that `trawl` reads, a `datetime` with its zone, or seconds since 1970.
pub fn moment(value: &Bound<'_, PyAny>) -> PyResult<UnixMillis> {
    if let Ok(text) = value.extract::<String>() {
        return date::parse(&text).map_err(error::refused);
    }
    let seconds = match value.extract::<f64>() {
        Ok(seconds) => seconds,
        // Python reads such a datetime as local time, pandas as UTC: what was meant cannot be known.
        Err(_) if value.getattr("tzinfo").is_ok_and(|zone| zone.is_none()) => {
            return Err(error::refused(format!("expected a time with its zone, such as UTC, found {value}")));
        }
        Err(_) => value.call_method0("timestamp")?.extract()?,
    };
    // Every moment of the years 0 to 9999 is exact in a double of milliseconds.
    let millis = (seconds * 1000.0).round();
    if !(-1e15..1e15).contains(&millis) {
        return Err(error::refused(format!("expected a time of the years 0000 to 9999, found {seconds} seconds")));
    }
    Ok(UnixMillis(millis as i64))
}

/// The same where there may be none.
pub fn moment_if(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<UnixMillis>> {
    value.map(moment).transpose()
}
