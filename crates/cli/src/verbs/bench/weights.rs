//! `numa bench weights`.

use super::output::WIDTH;
use crate::GlobalArgs;
use anyhow::Context;
use clap::Args;
use numakit_bench::{BenchResults, InterleaveWeights, KernelWeights, kept};
use numakit_sys::SysRoot;
use numakit_sys::stdio::print;
use numakit_sys::tty;
use numakit_terminal::bench::weights_page;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show weights for weighted interleaving, from the measured bandwidth of each node
///
/// Weighted interleaving ('numa run --memory weighted') allocates as many pages in a row on a node as its weight. The
/// weights are in the ratio of what the CPUs nearest to each node read from it. They are shown beside those of the kernel,
/// which are automatic (from the firmware) or were set manually, with the commands that set the measured ones.
#[derive(Debug, Args)]
pub struct BenchWeightsArgs {
    /// Results of 'numa bench all --json' or 'numa bench bandwidth --json' [default: those that were kept of this machine]
    #[arg(value_name = "FILE")]
    results: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

impl BenchWeightsArgs {
    /// Prints them.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here("it reads the weights of this kernel")?;
        let root = SysRoot::host();
        let topology = numakit_topology::read(&root).context("cannot read the topology")?;
        let results = match &self.results {
            Some(path) => BenchResults::read(path)?,
            None => kept::find(&topology)?,
        };
        let auto = numakit_topology::weights_auto_file(&root);
        let is_here = results.machine_key == kept::key_of(&root, &topology);
        let kernel = KernelWeights { topology: &topology, auto_file: auto.as_deref() };
        let weights = InterleaveWeights::new(&results, is_here.then_some(kernel))?;
        match self.json {
            true => print(format_args!("{}\n", serde_json::to_string(&weights)?))?,
            false => print(weights_page(&weights, tty::columns().unwrap_or(WIDTH)))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
