//! Commands about `trawl` itself: version, settings, completions, manual page.

use crate::exit::Status;
use crate::output::Output;
use crate::settings;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;

/// Lists every setting with its environment variable and default
///
/// Every flag of every command is a setting. Its value comes from the flag, else from the environment variable, else from
/// trawl.toml in the current directory (or the file that TRAWL_CONFIG names).
///
/// Example: trawl settings --json
#[derive(Debug, clap::Args)]
pub struct SettingsArgs {}

/// Prints a completion script for a shell
///
/// Example: trawl completions bash > /etc/bash_completion.d/trawl
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    shell: clap_complete::Shell,
}

/// Prints the manual page, or writes one page per command into a directory
///
/// Example: trawl man | man -l -
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// Write one page per command into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// `--version`, alone or with `--verbose`.
pub fn version(out: &mut Output, verbose: bool) -> anyhow::Result<Status> {
    let version = env!("CARGO_PKG_VERSION");
    let suffix_list = trawl_url::SuffixList::builtin().snapshot();
    let facts = serde_json::json!({
        "version": version,
        "target": env!("BUILT_FOR_TARGET"),
        "profile": env!("BUILT_WITH_PROFILE"),
        "rustc": env!("BUILT_BY_RUSTC"),
        "suffix_list": suffix_list,
    });
    out.fact(&facts, |w| {
        writeln!(w, "trawl {version}")?;
        if verbose {
            writeln!(w, "target:      {}", env!("BUILT_FOR_TARGET"))?;
            writeln!(w, "profile:     {}", env!("BUILT_WITH_PROFILE"))?;
            writeln!(w, "compiler:    {}", env!("BUILT_BY_RUSTC"))?;
            writeln!(w, "suffix list: {suffix_list}")?;
        }
        Ok(())
    })?;
    Ok(Status::Done)
}

/// `trawl settings`.
pub fn settings(_: SettingsArgs, tree: &clap::Command, out: &mut Output) -> anyhow::Result<Status> {
    let rows = settings::table(tree);
    if out.csv() {
        rows.iter().try_for_each(|row| out.csv_row(&["name", "environment", "default", "help"], row))?;
        return Ok(Status::Done);
    }
    if out.json() {
        for row in &rows {
            out.json_line(row)?;
        }
        return Ok(Status::Done);
    }
    writeln!(out, "| setting | environment | default | what it does |\n| --- | --- | --- | --- |")?;
    for row in &rows {
        let default = if row.default.is_empty() { String::new() } else { format!("`{}`", row.default) };
        let help = row.help.replace('|', "\\|");
        writeln!(out, "| `{}` | `{}` | {default} | {help} |", row.name, row.environment)?;
    }
    Ok(Status::Done)
}

/// `trawl completions`.
pub fn completions(args: CompletionsArgs, mut tree: clap::Command, out: &mut Output) -> anyhow::Result<Status> {
    // The generator writes to anything but cannot fail; a buffer keeps a closed pipe quiet.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut tree, "trawl", &mut script);
    out.write_all(&script)?;
    Ok(Status::Done)
}

/// `trawl man`.
pub fn man(args: ManArgs, _: clap::Command, out: &mut Output) -> anyhow::Result<Status> {
    // Made without settings: a manual page does not change with the reader's trawl.toml.
    let tree = crate::cli::command();
    match args.dir {
        Some(dir) => {
            let place = || format!("cannot write manual pages into {}", dir.display());
            std::fs::create_dir_all(&dir).with_context(place)?;
            clap_mangen::generate_to(tree, &dir).with_context(place)?;
            out.remark(&format!("manual pages are in {}", dir.display()));
        }
        None => clap_mangen::Man::new(tree).render(out)?,
    }
    Ok(Status::Done)
}
