//! `trawl seqdb create`.

use crate::exit::Status;
use crate::output::Output;
use anyhow::Context;
use std::path::{Path, PathBuf};
use trawl_seqdb::{Access, CreateHindex, CreateKvseq, CreatePerm, Kvseq, Purpose, Repr, Settings, design};

/// Creates an empty kvseq, hindex or perm file
///
/// A map from keys to values is a kvseq and a hindex over it:
///   trawl seqdb create kvseq words.kvseq
///   trawl seqdb create hindex words.hindex --container words.kvseq
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct CreateArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    Kvseq(KvseqArgs),
    Hindex(HindexArgs),
    Perm(PermArgs),
}

/// Creates an empty sequence of keys and values
///
/// Representations: int8 int16 int32 int64 (a length of so many bits before the string), fixed:N, lim8:N (room for N
/// bytes, so that a string can change its length), or the number as stored.
///
/// Examples:
///   trawl seqdb create kvseq words.kvseq
///   trawl seqdb create kvseq counts.kvseq --keyrepr fixed:8 --valrepr fixed:8 --no-delete
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct KvseqArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    common: Common,
    /// How keys are stored
    #[arg(long, default_value = "int8", value_name = "REPR")]
    keyrepr: Repr,
    /// How values are stored
    #[arg(long, default_value = "int64", value_name = "REPR")]
    valrepr: Repr,
    /// Entries have no delete flag: a byte less each
    #[arg(long)]
    no_delete: bool,
    /// Entries start at multiples of this
    #[arg(long, default_value_t = 0, value_name = "N")]
    align: u64,
    /// The file grows in steps of so many bytes; 0: exactly
    #[arg(long, default_value_t = design::DEFAULT_FILEINCR, value_name = "N")]
    fileincr: i64,
}

/// Creates an empty hash table over the keys of a kvseq
///
/// Fill it with `trawl seqdb index-rebuild`, or by adding entries with --index. It grows by itself.
///
/// Example:
///   trawl seqdb create hindex words.hindex --container words.kvseq --htsize 2000003
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct HindexArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    common: Common,
    /// The kvseq it is about
    #[arg(long, value_name = "KVSEQ")]
    container: PathBuf,
    /// Cells; more are made when three quarters are used
    #[arg(long, default_value_t = 1021, value_name = "N")]
    htsize: u64,
    /// Words of a cell: 1, or 2 with stored hashes
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2))]
    cellsz: u64,
}

/// Creates an empty array of pointers into a kvseq
///
/// Example:
///   trawl seqdb create perm words.perm --container words.kvseq
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
struct PermArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    common: Common,
    /// The kvseq it is about
    #[arg(long, value_name = "KVSEQ")]
    container: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Bytes of the superblock
    #[arg(long, default_value_t = design::DEFAULT_SBSIZE, value_name = "N")]
    sbsize: u64,
    /// What the file is for: up to 8 bytes
    #[arg(long, default_value = "", value_name = "TEXT")]
    purpose: String,
}

impl Common {
    fn purpose(&self) -> anyhow::Result<Purpose> {
        Purpose::new(&self.purpose).context("--purpose has at most 8 bytes")
    }
}

/// Runs the command.
pub fn run(args: CreateArgs, settings: &Settings, out: &mut Output) -> anyhow::Result<Status> {
    let (kind, file) = match args.what {
        What::Kvseq(args) => {
            let create = CreateKvseq {
                sbsize: args.common.sbsize,
                purpose: args.common.purpose()?,
                key: args.keyrepr,
                value: args.valrepr,
                delflag: !args.no_delete,
                align: args.align,
                fileincr: args.fileincr,
                ..CreateKvseq::default()
            };
            create.create(&args.file, settings)?.close()?;
            ("kvseq", args.file)
        }
        What::Hindex(args) => {
            expect_kvseq(&args.container, settings)?;
            let create = CreateHindex {
                sbsize: args.common.sbsize,
                purpose: args.common.purpose()?,
                htsize: args.htsize,
                cellsz: args.cellsz,
                ..CreateHindex::default()
            };
            create.create(&args.file, settings)?.close()?;
            ("hindex", args.file)
        }
        What::Perm(args) => {
            expect_kvseq(&args.container, settings)?;
            let purpose = args.common.purpose()?;
            let create = CreatePerm { sbsize: args.common.sbsize, purpose, ..CreatePerm::default() };
            create.create(&args.file, settings)?.close()?;
            ("perm", args.file)
        }
    };
    let name = file.display().to_string();
    out.fact(&serde_json::json!({"type": "created", "file": name, "format": kind}), |w| writeln!(w, "{name}: {kind}"))?;
    Ok(Status::Done)
}

fn expect_kvseq(path: &Path, settings: &Settings) -> anyhow::Result<()> {
    Kvseq::open(path, Access::Read, settings)?.close()?;
    Ok(())
}
