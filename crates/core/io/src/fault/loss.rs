//! What is left after a power cut.

use super::disk::{Change, Disk, NameChange, Names, Node, put};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which of the changes not yet synced survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of them: only the process died.
    None,
    /// None of them.
    All,
    /// An arbitrary part of them, chosen by the seed.
    Torn {
        /// Decides what survives.
        seed: u64,
        /// Writes are torn at multiples of this many bytes: 512 for a disk's sectors, 1 for the worst.
        unit: usize,
    },
}

impl Loss {
    /// Both certain outcomes and `seeds` torn ones, half of them torn by sectors and half by bytes.
    pub fn variants(seeds: u64) -> impl Iterator<Item = Loss> {
        let torn = (0..seeds).map(|seed| Loss::Torn { seed, unit: if seed % 2 == 0 { 512 } else { 1 } });
        [Loss::All, Loss::None].into_iter().chain(torn)
    }
}

impl Disk {
    /// The disk after the loss, everything on it synced.
    pub fn after(&self, loss: Loss) -> Disk {
        let mut dice = Dice(match loss {
            Loss::Torn { seed, .. } => seed,
            Loss::None | Loss::All => 0,
        });
        let dirs: Vec<Option<Names>> = self.nodes.iter().map(|node| names_after(node, loss, &mut dice)).collect();
        // What no directory names can never be read again: without this a long test copies every file it ever removed.
        let named: BTreeSet<usize> = dirs.iter().flatten().flat_map(|names| names.values().copied()).collect();
        let nodes = self.nodes.iter().zip(dirs).enumerate().map(|(number, (node, names))| match (node, names, loss) {
            (_, Some(names), _) => Node::dir(names),
            (Node::File { now, .. }, _, Loss::None) if named.contains(&number) => Node::file(now.clone()),
            (Node::File { synced, .. }, _, Loss::All) if named.contains(&number) => Node::file(synced.clone()),
            (Node::File { synced, changes, .. }, _, _) if named.contains(&number) && changes.is_empty() => {
                Node::file(synced.clone())
            }
            (Node::File { synced, changes, .. }, _, Loss::Torn { unit, .. }) if named.contains(&number) => {
                Node::file(Arc::new(torn_contents(synced, changes, unit.max(1), &mut dice)))
            }
            _ => Node::file(Arc::default()),
        });
        let mut disk = Disk::with(nodes.collect());
        disk.capacity = self.capacity;
        disk
    }
}

/// The names of a directory after the loss; `None` for a file.
fn names_after(node: &Node, loss: Loss, dice: &mut Dice) -> Option<Names> {
    match (node, loss) {
        (Node::File { .. }, _) => None,
        (Node::Dir { now, .. }, Loss::None) => Some(now.clone()),
        (Node::Dir { synced, .. }, Loss::All) => Some(synced.clone()),
        (Node::Dir { synced, changes, .. }, Loss::Torn { .. }) => Some(torn_names(synced, changes, dice)),
    }
}

fn torn_names(synced: &Names, changes: &[NameChange], dice: &mut Dice) -> Names {
    let mut names = synced.clone();
    // Often all or none, as on a journaling file system; sometimes any of them.
    let odds = dice.pick(&[0, 50, 50, 100]);
    for change in changes {
        if dice.percent(odds) {
            change.apply(&mut names);
        }
    }
    names
}

fn torn_contents(synced: &[u8], changes: &[Change], unit: usize, dice: &mut Dice) -> Vec<u8> {
    let mut contents = synced.to_vec();
    for change in changes {
        // Per change: lost, any parts of it, nearly all of it, whole.
        let odds = dice.pick(&[0, 50, 50, 90, 100]);
        match change {
            Change::Write { offset, bytes } => {
                if dice.percent(50) {
                    grow(&mut contents, offset + bytes.len(), dice);
                }
                let mut done = 0;
                while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
                    let at = offset + done;
                    let n = (unit - at % unit).min(rest.len());
                    if dice.percent(odds) {
                        put(&mut contents, at, rest.get(..n).unwrap_or(rest));
                    }
                    done += n;
                }
            }
            Change::SetLen(len) if dice.percent(odds) => contents.resize(*len, 0),
            Change::SetLen(_) => {}
        }
    }
    contents
}

/// The length reached the disk and the data did not: zeros, or what the blocks held before.
fn grow(contents: &mut Vec<u8>, len: usize, dice: &mut Dice) {
    let garbage = dice.percent(50);
    while contents.len() < len {
        contents.push(if garbage { dice.next() as u8 } else { 0 });
    }
}

/// splitmix64: the seed alone decides, on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn percent(&mut self, odds: u64) -> bool {
        self.next() % 100 < odds
    }

    fn pick(&mut self, of: &[u64]) -> u64 {
        let n = usize::try_from(self.next() % of.len().max(1) as u64).unwrap_or(0);
        of.get(n).copied().unwrap_or(0)
    }
}
