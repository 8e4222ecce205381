//! `numa jobs`.

use crate::{Examples, GlobalArgs, jobs, observe};
use anyhow::{Context, anyhow};
use clap::Args;
use numakit_jobs::SamplesCost;
use numakit_sys::clock::{self, Alarm};
use numakit_sys::stdio::{OutputError, print, print_over};
use numakit_sys::tty;
use numakit_terminal::jobs::JobTable;
use std::process::ExitCode;
use std::time::Duration;

/// Show which job NUMA slows down
///
/// Jobs are containers, pods, Slurm jobs, units of systemd, other control groups, or else users. The guilty one stands first: by what
/// its findings cost, then by CPU time at remote memory.
///
/// REMOTE% is the share of time at memory that is spent at memory of other nodes, as samples of instructions tell; without samples, the
/// share of memory that is not where the threads run. WAIT% is the time in which threads were ready and had no CPU,
/// relative to their CPU time. A value that is unknown is shown as '-', and the last lines say why. FINDING is 'none' where enough was
/// seen of a job to say so.
#[derive(Debug, Args)]
pub struct JobsArgs {
    /// Time over which it is measured, from 100us to 1h
    #[arg(short, long, value_name = "TIME", default_value = "3s", value_parser = observe::interval_of)]
    interval: Duration,
    /// Repeat until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    /// Jobs that are listed
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    top: usize,
    /// Samples of instructions in a second of each busy CPU; 0: none
    #[arg(long, value_name = "HZ", default_value = "199", value_parser = clap::value_parser!(u32).range(..=999))]
    sample_rate: u32,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

impl JobsArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa jobs", "who is guilty, of the last 3 seconds"),
        ("numa jobs --watch", "the same again and again"),
    ];

    /// Prints the jobs.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        let root = global.root()?;
        let mut topology = numakit_topology::read(&root).context("cannot read the topology")?;
        numakit_topology::add_offline_cpus(&mut topology, &root);
        let watch = jobs::watch(&root, &topology, self.sample_rate, SamplesCost::OF_SECONDS);
        let mut watch = watch.map_err(|why| anyhow!("{why}"))?;
        let show: fn(String) -> Result<(), OutputError> =
            if tty::is_output() && !self.json && self.watch { print_over } else { print };
        let interval = u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX);
        let mut next = clock::monotonic();
        watch.round(&|| false);
        loop {
            next = next.saturating_add(interval);
            Alarm::new().sleep_until(next);
            let end = clock::monotonic().saturating_add(interval.max(WALK));
            let jobs = watch.round(&|| clock::monotonic() < end);
            let table = JobTable { jobs: &jobs, top: self.top };
            show(if self.json { format!("{}\n", table.json()) } else { table.text() })?;
            if !self.watch {
                return Ok(ExitCode::SUCCESS);
            }
            next = next.max(clock::monotonic());
        }
    }
}

/// Minimum time for reading memory, in ns.
const WALK: u64 = 1_000_000_000;
