//! The rules of the frontier, one file each. They compute; the frontier remembers.

pub(crate) mod limits;
pub(crate) mod politeness;
pub(crate) mod priority;
pub(crate) mod trap;
