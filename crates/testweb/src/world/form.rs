//! How a page's content is dressed: coding, framing, charset, validators, and how its text changes.

use super::text::Language;
use super::{PageId, World};
use crate::character::{Axis, Character, Draw, Shares};
use crate::dice::{Dice, purpose};

/// Drawers for the axes that concern pages and links.
#[derive(Debug, Clone)]
pub(super) struct Draws {
    pub(super) fate: Draw,
    pub(super) link: Draw,
    text: Draw,
    directive: Draw,
    coding: Draw,
    framing: Draw,
    charset: Draw,
    validator: Draw,
    change: Draw,
}

impl Draws {
    pub(super) fn new(shares: &Shares) -> Self {
        let draw = |axis| Draw::new(shares, axis);
        Self {
            fate: draw(Axis::Fate),
            link: draw(Axis::Link),
            text: draw(Axis::Text),
            directive: draw(Axis::Directive),
            coding: draw(Axis::Coding),
            framing: draw(Axis::Framing),
            charset: draw(Axis::Charset),
            validator: draw(Axis::Validator),
            change: draw(Axis::Change),
        }
    }
}

impl Draws {
    /// Whether links are written plainly and lead where pages are.
    pub(super) fn links_are_plain(&self) -> bool {
        self.link.is_plain() && self.directive.is_plain()
    }
}

/// How a page's content is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Form {
    /// gzip, br, zstd or deflate, for clients that accept it.
    pub coding: Option<Character>,
    /// Chunked, or ended by the connection.
    pub framing: Option<Character>,
    /// Whether the encoding is not UTF-8.
    pub charset: Option<Character>,
    /// Which validators are sent.
    pub validator: Option<Character>,
    /// Whether the charset stands in the header, or only in the page.
    pub(crate) charset_in_header: bool,
}

/// Shortest and longest time between two versions of a changing page, seconds: an hour to ninety days.
const PERIOD_S: (f64, f64) = (3_600.0, 90.0 * 86_400.0);

impl World {
    /// How a page's content is sent.
    pub fn form(&self, page: PageId) -> Form {
        let mut dice = Dice::new(self.config.seed, purpose::FORM, page.host.0.into(), page.number.into());
        let draws = &self.draws;
        Form {
            coding: draws.coding.draw(&mut dice),
            framing: draws.framing.draw(&mut dice),
            charset: draws.charset.draw(&mut dice),
            validator: draws.validator.draw(&mut dice),
            charset_in_header: dice.percent(50),
        }
    }

    /// The character encoding of a page, as a label.
    pub fn charset(&self, page: PageId) -> &'static str {
        let language = self.host(page.host).map(|h| h.language);
        match (self.form(self.original(page)).charset, language) {
            (Some(Character::Utf16), _) => "utf-16le",
            (Some(_), Some(Language::Japanese)) if page.host.0.is_multiple_of(2) => "shift_jis",
            (Some(_), Some(Language::Japanese)) => "euc-jp",
            (Some(_), _) if page.host.0.is_multiple_of(2) => "windows-1252",
            (Some(_), _) => "iso-8859-15",
            (None, _) => "utf-8",
        }
    }

    /// Whether the text of a page is its own.
    pub fn text_character(&self, page: PageId) -> Option<Character> {
        // Odd pages take after even ones, so nothing is a copy of a copy; both must be leaves for equal links.
        let before = PageId { number: page.number.saturating_sub(1), ..page };
        if self.draws.text.is_plain() || page.number.is_multiple_of(2) || !self.is_leaf(before) {
            return None;
        }
        self.draws.text.draw(&mut Dice::new(
            self.config.seed,
            purpose::FORM,
            page.host.0.into(),
            u64::from(page.number) | 1 << 40,
        ))
    }

    /// The page whose bytes a page has: the one before it for a duplicate, else itself.
    pub(crate) fn original(&self, page: PageId) -> PageId {
        match self.text_character(page) {
            Some(Character::Duplicate) => PageId { number: page.number - 1, ..page },
            _ => page,
        }
    }

    /// Whether a page asks crawlers not to follow its links: an ordinary leaf, of which there is no second copy.
    pub fn is_nofollow(&self, page: PageId) -> bool {
        if self.draws.directive.is_plain() || !self.is_leaf(page) {
            return false;
        }
        let place = u64::from(page.number) | 1 << 43;
        let mut dice = Dice::new(self.config.seed, purpose::FORM, page.host.0.into(), place);
        let after = PageId { number: page.number.saturating_add(1), ..page };
        let copied = |page| self.text_character(page) == Some(Character::Duplicate);
        self.draws.directive.draw(&mut dice).is_some() && self.fate(page).is_none() && !copied(page) && !copied(after)
    }

    /// Virtual seconds between two versions of a page; `None` for a page that never changes.
    pub fn change_period(&self, page: PageId) -> Option<u64> {
        let page = self.original(page);
        let mut dice = Dice::new(self.config.seed, purpose::FORM, page.host.0.into(), u64::from(page.number) | 1 << 41);
        self.draws.change.draw(&mut dice)?;
        let (shortest, longest) = PERIOD_S;
        Some((shortest * (longest / shortest).powf(dice.unit())) as u64)
    }

    /// The version of a page at a virtual time and when it appeared, Unix seconds.
    pub fn version(&self, page: PageId, now_s: u64) -> (u64, u64) {
        let page = self.original(page);
        let mut dice = Dice::new(self.config.seed, purpose::FORM, page.host.0.into(), u64::from(page.number) | 1 << 42);
        match self.change_period(page) {
            Some(period) => {
                let phase = dice.below(period);
                let version = (now_s + phase) / period;
                (version, (version * period).saturating_sub(phase))
            }
            // Up to three years old when the web begins.
            None => (0, self.config.epoch_s.saturating_sub(dice.below(3 * 365 * 86_400))),
        }
    }

    /// The entity tag of a version of a page, if the page has tags.
    pub fn etag(&self, page: PageId, version: u64) -> Option<String> {
        let page = self.original(page);
        let tagged = matches!(self.form(page).validator, Some(Character::Etag | Character::BothValidators));
        let hash =
            Dice::new(self.config.seed ^ version, purpose::FORM, page.host.0.into(), u64::from(page.number)).next();
        tagged.then(|| format!("\"{hash:016x}\""))
    }

    /// The modification date of a page at a virtual time, if the page has dates.
    pub fn last_modified(&self, page: PageId, now_s: u64) -> Option<u64> {
        let page = self.original(page);
        let dated = matches!(self.form(page).validator, Some(Character::LastModified | Character::BothValidators));
        dated.then(|| self.version(page, now_s).1)
    }
}
