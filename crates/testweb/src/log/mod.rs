//! The request log: what clients really did, written by the server, read by the judge.
//!
//! Text, one event a line, fields separated by tabs; times are microseconds since the server started.
//!
//! ```text
//! testweb-log 1  seed=1  unix_us=1700000000000000                      line 1: version, world, time zero
//! T  time  unix-seconds  rate                                          virtual time was set
//! C  time  conn  local  remote                                         a connection was accepted
//! S  time  conn  name  protocol                                        its TLS handshake: server name, ALPN
//! R  start  length  conn  stream  proto  host  method  target  status  bytes  agent  if-none-match  since  end
//! X  time  conn                                                        the connection is closed
//! ```
//! A request is one line, written when it ends: `start` is when its head was complete, `length` how long until its last
//! bytes were about to be handed to the system: a client that waits for an answer never seems to overlap with itself. `bytes` counts the body sent. `end` is `ok`, or `cut` when the response was not sent to
//! its end. A response that never began has status 0.
//! An absent value is `-`. Bytes outside printable ASCII, tabs and backslashes are written `\xNN`.

mod read;
mod write;

#[cfg(test)]
mod tests;

pub use read::{Event, LogReader, Record};
pub(crate) use write::{Log, Pending, Proto, Request};
