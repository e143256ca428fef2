//! Errors as Python sees them: classes to catch, with the place in the file where there is one.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use trawl_model::{DoorError, Place};
use trawl_query::QueryError;
use trawl_url::Reject;

pyo3::create_exception!(
    trawl,
    Error,
    PyException,
    "Anything that Trawl reports. `path`, `offset` are set where known."
);
pyo3::create_exception!(trawl, NotFound, Error, "What was asked for is not there, or may not be seen.");
pyo3::create_exception!(
    trawl,
    Refused,
    Error,
    "What was given cannot be used: not a URL, a domain, a cursor, a column."
);
pyo3::create_exception!(trawl, Gone, Error, "The version was collected: call `Lake.refresh()` and ask again.");
pyo3::create_exception!(trawl, Corrupt, Error, "A file is damaged, truncated or of another format.");

/// Gives an error its `path` and `offset`, `None` where they are unknown.
fn located(py: Python<'_>, error: PyErr, place: Option<&Place>) -> PyErr {
    let value = error.value(py);
    let path = place.map(|place| place.file.to_string());
    let set = value.setattr("path", path).and_then(|()| value.setattr("offset", place.map(|place| place.offset)));
    // An exception that takes no attributes still says what happened.
    let _ = set;
    error
}

/// An error without a place.
pub fn of<E: Into<PyErr>>(error: E) -> PyErr {
    let error = error.into();
    Python::attach(|py| located(py, error, None))
}

/// What was given cannot be used.
pub fn refused(message: impl Into<String>) -> PyErr {
    of(Refused::new_err(message.into()))
}

/// An error of a question.
pub fn of_query(error: QueryError) -> PyErr {
    let message = error.to_string();
    of(match error.status() {
        404 => NotFound::new_err(message),
        410 => Gone::new_err(message),
        400 => Refused::new_err(message),
        _ => Error::new_err(message),
    })
}

/// An error of an archive.
pub fn of_door(error: &DoorError) -> PyErr {
    let message = error.to_string();
    let io = error.source.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    let raised = match io {
        Some(std::io::ErrorKind::NotFound) => NotFound::new_err(message),
        Some(_) => Error::new_err(message),
        None => Corrupt::new_err(message),
    };
    Python::attach(|py| located(py, raised, error.at.as_ref()))
}

/// A URL that Trawl does not take.
pub fn of_reject(reject: &Reject) -> PyErr {
    refused(reject.to_string())
}

/// Any other error of a library.
pub fn of_any(error: &dyn std::error::Error) -> PyErr {
    of(Error::new_err(error.to_string()))
}
