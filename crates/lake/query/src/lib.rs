//! Pin a version and ask it
