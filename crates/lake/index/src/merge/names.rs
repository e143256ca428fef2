//! Walks the names of segments in order.

use crate::lines::{Block, Lines};
use crate::plain::Plain;
use crate::split::has_prefix;
use crate::{Result, Slot};
use std::sync::Arc;

/// A place in a dictionary.
pub(crate) struct NameCursor<'a> {
    lines: &'a Lines,
    index: usize,
    block: Option<Arc<Block>>,
    line: usize,
    /// Only names of domains with this prefix; all, if it is empty.
    only: &'a str,
}

impl<'a> NameCursor<'a> {
    /// The first of the names whose domains have the prefix `only`.
    pub fn new(segment: &'a Plain, only: &'a str) -> Result<Self> {
        let lines = segment.dictionary();
        let block = (lines.block_count() > 0).then(|| lines.block(0)).transpose()?;
        let mut cursor = Self { lines, index: 0, block, line: 0, only };
        cursor.skip()?;
        Ok(cursor)
    }

    /// The first of all names that is not before `from`.
    pub fn from(segment: &'a Plain, from: &str) -> Result<Self> {
        let lines = segment.dictionary();
        let index = lines.block_of(from).unwrap_or(0);
        let block = (index < lines.block_count()).then(|| lines.block(index)).transpose()?;
        let line = block.as_ref().map_or(0, |block| block.lower_bound(from));
        let mut cursor = Self { lines, index, block, line, only: "" };
        cursor.turn()?;
        Ok(cursor)
    }

    /// The name here; `None` past the last.
    pub fn name(&self) -> Option<&str> {
        self.block.as_ref().and_then(|block| block.line(self.line))
    }

    pub fn slot(&self) -> Slot {
        Slot(self.block.as_ref().map_or(0, |block| block.first_line()) + self.line as u64)
    }

    pub fn advance(&mut self) -> Result<()> {
        self.line += 1;
        self.turn()?;
        self.skip()
    }

    /// Moves on to the first name that is wanted.
    fn skip(&mut self) -> Result<()> {
        while !self.only.is_empty() && self.name().is_some_and(|name| !has_prefix(name, self.only)) {
            self.line += 1;
            self.turn()?;
        }
        Ok(())
    }

    /// Reads the next block behind the last line of one.
    fn turn(&mut self) -> Result<()> {
        if self.block.as_ref().is_some_and(|block| self.line >= block.len()) {
            self.index += 1;
            self.line = 0;
            self.block = (self.index < self.lines.block_count()).then(|| self.lines.block(self.index)).transpose()?;
        }
        Ok(())
    }
}

/// The names of several segments in order: a loser tree, so that a name costs as many comparisons as the tree is high. To look at
/// all cursors for each name cost 23 us a domain with 256 segments.
pub(crate) struct NameMerge<'a> {
    cursors: Vec<NameCursor<'a>>,
    /// The loser at each inner node; node 0 has the winner. A node's parent is half its number, and the cursors come after
    /// the inner nodes.
    nodes: Vec<usize>,
}

impl<'a> NameMerge<'a> {
    pub fn new(cursors: Vec<NameCursor<'a>>) -> Self {
        let count = cursors.len();
        let mut merge = Self { cursors, nodes: vec![0; count.max(1)] };
        let mut winners: Vec<usize> = (0..2 * count).map(|node| node.saturating_sub(count)).collect();
        for node in (1..count).rev() {
            let below = |n: usize| winners.get(n).copied().unwrap_or(0);
            let (winner, loser) = merge.ranked(below(2 * node), below(2 * node + 1));
            for (slots, value) in [(&mut merge.nodes, loser), (&mut winners, winner)] {
                slots.get_mut(node).into_iter().for_each(|slot| *slot = value);
            }
        }
        let winner = winners.get(1).copied().unwrap_or(0);
        merge.nodes.first_mut().into_iter().for_each(|slot| *slot = winner);
        merge
    }

    /// The cursor at the smallest name, with its number; of several at the same name the earliest.
    pub fn first(&self) -> Option<(usize, &NameCursor<'a>)> {
        let winner = *self.nodes.first()?;
        self.cursors.get(winner).filter(|cursor| cursor.name().is_some()).map(|cursor| (winner, cursor))
    }

    /// Moves the cursor at the smallest name on.
    pub fn advance(&mut self) -> Result<()> {
        let Some(&(mut winner)) = self.nodes.first() else { return Ok(()) };
        let Some(cursor) = self.cursors.get_mut(winner) else { return Ok(()) };
        cursor.advance()?;
        let mut node = (winner + self.cursors.len()) / 2;
        while node > 0 {
            let waiting = self.nodes.get(node).copied().unwrap_or(winner);
            let (first, loser) = self.ranked(winner, waiting);
            self.nodes.get_mut(node).into_iter().for_each(|slot| *slot = loser);
            winner = first;
            node /= 2;
        }
        self.nodes.first_mut().into_iter().for_each(|slot| *slot = winner);
        Ok(())
    }

    /// Two cursors, the one that comes first first; those past their last name come last.
    fn ranked(&self, a: usize, b: usize) -> (usize, usize) {
        let name = |cursor: usize| self.cursors.get(cursor).and_then(NameCursor::name);
        let is_before = match (name(a), name(b)) {
            (Some(of_a), Some(of_b)) => (of_a, a) < (of_b, b),
            (of_a, _) => of_a.is_some(),
        };
        if is_before { (a, b) } else { (b, a) }
    }
}
