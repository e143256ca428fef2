//! Stores for tests of everything that stands on a lake: one counts what is asked of it, one loses answers.
#![allow(dead_code, unused_imports, reason = "not every test file needs all of it")]

mod counting;
mod lost_answers;

pub use counting::{CountingStore, Counts};
pub use lost_answers::{Lost, LostAnswers};
