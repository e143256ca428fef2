//! What tests of files are made of.
#![allow(dead_code)]

use trawl_meguri::Partition;
use trawl_meguri::schema::{HostRecord, UrlRecord};
use trawl_url::key::{host_key, path_key};

fn intern(arena: &mut Vec<u8>, text: &str) -> u64 {
    let at = arena.len() as u64;
    arena.push(text.len() as u8);
    arena.extend_from_slice(text.as_bytes());
    at
}

/// The fixture of the published vectors.
pub fn golden() -> Partition {
    let mut arena = Vec::new();
    let mut hosts = Vec::new();
    for (i, name) in ["example.com", "golang.org", "rust-lang.org"].into_iter().enumerate() {
        let reference = intern(&mut arena, name);
        let n = i as u32;
        let mut ip = [0; 16];
        ip[..4].copy_from_slice(&[10, 0, 0, n as u8 + 1]);
        hosts.push(HostRecord {
            host_key: host_key(name),
            host_ref: reference,
            grouping: 0,
            registrable_ref: reference,
            resolved_ip: ip,
            ip_expiry: 1000 + n,
            robots_fetched: 2000 + n,
            robots_expiry: 3000 + n,
            robots_ref: 7 + u64::from(n),
            crawl_delay: 10 + n as u16,
            host_next_eligible: 4000 + n,
            ip_next_eligible: 5000 + n,
            url_budget: 100 + n,
            url_count: n + 1,
            depth_cap: 8 + n as u16,
            host_score: 0.25 * n as f32,
            crawl_total: 50 + n,
            error_total: n,
            avg_latency: 120 + n as u16,
            flags: 2,
        });
    }
    hosts.sort_by_key(|h| h.host_key);
    let urls = [
        ("example.com", "/"),
        ("example.com", "/about"),
        ("example.com", "/blog?page=2"),
        ("golang.org", "/doc"),
        ("golang.org", "/pkg/strings"),
        ("rust-lang.org", "/learn"),
    ];
    let mut rows = Vec::new();
    for (i, (host, path)) in urls.into_iter().enumerate() {
        let n = i as u32;
        let url_ref = intern(&mut arena, &format!("{host}{path}"));
        let etag_ref = intern(&mut arena, &format!("etag-{path}"));
        rows.push(UrlRecord {
            host_key: host_key(host),
            path_key: path_key(path),
            status: n as u8 % 8,
            priority: n as f32 * 0.5,
            depth: n as u16,
            discovery_source: n as u8 % 5,
            url_ref,
            first_seen: 100 + n,
            last_crawled: 200 + n,
            last_changed: 300 + n,
            next_due: 400 + n,
            lambda: n as f32 * 0.1f32,
            crawl_count: n + 1,
            change_count: n,
            nochange_streak: n as u16,
            etag_ref,
            last_modified: 500 + n,
            content_fp: 0xABCD_0000 + u64::from(n),
            simhash: 0x1234_0000 + u64::from(n),
            http_status: 200 + n as u16,
            redirect_ref: u64::from(n),
            retry_count: n as u8,
            error_count: n as u16,
        });
    }
    rows.sort_by_key(|r| (r.host_key, r.path_key));
    Partition {
        id: 7,
        hostkey_lo: hosts[0].host_key,
        hostkey_hi: hosts[2].host_key,
        created: 482_817,
        urls: rows,
        hosts,
        arena,
        metadata: [(b"corpus".to_vec(), b"synthetic".to_vec()), (b"writer".to_vec(), b"meguri-test".to_vec())].into(),
        ..Partition::default()
    }
}

/// The small fixture with a schedule and without texts.
pub fn small() -> Partition {
    let url = |host_key, path_key, status, next_due| UrlRecord {
        host_key,
        path_key,
        status,
        next_due,
        ..UrlRecord::default()
    };
    let host = |host_key| HostRecord { host_key, crawl_delay: 10, ..HostRecord::default() };
    Partition {
        id: 1,
        hostkey_lo: 10,
        hostkey_hi: 20,
        urls: vec![url(10, 1, 1, 100), url(10, 2, 4, 0), url(20, 1, 1, 250), url(20, 2, 5, 175)],
        hosts: vec![host(10), host(20)],
        schedule: true,
        ..Partition::default()
    }
}

/// Random numbers from a seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

use bytes::Bytes;
use trawl_meguri::schema::{Extension, extension};
use trawl_meguri::{HostRow, Row};

/// The extension columns of [`rows`].
pub fn extensions() -> Vec<Extension> {
    vec![
        Extension { id: extension::DUE_MS, width: 8 },
        Extension { id: extension::HOPS, width: 2 },
        Extension { id: extension::VIA, width: 8 },
        Extension { id: extension::META_JSON, width: 8 },
    ]
}

/// `n` rows of a crawl over `hosts` hosts, in order; the first hosts have most of them.
pub fn rows(n: u64, hosts: u64, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let mut rows = Vec::new();
    for i in 0..n {
        // Squared: a few large hosts, many small ones.
        let share = random.below(1 << 16);
        let host = (hosts * share * share) >> 32;
        let name = format!("www.site{host}.example");
        let url = format!("https://{name}/section{}/item-{i}?id={}", random.below(20), random.below(1000));
        let crawled = random.below(3) == 0;
        let hour = 480_000 + random.below(700) as u32;
        let record = UrlRecord {
            host_key: host_key(&name),
            path_key: path_key(&url),
            status: if crawled { 4 } else { [0, 1, 1, 6][random.below(4) as usize] },
            priority: random.below(10) as f32 / 10.0,
            depth: random.below(6) as u16,
            discovery_source: 1,
            first_seen: hour,
            last_crawled: if crawled { hour + 2 } else { 0 },
            next_due: if random.below(4) > 0 { 480_700 + random.below(4000) as u32 } else { 0 },
            content_fp: if crawled { random.next() } else { 0 },
            http_status: if crawled { 200 } else { 0 },
            ..UrlRecord::default()
        };
        let text = |text: String| Bytes::from(text);
        rows.push(Row {
            record,
            url: text(url.clone()),
            etag: if crawled { text(format!("\"{:016x}\"", random.next())) } else { Bytes::new() },
            redirect: if i % 50 == 7 { text(format!("https://{name}/login")) } else { Bytes::new() },
            numbers: vec![(extension::DUE_MS, u64::from(record.next_due) * 3_600_000 + 5), (extension::HOPS, i % 3)],
            texts: vec![
                (extension::VIA, text(format!("https://{name}/"))),
                (extension::META_JSON, if i % 10 == 0 { text(format!("{{\"n\":{i}}}")) } else { Bytes::new() }),
            ],
            ..Row::default()
        });
    }
    rows.sort_by_key(|r| r.key());
    rows.dedup_by_key(|r| r.key());
    rows.iter_mut().zip(0..).for_each(|(row, number)| row.number = number);
    rows
}

/// The hosts of [`rows`].
pub fn hosts_of(rows: &[Row]) -> Vec<HostRow> {
    let mut hosts: Vec<HostRow> = Vec::new();
    for row in rows {
        if let Some(host) = hosts.last_mut().filter(|h| h.record.host_key == row.record.host_key) {
            host.record.url_count += 1;
            continue;
        }
        let url = std::str::from_utf8(&row.url).unwrap();
        let name = trawl_url::key::host_of(url);
        let host_key = row.record.host_key;
        let record = HostRecord { host_key, grouping: 1, crawl_delay: 10, url_count: 1, ..HostRecord::default() };
        hosts.push(HostRow {
            record,
            host: Bytes::copy_from_slice(name.as_bytes()),
            registrable: Bytes::copy_from_slice(name.strip_prefix("www.").unwrap().as_bytes()),
            robots: Bytes::from_static(b"\x01Disallow: /q"),
            ..HostRow::default()
        });
    }
    hosts
}

/// A row without what only its file knows: its number and references.
pub fn plain(row: &Row) -> Row {
    let mut row = row.clone();
    row.number = 0;
    (row.record.url_ref, row.record.etag_ref, row.record.redirect_ref) = (0, 0, 0);
    row
}

/// A host without its references.
pub fn plain_host(host: &HostRow) -> HostRow {
    let mut host = host.clone();
    (host.record.host_ref, host.record.registrable_ref, host.record.robots_ref) = (0, 0, 0);
    host
}

use std::sync::Arc;
use trawl_meguri::settings::Settings;
use trawl_meguri::{MeguriFile, ReadSettings, Writer, WriterOptions};

/// A writer of files like [`rows`].
pub fn options(settings: Settings) -> WriterOptions {
    WriterOptions { settings, url_extensions: extensions(), ..WriterOptions::default() }
}

/// The bytes of a file of rows and their hosts.
pub fn write(rows: &[Row], options: WriterOptions) -> Vec<u8> {
    let mut writer = Writer::new(options).unwrap();
    hosts_of(rows).iter().for_each(|host| writer.push_host(host).unwrap());
    rows.iter().for_each(|row| writer.push(row.into()).unwrap());
    let mut out = Vec::new();
    let written = writer.finish(&mut out).unwrap();
    assert_eq!((written.urls, written.bytes), (rows.len() as u64, out.len() as u64));
    out
}

/// Opens bytes.
pub fn open(bytes: impl Into<Bytes>) -> MeguriFile {
    let bytes: Bytes = bytes.into();
    MeguriFile::open(Arc::new(bytes), ReadSettings::default()).unwrap()
}

/// All rows of a file.
pub fn read_all(file: &MeguriFile) -> Vec<Row> {
    let mut cursor = file.cursor().unwrap();
    let mut rows = Vec::new();
    while let Some(row) = cursor.next_row().unwrap() {
        rows.push(row);
    }
    rows
}

/// All hosts of a file.
pub fn read_hosts(file: &MeguriFile) -> Vec<HostRow> {
    let mut cursor = file.hosts().unwrap();
    let mut hosts = Vec::new();
    while let Some(host) = cursor.next_host().unwrap() {
        hosts.push(host);
    }
    hosts
}
