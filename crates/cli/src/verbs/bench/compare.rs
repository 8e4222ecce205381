//! `numa bench compare`.

use super::output::WIDTH;
use crate::GlobalArgs;
use anyhow::Context;
use clap::Args;
use numakit_bench::BenchResults;
use numakit_findings::comparison::bench;
use numakit_sys::stdio::print;
use numakit_sys::tty;
use numakit_terminal::bench::compared;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show what differs between two results beyond noise
///
/// A value differs if the intervals from the 10 % to the 90 % quantile do not overlap. Those of several runs
/// ('numa bench all --runs 5') cover the differences between runs; of one run, these are not known. The results may be of different
/// machines; what differs in these and in the conditions is said first.
#[derive(Debug, Args)]
pub struct BenchCompareArgs {
    /// Results before, as 'numa bench --json' wrote them
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// Results after
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Changes to show, the largest first [default: 40]
    #[arg(long, value_name = "N")]
    rows: Option<u16>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// The default of --rows.
const ROWS: u16 = 40;

impl BenchCompareArgs {
    /// Reads, compares and prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("it reads files, which have all that it compares")?;
        compare(&self.before, &self.after, self.rows, self.json)
    }
}

/// Reads two results, and prints what differs.
pub fn compare(before: &Path, after: &Path, rows: Option<u16>, json: bool) -> anyhow::Result<ExitCode> {
    let comparison = bench::compare(&BenchResults::read(before)?, &BenchResults::read(after)?);
    match json {
        true => {
            let text = serde_json::to_string(&comparison).context("cannot write JSON")?;
            print(format_args!("{text}\n"))?;
        }
        false => {
            let width = tty::columns().unwrap_or(WIDTH);
            print(compared::text(&comparison, rows.unwrap_or(ROWS).into(), width))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
