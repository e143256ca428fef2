//! The page about the synthetic web names everything there is, with the shares and settings it really has.

use trawl_testweb::{Character, Config, CrawlSettings, Kind, Profile};

const PAGE: &str = include_str!("../../../docs/testweb.md");

/// The cells of the row whose first code word is `name`.
fn row(name: &str) -> Vec<&'static str> {
    let cell = format!("| `{name}` |");
    let line = PAGE.lines().find(|l| l.contains(&cell)).unwrap_or_else(|| panic!("no row for {name}"));
    line.trim_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn every_character_has_its_row() {
    for &character in Character::ALL {
        let cells = row(&character.name());
        assert_eq!(cells[2], character.about());
        for (profile, cell) in Profile::ALL.iter().zip(&cells[3..]) {
            let share = profile.shares().get(character);
            assert_eq!(cell.parse().unwrap_or(0), share, "{character:?} in {profile:?}");
        }
    }
}

#[test]
fn every_rule_has_its_row() {
    for &kind in Kind::ALL {
        let name = serde_json::to_value(kind).unwrap();
        assert_eq!(row(name.as_str().unwrap())[1], kind.about());
    }
}

#[test]
fn every_setting_has_its_row() {
    let (web, crawl) =
        (serde_json::to_value(Config::default()).unwrap(), serde_json::to_value(CrawlSettings::default()).unwrap());
    for name in web.as_object().unwrap().keys().chain(crawl.as_object().unwrap().keys()) {
        assert_eq!(row(name).len(), 3);
    }
}
