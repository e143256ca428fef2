//! Stores for tests of everything that stands on a lake: one counts what is asked of it, one loses answers, one holds reads
//! back.
#![allow(dead_code, unused_imports, reason = "not every test file needs all of it")]

mod counting;
mod gated;
mod lost_answers;

pub use counting::{CountingStore, Counts};
pub use gated::GatedStore;
pub use lost_answers::{Lost, LostAnswers};
