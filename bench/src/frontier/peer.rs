//! The same work with the rows in a general store: `fjall`, key spaces rows (key to row), order (host, bucket, arrival) and due.

use crate::workload::{Workload, mix};
use crate::{memory_mib, process_seconds};
use fjall::{Database, KeyspaceCreateOptions};
use std::error::Error;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A row as a frontier needs it: state, numbers, the URL.
fn row(url: &str, arrival: u64) -> Vec<u8> {
    let mut row = vec![1u8; 24];
    row.extend_from_slice(&arrival.to_le_bytes());
    row.extend_from_slice(url.as_bytes());
    row
}

pub fn run(urls: u64, hosts: u64, mib: u64, rounds: u64) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("trawl-bench-fjall-{}", std::process::id()));
    let work = Workload::new(urls, hosts);
    let db = Database::builder(&dir).cache_size((mib << 20) / 2).open()?;
    let rows = db.keyspace("rows", KeyspaceCreateOptions::default)?;
    let order = db.keyspace("order", KeyspaceCreateOptions::default)?;
    let due = db.keyspace("due", KeyspaceCreateOptions::default)?;
    let order_key = |host: u64, arrival: u64| [host.to_be_bytes(), arrival.to_be_bytes()].concat();
    println!("fjall: {urls} URLs, {hosts} hosts, {mib} MiB, {rounds} rounds");
    let (begun, cpu) = (Instant::now(), process_seconds());
    let mut making = 0.0;
    let mut n = 0;
    while n < urls {
        let at = process_seconds();
        let batch: Vec<_> = (n..(n + 1000).min(urls)).map(|n| (n, work.candidate(n))).collect();
        making += process_seconds() - at;
        let mut write = db.batch();
        for (n, candidate) in &batch {
            let key = candidate.id.0.to_be_bytes();
            if rows.get(key)?.is_none() {
                write.insert(&rows, key, row(&candidate.url, *n));
                write.insert(&order, order_key(candidate.id.host(), *n), key);
            }
        }
        write.commit()?;
        n += batch.len() as u64;
    }
    let spent = process_seconds() - cpu - making;
    println!("  load: {:.1} s, {spent:.1} CPU s, RssAnon {} MiB", begun.elapsed().as_secs_f64(), memory_mib("RssAnon"));
    let (begun, cpu) = (Instant::now(), process_seconds());
    let (mut making, mut fresh, mut leased) = (0.0, urls, 0u64);
    for round in 0..rounds {
        let at = process_seconds();
        let known = (0..45).map(|n| mix(round * 64 + n) % urls);
        let batch: Vec<_> = known.chain(fresh..fresh + 5).map(|n| (n, work.candidate(n))).collect();
        let next = work.candidate(mix(round ^ 0x55) % urls).id.host();
        fresh += 5;
        making += process_seconds() - at;
        let mut write = db.batch();
        for (n, candidate) in &batch {
            let key = candidate.id.0.to_be_bytes();
            if rows.get(key)?.is_none() {
                write.insert(&rows, key, row(&candidate.url, *n));
                write.insert(&order, order_key(candidate.id.host(), *n), key);
            }
        }
        // The best row of a host that is ready, and its outcome.
        if let Some(found) = order.prefix(next.to_be_bytes()).next() {
            let (place, key) = found.into_inner()?;
            if let Some(old) = rows.get(&key)? {
                let mut new = old.to_vec();
                new[0] = 4;
                write.insert(&rows, key.clone(), new);
                write.remove(&order, place);
                write.insert(&due, [round.to_be_bytes().as_slice(), &key].concat(), []);
                leased += 1;
            }
        }
        write.commit()?;
    }
    let spent = process_seconds() - cpu - making;
    println!(
        "  rounds: {:.1} s, {spent:.1} CPU s; {leased} leases; RssAnon {} MiB",
        begun.elapsed().as_secs_f64(),
        memory_mib("RssAnon")
    );
    drop((rows, order, due, db));
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
