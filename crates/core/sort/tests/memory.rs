//! Ten times the budget, within the budget: measured as the growth of the process's resident memory.
//!
//! Alone in its file: another test in the same process would be measured too.

use trawl_sort::Sorter;

const BUDGET: usize = 32 << 20;

/// A line of /proc/self/status in bytes.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

fn record(n: u64, key: &mut Vec<u8>) {
    // A multiplication by an odd number permutes: every n gives another key, in no order.
    let scattered = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    key.clear();
    key.extend_from_slice(b"com,example,");
    key.extend_from_slice(&scattered.to_be_bytes());
    // Some long records among the short ones.
    let padding = if n.is_multiple_of(5000) { 100_000 } else { (scattered % 120) as usize };
    key.resize(key.len() + padding, b'.');
}

#[test]
fn ten_times_the_budget_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    // "5" resets the peak to what is resident now.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS");
    let mut sorter = Sorter::builder(dir.path()).memory_bytes(BUDGET).build().unwrap();
    let (mut key, mut bytes, mut n) = (Vec::new(), 0, 0);
    while bytes < 10 * BUDGET as u64 {
        record(n, &mut key);
        bytes += key.len() as u64 + 8;
        sorter.push(&key, &n.to_be_bytes()).unwrap();
        n += 1;
    }
    let mut sorted = sorter.finish().unwrap();
    assert!(sorted.stats().runs >= 10);
    let (mut last, mut count, mut sum) = (Vec::new(), 0u64, 0u64);
    while let Some(r) = sorted.next_record().unwrap() {
        assert!(last.as_slice() <= r.key);
        let from = u64::from_be_bytes(r.value.try_into().unwrap());
        if from.is_multiple_of(1000) {
            record(from, &mut key);
            assert!(r.key == key, "record {from} is not what was pushed");
        }
        sum = sum.wrapping_add(from);
        last.clear();
        last.extend_from_slice(r.key);
        count += 1;
    }
    assert_eq!((count, sum), (n, n * (n - 1) / 2), "every record once");
    let grown = status("VmHWM") - before;
    assert!(grown <= BUDGET as u64, "grew by {:.1} MiB", grown as f64 / f64::from(1 << 20));
    assert!(grown >= BUDGET as u64 / 2, "the budget is used: {:.1} MiB", grown as f64 / f64::from(1 << 20));
}
