//! The columns of both tables, and records made of them.

use crate::encoding::Encoding;

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Table {
    /// One row a URL, in order of (host key, path key).
    Urls,
    /// One row a host, in order of host key.
    Hosts,
}

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// An unsigned number, with a zone map.
    Number,
    /// An arena offset, with a zone map.
    Reference,
    /// An `f32` by its bits; no zone map.
    Float,
    /// 16 bytes; always RAW, no zone map.
    Bytes,
}

/// One column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnDef {
    /// Its number in the directory.
    pub id: u16,
    /// Its name.
    pub name: &'static str,
    /// Bytes of a value: 1, 2, 4, 8 or 16.
    pub width: u8,
    /// What its values are.
    pub kind: ColumnKind,
    /// The encoding that the reference tries.
    pub nominal: Encoding,
}

impl ColumnDef {
    /// Whether its smallest and largest value stand in the footer.
    pub fn has_zone(&self) -> bool {
        matches!(self.kind, ColumnKind::Number | ColumnKind::Reference)
    }
}

/// Reads and writes a field as the unsigned number a column holds.
pub(crate) trait Field: Copy {
    fn to_value(self) -> u64;
    fn from_value(value: u64) -> Self;
}

macro_rules! number_fields {
    ($($t:ty),*) => {$(
        impl Field for $t {
            fn to_value(self) -> u64 {
                u64::from(self)
            }
            fn from_value(value: u64) -> Self {
                // A decoder gives no value wider than its column.
                value as $t
            }
        }
    )*};
}
number_fields!(u8, u16, u32, u64);

impl Field for f32 {
    fn to_value(self) -> u64 {
        u64::from(self.to_bits())
    }
    fn from_value(value: u64) -> Self {
        f32::from_bits(value as u32)
    }
}

macro_rules! table {
    (
        $(#[$doc:meta])* $record:ident, $columns:ident, $count:expr;
        $( $id:literal $field:ident : $type:ty, $kind:ident, $nominal:ident, $text:literal; )*
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
        pub struct $record {
            $( #[doc = $text] pub $field: $type, )*
        }

        /// Every column of the table, by id.
        pub const $columns: [ColumnDef; $count] = [
            $( ColumnDef {
                id: $id,
                name: stringify!($field),
                width: size_of::<$type>() as u8,
                kind: ColumnKind::$kind,
                nominal: Encoding::$nominal,
            }, )*
        ];
    };
}

macro_rules! columns_of {
    ($record:ident; $( $id:literal $field:ident )*) => {
        impl $record {
            /// Appends one column of many records; `false` for a column that is none of numbers.
            pub(crate) fn gather(records: &[$record], id: u16, out: &mut Vec<u64>) -> bool {
                match id {
                    $( $id => out.extend(records.iter().map(|r| r.$field.to_value())), )*
                    _ => return false,
                }
                true
            }

            /// Sets one column of many records, value by value.
            pub(crate) fn scatter(records: &mut [$record], id: u16, values: impl Iterator<Item = u64>) {
                match id {
                    $( $id => records.iter_mut().zip(values).for_each(|(r, v)| r.$field = Field::from_value(v)), )*
                    _ => {}
                }
            }
        }
    };
}

table! {
    /// One URL as the table stores it: texts are offsets into the arena, 0 for none. Hours are hours since 1970.
    UrlRecord, URL_COLUMNS, 23;
    0 host_key: u64, Number, Rle, "High half of the URL key.";
    1 path_key: u64, Number, DeltaFor, "Low half of the URL key.";
    2 status: u8, Number, Dict, "See [`STATUS_NAMES`]; unknown values are carried.";
    3 priority: f32, Float, Dict, "Importance, for ordering.";
    4 depth: u16, Number, For, "Links from the nearest seed.";
    5 discovery_source: u8, Number, Dict, "See [`SOURCE_NAMES`].";
    6 url_ref: u64, Reference, Delta, "The URL.";
    7 first_seen: u32, Number, Delta, "Hour of discovery.";
    8 last_crawled: u32, Number, Delta, "Hour of the last successful fetch, 0 never.";
    9 last_changed: u32, Number, Delta, "Hour of the last observed change.";
    10 next_due: u32, Number, Delta, "Hour of the next crawl, 0 unscheduled.";
    11 lambda: f32, Float, Dict, "Changes an hour, estimated.";
    12 crawl_count: u32, Number, For, "Successful fetches.";
    13 change_count: u32, Number, For, "Fetches that saw a change.";
    14 nochange_streak: u16, Number, For, "Fetches without a change since the last one.";
    15 etag_ref: u64, Reference, Delta, "The ETag.";
    16 last_modified: u32, Number, Delta, "Hour of Last-Modified, 0 none.";
    17 content_fp: u64, Number, Raw, "Fingerprint of the body, 0 none.";
    18 simhash: u64, Number, Raw, "Signature of near duplicates, 0 none.";
    19 http_status: u16, Number, Dict, "Status of the last fetch.";
    20 redirect_ref: u64, Reference, Rle, "Where it redirects.";
    21 retry_count: u8, Number, For, "Transient failures in a row.";
    22 error_count: u16, Number, For, "Failures ever.";
}
columns_of! { UrlRecord;
    0 host_key 1 path_key 2 status 3 priority 4 depth 5 discovery_source 6 url_ref 7 first_seen 8 last_crawled
    9 last_changed 10 next_due 11 lambda 12 crawl_count 13 change_count 14 nochange_streak 15 etag_ref 16 last_modified
    17 content_fp 18 simhash 19 http_status 20 redirect_ref 21 retry_count 22 error_count
}

table! {
    /// One host as the table stores it. Hours and seconds are since 1970.
    HostRecord, HOST_COLUMNS, 20;
    0 host_key: u64, Number, DeltaFor, "Key of the host group.";
    1 host_ref: u64, Reference, Delta, "The host group.";
    2 grouping: u8, Number, Dict, "0 registrable domain, 1 full host.";
    3 registrable_ref: u64, Reference, Delta, "The registrable domain.";
    4 resolved_ip: [u8; 16], Bytes, Raw, "Cached address, IPv4 as `::ffff:a.b.c.d`; zeros for none.";
    5 ip_expiry: u32, Number, Delta, "Hour until which it holds.";
    6 robots_fetched: u32, Number, Delta, "Hour in which robots.txt was fetched.";
    7 robots_expiry: u32, Number, Delta, "Hour until which it holds.";
    8 robots_ref: u64, Reference, Delta, "Packed robots.txt ([`crate::robots`]), 0 none.";
    9 crawl_delay: u16, Number, Dict, "Tenths of a second.";
    10 host_next_eligible: u32, Number, Delta, "Second from which the host may be asked.";
    11 ip_next_eligible: u32, Number, Delta, "Second from which its address may be asked.";
    12 url_budget: u32, Number, For, "Most URLs, 0 unlimited.";
    13 url_count: u32, Number, For, "URLs in the frontier.";
    14 depth_cap: u16, Number, Dict, "Largest depth, 0 unlimited.";
    15 host_score: f32, Float, Dict, "Imported quality, 0 none.";
    16 crawl_total: u32, Number, For, "Fetches ever that had a status.";
    17 error_total: u32, Number, For, "429 and 5xx ever.";
    18 avg_latency: u16, Number, For, "Milliseconds, smoothed.";
    19 flags: u16, Number, Dict, "Bits: trap suspect, robots missing, dead host, grouping override.";
}
columns_of! { HostRecord;
    0 host_key 1 host_ref 2 grouping 3 registrable_ref 5 ip_expiry 6 robots_fetched 7 robots_expiry 8 robots_ref
    9 crawl_delay 10 host_next_eligible 11 ip_next_eligible 12 url_budget 13 url_count 14 depth_cap 15 host_score
    16 crawl_total 17 error_total 18 avg_latency 19 flags
}

/// Names of `status`, by value.
pub const STATUS_NAMES: [&str; 9] =
    ["discovered", "scheduled", "ready", "in_flight", "crawled", "due_recrawl", "gone", "excluded_robots", "trapped"];
/// A merge with `drop_gone` drops rows with this status.
pub const STATUS_GONE: u8 = 6;
/// Names of `discovery_source`, by value.
pub const SOURCE_NAMES: [&str; 5] = ["seed", "link", "sitemap", "redirect", "manual"];

/// Columns that the reference does not know and skips: ids from 128 on. Those from 192 on hold arena offsets, so that a
/// merge can carry a column whose meaning it does not know.
pub mod extension {
    /// The first id.
    pub const FIRST: u16 = 128;
    /// The first id of arena offsets; those are 8 bytes wide.
    pub const FIRST_REFERENCE: u16 = 192;
    /// The last id.
    pub const LAST: u16 = 255;
    /// Due time in milliseconds since 1970, 8 bytes; `next_due` holds its hour.
    pub const DUE_MS: u16 = 128;
    /// Links followed from a seed across hosts, 2 bytes.
    pub const HOPS: u16 = 129;
    /// Order of arrival, 8 bytes.
    pub const ARRIVAL: u16 = 130;
    /// Offset of the last capture in its archive file, 8 bytes.
    pub const ARCHIVE_OFFSET: u16 = 131;
    /// Where the crawler noted what the last capture led to, 8 bytes; 0 for nowhere.
    pub const NOTE: u16 = 132;
    /// Of a row that holds a robots.txt: until when it is believed, in milliseconds since 1970, 8 bytes.
    pub const ROBOTS_UNTIL: u16 = 133;
    /// Priority bucket, 0 to 63, 1 byte: a number, so that a reader need not unpack `priority`.
    pub const BUCKET: u16 = 134;
    /// Of a host: URLs that wait, 4 bytes.
    pub const WAITING: u16 = 140;
    /// Of a host: when the first of its waiting URLs is due, in milliseconds since 1970, 8 bytes; 0 for at once.
    pub const EARLIEST_DUE: u16 = 141;
    /// Of a host: not before this millisecond since 1970, 8 bytes.
    pub const NEXT_MS: u16 = 142;
    /// Of a host: pleas, failed connections and troubles in a row, 16 bits each from the lowest, 8 bytes.
    pub const BACKOFF: u16 = 143;
    /// Of a host: when the first of its failed connections failed, in milliseconds since 1970, 8 bytes; 0 for never.
    pub const AWAY_SINCE: u16 = 144;
    /// Of a host: URLs admitted to be fetched, 4 bytes.
    pub const ADMITTED: u16 = 145;
    /// Of a host: calendar and facet URLs seen and trap flags, a byte each from the lowest, 4 bytes.
    pub const TRAP: u16 = 146;
    /// Of a host: crawl-delay of its robots.txt in milliseconds, 4 bytes.
    pub const DELAY_MS: u16 = 147;
    /// Of a host: delay that the operator asked for in milliseconds, 4 bytes.
    pub const EXTRA_DELAY_MS: u16 = 148;
    /// Of a host: URLs parked as a trap's, 4 bytes.
    pub const PARKED: u16 = 149;
    /// Of a host: what the operator asked for, a bit each: paused, blocked, 1 byte.
    pub const ORDERS: u16 = 150;
    /// Of a host: interval that it earned by asking us to slow down, in milliseconds, 4 bytes.
    pub const SLOWED_MS: u16 = 151;
    /// URL of the page it was found on.
    pub const VIA: u16 = 192;
    /// JSON object of whatever its source knew.
    pub const META_JSON: u16 = 193;
    /// Archive file of the last capture.
    pub const ARCHIVE_FILE: u16 = 194;
    /// Of a host: why it is asked no more.
    pub const GIVEN_UP: u16 = 195;
    /// Of a host: its origins that do not answer, as a JSON array.
    pub const AWAY: u16 = 196;

    /// The name of a known one.
    pub fn name(id: u16) -> Option<&'static str> {
        Some(match id {
            DUE_MS => "due_ms",
            HOPS => "hops",
            ARRIVAL => "arrival",
            ARCHIVE_OFFSET => "archive_offset",
            NOTE => "note",
            ROBOTS_UNTIL => "robots_until",
            BUCKET => "bucket",
            WAITING => "waiting",
            EARLIEST_DUE => "earliest_due",
            NEXT_MS => "next_ms",
            BACKOFF => "backoff",
            AWAY_SINCE => "away_since",
            ADMITTED => "admitted",
            TRAP => "trap",
            DELAY_MS => "delay_ms",
            EXTRA_DELAY_MS => "extra_delay_ms",
            PARKED => "parked",
            ORDERS => "orders",
            SLOWED_MS => "slowed_ms",
            GIVEN_UP => "given_up",
            AWAY => "away",
            VIA => "via",
            META_JSON => "meta_json",
            ARCHIVE_FILE => "archive_file",
            _ => return None,
        })
    }

    /// Whether its values are arena offsets.
    pub fn is_reference(id: u16) -> bool {
        (FIRST_REFERENCE..=LAST).contains(&id)
    }
}

/// A column beside the fixed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Extension {
    /// See [`extension`].
    pub id: u16,
    /// Bytes of a value: 1, 2, 4 or 8; 8 for references.
    pub width: u8,
}

impl Table {
    /// Its fixed columns.
    pub fn columns(self) -> &'static [ColumnDef] {
        match self {
            Table::Urls => &URL_COLUMNS,
            Table::Hosts => &HOST_COLUMNS,
        }
    }
}

/// How an extension column is written.
pub(crate) fn extension_def(extension: Extension) -> ColumnDef {
    let Extension { id, width } = extension;
    let kind = if extension::is_reference(id) { ColumnKind::Reference } else { ColumnKind::Number };
    let name = extension::name(id).unwrap_or("extension");
    ColumnDef { id, name, width, kind, nominal: Encoding::Raw }
}
