//! Ten times the budget, within the budget: measured as the growth of the process's resident memory beside its code.
//!
//! One test, alone in its file: another in the same process would be measured too.

use trawl_sort::{Sorted, Sorter};

/// A line of /proc/self/status in bytes.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// How long the n-th key is, given the largest record allowed.
type Length = fn(u64, usize) -> usize;

/// The n-th key: every n gives another, in no order, since multiplying by an odd number permutes.
fn key(n: u64, length: usize, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(b"com,example,");
    key.extend_from_slice(&n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key.resize(length.max(20), b'.');
}

/// Reads a part; counts records and sums their numbers.
fn read(mut part: Sorted, length: Length, limit: usize) -> (u64, u64) {
    let (mut last, mut expected, mut count, mut sum) = (Vec::new(), Vec::new(), 0u64, 0u64);
    while let Some(r) = part.next_record().unwrap() {
        assert!(last.as_slice() <= r.key);
        let n = u64::from_be_bytes(r.value.try_into().unwrap());
        if n.is_multiple_of(1000) {
            key(n, length(n, limit), &mut expected);
            assert!(r.key == expected, "record {n} is not what was pushed");
        }
        sum = sum.wrapping_add(n);
        last.clear();
        last.extend_from_slice(r.key);
        count += 1;
    }
    (count, sum)
}

/// What the system and the allocator keep around threads, more or less by chance: stacks, page tables, arenas. It does not
/// grow with what is sorted, which is ten times the budget.
const AROUND: usize = 2 << 20;

fn grows_within(budget: usize, parts: usize, length: Length) {
    let dir = tempfile::tempdir().unwrap();
    // "5" resets the peak to what is resident now; where that cannot be done, the peak so far is what counts.
    let reset = std::fs::write("/proc/self/clear_refs", "5").is_ok();
    let (before, code) = (status(if reset { "VmRSS" } else { "VmHWM" }), status("RssFile"));
    let mut sorter = Sorter::builder(dir.path()).memory_bytes(budget).build().unwrap();
    let limit = sorter.max_record_bytes() - 8;
    let (mut record, mut bytes, mut n) = (Vec::new(), 0, 0);
    while bytes < 10 * budget {
        key(n, length(n, limit), &mut record);
        bytes += record.len() + 8;
        sorter.push(&record, &n.to_be_bytes()).unwrap();
        n += 1;
    }
    // The test's own copies of a record.
    let ours = 3 * record.capacity() * parts;
    let sorted = sorter.finish_parts(parts).unwrap();
    assert!(sorted[0].stats().runs >= 10);
    let (count, sum) = std::thread::scope(|scope| {
        let threads: Vec<_> = sorted.into_iter().map(|p| scope.spawn(move || read(p, length, limit))).collect();
        threads.into_iter().map(|t| t.join().unwrap()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    });
    assert_eq!((count, sum), (n, n * (n - 1) / 2), "every record once");
    // Pages of the program itself become resident when they are first run.
    let code = status("RssFile").saturating_sub(code);
    let grown = status("VmHWM").saturating_sub(before + code);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    assert!(grown <= (budget + ours + AROUND) as u64, "grew by {:.1} MiB of {:.1}", mib(grown), mib(budget as u64));
}

const SHORT: Length = |n, _| 20 + (n % 120) as usize;
const MIXED: Length = |n, _| if n.is_multiple_of(5000) { 100_000 } else { 20 + (n % 120) as usize };
const LARGE: Length = |n, limit| limit - (n % 1000) as usize;

/// Budget in MiB, parts, records.
const SCENARIOS: [(usize, usize, Length); 4] = [(16, 1, MIXED), (16, 1, LARGE), (12, 2, SHORT), (16, 2, LARGE)];

const CHOICE: &str = "TRAWL_SORT_MEMORY_SCENARIO";

/// Each scenario in a process of its own, so that none finds memory that another left to the allocator.
#[test]
fn ten_times_the_budget_within_the_budget() {
    if let Ok(choice) = std::env::var(CHOICE) {
        let (mib, parts, length) = SCENARIOS[choice.parse::<usize>().unwrap()];
        return grows_within(mib << 20, parts, length);
    }
    for scenario in 0..SCENARIOS.len() {
        // Chance only adds to what is resident: who takes too much does so each time.
        let mut said = String::new();
        let within = (0..3).any(|_| {
            let child = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "ten_times_the_budget_within_the_budget"])
                .env(CHOICE, scenario.to_string())
                .output()
                .unwrap();
            said.push_str(&String::from_utf8_lossy(&child.stdout));
            child.status.success()
        });
        assert!(within, "scenario {scenario}: {said}");
        assert!(said.contains("1 passed"), "scenario {scenario} ran: {said}");
    }
}
