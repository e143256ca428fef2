//! The command line: what there is to say, and what it means.

use crate::commands;
use clap::{CommandFactory, Parser, Subcommand};

const LONG_ABOUT: &str = "\
Trawl turns the web into a lake you can ask questions of.

It decides what to crawl and when, fetches it politely, archives every exchange in open formats, and answers for any \
domain which datasets hold it and which URLs they hold, down to the bytes of one capture.

New here? `trawl demo` shows all of it, without a network.";

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 done, with findings (nothing found, faults in the input); 2 failed.
Settings: a flag, else TRAWL_* in the environment, else trawl.toml (see `trawl settings`).";

/// Everything on the command line.
#[derive(Debug, Parser)]
#[command(name = "trawl", about, long_about = LONG_ABOUT, after_help = AFTER_HELP)]
#[command(disable_version_flag = true, arg_required_else_help = true, subcommand_required = false)]
#[command(infer_subcommands = true)]
pub struct Cli {
    /// Print results as JSON, one object a line; `digest` has hashes in place of long contents
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, value_name = "digest", value_parser = json)]
    #[arg(default_value = "false", default_missing_value = "true", hide_default_value = true)]
    pub json: Json,

    /// No progress and no remarks; results and errors only
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// Print user names and passwords in URLs as they were found; they are left out otherwise. Files always keep them
    #[arg(long, global = true)]
    pub credentials: bool,

    /// Print the version; with --verbose what it was built from
    #[arg(long, short = 'V', action = clap::ArgAction::SetTrue, hide = true)]
    pub version: bool,

    /// More detail
    #[arg(long, short, hide = true)]
    pub verbose: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Whether results are JSON, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Json {
    /// Text.
    No,
    /// JSON, nothing left out.
    Complete,
    /// JSON with hashes in place of long contents.
    Digest,
}

fn json(text: &str) -> Result<Json, String> {
    match text {
        "false" => Ok(Json::No),
        "true" => Ok(Json::Complete),
        "digest" => Ok(Json::Digest),
        _ => Err("expected digest, or no value".to_owned()),
    }
}

/// Daily acts are bare verbs; the rest is noun, then verb.
#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(commands::demo::Args),
    Crawl(Box<commands::crawl::Args>),
    Inspect(commands::inspect::Args),
    Verify(commands::verify::Args),
    Cat(commands::cat::Args),
    Convert(commands::convert::Args),
    Lake(commands::lake::Args),
    Query(commands::query::Args),
    Serve(commands::serve::Args),
    Url(commands::url::Args),
    Cdxj(commands::cdxj::Args),
    Captures(commands::captures::Args),
    Nutch(commands::nutch::Args),
    Frontier(commands::frontier::Args),
    Seqdb(commands::seqdb::Args),
    Testweb(commands::testweb::Args),
    Settings(commands::meta::SettingsArgs),
    Completions(commands::meta::CompletionsArgs),
    Man(commands::meta::ManArgs),
}

/// The whole tree, before settings are applied.
pub fn command() -> clap::Command {
    forgiving(Cli::command())
}

/// Of a repeated flag the last one counts. A number below zero is refused as the value that it is, not as an unknown flag.
fn forgiving(command: clap::Command) -> clap::Command {
    let number = |arg: clap::Arg| if arg.get_action().takes_values() { arg.allow_negative_numbers(true) } else { arg };
    command.args_override_self(true).mut_args(number).mut_subcommands(forgiving)
}
