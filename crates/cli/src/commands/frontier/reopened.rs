//! Pages that an answer names as `reopened`. Only the fetcher knows their links, so a process that was killed before its answer was
//! read leaves them to the next one.

use anyhow::Context;
use serde_json::{Value, json};
use trawl_frontier::{Admission, Candidate, Frontier};

/// The frontier's note for what the last answer named. A crawl, whose frontier can be run as well, has slots 0 and 1.
const SLOT: u8 = 2;

/// A page as an answer names it, if it was reopened.
pub fn named(page: &Candidate, became: Admission) -> Option<Value> {
    let is_reopened = matches!(became, Admission::Reopened(_));
    is_reopened.then(|| json!({ "url": page.url.as_str(), "depth": page.depth }))
}

/// What the last answer named.
pub struct Reopened {
    /// By the process before this one, whose answer may not have been read.
    earlier: Vec<Value>,
    /// Whether the note names any.
    is_noted: bool,
}

impl Reopened {
    pub fn open(frontier: &Frontier) -> anyhow::Result<Self> {
        let kept = frontier.kept_note(SLOT).map(serde_json::from_slice::<Vec<Value>>).transpose();
        let earlier = kept.context("the frontier's note of reopened pages")?.unwrap_or_default();
        Ok(Self { is_noted: !earlier.is_empty(), earlier })
    }

    /// Completes an answer, and notes what it names with the changes that it answers for. It takes the place of what the answer
    /// before it named: that was read, or there would be no further request.
    pub fn note(&mut self, frontier: &mut Frontier, answer: &mut Value) -> anyhow::Result<()> {
        let mut pages = std::mem::take(&mut self.earlier);
        if let Some(Value::Array(new)) = answer.get_mut("reopened") {
            pages.append(new);
        }
        if self.is_noted || !pages.is_empty() {
            frontier.note(SLOT, serde_json::to_vec(&pages)?);
        }
        self.is_noted = !pages.is_empty();
        if self.is_noted {
            answer["reopened"] = pages.into();
        }
        Ok(())
    }
}
