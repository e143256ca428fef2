//! The `warcinfo` record at the start of a file.

use super::fields::{HeaderText, put_field};
use crate::digest::sha1_of;
use trawl_io::format::About;
use trawl_model::UnixMillis;

/// Header and block of the record.
pub(super) fn info_record(about: &About, id: &str, file: &str, date: UnixMillis) -> (Vec<u8>, Vec<u8>) {
    let mut block = Vec::with_capacity(512);
    put_field(&mut block, "software", &about.software);
    put_field(&mut block, "format", "WARC File Format 1.1");
    put_field(
        &mut block,
        "conformsTo",
        "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
    );
    let optional = [
        ("operator", &about.operator),
        ("robots", &about.robots),
        ("http-header-user-agent", &about.user_agent),
        ("hostname", &about.hostname),
        ("isPartOf", &about.is_part_of),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            put_field(&mut block, name, value);
        }
    }
    for (name, value) in &about.more {
        put_field(&mut block, name, value);
    }
    let mut header = HeaderText::new("warcinfo");
    header.put_id("WARC-Record-ID", id);
    header.put_date("WARC-Date", date);
    header.put("WARC-Filename", file);
    let header = header.finish("application/warc-fields", &sha1_of(&[&block]), block.len() as u64);
    (header, block)
}
