//! The first path segments of a domain with most rows.

use crate::counts::{MAX_PATH_LEN, rank};
use std::collections::HashMap;

/// Rows of a domain in a file below which no paths are kept: the rows themselves fit on a screen.
pub const TOP_PATHS_MIN_ROWS: u64 = 16;
/// Segments counted at once; past that the rarer half is forgotten, so counts become lower bounds.
const COUNTED: usize = 4096;

/// Counts first path segments in bounded memory.
#[derive(Debug, Default)]
pub(super) struct TopPaths {
    counts: HashMap<String, u64>,
    /// The segment of the row before: neighbours share it, which saves the map most lookups.
    current: String,
    run: u64,
}

impl TopPaths {
    pub fn add(&mut self, path_query: &str) {
        let Some(segment) = first_segment(path_query) else { return };
        if segment != self.current {
            self.settle();
            segment.clone_into(&mut self.current);
        }
        self.run += 1;
    }

    fn settle(&mut self) {
        if self.run == 0 {
            return;
        }
        let run = std::mem::take(&mut self.run);
        if let Some(count) = self.counts.get_mut(&self.current) {
            *count += run;
            return;
        }
        if self.counts.len() >= COUNTED {
            let mut sizes: Vec<u64> = self.counts.values().copied().collect();
            let middle = sizes.len() / 2;
            let (_, median, _) = sizes.select_nth_unstable(middle);
            let median = *median;
            self.counts.retain(|_, count| *count > median);
        }
        self.counts.insert(self.current.clone(), run);
    }

    /// The `keep` segments with most rows, most first, and starts again.
    pub fn take(&mut self, keep: usize) -> Vec<(String, u64)> {
        self.settle();
        self.current.clear();
        let mut all: Vec<_> = self.counts.drain().collect();
        // A map that grew for one large domain would make clearing it slow for all that follow.
        self.counts.shrink_to(64);
        rank(&mut all, keep);
        all
    }
}

/// `/news/` of `/news/today?x`, `/` of a path without a directory; none where it is too long to keep.
fn first_segment(path_query: &str) -> Option<&str> {
    let path = path_query.split(['?', '#']).next().unwrap_or_default();
    let rest = path.strip_prefix('/')?;
    let end = rest.find('/').map_or(1, |at| at + 2);
    path.get(..end).filter(|segment| segment.len() <= MAX_PATH_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments() {
        for (path, segment) in [
            ("/", Some("/")),
            ("/a", Some("/")),
            ("/a?b/c/d", Some("/")),
            ("/a/", Some("/a/")),
            ("/a/b/c", Some("/a/")),
            ("//x", Some("//")),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(first_segment(path), segment, "{path}");
        }
        assert_eq!(first_segment(&format!("/{}/x", "a".repeat(126))).map(str::len), Some(128));
        assert_eq!(first_segment(&format!("/{}/x", "a".repeat(127))), None);
    }

    #[test]
    fn most_rows_first() {
        let mut top = TopPaths::default();
        for path in ["/a/1", "/b/1", "/b/2", "/c", "/a/2", "/c/1", "/b/3"] {
            top.add(path);
        }
        assert_eq!(top.take(3), [("/b/".into(), 3), ("/a/".into(), 2), ("/".into(), 1)]);
        assert_eq!(top.take(3), []);
    }

    #[test]
    fn memory_is_bounded_and_counts_are_lower_bounds() {
        let mut top = TopPaths::default();
        for i in 0..100_000 {
            top.add(&format!("/rare{i}/x"));
            top.add("/often/x");
            if i % 2 == 0 {
                top.add("/half/x");
            }
        }
        assert!(top.counts.len() <= COUNTED);
        let found = top.take(2);
        assert_eq!(found[0], ("/often/".into(), 100_000));
        assert_eq!(found[1].0, "/half/");
        assert!(found[1].1 <= 50_000 && found[1].1 > 40_000, "{found:?}");
    }
}
