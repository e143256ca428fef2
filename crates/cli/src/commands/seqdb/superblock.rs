//! `trawl seqdb superblock`.

use crate::exit::Status;
use crate::output::Output;
use anyhow::{Context, bail};
use serde::Serialize;
use std::path::Path;
use trawl_archive::seqdb::superblock;
use trawl_seqdb::{Purpose, Settings, inspect, set_variables};

#[derive(Serialize)]
struct Facts {
    file: String,
    #[serde(flatten)]
    superblock: serde_json::Value,
}

/// Sets variables, given as names and values in turn, and shows all of them.
pub fn run(file: &Path, set: &[String], settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    if !set.is_empty() {
        let pairs = set.chunks_exact(2).map(|pair| match pair {
            [name, value] => Ok((name.clone(), parse_value(name, value)?)),
            _ => bail!("--set takes a name and a value"),
        });
        set_variables(file, &pairs.collect::<anyhow::Result<Vec<_>>>()?, settings)?;
    }
    let seen = inspect(file, settings)?;
    let facts = Facts { file: file.display().to_string(), superblock: superblock(&seen) };
    out.fact(&facts, |w| write!(w, "{seen}"))?;
    Ok(Status::Done)
}

/// A number, or the text of a PURPOSE.
fn parse_value(name: &str, text: &str) -> anyhow::Result<i64> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(u64::cast_signed),
        None => text.parse().ok(),
    };
    match number {
        Some(number) => Ok(number),
        None if name == "PURPOSE" => {
            Purpose::new(text).map(Purpose::to_value).context("PURPOSE has at most 8 bytes, and no NUL")
        }
        None => bail!("{name}: expected a number or 0x and hex digits, found {text:?}"),
    }
}
