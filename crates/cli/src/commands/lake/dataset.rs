//! `trawl lake dataset`: what the registry says of a dataset.

use super::LakeArg;
use crate::exit::Status;
use crate::output::{Output, harmless};
use crate::{lake_dir, system};
use anyhow::{Context, bail};
use std::io::Write;
use std::path::Path;
use trawl_store::{Acl, Dataset, DatasetInfo};

/// Largest JSON Schema that is taken: every manifest and commit repeats it.
const MAX_SCHEMA_BYTES: u64 = 64 << 10;

/// Changes the settings of a dataset
#[derive(Debug, clap::Args)]
pub struct DatasetArgs {
    #[command(subcommand)]
    command: DatasetVerb,
}

#[derive(Debug, clap::Subcommand)]
enum DatasetVerb {
    Set(SetArgs),
}

/// Sets who may see a dataset, where it comes from, where its archives are, its name
///
/// Settings that are not given stay as they are; a list that is given replaces the old one. Readers see the change at their next
/// request. The settings are also written beside the dataset, so that they survive the loss of index/. `trawl lake datasets
/// --json` shows them.
///
/// Examples:
///   trawl lake dataset set --lake lake news --principal alice --principal press
///   trawl lake dataset set news --public --source 'feeds of 2026' --rename old
///   trawl lake dataset set crawl --archive-base s3://archive/2026/ --hidden
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true))]
pub struct SetArgs {
    #[command(flatten)]
    lake: LakeArg,

    /// Name or number of the dataset
    #[arg(value_name = "DATASET")]
    dataset: String,

    /// Let everyone see it
    #[arg(long, group = "change", conflicts_with_all = ["principal", "hidden"])]
    public: bool,

    /// Let only this principal see it; may be repeated
    #[arg(long, value_name = "WHO", group = "change", conflicts_with = "hidden")]
    principal: Vec<String>,

    /// Hide it from all clients of the API
    #[arg(long, group = "change")]
    hidden: bool,

    /// Note where its records come from; empty removes the note
    #[arg(long, value_name = "TEXT", group = "change")]
    source: Option<String>,

    /// URI of the directory of its archives, such as s3://bucket/crawl/; may be repeated; empty removes all
    #[arg(long, value_name = "URI", group = "change")]
    archive_base: Vec<String>,

    /// File with a JSON Schema of the extras column; empty removes it
    #[arg(long, value_name = "FILE", group = "change")]
    extras_schema: Option<String>,

    /// Its new name
    #[arg(long, value_name = "NAME", group = "change")]
    rename: Option<String>,
}

pub(super) fn run(args: &DatasetArgs, out: &mut Output) -> anyhow::Result<Status> {
    let DatasetVerb::Set(args) = &args.command;
    set(args, out)
}

fn read_schema(path: &Path) -> anyhow::Result<serde_json::Value> {
    let what = || format!("--extras-schema {}", path.display());
    let len = std::fs::metadata(path).with_context(what)?.len();
    if len > MAX_SCHEMA_BYTES {
        bail!("{}: expected at most {MAX_SCHEMA_BYTES} bytes, found {len}", what());
    }
    let schema: serde_json::Value = serde_json::from_slice(&std::fs::read(path).with_context(what)?)
        .with_context(|| format!("{}: expected JSON", what()))?;
    // A schema is an object, or true or false.
    if !schema.is_object() && !schema.is_boolean() {
        bail!("{}: expected a JSON Schema, which is an object", what());
    }
    Ok(schema)
}

fn set(args: &SetArgs, out: &mut Output) -> anyhow::Result<Status> {
    let mut principals = args.principal.clone();
    principals.sort_unstable();
    principals.dedup();
    if principals.iter().any(String::is_empty) {
        bail!("--principal needs a name; use --hidden to hide the dataset");
    }
    let bases: Vec<String> = args.archive_base.iter().filter(|base| !base.is_empty()).cloned().collect();
    if let Some(base) = bases.iter().find(|base| !base.contains("://")) {
        bail!("expected an archive base that is a URI (file://…, s3://…, https://…), found {base:?}");
    }
    let schema = match args.extras_schema.as_deref() {
        None | Some("") => None,
        Some(path) => Some(read_schema(Path::new(path))?),
    };
    let lake = lake_dir::open(&args.lake.lake)?;
    let id = trawl_maintain::dataset(&*lake.current()?, &args.dataset)?.id;
    let (dataset, changed) = lake.set_dataset(system::now(), &system::nonce()?, id, |info| {
        if args.public {
            info.acl = Acl::Public;
        } else if args.hidden || !principals.is_empty() {
            info.acl = Acl::Principals(principals.clone());
        }
        if let Some(source) = &args.source {
            info.source = Some(source.clone()).filter(|source| !source.is_empty());
        }
        if !args.archive_base.is_empty() {
            info.archive_base.clone_from(&bases);
        }
        if args.extras_schema.is_some() {
            info.extras_schema.clone_from(&schema);
        }
        if let Some(name) = &args.rename {
            info.name.clone_from(name);
        }
    })?;
    let mut json = serde_json::to_value(&dataset.info)?;
    json["type"] = "dataset".into();
    json["dataset_id"] = id.into();
    json["changed"] = changed.into();
    out.fact(&json, |w| show(&dataset, changed, w))?;
    Ok(Status::Done)
}

fn show(dataset: &Dataset, changed: bool, w: &mut dyn Write) -> std::io::Result<()> {
    let DatasetInfo { name, source, acl, archive_base, extras_schema } = &dataset.info;
    let note = if changed { "" } else { "  (nothing changed)" };
    writeln!(w, "dataset {} {}{note}", dataset.id, harmless(name))?;
    match acl {
        Acl::Public => writeln!(w, "seen by   everybody")?,
        Acl::Principals(who) if who.is_empty() => writeln!(w, "seen by   nobody")?,
        Acl::Principals(who) => writeln!(w, "seen by   {}", harmless(&who.join(", ")))?,
    }
    if let Some(source) = source {
        writeln!(w, "source    {}", harmless(source))?;
    }
    for base in archive_base {
        writeln!(w, "archives  {}", harmless(base))?;
    }
    if extras_schema.is_some() {
        writeln!(w, "extras    have a schema")?;
    }
    Ok(())
}
