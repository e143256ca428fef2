//! A description of a web: its size, and how often each character really occurs in it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{PageId, Resource, World};
use crate::character::{Axis, Character};

/// How often a character occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CharacterCount {
    /// The character.
    pub character: Character,
    /// Its axis.
    pub axis: Axis,
    /// What it does.
    pub about: &'static str,
    /// Hosts, pages or links that have it.
    pub count: u64,
}

/// What a web contains.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The seed it was made from.
    pub seed: u64,
    /// Hosts.
    pub hosts: u64,
    /// Registrable domains.
    pub domains: u64,
    /// Pages.
    pub pages: u64,
    /// Every character with how often it occurs, also those that do not.
    pub characters: Vec<CharacterCount>,
}

impl World {
    /// Counts what the web contains. Looks at every page: a second or so for a million.
    pub fn describe(&self) -> Description {
        let mut counts = BTreeMap::<Character, u64>::new();
        let mut add = |character| *counts.entry(character).or_default() += 1;
        for (id, host) in self.host_ids().zip(&self.hosts) {
            host.characters().for_each(&mut add);
            for page in self.pages(id) {
                self.characters_of(page).into_iter().for_each(&mut add);
                if !self.draws.links_are_plain() {
                    let links = self.links(self.node(id, Resource::Page(page.number)));
                    for link in links {
                        let insecure = !link.to.secure && self.host(link.to.host).is_some_and(|h| h.is_secure());
                        let found = [
                            (insecure, Character::Insecure),
                            (link.tracked, Character::Tracked),
                            (link.spelling.is_some(), Character::OddSpelling),
                            (matches!(link.to.what, Resource::Missing(_)), Character::BrokenLink),
                        ];
                        found.into_iter().filter(|(has, _)| *has).for_each(|(_, character)| add(character));
                    }
                }
            }
        }
        let one = |&character: &Character| CharacterCount {
            character,
            axis: character.axis(),
            about: character.about(),
            count: counts.get(&character).copied().unwrap_or(0),
        };
        Description {
            seed: self.config.seed,
            hosts: self.hosts.len() as u64,
            domains: self.config.domains.into(),
            pages: self.page_count,
            characters: Character::ALL.iter().map(one).collect(),
        }
    }

    /// The characters of one page.
    pub fn characters_of(&self, page: PageId) -> Vec<Character> {
        let form = self.form(page);
        let change = self.change_period(page).map(|_| Character::Changing);
        let nofollow = self.is_nofollow(page).then_some(Character::NoFollow);
        let text = self.text_character(page);
        let all = [self.fate(page), form.coding, form.framing, form.charset, form.validator, change, text, nofollow];
        all.into_iter().flatten().collect()
    }
}
