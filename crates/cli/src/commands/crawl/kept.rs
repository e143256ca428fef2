//! The settings of a run, kept with it: a resume need not be told them again.

use crate::cli::{self, Cli};
use anyhow::bail;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Settings by name, as they are kept with a run.
pub type Settings = BTreeMap<String, Vec<String>>;

/// What is said anew with every command, and so belongs to no run.
const OF_THE_COMMAND: [&str; 10] =
    ["out", "resume", "overwrite", "change", "retry_from", "retry_class", "run_id", "metrics", "json", "quiet"];

/// The flags of `trawl crawl` that are settings of a run, by id.
fn names(command: &Command) -> Vec<String> {
    let arguments = command.find_subcommand("crawl").into_iter().flat_map(Command::get_arguments);
    let flags = arguments.filter(|arg| arg.get_long().is_some() && !arg.is_hide_set() && !arg.is_global_set());
    let ids = flags.map(|arg| arg.get_id().as_str().to_owned());
    ids.filter(|id| id != "help" && !OF_THE_COMMAND.contains(&id.as_str())).collect()
}

/// Settings that name files: kept so that they are found from any directory.
const FILES: [&str; 3] = ["digests", "ca_file", "surts"];

fn value(matches: &ArgMatches, id: &str) -> Vec<String> {
    let whole = |text: &OsStr| match FILES.contains(&id) {
        true => std::path::absolute(text).unwrap_or_else(|_| text.into()).into_os_string(),
        false => text.to_owned(),
    };
    let values = matches.get_raw(id).into_iter().flatten().map(whole);
    values.map(|text| text.to_string_lossy().into_owned()).collect()
}

/// Gives a resumed crawl the settings of its run, where the command does not name others. Those that differ are named, and
/// need `--change`. Returns `None` for any other command, and if there is no run to resume.
pub fn settings_of_run(command: &Command, matches: &ArgMatches) -> anyhow::Result<Option<Command>> {
    let Some(("crawl", given)) = matches.subcommand() else { return Ok(None) };
    let Some(out) = given.get_one::<PathBuf>("out").filter(|_| given.get_flag("resume")) else { return Ok(None) };
    let out = &super::run_dir(out, given.get_one::<String>("run_id").map_or("", String::as_str));
    let Some(of_run) = trawl_engine::settings_of(out)? else { return Ok(None) };
    let (mut kept, mut differs) = (Vec::new(), Vec::new());
    for id in names(command) {
        let Some(before) = of_run.get(&id) else { continue };
        let said = matches!(given.value_source(&id), Some(ValueSource::CommandLine | ValueSource::EnvVariable));
        let now = value(given, &id);
        match said {
            true if now == *before => {}
            true => {
                let was = before.join(" ");
                let was = if was.is_empty() { "not given" } else { &was };
                differs.push(format!("--{} {} (was {was})", id.replace('_', "-"), now.join(" ")));
            }
            false => kept.push((id, before.clone())),
        }
    }
    if !differs.is_empty() && !given.get_flag("change") {
        bail!("the run in {} has other settings: {}. Add --change to change them", out.display(), differs.join(", "));
    }
    Ok(Some(command.clone().mut_subcommand("crawl", |crawl| {
        kept.into_iter().fold(crawl, |crawl, (id, values)| crawl.mut_arg(id, |arg| arg.default_values(values)))
    })))
}

/// Notes the settings in force, for the run to keep.
pub fn note_settings(cli: &mut Cli, command: &Command, matches: &ArgMatches) {
    if let (Some(cli::Command::Crawl(args)), Some((_, given))) = (&mut cli.command, matches.subcommand()) {
        args.settings = names(command).into_iter().map(|id| (id.clone(), value(given, &id))).collect();
    }
}
