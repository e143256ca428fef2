//! Rows as JSON, for people and programs.

use crate::diff::hex;
use crate::reader::{HostRow, Row};
use crate::schema::{SOURCE_NAMES, STATUS_NAMES, extension};
use bytes::Bytes;
use serde_json::{Map, Value};

/// One URL: texts instead of references, names of states beside their numbers. Facts that are 0 or empty are left out, except
/// status, priority and depth.
pub fn row(row: &Row) -> Value {
    let r = &row.record;
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
    put("row", row.number.into());
    put("key", hex(row.key()).into());
    put("url", text(&row.url));
    put("status", STATUS_NAMES.get(usize::from(r.status)).map_or_else(|| r.status.into(), |name| (*name).into()));
    put("priority", number(r.priority));
    put("depth", r.depth.into());
    let source = SOURCE_NAMES.get(usize::from(r.discovery_source));
    put("discovery_source", source.map_or_else(|| r.discovery_source.into(), |name| (*name).into()));
    let mut some = |name: &str, value: u64| {
        if value != 0 {
            put(name, value.into());
        }
    };
    some("first_seen", r.first_seen.into());
    some("last_crawled", r.last_crawled.into());
    some("last_changed", r.last_changed.into());
    some("next_due", r.next_due.into());
    some("crawl_count", r.crawl_count.into());
    some("change_count", r.change_count.into());
    some("nochange_streak", r.nochange_streak.into());
    some("last_modified", r.last_modified.into());
    some("http_status", r.http_status.into());
    some("retry_count", r.retry_count.into());
    some("error_count", r.error_count.into());
    for (id, value) in &row.numbers {
        some(&extension_name(*id), *value);
    }
    if r.lambda != 0.0 {
        put("lambda", number(r.lambda));
    }
    // 64-bit hashes are no numbers to most readers of JSON.
    for (name, value) in [("content_fp", r.content_fp), ("simhash", r.simhash)] {
        if value != 0 {
            put(name, format!("{value:016x}").into());
        }
    }
    let texts = [("etag".to_owned(), &row.etag), ("redirect".to_owned(), &row.redirect)];
    let more = row.texts.iter().map(|(id, text)| (extension_name(*id), text));
    for (name, value) in texts.into_iter().chain(more).filter(|(_, value)| !value.is_empty()) {
        put(&name, text(value));
    }
    Value::Object(out)
}

/// One host. Facts that are 0 or empty are left out.
pub fn host(host: &HostRow) -> Value {
    let r = &host.record;
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
    put("host_key", format!("{:016x}", r.host_key).into());
    put("host", text(&host.host));
    put("registrable", text(&host.registrable));
    put("grouping", if r.grouping == 0 { "registrable" } else { "full_host" }.into());
    if r.resolved_ip != [0; 16] {
        let ip = std::net::Ipv6Addr::from(r.resolved_ip);
        put("resolved_ip", ip.to_ipv4_mapped().map_or_else(|| ip.to_string(), |v4| v4.to_string()).into());
    }
    if r.host_score != 0.0 {
        put("host_score", number(r.host_score));
    }
    let numbers: [(&str, u64); 14] = [
        ("ip_expiry", r.ip_expiry.into()),
        ("robots_fetched", r.robots_fetched.into()),
        ("robots_expiry", r.robots_expiry.into()),
        ("crawl_delay", r.crawl_delay.into()),
        ("host_next_eligible", r.host_next_eligible.into()),
        ("ip_next_eligible", r.ip_next_eligible.into()),
        ("url_budget", r.url_budget.into()),
        ("url_count", r.url_count.into()),
        ("depth_cap", r.depth_cap.into()),
        ("crawl_total", r.crawl_total.into()),
        ("error_total", r.error_total.into()),
        ("avg_latency", r.avg_latency.into()),
        ("flags", r.flags.into()),
        ("robots_bytes", host.robots.len() as u64),
    ];
    numbers.into_iter().filter(|(_, value)| *value != 0).for_each(|(name, value)| put(name, value.into()));
    for (id, value) in host.numbers.iter().filter(|(_, value)| *value != 0) {
        put(&extension_name(*id), (*value).into());
    }
    for (id, value) in host.texts.iter().filter(|(_, value)| !value.is_empty()) {
        put(&extension_name(*id), text(value));
    }
    Value::Object(out)
}

fn extension_name(id: u16) -> String {
    extension::name(id).map_or_else(|| format!("extension_{id}"), str::to_owned)
}

/// What is not text is shown with replacements: JSON has no other way.
fn text(bytes: &Bytes) -> Value {
    String::from_utf8_lossy(bytes).into_owned().into()
}

/// JSON has no infinities: those are texts.
fn number(value: f32) -> Value {
    // By way of its shortest spelling, so that 0.1 does not become 0.10000000149.
    let shown: Option<f64> = value.to_string().parse().ok();
    shown.and_then(serde_json::Number::from_f64).map_or_else(|| value.to_string().into(), Value::Number)
}
