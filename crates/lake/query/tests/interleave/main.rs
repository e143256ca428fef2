//! Living readers beside living writers, at every step of both.
//!
//! A writer is filmed once: a frame for every change that somebody else can see. A reader changes nothing, so a reader who
//! is paused while the writer goes on is a reader whose disk is another frame from some step on ([`readers`]). Two writers
//! take turns for real ([`writers`]).

#![expect(clippy::print_stdout, reason = "how much was explored, for those who run all of it")]

#[path = "../common/mod.rs"]
mod common;

mod acts;
mod film;
mod questions;
mod readers;
mod truth;
mod writers;
