//! From settings to hosts: names, page counts, and how each host behaves.

use std::collections::HashMap;

use super::page::Style;
use super::text::{Language, Pool};
use super::{Host, World, robots};
use crate::config::Config;
use crate::dice::{Dice, purpose};
use crate::{names, words};

/// Share of domains with a second host, percent.
const SECOND_HOST_PERCENT: u64 = 15;

pub(super) fn build(config: &Config) -> World {
    let names = host_names(config);
    let counts = page_counts(config, names.len());
    let mut hosts = Vec::with_capacity(names.len());
    for ((at, (name, domain)), pages) in names.into_iter().enumerate().zip(counts) {
        let mut dice = Dice::new(config.seed, purpose::HOST, at as u64, 0);
        hosts.push(Host {
            branching: u32::try_from(dice.range(4, 14)).unwrap_or(4),
            style: Style::draw(&mut dice),
            language: Language::of(&name, &mut dice),
            robots: robots::Kind::draw(&mut dice),
            name,
            domain,
            pages,
        });
    }
    let mut first_page = Vec::with_capacity(hosts.len());
    let mut page_count = 0u64;
    for host in &hosts {
        first_page.push(page_count);
        page_count += u64::from(host.pages);
    }
    let by_name = (0u32..).zip(&hosts).map(|(at, host)| (host.name.clone(), at)).collect::<HashMap<_, _>>();
    World { config: config.clone(), hosts, by_name, first_page, page_count, pool: Pool::new(config.seed) }
}

/// (host name, registrable domain), unique, in order of popularity.
fn host_names(config: &Config) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let count = usize::try_from(config.domains).unwrap_or(usize::MAX);
    for (at, domain) in names::domains(config.seed, count).into_iter().enumerate() {
        let mut dice = Dice::new(config.seed, purpose::HOST, at as u64, 1);
        let main = if dice.percent(60) { format!("www.{domain}") } else { domain.clone() };
        out.push((main, domain.clone()));
        if dice.percent(SECOND_HOST_PERCENT) {
            out.push((format!("{}.{domain}", dice.pick(words::SUBDOMAINS)), domain));
        }
    }
    out
}

/// Zipf page counts, dealt to the hosts in an order of their own: a popular host need not be a large one.
fn page_counts(config: &Config, hosts: usize) -> Vec<u32> {
    let weights: Vec<f64> = (1..=hosts).map(|rank| (rank as f64).powf(-config.zipf)).collect();
    let total: f64 = weights.iter().sum();
    let mut order: Vec<(u64, usize)> =
        (0..hosts).map(|at| (Dice::new(config.seed, purpose::RANK, at as u64, 0).next(), at)).collect();
    order.sort_unstable();
    let mut dealt: Vec<(usize, u32)> = order
        .into_iter()
        .zip(weights)
        .map(|((_, at), weight)| {
            let share = (f64::from(config.pages) * weight / total).round();
            // `as` saturates, and the value is a small positive number anyway.
            (at, (share as u32).clamp(1, config.max_pages_per_host))
        })
        .collect();
    dealt.sort_unstable();
    dealt.into_iter().map(|(_, pages)| pages).collect()
}
