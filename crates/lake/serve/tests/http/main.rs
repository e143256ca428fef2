//! The API over real sockets: answers, refusals, limits, rights, captures, a lake that changes underneath.

mod access;
mod calls;
mod captures;
mod cdx;
mod changes;
mod export;
mod fixture;
mod limits;
mod memento;
mod refusals;
mod turns;
