//! What a well-behaved crawler fetches: a breadth-first walk over the model, without HTTP, HTML or robots.txt text.

use std::collections::{BTreeSet, VecDeque};

use super::{PageId, World};

/// A product token no robots.txt names, so that the rules for `*` bind it.
const ANY_AGENT: &str = "any";

impl World {
    /// URLs of the pages that a crawler fetches exactly once if it starts at [`World::seeds`], obeys robots.txt and
    /// follows links up to `depth` steps (seeds have depth 0). robots.txt files are not listed.
    pub fn expected_pages(&self, depth: u32) -> BTreeSet<String> {
        self.walk(depth).into_iter().map(|(page, _)| self.url(page)).collect()
    }

    /// The expected pages with the depth at which each is first linked, nearest first.
    pub fn walk(&self, depth: u32) -> Vec<(PageId, u32)> {
        let mut seen = vec![false; usize::try_from(self.page_count).unwrap_or(0)];
        let mut queue: VecDeque<(PageId, u32)> = VecDeque::new();
        let mut out = Vec::new();
        let mut visit = |page: PageId, at: u32, queue: &mut VecDeque<_>| {
            let Some(slot) = self.dense(page).and_then(|n| seen.get_mut(n)) else { return };
            if !std::mem::replace(slot, true) && self.may_fetch(page) {
                queue.push_back((page, at));
            }
        };
        for (host, _) in (0..self.config.seeds).zip(&self.hosts) {
            visit(PageId { host: super::HostId(host), number: 0 }, 0, &mut queue);
        }
        while let Some((page, at)) = queue.pop_front() {
            out.push((page, at));
            if at < depth {
                self.links(page).into_iter().for_each(|link| visit(link, at + 1, &mut queue));
            }
        }
        out
    }

    /// A depth from which on [`World::expected_pages`] no longer grows.
    pub fn full_depth(&self) -> u32 {
        self.walk(u32::MAX).last().map_or(0, |&(_, depth)| depth)
    }

    fn may_fetch(&self, page: PageId) -> bool {
        if !self.host(page.host).is_some_and(|h| h.robots.has_closed_section()) {
            return true;
        }
        let mut path = String::new();
        self.push_path(page, &mut path);
        self.allows(page.host, ANY_AGENT, &path)
    }
}
