//! Settings: flags, then `TRAWL_*` environment, then `trawl.toml`.
//!
//! Every flag of every command is a setting, so there is one list and one mechanism: the environment variable and
//! the file's value are handed to clap as the flag's fallback and default, and are checked by the flag's own parser.
//!
//! ```text
//! trawl lake ingest --memory 1GiB        flag
//! TRAWL_LAKE_INGEST_MEMORY=1GiB          environment
//! [lake.ingest]                          trawl.toml in the current directory, or TRAWL_CONFIG=FILE
//! memory = "1GiB"
//! ```
//!
//! A flag also takes the place of settings that it excludes: `--json` of `csv = true`, `--hidden` of `public = true`. To clap a
//! value of the file is a default, which excludes nothing: both would hold, and the code that reads them would choose.

use anyhow::{Context, bail};
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command, Id};
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;

/// The file read when `TRAWL_CONFIG` names no other.
const DEFAULT_FILE: &str = "trawl.toml";

/// Gives every flag its environment variable and its value from the settings file. `args` is the command line.
pub fn apply(command: Command, args: &[OsString]) -> anyhow::Result<Command> {
    refuse_unknown(&command)?;
    let typed = Typed::of(args);
    let command = with_environment(command, "TRAWL", &typed);
    let named = std::env::var_os("TRAWL_CONFIG").map(PathBuf::from);
    let path = named.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        // Only a file that was asked for by name has to be there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => return Ok(command),
        Err(error) => return Err(error).with_context(|| format!("cannot read settings from {}", path.display())),
    };
    let table: toml::Table = text.parse().with_context(|| format!("{} is not valid TOML", path.display()))?;
    with_file(command, &table, "", &typed).with_context(|| format!("in {}", path.display()))
}

/// Flags on the command line, of whatever command.
struct Typed(Vec<String>);

impl Typed {
    fn of(args: &[OsString]) -> Self {
        let words = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned());
        Self(words.take_while(|word| word != "--").filter(|word| word.starts_with('-')).collect())
    }

    fn has(&self, arg: &Arg) -> bool {
        self.0.iter().any(|word| {
            let long = word.strip_prefix("--").and_then(|rest| rest.split('=').next());
            let short = word.strip_prefix('-').and_then(|rest| rest.chars().next());
            long.is_some() && long == arg.get_long() || short.is_some() && short == arg.get_short()
        })
    }
}

/// Arguments of a command that one on the command line excludes, or one in the environment where that is known already.
fn outranked(command: &Command, typed: &Typed) -> Vec<Id> {
    let in_environment = |arg: &Arg| arg.get_env().and_then(std::env::var_os).is_some_and(|v| v != "false");
    let given = |arg: &Arg| typed.has(arg) || in_environment(arg);
    let mut out = Vec::new();
    for arg in command.get_arguments() {
        for other in command.get_arg_conflicts_with(arg) {
            match (given(arg), given(other)) {
                (true, false) => out.push(other.get_id().clone()),
                (false, true) => out.push(arg.get_id().clone()),
                _ => {}
            }
        }
    }
    out
}

/// Variables that are not flags: the settings file, and what concerns lakes in buckets.
const OTHERS: [&str; 6] =
    ["TRAWL_CONFIG", "TRAWL_LAKE", "TRAWL_CACHE_DIR", "TRAWL_CACHE_SIZE", "TRAWL_POLL", "TRAWL_SHOW_USAGE"];
/// Variables of our own tests begin so.
const OF_TESTS: &str = "TRAWL_TEST_";

/// Refuses a variable that sets nothing: with a slip of the pen in its name a setting would be ignored silently.
fn refuse_unknown(command: &Command) -> anyhow::Result<()> {
    let known = table(command);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let is_ours = name.starts_with("TRAWL_") && !name.starts_with(OF_TESTS);
        if is_ours && !OTHERS.contains(&&*name) && !known.iter().any(|setting| setting.environment == name) {
            bail!("environment variable {name}: there is no setting by that name; see `trawl settings`");
        }
    }
    crate::lake_dir::check_variables()
}

/// Whether an argument can be set from outside: a flag with a long name that is not an action like `--help`.
fn is_setting(arg: &Arg) -> bool {
    arg.get_long().is_some_and(|name| !matches!(name, "version" | "verbose"))
        && !arg.is_hide_set()
        && matches!(arg.get_action(), ArgAction::Set | ArgAction::Append | ArgAction::SetTrue)
}

fn variable(prefix: &str, arg: &Arg) -> String {
    let name = arg.get_long().unwrap_or_default();
    format!("{prefix}_{name}").replace('-', "_").to_uppercase()
}

fn with_environment(command: Command, prefix: &str, typed: &Typed) -> Command {
    let outranked = outranked(&command, typed);
    let mut command = command.mut_args(|arg| {
        if is_setting(&arg) && !outranked.contains(arg.get_id()) {
            let name = variable(prefix, &arg);
            // One lake for all commands that take one; what is said to a single command comes first.
            let lake = std::env::var_os("TRAWL_LAKE").filter(|_| arg.get_long() == Some("lake"));
            let name = if lake.is_some() && std::env::var_os(&name).is_none() { "TRAWL_LAKE".to_owned() } else { name };
            arg.env(name).hide_env(true)
        } else {
            arg
        }
    });
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    for name in names {
        let prefix = format!("{prefix}_{name}").replace('-', "_").to_uppercase();
        command = command.mut_subcommand(&name, |sub| with_environment(sub, &prefix, typed));
    }
    command
}

fn with_file(mut command: Command, table: &toml::Table, path: &str, typed: &Typed) -> anyhow::Result<Command> {
    let outranked = outranked(&command, typed);
    for (key, value) in table {
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if let toml::Value::Table(inner) = value {
            let Some(sub) = command.find_subcommand(key).cloned() else {
                bail!("[{full}]: there is no command by that name; see `trawl settings`");
            };
            let sub = with_file(sub, inner, &full, typed)?;
            command = command.mut_subcommand(key, |_| sub);
            continue;
        }
        let long = key.replace('_', "-");
        let found = command.get_arguments().find(|a| is_setting(a) && a.get_long() == Some(&long));
        let Some(id) = found.map(|a| a.get_id().clone()) else {
            bail!("{full}: there is no setting by that name; see `trawl settings`");
        };
        let values = texts(value).with_context(|| full.clone())?;
        if outranked.contains(&id) {
            continue;
        }
        // What the file gives is not missing on the command line.
        let set =
            |arg: Arg| arg.default_values(values).required(false).required_unless_present(Resettable::<Id>::Reset);
        command = command.mut_arg(id, set);
    }
    Ok(command)
}

fn texts(value: &toml::Value) -> anyhow::Result<Vec<String>> {
    Ok(match value {
        toml::Value::String(text) => vec![text.clone()],
        toml::Value::Integer(n) => vec![n.to_string()],
        toml::Value::Float(n) => vec![n.to_string()],
        toml::Value::Boolean(b) => vec![b.to_string()],
        toml::Value::Array(items) => items.iter().map(texts).collect::<anyhow::Result<Vec<_>>>()?.concat(),
        other => bail!("expected text, a number, true, false or a list of these, found {}", other.type_str()),
    })
}

/// A setting, for the table of all of them.
#[derive(Debug, Serialize)]
pub struct Setting {
    /// `lake.ingest.memory`, as `trawl.toml` names it.
    pub name: String,
    /// `TRAWL_LAKE_INGEST_MEMORY`.
    pub environment: String,
    /// The default value.
    pub default: String,
    /// What it does and what it costs.
    pub help: String,
}

/// Every setting there is, in the order of the commands.
pub fn table(command: &Command) -> Vec<Setting> {
    let mut rows = Vec::new();
    collect(command, "", "TRAWL", &mut rows);
    rows
}

fn collect(command: &Command, path: &str, prefix: &str, rows: &mut Vec<Setting>) {
    for arg in command.get_arguments().filter(|a| is_setting(a)) {
        // A global flag is listed once, where it belongs to every command.
        if arg.is_global_set() && !path.is_empty() {
            continue;
        }
        let name = arg.get_long().unwrap_or_default().replace('-', "_");
        let default = arg.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()).collect::<Vec<_>>();
        rows.push(Setting {
            name: format!("{path}{name}"),
            environment: variable(prefix, arg),
            default: default.join(","),
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        });
    }
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        let prefix = format!("{prefix}_{}", sub.get_name()).replace('-', "_").to_uppercase();
        collect(sub, &format!("{path}{}.", sub.get_name()), &prefix, rows);
    }
}
