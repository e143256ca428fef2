//! The `warcinfo` record at the start of a file.

use super::fields::{HeaderText, put_field};
use crate::digest::sha1_of;
use trawl_model::UnixMillis;

/// What every file of a run says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WarcInfo {
    /// Program and version: `trawl/0.1.0`.
    pub software: String,
    /// Who runs it, with a way to reach them.
    pub operator: Option<String>,
    /// The robots policy: `obey`, `ignore`.
    pub robots: Option<String>,
    /// `User-Agent` as sent.
    pub user_agent: Option<String>,
    /// The machine.
    pub hostname: Option<String>,
    /// The run this file is part of.
    pub is_part_of: Option<String>,
    /// Further fields, in order.
    pub more: Vec<(String, String)>,
}

impl WarcInfo {
    /// Header and block of the record.
    pub(super) fn record(&self, id: &str, file: &str, date: UnixMillis) -> (Vec<u8>, Vec<u8>) {
        let mut block = Vec::with_capacity(512);
        put_field(&mut block, "software", &self.software);
        put_field(&mut block, "format", "WARC File Format 1.1");
        put_field(
            &mut block,
            "conformsTo",
            "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        );
        let optional = [
            ("operator", &self.operator),
            ("robots", &self.robots),
            ("http-header-user-agent", &self.user_agent),
            ("hostname", &self.hostname),
            ("isPartOf", &self.is_part_of),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                put_field(&mut block, name, value);
            }
        }
        for (name, value) in &self.more {
            put_field(&mut block, name, value);
        }
        let mut header = HeaderText::new("warcinfo");
        header.put_id("WARC-Record-ID", id);
        header.put_date("WARC-Date", date);
        header.put("WARC-Filename", file);
        let header = header.finish("application/warc-fields", &sha1_of(&[&block]), block.len() as u64);
        (header, block)
    }
}
