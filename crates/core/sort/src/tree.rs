//! A loser tree that knows how much keys share.
//!
//! Each source carries how many bytes its key shares with the last record handed out *along its path*. Of two such keys
//! the one that shares more is smaller, without looking at a byte; only when they share equally much are bytes
//! compared, from there on. So each key byte is compared about once, however many runs there are.

use crate::prefix;
use crate::source::Source;
use std::cmp::Ordering;
use trawl_io::Result;

/// Merges sources in order; of equal keys the earlier source's is first.
pub(crate) struct Tree<S> {
    sources: Vec<S>,
    /// Per source: 1 + bytes shared with the source that last beat it, or with the last winner; 0 once it is exhausted, so that
    /// it loses against all.
    close: Vec<usize>,
    /// Loser at each inner node; node 0 has the winner.
    nodes: Vec<u32>,
    started: bool,
}

impl<S: Source> Tree<S> {
    pub fn new(sources: Vec<S>) -> Self {
        let close = vec![0; sources.len()];
        Tree { sources, close, nodes: Vec::new(), started: false }
    }

    /// Moves to the next record and tells how many key bytes it shares with the one before.
    pub fn advance(&mut self) -> Result<Option<usize>> {
        if self.started {
            let winner = self.winner();
            self.step(winner)?;
            self.replay(winner);
        } else {
            self.started = true;
            self.build()?;
        }
        let close = self.close.get(self.winner()).copied().unwrap_or(0);
        Ok(close.checked_sub(1))
    }

    /// The source that has the current record.
    pub fn current(&self) -> Option<&S> {
        self.sources.get(self.winner())
    }

    fn winner(&self) -> usize {
        self.nodes.first().map_or(0, |&w| w as usize)
    }

    fn step(&mut self, source: usize) -> Result<()> {
        if let (Some(s), Some(close)) = (self.sources.get_mut(source), self.close.get_mut(source)) {
            *close = s.advance()?.map_or(0, |shared| shared + 1);
        }
        Ok(())
    }

    fn build(&mut self) -> Result<()> {
        let k = self.sources.len();
        for source in 0..k {
            self.step(source)?;
        }
        // Nodes 1..k are inner, k..2k are the sources; a node's parent is half its number.
        let mut winners: Vec<u32> = (0..k as u32).map(|_| 0).chain(0..k as u32).collect();
        self.nodes = vec![0; k.max(1)];
        for node in (1..k).rev() {
            let child = |n: usize| winners.get(n).copied().unwrap_or(0);
            let (winner, loser) = self.play(child(2 * node), child(2 * node + 1));
            for (slots, value) in [(&mut self.nodes, loser), (&mut winners, winner)] {
                if let Some(slot) = slots.get_mut(node) {
                    *slot = value;
                }
            }
        }
        if let (Some(slot), Some(&winner)) = (self.nodes.first_mut(), winners.get(1)) {
            *slot = winner;
        }
        Ok(())
    }

    /// Lets a source with a new record play its way to the top.
    #[inline]
    fn replay(&mut self, source: usize) {
        let mut champion = source as u32;
        let mut node = (source + self.sources.len()) / 2;
        while node > 0 {
            let Some(&rival) = self.nodes.get(node) else { break };
            let (winner, loser) = self.play(champion, rival);
            champion = winner;
            if let Some(slot) = self.nodes.get_mut(node) {
                *slot = loser;
            }
            node /= 2;
        }
        if let Some(slot) = self.nodes.first_mut() {
            *slot = champion;
        }
    }

    /// Winner and loser; the loser remembers how close it came.
    #[inline]
    fn play(&mut self, a: u32, b: u32) -> (u32, u32) {
        let close = |s: u32| self.close.get(s as usize).copied().unwrap_or(0);
        let (close_a, close_b) = (close(a), close(b));
        match close_a.cmp(&close_b) {
            Ordering::Greater => (a, b),
            Ordering::Less => (b, a),
            Ordering::Equal => self.compare(a, b, close_a),
        }
    }

    fn compare(&mut self, a: u32, b: u32, close: usize) -> (u32, u32) {
        let Some(known) = close.checked_sub(1) else { return (a, b) };
        let key = |s: u32| self.sources.get(s as usize).map(S::key).unwrap_or_default();
        let (order, shared) = prefix::compare_from(key(a), key(b), known);
        let (winner, loser) = if order.then(a.cmp(&b)).is_lt() { (a, b) } else { (b, a) };
        if let Some(slot) = self.close.get_mut(loser as usize) {
            *slot = shared + 1;
        }
        (winner, loser)
    }
}
