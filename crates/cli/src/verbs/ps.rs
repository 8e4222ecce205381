//! `numa ps`.

use crate::registry::RegistryArgs;
use crate::{Examples, GlobalArgs, observe};
use anyhow::Context;
use clap::Args;
use numakit_model::Topology;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::stdio::{OutputError, print, print_over};
use numakit_sys::tty;
use numakit_terminal::holders::Holders;
use std::process::ExitCode;
use std::time::Duration;

/// Show which programs hold which cores
///
/// A program that 'numa run' started holds its cores until it and all its descendants have ended.
/// The registry is one file: in the folder of --registry, $NUMAKIT_REGISTRY, or /run/numakit-cores if it exists, or
/// /dev/shm/numakit-cores.
#[derive(Debug, Args)]
pub struct PsArgs {
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Repeat every second, or at this interval
    #[arg(short, long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "1s", value_parser = observe::interval_of)]
    watch: Option<Duration>,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl PsArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples =
        [("numa ps", "who holds which cores"), ("numa ps --json", "the same for programs")];

    /// Prints the holders.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        global.only_here("the registry is on that machine; run 'numa ps' there")?;
        self.registry.apply()?;
        let topology = numakit_topology::read(&root).context("cannot read the topology")?;
        let Some(interval) = self.watch else {
            print(self.text(&topology)?)?;
            return Ok(ExitCode::SUCCESS);
        };
        let show: fn(String) -> Result<(), OutputError> =
            if tty::is_output() && !self.json { print_over } else { print };
        let mut next = clock::monotonic();
        loop {
            show(self.text(&topology)?)?;
            next = next.saturating_add(u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX));
            Alarm::new().sleep_until(next);
        }
    }

    fn text(&self, topology: &Topology) -> anyhow::Result<String> {
        let view = numakit_registry::inspect()?;
        let holders = Holders { holdings: &view.holdings, topology, now: clock::utc() };
        Ok(if self.json { format!("{}\n", holders.json()) } else { holders.table() })
    }
}
