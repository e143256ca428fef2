//! Spellings of one page, of which robots.txt may close some. Many sites close `/*?utm_`, and link `/p?utm_source=x` before `/p`.

use crate::candidate::{Candidate, Source};
use crate::config::RobotsPolicy;
use crate::frontier::Frontier;
use crate::identity::Identity;
use crate::row::{Found, Row, Texts};

impl Frontier {
    /// What is known under the key of a URL, if it is another spelling of it that waits. Looked for in memory only; once it is
    /// refused, its mark says so.
    pub(crate) fn other_spelling(&self, Candidate { id, url, .. }: &Candidate) -> Option<&Row> {
        if self.config.identity != Identity::Key {
            return None;
        }
        let row = self.leases.get(id).map(|out| &out.row).or_else(|| self.recent_row(*id))?;
        (row.url() != url.as_str() && row.status.waits()).then_some(row)
    }

    /// Lets the plainer of two spellings stand for their page as long as it is unknown what robots.txt says of them: a list may have
    /// both, and its URLs are all offered before any rules are known. A seed gives way to a seed only.
    pub(crate) fn respell(&mut self, row: &Row, candidate: &Candidate, now: i64) {
        let Candidate { id, url, source, meta_json, .. } = candidate;
        let honours = self.config.robots == RobotsPolicy::Honour;
        let is_plainer = url.len() < row.url().len();
        let gives_way = match row.found {
            Found::Seed => *source == Source::Seed,
            Found::Link => !matches!(source, Source::Redirect(_)),
            Found::Redirect => false,
        };
        let untried = row.attempts() == 0 && !self.leases.contains_key(id);
        if !honours || !is_plainer || !gives_way || !untried || self.is_open(*id, row.url()).is_some() {
            return;
        }
        let Some(host) = self.known_host(id.host()) else { return };
        let via = if let Source::Link(page) = source { &**page } else { row.texts.via() };
        let texts = Texts::new(url, via, meta_json.as_deref().unwrap_or_default());
        let row = Row { texts, ..row.clone() };
        let state = &mut self.hosts[host as usize];
        let old = state.window.remove(*id);
        self.window_bytes -= old.as_ref().map_or(0, Row::memory);
        state.waiting -= 1;
        self.totals.waiting -= 1;
        self.write(host, row.clone());
        self.add_waiting(host, row, now);
        self.stir(host, now);
    }
}
