//! A model crawler writes clean logs; each test plants one kind of violation in one and expects it to be found there.

mod clean;
mod planted;
mod simulation;

use std::collections::BTreeMap;

use simulation::Simulation;

use super::{Kind, Verdict, judge_reader};
use crate::config::Config;
use crate::profiles::Profile;
use crate::settings::CrawlSettings;
use crate::world::World;

fn world(profile: Profile, seed: u64) -> World {
    World::new(&Config { seed, domains: 120, pages: 1_500, ..Config::profile(profile) }).unwrap()
}

/// Judges what a simulation wrote.
fn verdict(simulation: &Simulation<'_>) -> Verdict {
    judge_reader(simulation.render().0.as_bytes(), simulation.world, simulation.settings).unwrap()
}

/// Expects exactly these violations, and returns the verdict.
fn expect(simulation: &Simulation<'_>, wanted: &[(Kind, u64)]) -> Verdict {
    let verdict = verdict(simulation);
    assert_eq!(verdict.faults, []);
    assert_eq!(verdict.counts, wanted.iter().copied().collect::<BTreeMap<_, _>>(), "{verdict}");
    verdict
}

/// Expects one violation of this kind, at the line of the request with this number.
fn expect_at(simulation: &Simulation<'_>, kind: Kind, request: usize) {
    let verdict = expect(simulation, &[(kind, 1)]);
    assert_eq!(verdict.violations[0].line, Some(simulation.render().1[request]), "{verdict}");
    assert!(!verdict.clean);
}
