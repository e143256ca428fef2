//! The trawl binary.
fn main() {}
