//! Prose: a pool of paragraphs per language, made once; a page is a choice of them, so rendering is mostly copying.

use crate::dice::{Dice, purpose};
use crate::words;

/// Paragraphs per language. 512 of about 500 bytes: far more choices than pages, and small enough for a cache.
const PARAGRAPHS: u64 = 512;

/// The language a host writes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    German,
    French,
    Japanese,
}

impl Language {
    pub(super) const ALL: [Self; 4] = [Self::English, Self::German, Self::French, Self::Japanese];

    /// Hosts write the language of their country, elsewhere mostly English.
    pub(super) fn of(host: &str, dice: &mut Dice) -> Self {
        let drawn = dice.below(20);
        match host.rsplit('.').next() {
            Some("de" | "ch") => Self::German,
            Some("fr") => Self::French,
            Some("jp") => Self::Japanese,
            _ if drawn == 0 => Self::French,
            _ if drawn == 1 => Self::German,
            _ => Self::English,
        }
    }

    /// The `lang` attribute.
    pub(super) fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Japanese => "ja",
        }
    }

    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            Self::English => words::ENGLISH,
            Self::German => words::GERMAN,
            Self::French => words::FRENCH,
            Self::Japanese => words::JAPANESE,
        }
    }

    /// What stands between two words.
    pub(super) fn space(self) -> &'static str {
        if self == Self::Japanese { "" } else { " " }
    }

    fn stop(self) -> &'static str {
        if self == Self::Japanese { "。" } else { ". " }
    }
}

/// Ready-made paragraphs, by language.
pub(super) struct Pool(Vec<Vec<String>>);

impl Pool {
    pub(super) fn new(seed: u64) -> Self {
        let of = |language: Language| {
            let at = |n| paragraph(language, &mut Dice::new(seed, purpose::POOL, n, u64::from(language as u8)));
            (0..PARAGRAPHS).map(at).collect()
        };
        Self(Language::ALL.into_iter().map(of).collect())
    }

    /// A paragraph drawn by `dice`.
    pub(super) fn draw(&self, language: Language, dice: &mut Dice) -> &str {
        let list = self.0.get(usize::from(language as u8)).map_or(&[][..], Vec::as_slice);
        let at = usize::try_from(dice.below(list.len() as u64)).unwrap_or(0);
        list.get(at).map_or("", String::as_str)
    }
}

fn paragraph(language: Language, dice: &mut Dice) -> String {
    let mut out = String::from("<p>");
    for _ in 0..dice.range(3, 9) {
        for n in 0..dice.range(6, 16) {
            let word = dice.pick(language.words());
            if n > 0 {
                out.push_str(language.space());
                out.push_str(word);
            } else {
                push_capitalised(word, &mut out);
            }
        }
        out.push_str(language.stop());
    }
    out.push_str("</p>\n");
    out
}

/// Appends a word with its first letter in upper case.
pub(super) fn push_capitalised(word: &str, out: &mut String) {
    let mut chars = word.chars();
    out.extend(chars.next().into_iter().flat_map(char::to_uppercase));
    out.push_str(chars.as_str());
}
