//! `numa bench show`.

use super::output::BenchOutputArgs;
use crate::GlobalArgs;
use clap::Args;
use numakit_bench::BenchResults;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Show the results in a file, of this machine or of another one
#[derive(Debug, Args)]
pub struct BenchShowArgs {
    /// A file that 'numa bench --json' wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: BenchOutputArgs,
}

impl BenchShowArgs {
    /// Reads and prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("it reads a file, which has all that it shows")?;
        show(&self.file, self.output, global)
    }
}

/// Reads results, and writes them in a form.
pub fn show(file: &Path, output: BenchOutputArgs, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
    output.check()?;
    output.write(&BenchResults::read(file)?, global)?;
    Ok(ExitCode::SUCCESS)
}
