//! The power goes, an answer of the store gets lost, or another writer comes, at every step of everything that changes a
//! lake: a reader sees the state before or the state after, whole; nothing is lost, nothing doubled, and a collector leaves
//! nothing behind.

mod answers;
#[path = "../common/mod.rs"]
mod common;
mod cuts;
#[path = "../../../store/tests/doubles/mod.rs"]
mod doubles;
mod races;
mod world;
