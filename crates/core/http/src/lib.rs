//! HTTP/1.1 as bytes: what a message on the wire, or in an archive, says about itself.
//!
//! ```text
//! bytes ─ head_len ─► Head ─┬─ status, fields, text        leniently: whatever can be understood is
//!                           ├─ Framing::of                 where the body ends (RFC 9112, 6.3)
//!                           ├─ content_codings             which codings the body has
//!                           └─ stored                      the head that an archive keeps beside the body
//! body  ─ Chunked (bytes pushed in) or Dechunk (a reader) ─ decode_content ─► content
//! ```
//!
//! The crawler receives with it, archives are read and written with it, so that both understand a head alike. No files, no
//! network, no HTTP/2: its messages are archived as HTTP/1.1 text.
//!
//! ```
//! use trawl_http::{Framing, Head, head_len};
//! let message = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/html\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
//! let head = Head::new(&message[..head_len(message, 0).unwrap()]);
//! assert_eq!((head.status(), head.text("content-type")), (Some(200), Some("text/html".into())));
//! assert_eq!(Framing::of(&head), Framing::Chunked);
//! let stored = b"HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 5\r\nContent-Type: text/html\r\n\r\n";
//! assert_eq!(head.stored(5), stored.as_slice());
//! ```
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic))]

mod chunked;
mod coding;
mod framing;
mod head;
mod stored;

pub use chunked::{Chunked, Dechunk, Step};
pub use coding::decode_content;
pub use framing::Framing;
pub use head::{Field, Head, head_len, may_begin};
