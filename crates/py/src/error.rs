//! Errors as Python sees them: classes to catch, with file, byte, what was expected and what was found where that is known.

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use std::error::Error as StdError;
use std::io::ErrorKind;
use trawl_io::Op;
use trawl_model::DoorError;
use trawl_query::QueryError;

pyo3::create_exception!(
    trawl,
    Error,
    PyException,
    "Anything that Trawl reports. `path`, `offset`, `expected` and `found` are None where they are unknown."
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

/// The class of an error.
#[derive(Clone, Copy)]
enum Class {
    NotFound,
    Refused,
    Gone,
    Corrupt,
    Other,
}

/// What a message says in the form that all of Trawl's errors have: `file@byte: expected this, found that`.
#[derive(Default)]
struct Facts<'a> {
    path: Option<&'a str>,
    offset: Option<u64>,
    expected: Option<&'a str>,
    found: Option<&'a str>,
}

impl<'a> Facts<'a> {
    fn of(message: &'a str) -> Self {
        let mut facts = Self::default();
        let rest = match message.split_once(": ") {
            Some((place, rest)) => {
                let (place, is_path) = operand(place).map_or((place, false), |place| (place, true));
                let at = place.rsplit_once('@').and_then(|(path, at)| {
                    // `+n` is a place inside of a compressed member.
                    let offset = at.split_once('+').map_or(at, |(offset, _)| offset);
                    Some((path, offset.parse().ok()?))
                });
                if let Some((path, offset)) = at {
                    (facts.path, facts.offset) = (Some(path), Some(offset));
                } else if is_path || place.starts_with('/') || place.contains(['/', '.']) && !place.contains(' ') {
                    facts.path = Some(place);
                }
                rest
            }
            None => message,
        };
        if let Some((expected, found)) = rest.strip_prefix("expected ").and_then(|rest| rest.split_once(", found ")) {
            (facts.expected, facts.found) = (Some(expected), Some(found));
        }
        facts
    }
}

/// The file of a file operation that failed: `cannot read FILE@BYTE`. "sync" begins "sync directory", so the longest name counts.
fn operand(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("cannot ")?;
    let all = [
        Op::Open,
        Op::Create,
        Op::Read,
        Op::Write,
        Op::SetLen,
        Op::Sync,
        Op::SyncDir,
        Op::Rename,
        Op::Remove,
        Op::CreateDir,
        Op::List,
        Op::Metadata,
        Op::Lock,
        Op::Map,
        Op::Advise,
    ];
    let files = all.iter().filter_map(|op| rest.strip_prefix(&op.to_string())?.strip_prefix(' '));
    files.min_by_key(|file| file.len())
}

fn raise(class: Class, message: &str) -> PyErr {
    let error = match class {
        Class::NotFound => NotFound::new_err(message.to_owned()),
        Class::Refused => Refused::new_err(message.to_owned()),
        Class::Gone => Gone::new_err(message.to_owned()),
        Class::Corrupt => Corrupt::new_err(message.to_owned()),
        Class::Other => Error::new_err(message.to_owned()),
    };
    let facts = Facts::of(message);
    let described = Python::attach(|py| {
        let value = error.value(py);
        value.setattr("path", facts.path)?;
        value.setattr("offset", facts.offset)?;
        value.setattr("expected", facts.expected)?;
        value.setattr("found", facts.found)
    });
    described.err().unwrap_or(error)
}

/// What was given cannot be used.
pub fn refused(message: impl AsRef<str>) -> PyErr {
    raise(Class::Refused, message.as_ref())
}

/// What was asked for is not there.
pub fn not_found(message: impl AsRef<str>) -> PyErr {
    raise(Class::NotFound, message.as_ref())
}

/// Something else went wrong.
pub fn other(message: impl AsRef<str>) -> PyErr {
    raise(Class::Other, message.as_ref())
}

/// A file is damaged.
pub fn corrupt(message: impl AsRef<str>) -> PyErr {
    raise(Class::Corrupt, message.as_ref())
}

/// An error of any library below.
pub fn of(error: &(dyn StdError + 'static)) -> PyErr {
    // What a thread that makes batches met, as it was before Arrow carried it.
    if let Some(arrow_schema::ArrowError::ExternalError(inner)) = error.downcast_ref() {
        return of(&**inner);
    }
    raise(class(error), &error.to_string())
}

fn of_kind(kind: ErrorKind) -> Class {
    match kind {
        ErrorKind::NotFound => Class::NotFound,
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => Class::Corrupt,
        ErrorKind::InvalidInput => Class::Refused,
        _ => Class::Other,
    }
}

fn of_store(error: &trawl_store::Error) -> Class {
    use trawl_store::Error as E;
    match error {
        E::Io(error) => of_kind(error.kind()),
        E::NotFound { .. } | E::NotALake { .. } | E::UnknownDataset { .. } => Class::NotFound,
        E::Corrupt { .. } | E::OverLimit { .. } | E::TooNew { .. } | E::Lost { .. } | E::LostRows { .. } => {
            Class::Corrupt
        }
        E::BadName { .. } | E::Refused { .. } | E::AlreadyALake { .. } | E::OldLayout { .. } | E::Dropped { .. } => {
            Class::Refused
        }
        _ => Class::Other,
    }
}

/// What went wrong with a lake that was asked. A file that it lacks is damage, and not what was asked for: a caller that took the one for the
/// other would answer that there are no rows.
fn of_lake(error: &(dyn StdError + 'static)) -> Class {
    match class(error) {
        Class::NotFound
            if !matches!(error.downcast_ref::<trawl_store::Error>(), Some(trawl_store::Error::NotALake { .. })) =>
        {
            Class::Corrupt
        }
        class => class,
    }
}

fn class(error: &(dyn StdError + 'static)) -> Class {
    if let Some(error) = error.downcast_ref::<QueryError>() {
        return match (error, error.status()) {
            (QueryError::Lake { source } | QueryError::Unavailable { source }, _) => of_lake(&**source),
            (_, 404) => Class::NotFound,
            (_, 410) => Class::Gone,
            (_, 400) => Class::Refused,
            _ => Class::Other,
        };
    }
    if let Some(error) = error.downcast_ref::<trawl_store::Error>() {
        return of_store(error);
    }
    if let Some(error) = error.downcast_ref::<trawl_maintain::Error>() {
        use trawl_maintain::Error as E;
        return match error {
            E::Ingest(error) => class(error),
            E::Index(error) => class(error),
            E::Store(error) => of_store(error),
            E::Refused(_) => Class::Refused,
            _ => Class::Other,
        };
    }
    if let Some(error) = error.downcast_ref::<trawl_ingest::Error>() {
        use trawl_ingest::Error as E;
        return match error {
            E::Store(error) => of_store(error),
            E::Source(error) => class(error),
            E::Io(error) => of_kind(error.kind()),
            E::List(_) | E::Setting { .. } => Class::Refused,
            _ => Class::Other,
        };
    }
    if let Some(error) = error.downcast_ref::<trawl_index::Error>() {
        use trawl_index::Error as E;
        return match error {
            E::Store(error) => of_store(error),
            E::File(error) => of_kind(error.kind()),
            E::Input { .. } | E::Mismatch { .. } => Class::Corrupt,
            _ => Class::Other,
        };
    }
    if let Some(error) = error.downcast_ref::<trawl_io::Error>() {
        return of_kind(error.kind());
    }
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return of_kind(error.kind());
    }
    // What a container's reader says of its own is that the bytes are not what they should be.
    if let Some(error) = error.downcast_ref::<DoorError>() {
        return match class(&*error.source) {
            Class::Other if !error.source.is::<trawl_io::Error>() && !error.source.is::<std::io::Error>() => {
                Class::Corrupt
            }
            class => class,
        };
    }
    Class::Other
}
