//! `numa bench`.

mod compare;
mod mpi;
mod output;
mod overhead;
mod show;
mod weights;

use crate::{Examples, GlobalArgs, observe};
use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Subcommand};
pub use compare::compare;
use numakit_bench::{ALL, BENCHMARKS, BenchSettings, MAX_RUNS};
use numakit_model::CpuSet;
use numakit_placement::lists::KnownNumbers;
use numakit_placement::{ListError, NumberList};
use numakit_sys::signal::Signals;
use numakit_sys::stdio::{note, replace_line};
use numakit_sys::{signal, tty};
use numakit_terminal::bench::json;
pub use output::BenchOutputArgs;
pub use show::show;
use std::process::ExitCode;
use std::time::Duration;

/// Measure what this machine's memory can do: latency and bandwidth between nodes
///
/// Threads are bound to CPUs, one for each core; memory is bound to its node, or allocated there by first touch
/// where policies are refused, and its pages are verified before anything is timed. Values are medians. A
/// warning says why they should not be believed; what cannot be measured is left out with the reason. Of several
/// runs (--runs), a value is the median of their medians, low is the 10 % quantile of their low values and high the
/// 90 % quantile of their high ones. Ctrl-C keeps what was measured so far, of several runs those that ended, and the
/// exit code is 130. 'all' without --cpus, --nodes and --size keeps its
/// results as JSON in a file of this machine below numakit/bench in XDG_STATE_HOME (/var/lib for root).
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
#[command(subcommand_value_name = "TASK", subcommand_help_heading = "Tasks")]
pub struct BenchArgs {
    #[command(subcommand)]
    task: Option<BenchTask>,
    /// What to measure
    #[arg(value_name = "BENCHMARK", value_parser = names(), required = true)]
    benchmark: Option<String>,
    /// Use only these CPUs [default: all that this process may use]
    #[arg(long, value_name = "LIST")]
    cpus: Option<NumberList>,
    /// Use only these nodes, their CPUs and their memory [default: all]
    #[arg(long, value_name = "LIST")]
    nodes: Option<NumberList>,
    /// Memory to use, such as 256M [default: 4 times the last-level cache]
    #[arg(long, value_name = "SIZE", value_parser = BenchSettings::size_of)]
    size: Option<u64>,
    /// How long to measure each value [default: 500ms, or 100ms with --quick]
    #[arg(long, value_name = "TIME", value_parser = observe::interval_of)]
    time: Option<Duration>,
    /// Measure each value for a shorter time, and fewer sizes
    #[arg(long)]
    quick: bool,
    /// Run them this often, in turn, so that values have the noise between runs
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_RUNS)))]
    runs: u32,
    #[command(flatten)]
    output: BenchOutputArgs,
}

/// What to do with results.
#[derive(Debug, Subcommand)]
enum BenchTask {
    Show(show::BenchShowArgs),
    Compare(compare::BenchCompareArgs),
    Mpi(mpi::BenchMpiArgs),
    Overhead(overhead::BenchOverheadArgs),
    Weights(weights::BenchWeightsArgs),
}

/// The words for benchmarks.
fn names() -> PossibleValuesParser {
    let all = PossibleValue::new(ALL).help("All of these");
    let each = BENCHMARKS.iter().map(|benchmark| PossibleValue::new(benchmark.name).help(benchmark.about));
    PossibleValuesParser::new(each.chain([all]))
}

/// The numbers of a list, if there is one.
fn numbers(
    list: Option<&NumberList>,
    what: &'static str,
    there: &CpuSet,
    allowed: &CpuSet,
) -> Result<Option<CpuSet>, ListError> {
    let limit = "the cpuset or the affinity of this process excludes them";
    list.map(|list| list.within(&KnownNumbers { what, there, offline: &CpuSet::new(), allowed, limit }))
        .transpose()
}

impl BenchArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa bench", "latency and bandwidth between nodes"),
        ("numa bench all --runs 5 --json > before.json", "everything, kept for a comparison"),
    ];

    /// Measures and prints.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        match self.task {
            Some(BenchTask::Show(show)) => return show.run(global),
            Some(BenchTask::Compare(compare)) => return compare.run(global),
            Some(BenchTask::Mpi(mpi)) => return mpi.run(global),
            Some(BenchTask::Overhead(overhead)) => return overhead.run(global),
            Some(BenchTask::Weights(weights)) => return weights.run(global),
            None => global.only_here("it measures the memory of this machine")?,
        }
        self.output.check()?;
        let benchmark = self.benchmark.unwrap_or_default();
        let topology = numakit_topology::read(&global.root()?).context("cannot read the topology")?;
        let nodes = topology.node_ids();
        let settings = BenchSettings {
            cpus: numbers(self.cpus.as_ref(), "CPU", &topology.online, &topology.allowed)
                .context("--cpus")?,
            nodes: numbers(self.nodes.as_ref(), "node", &nodes, &nodes).context("--nodes")?,
            size: self.size,
            time: self.time,
            quick: self.quick,
            runs: Some(self.runs),
        };
        settings.check()?;
        let chosen = numakit_bench::select(&benchmark)?;
        let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
            .context("cannot collect signals")?;
        let shows = tty::is_error();
        let (results, interrupted) =
            numakit_bench::run(&chosen, &topology, &settings, &signals, |progress| {
                if shows {
                    replace_line(Some(&progress.what));
                }
            });
        if shows {
            replace_line(None);
        }
        if benchmark == ALL && results.complete && settings.is_of_machine() {
            match numakit_bench::keep(&results.machine_key, &json(&results)?) {
                Ok(path) => note(format_args!("results of this machine are kept in {}", path.display())),
                Err(error) => note(format_args!("results of this machine are not kept: {error}")),
            }
        }
        self.output.write(&results, global)?;
        Ok(interrupted.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128u8.saturating_add(signal as u8))))
    }
}
