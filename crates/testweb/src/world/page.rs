//! Pages of a host: their place in the page tree and their paths.

use super::{Host, HostId, PageId, World};
use crate::character::Character;
use crate::dice::{Dice, purpose};
use crate::words;

/// How the paths of a host look; each style carries the page number, so that no table is needed to find a page again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `/stories/old-stone-bridge-17`
    Slug,
    /// `/stories/old-stone-bridge-17.html`
    Html,
    /// `/stories/17/old-stone-bridge`
    Number,
    /// `/stories/view.php?id=17`
    Query,
    /// `/2019/04/old-stone-bridge-17`
    Dated,
    /// `/stories/?p=stone.git;a=blob;n=17`
    Semicolon,
    /// `/stories/list?ref=old|17|new`
    Pipe,
}

impl Style {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        match dice.below(10) {
            0..=3 => Self::Slug,
            4..=5 => Self::Html,
            6..=7 => Self::Number,
            8 => Self::Query,
            _ => Self::Dated,
        }
    }
}

impl Host {
    /// Pages with children in the page tree have the numbers below this one.
    pub(super) fn inner_pages(&self) -> u32 {
        (self.pages.saturating_sub(1)).div_ceil(self.branching.max(1)).max(1)
    }
}

impl World {
    /// Appends the path (and query) of a page.
    pub(super) fn push_path(&self, page: PageId, out: &mut String) {
        use std::fmt::Write;
        let Some(host) = self.host(page.host) else { return };
        if page.number == 0 {
            out.push('/');
            return;
        }
        let number = page.number;
        let mut dice = Dice::new(self.config.seed, purpose::SLUG, page.host.0.into(), number.into());
        // Writing to a String cannot fail.
        let _ = match host.style {
            Style::Dated if !self.is_closed(page) => {
                write!(out, "/{}/{:02}/", 2005 + dice.below(20), 1 + dice.below(12))
            }
            _ => write!(out, "/{}/", self.section(page)),
        };
        match host.style {
            Style::Query => {
                let _ = write!(out, "view.php?id={number}");
            }
            Style::Semicolon => {
                let _ = write!(out, "?p=stone.git;a=blob;n={number}");
            }
            Style::Pipe => {
                let _ = write!(out, "list?ref=old|{number}|new");
            }
            Style::Number => {
                let _ = write!(out, "{number}/");
                push_slug(&mut dice, out);
            }
            Style::Slug | Style::Html | Style::Dated => {
                push_slug(&mut dice, out);
                let _ = write!(out, "-{number}{}", if host.style == Style::Html { ".html" } else { "" });
            }
        }
    }

    /// The number in a path, which may be that of a page.
    pub(super) fn guess_page(&self, host: &Host, target: &str) -> Option<u32> {
        let digits = match host.style {
            Style::Slug | Style::Dated => target.rsplit('-').next()?,
            Style::Html => target.strip_suffix(".html")?.rsplit('-').next()?,
            Style::Number => target.split('/').nth(2)?,
            Style::Query | Style::Semicolon => target.rsplit('=').next()?,
            Style::Pipe => target.rsplit('|').nth(1)?,
        };
        digits.parse().ok().filter(|&n| n > 0 && n < host.pages)
    }

    /// The section a page lies in; a closed page lies in the section that robots.txt closes.
    fn section(&self, page: PageId) -> &'static str {
        if self.is_closed(page) {
            return self.closed_section(page.host);
        }
        // Each host uses a handful of sections of its own.
        let own = Dice::new(self.config.seed, purpose::SECTION, page.host.0.into(), 0).next();
        let mut dice = Dice::new(self.config.seed, purpose::SECTION, page.host.0.into(), page.number.into());
        Dice::new(own, purpose::SECTION, dice.below(5), 1).pick(words::SECTIONS)
    }

    /// The name of the section a host keeps to itself.
    pub(super) fn closed_section(&self, host: HostId) -> &'static str {
        Dice::new(self.config.seed, purpose::ROBOTS, host.0.into(), 1).pick(words::PRIVATE)
    }

    /// Whether a page has no children in the page tree; the home page never counts as one.
    pub(super) fn is_leaf(&self, page: PageId) -> bool {
        self.host(page.host).is_some_and(|h| page.number >= h.inner_pages())
    }

    /// Whether a page lies in the section that robots.txt closes. Only leaves do: no open page hides behind a closed one.
    pub(super) fn is_closed(&self, page: PageId) -> bool {
        self.host(page.host).is_some_and(super::robots::closes_section)
            && self.is_leaf(page)
            && Dice::new(self.config.seed, purpose::ROBOTS, page.host.0.into(), u64::from(page.number) + 2).percent(25)
    }

    /// Whether a page is linked by nothing but the sitemap: the last twentieth of a host with one.
    pub(super) fn is_orphan(&self, page: PageId) -> bool {
        let announces = |h: &Host| {
            matches!(h.announcement, Some(Character::Sitemap | Character::SitemapIndex)) && super::robots::has_rules(h)
        };
        self.host(page.host).is_some_and(|h| announces(h) && page.number >= h.pages - h.pages / 20)
            && self.is_leaf(page)
    }

    /// Depth of a page below its host's home page along the page tree; the links drawn by chance may be shorter.
    pub fn tree_depth(&self, page: PageId) -> u32 {
        let branching = self.host(page.host).map_or(1, |h| h.branching.max(1));
        let (mut number, mut depth) = (page.number, 0);
        while number > 0 {
            number = (number - 1) / branching;
            depth += 1;
        }
        depth
    }
}

pub(super) fn push_slug(dice: &mut Dice, out: &mut String) {
    for n in 0..dice.range(2, 4) {
        if n > 0 {
            out.push('-');
        }
        out.push_str(dice.pick(words::ENGLISH));
    }
}
