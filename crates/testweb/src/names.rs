//! Real-looking host names: unique registrable domains under real public suffixes, in their ASCII form.

use std::collections::HashSet;

use crate::dice::{Dice, purpose};
use crate::words;

/// One name in this many is international (an `xn--` label).
const INTERNATIONAL_EVERY: u64 = 40;

/// The first `count` registrable domains of the world with this seed, all different.
pub(crate) fn domains(seed: u64, count: usize) -> Vec<String> {
    let mut seen = HashSet::with_capacity(count);
    let mut out = Vec::with_capacity(count);
    let mut turn = 0u64;
    while out.len() < count {
        let mut dice = Dice::new(seed, purpose::DOMAIN, turn, 0);
        turn += 1;
        let name = domain(&mut dice);
        if seen.insert(name.clone()) {
            out.push(name);
        }
    }
    out
}

fn domain(dice: &mut Dice) -> String {
    let suffix = dice.pick(words::SUFFIXES);
    let label = match dice.below(INTERNATIONAL_EVERY) {
        0 => international(dice),
        n => latin(dice, n),
    };
    format!("{label}.{suffix}")
}

fn latin(dice: &mut Dice, form: u64) -> String {
    let (first, second) = (dice.pick(words::FIRST), dice.pick(words::SECOND));
    match form % 8 {
        // Two halves alone give eleven thousand labels; numbers and third words keep huge worlds from running dry.
        0 => format!("{first}{second}{}", dice.range(2, 999)),
        1 | 2 => format!("{first}-{second}"),
        3 => format!("{first}{}{second}", dice.pick(words::FIRST)),
        4 => format!("the{first}{second}"),
        5 => format!("{first}-{}-{second}", dice.pick(words::FIRST)),
        _ => format!("{first}{second}"),
    }
}

fn international(dice: &mut Dice) -> String {
    let word = dice.pick(words::INTERNATIONAL);
    let second = dice.pick(words::SECOND);
    let unicode =
        if word.is_ascii() || dice.percent(50) { format!("{word}-{second}") } else { format!("{word}{second}") };
    // Every listed word is valid IDNA, so the fallback is never seen; it keeps the function total.
    idna::domain_to_ascii(&unicode).unwrap_or_else(|_| second.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_valid_and_repeatable() {
        let names = domains(7, 30_000);
        assert_eq!(names, domains(7, 30_000));
        assert_ne!(names, domains(8, 30_000));
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), 30_000);
        for name in &names {
            assert!(name.len() < 80 && name.contains('.'), "{name}");
            assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b)), "{name}");
            assert!(name.split('.').all(|label| !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')));
        }
        assert!(names.iter().filter(|n| n.starts_with("xn--")).count() > 100);
    }

    #[test]
    fn every_international_word_has_an_ascii_form() {
        for word in words::INTERNATIONAL {
            assert!(idna::domain_to_ascii(word).is_ok_and(|a| a.starts_with("xn--")), "{word}");
        }
    }
}
