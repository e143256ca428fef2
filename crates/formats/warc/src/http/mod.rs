//! HTTP messages as archives hold them: heads split from bodies, looked into, and kept in agreement with what is stored.

mod chunked;
mod coding;
mod settle;

pub use chunked::Dechunk;
pub use coding::{content_codings, decode_content};
pub use settle::settle_head;
pub use trawl_model::{Head, head_len};

/// Whether a block that begins like this can be an HTTP message.
pub fn may_begin(data: &[u8], request: bool) -> bool {
    if request {
        return data.first().is_none_or(u8::is_ascii_graphic);
    }
    b"HTTP/".starts_with(data.get(..5).unwrap_or(data))
}

#[cfg(test)]
mod tests;
